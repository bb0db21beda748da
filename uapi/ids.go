package uapi

// Objects (enum uverbs_default_objects, enum mlx5_ib_objects).
const (
	ObjectDevice      = 0
	ObjectPD          = 1
	ObjectCompChannel = 2
	ObjectCQ          = 3
	ObjectQP          = 4
	ObjectSRQ         = 5
	ObjectAH          = 6
	ObjectMR          = 7
	ObjectMW          = 8
	ObjectFlow        = 9
	ObjectXRCD        = 10
	ObjectRWQIndTbl   = 11
	ObjectWQ          = 12
	ObjectFlowAction  = 13
	ObjectDM          = 14
	ObjectCounters    = 15
	ObjectAsyncEvent  = 16

	driverNS = 1 << 12 // numbers of drivers begin here

	ObjectDEVX        = driverNS
	ObjectDEVXObj     = driverNS + 1
	ObjectDEVXUmem    = driverNS + 2
	ObjectFlowMatcher = driverNS + 3
	ObjectUAR         = driverNS + 8
)

// Methods, by object.
const (
	DeviceInvokeWrite   = 0
	DeviceInfoHandles   = 1
	DeviceQueryPort     = 2
	DeviceGetContext    = 3
	DeviceQueryContext  = 4
	DeviceQueryGIDTable = 5
	DeviceQueryGIDEntry = 6

	PDDestroy          = 0
	PDQuery            = driverNS
	CQCreate           = 0
	CQDestroy          = 1
	QPCreate           = 0
	QPDestroy          = 1
	DMMRReg            = 0
	MRDestroy          = 1
	MRAdvise           = 2
	MRQuery            = 3
	MRRegDmabuf        = 4
	DMAlloc            = 0
	DMFree             = 1
	MWDestroy          = 0
	AHDestroy          = 0
	XRCDDestroy        = 0
	SRQCreate          = 0
	SRQDestroy         = 1
	AsyncEventAlloc    = 0
	DEVXOther          = driverNS
	DEVXObjCreate      = driverNS
	DEVXObjDestroy     = driverNS + 1
	DEVXObjModify      = driverNS + 2
	DEVXObjQuery       = driverNS + 3
	DEVXQueryEQN       = driverNS + 2
	UmemReg            = driverNS
	UmemDereg          = driverNS + 1
	DMMapOpAddr        = driverNS
	DMQuery            = driverNS + 1
	MLX5QueryPort      = driverNS
	WQCreate           = 0
	WQDestroy          = 1
	WQTableDestroy     = 0
	FlowDestroy        = 0
	FlowCreate         = driverNS
	FlowActionDestroy  = 1
	ModifyHeaderCreate = driverNS
	ReformatCreate     = driverNS + 1
	MatcherCreate      = driverNS
	MatcherDestroy     = driverNS + 1
	UARAlloc           = driverNS
	UARDestroy         = driverNS + 1
)

// Attributes, by method.
const (
	AttrUHWIn  = driverNS // driver data
	AttrUHWOut = driverNS + 1

	InvokeWriteCoreIn  = 0
	InvokeWriteCoreOut = 1
	InvokeWriteCmd     = 2

	QueryPortNum  = 0
	QueryPortRsp  = 1
	GetContextVec = 0
	GetContextSup = 1

	QueryContextVec  = 0
	QueryContextSup  = 1
	QueryContextResp = driverNS
	PDQueryHandle    = driverNS
	PDQueryPDN       = driverNS + 1
	MRQueryHandle    = 0
	MRQueryLKey      = 1
	MRQueryRKey      = 2
	MRQueryLength    = 3
	MRQueryIOVA      = 4

	QueryGIDTableEntrySize  = 0
	QueryGIDTableFlags      = 1
	QueryGIDTableEntries    = 2
	QueryGIDTableNumEntries = 3
	QueryGIDEntryPort       = 0
	QueryGIDEntryIndex      = 1
	QueryGIDEntryFlags      = 2
	QueryGIDEntryRsp        = 3

	CQCreateHandle     = 0
	CQCreateCQE        = 1
	CQCreateUserHandle = 2
	CQCreateChannel    = 3
	CQCreateVector     = 4
	CQCreateFlags      = 5
	CQCreateRspCQE     = 6
	CQCreateEventFD    = 7
	CQDestroyHandle    = 0
	CQDestroyRsp       = 1

	QPCreateHandle     = 0
	QPCreateXRCD       = 1
	QPCreatePD         = 2
	QPCreateSRQ        = 3
	QPCreateSendCQ     = 4
	QPCreateRecvCQ     = 5
	QPCreateIndTable   = 6
	QPCreateUserHandle = 7
	QPCreateCap        = 8
	QPCreateType       = 9
	QPCreateFlags      = 10
	QPCreateSourceQPN  = 11
	QPCreateEventFD    = 12
	QPCreateRspCap     = 13
	QPCreateRspQPN     = 14
	QPDestroyHandle    = 0
	QPDestroyRsp       = 1

	SRQCreateHandle     = 0
	SRQCreatePD         = 1
	SRQCreateXRCD       = 2
	SRQCreateCQ         = 3
	SRQCreateUserHandle = 4
	SRQCreateMaxWR      = 5
	SRQCreateMaxSGE     = 6
	SRQCreateLimit      = 7
	SRQCreateMaxTags    = 8
	SRQCreateType       = 9
	SRQCreateEventFD    = 10
	SRQCreateRspMaxWR   = 11
	SRQCreateRspMaxSGE  = 12
	SRQCreateRspNum     = 13
	SRQDestroyHandle    = 0
	SRQDestroyRsp       = 1

	PDDestroyHandle   = 0
	MWDestroyHandle   = 0
	AHDestroyHandle   = 0
	XRCDDestroyHandle = 0
	MRDestroyHandle   = 0
	AsyncEventAllocFD = 0

	DMAllocHandle      = 0
	DMAllocLength      = 1
	DMAllocAlignment   = 2
	DMAllocStartOffset = driverNS
	DMAllocPageIndex   = driverNS + 1
	DMAllocType        = driverNS + 2
	DMFreeHandle       = 0

	DMMapOpHandle      = driverNS
	DMMapOpOp          = driverNS + 1
	DMMapOpStartOffset = driverNS + 2
	DMMapOpPageIndex   = driverNS + 3
	DMQueryHandle      = driverNS
	DMQueryStartOffset = driverNS + 1
	DMQueryPageIndex   = driverNS + 2
	DMQueryLength      = driverNS + 3

	MLX5QueryPortNum = driverNS
	MLX5QueryPortRsp = driverNS + 1

	WQCreateHandle          = 0
	WQCreatePD              = 1
	WQCreateCQ              = 2
	WQCreateUserHandle      = 3
	WQCreateType            = 4
	WQCreateEventFD         = 5
	WQCreateMaxWR           = 6
	WQCreateMaxSGE          = 7
	WQCreateFlags           = 8
	WQCreateRspMaxWR        = 9
	WQCreateRspMaxSGE       = 10
	WQCreateRspNum          = 11
	WQDestroyHandle         = 0
	WQDestroyRsp            = 1
	WQTableDestroyHandle    = 0
	FlowDestroyHandle       = 0
	FlowCreateHandle        = driverNS
	FlowCreateValue         = driverNS + 1
	FlowCreateQP            = driverNS + 2
	FlowCreateDEVX          = driverNS + 3
	FlowCreateMatcher       = driverNS + 4
	FlowCreateActions       = driverNS + 5
	FlowCreateTag           = driverNS + 6
	FlowCreateCounters      = driverNS + 7
	FlowCreateOffset        = driverNS + 8
	FlowCreateFlags         = driverNS + 9
	FlowActionDestroyHandle = 0
	ModifyHeaderHandle      = driverNS
	ModifyHeaderActions     = driverNS + 1
	ModifyHeaderTable       = driverNS + 2
	ReformatHandle          = driverNS
	ReformatType            = driverNS + 1
	ReformatTable           = driverNS + 2
	ReformatData            = driverNS + 3
	MatcherCreateHandle     = driverNS
	MatcherCreateMask       = driverNS + 1
	MatcherCreateType       = driverNS + 2
	MatcherCreateCriteria   = driverNS + 3
	MatcherCreateFlags      = driverNS + 4
	MatcherCreateTable      = driverNS + 5
	MatcherDestroyHandle    = driverNS

	RegDmabufHandle = 0
	RegDmabufPD     = 1
	RegDmabufOffset = 2
	RegDmabufLength = 3
	RegDmabufIova   = 4
	RegDmabufFD     = 5
	RegDmabufAccess = 6
	RegDmabufLKey   = 7
	RegDmabufRKey   = 8

	DMMRHandle = 0
	DMMROffset = 1
	DMMRLength = 2
	DMMRPD     = 3
	DMMRAccess = 4
	DMMRDM     = 5
	DMMRLKey   = 6
	DMMRRKey   = 7

	MRAdvisePD     = 0
	MRAdviseAdvice = 1
	MRAdviseFlags  = 2
	MRAdviseRanges = 3

	DEVXOtherIn          = driverNS
	DEVXOtherOut         = driverNS + 1
	DEVXObjCreateHandle  = driverNS
	DEVXObjCreateIn      = driverNS + 1
	DEVXObjCreateOut     = driverNS + 2
	DEVXObjDestroyHandle = driverNS
	DEVXEQNVector        = driverNS
	DEVXEQNNumber        = driverNS + 1
	UmemRegHandle        = driverNS
	UmemRegAddr          = driverNS + 1
	UmemRegLen           = driverNS + 2
	UmemRegAccess        = driverNS + 3
	UmemRegID            = driverNS + 4
	UmemRegPageSizes     = driverNS + 5
	UmemRegDmabuf        = driverNS + 6
	UmemDeregHandle      = driverNS
	DEVXObjModifyHandle  = driverNS // of a query, too
	DEVXObjModifyIn      = driverNS + 1
	DEVXObjModifyOut     = driverNS + 2

	UARAllocHandle   = driverNS
	UARAllocType     = driverNS + 1
	UARAllocOffset   = driverNS + 2
	UARAllocLength   = driverNS + 3
	UARAllocPageID   = driverNS + 4
	UARDestroyHandle = driverNS
)

// CoreSupportOptionalAccess in the answer GetContextSup: optional access flags of
// memory are understood.
const CoreSupportOptionalAccess = 1 << 0

// CQ creation flags (enum ib_uverbs_ex_create_cq_flags).
const (
	CQCreateTimestamp     = 1 << 0
	CQCreateIgnoreOverrun = 1 << 1
)

// QP creation flags (enum ib_uverbs_qp_create_flags).
const (
	QPCreateBlockMulticastLoopback = 1 << 1
	QPCreateScatterFCS             = 1 << 8
	QPCreateCVLANStripping         = 1 << 9
	QPCreatePCIWriteEndPadding     = 1 << 11
	QPCreateSQSigAll               = 1 << 12
)

// Flags of FlowCreateFlags (enum mlx5_ib_create_flow_flags), and the length of match parameters
// (struct mlx5_ib_match_params).
const (
	FlowCreateDefaultMiss = 1 << 0
	FlowCreateDrop        = 1 << 1

	MatchParamsSize = 640

	FlowEgress = 1 << 2 // IB_FLOW_ATTR_FLAGS_EGRESS

	FlowMaxActions = 2 // MLX5_IB_CREATE_FLOW_MAX_FLOW_ACTIONS
)

// WQTypeRQ is the only type of a WQ (enum ib_uverbs_wq_type).
const WQTypeRQ = 0

// Bits of ExModifyWQ.AttrMask (enum ib_wq_attr_mask).
const (
	ModifyWQState    = 1 << 0
	ModifyWQCurState = 1 << 1
	ModifyWQFlags    = 1 << 2
)

// Types of SRQs (enum ib_uverbs_srq_type).
const (
	SRQTypeBasic = 0
	SRQTypeXRC   = 1
	SRQTypeTM    = 2
)
