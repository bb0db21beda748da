package testbed

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/verbs"
)

// elsewhere is a testbed whose cable leads to far.
func elsewhere(far link.Receiver) func(*Config) {
	return func(c *Config) {
		c.NoTap = true
		c.Hosts = c.Hosts[:1]
		c.Outside = &Outside{
			Identity: hca.Identity{GUID: 7, MAC: [6]byte{2, 0, 192, 0, 2, 7}, IPv4: [4]byte{192, 0, 2, 7}, RoCEv2: true},
			Address:  netip.AddrFrom4([4]byte{192, 0, 2, 7}),
			Join: func(e *sim.Engine, d *hca.Device) *link.Port {
				cable := link.NewCable(e, c.Profile.Link, "mlx5_0", "outside")
				cable.End(0).Attach(d)
				d.SetWire(cable.End(0))
				cable.End(1).Attach(far)
				return cable.End(0)
			},
			Reach:     netip.Addr.Is4,
			Neighbour: func(ip netip.Addr) (kernel.MAC, bool) { return kernel.MAC{2, 0, 192, 0, 2, 8}, ip.Is4() },
			Now:       func() time.Duration { return 42 * time.Second },
		}
	}
}

// counted is the far end of a cable.
type counted struct{ frames int }

func (c *counted) Receive(f *roce.Frame) {
	c.frames++
	f.Release()
}

// TestOutside: a host with a cable to somewhere else has one address, a clock that is not virtual,
// and sends what it sends there.
func TestOutside(t *testing.T) {
	far := &counted{}
	tb := run(t, config(t, elsewhere(far)), func(x *rig) {
		if x.t.Now() != 42*time.Second {
			t.Errorf("the clock says %v", x.t.Now())
		}
		n := x.node(x.t, 4096)
		if want := netip.AddrFrom4([4]byte{192, 0, 2, 7}).As16(); n.gid.GID != want || n.gid.Index != 0 {
			t.Errorf("GID %d is %v", n.gid.Index, n.gid.GID)
		}
		peer := verbs.GID(netip.AddrFrom4([4]byte{192, 0, 2, 8}).As16())
		attr := verbs.QPAttr{State: verbs.QPSInit, Port: 1}
		x.ok("INIT", n.qp.Modify(x.t, &attr, verbs.QPMaskState|verbs.QPMaskPKeyIndex|verbs.QPMaskPort|verbs.QPMaskAccessFlags))
		attr = verbs.QPAttr{State: verbs.QPSRTR, PathMTU: verbs.MTU1024, DestQPN: 5, AH: verbs.AHAttr{Port: 1, IsGlobal: true, GRH: verbs.GRH{DGID: peer, HopLimit: 64}}}
		x.ok("RTR", n.qp.Modify(x.t, &attr, verbs.QPMaskState|verbs.QPMaskAV|verbs.QPMaskPathMTU|verbs.QPMaskDestQPN|verbs.QPMaskRQPSN|verbs.QPMaskMaxDestRdAtomic|verbs.QPMaskMinRNRTimer))
		attr = verbs.QPAttr{State: verbs.QPSRTS, Timeout: 8}
		x.ok("RTS", n.qp.Modify(x.t, &attr, verbs.QPMaskState|verbs.QPMaskSQPSN|verbs.QPMaskTimeout|verbs.QPMaskRetryCnt|verbs.QPMaskRNRRetry|verbs.QPMaskMaxQPRdAtomic))
		_, err := n.qp.PostSend(x.t, []verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{{Addr: n.buf.Addr(), Length: 64, LKey: n.mr.LKey()}}}})
		x.ok("post", err)
		var wc [1]verbs.WC
		if k, err := n.cq.PollWait(x.t, wc[:], time.Minute); k != 1 || err != nil || wc[0].Status != verbs.WCRetryExcErr {
			t.Errorf("%d completions, %v, %v: nobody answers", k, wc[0].Status, err)
		}
	})
	if far.frames == 0 || tb.HardwareCountersOutside()["tx_packets_phy"] == 0 {
		t.Errorf("%d frames came out, %v", far.frames, tb.HardwareCountersOutside())
	}
}

// TestOutsideAlone: what does not go together with a cable to somewhere else is refused.
func TestOutsideAlone(t *testing.T) {
	for what, change := range map[string]func(*Config){
		"two hosts":   func(c *Config) { c.Hosts = append(c.Hosts, c.Hosts[0]) },
		"two devices": func(c *Config) { c.Hosts[0].Devices = 2 },
		"a switch":    func(c *Config) { c.Switched = true },
		"InfiniBand":  infiniBand,
		"faults":      func(c *Config) { c.Faults = &fault.Plan{} },
	} {
		c := config(t, elsewhere(&counted{}), change)
		if _, err := New(c); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
