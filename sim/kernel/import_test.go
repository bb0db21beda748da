package kernel

import (
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// A context ends with the last of its descriptors; until then its objects can be asked for by
// their handles.
func TestDup(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	pd := s.pd(u)
	addr := s.buf(page, mem.Read|mem.Write)
	h, key, _, err := u.RegMR(Caller{}, pd, addr, 100, addr, verbs.AccessLocalWrite)
	wantErrno(t, "register", err, 0)
	u.Dup()
	u.Close(Caller{})
	queryPD := func(h Handle) error {
		_, err := u.QueryPD(Caller{}, h)
		return err
	}
	wantErrno(t, "a PD", queryPD(pd), 0)
	wantErrno(t, "a region as a PD", queryPD(h), syscall.EINVAL)
	wantErrno(t, "no such PD", queryPD(999), syscall.ENOENT)
	lkey, rkey, n, iova, err := u.QueryMR(Caller{}, h)
	wantErrno(t, "a region", err, 0)
	if lkey != key || rkey != key || n != 100 || iova != uint64(addr) {
		t.Errorf("keys %#x, %#x of %#x, %d bytes at %#x", lkey, rkey, key, n, iova)
	}
	u.Close(Caller{})
	wantErrno(t, "after the last descriptor", queryPD(pd), syscall.EBADF)
	if r := s.d.Resources(); r.Ctx != 0 || r.PD != 0 || r.MR != 0 || s.proc.Space.Pinned != 0 {
		t.Errorf("left: %+v, %d pages pinned", r, s.proc.Space.Pinned)
	}
}
