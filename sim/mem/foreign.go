package mem

import "syscall"

// Foreign is memory that is not simulated, of a process or of a virtual machine. ReadAt and WriteAt
// move all of p or return an error, after which p, or the memory, may hold a part. They are called
// by the thread that runs the engine.
type Foreign interface {
	ReadAt(va VA, p []byte) error
	WriteAt(va VA, p []byte) error
}

// Prober is a Foreign that can tell whether [va, va+n) is mapped with the rights of
// prot; EFAULT when not. Of a Foreign that is none, Pin reads a byte of every page,
// and takes it that what can be read can be written.
type Prober interface {
	Probe(va VA, n uint64, prot Prot) error
}

// Physical addresses of foreign pages: a bit that no memory reaches, the slot of the space, and the
// virtual address itself. So pages that are neighbours in the process are neighbours on the bus,
// equally aligned, and translations of any page size fit. A translation cannot be stale in its
// bytes either: it leads to what the process has at the address at that time.
const (
	foreignPA   PA = 1 << 62
	foreignBits    = 47 // of a user address on x86-64 and arm64 without extensions
	foreignMask    = 1<<foreignBits - 1
	maxForeign     = 1 << (62 - foreignBits)
)

// foreign is the state of a foreign space.
type foreign struct {
	f      Foreign
	slot   int
	chunks map[uint64]*foreignChunk
	last   *foreignChunk // of the last access
	lastNo uint64
	pins   uint64
	gone   bool       // released
	tables PageTables // f, when it has them
	obs    []*observer
	// lastObs is the observer of the last access.
	lastObs *observer
}

// foreignChunk counts the pins of the pages of 2 MiB.
type foreignChunk struct {
	refs []int32
	live int // pages with pins
}

// NewForeignSpace makes the address space of a process that is not simulated. Pin
// gives it physical addresses, through which a device reaches the process's bytes as
// they are at that time; what the process has unmapped fails, as a DMA abort. Nothing
// can be mapped in it and it has no windows. ENOMEM when 32768 such spaces are in use.
func NewForeignSpace(m *Memory, f Foreign) (*Space, error) {
	x := &foreign{f: f, slot: -1, chunks: map[uint64]*foreignChunk{}}
	for i, o := range m.foreign {
		if o == nil {
			x.slot = i
			m.foreign[i] = x
			break
		}
	}
	if x.slot < 0 {
		if len(m.foreign) == maxForeign {
			return nil, errorf(syscall.ENOMEM, "%d foreign address spaces", maxForeign)
		}
		x.slot = len(m.foreign)
		m.foreign = append(m.foreign, x)
	}
	x.tables, _ = f.(PageTables)
	return &Space{m: m, x: x, next: lastVA}, nil
}

// Foreign reports whether the space is that of a process outside.
func (s *Space) Foreign() bool { return s.x != nil }

// pa is the physical address of va.
func (x *foreign) pa(va VA) PA { return foreignPA | PA(x.slot)<<foreignBits | PA(va) }

// foreignAt finds the space and the address behind a physical address: nil when
// [pa, pa+n) is not foreign, or a page of it is neither pinned nor watched.
func (m *Memory) foreignAt(pa PA, n int) (*foreign, VA) {
	slot := uint64(pa-foreignPA) >> foreignBits
	if pa < foreignPA || slot >= uint64(len(m.foreign)) || m.foreign[slot] == nil {
		return nil, 0
	}
	x, va := m.foreign[slot], uint64(pa&foreignMask)
	if n <= 0 || uint64(n) > 1<<foreignBits-va {
		return nil, 0
	}
	for pg, last := va>>m.shift, (va+uint64(n)-1)>>m.shift; pg <= last; pg++ {
		if c := x.chunk(pg << m.shift >> chunkShift); c == nil || c.refs[m.index(pg)] == 0 {
			if at := VA(pg << m.shift); !x.watched(at, at+1<<m.shift) {
				return nil, 0
			}
		}
	}
	return x, VA(va)
}

func (x *foreign) chunk(no uint64) *foreignChunk {
	if x.last == nil || x.lastNo != no {
		x.last, x.lastNo = x.chunks[no], no
	}
	return x.last
}

// readForeign is Read where no memory of ours is.
func (m *Memory) readForeign(pa PA, p []byte) bool {
	if pa < foreignPA {
		return m.ranges.move(pa, p, Read)
	}
	x, va := m.foreignAt(pa, len(p))
	return x != nil && x.f.ReadAt(va, p) == nil
}

// writeForeign is Write where no memory of ours is.
func (m *Memory) writeForeign(pa PA, p []byte) bool {
	if pa < foreignPA {
		return m.ranges.move(pa, p, Write)
	}
	x, va := m.foreignAt(pa, len(p))
	return x != nil && x.f.WriteAt(va, p) == nil
}

// pin is Pin of a foreign space. The process is asked first; it may unmap later.
func (x *foreign) pin(m *Memory, va VA, n uint64, prot Prot) ([]PA, error) {
	end := uint64(va) + n
	if end > 1<<foreignBits {
		return nil, errorf(syscall.EFAULT, "pin %d B at %#x: above the addresses of programs", n, uint64(va))
	}
	if x.gone {
		return nil, errorf(syscall.EFAULT, "pin %d B at %#x: the process has ended", n, uint64(va))
	}
	first, last := uint64(va)>>m.shift, (end-1)>>m.shift
	if err := x.probe(m, first, last, prot); err != nil {
		return nil, err
	}
	pages := make([]PA, 0, last-first+1)
	for pg := first; pg <= last; pg++ {
		no := pg << m.shift >> chunkShift
		c := x.chunk(no)
		if c == nil {
			c = &foreignChunk{refs: make([]int32, chunkSize>>m.shift)}
			x.chunks[no], x.last, x.lastNo = c, c, no
		}
		r := &c.refs[m.index(pg)]
		if *r == 0 {
			c.live++
		}
		*r++
		pages = append(pages, x.pa(VA(pg<<m.shift)))
	}
	x.pins += uint64(len(pages))
	return pages, nil
}

func (x *foreign) probe(m *Memory, first, last uint64, prot Prot) error {
	if p, ok := x.f.(Prober); ok {
		if err := p.Probe(VA(first<<m.shift), (last-first+1)<<m.shift, prot); err != nil {
			return errorf(syscall.EFAULT, "pin pages %#x to %#x: %v", first<<m.shift, last<<m.shift, err)
		}
		return nil
	}
	var b [1]byte
	for pg := first; pg <= last; pg++ {
		if err := x.f.ReadAt(VA(pg<<m.shift), b[:]); err != nil {
			return errorf(syscall.EFAULT, "pin page %#x: %v", pg<<m.shift, err)
		}
	}
	return nil
}

// unpin is Unpin of a foreign space.
func (x *foreign) unpin(m *Memory, pages []PA) {
	for _, pa := range pages {
		pg := uint64(pa&foreignMask) >> m.shift
		no := pg << m.shift >> chunkShift
		c := x.chunk(no)
		if pa < foreignPA || c == nil || c.refs[m.index(pg)] == 0 {
			panic("mem: a foreign page is unpinned that is not pinned")
		}
		r := &c.refs[m.index(pg)]
		if *r--; *r > 0 {
			continue
		}
		if c.live--; c.live == 0 {
			delete(x.chunks, no)
			x.last = nil
		}
	}
	x.pins -= uint64(len(pages))
	x.reclaim(m)
}

// release is Release of a foreign space: pins that are left keep its addresses from
// being used again.
func (x *foreign) release(m *Memory) {
	x.gone = true
	x.reclaim(m)
}

func (x *foreign) reclaim(m *Memory) {
	if x.gone && x.pins == 0 && m.foreign[x.slot] == x {
		m.foreign[x.slot] = nil
	}
}
