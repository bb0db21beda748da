package verbs

// DirectVerbs is what mlx5 direct verbs (libmlx5's mlx5dv.h) add to an open device. A context of
// any device under libibverbs implements it, because a program may call them on any; calls that
// need an mlx5 device return EOPNOTSUPP elsewhere. Direct attributes of CQs and QPs are fields of
// CQAttr and QPInitAttr.
type DirectVerbs interface {
	// DirectSupported is mlx5dv_is_supported.
	DirectSupported() bool
	// QueryDirect is mlx5dv_query_device. It fills what mask asks for and the library and the
	// device know, and CompMask of the answer says what that is; Version and Flags are always
	// filled.
	QueryDirect(t Thread, mask uint64) (DirectAttr, error)
	// ClockInfo is mlx5dv_get_clock_info.
	ClockInfo(t Thread) (ClockInfo, error)
	// ReserveQPN is mlx5dv_reserved_qpn_alloc, ReleaseQPN mlx5dv_reserved_qpn_dealloc.
	ReserveQPN(t Thread) (uint32, error)
	ReleaseQPN(t Thread, qpn uint32) error
	// AllocVAR is mlx5dv_alloc_var.
	AllocVAR(t Thread, flags uint32) (VAR, error)
	// AllocDirectDM is mlx5dv_alloc_dm: memory on the device of one of the kinds DirectDM*.
	AllocDirectDM(t Thread, attr DMAttr, dv DirectDMAttr) (DM, error)
	// CreateMkey is mlx5dv_create_mkey: a key of no memory yet, for at most maxEntries pieces,
	// which a posted request gives it (DirectQPEx.WRMRList and WRMRInterleaved). Flags are
	// MkeyIndirect and the like.
	CreateMkey(t Thread, pd PD, flags uint32, maxEntries uint16) (Mkey, error)
	// RegDirectDmabufMR is mlx5dv_reg_dmabuf_mr: as PD.RegDmabufMR, with flags of direct verbs
	// (RegDmabufDataDirect).
	RegDirectDmabufMR(t Thread, pd PD, offset, length, iova uint64, fd int, access AccessFlags, flags uint32) (MR, error)
}

// Bits of the mask of QueryDirect (MLX5DV_CONTEXT_MASK_*).
const (
	DirectCQECompression   uint64 = 1 << 0
	DirectSWP              uint64 = 1 << 1
	DirectStridingRQ       uint64 = 1 << 2
	DirectTunnelOffloads   uint64 = 1 << 3
	DirectDynBFRegs        uint64 = 1 << 4
	DirectClockInfoUpdate  uint64 = 1 << 5
	DirectFlowActionFlags  uint64 = 1 << 6
	DirectDCODPCaps        uint64 = 1 << 7
	DirectHCACoreClock     uint64 = 1 << 8
	DirectNumLagPorts      uint64 = 1 << 9
	DirectSignature        uint64 = 1 << 10
	DirectDCIStreams       uint64 = 1 << 11
	DirectWRMemcpyLength   uint64 = 1 << 12
	DirectCryptoOffload    uint64 = 1 << 13
	DirectMaxDCRDAtom      uint64 = 1 << 14
	DirectRegC0            uint64 = 1 << 15
	DirectOOORecvWRs       uint64 = 1 << 16
	DirectContextKnownMask uint64 = DirectOOORecvWRs<<1 - 1
)

// DirectAttr is mlx5dv_context: what QueryDirect answers.
type DirectAttr struct {
	Version            uint8
	Flags              uint64 // MLX5DV_CONTEXT_FLAGS_*
	CompMask           uint64
	CQEComp            CQECompCaps
	MaxDynamicBFRegs   uint32
	MaxClockInfoUpdate uint64 // ns
	DCODPCaps          uint32
	NumLagPorts        uint8
	SigBlockProt       uint32 // mlx5dv_sig_caps.block_prot
	DCIStreams         DCIStreams
	MaxWRMemcpyLength  uint64 // bytes
	MaxDCRDAtom        uint64
	MaxDCInitRDAtom    uint64
	OOORecvWRsRC       uint32 // mlx5dv_ooo_recv_wrs_caps.max_rc
}

// ClockInfo is mlx5dv_clock_info, which converts ticks of the device's clock into nanoseconds.
type ClockInfo struct {
	NSec        uint64
	LastCycles  uint64
	Frac        uint64
	Mult, Shift uint32
	Mask        uint64
	// TSToNS is mlx5dv_ts_to_ns: the library's own arithmetic on the fields above.
	TSToNS func(ticks uint64) uint64
}

// VAR is a page of mlx5dv_alloc_var.
type VAR interface {
	// Info returns its page number, its place in the device file and its length in bytes.
	Info() (pageID uint32, mmapOff, mmapLen uint64)
	// Map maps the page into the process, at the address that it returns.
	Map(t Thread) (uint64, error)
	// Unmap is munmap of the page at addr.
	Unmap(t Thread, addr uint64) error
	// Free is mlx5dv_free_var.
	Free(t Thread) error
}

// DirectDMAttr is mlx5dv_alloc_dm_attr.
type DirectDMAttr struct {
	CompMask uint64
	Type     uint32 // DirectDM*
}

// Kinds of device memory (enum mlx5dv_alloc_dm_type).
const (
	DirectDMMemic            uint32 = 0
	DirectDMSteeringSWICM    uint32 = 1
	DirectDMHeaderModifyICM  uint32 = 2
	DirectDMHeaderPatternICM uint32 = 3
	DirectDMEncapSWICM       uint32 = 4
)

// DirectDM is device memory whose operation addresses can be mapped (mlx5dv_dm_map_op_addr): a
// write to such an address, or a read, is an operation of that number on the memory.
type DirectDM interface {
	DM
	// MapOp is mlx5dv_dm_map_op_addr.
	MapOp(t Thread, op uint8) (OpAddr, error)
}

// OpAddr is a mapped operation address; it covers as many bytes as the memory.
type OpAddr interface {
	// Load and Store access 1, 2, 4 or 8 bytes at once, at an offset that is a multiple of their
	// number. EFAULT: there is no such byte.
	Load(t Thread, off uint64, p []byte) error
	Store(t Thread, off uint64, p []byte) error
	// Unmap is munmap.
	Unmap(t Thread) error
}

// Mkey is mlx5dv_mkey.
type Mkey interface {
	// LKey returns the key for SGEs.
	LKey() uint32
	// RKey returns the key for the requests of peers.
	RKey() uint32
	// Destroy is mlx5dv_destroy_mkey.
	Destroy(t Thread) error
}

// Flags of CreateMkey (MLX5DV_MKEY_INIT_ATTR_FLAGS_*).
const (
	MkeyIndirect       uint32 = 1 << 0
	MkeyBlockSignature uint32 = 1 << 1
	MkeyCrypto         uint32 = 1 << 2
	MkeyUpdateTag      uint32 = 1 << 3
	MkeyRemoteInvalid  uint32 = 1 << 4
)

// RegDmabufDataDirect asks for the data-direct path (MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT).
const RegDmabufDataDirect uint32 = 1 << 0

// DirectQPAttr is mlx5dv_qp_init_attr, the direct attributes of a new QP (QPInitAttr.Direct).
type DirectQPAttr struct {
	CompMask     uint64 // DirectQP*
	CreateFlags  uint32 // DirectQPCreate*
	DCType       DCType
	DCTAccessKey uint64     // of a DCT
	DCIStreams   DCIStreams // of a DCI, with DirectQPDCIStreams
	SendOpsFlags uint64     // DirectQPEx*
}

// Bits of DirectQPAttr.CompMask (MLX5DV_QP_INIT_ATTR_MASK_*).
const (
	DirectQPCreateFlags  uint64 = 1 << 0
	DirectQPDC           uint64 = 1 << 1
	DirectQPSendOpsFlags uint64 = 1 << 2
	DirectQPDCIStreams   uint64 = 1 << 3
)

// Creation flags (MLX5DV_QP_CREATE_*).
const (
	DirectQPCreateTunnelOffloads      uint32 = 1 << 0
	DirectQPCreateDisableScatterToCQE uint32 = 1 << 3
	DirectQPCreateAllowScatterToCQE   uint32 = 1 << 4
	DirectQPCreatePacketBasedCredit   uint32 = 1 << 5
	DirectQPCreateSigPipelining       uint32 = 1 << 6
	DirectQPCreateOOODP               uint32 = 1 << 7
)

// DCType says which end of the dynamically connected transport a QP is (mlx5dv_dc_type).
type DCType uint32

// Ends of the dynamically connected transport.
const (
	DCT DCType = 1 // target
	DCI DCType = 2 // initiator
)

// DCIStreams is mlx5dv_dci_streams, base-2 logarithms; in DirectAttr the most that the device has.
type DCIStreams struct{ LogNumConcurrent, LogNumErrored uint8 }

// Operations of DirectQPAttr.SendOpsFlags (MLX5DV_QP_EX_WITH_*).
const (
	DirectQPExMRInterleaved uint64 = 1 << 0
	DirectQPExMRList        uint64 = 1 << 1
	DirectQPExMkeyConfigure uint64 = 1 << 2
	DirectQPExRawWQE        uint64 = 1 << 3
	DirectQPExMemcpy        uint64 = 1 << 4
)

// DirectQPEx is mlx5dv_qp_ex, what direct verbs add to the extended way to post. The value that
// QP.Ex returns implements it on mlx5 devices. Its builders and setters are used between WRStart
// and WRComplete as those of QPEx are.
type DirectQPEx interface {
	QPEx
	// SetDCAddr and SetDCAddrStream are the setters that every request of a DCI needs.
	SetDCAddr(t Thread, ah AH, remoteDCTN uint32, key uint64)
	SetDCAddrStream(t Thread, ah AH, remoteDCTN uint32, key uint64, stream uint16)
	// WRMRList makes an indirect key stand for the pieces one after the other.
	WRMRList(t Thread, mkey Mkey, access AccessFlags, sges []SGE)
	// WRMRInterleaved makes it stand for repeat rounds through pieces with gaps.
	WRMRInterleaved(t Thread, mkey Mkey, access AccessFlags, repeat uint32, pieces []MRInterleaved)
	// WRMemcpy has the device copy; it takes no setter.
	WRMemcpy(t Thread, destLKey uint32, dest uint64, srcLKey uint32, src uint64, length uint64)
	// WRRawWQE posts bytes unchanged, but for the index in their control segment. It takes no
	// setter.
	WRRawWQE(t Thread, wqe []byte)
}

// MRInterleaved is mlx5dv_mr_interleaved: each round takes the next Bytes from Addr on, and then
// skips Skip bytes.
type MRInterleaved struct {
	Addr        uint64
	Bytes, Skip uint32
	LKey        uint32
}

// DirectQP is what direct verbs do with a QP of an mlx5 device.
type DirectQP interface {
	// ModifyUDPSport is mlx5dv_modify_qp_udp_sport.
	ModifyUDPSport(t Thread, sport uint16) error
	// QueryLagPort and ModifyLagPort are mlx5dv_query_qp_lag_port and mlx5dv_modify_qp_lag_port.
	QueryLagPort(t Thread) (port, active uint8, err error)
	ModifyLagPort(t Thread, port uint8) error
	// ResetDCIStream is mlx5dv_dci_stream_id_reset.
	ResetDCIStream(t Thread, stream uint16) error
	// RecvQueue reads n bytes of the receive ring from a byte offset, WriteRecvQueue writes there,
	// and WriteRecvDoorbellRecord stores the counter of receives: what mlx5dv_init_obj gives of the
	// receive queue.
	RecvQueue(t Thread, off int, p []byte) error
	WriteRecvQueue(t Thread, off int, p []byte) error
	WriteRecvDoorbellRecord(t Thread, recvCounter uint16) error
	// RecvQueueGeometry returns the number of entries and the bytes of each.
	RecvQueueGeometry() (entries, stride int)
}
