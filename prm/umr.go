package prm

// Flags of a UMR control segment. 0x20 lets the request pass only when the key is
// free, 0x40 only when it is not (the kernel's and rdma-core's names for them
// contradict each other; this is what both do).
const (
	UMRInline            = 0x80
	UMRCheckNotFree      = 0x40
	UMRCheckFree         = 0x20
	UMRTranslationOffset = 0x10
	UMRCheckQPN          = 0x08
)

// Bits of UMRCtrlSegment.MKeyMask (device.h, MLX5_MKEY_MASK_*): which fields of the
// mkey context to take.
const (
	MKeyMaskLen                  = 1 << 0
	MKeyMaskPageSize             = 1 << 1
	MKeyMaskStartAddr            = 1 << 6
	MKeyMaskPD                   = 1 << 7
	MKeyMaskEnRInval             = 1 << 8
	MKeyMaskBSFEn                = 1 << 12
	MKeyMaskKey                  = 1 << 13
	MKeyMaskQPN                  = 1 << 14
	MKeyMaskLR                   = 1 << 17
	MKeyMaskLW                   = 1 << 18
	MKeyMaskRR                   = 1 << 19
	MKeyMaskRW                   = 1 << 20
	MKeyMaskA                    = 1 << 21
	MKeyMaskSmallFence           = 1 << 23
	MKeyMaskRelaxedOrderingWrite = 1 << 25
	MKeyMaskFree                 = 1 << 29
	MKeyMaskPageSize5            = 1 << 42
	MKeyMaskRelaxedOrderingRead  = 1 << 47
)

// XLTOffset is the first unit to write, with UMRTranslationOffset; 48 bits.
func (u UMRCtrlSegment) XLTOffset() uint64 { return uint64(be32(u, 16))<<16 | uint64(be16(u, 6)) }

// SetXLTOffset sets the first unit to write.
func (u UMRCtrlSegment) SetXLTOffset(v uint64) {
	putBE16(u, 6, uint16(v))
	putBE32(u, 16, uint32(v>>16))
}

// UMRRepeat is UMRRepeatBlock.Op: what follows is a round of pieces, and no list (libmlx5 qp.c,
// umr_strided_seg_create). It stands where an entry names a key.
const UMRRepeat = 0x400

// MMODMA is CtrlSegment.OpMod of an MMO WQE that copies (MLX5_OPC_MOD_MMO_DMA), and MMOMaxBytes
// what one copies at most, of whose data segments the byte counts are 0 (mlx5.h,
// MLX5_DMA_MMO_MAX_SIZE).
const (
	MMODMA      = 1
	MMOMaxBytes = 1 << 31
)
