// Package mem is the memory of a simulated host: physical memory in chunks, and
// the page tables of processes. It has no opinion on time or on RDMA.
package mem

// PA is a physical (bus) address of a host.
type PA uint64

// VA is a virtual address of a process.
type VA uint64

// PageShift and PageSize are those of a 4 KiB host. A 64 KiB host is a Config.
const (
	PageShift = 12
	PageSize  = 1 << PageShift
)

// Memory is the physical memory of one host.
type Memory struct{ impl }

type impl struct{}

// New makes a host memory of size bytes. Nothing is allocated until it is used.
func New(size uint64) *Memory { panic("skeleton") }

// Alloc takes n physically contiguous bytes, aligned to align (a power of two), zeroed.
func (m *Memory) Alloc(n, align uint64) (PA, error) { panic("skeleton") }

// Free gives back what Alloc returned.
func (m *Memory) Free(pa PA, n uint64) { panic("skeleton") }

// Window is the bytes at pa, n long, as a slice into the memory itself, or nil
// when the range is not inside one chunk. A window stays valid while its pages are
// allocated.
func (m *Memory) Window(pa PA, n int) []byte { panic("skeleton") }

// Read and Write copy bytes. They report false when the range was never allocated.
func (m *Memory) Read(pa PA, p []byte) bool  { panic("skeleton") }
func (m *Memory) Write(pa PA, p []byte) bool { panic("skeleton") }

// Watch calls h(arg) each time a DMA write (DMAStore) touches [pa, pa+n), until
// Unwatch of the id. A poller of a CQ sleeps on it.
func (m *Memory) Watch(pa PA, n int, h func(arg uint64), arg uint64) (id int) { panic("skeleton") }

// Unwatch ends a Watch.
func (m *Memory) Unwatch(id int) { panic("skeleton") }

// DMAStore is Write by a device: it also wakes watchers.
func (m *Memory) DMAStore(pa PA, p []byte) bool { panic("skeleton") }

// Space is the address space of a process: its mappings and page tables.
type Space struct{ impl }

// NewSpace makes an empty address space over m.
func NewSpace(m *Memory) *Space { panic("skeleton") }

// Prot are the rights of a mapping.
type Prot uint8

// Rights.
const (
	Read Prot = 1 << iota
	Write
)

// Map maps n bytes of anonymous memory (backed at once, contiguous where it can
// be) and returns its page-aligned address. ENOMEM when memory is used up.
func (s *Space) Map(n uint64, prot Prot) (VA, error) { panic("skeleton") }

// Unmap removes whole pages; EINVAL for what is not mapped. Notices go to the
// interval notifiers first.
func (s *Space) Unmap(va VA, n uint64) error { panic("skeleton") }

// Translate gives the physical address of va and how many bytes from there are
// contiguous (at most to the end of the mapping); ok is false when unmapped.
func (s *Space) Translate(va VA) (pa PA, contiguous uint64, prot Prot, ok bool) { panic("skeleton") }

// Pin holds the pages of [va, va+n) so that Unmap does not free them, and returns
// the physical pages. EFAULT when a page is missing or needs Write and is read-only.
func (s *Space) Pin(va VA, n uint64, prot Prot) ([]PA, error) { panic("skeleton") }

// Unpin releases what Pin returned.
func (s *Space) Unpin(pages []PA) { panic("skeleton") }

// ReadAt and WriteAt copy through the page tables; EFAULT when unmapped or, for
// WriteAt, read-only.
func (s *Space) ReadAt(p []byte, va VA) error  { panic("skeleton") }
func (s *Space) WriteAt(p []byte, va VA) error { panic("skeleton") }

// Notifier is told before the pages of a range change (mmu_interval_notifier).
type Notifier func(start VA, n uint64)

// Notify registers f for [va, va+n); the returned function removes it.
func (s *Space) Notify(va VA, n uint64, f Notifier) (remove func()) { panic("skeleton") }

// Release unmaps everything, as the end of a process does.
func (s *Space) Release() { panic("skeleton") }
