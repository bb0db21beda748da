package gpu

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/mem"
)

// GPU is one GPU of a host.
type GPU struct {
	p      *Params
	m      *mem.Memory
	bank   *mem.Bank
	mapped uint64 // bytes of BAR 1 in use
}

// New makes a GPU of a host.
func New(m *mem.Memory, p *Params) (*GPU, error) {
	b, err := m.AddBank(p.Memory)
	if err != nil {
		return nil, err
	}
	return &GPU{p: p, m: m, bank: b}, nil
}

// Start is the address of the first byte on the bus.
func (g *GPU) Start() mem.PA {
	pa, _ := g.bank.Range()
	return pa
}

// Mapped is how many bytes of BAR 1 are in use.
func (g *GPU) Mapped() uint64 { return g.mapped }

// Used is how many bytes of the memory are allocated.
func (g *GPU) Used() uint64 { return g.bank.Used() }

// Allocation is memory of a GPU. It lives until the last reference is gone: that of Alloc, and
// those of exports.
type Allocation struct {
	g       *GPU
	pa      mem.PA
	n       uint64
	refs    int
	pins    int
	exports []*Export
}

// Alloc takes n bytes in whole pages, zeroed. ENOMEM; EINVAL for n of 0.
func (g *GPU) Alloc(n uint64) (*Allocation, error) {
	size := (n + g.p.Page - 1) &^ (g.p.Page - 1)
	if n == 0 || size < n {
		return nil, fmt.Errorf("gpu: allocate %d B: %w", n, syscall.EINVAL)
	}
	pa, err := g.bank.Alloc(size, g.p.Page)
	if err != nil {
		return nil, err
	}
	return &Allocation{g: g, pa: pa, n: size, refs: 1}, nil
}

// Len is the length in bytes, in whole pages.
func (a *Allocation) Len() uint64 { return a.n }

// Free drops the reference of Alloc.
func (a *Allocation) Free() { a.put() }

func (a *Allocation) put() {
	if a.refs--; a.refs == 0 {
		a.g.m.Free(a.pa, a.n)
	}
}

// Read copies from byte off on, Write to it. The range is the caller's to check.
func (a *Allocation) Read(off uint64, p []byte) bool { return a.g.m.Read(a.pa+mem.PA(off), p) }

// Write copies to byte off on.
func (a *Allocation) Write(off uint64, p []byte) bool { return a.g.m.Write(a.pa+mem.PA(off), p) }

// Move puts the allocation at another place of the memory: who is attached is told first. EBUSY: it
// is pinned; ENOMEM.
func (a *Allocation) Move() error {
	if a.pins > 0 {
		return fmt.Errorf("gpu: %d have pinned the memory: %w", a.pins, syscall.EBUSY)
	}
	to, err := a.g.bank.Alloc(a.n, a.g.p.Page)
	if err != nil {
		return err
	}
	for _, x := range a.exports {
		x.Notify()
	}
	b := make([]byte, min(a.n, 1<<20))
	for off := uint64(0); off < a.n; off += uint64(len(b)) {
		part := b[:min(uint64(len(b)), a.n-off)]
		a.g.m.Read(a.pa+mem.PA(off), part)
		a.g.m.Write(to+mem.PA(off), part)
	}
	a.g.m.Free(a.pa, a.n)
	a.pa = to
	return nil
}

// Export is a part of an allocation as others get it: what stands behind a DMA-BUF.
type Export struct {
	a      *Allocation
	off, n uint64
	maps   int
	// Notify is called before the memory moves.
	Notify func()
}

// Export makes n bytes from byte off on available to others. EINVAL: they are not whole pages of
// the host or not in the allocation; EOPNOTSUPP: the driver does not export.
func (a *Allocation) Export(off, n uint64) (*Export, error) {
	if mask := a.g.m.PageSize() - 1; n == 0 || off&mask != 0 || n&mask != 0 || off > a.n || n > a.n-off {
		return nil, fmt.Errorf("gpu: export [%d, +%d) of an allocation of %d B: whole pages of the host are wanted: %w", off, n, a.n, syscall.EINVAL)
	}
	x := &Export{a: a, off: off, n: n, Notify: func() {}}
	a.refs++
	a.exports = append(a.exports, x)
	return x, nil
}

// Name is the exporter's, as the kernel shows it.
func (x *Export) Name() string { return "nvidia" }

// Size is how many bytes there are.
func (x *Export) Size() uint64 { return x.n }

// bar is how much of BAR 1 a mapping takes.
func (x *Export) bar() uint64 {
	page := x.a.g.p.Page
	return (x.off+x.n+page-1)&^(page-1) - x.off&^(page-1)
}

// Map makes the memory reachable for devices, and gives the address of its first byte; it is
// contiguous. ENOMEM: BAR 1 has no room.
func (x *Export) Map() (mem.PA, error) {
	g := x.a.g
	if x.maps == 0 {
		if n := x.bar(); n > g.p.BAR1-g.mapped {
			return 0, fmt.Errorf("gpu: %d B of BAR 1, of whose %d B %d are in use: register less at a time, or take a part whose BAR 1 has all of its memory: %w",
				n, g.p.BAR1, g.mapped, syscall.ENOMEM)
		}
		g.mapped += x.bar()
	}
	x.maps++
	return x.a.pa + mem.PA(x.off), nil
}

// Unmap gives back what Map took.
func (x *Export) Unmap() {
	if x.maps--; x.maps == 0 {
		x.a.g.mapped -= x.bar()
	}
}

// Pin keeps the memory from being moved, until Unpin.
func (x *Export) Pin() { x.a.pins++ }

// Unpin ends a Pin.
func (x *Export) Unpin() { x.a.pins-- }

// Release is called when nobody has the export any more.
func (x *Export) Release() {
	for i, y := range x.a.exports {
		if y == x {
			x.a.exports = append(x.a.exports[:i], x.a.exports[i+1:]...)
			break
		}
	}
	x.a.put()
}
