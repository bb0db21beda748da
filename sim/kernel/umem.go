package kernel

import (
	"fmt"
	"math/bits"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

const pageMask = mem.PageSize - 1

// Process is what the kernel knows of a process.
type Process struct {
	Name  string
	Space *mem.Space
	// MemlockLimit in bytes and whether the process may ignore it (CAP_IPC_LOCK).
	MemlockLimit uint64
	IPCLock      bool
	NetRaw       bool // CAP_NET_RAW
	RawIO        bool // CAP_SYS_RAWIO
	// NetBindService is CAP_NET_BIND_SERVICE, by which ports below 1024 are bound.
	NetBindService bool
	// RAM bounds what processes pin together; nil: what they have is enough of a limit.
	RAM *RAM
	// Gone: the process has ended; faults in its memory are answered no more.
	Gone bool

	// Peer is the module that knows memory of other devices behind the process's addresses; nil:
	// there is none.
	Peer PeerMemory

	owed []owed // for invalidations of its memory
}

// RAM is the memory of a host whose processes are not simulated, which do not hold what they pin.
type RAM struct {
	Pages, Pinned uint64
	OnFull        func() // called when there is no room, may be nil
	// OnRegionsFull is called when there is none for regions of on-demand paging, which pin
	// nothing. It may be nil.
	OnRegionsFull func()

	regions uint64 // bytes that regions of on-demand paging take
}

// take counts n pages as pinned.
func (r *RAM) take(n uint64) error {
	if r == nil {
		return nil
	}
	if n > r.Pages-r.Pinned {
		if r.OnFull != nil {
			r.OnFull()
		}
		return fmt.Errorf("%d pages beside %d pinned, of %d: %w", n, r.Pinned, r.Pages, syscall.ENOMEM)
	}
	r.Pinned += n
	return nil
}

// ram is how many pages of memory the process's host has.
func (p *Process) ram() uint64 {
	if p.RAM != nil {
		return p.RAM.Pages
	}
	return p.Space.Memory().Size() >> mem.PageShift
}

func (r *RAM) give(n uint64) {
	if r != nil {
		r.Pinned -= n
	}
}

// writable are the access bits that need writable memory (ib_access_writable).
const writable = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteAtomic | verbs.AccessMWBind

// umem is pinned memory of a process (struct ib_umem).
type umem struct {
	proc   *Process
	addr   uint64
	length uint64
	iova   uint64 // what page boundaries are counted from
	pages  []mem.PA

	writable bool        // pinned for writing
	peer     *attachment // memory of another device; nil: the process's own
}

// pin is ib_umem_get: EINVAL for a range that wraps, EPERM when the process may
// lock nothing, ENOMEM over its limit, EFAULT for what is not mapped or not
// writable.
func (k *call) pin(p *Process, addr, length uint64, access verbs.AccessFlags) (*umem, error) {
	end := addr + length
	if end < addr || end+pageMask < end {
		return nil, fmt.Errorf("[%#x, +%#x) wraps: %w", addr, length, syscall.EINVAL)
	}
	if p.MemlockLimit == 0 && !p.IPCLock {
		return nil, fmt.Errorf("memlock limit 0: %w", syscall.EPERM)
	}
	first := addr &^ pageMask
	n := ((end+pageMask)&^pageMask - first) / mem.PageSize
	if n == 0 || length == 0 {
		return nil, fmt.Errorf("length 0: %w", syscall.EINVAL)
	}
	if p.Space.Pinned+n > p.MemlockLimit/mem.PageSize && !p.IPCLock && !k.d.breaks(rule.MemlockLimits) {
		return nil, fmt.Errorf("%d pages beside %d pinned, limit %d bytes: %w", n, p.Space.Pinned, p.MemlockLimit, syscall.ENOMEM)
	}
	prot := mem.Read
	if access&writable != 0 && !k.d.breaks(rule.WritableAccessNeedsWritableMemory) {
		prot |= mem.Write
	}
	if err := p.RAM.take(n); err != nil {
		return nil, err
	}
	pages, err := p.Space.Pin(mem.VA(first), n*mem.PageSize, prot)
	if err != nil {
		p.RAM.give(n)
		if p.Peer != nil {
			if m, ok, err := k.pinPeer(p, addr, length); ok {
				return m, err
			}
		}
		return nil, fmt.Errorf("[%#x, +%#x): %w", addr, length, err)
	}
	k.d.res.PinnedPages += int(n)
	k.work += sim.Time(n) * k.d.p.RegMRPage
	return &umem{proc: p, addr: addr, length: length, iova: addr, pages: pages, writable: access&writable != 0}, nil
}

func (k *call) unpin(m *umem) {
	if m == nil {
		return
	}
	if k.d.breaks(rule.DeregistrationUnpins) {
		return
	}
	if m.peer != nil {
		m.peer.detach()
		return
	}
	m.proc.Space.Unpin(m.pages)
	m.proc.RAM.give(uint64(len(m.pages)))
	k.d.res.PinnedPages -= len(m.pages)
}

// dma is the bus address of the first byte.
func (m *umem) dma() uint64 { return uint64(m.pages[0]) + m.addr&pageMask }

// bestPageSize is ib_umem_find_best_pgsz: the largest of the page sizes in bitmap
// such that pages counted from virt are contiguous in memory; 0 if none is.
func (m *umem) bestPageSize(bitmap, virt uint64) uint64 {
	m.iova = virt
	last := m.length - 1 + virt
	if last < virt {
		return 0
	}
	var mask uint64
	if n := bits.Len64(virt ^ last); n < 64 {
		mask = bitmap &^ (1<<max(n, 1) - 1)
	}
	va, off := virt, m.addr&pageMask
	for i, pa := range m.pages {
		if i == 0 || pa != m.pages[i-1]+mem.PageSize {
			mask |= (uint64(pa) + off) ^ va
			if i != 0 {
				mask |= va
			}
		}
		va += mem.PageSize - off
		off = 0
	}
	if mask != 0 {
		bitmap &= 1<<(bits.TrailingZeros64(mask)+1) - 1
	}
	if bitmap == 0 {
		return 0
	}
	return 1 << (bits.Len64(bitmap) - 1)
}

// numBlocks is ib_umem_num_dma_blocks.
func (m *umem) numBlocks(size uint64) int {
	return int(((m.iova+m.length+size-1)&^(size-1) - m.iova&^(size-1)) / size)
}

// block is the bus address of block i of the given size, as bestPageSize laid them.
func (m *umem) block(i int, size uint64) uint64 {
	start := m.iova&^(size-1) + uint64(i)*size
	page := m.iova &^ pageMask
	if start < page {
		start = page
	}
	return uint64(m.pages[(start-page)/mem.PageSize]) &^ (size - 1)
}

// Page sizes that a context's log_page_size can express, as bitmaps.
const (
	ringPageSizes = 1<<44 - 1<<mem.PageShift // 5 bits above 12: QPC, CQC
	mkeyPageSizes = 1<<32 - 1<<mem.PageShift // 5 bits: MKC
)

// ring is where a queue lies, in the terms of its context.
type ring struct {
	pageSize   uint64
	pageOffset uint32 // of the first entry, in 1/64 of pageSize
	blocks     int
}

// ringLayout finds the page size for a ring (__mlx5_umem_find_best_quantized_pgoff).
// pgoff are the address bits that a page offset may express: none for a CQ, whose
// ring begins a page.
func (m *umem) ringLayout(pgoff uint64) (ring, error) { return m.queueLayout(pgoff, 6) }

// queueLayout is ringLayout for a context whose page offset has offBits bits.
func (m *umem) queueLayout(pgoff uint64, offBits uint) (ring, error) {
	const scale = 64
	size := m.bestPageSize(ringPageSizes, m.dma()&pgoff)
	if size == 0 {
		return ring{}, fmt.Errorf("ring at %#x is not aligned: %w", m.addr, syscall.EINVAL)
	}
	off := m.dma() & (size - 1)
	for off&^((1<<offBits-1)*(size/scale)) != 0 {
		size /= 2
		off = m.dma() & (size - 1)
	}
	if size&ringPageSizes == 0 {
		return ring{}, fmt.Errorf("ring at %#x is not aligned: %w", m.addr, syscall.EINVAL)
	}
	return ring{pageSize: size, pageOffset: uint32(off / (size / scale)), blocks: m.numBlocks(size)}, nil
}

// logPageSize is the value of the context's field.
func (r ring) logPageSize() uint32 { return uint32(bits.TrailingZeros64(r.pageSize)) - prm.PageShift }

func (m *umem) fillPAS(l prm.PAS, size uint64) {
	for i := range m.numBlocks(size) {
		l.Set(i, m.block(i, size))
	}
}
