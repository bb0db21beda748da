package uapi

// Layouts beside the RDMA ABI, of what the kernel says of a process and is told.

// PagemapEntrySize is the size of an entry of /proc/PID/pagemap, of which each page has one
// (Documentation/admin-guide/mm/pagemap.rst).
const PagemapEntrySize = 8

// PagemapEntry is entry i of a part of /proc/PID/pagemap.
func PagemapEntry(b []byte, i int) uint64 { return le.Uint64(b[i*PagemapEntrySize:]) }

// CloneFlagsSize is how much of struct clone_args (linux/sched.h) CloneFlags reads: its first
// field.
const CloneFlagsSize = 8

// CloneFlags are the flags of struct clone_args, the argument of clone3.
func CloneFlags(b []byte) uint64 { return le.Uint64(b) }
