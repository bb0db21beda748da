//go:build linux && amd64

package procmem

import (
	"slices"

	"github.com/rdmasim/rdmasim/sim/mem"
)

// region is memory of a process that is mapped here too.
type region struct {
	start mem.VA
	b     []byte
}

func (r *region) end() mem.VA { return r.start + mem.VA(len(r.b)) }

// Share says that b is the memory of the process from start on: accesses that lie in it
// are loads and stores, without a call of the kernel. b must stay mapped until Unshare.
func (p *Process) Share(start mem.VA, b []byte) {
	r := region{start, b}
	// What lay there before is gone, or the program could not have mapped this.
	p.regions = slices.DeleteFunc(p.regions, func(x region) bool { return x.start < r.end() && r.start < x.end() })
	// The device is the other side now.
	p.aliases = slices.DeleteFunc(p.aliases, func(x span) bool { return r.start <= x.start && x.end <= r.end() })
	i := p.search(start)
	p.regions = slices.Insert(p.regions, i, r)
	p.last = 0
}

// Unshare ends the Share that began at start.
func (p *Process) Unshare(start mem.VA) {
	p.regions = slices.DeleteFunc(p.regions, func(x region) bool { return x.start == start })
	p.last = 0
}

// search is the number of regions that end at or before addr.
func (p *Process) search(addr mem.VA) int {
	lo, hi := 0, len(p.regions)
	for lo < hi {
		if m := (lo + hi) / 2; p.regions[m].end() <= addr {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// window is [addr, addr+n) when all of it is shared.
func (p *Process) window(addr mem.VA, n int) []byte {
	if len(p.regions) == 0 {
		return nil
	}
	r := &p.regions[p.last]
	if addr < r.start || addr >= r.end() {
		i := p.search(addr)
		if i == len(p.regions) || addr < p.regions[i].start {
			return nil
		}
		p.last, r = i, &p.regions[i]
	}
	if addr+mem.VA(n) > r.end() {
		return nil
	}
	return r.b[addr-r.start:][:n]
}
