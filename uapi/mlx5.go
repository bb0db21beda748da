package uapi

// Flags of AllocUcontextReq and of the driver data of queues (mlx5-abi.h).
const (
	UctxDEVX = 1 << 0 // MLX5_IB_ALLOC_UCTX_DEVX

	// UctxReqV1Size is the length of the first version of AllocUcontextReq.
	UctxReqV1Size = 8

	// CmdsSuppUHW: these commands have driver data.
	SuppUHWQueryDevice = 1 << 0
	SuppUHWCreateAH    = 1 << 1

	// UctxRespCoreClock in the CompMask of AllocUcontextResp: HCACoreClockOffset holds.
	UctxRespCoreClock = 1 << 0
	// UctxRespDumpFill: DumpFillMKey holds.
	UctxRespDumpFill = 1 << 1

	// QueryDevCQE128BComp in the Flags of MLX5QueryDeviceResp: entries of 128 bytes can be compressed.
	QueryDevCQE128BComp = 1 << 0
	// QueryDevCQE128BPad in the Flags of MLX5QueryDeviceResp: CQFlag128BPad is understood.
	QueryDevCQE128BPad = 1 << 1

	CQFlag128BPad      = 1 << 0
	CQFlagUARPageIndex = 1 << 1 // UARPageIndex names the UAR that arms
	CQFlagRealTimeTS   = 1 << 2

	SRQFlagSignature = 1 << 0

	// CreateAHRespLeast is the least room for MLX5CreateAHResp: through the address.
	CreateAHRespLeast = 10

	QPFlagSignature       = 1 << 0
	QPFlagScatterCQE      = 1 << 1
	QPFlagBFRegIndex      = 1 << 3 // BFRegIndex is one of the dynamic bfregs
	QPFlagTypeDCT         = 1 << 4
	QPFlagTypeDCI         = 1 << 5
	QPFlagAllowScatterCQE = 1 << 8
	QPFlagPacketCredits   = 1 << 9
	QPFlagUARPageIndex    = 1 << 10 // BFRegIndex is a UAR
)

// Commands in the page offset of an mmap of the device file (enum mlx5_ib_mmap_cmd).
const (
	MmapRegular    = 0
	MmapContiguous = 1
	MmapWC         = 2
	MmapNC         = 3
	MmapCoreClock  = 5
	MmapAllocWC    = 6
	MmapClockInfo  = 7
	MmapDeviceMem  = 8
)

// MmapPage is the page offset of a command with its argument. Arguments of 256 and
// more put their upper bits above the command (set_extended_index of libmlx5).
func MmapPage(cmd, arg uint32) uint64 {
	return uint64(arg>>8)<<16 | uint64(cmd)<<8 | uint64(arg&0xff)
}

// MmapCommand takes a page offset apart.
func MmapCommand(page uint64) (cmd, arg uint32) {
	return uint32(page >> 8 & 0xff), uint32(page>>16)<<8 | uint32(page&0xff)
}

// AllocUcontextReq is the driver data of GET_CONTEXT. The first version ends after two words (struct mlx5_ib_alloc_ucontext_req_v2).
type AllocUcontextReq []byte

// AllocUcontextReqSize is the size of the structure.
const AllocUcontextReqSize = 32

func (a AllocUcontextReq) TotalBFRegs() uint32      { return le.Uint32(a[0:]) }
func (a AllocUcontextReq) SetTotalBFRegs(v uint32)  { le.PutUint32(a[0:], v) }
func (a AllocUcontextReq) LowLatBFRegs() uint32     { return le.Uint32(a[4:]) }
func (a AllocUcontextReq) SetLowLatBFRegs(v uint32) { le.PutUint32(a[4:], v) }
func (a AllocUcontextReq) Flags() uint32            { return le.Uint32(a[8:]) }
func (a AllocUcontextReq) SetFlags(v uint32)        { le.PutUint32(a[8:], v) }
func (a AllocUcontextReq) CompMask() uint32         { return le.Uint32(a[12:]) }
func (a AllocUcontextReq) SetCompMask(v uint32)     { le.PutUint32(a[12:], v) }
func (a AllocUcontextReq) MaxCQEVersion() uint8     { return a[16] }
func (a AllocUcontextReq) SetMaxCQEVersion(v uint8) { a[16] = v }
func (a AllocUcontextReq) LibCaps() uint64          { return le.Uint64(a[24:]) }
func (a AllocUcontextReq) SetLibCaps(v uint64)      { le.PutUint64(a[24:], v) }

// AllocUcontextResp is the driver's answer to GET_CONTEXT (struct mlx5_ib_alloc_ucontext_resp).
type AllocUcontextResp []byte

// AllocUcontextRespSize is the size of the structure.
const AllocUcontextRespSize = 72

func (a AllocUcontextResp) QPTabSize() uint32              { return le.Uint32(a[0:]) }
func (a AllocUcontextResp) SetQPTabSize(v uint32)          { le.PutUint32(a[0:], v) }
func (a AllocUcontextResp) BFRegSize() uint32              { return le.Uint32(a[4:]) }
func (a AllocUcontextResp) SetBFRegSize(v uint32)          { le.PutUint32(a[4:], v) }
func (a AllocUcontextResp) TotBFRegs() uint32              { return le.Uint32(a[8:]) }
func (a AllocUcontextResp) SetTotBFRegs(v uint32)          { le.PutUint32(a[8:], v) }
func (a AllocUcontextResp) CacheLineSize() uint32          { return le.Uint32(a[12:]) }
func (a AllocUcontextResp) SetCacheLineSize(v uint32)      { le.PutUint32(a[12:], v) }
func (a AllocUcontextResp) MaxSQDescSz() uint16            { return le.Uint16(a[16:]) }
func (a AllocUcontextResp) SetMaxSQDescSz(v uint16)        { le.PutUint16(a[16:], v) }
func (a AllocUcontextResp) MaxRQDescSz() uint16            { return le.Uint16(a[18:]) }
func (a AllocUcontextResp) SetMaxRQDescSz(v uint16)        { le.PutUint16(a[18:], v) }
func (a AllocUcontextResp) MaxSendWQEBB() uint32           { return le.Uint32(a[20:]) }
func (a AllocUcontextResp) SetMaxSendWQEBB(v uint32)       { le.PutUint32(a[20:], v) }
func (a AllocUcontextResp) MaxRecvWR() uint32              { return le.Uint32(a[24:]) }
func (a AllocUcontextResp) SetMaxRecvWR(v uint32)          { le.PutUint32(a[24:], v) }
func (a AllocUcontextResp) MaxSRQRecvWR() uint32           { return le.Uint32(a[28:]) }
func (a AllocUcontextResp) SetMaxSRQRecvWR(v uint32)       { le.PutUint32(a[28:], v) }
func (a AllocUcontextResp) NumPorts() uint16               { return le.Uint16(a[32:]) }
func (a AllocUcontextResp) SetNumPorts(v uint16)           { le.PutUint16(a[32:], v) }
func (a AllocUcontextResp) CompMask() uint32               { return le.Uint32(a[36:]) }
func (a AllocUcontextResp) SetCompMask(v uint32)           { le.PutUint32(a[36:], v) }
func (a AllocUcontextResp) ResponseLength() uint32         { return le.Uint32(a[40:]) }
func (a AllocUcontextResp) SetResponseLength(v uint32)     { le.PutUint32(a[40:], v) }
func (a AllocUcontextResp) CQEVersion() uint8              { return a[44] }
func (a AllocUcontextResp) SetCQEVersion(v uint8)          { a[44] = v }
func (a AllocUcontextResp) CmdsSuppUHW() uint8             { return a[45] }
func (a AllocUcontextResp) SetCmdsSuppUHW(v uint8)         { a[45] = v }
func (a AllocUcontextResp) EthMinInline() uint8            { return a[46] }
func (a AllocUcontextResp) SetEthMinInline(v uint8)        { a[46] = v }
func (a AllocUcontextResp) ClockInfoVersions() uint8       { return a[47] }
func (a AllocUcontextResp) SetClockInfoVersions(v uint8)   { a[47] = v }
func (a AllocUcontextResp) HCACoreClockOffset() uint64     { return le.Uint64(a[48:]) }
func (a AllocUcontextResp) SetHCACoreClockOffset(v uint64) { le.PutUint64(a[48:], v) }
func (a AllocUcontextResp) LogUARSize() uint32             { return le.Uint32(a[56:]) }
func (a AllocUcontextResp) SetLogUARSize(v uint32)         { le.PutUint32(a[56:], v) }
func (a AllocUcontextResp) NumUARsPerPage() uint32         { return le.Uint32(a[60:]) }
func (a AllocUcontextResp) SetNumUARsPerPage(v uint32)     { le.PutUint32(a[60:], v) }
func (a AllocUcontextResp) NumDynBFRegs() uint32           { return le.Uint32(a[64:]) }
func (a AllocUcontextResp) SetNumDynBFRegs(v uint32)       { le.PutUint32(a[64:], v) }
func (a AllocUcontextResp) DumpFillMKey() uint32           { return le.Uint32(a[68:]) }
func (a AllocUcontextResp) SetDumpFillMKey(v uint32)       { le.PutUint32(a[68:], v) }

// MLX5AllocPDResp is the driver's answer to ALLOC_PD (struct mlx5_ib_alloc_pd_resp).
type MLX5AllocPDResp []byte

// MLX5AllocPDRespSize is the size of the structure.
const MLX5AllocPDRespSize = 4

func (m MLX5AllocPDResp) PDN() uint32     { return le.Uint32(m[0:]) }
func (m MLX5AllocPDResp) SetPDN(v uint32) { le.PutUint32(m[0:], v) }

// MLX5QueryDeviceResp is the driver's answer to QUERY_DEVICE; what is not named here are
// offloads that the model has none of (struct mlx5_ib_query_device_resp).
type MLX5QueryDeviceResp []byte

// MLX5QueryDeviceRespSize is the size of the structure.
const MLX5QueryDeviceRespSize = 104

func (m MLX5QueryDeviceResp) CompMask() uint32           { return le.Uint32(m[0:]) }
func (m MLX5QueryDeviceResp) SetCompMask(v uint32)       { le.PutUint32(m[0:], v) }
func (m MLX5QueryDeviceResp) ResponseLength() uint32     { return le.Uint32(m[4:]) }
func (m MLX5QueryDeviceResp) SetResponseLength(v uint32) { le.PutUint32(m[4:], v) }
func (m MLX5QueryDeviceResp) CQECompMaxNum() uint32      { return le.Uint32(m[32:]) }
func (m MLX5QueryDeviceResp) SetCQECompMaxNum(v uint32)  { le.PutUint32(m[32:], v) }
func (m MLX5QueryDeviceResp) CQECompFormats() uint32     { return le.Uint32(m[36:]) }
func (m MLX5QueryDeviceResp) SetCQECompFormats(v uint32) { le.PutUint32(m[36:], v) }
func (m MLX5QueryDeviceResp) Flags() uint32              { return le.Uint32(m[60:]) }
func (m MLX5QueryDeviceResp) SetFlags(v uint32)          { le.PutUint32(m[60:], v) }

// MLX5CreateCQ is the driver data of CQ_CREATE (struct mlx5_ib_create_cq).
type MLX5CreateCQ []byte

// MLX5CreateCQSize is the size of the structure.
const MLX5CreateCQSize = 32

func (m MLX5CreateCQ) BufAddr() uint64             { return le.Uint64(m[0:]) }
func (m MLX5CreateCQ) SetBufAddr(v uint64)         { le.PutUint64(m[0:], v) }
func (m MLX5CreateCQ) DBAddr() uint64              { return le.Uint64(m[8:]) }
func (m MLX5CreateCQ) SetDBAddr(v uint64)          { le.PutUint64(m[8:], v) }
func (m MLX5CreateCQ) CQESize() uint32             { return le.Uint32(m[16:]) }
func (m MLX5CreateCQ) SetCQESize(v uint32)         { le.PutUint32(m[16:], v) }
func (m MLX5CreateCQ) CQECompEn() uint8            { return m[20] }
func (m MLX5CreateCQ) SetCQECompEn(v uint8)        { m[20] = v }
func (m MLX5CreateCQ) CQECompResFormat() uint8     { return m[21] }
func (m MLX5CreateCQ) SetCQECompResFormat(v uint8) { m[21] = v }
func (m MLX5CreateCQ) Flags() uint16               { return le.Uint16(m[22:]) }
func (m MLX5CreateCQ) SetFlags(v uint16)           { le.PutUint16(m[22:], v) }
func (m MLX5CreateCQ) UARPageIndex() uint16        { return le.Uint16(m[24:]) }
func (m MLX5CreateCQ) SetUARPageIndex(v uint16)    { le.PutUint16(m[24:], v) }

// MLX5CreateCQResp is the driver's answer to CQ_CREATE (struct mlx5_ib_create_cq_resp).
type MLX5CreateCQResp []byte

// MLX5CreateCQRespSize is the size of the structure.
const MLX5CreateCQRespSize = 8

func (m MLX5CreateCQResp) CQN() uint32     { return le.Uint32(m[0:]) }
func (m MLX5CreateCQResp) SetCQN(v uint32) { le.PutUint32(m[0:], v) }

// MLX5CreateQP is the driver data of QP_CREATE (struct mlx5_ib_create_qp).
type MLX5CreateQP []byte

// MLX5CreateQPSize is the size of the structure.
const MLX5CreateQPSize = 56

func (m MLX5CreateQP) BufAddr() uint64        { return le.Uint64(m[0:]) }
func (m MLX5CreateQP) SetBufAddr(v uint64)    { le.PutUint64(m[0:], v) }
func (m MLX5CreateQP) DBAddr() uint64         { return le.Uint64(m[8:]) }
func (m MLX5CreateQP) SetDBAddr(v uint64)     { le.PutUint64(m[8:], v) }
func (m MLX5CreateQP) SQWQECount() uint32     { return le.Uint32(m[16:]) }
func (m MLX5CreateQP) SetSQWQECount(v uint32) { le.PutUint32(m[16:], v) }
func (m MLX5CreateQP) RQWQECount() uint32     { return le.Uint32(m[20:]) }
func (m MLX5CreateQP) SetRQWQECount(v uint32) { le.PutUint32(m[20:], v) }
func (m MLX5CreateQP) RQWQEShift() uint32     { return le.Uint32(m[24:]) }
func (m MLX5CreateQP) SetRQWQEShift(v uint32) { le.PutUint32(m[24:], v) }
func (m MLX5CreateQP) Flags() uint32          { return le.Uint32(m[28:]) }
func (m MLX5CreateQP) SetFlags(v uint32)      { le.PutUint32(m[28:], v) }
func (m MLX5CreateQP) UIDX() uint32           { return le.Uint32(m[32:]) }
func (m MLX5CreateQP) SetUIDX(v uint32)       { le.PutUint32(m[32:], v) }
func (m MLX5CreateQP) BFRegIndex() uint32     { return le.Uint32(m[36:]) }
func (m MLX5CreateQP) SetBFRegIndex(v uint32) { le.PutUint32(m[36:], v) }
func (m MLX5CreateQP) SQBufAddr() uint64      { return le.Uint64(m[40:]) }
func (m MLX5CreateQP) SetSQBufAddr(v uint64)  { le.PutUint64(m[40:], v) }
func (m MLX5CreateQP) ECEOptions() uint32     { return le.Uint32(m[48:]) }
func (m MLX5CreateQP) SetECEOptions(v uint32) { le.PutUint32(m[48:], v) }

// MLX5CreateQPResp is the driver's answer to QP_CREATE (struct mlx5_ib_create_qp_resp).
type MLX5CreateQPResp []byte

// MLX5CreateQPRespSize is the size of the structure.
const MLX5CreateQPRespSize = 40

func (m MLX5CreateQPResp) BFRegIndex() uint32     { return le.Uint32(m[0:]) }
func (m MLX5CreateQPResp) SetBFRegIndex(v uint32) { le.PutUint32(m[0:], v) }
func (m MLX5CreateQPResp) ECEOptions() uint32     { return le.Uint32(m[4:]) }
func (m MLX5CreateQPResp) SetECEOptions(v uint32) { le.PutUint32(m[4:], v) }
func (m MLX5CreateQPResp) CompMask() uint32       { return le.Uint32(m[8:]) }
func (m MLX5CreateQPResp) SetCompMask(v uint32)   { le.PutUint32(m[8:], v) }
