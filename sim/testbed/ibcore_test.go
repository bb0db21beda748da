package testbed

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// TestIBMulticastLID: ib_core refuses a group whose LID is none of a group (is_valid_mcast_lid).
func TestIBMulticastLID(t *testing.T) {
	group := verbs.GID{0xff, 0x12, 15: 1}
	for name, x := range map[string]struct {
		change []func(*Config)
		lid    uint16
		want   syscall.Errno
	}{
		"unicast":           {[]func(*Config){infiniBand}, 1, syscall.EINVAL},
		"none":              {[]func(*Config){infiniBand}, 0, syscall.EINVAL},
		"permissive":        {[]func(*Config){infiniBand}, 0xffff, syscall.EINVAL},
		"multicast":         {[]func(*Config){infiniBand}, roce.FirstMulticastLID, 0},
		"none, on Ethernet": {nil, 0, 0},
	} {
		run(t, config(t, x.change...), func(r *rig) {
			r.typ = verbs.QPTUD
			n := r.node(r.t, 4096)
			err := n.qp.AttachMcast(r.t, group, x.lid)
			if verbs.ErrnoOf(err) != x.want {
				t.Errorf("%s: %v, want %v", name, err, x.want)
			}
			if err == nil {
				r.ok("detach", n.qp.DetachMcast(r.t, group, x.lid))
			}
		})
	}
}

// TestIBNewPrefix: ib_core reads the GIDs again, and tells programs nothing.
func TestIBNewPrefix(t *testing.T) {
	run(t, config(t, infiniBand), func(r *rig) {
		n := r.node(r.t, 4096)
		const prefix = 0xfec0_0000_0000_0042
		r.ok("configure", r.bed.ConfigureSubnet(r.t, verbs.SubnetConfig{GIDPrefix: prefix}))
		if ev, err := n.ctx.AsyncEvent(r.t, time.Millisecond); !errors.Is(err, syscall.EAGAIN) {
			t.Errorf("event %v, %v", ev.Type, err)
		}
		g, err := n.ctx.QueryGID(r.t, 1, 0)
		r.ok("query GID", err)
		if p := roce.GID(g).SubnetPrefix(); p != prefix {
			t.Errorf("prefix %#x", p)
		}
	})
}

// TestIBPortFlags: the bit that says "GIDs are IP addresses" to programs has another meaning in the
// port's own mask.
func TestIBPortFlags(t *testing.T) {
	const ipBasedGIDs = 1 << 26 // IB_UVERBS_PCF_IP_BASED_GIDS
	for name, change := range map[string][]func(*Config){"InfiniBand": {infiniBand}, "Ethernet": nil} {
		run(t, config(t, change...), func(r *rig) {
			n := r.node(r.t, 4096)
			a, err := n.ctx.QueryPort(r.t, 1)
			r.ok("query port", err)
			if (a.PortCapFlags&ipBasedGIDs != 0) != (change == nil) {
				t.Errorf("%s: flags %#x", name, a.PortCapFlags)
			}
		})
	}
}

// TestGIDFlags: the kernel knows no flag of these queries (uverbs_get_flags32).
func TestGIDFlags(t *testing.T) {
	run(t, config(t), func(r *rig) {
		n := r.node(r.t, 4096)
		if _, err := n.ctx.QueryGIDEx(r.t, 1, 0, 1); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("query_gid_ex: %v", err)
		}
		if _, err := n.ctx.QueryGIDTable(r.t, make([]verbs.GIDEntry, 16), 1); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("query_gid_table: %v", err)
		}
	})
}
