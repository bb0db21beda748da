package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/mem"
)

// Exporter is the driver behind a DMA-BUF (struct dma_buf_ops).
type Exporter interface {
	// Name returns the name of the driver (exp_name).
	Name() string
	// Size returns the length in bytes.
	Size() uint64
	// Map makes the memory reachable for devices; Unmap undoes it.
	Map() (Pages, error)
	Unmap()
	// Pin keeps the memory where it is until Unpin. EOPNOTSUPP: it can be taken away at any time.
	Pin() error
	Unpin()
	// Release is called when the last reference is gone.
	Release()
}

// Pages says where exported memory lies: in one piece from Start on, or in the listed host pages.
type Pages struct {
	Start mem.PA
	List  []mem.PA // nil: one piece
}

// at is where host page i lies.
func (p *Pages) at(i uint64) mem.PA {
	if p.List == nil {
		return p.Start + mem.PA(i)*mem.PageSize
	}
	if i >= uint64(len(p.List)) { // only where the end is not checked, to see whether that is noticed
		return 0
	}
	return p.List[i]
}

// DMABuf is memory that a driver exports (struct dma_buf). It has a reference for each descriptor
// and each attachment.
type DMABuf struct {
	exp         Exporter
	refs        int
	attachments []*attachment
}

// NewDMABuf makes a DMA-BUF with one reference.
func NewDMABuf(exp Exporter) *DMABuf { return &DMABuf{exp: exp, refs: 1} }

// Get adds a reference.
func (b *DMABuf) Get() { b.refs++ }

// Put drops a reference; the last one releases the memory.
func (b *DMABuf) Put() {
	if b.refs--; b.refs == 0 {
		b.exp.Release()
	}
}

// Info returns what the kernel shows of a DMA-BUF: size in bytes, references, the exporter's name.
func (b *DMABuf) Info() (size uint64, refs int, name string) {
	return b.exp.Size(), b.refs, b.exp.Name()
}

// MoveNotify tells all dynamic attachments that the memory moves (dma_buf_move_notify): they give
// up its addresses now, and look them up again when they need them.
func (b *DMABuf) MoveNotify() {
	for _, a := range slices.Clone(b.attachments) {
		if a.notify != nil {
			a.notify()
		}
	}
}

// attachment is a device at a DMA-BUF (struct dma_buf_attachment with its ib_umem_dmabuf).
type attachment struct {
	buf    *DMABuf
	notify func() // nil: it has pinned the memory
	mapped bool
	pages  Pages
	leaks  bool // it keeps its reference, to see whether that is noticed
}

// attach is dma_buf_dynamic_attach. With pin the memory stays where it is, and is mapped at once.
func (b *DMABuf) attach(notify func(), pin bool) (*attachment, error) {
	a := &attachment{buf: b, notify: notify}
	if pin {
		a.notify = nil
		if err := a.mapPages(); err != nil {
			return nil, err
		}
		if err := b.exp.Pin(); err != nil {
			a.unmapPages()
			return nil, fmt.Errorf("pin a DMA-BUF of %s: %w", b.exp.Name(), err)
		}
	}
	b.Get()
	b.attachments = append(b.attachments, a)
	return a, nil
}

// mapPages is ib_umem_dmabuf_map_pages.
func (a *attachment) mapPages() (err error) {
	if a.mapped {
		return nil
	}
	if a.pages, err = a.buf.exp.Map(); err != nil {
		return fmt.Errorf("map a DMA-BUF of %s: %w", a.buf.exp.Name(), err)
	}
	a.mapped = true
	return nil
}

// unmapPages is ib_umem_dmabuf_unmap_pages.
func (a *attachment) unmapPages() {
	if a.mapped {
		a.mapped = false
		a.buf.exp.Unmap()
	}
}

// detach is ib_umem_dmabuf_release.
func (a *attachment) detach() {
	a.unmapPages()
	if a.notify == nil {
		a.buf.exp.Unpin()
	}
	a.buf.attachments = slices.DeleteFunc(a.buf.attachments, func(x *attachment) bool { return x == a })
	if !a.leaks {
		a.buf.Put()
	}
}

// PeerMemory is what a module such as nvidia-peermem does: it returns the export behind an address
// of a process and the offset of the address in it. ok is false if the module does not know the
// memory.
type PeerMemory func(addr, n uint64) (exp Exporter, off uint64, ok bool)

// pinPeer asks the module for memory that no page of the process is behind (ib_peer_umem_get).
func (k *call) pinPeer(p *Process, addr, length uint64) (*umem, bool, error) {
	first := addr &^ pageMask
	n := (addr+length+pageMask)&^pageMask - first
	exp, off, ok := p.Peer(first, n)
	if !ok {
		return nil, false, nil
	}
	b := NewDMABuf(exp)
	a, err := b.attach(nil, true)
	b.Put() // the attachment has its own
	if err != nil {
		return nil, true, err
	}
	pages := make([]mem.PA, n/mem.PageSize)
	for i := range pages {
		pages[i] = a.pages.at(off/mem.PageSize + uint64(i))
	}
	k.work += k.d.p.RegMRPage
	return &umem{proc: p, addr: addr, length: length, iova: addr, pages: pages, writable: true, peer: a}, true, nil
}

// errNoDmabuf is the answer of a kernel or driver without regions of DMA-BUFs.
var errNoDmabuf = fmt.Errorf("the driver has no regions of DMA-BUFs: %w", syscall.EOPNOTSUPP)
