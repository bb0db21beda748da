package uapi

import "math"

// Kind is what an attribute carries.
type Kind uint8

// Kinds of attributes (enum uverbs_attr_type with the access of objects).
const (
	PtrIn     Kind = iota + 1
	PtrOut         // room for an answer
	ObjectIn       // handle
	ObjectNew      // answered with a handle
	FDIn           // descriptor of a uverbs file
	FDNew          // answered with a descriptor
)

// Spec says what an attribute may look like.
type Spec struct {
	ID        uint16
	Kind      Kind
	Min, Max  uint16 // length of PtrIn and PtrOut
	Trailing  bool   // longer is right if the rest is zero (UVERBS_ATTR_STRUCT)
	Mandatory bool
}

// Method is a method of an object with the attributes that it knows.
type Method struct {
	Object, ID uint16
	Name       string
	Attrs      []Spec
	uhw        bool
}

func in(id uint16, size uint16) Spec {
	return Spec{ID: id, Kind: PtrIn, Min: size, Max: size, Mandatory: true}
}

func out(id uint16, size uint16) Spec {
	return Spec{ID: id, Kind: PtrOut, Min: size, Max: size, Mandatory: true}
}

// flags are 4 or 8 bytes (UVERBS_ATTR_FLAGS_IN).
func flags(id uint16) Spec { return Spec{ID: id, Kind: PtrIn, Min: 4, Max: 8} }

// outStruct is UVERBS_ATTR_STRUCT: least is the end of the last member that must fit.
func outStruct(id, least, size uint16) Spec {
	return Spec{ID: id, Kind: PtrOut, Min: least, Max: size, Trailing: true, Mandatory: true}
}

func object(id uint16, k Kind) Spec { return Spec{ID: id, Kind: k, Mandatory: true} }

func (s Spec) optional() Spec {
	s.Mandatory = false
	return s
}

func (s Spec) mandatory() Spec {
	s.Mandatory = true
	return s
}

// anyLen is a length from least up (UVERBS_ATTR_MIN_SIZE).
func anyLen(id uint16, k Kind, least uint16) Spec {
	return Spec{ID: id, Kind: k, Min: least, Max: math.MaxUint16}
}

var (
	uhwIn  = anyLen(AttrUHWIn, PtrIn, 0)
	uhwOut = anyLen(AttrUHWOut, PtrOut, 0)
)

// Least lengths of commands and answers of DEVX: general_obj_in_cmd_hdr and _out_ (hw/mlx5/devx.c).
const devxIn, devxOut = 16, 16

// methods is what is known, as the declarations of the kernel have it
// (core/uverbs_std_types_*.c, hw/mlx5/main.c).
var methods = [...]Method{
	{ObjectDevice, DeviceInvokeWrite, "INVOKE_WRITE", []Spec{
		in(InvokeWriteCmd, 8), anyLen(InvokeWriteCoreIn, PtrIn, 4), anyLen(InvokeWriteCoreOut, PtrOut, 0), uhwIn, uhwOut}, true},
	{ObjectDevice, DeviceQueryPort, "QUERY_PORT", []Spec{
		in(QueryPortNum, 8), outStruct(QueryPortRsp, 42, QueryPortRespExSize)}, false},
	{ObjectDevice, DeviceGetContext, "GET_CONTEXT", []Spec{
		out(GetContextVec, 4).optional(), out(GetContextSup, 8).optional(), uhwIn, uhwOut}, true},
	{ObjectDevice, DeviceQueryContext, "QUERY_CONTEXT", []Spec{
		out(QueryContextVec, 4).optional(), out(QueryContextSup, 8).optional(), anyLen(QueryContextResp, PtrOut, 0)}, true},
	{ObjectDevice, DeviceQueryGIDTable, "QUERY_GID_TABLE", []Spec{
		in(QueryGIDTableEntrySize, 8), flags(QueryGIDTableFlags),
		{ID: QueryGIDTableEntries, Kind: PtrOut, Max: math.MaxUint16, Mandatory: true}, out(QueryGIDTableNumEntries, 8)}, false},
	{ObjectDevice, DeviceQueryGIDEntry, "QUERY_GID_ENTRY", []Spec{
		in(QueryGIDEntryPort, 8), in(QueryGIDEntryIndex, 8),
		{ID: QueryGIDEntryFlags, Kind: PtrIn, Min: 4, Max: 8, Mandatory: true}, outStruct(QueryGIDEntryRsp, GIDEntrySize, GIDEntrySize)}, false},
	{ObjectPD, PDDestroy, "PD_DESTROY", []Spec{object(PDDestroyHandle, ObjectIn)}, false},
	{ObjectPD, PDQuery, "PD_QUERY", []Spec{object(PDQueryHandle, ObjectIn), out(PDQueryPDN, 4)}, false},
	{ObjectCQ, CQCreate, "CQ_CREATE", []Spec{
		object(CQCreateHandle, ObjectNew), in(CQCreateCQE, 4), in(CQCreateUserHandle, 8), object(CQCreateChannel, FDIn).optional(),
		in(CQCreateVector, 4), flags(CQCreateFlags), out(CQCreateRspCQE, 4), object(CQCreateEventFD, FDIn).optional(), uhwIn, uhwOut}, true},
	{ObjectCQ, CQDestroy, "CQ_DESTROY", []Spec{object(CQDestroyHandle, ObjectIn), out(CQDestroyRsp, DestroyCQRespSize)}, false},
	{ObjectQP, QPCreate, "QP_CREATE", []Spec{
		object(QPCreateHandle, ObjectNew), object(QPCreateXRCD, ObjectIn).optional(), object(QPCreatePD, ObjectIn).optional(),
		object(QPCreateSRQ, ObjectIn).optional(), object(QPCreateSendCQ, ObjectIn).optional(), object(QPCreateRecvCQ, ObjectIn).optional(),
		object(QPCreateIndTable, ObjectIn).optional(), in(QPCreateUserHandle, 8),
		{ID: QPCreateCap, Kind: PtrIn, Min: QPCapSize, Max: QPCapSize, Trailing: true, Mandatory: true},
		in(QPCreateType, 8), flags(QPCreateFlags), in(QPCreateSourceQPN, 4).optional(), object(QPCreateEventFD, FDIn).optional(),
		outStruct(QPCreateRspCap, QPCapSize, QPCapSize), out(QPCreateRspQPN, 4), uhwIn, uhwOut}, true},
	{ObjectQP, QPDestroy, "QP_DESTROY", []Spec{object(QPDestroyHandle, ObjectIn), out(QPDestroyRsp, DestroyQPRespSize)}, false},
	{ObjectMR, MRDestroy, "MR_DESTROY", []Spec{object(MRDestroyHandle, ObjectIn)}, false},
	{ObjectMR, MRRegDmabuf, "REG_DMABUF_MR", []Spec{
		object(RegDmabufHandle, ObjectNew), object(RegDmabufPD, ObjectIn), in(RegDmabufOffset, 8), in(RegDmabufLength, 8), in(RegDmabufIova, 8),
		in(RegDmabufFD, 4), flags(RegDmabufAccess), out(RegDmabufLKey, 4), out(RegDmabufRKey, 4)}, false},
	{ObjectMR, DMMRReg, "DM_MR_REG", []Spec{
		object(DMMRHandle, ObjectNew), in(DMMROffset, 8), in(DMMRLength, 8), object(DMMRPD, ObjectIn),
		{ID: DMMRAccess, Kind: PtrIn, Min: 4, Max: 8, Mandatory: true}, object(DMMRDM, ObjectIn), out(DMMRLKey, 4), out(DMMRRKey, 4)}, false},
	{ObjectMR, MRAdvise, "ADVISE_MR", []Spec{
		object(MRAdvisePD, ObjectIn), in(MRAdviseAdvice, 8), {ID: MRAdviseFlags, Kind: PtrIn, Min: 4, Max: 8, Mandatory: true},
		anyLen(MRAdviseRanges, PtrIn, SGESize).mandatory()}, false},
	{ObjectMR, MRQuery, "QUERY_MR", []Spec{
		object(MRQueryHandle, ObjectIn), out(MRQueryLKey, 4), out(MRQueryRKey, 4), out(MRQueryLength, 8).optional(), out(MRQueryIOVA, 8).optional()}, false},
	{ObjectDM, DMAlloc, "DM_ALLOC", []Spec{
		object(DMAllocHandle, ObjectNew), in(DMAllocLength, 8), in(DMAllocAlignment, 4),
		out(DMAllocStartOffset, 8), out(DMAllocPageIndex, 2).optional(), in(DMAllocType, 8).optional()}, false},
	{ObjectDM, DMFree, "DM_FREE", []Spec{object(DMFreeHandle, ObjectIn)}, false},
	{ObjectDM, DMQuery, "DM_QUERY", []Spec{
		object(DMQueryHandle, ObjectIn), out(DMQueryStartOffset, 8), out(DMQueryPageIndex, 2), out(DMQueryLength, 8)}, false},
	{ObjectDM, DMMapOpAddr, "DM_MAP_OP_ADDR", []Spec{
		object(DMMapOpHandle, ObjectIn), in(DMMapOpOp, 1), out(DMMapOpStartOffset, 8), out(DMMapOpPageIndex, 2)}, false},
	{ObjectDevice, MLX5QueryPort, "MLX5_QUERY_PORT", []Spec{in(MLX5QueryPortNum, 4), outStruct(MLX5QueryPortRsp, 8, MLX5PortSize)}, false},
	{ObjectWQ, WQCreate, "WQ_CREATE", []Spec{
		object(WQCreateHandle, ObjectNew), object(WQCreatePD, ObjectIn), {ID: WQCreateType, Kind: PtrIn, Min: 4, Max: 8, Mandatory: true},
		in(WQCreateUserHandle, 8), in(WQCreateMaxWR, 4), in(WQCreateMaxSGE, 4), flags(WQCreateFlags), object(WQCreateCQ, ObjectIn),
		object(WQCreateEventFD, FDIn).optional(), out(WQCreateRspMaxWR, 4), out(WQCreateRspMaxSGE, 4), out(WQCreateRspNum, 4).optional(), uhwIn, uhwOut}, true},
	{ObjectWQ, WQDestroy, "WQ_DESTROY", []Spec{object(WQDestroyHandle, ObjectIn), out(WQDestroyRsp, 4)}, false},
	{ObjectRWQIndTbl, WQTableDestroy, "RWQ_IND_TBL_DESTROY", []Spec{object(WQTableDestroyHandle, ObjectIn)}, false},
	{ObjectFlow, FlowDestroy, "FLOW_DESTROY", []Spec{object(FlowDestroyHandle, ObjectIn)}, false},
	{ObjectFlow, FlowCreate, "MLX5_CREATE_FLOW", []Spec{
		object(FlowCreateHandle, ObjectNew), anyLen(FlowCreateValue, PtrIn, 1).mandatory(), object(FlowCreateMatcher, ObjectIn), object(FlowCreateQP, ObjectIn).optional(),
		object(FlowCreateDEVX, ObjectIn).optional(), anyLen(FlowCreateActions, PtrIn, 0), in(FlowCreateTag, 4).optional(), anyLen(FlowCreateCounters, PtrIn, 0),
		anyLen(FlowCreateOffset, PtrIn, 0), flags(FlowCreateFlags)}, false},
	{ObjectFlowAction, ModifyHeaderCreate, "FLOW_ACTION_CREATE_MODIFY_HEADER", []Spec{
		object(ModifyHeaderHandle, ObjectNew), anyLen(ModifyHeaderActions, PtrIn, 8).mandatory(), {ID: ModifyHeaderTable, Kind: PtrIn, Min: 4, Max: 8, Mandatory: true}}, false},
	{ObjectFlowAction, ReformatCreate, "FLOW_ACTION_CREATE_PACKET_REFORMAT", []Spec{
		object(ReformatHandle, ObjectNew), anyLen(ReformatData, PtrIn, 1), {ID: ReformatType, Kind: PtrIn, Min: 4, Max: 8, Mandatory: true},
		{ID: ReformatTable, Kind: PtrIn, Min: 4, Max: 8, Mandatory: true}}, false},
	{ObjectFlowAction, FlowActionDestroy, "FLOW_ACTION_DESTROY", []Spec{object(FlowActionDestroyHandle, ObjectIn)}, false},
	{ObjectFlowMatcher, MatcherCreate, "FLOW_MATCHER_CREATE", []Spec{
		object(MatcherCreateHandle, ObjectNew), {ID: MatcherCreateMask, Kind: PtrIn, Min: 1, Max: MatchParamsSize, Mandatory: true},
		in(MatcherCreateType, 2), in(MatcherCreateCriteria, 1), flags(MatcherCreateFlags), {ID: MatcherCreateTable, Kind: PtrIn, Min: 4, Max: 8}}, false},
	{ObjectFlowMatcher, MatcherDestroy, "FLOW_MATCHER_DESTROY", []Spec{object(MatcherDestroyHandle, ObjectIn)}, false},
	{ObjectMW, MWDestroy, "MW_DESTROY", []Spec{object(MWDestroyHandle, ObjectIn)}, false},
	{ObjectAH, AHDestroy, "AH_DESTROY", []Spec{object(AHDestroyHandle, ObjectIn)}, false},
	{ObjectSRQ, SRQCreate, "SRQ_CREATE", []Spec{
		object(SRQCreateHandle, ObjectNew), object(SRQCreatePD, ObjectIn), in(SRQCreateType, 8), in(SRQCreateUserHandle, 8),
		in(SRQCreateMaxWR, 4), in(SRQCreateMaxSGE, 4), in(SRQCreateLimit, 4), object(SRQCreateXRCD, ObjectIn).optional(),
		object(SRQCreateCQ, ObjectIn).optional(), in(SRQCreateMaxTags, 4).optional(), object(SRQCreateEventFD, FDIn).optional(),
		out(SRQCreateRspMaxWR, 4), out(SRQCreateRspMaxSGE, 4), out(SRQCreateRspNum, 4).optional(), uhwIn, uhwOut}, true},
	{ObjectSRQ, SRQDestroy, "SRQ_DESTROY", []Spec{object(SRQDestroyHandle, ObjectIn), out(SRQDestroyRsp, DestroySRQRespSize)}, false},
	{ObjectXRCD, XRCDDestroy, "XRCD_DESTROY", []Spec{object(XRCDDestroyHandle, ObjectIn)}, false},
	{ObjectAsyncEvent, AsyncEventAlloc, "ASYNC_EVENT_ALLOC", []Spec{object(AsyncEventAllocFD, FDNew)}, false},
	{ObjectDEVX, DEVXOther, "DEVX_OTHER", []Spec{
		anyLen(DEVXOtherIn, PtrIn, devxIn).mandatory(), anyLen(DEVXOtherOut, PtrOut, devxOut).mandatory()}, false},
	{ObjectDEVXObj, DEVXObjCreate, "DEVX_OBJ_CREATE", []Spec{object(DEVXObjCreateHandle, ObjectNew),
		anyLen(DEVXObjCreateIn, PtrIn, devxIn).mandatory(), anyLen(DEVXObjCreateOut, PtrOut, devxOut).mandatory()}, false},
	{ObjectDEVXObj, DEVXObjDestroy, "DEVX_OBJ_DESTROY", []Spec{object(DEVXObjDestroyHandle, ObjectIn)}, false},
	{ObjectDEVXObj, DEVXObjModify, "DEVX_OBJ_MODIFY", []Spec{object(DEVXObjModifyHandle, ObjectIn),
		anyLen(DEVXObjModifyIn, PtrIn, devxIn).mandatory(), anyLen(DEVXObjModifyOut, PtrOut, devxOut).mandatory()}, false},
	{ObjectDEVXObj, DEVXObjQuery, "DEVX_OBJ_QUERY", []Spec{object(DEVXObjModifyHandle, ObjectIn),
		anyLen(DEVXObjModifyIn, PtrIn, devxIn).mandatory(), anyLen(DEVXObjModifyOut, PtrOut, devxOut).mandatory()}, false},
	{ObjectDEVX, DEVXQueryEQN, "DEVX_QUERY_EQN", []Spec{in(DEVXEQNVector, 4), out(DEVXEQNNumber, 4)}, false},
	{ObjectDEVXUmem, UmemReg, "DEVX_UMEM_REG", []Spec{object(UmemRegHandle, ObjectNew), in(UmemRegAddr, 8), in(UmemRegLen, 8), flags(UmemRegAccess),
		in(UmemRegPageSizes, 8).optional(), in(UmemRegDmabuf, 4).optional(), out(UmemRegID, 4)}, false},
	{ObjectDEVXUmem, UmemDereg, "DEVX_UMEM_DEREG", []Spec{object(UmemDeregHandle, ObjectIn)}, false},
	{ObjectUAR, UARAlloc, "UAR_OBJ_ALLOC", []Spec{
		object(UARAllocHandle, ObjectNew), in(UARAllocType, 8), out(UARAllocOffset, 8), out(UARAllocLength, 4), out(UARAllocPageID, 4)}, false},
	{ObjectUAR, UARDestroy, "UAR_OBJ_DESTROY", []Spec{object(UARDestroyHandle, ObjectIn)}, false},
}

// Methods lists the methods that Decode knows.
func Methods() []Method { return append([]Method(nil), methods[:]...) }

// find looks a method up; nil: the kernel has none.
func find(object, id uint16) *Method {
	for i := range methods {
		if m := &methods[i]; m.Object == object && m.ID == id {
			return m
		}
	}
	return nil
}

// spec looks an attribute up, as an index; -1: the method knows none.
func (m *Method) spec(id uint16) int {
	for i := range m.Attrs {
		if m.Attrs[i].ID == id {
			return i
		}
	}
	return -1
}
