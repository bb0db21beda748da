package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/mem"
)

// Regions of on-demand paging pin nothing, so that no limit of pinned memory bounds what is kept of
// them. Of processes that are not simulated all of them together may take a share of the host's
// memory: a real driver takes 16 bytes for each page at once (ib_init_umem_odp).
const regionShare = 16

// What the model keeps of a region, in bytes: about that of the list of pages and of the device's.
const (
	bytesOfPage  = 8       // for each page, in a device that keeps them in a row
	bytesOfPlace = 24      // for each GiB of a region of everything
	bytesOfLeaf  = 5 << 10 // for each piece of the list with pages, and the piece of the device's that belongs to it
	rowOfPages   = 1 << 18 // up to so many pages are kept in a row
)

// roomForRegions says whether another region, or more pages of one, have room. ENOMEM.
func (r *RAM) roomForRegions(n uint64) error {
	if r == nil {
		return nil
	}
	if most := r.Pages * mem.PageSize / regionShare; n <= most && r.regions <= most-n {
		return nil
	}
	if r.OnRegionsFull != nil {
		r.OnRegionsFull()
	}
	return fmt.Errorf("%d B for regions of on-demand paging beside %d: %w", n, r.regions, syscall.ENOMEM)
}

// keeps is what the region takes.
func (o *odpMem) keeps() uint64 {
	switch n := o.pagesOfRegion(); {
	case o.implicit:
		return implicitSlots * bytesOfPlace
	case n <= rowOfPages:
		return n*bytesOfPage + o.pages.leaves*leafPages*bytesOfPage
	default:
		return n/blockPages*bytesOfPage + o.pages.leaves*bytesOfLeaf
	}
}

// note brings what the host knows of the region up to date.
func (o *odpMem) note(now uint64) {
	if r := o.proc.RAM; r != nil {
		r.regions += now - o.noted
		o.noted = now
	}
}
