package prm

// QP states in QPC.State (qp.h, MLX5_QP_STATE_*).
const (
	QPStateRST        = 0
	QPStateINIT       = 1
	QPStateRTR        = 2
	QPStateRTS        = 3
	QPStateSQER       = 4
	QPStateSQD        = 5
	QPStateERR        = 6
	QPStateSQDraining = 7
	QPStateSuspended  = 9
)

// Service types in QPC.ST (qp.h, MLX5_QP_ST_*).
const (
	STRC     = 0x0
	STUC     = 0x1
	STUD     = 0x2
	STXRC    = 0x3
	STDCI    = 0x5
	STDCT    = 0x6 // of the transport's targets, which have no QPC
	STQP0    = 0x7
	STQP1    = 0x8
	STRaw    = 0x9
	STRegUMR = 0xc
)

// Path migration states in QPC.PMState.
const (
	PMStateArmed    = 0
	PMStateRearm    = 1
	PMStateMigrated = 3
)

// Receive queue types in QPC.RQType.
const (
	RQTypeRegular      = 0
	RQTypeSRQ          = 1
	RQTypeCrossChannel = 2
	RQTypeNone         = 3
)

// Scatter to CQE in QPC.CSReq and QPC.CSRes (qp.h).
const (
	CSReqDisable = 0
	CSReqUpTo32B = 0x11
	CSReqUpTo64B = 0x22
	CSResDisable = 0
	CSResUpTo32B = 1
	CSResUpTo64B = 2
)

// Atomic modes in QPC.AtomicMode (qp.h, MLX5_ATOMIC_MODE_*).
const (
	AtomicModeNone   = 0
	AtomicModeIBComp = 1
	AtomicModeOnly8B = 2
	AtomicModeUpTo8B = 3
)

// Bits of a transition's OptParamMask (qp.h, MLX5_QP_OPTPAR_*).
const (
	OptParAltAddrPath  = 1 << 0
	OptParRRE          = 1 << 1
	OptParRAE          = 1 << 2
	OptParRWE          = 1 << 3
	OptParPKeyIndex    = 1 << 4
	OptParQKey         = 1 << 5
	OptParRNRTimeout   = 1 << 6
	OptParPrimaryPath  = 1 << 7
	OptParSRAMax       = 1 << 8
	OptParRRAMax       = 1 << 9
	OptParPMState      = 1 << 10
	OptParRetryCount   = 1 << 12
	OptParRNRRetry     = 1 << 13
	OptParAckTimeout   = 1 << 14
	OptParLAGTXAff     = 1 << 15
	OptParPriPort      = 1 << 16
	OptParSRQN         = 1 << 18
	OptParCQNRcv       = 1 << 19
	OptParDCHS         = 1 << 20
	OptParDCKey        = 1 << 21
	OptParCounterSetID = 1 << 25
)

// Access modes in MKC.AccessMode (mlx5_ifc.h, MLX5_MKC_ACCESS_MODE_*).
const (
	MKeyModePA       = 0
	MKeyModeMTT      = 1
	MKeyModeKLM      = 2
	MKeyModeKSM      = 3
	MKeyModeSWICM    = 4
	MKeyModeMemic    = 5
	MKeyModeCrossing = 6
)

// MKeyQPNAny in MKC.QPN binds the key to no QP.
const MKeyQPNAny = 0xffffff

// NoUserIndex in the context of a queue asks for completions that name it by its number (mlx5_ib,
// MLX5_IB_DEFAULT_UIDX).
const NoUserIndex = 0xffffff

// MKeyOf is the key of an index and a variant byte, as lkey and rkey carry it.
func MKeyOf(index, variant uint32) uint32 { return index<<8 | variant&0xff }

// CQ sizes in CQC.CQESz.
const (
	CQESz64     = 0
	CQESz128    = 1
	CQESz128Pad = 2
)

// Statuses in CQC.Status and EQC.Status.
const (
	CQStatusOK        = 0
	CQStatusOverflow  = 9
	CQStatusWriteFail = 10
	EQStatusOK        = 0
	EQStatusWriteFail = 10
)

// Arm states in CQC.St and EQC.St.
const (
	ArmStateSolicited = 6
	ArmStateArmed     = 9
	ArmStateFired     = 10
)

// Capability pages: QUERY_HCA_CAP's op_mod is page << 1 | mode.
const (
	CapGeneral      = 0x00
	CapEth          = 0x01
	CapODP          = 0x02
	CapAtomic       = 0x03
	CapRoCE         = 0x04
	CapNICFlowTable = 0x07
	CapDeviceMem    = 0x0f
	CapGeneral2     = 0x20

	CapModeMax     = 0
	CapModeCurrent = 1
)

// Port types in HCACap.PortType.
const (
	PortTypeIB  = 0
	PortTypeEth = 1
)

// Bits of RoCECap.RoCEVersion, and values of RoCEAddr.RoCEVersion.
const (
	RoCEVersion1Cap = 1 << 0
	RoCEVersion2Cap = 1 << 2
	RoCEVersion1    = 0
	RoCEVersion2    = 2
)

// Values of RoCEAddr.RoCEL3Type; the capability's bits are 1 << (value + 1).
const (
	RoCEL3IPv4 = 0
	RoCEL3IPv6 = 1
)

// Bits of AtomicCap.AtomicOperations.
const (
	AtomicOpCmpSwap        = 1 << 0
	AtomicOpFetchAdd       = 1 << 1
	AtomicOpMaskedCmpSwap  = 1 << 2
	AtomicOpMaskedFetchAdd = 1 << 3
)

// MANAGE_PAGES and QUERY_PAGES op_mods.
const (
	PagesCantGive = 0
	PagesGive     = 1
	PagesTake     = 2

	PagesBoot    = 1
	PagesInit    = 2
	PagesRegular = 3
)

// MODIFY_CQ: op_mods, and bits of FieldSelect for each.
const (
	ModifyCQParams = 0
	ModifyCQResize = 1

	CQModifyPeriod     = 1 << 0
	CQModifyCount      = 1 << 1
	CQModifyOverrun    = 1 << 2
	CQModifyPeriodMode = 1 << 4

	CQPeriodFromEQE = 0 // values of the period mode
	CQPeriodFromCQE = 1

	CQResizeLogSize  = 1 << 0
	CQResizePageOff  = 1 << 1
	CQResizePageSize = 1 << 2
)

// VportState values of QUERY_VPORT_STATE.
const (
	VportStateDown = 0
	VportStateUp   = 1
)

// Values of NICVportContext.AllowedListType (vport.h, MLX5_NVPRT_LIST_TYPE_*).
const (
	VportListUC    = 0
	VportListMC    = 1
	VportListVLAN  = 2
	VportListTypes = 3
)

// PageShift is the unit of log_page_size in QPC, CQC and EQC, and the size of a UAR.
const PageShift = 12

// PageSize is 1 << PageShift bytes.
const PageSize = 1 << PageShift
