package uapi

// netlinkClient is RDMA_NL_NLDEV, the family's device interface.
const netlinkClient = 5

// Commands of the device interface (enum rdma_nldev_command).
const (
	NLDevGet        = 1
	NLDevSet        = 2
	NLDevNewLink    = 3
	NLDevDelLink    = 4
	NLDevPortGet    = 5
	NLDevSysGet     = 6
	NLDevSysSet     = 7
	NLDevResGet     = 9
	NLDevResQPGet   = 10
	NLDevResCMIDGet = 11
	NLDevResCQGet   = 12
	NLDevResMRGet   = 13
	NLDevResPDGet   = 14
	NLDevGetChardev = 15
	NLDevStatSet    = 16
	NLDevStatGet    = 17
	NLDevStatDel    = 18
	NLDevResCtxGet  = 22
	NLDevResSRQGet  = 23
)

// Attributes (enum rdma_nldev_attr).
const (
	NLAttrDevIndex         = 1
	NLAttrDevName          = 2
	NLAttrPortIndex        = 3
	NLAttrCapFlags         = 4
	NLAttrFWVersion        = 5
	NLAttrNodeGUID         = 6
	NLAttrSysImageGUID     = 7
	NLAttrSubnetPrefix     = 8
	NLAttrLID              = 9
	NLAttrSMLID            = 10
	NLAttrLMC              = 11
	NLAttrPortState        = 12
	NLAttrPortPhysState    = 13
	NLAttrNodeType         = 14
	NLAttrSummary          = 15
	NLAttrSummaryEntry     = 16
	NLAttrSummaryEntryName = 17
	NLAttrSummaryEntryCurr = 18
	NLAttrQP               = 19
	NLAttrQPEntry          = 20
	NLAttrLQPN             = 21
	NLAttrRQPN             = 22
	NLAttrRQPSN            = 23
	NLAttrSQPSN            = 24
	NLAttrPathMigState     = 25
	NLAttrType             = 26
	NLAttrState            = 27
	NLAttrPID              = 28
	NLAttrCMID             = 30
	NLAttrCMIDEntry        = 31
	NLAttrPS               = 32
	NLAttrSrcAddr          = 33
	NLAttrDstAddr          = 34
	NLAttrCQ               = 35
	NLAttrCQEntry          = 36
	NLAttrCQE              = 37
	NLAttrUseCount         = 38
	NLAttrMR               = 40
	NLAttrMREntry          = 41
	NLAttrRKey             = 42
	NLAttrLKey             = 43
	NLAttrMRLen            = 45
	NLAttrPD               = 46
	NLAttrPDEntry          = 47
	NLAttrNetDevIndex      = 50
	NLAttrNetDevName       = 51
	NLAttrDriver           = 52
	NLAttrDriverString     = 54
	NLAttrPDN              = 60
	NLAttrCQN              = 61
	NLAttrMRN              = 62
	NLAttrCMIDN            = 63
	NLAttrCtxN             = 64
	NLAttrNetNSMode        = 66
	NLAttrProtocol         = 67
	NLAttrChardevType      = 69
	NLAttrChardevName      = 70
	NLAttrChardevABI       = 71
	NLAttrChardev          = 72
	NLAttrUverbsDriver     = 73
	NLAttrStatRes          = 75
	NLAttrHWCounters       = 80
	NLAttrHWCounterEntry   = 81
	NLAttrHWCounterName    = 82
	NLAttrHWCounterValue   = 83
	NLAttrDim              = 84
	NLAttrCtx              = 86
	NLAttrCtxEntry         = 87
	NLAttrSRQ              = 88
	NLAttrSRQEntry         = 89
	NLAttrSRQN             = 90
	NLAttrMinRange         = 91
	NLAttrMaxRange         = 92
	NLAttrCopyOnFork       = 93
)
