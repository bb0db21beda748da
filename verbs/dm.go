package verbs

// DMAttr is ibv_alloc_dm_attr; Length is in bytes.
type DMAttr struct {
	Length   uint64
	LogAlign uint32 // log2 of the alignment of its first byte
	CompMask uint32
}

// DM is memory on the device.
type DM interface {
	// CopyTo and CopyFrom are ibv_memcpy_to_dm and ibv_memcpy_from_dm.
	CopyTo(t Thread, off uint64, p []byte) error
	CopyFrom(t Thread, p []byte, off uint64) error
	// Free is ibv_free_dm: EBUSY while a region is on it.
	Free(t Thread) error
}

// DMExporter is implemented by device memory that can be exported.
type DMExporter interface {
	// ExportDmabuf is ibv_dm_export_dmabuf_fd: a descriptor of a DMA-BUF that holds the pages of
	// the device in which the memory lies. CloseFD of the process closes it. After Free it is
	// empty: regions lose their pages, and no new one can be registered (ENODEV). EOPNOTSUPP: the
	// library, provider or kernel has no such call.
	ExportDmabuf(t Thread) (fd int, err error)
}
