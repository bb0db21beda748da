package prm

// Opcode is a command opcode.
type Opcode uint16

// Commands (mlx5_ifc, MLX5_CMD_OP_*).
const (
	OpQueryHCACap          Opcode = 0x100
	OpQueryAdapter         Opcode = 0x101
	OpInitHCA              Opcode = 0x102
	OpTeardownHCA          Opcode = 0x103
	OpEnableHCA            Opcode = 0x104
	OpDisableHCA           Opcode = 0x105
	OpQueryPages           Opcode = 0x107
	OpManagePages          Opcode = 0x108
	OpSetHCACap            Opcode = 0x109
	OpQueryISSI            Opcode = 0x10a
	OpSetISSI              Opcode = 0x10b
	OpCreateMKey           Opcode = 0x200
	OpQueryMKey            Opcode = 0x201
	OpDestroyMKey          Opcode = 0x202
	OpQuerySpecialContexts Opcode = 0x203
	OpAllocMemic           Opcode = 0x205
	OpDeallocMemic         Opcode = 0x206
	OpCreateEQ             Opcode = 0x301
	OpDestroyEQ            Opcode = 0x302
	OpQueryEQ              Opcode = 0x303
	OpCreateCQ             Opcode = 0x400
	OpDestroyCQ            Opcode = 0x401
	OpQueryCQ              Opcode = 0x402
	OpModifyCQ             Opcode = 0x403
	OpCreateQP             Opcode = 0x500
	OpDestroyQP            Opcode = 0x501
	OpRst2InitQP           Opcode = 0x502
	OpInit2RTRQP           Opcode = 0x503
	OpRTR2RTSQP            Opcode = 0x504
	OpRTS2RTSQP            Opcode = 0x505
	OpSQErr2RTSQP          Opcode = 0x506
	Op2ErrQP               Opcode = 0x507
	// RTS to SQD and SQD to SQD: Linux has no names for these numbers, which no driver
	// sends; a device here has them only when its profile says so.
	OpRTS2SQDQP              Opcode = 0x508
	OpSQD2SQDQP              Opcode = 0x509
	Op2RstQP                 Opcode = 0x50a
	OpQueryQP                Opcode = 0x50b
	OpSQDRTSQP               Opcode = 0x50c
	OpInit2InitQP            Opcode = 0x50e
	OpCreateXRCSRQ           Opcode = 0x705
	OpDestroyXRCSRQ          Opcode = 0x706
	OpQueryXRCSRQ            Opcode = 0x707
	OpArmXRCSRQ              Opcode = 0x708
	OpQueryVportState        Opcode = 0x750
	OpQueryNICVportContext   Opcode = 0x754
	OpModifyNICVportContext  Opcode = 0x755
	OpQueryRoCEAddress       Opcode = 0x760
	OpSetRoCEAddress         Opcode = 0x761
	OpQueryHCAVportContext   Opcode = 0x762
	OpModifyHCAVportContext  Opcode = 0x763
	OpQueryHCAVportGID       Opcode = 0x764
	OpQueryHCAVportPKey      Opcode = 0x765
	OpQueryVportCounter      Opcode = 0x770
	OpAllocQCounter          Opcode = 0x771
	OpDeallocQCounter        Opcode = 0x772
	OpQueryQCounter          Opcode = 0x773
	OpAllocPD                Opcode = 0x800
	OpDeallocPD              Opcode = 0x801
	OpAllocUAR               Opcode = 0x802
	OpDeallocUAR             Opcode = 0x803
	OpAccessReg              Opcode = 0x805
	OpAttachToMCG            Opcode = 0x806
	OpDetachFromMCG          Opcode = 0x807
	OpNOP                    Opcode = 0x80d
	OpAllocXRCD              Opcode = 0x80e
	OpDeallocXRCD            Opcode = 0x80f
	OpAllocTransportDomain   Opcode = 0x816
	OpDeallocTransportDomain Opcode = 0x817
	OpCreateRMP              Opcode = 0x90c
	OpModifyRMP              Opcode = 0x90d
	OpDestroyRMP             Opcode = 0x90e
	OpQueryRMP               Opcode = 0x90f
)

// cmdInfo is what the device must know of a command before it looks at fields.
type cmdInfo struct {
	op      Opcode
	name    string
	in, out int
}

// QueryQPOutLeast is the shortest out mailbox of QUERY_QP: up to the end of the context. How much
// follows differs: Linux 6.1 has 16 bytes, Linux 6.12 QueryQPOutSize.
const QueryQPOutLeast = 0x18 + QPCSize

// commands in the order of their opcodes.
var commands = [...]cmdInfo{
	{OpQueryHCACap, "QUERY_HCA_CAP", QueryHCACapInSize, QueryHCACapOutSize},
	{OpQueryAdapter, "QUERY_ADAPTER", QueryAdapterInSize, QueryAdapterOutSize},
	{OpInitHCA, "INIT_HCA", InitHCAInSize, InitHCAOutSize},
	{OpTeardownHCA, "TEARDOWN_HCA", TeardownHCAInSize, TeardownHCAOutSize},
	{OpEnableHCA, "ENABLE_HCA", EnableHCAInSize, EnableHCAOutSize},
	{OpDisableHCA, "DISABLE_HCA", DisableHCAInSize, DisableHCAOutSize},
	{OpQueryPages, "QUERY_PAGES", QueryPagesInSize, QueryPagesOutSize},
	{OpManagePages, "MANAGE_PAGES", ManagePagesInSize, ManagePagesOutSize},
	{OpSetHCACap, "SET_HCA_CAP", SetHCACapInSize, SetHCACapOutSize},
	{OpQueryISSI, "QUERY_ISSI", QueryISSIInSize, QueryISSIOutSize},
	{OpSetISSI, "SET_ISSI", SetISSIInSize, SetISSIOutSize},
	{OpCreateMKey, "CREATE_MKEY", CreateMKeyInSize, CreateMKeyOutSize},
	{OpQueryMKey, "QUERY_MKEY", QueryMKeyInSize, QueryMKeyOutSize},
	{OpDestroyMKey, "DESTROY_MKEY", DestroyMKeyInSize, DestroyMKeyOutSize},
	{OpQuerySpecialContexts, "QUERY_SPECIAL_CONTEXTS", QuerySpecialContextsInSize, QuerySpecialContextsOutSize},
	{OpAllocMemic, "ALLOC_MEMIC", AllocMemicInSize, AllocMemicOutSize},
	{OpDeallocMemic, "DEALLOC_MEMIC", DeallocMemicInSize, DeallocMemicOutSize},
	{OpCreateEQ, "CREATE_EQ", CreateEQInSize, CreateEQOutSize},
	{OpDestroyEQ, "DESTROY_EQ", DestroyEQInSize, DestroyEQOutSize},
	{OpQueryEQ, "QUERY_EQ", QueryEQInSize, QueryEQOutSize},
	{OpCreateCQ, "CREATE_CQ", CreateCQInSize, CreateCQOutSize},
	{OpDestroyCQ, "DESTROY_CQ", DestroyCQInSize, DestroyCQOutSize},
	{OpQueryCQ, "QUERY_CQ", QueryCQInSize, QueryCQOutSize},
	{OpModifyCQ, "MODIFY_CQ", ModifyCQInSize, ModifyCQOutSize},
	{OpCreateQP, "CREATE_QP", CreateQPInSize, CreateQPOutSize},
	{OpDestroyQP, "DESTROY_QP", DestroyQPInSize, DestroyQPOutSize},
	{OpRst2InitQP, "RST2INIT_QP", ModifyQPInSize, ModifyQPOutSize},
	{OpInit2RTRQP, "INIT2RTR_QP", ModifyQPInSize, ModifyQPOutSize},
	{OpRTR2RTSQP, "RTR2RTS_QP", ModifyQPInSize, ModifyQPOutSize},
	{OpRTS2RTSQP, "RTS2RTS_QP", ModifyQPInSize, ModifyQPOutSize},
	{OpSQErr2RTSQP, "SQERR2RTS_QP", ModifyQPInSize, ModifyQPOutSize},
	{Op2ErrQP, "2ERR_QP", Cmd2ErrQPInSize, Cmd2ErrQPOutSize},
	{OpRTS2SQDQP, "RTS2SQD_QP", ModifyQPInSize, ModifyQPOutSize},
	{OpSQD2SQDQP, "SQD2SQD_QP", ModifyQPInSize, ModifyQPOutSize},
	{Op2RstQP, "2RST_QP", Cmd2RstQPInSize, Cmd2RstQPOutSize},
	{OpQueryQP, "QUERY_QP", QueryQPInSize, QueryQPOutLeast},
	{OpSQDRTSQP, "SQD_RTS_QP", ModifyQPInSize, ModifyQPOutSize},
	{OpInit2InitQP, "INIT2INIT_QP", ModifyQPInSize, ModifyQPOutSize},
	{OpCreateXRCSRQ, "CREATE_XRC_SRQ", CreateXRCSRQInSize, CreateXRCSRQOutSize},
	{OpDestroyXRCSRQ, "DESTROY_XRC_SRQ", DestroyXRCSRQInSize, DestroyXRCSRQOutSize},
	{OpQueryXRCSRQ, "QUERY_XRC_SRQ", QueryXRCSRQInSize, QueryXRCSRQOutSize},
	{OpArmXRCSRQ, "ARM_XRC_SRQ", ArmXRCSRQInSize, ArmXRCSRQOutSize},
	{OpQueryVportState, "QUERY_VPORT_STATE", QueryVportStateInSize, QueryVportStateOutSize},
	{OpQueryNICVportContext, "QUERY_NIC_VPORT_CONTEXT", QueryNICVportContextInSize, QueryNICVportContextOutSize},
	{OpModifyNICVportContext, "MODIFY_NIC_VPORT_CONTEXT", ModifyNICVportContextInSize, ModifyNICVportContextOutSize},
	{OpQueryRoCEAddress, "QUERY_ROCE_ADDRESS", QueryRoCEAddressInSize, QueryRoCEAddressOutSize},
	{OpSetRoCEAddress, "SET_ROCE_ADDRESS", SetRoCEAddressInSize, SetRoCEAddressOutSize},
	{OpQueryHCAVportContext, "QUERY_HCA_VPORT_CONTEXT", QueryHCAVportContextInSize, QueryHCAVportContextOutSize},
	{OpModifyHCAVportContext, "MODIFY_HCA_VPORT_CONTEXT", ModifyHCAVportContextInSize, ModifyHCAVportContextOutSize},
	{OpQueryHCAVportGID, "QUERY_HCA_VPORT_GID", QueryHCAVportGIDInSize, QueryHCAVportGIDOutSize},
	{OpQueryHCAVportPKey, "QUERY_HCA_VPORT_PKEY", QueryHCAVportPKeyInSize, QueryHCAVportPKeyOutSize},
	{OpQueryVportCounter, "QUERY_VPORT_COUNTER", QueryVportCounterInSize, QueryVportCounterOutSize},
	{OpAllocQCounter, "ALLOC_Q_COUNTER", AllocQCounterInSize, AllocQCounterOutSize},
	{OpDeallocQCounter, "DEALLOC_Q_COUNTER", DeallocQCounterInSize, DeallocQCounterOutSize},
	{OpQueryQCounter, "QUERY_Q_COUNTER", QueryQCounterInSize, QueryQCounterOutSize},
	{OpAllocPD, "ALLOC_PD", AllocPDInSize, AllocPDOutSize},
	{OpDeallocPD, "DEALLOC_PD", DeallocPDInSize, DeallocPDOutSize},
	{OpAllocUAR, "ALLOC_UAR", AllocUARInSize, AllocUAROutSize},
	{OpDeallocUAR, "DEALLOC_UAR", DeallocUARInSize, DeallocUAROutSize},
	{OpAccessReg, "ACCESS_REG", AccessRegInSize, AccessRegOutSize},
	{OpAttachToMCG, "ATTACH_TO_MCG", AttachToMCGInSize, AttachToMCGOutSize},
	{OpDetachFromMCG, "DETACH_FROM_MCG", DetachFromMCGInSize, DetachFromMCGOutSize},
	{OpNOP, "NOP", NOPInSize, NOPOutSize},
	{OpAllocXRCD, "ALLOC_XRCD", AllocXRCDInSize, AllocXRCDOutSize},
	{OpDeallocXRCD, "DEALLOC_XRCD", DeallocXRCDInSize, DeallocXRCDOutSize},
	{OpAllocTransportDomain, "ALLOC_TRANSPORT_DOMAIN", AllocTransportDomainInSize, AllocTransportDomainOutSize},
	{OpDeallocTransportDomain, "DEALLOC_TRANSPORT_DOMAIN", DeallocTransportDomainInSize, DeallocTransportDomainOutSize},
	{OpCreateRMP, "CREATE_RMP", CreateRMPInSize, CreateRMPOutSize},
	{OpModifyRMP, "MODIFY_RMP", ModifyRMPInSize, ModifyRMPOutSize},
	{OpDestroyRMP, "DESTROY_RMP", DestroyRMPInSize, DestroyRMPOutSize},
	{OpQueryRMP, "QUERY_RMP", QueryRMPInSize, QueryRMPOutSize},
}
