package kernel

import (
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

func TestDeviceMemory(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	_, err := u.AllocDM(Caller{}, DMReq{Length: 64})
	wantErrno(t, "a device without", err, syscall.EOPNOTSUPP)
	s.d.caps.memic = memicCaps{max: 4 * page, start: 0x1000000, pages: 4, align: 6}
	for _, x := range []struct {
		what string
		r    DMReq
		want syscall.Errno
	}{
		{"nothing", DMReq{}, syscall.EINVAL},
		{"too much", DMReq{Length: 4*page + 1}, syscall.ENOMEM},
		{"alignment", DMReq{Length: 64, LogAlign: 13}, syscall.EINVAL},
		{"steering", DMReq{Length: 64, Type: 1}, syscall.EOPNOTSUPP},
	} {
		_, err := u.AllocDM(Caller{}, x.r)
		wantErrno(t, x.what, err, x.want)
	}
	alloc := func(n uint64) *DM {
		t.Helper()
		m, err := u.AllocDM(Caller{}, DMReq{Length: n, LogAlign: 12})
		wantErrno(t, "allocate", err, 0)
		in := prm.AllocMemicIn(s.f.last[prm.OpAllocMemic])
		if in.MemicSize()%64 != 0 || uint64(in.MemicSize()) < n || in.RangeStartAddr() != 0x1000000+uint64(m.PageIndex)*page || in.LogMemicAddrAlignment() != 6 {
			t.Errorf("command %x", []byte(in))
		}
		return m
	}
	a, b := alloc(page+1), alloc(2*page)
	if a.PageIndex != 0 || a.Pages() != 2 || b.PageIndex != 2 {
		t.Errorf("pages %d+%d, %d+%d", a.PageIndex, a.Pages(), b.PageIndex, b.Pages())
	}
	_, err = u.AllocDM(Caller{}, DMReq{Length: 1})
	wantErrno(t, "no room", err, syscall.ENOMEM)
	pd := s.pd(u)
	const rights = verbs.AccessLocalWrite | verbs.AccessZeroBased
	h, _, _, err := u.RegDMMR(Caller{}, DMMRReq{PD: pd, DM: a.Handle(), Offset: 64, Length: page - 63, Access: rights})
	wantErrno(t, "register", err, 0)
	c := prm.CreateMKeyIn(s.f.last[prm.OpCreateMKey]).MKC()
	if c.AccessMode() != prm.MKeyModeMemic || c.StartAddr() != a.addr+64 || c.Len() != page-63 {
		t.Errorf("context %x", []byte(c))
	}
	_, _, err = u.ReregMR(Caller{}, h, ReregReq{Flags: verbs.ReregAccess, Access: rights})
	wantErrno(t, "register again", err, syscall.EINVAL)
	wantErrno(t, "free under a region", u.FreeDM(Caller{}, a.Handle()), syscall.EBUSY)
	wantErrno(t, "deregister", u.DeregMR(Caller{}, h), 0)
	wantErrno(t, "free", u.FreeDM(Caller{}, a.Handle()), 0)
	alloc(2 * page)
	u.Close(Caller{})
	if s.d.freeMemic(0, 4) != 0 {
		t.Errorf("a closed context left pages in use: %v", s.d.memicPages)
	}
}
