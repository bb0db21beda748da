package kernel

import (
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// ram gives the setup's process a share of the host's memory for its regions of on-demand paging,
// in bytes.
func (s *setup) ram(share uint64) *RAM {
	s.proc.RAM = &RAM{Pages: share * regionShare / mem.PageSize}
	return s.proc.RAM
}

// Regions take memory of the simulator until they are deregistered, whether they are used or not.
func TestRegionsHaveALimit(t *testing.T) {
	for _, c := range []struct {
		name         string
		addr, length uint64
		most         int // that fit
	}{
		{"explicit", 1 << 30, 256 << 20, 7}, // 64 Ki pages, 8 bytes each, and one page of them is there
		{"implicit", 0, wholeSpace, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := pagingSetup(t, testParams())
			u := s.open()
			pd, r := s.pd(u), s.ram(4<<20-1<<14)
			full := 0
			r.OnRegionsFull = func() { full++ }
			reg := func() (Handle, error) {
				h, _, _, err := u.RegMR(Caller{}, pd, c.addr, c.length, c.addr, verbs.AccessOnDemand)
				return h, err
			}
			var all []Handle
			for range 2 {
				for {
					h, err := reg()
					if err != nil {
						wantErrno(t, "one too many", err, syscall.ENOMEM)
						break
					}
					all = append(all, h)
				}
				if len(all) != c.most || full == 0 {
					t.Errorf("%d regions, want %d; told of it %d times", len(all), c.most, full)
				}
				for _, h := range all {
					if err := u.DeregMR(Caller{}, h); err != nil {
						t.Fatal(err)
					}
				}
				all = all[:0]
				if r.regions != 0 {
					t.Errorf("%d bytes are left", r.regions)
				}
			}
		})
	}
}

// Pages of a region count while the device has them. One too many fails its fault.
func TestPagesOfRegionsHaveALimit(t *testing.T) {
	s := pagingSetup(t, testParams())
	u := s.open()
	const pages = 4 * leafPages
	r := s.ram(pages*bytesOfPage + 2*leafPages*bytesOfPage)
	va := s.lazy(pages)
	_, key := s.paged(u, s.pd(u), va, pages*page, verbs.AccessLocalWrite)
	fault := func(n uint32, leaf uint64, failed bool) {
		t.Helper()
		s.raiseFault(n, prm.PageFaultSubRDMA, rdmaFault(key, va+leaf*leafPages*page, page, n))
		s.run()
		if got := prm.PageFaultResumeIn(s.f.resumed[n]).Error(); got != failed {
			t.Errorf("fault %d: failed %v, want %v; %d bytes", n, got, failed, r.regions)
		}
	}
	fault(0, 0, false)
	fault(1, 1, false)
	fault(2, 2, false) // found full by the next
	fault(3, 3, true)
	if err := s.proc.Space.Unmap(mem.VA(va), 3*leafPages*page); err != nil {
		t.Fatal(err)
	}
	if r.regions != pages*bytesOfPage {
		t.Errorf("%d bytes when the pages are gone", r.regions)
	}
	fault(4, 3, false)
}
