package verbs

import "fmt"

// MemoryKind says where a program's memory lies.
type MemoryKind uint8

// Kinds of memory.
const (
	// MemoryHost is memory of the host in its own pages.
	MemoryHost MemoryKind = iota
	// MemoryHuge is memory of the host in huge pages.
	MemoryHuge
	// MemoryGPU is memory of a GPU (cuMemAlloc), which the CPU does not touch.
	MemoryGPU
	// MemoryGPUHost is memory of an integrated GPU, which shares the host's memory
	// (cuMemAllocHost).
	MemoryGPUHost
	// MemoryUdmabuf is shared memory of the host that /dev/udmabuf exports: a stand-in for a GPU's.
	MemoryUdmabuf
)

var memoryKinds = [...]string{"host", "huge", "gpu", "gpu-host", "udmabuf"}

// String returns the name of the kind in files and on command lines, such as "gpu".
func (k MemoryKind) String() string { return nameOf(memoryKinds[:], k, "MemoryKind") }

// MemoryOptions say which memory of a kind is meant.
type MemoryOptions struct {
	// GPU is the number of the GPU; BusID, when not empty, its PCI address (DDDD:BB:DD.F) instead.
	GPU   int
	BusID string
	// PageSize of huge pages in bytes; 0: 2 MiB.
	PageSize uint64
}

// MemoryInfo describes opened memory.
type MemoryInfo struct {
	Kind MemoryKind
	// Name and BusID are those of the GPU; GPUs are the addresses of all that the machine has, by
	// number.
	Name, BusID string
	GPUs        []string
	// Driver is the version of the GPU's driver as cuDriverGetVersion has it (12080 is 12.8); 0:
	// none.
	Driver int
	// Integrated: the GPU shares the host's memory.
	Integrated bool
	// Touchable: the CPU may read and write by address what Alloc gives. Buffer's ReadAt and
	// WriteAt work at any rate.
	Touchable bool
	// Dmabuf: Export works.
	Dmabuf bool
	// Page is what sizes and addresses of allocations are multiples of, in bytes; ExportPage
	// likewise of exports.
	Page, ExportPage uint64
}

// Memory allocates memory of one kind. Errors are a *MemoryError where a driver other than the
// kernel refused.
type Memory interface {
	// Info tells of which kind the memory is, and how large its pages are.
	Info() MemoryInfo
	// Alloc gives length bytes, zeroed, at a multiple of align (0: of Info().Page). ReadAt and
	// WriteAt of the buffer copy out and in, in the thread's time; Unmap frees. ENOMEM.
	Alloc(t Thread, length, align uint64) (Buffer, error)
	// Copy copies n bytes between two buffers, of which each is of this memory or of the host's.
	Copy(t Thread, dst Buffer, dstOff uint64, src Buffer, srcOff, n uint64) error
	// Export makes a DMA-BUF of n bytes from byte off of a buffer on, and of what lies before and
	// behind them in its page. EOPNOTSUPP: memory of this kind cannot be exported.
	Export(t Thread, b Buffer, off, n uint64) (Dmabuf, error)
	// Close gives up what was opened. Buffers keep their memory until they are freed.
	Close(t Thread) error
}

// Dmabuf is exported memory. CloseFD of the process closes the descriptor; regions keep the memory
// alive.
type Dmabuf struct {
	FD int
	// Offset is where the exported range begins in the DMA-BUF, and Size is its length.
	Offset, Size uint64
}

// MemoryOpener is implemented by processes that have other kinds of memory than Map returns.
type MemoryOpener interface {
	// OpenMemory initialises memory of a kind. ENODEV: there is no such GPU, driver or device file.
	// EOPNOTSUPP: the target knows no such memory.
	OpenMemory(t Thread, kind MemoryKind, o MemoryOptions) (Memory, error)
	// DmabufInfo returns what the kernel says of a DMA-BUF (/proc/self/fdinfo). EBADF: the
	// descriptor is not open; EINVAL: it is of another file.
	DmabufInfo(t Thread, fd int) (DmabufInfo, error)
	// CloseFD is close(2). EBADF: the descriptor is not open.
	CloseFD(t Thread, fd int) error
}

// DmabufInfo is what the kernel says of a DMA-BUF.
type DmabufInfo struct {
	Size     uint64
	Count    int // of references, those of descriptors and of devices that are attached
	Exporter string
}

// Migrator is implemented by buffers whose exporter can move them while devices are attached.
// Devices with dynamic attachments are told before (move_notify) and look up the pages again at
// their next access. EBUSY: a device has pinned them.
type Migrator interface {
	Migrate(t Thread) error
}

// MemoryError is a refusal by a driver other than the kernel, such as that of a GPU.
type MemoryError struct {
	Call string // that failed, such as cuMemAlloc
	Code int    // its result, such as 2 (CUDA_ERROR_OUT_OF_MEMORY)
	Text string // what it means and what to do
	Err  error  // the errno nearest to it
}

// Error returns the call, its result and what the result means.
func (e *MemoryError) Error() string {
	s := fmt.Sprintf("%s: error %d", e.Call, e.Code)
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// Unwrap returns the nearest errno.
func (e *MemoryError) Unwrap() error { return e.Err }
