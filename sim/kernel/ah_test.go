package kernel

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

func TestAddressHandles(t *testing.T) {
	s := newSetup(t, testParams())
	ip, far := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	if err := s.d.AddIP(ip); err != nil {
		t.Fatal(err)
	}
	farMAC := MAC{2, 0, 0, 0, 0, 9}
	s.d.SetNeighbours(func(_ uint16, a netip.Addr) (MAC, bool) { return farMAC, a == far })
	u := s.open()
	pd := s.pd(u)
	index := uint8(0)
	for i := range s.d.gids {
		if s.d.gids[i].valid && s.d.gids[i].gid == ip.As16() && s.d.gids[i].typ == verbs.GIDTypeRoCEv2 {
			index = uint8(i)
		}
	}
	way := func(to string) verbs.AHAttr {
		return verbs.AHAttr{IsGlobal: true, Port: 1, GRH: verbs.GRH{DGID: netip.MustParseAddr(to).As16(), SGIDIndex: index}}
	}
	for _, x := range []struct {
		what string
		a    verbs.AHAttr
		pd   Handle
		want syscall.Errno
		mac  MAC
	}{
		{"neighbour", way("10.0.0.2"), pd, 0, farMAC},
		{"itself", way("10.0.0.1"), pd, 0, fakeMAC},
		{"IPv4 group", way("239.129.2.3"), pd, 0, MAC{0x01, 0x00, 0x5e, 1, 2, 3}},
		{"IPv6 group", way("ff0e::1:2"), pd, 0, MAC{0x33, 0x33, 0, 1, 0, 2}},
		{"nobody", way("10.0.0.3"), pd, syscall.ETIMEDOUT, MAC{}},
		{"port 0", verbs.AHAttr{IsGlobal: true}, pd, syscall.EINVAL, MAC{}},
		{"port 2", verbs.AHAttr{IsGlobal: true, Port: 2}, pd, syscall.EINVAL, MAC{}},
		{"no route", verbs.AHAttr{Port: 1}, pd, syscall.EINVAL, MAC{}},
		{"empty slot", verbs.AHAttr{IsGlobal: true, Port: 1, GRH: verbs.GRH{SGIDIndex: uint8(len(s.d.gids) - 1)}}, pd, syscall.ENODATA, MAC{}},
		{"rate", verbs.AHAttr{IsGlobal: true, Port: 1, StaticRate: 1, GRH: way("10.0.0.2").GRH}, pd, syscall.EINVAL, MAC{}},
		{"no PD", way("10.0.0.2"), 1000, syscall.ENOENT, MAC{}},
	} {
		h, mac, err := u.CreateAH(Caller{}, x.pd, x.a)
		wantErrno(t, x.what, err, x.want)
		if mac != x.mac {
			t.Errorf("%s: address %v, want %v", x.what, mac, x.mac)
		}
		if err != nil {
			continue
		}
		wantErrno(t, x.what+": PD in use", u.DeallocPD(Caller{}, pd), syscall.EBUSY)
		wantErrno(t, x.what+": destroy", u.DestroyAH(Caller{}, h), 0)
		wantErrno(t, x.what+": destroy again", u.DestroyAH(Caller{}, h), syscall.ENOENT)
	}
	wantErrno(t, "PD free again", u.DeallocPD(Caller{}, pd), 0)
}

func TestMulticast(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	pd, cq := s.pd(u), s.cq(u)
	q, rc := s.qp(u, pd, cq, verbs.QPTUD), s.qp(u, pd, cq, verbs.QPTRC)
	group, unicast := netip.MustParseAddr("ff0e::7").As16(), netip.MustParseAddr("10.0.0.1").As16()
	attached := func() (n int) {
		for _, op := range s.f.seen {
			switch op {
			case prm.OpAttachToMCG:
				n++
			case prm.OpDetachFromMCG:
				n--
			}
		}
		return n
	}
	wantErrno(t, "not UD", u.AttachMcast(Caller{}, rc, group, 0), syscall.EINVAL)
	wantErrno(t, "no group", u.AttachMcast(Caller{}, q, unicast, 0), syscall.EINVAL)
	wantErrno(t, "no QP", u.AttachMcast(Caller{}, 1000, group, 0), syscall.ENOENT)
	wantErrno(t, "stranger", u.DetachMcast(Caller{}, q, group, 0), syscall.EINVAL)
	for range 2 {
		wantErrno(t, "attach", u.AttachMcast(Caller{}, q, group, 0), 0)
	}
	if n := attached(); n != 1 {
		t.Errorf("the device was asked %d times for two calls", n)
	}
	_, err := u.DestroyQP(Caller{}, q)
	wantErrno(t, "destroy of a member", err, syscall.EBUSY)
	wantErrno(t, "detach", u.DetachMcast(Caller{}, q, group, 0), 0)
	_, err = u.DestroyQP(Caller{}, q)
	wantErrno(t, "destroy", err, 0)
	q = s.qp(u, pd, cq, verbs.QPTUD)
	wantErrno(t, "attach", u.AttachMcast(Caller{}, q, group, 0), 0)
	wantErrno(t, "attach", u.AttachMcast(Caller{}, q, netip.MustParseAddr("ff0e::8").As16(), 0), 0)
	u.Close(Caller{})
	if n := attached(); n != 0 {
		t.Errorf("%d memberships are left after the context is gone", n)
	}
}
