package verbs

// BufAllocator is implemented by PDs of a library that allocates buffers as the provider prefers.
type BufAllocator interface {
	// AllocBuf is ibv_alloc_buf. EINVAL: size is 0. EOPNOTSUPP: the library or the provider has no
	// such call.
	AllocBuf(t Thread, size uint64) (ProviderBuf, error)
}

// ProviderBuf is a buffer of ibv_alloc_buf (struct ibv_buf).
type ProviderBuf interface {
	// Buffer is the memory. Its Unmap is ibv_free_buf.
	Buffer
	// RegMR is ibv_reg_buf_mr. EINVAL: another PD than the buffer's, or a range beyond it.
	RegMR(t Thread, pd PD, addr, length uint64, access AccessFlags) (MR, error)
	// ExportFD is ibv_export_buf_dmabuf_fd. ENODATA: the memory is no DMA-BUF.
	ExportFD(t Thread) (fd int, err error)
}
