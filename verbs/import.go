package verbs

// Importer is implemented by processes that can have an open device twice ("import").
// Descriptors are those of the process.
type Importer interface {
	// DupCommandFD duplicates the descriptor of a context's device file.
	DupCommandFD(t Thread, c Context) (fd int, err error)
	// OpenNull opens the null device: a descriptor of no RDMA device.
	OpenNull(t Thread) (fd int, err error)
	// CloseFD closes a descriptor of the above that no import took.
	CloseFD(t Thread, fd int) error
	// ImportDevice is ibv_import_device: the descriptor is the new context's. The device's
	// objects end when all its contexts are closed. EINVAL: no descriptor of a character device;
	// ENODEV: of another one.
	ImportDevice(t Thread, fd int) (Context, error)
}

// DescriptorTaker is implemented by processes that can have what others of their host have open.
type DescriptorTaker interface {
	// PID names the process on its host, and allows the others to take its descriptors.
	PID() int
	// TakeFD is pidfd_getfd: a descriptor of the file that another process has open as fd. ESRCH: there is no such process;
	// EBADF; EPERM: the process may not look into the other.
	TakeFD(t Thread, pid, fd int) (int, error)
}
