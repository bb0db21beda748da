package uapi

import (
	"errors"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/internal/layout"
)

// values are enumerators and constants of the headers and ours.
var values = map[string]uint64{
	"RDMA_VERBS_IOCTL": VerbsIoctl, "RDMA_DRIVER_MLX5": DriverMLX5,
	"UVERBS_ATTR_F_MANDATORY": AttrMandatory, "UVERBS_ATTR_F_VALID_OUTPUT": AttrValidOutput,
	"UVERBS_OBJECT_DEVICE": ObjectDevice, "UVERBS_OBJECT_PD": ObjectPD, "UVERBS_OBJECT_COMP_CHANNEL": ObjectCompChannel,
	"UVERBS_OBJECT_CQ": ObjectCQ, "UVERBS_OBJECT_QP": ObjectQP, "UVERBS_OBJECT_SRQ": ObjectSRQ, "UVERBS_OBJECT_AH": ObjectAH,
	"UVERBS_OBJECT_MR": ObjectMR, "UVERBS_OBJECT_MW": ObjectMW, "UVERBS_OBJECT_FLOW": ObjectFlow, "UVERBS_OBJECT_XRCD": ObjectXRCD,
	"UVERBS_OBJECT_RWQ_IND_TBL": ObjectRWQIndTbl, "UVERBS_OBJECT_WQ": ObjectWQ, "UVERBS_OBJECT_FLOW_ACTION": ObjectFlowAction,
	"UVERBS_OBJECT_DM": ObjectDM, "UVERBS_OBJECT_COUNTERS": ObjectCounters, "UVERBS_OBJECT_ASYNC_EVENT": ObjectAsyncEvent,
	"MLX5_IB_OBJECT_DEVX": ObjectDEVX, "MLX5_IB_OBJECT_DEVX_OBJ": ObjectDEVXObj, "MLX5_IB_METHOD_DEVX_OTHER": DEVXOther,
	"MLX5_IB_METHOD_DEVX_OBJ_CREATE": DEVXObjCreate, "MLX5_IB_METHOD_DEVX_OBJ_DESTROY": DEVXObjDestroy, "MLX5_IB_ATTR_DEVX_OTHER_CMD_IN": DEVXOtherIn,
	"MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT": DEVXOtherOut, "MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE": DEVXObjCreateHandle,
	"MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN": DEVXObjCreateIn, "MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT": DEVXObjCreateOut,
	"MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE": DEVXObjDestroyHandle, "MLX5_IB_OBJECT_UAR": ObjectUAR,
	"MLX5_IB_OBJECT_DEVX_UMEM": ObjectDEVXUmem, "MLX5_IB_METHOD_DEVX_OBJ_QUERY": DEVXObjQuery, "MLX5_IB_METHOD_DEVX_QUERY_EQN": DEVXQueryEQN,
	"MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE": DEVXObjModifyHandle, "MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN": DEVXObjModifyIn,
	"MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT": DEVXObjModifyOut, "MLX5_IB_METHOD_DEVX_UMEM_REG": UmemReg, "MLX5_IB_METHOD_DEVX_UMEM_DEREG": UmemDereg,
	"MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC": DEVXEQNVector, "MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN": DEVXEQNNumber,
	"MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE": UmemRegHandle, "MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR": UmemRegAddr, "MLX5_IB_ATTR_DEVX_UMEM_REG_LEN": UmemRegLen,
	"MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS": UmemRegAccess, "MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID": UmemRegID,
	"MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE": UmemDeregHandle,
	"MLX5_IB_METHOD_DEVX_OBJ_MODIFY":      DEVXObjModify, "MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE": DEVXObjModifyHandle,
	"MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN": DEVXObjModifyIn, "MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT": DEVXObjModifyOut,
	"MLX5_IB_METHOD_DM_MAP_OP_ADDR": DMMapOpAddr, "MLX5_IB_METHOD_DM_QUERY": DMQuery, "MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_HANDLE": DMMapOpHandle,
	"MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_OP": DMMapOpOp, "MLX5_IB_ATTR_DM_MAP_OP_ADDR_RESP_START_OFFSET": DMMapOpStartOffset,
	"MLX5_IB_ATTR_DM_MAP_OP_ADDR_RESP_PAGE_INDEX": DMMapOpPageIndex, "MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE": DMQueryHandle,
	"MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET": DMQueryStartOffset, "MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX": DMQueryPageIndex,
	"MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH": DMQueryLength, "MLX5_IB_METHOD_QUERY_PORT": MLX5QueryPort,
	"MLX5_IB_ATTR_QUERY_PORT_PORT_NUM": MLX5QueryPortNum, "MLX5_IB_ATTR_QUERY_PORT": MLX5QueryPortRsp,
	"UVERBS_METHOD_WQ_CREATE": WQCreate, "UVERBS_METHOD_WQ_DESTROY": WQDestroy, "UVERBS_ATTR_CREATE_WQ_HANDLE": WQCreateHandle,
	"UVERBS_ATTR_CREATE_WQ_PD_HANDLE": WQCreatePD, "UVERBS_ATTR_CREATE_WQ_CQ_HANDLE": WQCreateCQ, "UVERBS_ATTR_CREATE_WQ_USER_HANDLE": WQCreateUserHandle,
	"UVERBS_ATTR_CREATE_WQ_TYPE": WQCreateType, "UVERBS_ATTR_CREATE_WQ_EVENT_FD": WQCreateEventFD, "UVERBS_ATTR_CREATE_WQ_MAX_WR": WQCreateMaxWR,
	"UVERBS_ATTR_CREATE_WQ_MAX_SGE": WQCreateMaxSGE, "UVERBS_ATTR_CREATE_WQ_FLAGS": WQCreateFlags, "UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR": WQCreateRspMaxWR,
	"UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE": WQCreateRspMaxSGE, "UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM": WQCreateRspNum,
	"UVERBS_ATTR_DESTROY_WQ_HANDLE": WQDestroyHandle, "UVERBS_ATTR_DESTROY_WQ_RESP": WQDestroyRsp, "UVERBS_METHOD_RWQ_IND_TBL_DESTROY": WQTableDestroy,
	"UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE": WQTableDestroyHandle, "UVERBS_METHOD_FLOW_DESTROY": FlowDestroy, "UVERBS_ATTR_DESTROY_FLOW_HANDLE": FlowDestroyHandle,
	"MLX5_IB_METHOD_CREATE_FLOW": FlowCreate, "MLX5_IB_ATTR_CREATE_FLOW_HANDLE": FlowCreateHandle, "MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE": FlowCreateValue,
	"MLX5_IB_ATTR_CREATE_FLOW_DEST_QP": FlowCreateQP, "MLX5_IB_ATTR_CREATE_FLOW_DEST_DEVX": FlowCreateDEVX, "MLX5_IB_ATTR_CREATE_FLOW_MATCHER": FlowCreateMatcher,
	"MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS": FlowCreateActions, "MLX5_IB_ATTR_CREATE_FLOW_TAG": FlowCreateTag,
	"MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX": FlowCreateCounters, "MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX_OFFSET": FlowCreateOffset,
	"MLX5_IB_ATTR_CREATE_FLOW_FLAGS": FlowCreateFlags, "MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DEFAULT_MISS": FlowCreateDefaultMiss,
	"MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DROP": FlowCreateDrop, "sizeof(struct mlx5_ib_match_params)": MatchParamsSize,
	"MLX5_IB_OBJECT_FLOW_MATCHER": ObjectFlowMatcher, "MLX5_IB_METHOD_FLOW_MATCHER_CREATE": MatcherCreate, "MLX5_IB_METHOD_FLOW_MATCHER_DESTROY": MatcherDestroy,
	"MLX5_IB_ATTR_FLOW_MATCHER_CREATE_HANDLE": MatcherCreateHandle, "MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK": MatcherCreateMask,
	"MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE": MatcherCreateType, "MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA": MatcherCreateCriteria,
	"MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS": MatcherCreateFlags, "MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE": MatcherCreateTable,
	"MLX5_IB_ATTR_FLOW_MATCHER_DESTROY_HANDLE": MatcherDestroyHandle, "IB_UVERBS_WQT_RQ": WQTypeRQ,
	"UVERBS_METHOD_INVOKE_WRITE": DeviceInvokeWrite, "UVERBS_METHOD_INFO_HANDLES": DeviceInfoHandles, "UVERBS_METHOD_QUERY_PORT": DeviceQueryPort,
	"UVERBS_METHOD_GET_CONTEXT": DeviceGetContext, "UVERBS_METHOD_QUERY_CONTEXT": DeviceQueryContext,
	"UVERBS_METHOD_QUERY_GID_TABLE": DeviceQueryGIDTable, "UVERBS_METHOD_QUERY_GID_ENTRY": DeviceQueryGIDEntry,
	"UVERBS_METHOD_PD_DESTROY": PDDestroy, "MLX5_IB_METHOD_PD_QUERY": PDQuery, "UVERBS_METHOD_QUERY_MR": MRQuery, "UVERBS_METHOD_CQ_CREATE": CQCreate, "UVERBS_METHOD_CQ_DESTROY": CQDestroy,
	"UVERBS_METHOD_QP_CREATE": QPCreate, "UVERBS_METHOD_QP_DESTROY": QPDestroy, "UVERBS_METHOD_MR_DESTROY": MRDestroy, "UVERBS_METHOD_ADVISE_MR": MRAdvise,
	"UVERBS_METHOD_ASYNC_EVENT_ALLOC": AsyncEventAlloc, "MLX5_IB_METHOD_UAR_OBJ_ALLOC": UARAlloc, "MLX5_IB_METHOD_UAR_OBJ_DESTROY": UARDestroy,
	"UVERBS_ATTR_UHW_IN": AttrUHWIn, "UVERBS_ATTR_UHW_OUT": AttrUHWOut,
	"UVERBS_ATTR_CORE_IN": InvokeWriteCoreIn, "UVERBS_ATTR_CORE_OUT": InvokeWriteCoreOut, "UVERBS_ATTR_WRITE_CMD": InvokeWriteCmd,
	"UVERBS_ATTR_QUERY_PORT_PORT_NUM": QueryPortNum, "UVERBS_ATTR_QUERY_PORT_RESP": QueryPortRsp,
	"UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS": GetContextVec, "UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT": GetContextSup,
	"UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE": QueryGIDTableEntrySize, "UVERBS_ATTR_QUERY_GID_TABLE_FLAGS": QueryGIDTableFlags,
	"UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES": QueryGIDTableEntries, "UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES": QueryGIDTableNumEntries,
	"UVERBS_ATTR_QUERY_GID_ENTRY_PORT": QueryGIDEntryPort, "UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX": QueryGIDEntryIndex,
	"UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS": QueryGIDEntryFlags, "UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY": QueryGIDEntryRsp,
	"UVERBS_ATTR_CREATE_CQ_HANDLE": CQCreateHandle, "UVERBS_ATTR_CREATE_CQ_CQE": CQCreateCQE, "UVERBS_ATTR_CREATE_CQ_USER_HANDLE": CQCreateUserHandle,
	"UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL": CQCreateChannel, "UVERBS_ATTR_CREATE_CQ_COMP_VECTOR": CQCreateVector, "UVERBS_ATTR_CREATE_CQ_FLAGS": CQCreateFlags,
	"UVERBS_ATTR_CREATE_CQ_RESP_CQE": CQCreateRspCQE, "UVERBS_ATTR_CREATE_CQ_EVENT_FD": CQCreateEventFD,
	"UVERBS_ATTR_DESTROY_CQ_HANDLE": CQDestroyHandle, "UVERBS_ATTR_DESTROY_CQ_RESP": CQDestroyRsp,
	"UVERBS_ATTR_CREATE_QP_HANDLE": QPCreateHandle, "UVERBS_ATTR_CREATE_QP_XRCD_HANDLE": QPCreateXRCD, "UVERBS_ATTR_CREATE_QP_PD_HANDLE": QPCreatePD,
	"UVERBS_ATTR_CREATE_QP_SRQ_HANDLE": QPCreateSRQ, "UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE": QPCreateSendCQ, "UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE": QPCreateRecvCQ,
	"UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE": QPCreateIndTable, "UVERBS_ATTR_CREATE_QP_USER_HANDLE": QPCreateUserHandle, "UVERBS_ATTR_CREATE_QP_CAP": QPCreateCap,
	"UVERBS_ATTR_CREATE_QP_TYPE": QPCreateType, "UVERBS_ATTR_CREATE_QP_FLAGS": QPCreateFlags, "UVERBS_ATTR_CREATE_QP_SOURCE_QPN": QPCreateSourceQPN,
	"UVERBS_ATTR_CREATE_QP_EVENT_FD": QPCreateEventFD, "UVERBS_ATTR_CREATE_QP_RESP_CAP": QPCreateRspCap, "UVERBS_ATTR_CREATE_QP_RESP_QP_NUM": QPCreateRspQPN,
	"UVERBS_ATTR_DESTROY_QP_HANDLE": QPDestroyHandle, "UVERBS_ATTR_DESTROY_QP_RESP": QPDestroyRsp,
	"UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS": QueryContextVec, "UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT": QueryContextSup,
	"MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX": QueryContextResp, "MLX5_IB_ATTR_QUERY_PD_HANDLE": PDQueryHandle, "MLX5_IB_ATTR_QUERY_PD_RESP_PDN": PDQueryPDN,
	"UVERBS_ATTR_QUERY_MR_HANDLE": MRQueryHandle, "UVERBS_ATTR_QUERY_MR_RESP_LKEY": MRQueryLKey, "UVERBS_ATTR_QUERY_MR_RESP_RKEY": MRQueryRKey,
	"UVERBS_ATTR_QUERY_MR_RESP_LENGTH": MRQueryLength, "UVERBS_ATTR_QUERY_MR_RESP_IOVA": MRQueryIOVA,
	"UVERBS_ATTR_DESTROY_PD_HANDLE": PDDestroyHandle, "UVERBS_ATTR_DESTROY_MR_HANDLE": MRDestroyHandle,
	"UVERBS_ATTR_ADVISE_MR_PD_HANDLE": MRAdvisePD, "UVERBS_ATTR_ADVISE_MR_ADVICE": MRAdviseAdvice, "UVERBS_ATTR_ADVISE_MR_FLAGS": MRAdviseFlags,
	"UVERBS_ATTR_ADVISE_MR_SGE_LIST":          MRAdviseRanges,
	"UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE": AsyncEventAllocFD,
	"MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE":       UARAllocHandle, "MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE": UARAllocType, "MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET": UARAllocOffset,
	"MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH": UARAllocLength, "MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID": UARAllocPageID, "MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE": UARDestroyHandle,
	"IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS": CoreSupportOptionalAccess,
	"IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION":   CQCreateTimestamp, "IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN": CQCreateIgnoreOverrun,
	"IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK": QPCreateBlockMulticastLoopback, "IB_UVERBS_QP_CREATE_SCATTER_FCS": QPCreateScatterFCS,
	"IB_UVERBS_QP_CREATE_CVLAN_STRIPPING": QPCreateCVLANStripping, "IB_UVERBS_QP_CREATE_PCI_WRITE_END_PADDING": QPCreatePCIWriteEndPadding,
	"IB_UVERBS_QP_CREATE_SQ_SIG_ALL": QPCreateSQSigAll,
	"IB_USER_VERBS_CMD_QUERY_DEVICE": CmdQueryDevice, "IB_USER_VERBS_CMD_QUERY_PORT": CmdQueryPort, "IB_USER_VERBS_CMD_ALLOC_PD": CmdAllocPD,
	"IB_USER_VERBS_CMD_DEALLOC_PD": CmdDeallocPD, "IB_USER_VERBS_CMD_CREATE_AH": CmdCreateAH, "IB_USER_VERBS_CMD_DESTROY_AH": CmdDestroyAH,
	"IB_USER_VERBS_CMD_REG_MR": CmdRegMR, "IB_USER_VERBS_CMD_REREG_MR": CmdReregMR, "IB_USER_VERBS_CMD_DEREG_MR": CmdDeregMR,
	"IB_USER_VERBS_CMD_ALLOC_MW": CmdAllocMW, "IB_USER_VERBS_CMD_DEALLOC_MW": CmdDeallocMW, "IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL": CmdCreateCompChannel,
	"IB_USER_VERBS_CMD_CREATE_CQ": CmdCreateCQ, "IB_USER_VERBS_CMD_RESIZE_CQ": CmdResizeCQ, "IB_USER_VERBS_CMD_CREATE_QP": CmdCreateQP,
	"IB_USER_VERBS_CMD_QUERY_QP": CmdQueryQP, "IB_USER_VERBS_CMD_MODIFY_QP": CmdModifyQP, "IB_USER_VERBS_CMD_ATTACH_MCAST": CmdAttachMcast,
	"IB_USER_VERBS_CMD_DETACH_MCAST": CmdDetachMcast, "IB_USER_VERBS_CMD_CREATE_SRQ": CmdCreateSRQ, "IB_USER_VERBS_CMD_MODIFY_SRQ": CmdModifySRQ,
	"IB_USER_VERBS_CMD_QUERY_SRQ": CmdQuerySRQ, "IB_USER_VERBS_CMD_OPEN_XRCD": CmdOpenXRCD, "IB_USER_VERBS_CMD_CLOSE_XRCD": CmdCloseXRCD,
	"IB_USER_VERBS_CMD_CREATE_XSRQ": CmdCreateXSRQ, "IB_USER_VERBS_CMD_OPEN_QP": CmdOpenQP, "IB_USER_VERBS_EX_CMD_MODIFY_WQ": CmdModifyWQ,
	"IB_USER_VERBS_EX_CMD_CREATE_FLOW": CmdCreateFlow, "IB_USER_VERBS_EX_CMD_CREATE_WQ": CmdCreateWQ,
	"IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL": CmdCreateRWQIndTbl, "IB_USER_VERBS_EX_CMD_MODIFY_CQ": CmdModifyCQ,
	"IB_USER_VERBS_CMD_FLAG_EXTENDED": CmdExtended,
	"MLX5_IB_ALLOC_UCTX_DEVX":         UctxDEVX, "MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE": SuppUHWQueryDevice,
	"MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD": CQFlag128BPad, "MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX": CQFlagUARPageIndex,
	"MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS": CQFlagRealTimeTS,
	"MLX5_QP_FLAG_SIGNATURE":               QPFlagSignature, "MLX5_QP_FLAG_SCATTER_CQE": QPFlagScatterCQE, "MLX5_QP_FLAG_BFREG_INDEX": QPFlagBFRegIndex,
	"MLX5_QP_FLAG_TYPE_DCT": QPFlagTypeDCT, "MLX5_QP_FLAG_TYPE_DCI": QPFlagTypeDCI, "MLX5_QP_FLAG_ALLOW_SCATTER_CQE": QPFlagAllowScatterCQE,
	"MLX5_QP_FLAG_PACKET_BASED_CREDIT_MODE": QPFlagPacketCredits, "MLX5_QP_FLAG_UAR_PAGE_INDEX": QPFlagUARPageIndex,
	"MLX5_IB_MMAP_REGULAR_PAGE": MmapRegular, "MLX5_IB_MMAP_GET_CONTIGUOUS_PAGES": MmapContiguous, "MLX5_IB_MMAP_WC_PAGE": MmapWC, "MLX5_IB_MMAP_NC_PAGE": MmapNC,
	"MLX5_IB_MMAP_CORE_CLOCK": MmapCoreClock, "MLX5_IB_MMAP_ALLOC_WC": MmapAllocWC, "MLX5_IB_MMAP_CLOCK_INFO": MmapClockInfo, "MLX5_IB_MMAP_DEVICE_MEM": MmapDeviceMem,
	"UVERBS_METHOD_SRQ_CREATE": SRQCreate, "UVERBS_METHOD_SRQ_DESTROY": SRQDestroy, "UVERBS_METHOD_MW_DESTROY": MWDestroy, "UVERBS_METHOD_AH_DESTROY": AHDestroy,
	"UVERBS_METHOD_XRCD_DESTROY": XRCDDestroy, "UVERBS_ATTR_DESTROY_XRCD_HANDLE": XRCDDestroyHandle,
	"UVERBS_ATTR_CREATE_SRQ_HANDLE": SRQCreateHandle, "UVERBS_ATTR_CREATE_SRQ_PD_HANDLE": SRQCreatePD, "UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE": SRQCreateXRCD,
	"UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE": SRQCreateCQ, "UVERBS_ATTR_CREATE_SRQ_USER_HANDLE": SRQCreateUserHandle, "UVERBS_ATTR_CREATE_SRQ_MAX_WR": SRQCreateMaxWR,
	"UVERBS_ATTR_CREATE_SRQ_MAX_SGE": SRQCreateMaxSGE, "UVERBS_ATTR_CREATE_SRQ_LIMIT": SRQCreateLimit, "UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS": SRQCreateMaxTags,
	"UVERBS_ATTR_CREATE_SRQ_TYPE": SRQCreateType, "UVERBS_ATTR_CREATE_SRQ_EVENT_FD": SRQCreateEventFD, "UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR": SRQCreateRspMaxWR,
	"UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE": SRQCreateRspMaxSGE, "UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM": SRQCreateRspNum,
	"UVERBS_ATTR_DESTROY_SRQ_HANDLE": SRQDestroyHandle, "UVERBS_ATTR_DESTROY_SRQ_RESP": SRQDestroyRsp,
	"UVERBS_ATTR_DESTROY_MW_HANDLE": MWDestroyHandle, "UVERBS_ATTR_DESTROY_AH_HANDLE": AHDestroyHandle,
	"IB_UVERBS_SRQT_BASIC": SRQTypeBasic, "IB_UVERBS_SRQT_XRC": SRQTypeXRC, "IB_UVERBS_SRQT_TM": SRQTypeTM,
	"IB_USER_VERBS_CMD_DESTROY_SRQ": CmdDestroySRQ, "MLX5_SRQ_FLAG_SIGNATURE": SRQFlagSignature,
	"MLX5_USER_CMDS_SUPP_UHW_CREATE_AH": SuppUHWCreateAH, "MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_CORE_CLOCK_OFFSET": UctxRespCoreClock,
	"offsetof(struct mlx5_ib_create_ah_resp, reserved)": CreateAHRespLeast,
	"sizeof(struct ib_uverbs_destroy_ah)":               4, "sizeof(struct ib_uverbs_dealloc_mw)": 4,
	"MLX5_IB_CLOCK_INFO_V1": ClockInfoV1, "MLX5_IB_CLOCK_INFO_KERNEL_UPDATING": ClockInfoUpdating,
	"MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD":                        QueryDevCQE128BPad,
	"sizeof(struct mlx5_ib_alloc_ucontext_req)":                        UctxReqV1Size,
	"offsetof(struct ib_uverbs_ex_query_device_resp, odp_caps)":        184,
	"offsetof(struct ib_uverbs_query_port_resp_ex, port_cap_flags2)+2": 42,
	"offsetof(struct ib_uverbs_attr, data)":                            8,
	"offsetof(struct ib_uverbs_attr, flags)":                           4,
	"offsetof(struct mlx5_ib_create_cq, uar_page_index)":               24,
	"offsetof(struct mlx5_ib_create_qp, access_key)":                   40,
	"sizeof(struct ib_uverbs_query_device)":                            8,
	"sizeof(struct ib_uverbs_alloc_pd)":                                8,
	"sizeof(struct ib_uverbs_create_comp_channel)":                     8,
	"sizeof(struct ib_uverbs_dealloc_pd)":                              4,
	"sizeof(struct ib_uverbs_dereg_mr)":                                4,
	"IB_USER_MAD_REGISTER_AGENT":                                       UMADRegisterAgent, "IB_USER_MAD_UNREGISTER_AGENT": UMADUnregisterAgent, "IB_USER_MAD_ENABLE_PKEY": UMADEnablePKey,
	"IB_USER_MAD_REGISTER_AGENT2": UMADRegisterAgent2, "IB_USER_MAD_USER_RMPP": UMADUserRMPP, "IB_USER_MAD_ABI_VERSION": UMADVersion,
	"sizeof(struct ib_user_mad_hdr_old)": UMADHeaderOldSize,
	"VFIO_DEVICE_FLAGS_RESET":            VFIODeviceFlagReset, "VFIO_DEVICE_FLAGS_PCI": VFIODeviceFlagPCI,
	"VFIO_REGION_INFO_FLAG_READ": VFIORegionFlagRead, "VFIO_REGION_INFO_FLAG_WRITE": VFIORegionFlagWrite,
	"VFIO_PCI_BAR0_REGION_INDEX": VFIORegionBAR0, "VFIO_PCI_CONFIG_REGION_INDEX": VFIORegionConfig, "VFIO_PCI_NUM_REGIONS": VFIORegions,
	"VFIO_IRQ_INFO_EVENTFD": VFIOIRQFlagEventFD, "VFIO_PCI_MSIX_IRQ_INDEX": VFIOIRQMSIX, "VFIO_PCI_NUM_IRQS": VFIOIRQs,
	"VFIO_IRQ_SET_DATA_NONE": VFIOIRQDataNone, "VFIO_IRQ_SET_DATA_BOOL": VFIOIRQDataBool, "VFIO_IRQ_SET_DATA_EVENTFD": VFIOIRQDataEventFD,
	"VFIO_IRQ_SET_ACTION_MASK": VFIOIRQActionMask, "VFIO_IRQ_SET_ACTION_UNMASK": VFIOIRQActionUnmask, "VFIO_IRQ_SET_ACTION_TRIGGER": VFIOIRQActionTrigger,
	"VFIO_DMA_MAP_FLAG_READ": VFIODMARead, "VFIO_DMA_MAP_FLAG_WRITE": VFIODMAWrite, "VFIO_DMA_UNMAP_FLAG_ALL": VFIODMAUnmapAll,
	"PCI_VENDOR_ID": 0x00, "PCI_CLASS_PROG": 0x09, "PCI_BASE_ADDRESS_0": 0x10, "PCI_SUBSYSTEM_ID": 0x2e, "PCI_CAPABILITY_LIST": 0x34, "PCI_INTERRUPT_PIN": 0x3d,
	"PCI_COMMAND_MEMORY": PCICommandMemory, "PCI_COMMAND_MASTER": PCICommandMaster, "PCI_COMMAND_PARITY": PCICommandParity,
	"PCI_COMMAND_SERR": PCICommandSERR, "PCI_COMMAND_INTX_DISABLE": PCICommandINTxDisable, "PCI_STATUS_CAP_LIST": PCIStatusCapabilities,
	"PCI_BASE_ADDRESS_MEM_TYPE_64": PCIBARMemory64, "PCI_BASE_ADDRESS_MEM_PREFETCH": PCIBARPrefetch,
	"PCI_CAP_ID_EXP": PCICapExpress, "PCI_CAP_ID_MSIX": PCICapMSIX, "PCI_EXP_DEVCAP_RBER": PCIExpressRoleBased, "PCI_EXP_DEVCAP_FLR": PCIExpressFLR,
	"PCI_EXP_DEVCTL": 8, "PCI_EXP_DEVCTL_BCR_FLR": PCIExpressDoFLR, "PCI_EXP_LNKCAP2": 0x2c, "PCI_EXP_LNKCTL2": 0x30,
	"PCI_MSIX_FLAGS": 2, "PCI_MSIX_FLAGS_ENABLE": PCIMSIXEnable, "PCI_MSIX_FLAGS_MASKALL": PCIMSIXMaskAll, "PCI_CAP_MSIX_SIZEOF": PCIMSIXCapSize,
}

// The distribution's kernel headers agree with the tables, as a C compiler lays the structures out,
// and with the numbers.
func TestAgainstKernelHeaders(t *testing.T) {
	h := layout.Header{Files: []string{"rdma/rdma_user_ioctl_cmds.h", "rdma/ib_user_ioctl_cmds.h", "rdma/ib_user_ioctl_verbs.h",
		"rdma/ib_user_verbs.h", "rdma/mlx5-abi.h", "rdma/mlx5_user_ioctl_cmds.h", "rdma/mlx5_user_ioctl_verbs.h",
		"linux/netlink.h", "rdma/rdma_netlink.h", "linux/vfio.h", "linux/pci_regs.h", "linux/in.h", "rdma/rdma_user_cm.h", "rdma/ib_user_mad.h", "rdma/rdma_user_ioctl.h"}}
	// The two requests of multicast have one form.
	members := append(tables(t).Members(""), layout.Member{Struct: "ib_uverbs_detach_mcast", Width: AttachMcastSize})
	measured, err := h.Measure(members)
	if errors.Is(err, layout.ErrMissing) && os.Getenv("RDMASIM_NEED_HEADERS") != "1" {
		t.Skipf("needs the packages gcc and linux-libc-dev: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range measured {
		if m != members[i] {
			t.Errorf("the header says %v, we say %v", m, members[i])
		}
	}
	maps.Copy(values, netlinkValues)
	names := slices.Sorted(maps.Keys(values))
	got, err := h.Values(names)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		if got[i] != values[name] {
			t.Errorf("%s: the header says %d, we say %d", name, got[i], values[name])
		}
	}
}

func tables(t *testing.T) *layout.Package {
	t.Helper()
	p, err := layout.Read("layouts")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The files that are generated are what the tables give.
func TestGenerated(t *testing.T) {
	stale, err := layout.Stale(".")
	if err != nil || len(stale) != 0 {
		t.Errorf("run go generate ./uapi: %v differ from the tables, %v", stale, err)
	}
}

// Every method of a field reads what it wrote, in the bytes that the table names and in no other.
func TestFieldsKeepToTheirBytes(t *testing.T) {
	all := tables(t).Views()
	if len(all) != len(views) {
		t.Fatalf("%d views in the tables, %d in the list", len(all), len(views))
	}
	for i, v := range all {
		for _, f := range v.Fields {
			view := reflect.ValueOf(make([]byte, views[i].size)).Convert(reflect.TypeOf(views[i].v))
			if off, width := place(view, f.Name); off != f.Offset || 8*width != f.Width() {
				t.Errorf("%s.%s: bytes %d+%d, want %d and %d bits", v.Name, f.Name, off, width, f.Offset, f.Width())
			}
		}
	}
}

// place is which bytes of a view a method reads; a number must read as it was written.
func place(view reflect.Value, method string) (off, size int) {
	get, set := view.MethodByName(method), view.MethodByName("Set"+method)
	if !set.IsValid() { // part of the structure
		part := get.Call(nil)[0]
		return int(part.Pointer() - view.Pointer()), part.Len()
	}
	x := reflect.New(get.Type().Out(0)).Elem()
	x.SetUint(1<<(8*x.Type().Size()) - 2) // no byte is 0
	set.Call([]reflect.Value{x})
	if get.Call(nil)[0].Uint() != x.Uint() {
		return -1, -1
	}
	for i, b := range view.Bytes() {
		if b != 0 {
			if size == 0 {
				off = i
			}
			size = i + 1 - off
		}
	}
	return off, size
}
