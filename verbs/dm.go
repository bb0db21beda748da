package verbs

// DMAttr is ibv_alloc_dm_attr.
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
