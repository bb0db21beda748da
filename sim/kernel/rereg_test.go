package kernel

import (
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// Rights and PD change in place where the device can do it, and PDs are counted by who is
// on them now.
func TestReregInPlace(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	first, second := s.pd(u), s.pd(u)
	addr := s.buf(page, mem.Read|mem.Write)
	const lw, rr, atom, ro = verbs.AccessLocalWrite, verbs.AccessRemoteRead, verbs.AccessRemoteAtomic, verbs.AccessRelaxedOrdering
	h, key, _, err := u.RegMR(Caller{}, first, addr, page, addr, lw)
	wantErrno(t, "register", err, 0)
	for _, x := range []struct {
		what  string
		r     ReregReq
		edit  func(c *caps)
		stays bool
	}{
		{"rights", ReregReq{Flags: verbs.ReregAccess, Access: lw | rr | atom}, func(*caps) {}, true},
		{"PD", ReregReq{Flags: verbs.ReregPD, PD: second}, func(*caps) {}, true},
		{"PD and rights", ReregReq{Flags: verbs.ReregPD | verbs.ReregAccess, PD: second, Access: lw}, func(*caps) {}, true},
		{"atomics that no UMR changes", ReregReq{Flags: verbs.ReregAccess, Access: lw | atom}, func(c *caps) { c.umrAtomic = false }, false},
		{"windows", ReregReq{Flags: verbs.ReregAccess, Access: lw | atom | verbs.AccessMWBind}, func(*caps) {}, false},
		{"ordering", ReregReq{Flags: verbs.ReregAccess, Access: lw | atom | verbs.AccessMWBind | ro},
			func(c *caps) { c.roWrite, c.umrROWrite = true, false }, false},
		{"translation", ReregReq{Flags: verbs.ReregTranslation, Addr: addr, Length: 8, Iova: addr}, func(*caps) {}, false},
	} {
		x.edit(&s.d.caps)
		lkey, rkey, err := u.ReregMR(Caller{}, h, x.r)
		wantErrno(t, x.what, err, 0)
		if (lkey == key) != x.stays || lkey != rkey {
			t.Errorf("%s: key %#x becomes %#x, %#x", x.what, key, lkey, rkey)
		}
		if u := &s.f.umr; x.stays && (u.Ctrl.Imm() != key || u.UMR.Flags()&prm.UMRCheckNotFree == 0) {
			t.Errorf("%s: UMR of key %#x, flags %#x", x.what, u.Ctrl.Imm(), u.UMR.Flags())
		}
		key = lkey
	}
	wantErrno(t, "the PD that it left", u.DeallocPD(Caller{}, first), 0)
	wantErrno(t, "the PD that it is on", u.DeallocPD(Caller{}, second), syscall.EBUSY)
	wantErrno(t, "deregister", u.DeregMR(Caller{}, h), 0)
	wantErrno(t, "the PD that it was on", u.DeallocPD(Caller{}, second), 0)
}
