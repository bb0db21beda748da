package kernel

import (
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/pcie"
)

// Exported memory of the device stays with it after its owner has freed it, for as long as a
// descriptor lives, and nobody reaches it any more. With the context it goes at once.
func TestExportedDeviceMemory(t *testing.T) {
	p := testParams()
	s := newSetup(t, p)
	s.d.caps.memic = memicCaps{max: 4 * page, start: 0x1000000, pages: 4, align: 6}
	u := s.open()
	m, err := u.AllocDM(Caller{}, DMReq{Length: page + 1, LogAlign: 12})
	wantErrno(t, "allocate", err, 0)
	_, err = u.ExportDM(Caller{}, m.Handle())
	wantErrno(t, "a kernel without", err, syscall.EOPNOTSUPP)
	s.d.p.DmabufExport = true
	_, err = u.ExportDM(Caller{}, s.pd(u))
	wantErrno(t, "export of a PD", err, syscall.EINVAL)
	b, err := u.ExportDM(Caller{}, m.Handle())
	wantErrno(t, "export", err, 0)
	if size, refs, name := b.Info(); size != 2*page || refs != 1 || name != "ib_uverbs" {
		t.Errorf("%d B, %d references, of %q", size, refs, name)
	}
	if pages, err := b.exp.Map(); err != nil || pages.Start != pcie.OwnBAR0+pcie.BusAddress(0x1000000+uint64(m.PageIndex)*page) {
		t.Errorf("pages %#x, %v", pages.Start, err)
	}
	_, err = b.attach(nil, true)
	wantErrno(t, "a device that pins", err, syscall.EOPNOTSUPP)
	told := 0
	a, err := b.attach(func() { told++ }, false)
	wantErrno(t, "attach", err, 0)

	deallocated := func() bool {
		_, done := s.f.last[prm.OpDeallocMemic]
		delete(s.f.last, prm.OpDeallocMemic)
		return done
	}
	wantErrno(t, "free", u.FreeDM(Caller{}, m.Handle()), 0)
	if told != 1 || deallocated() || s.d.freeMemic(0, 4) >= 0 {
		t.Errorf("told %d times, or given back, pages in use %v", told, s.d.memicPages)
	}
	wantErrno(t, "map of what was freed", a.mapPages(), syscall.ENODEV)
	a.detach()
	b.Put()
	if !deallocated() || s.d.freeMemic(0, 4) != 0 {
		t.Errorf("not given back behind the last descriptor, pages in use %v", s.d.memicPages)
	}

	m, err = u.AllocDM(Caller{}, DMReq{Length: 64})
	wantErrno(t, "allocate again", err, 0)
	b, err = u.ExportDM(Caller{}, m.Handle())
	wantErrno(t, "export again", err, 0)
	u.Close(Caller{})
	if !deallocated() {
		t.Error("not given back with the context")
	}
	b.Put()
	if deallocated() {
		t.Error("given back once more behind a descriptor that has outlived the context")
	}
}
