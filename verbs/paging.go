package verbs

// What programs do to their memory beside mapping it, and what they ask of it. A target implements
// what it can do: the interfaces here are found by type assertions.

// Prot are the access rights of a mapping (PROT_*); 0 is PROT_NONE.
type Prot uint32

// Rights.
const (
	ProtRead  Prot = 1
	ProtWrite Prot = 2
)

// Advice is an advice of madvise (MADV_*).
type Advice uint32

// Advices.
const (
	AdviceDontNeed      Advice = 4
	AdvicePageOut       Advice = 21
	AdvicePopulateRead  Advice = 22
	AdvicePopulateWrite Advice = 23
)

// PagedBuffer is implemented by buffers whose pages a program can change one by one. Offsets count
// from the buffer's first byte. Errors are the errno of the system call.
type PagedBuffer interface {
	Buffer
	// Protect is mprotect. ENOMEM: a part is not mapped; what lies before it has changed.
	Protect(t Thread, off, n uint64, prot Prot) error
	// Advise is madvise. ENOMEM: a part is not mapped; the rest is done. EINVAL: an advice that the
	// mapping cannot take.
	Advise(t Thread, off, n uint64, advice Advice) error
	// Resident is mincore: for each page whether it is in memory.
	Resident(t Thread, off, n uint64) ([]bool, error)
	// UnmapPart is munmap of a part.
	UnmapPart(t Thread, off, n uint64) error
	// Move is mremap of the whole buffer to the address to, where it replaces what is mapped; 0
	// leaves the address to the kernel. EFAULT: the buffer is no longer one mapping (kernels from
	// 6.17 on move it all the same).
	Move(t Thread, to uint64) error
}

// MemObject is what several mappings can show: a file, or shared memory.
type MemObject interface {
	// ReadAt is pread.
	ReadAt(t Thread, p []byte, off int64) (int, error)
	// WriteAt is pwrite.
	WriteAt(t Thread, p []byte, off int64) (int, error)
	// Truncate is ftruncate.
	Truncate(t Thread, size uint64) error
	// Close gives the object up. Mappings keep it.
	Close(t Thread) error
}

// MemObjects is implemented by processes that can make objects.
type MemObjects interface {
	// NewShared is memfd_create and ftruncate.
	NewShared(t Thread, size uint64) (MemObject, error)
	// NewFile makes a file without a name, of size bytes.
	NewFile(t Thread, size uint64) (MemObject, error)
}

// PageFaults count the page faults of a process, as getrusage does.
type PageFaults struct{ Minor, Major uint64 }

// PageFaultCounter is implemented by processes that can count their page faults.
type PageFaultCounter interface {
	PageFaults(t Thread) (PageFaults, error)
}

// MemoryUse is how much memory a process has, in bytes: VmRSS, VmLck and VmPin of /proc/PID/status.
type MemoryUse struct{ Resident, Locked, Pinned uint64 }

// MemoryUser is implemented by processes that can tell what memory they use.
type MemoryUser interface {
	MemoryUse(t Thread) (MemoryUse, error)
}
