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

	// QueryDevCQE128BComp in the Flags of MLX5QueryDeviceResp: entries of 128 bytes can be
	// compressed.
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
	QPFlagDCIStream       = 1 << 11 // the numbers of streams count

	// Bits of MLX5CreateQPResp.CompMask: the numbers of the queues of a raw packet QP.
	QPRespTIRN = 1 << 0
	QPRespTISN = 1 << 1
	QPRespRQN  = 1 << 2
	QPRespSQN  = 1 << 3
	// QPRespTIRICMAddr says that there is an address of the TIR.
	QPRespTIRICMAddr = 1 << 4

	// RSSToeplitz is MLX5CreateQPRSS.Function.
	RSSToeplitz = 1 << 0
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
func MmapPage(cmd, arg uint32) uint64 { return uint64(arg>>8)<<16 | uint64(cmd)<<8 | uint64(arg&0xff) }

// MmapCommand takes a page offset apart.
func MmapCommand(page uint64) (cmd, arg uint32) {
	return uint32(page >> 8 & 0xff), uint32(page>>16)<<8 | uint32(page&0xff)
}

// ClockInfoV1 is the only layout of ClockInfo: the argument of its mmap, and the bit in
// ClockInfoVersions of AllocUcontextResp. ClockInfoUpdating is a bit of the sign.
const (
	ClockInfoV1       = 0
	ClockInfoUpdating = 1
)
