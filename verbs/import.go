package verbs

// Importer is implemented by processes that can open a device's file and import contexts from it
// ("import"). Descriptors belong to the process.
type Importer interface {
	// DupCommandFD duplicates the descriptor of a context's device file.
	DupCommandFD(t Thread, c Context) (fd int, err error)
	// OpenNull opens the null device: a descriptor of no RDMA device.
	OpenNull(t Thread) (fd int, err error)
	// CloseFD closes one of these descriptors, unless an import has taken it.
	CloseFD(t Thread, fd int) error
	// ImportDevice is ibv_import_device: the descriptor is the new context's. The device's
	// objects end when all its contexts are closed. EINVAL: no descriptor of a character device;
	// ENODEV: of another one.
	ImportDevice(t Thread, fd int) (Context, error)
}

// DescriptorTaker is implemented by processes that can take descriptors from other processes of
// their host.
type DescriptorTaker interface {
	// PID names the process on its host, and allows the others to take its descriptors.
	PID() int
	// TakeFD is pidfd_getfd: a descriptor of the file that another process has open as fd. ESRCH:
	// there is no such process; EBADF: it has no such descriptor; EPERM: the caller may not trace
	// it.
	TakeFD(t Thread, pid, fd int) (int, error)
}
