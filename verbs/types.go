package verbs

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// ErrnoOf finds the errno in err: 0 for nil, -1 for an error that holds none.
func ErrnoOf(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	var e syscall.Errno
	if errors.As(err, &e) {
		return e
	}
	return ^syscall.Errno(0)
}

// GID is a global identifier, 16 bytes in network order.
type GID [16]byte

func (g GID) String() string { return netip.AddrFrom16(g).String() }

// GIDType as in ibv_gid_entry.
type GIDType uint32

// GID types.
const (
	GIDTypeIB GIDType = iota
	GIDTypeRoCEv1
	GIDTypeRoCEv2
)

// GIDEntry is ibv_gid_entry.
type GIDEntry struct {
	GID       GID
	Index     uint32
	Port      uint32
	Type      GIDType
	NetDevice uint32
}

// AccessFlags are IBV_ACCESS_*.
type AccessFlags uint32

// Access flags.
const (
	AccessLocalWrite      AccessFlags = 1 << 0
	AccessRemoteWrite     AccessFlags = 1 << 1
	AccessRemoteRead      AccessFlags = 1 << 2
	AccessRemoteAtomic    AccessFlags = 1 << 3
	AccessMWBind          AccessFlags = 1 << 4
	AccessZeroBased       AccessFlags = 1 << 5
	AccessOnDemand        AccessFlags = 1 << 6
	AccessHugetlb         AccessFlags = 1 << 7
	AccessFlushGlobal     AccessFlags = 1 << 8
	AccessFlushPersistent AccessFlags = 1 << 9
	AccessRelaxedOrdering AccessFlags = 1 << 20
	AccessOptionalFirst   AccessFlags = 1 << 20
	AccessOptionalRange   AccessFlags = 0x3ff00000
)

// QPType is IBV_QPT_*.
type QPType uint32

// QP types.
const (
	QPTRC        QPType = 2
	QPTUC        QPType = 3
	QPTUD        QPType = 4
	QPTRawPacket QPType = 8
	QPTXRCSend   QPType = 9
	QPTXRCRecv   QPType = 10
	QPTDriver    QPType = 0xff
)

// QPState is IBV_QPS_*.
type QPState uint32

// QP states.
const (
	QPSReset QPState = iota
	QPSInit
	QPSRTR
	QPSRTS
	QPSSQD
	QPSSQE
	QPSErr
	QPSUnknown
)

var qpStateNames = [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR", "UNKNOWN"}

func (s QPState) String() string {
	if int(s) < len(qpStateNames) {
		return qpStateNames[s]
	}
	return fmt.Sprintf("QPState(%d)", uint32(s))
}

// QPAttrMask is IBV_QP_*.
type QPAttrMask uint32

// QP attribute mask bits.
const (
	QPMaskState            QPAttrMask = 1 << 0
	QPMaskCurState         QPAttrMask = 1 << 1
	QPMaskEnSQDAsyncNotify QPAttrMask = 1 << 2
	QPMaskAccessFlags      QPAttrMask = 1 << 3
	QPMaskPKeyIndex        QPAttrMask = 1 << 4
	QPMaskPort             QPAttrMask = 1 << 5
	QPMaskQKey             QPAttrMask = 1 << 6
	QPMaskAV               QPAttrMask = 1 << 7
	QPMaskPathMTU          QPAttrMask = 1 << 8
	QPMaskTimeout          QPAttrMask = 1 << 9
	QPMaskRetryCnt         QPAttrMask = 1 << 10
	QPMaskRNRRetry         QPAttrMask = 1 << 11
	QPMaskRQPSN            QPAttrMask = 1 << 12
	QPMaskMaxQPRdAtomic    QPAttrMask = 1 << 13
	QPMaskAltPath          QPAttrMask = 1 << 14
	QPMaskMinRNRTimer      QPAttrMask = 1 << 15
	QPMaskSQPSN            QPAttrMask = 1 << 16
	QPMaskMaxDestRdAtomic  QPAttrMask = 1 << 17
	QPMaskPathMigState     QPAttrMask = 1 << 18
	QPMaskCap              QPAttrMask = 1 << 19
	QPMaskDestQPN          QPAttrMask = 1 << 20
	QPMaskRateLimit        QPAttrMask = 1 << 25
)

// MTU is the enumeration IBV_MTU_*; Bytes gives the size.
type MTU uint32

// Path MTUs.
const (
	MTU256  MTU = 1
	MTU512  MTU = 2
	MTU1024 MTU = 3
	MTU2048 MTU = 4
	MTU4096 MTU = 5
)

// Bytes is the payload size of the MTU, 0 for an undefined one.
func (m MTU) Bytes() int {
	if m < MTU256 || m > MTU4096 {
		return 0
	}
	return 128 << m
}

// GRH is ibv_global_route.
type GRH struct {
	DGID         GID
	FlowLabel    uint32
	SGIDIndex    uint8
	HopLimit     uint8
	TrafficClass uint8
}

// AHAttr is ibv_ah_attr.
type AHAttr struct {
	GRH         GRH
	DLID        uint16
	SL          uint8
	SrcPathBits uint8
	StaticRate  uint8
	IsGlobal    bool
	Port        uint8
}

// QPCap is ibv_qp_cap.
type QPCap struct {
	MaxSendWR, MaxRecvWR, MaxSendSGE, MaxRecvSGE, MaxInline uint32
}

// QPAttr is ibv_qp_attr.
type QPAttr struct {
	State, CurState         QPState
	PathMTU                 MTU
	PathMigState            uint8 // 0 MIGRATED, 1 REARM, 2 ARMED
	QKey                    uint32
	RQPSN, SQPSN            uint32
	DestQPN                 uint32
	Access                  AccessFlags
	Cap                     QPCap
	AH, AltAH               AHAttr
	PKeyIndex, AltPKeyIndex uint16
	EnSQDAsyncNotify        bool
	SQDraining              bool
	MaxRdAtomic             uint8
	MaxDestRdAtomic         uint8
	MinRNRTimer             uint8
	Port, AltPort           uint8
	Timeout, AltTimeout     uint8
	RetryCnt, RNRRetry      uint8
	RateLimit               uint32
}

// QPInitAttr is ibv_qp_init_attr_ex as far as it is modelled.
type QPInitAttr struct {
	Context      any
	Type         QPType
	SendCQ       CQ
	RecvCQ       CQ
	SRQ          SRQ
	Cap          QPCap
	SigAll       bool
	CompMask     uint32
	CreateFlags  uint32
	SendOpsFlags uint64
	SourceQPN    uint32
}

// TDInitAttr is ibv_td_init_attr with the independent attribute of the scalable
// endpoints proposal behind a comp_mask bit.
type TDInitAttr struct {
	CompMask    uint32
	Independent uint32
}

// TDInitAttrIndependent is the comp_mask bit of TDInitAttr.Independent.
const TDInitAttrIndependent uint32 = 1 << 0

// ParentDomainAttr is ibv_parent_domain_init_attr.
type ParentDomainAttr struct {
	PD       PD
	TD       TD
	CompMask uint32
	// Alloc and Free are the custom allocators (comp_mask bit 0); Context (bit 1)
	// reaches both.
	Alloc   func(t Thread, size, alignment uint64, resource uint64) (Buffer, AllocAnswer)
	Free    func(t Thread, b Buffer, resource uint64)
	Context any
}

// AllocAnswer is what a custom allocator says.
type AllocAnswer uint8

// Answers of a custom allocator.
const (
	AllocOK AllocAnswer = iota
	AllocUseDefault
	AllocFailed
)

// comp_mask bits of ParentDomainAttr.
const (
	ParentDomainAllocators uint32 = 1 << 0
	ParentDomainContext    uint32 = 1 << 1
)

// SRQInitAttr is ibv_srq_init_attr.
type SRQInitAttr struct{ MaxWR, MaxSGE, Limit uint32 }

// SRQAttr is ibv_srq_attr.
type SRQAttr struct{ MaxWR, MaxSGE, Limit uint32 }

// SRQAttrMask is IBV_SRQ_*.
type SRQAttrMask uint32

// SRQ attribute mask bits.
const (
	SRQMaskMaxWR SRQAttrMask = 1 << 0
	SRQMaskLimit SRQAttrMask = 1 << 1
)

// MWType is IBV_MW_TYPE_*.
type MWType uint32

// Types of memory windows.
const (
	MWType1 MWType = 1
	MWType2 MWType = 2
)

// MWBindInfo is ibv_mw_bind_info.
type MWBindInfo struct {
	MR           MR
	Addr, Length uint64
	Access       AccessFlags
}

// MWBind is ibv_mw_bind.
type MWBind struct {
	ID    uint64
	Flags SendFlags
	Info  MWBindInfo
}

// MWBindWR is the part of a send request that binds a window: RKey is the key that it
// gets.
type MWBindWR struct {
	MW   MW
	RKey uint32
	Info MWBindInfo
}

// IncRKey is ibv_inc_rkey: it counts the low byte up, the application's part of a key.
func IncRKey(k uint32) uint32 { return k&^0xff | (k+1)&0xff }

// ReregFlags are IBV_REREG_MR_CHANGE_*.
type ReregFlags uint32

// What a rereg changes.
const (
	ReregTranslation ReregFlags = 1 << 0
	ReregPD          ReregFlags = 1 << 1
	ReregAccess      ReregFlags = 1 << 2
)

// ReregError is a failed ibv_rereg_mr: its result, and the errno behind it.
type ReregError struct {
	Code int
	Err  error
}

// Results of a failed rereg (IBV_REREG_MR_ERR_*).
const (
	ReregErrInput = -1
	ReregErrCmd   = -4
)

func (e *ReregError) Error() string { return fmt.Sprintf("rereg_mr returns %d: %v", e.Code, e.Err) }

// Unwrap gives the errno.
func (e *ReregError) Unwrap() error { return e.Err }

// WROpcode is IBV_WR_*.
type WROpcode uint32

// Work request opcodes.
const (
	WRRDMAWrite      WROpcode = 0
	WRRDMAWriteImm   WROpcode = 1
	WRSend           WROpcode = 2
	WRSendImm        WROpcode = 3
	WRRDMARead       WROpcode = 4
	WRAtomicCmpSwp   WROpcode = 5
	WRAtomicFetchAdd WROpcode = 6
	WRLocalInv       WROpcode = 7
	WRBindMW         WROpcode = 8
	WRSendInv        WROpcode = 9
	WRTSO            WROpcode = 10
	WRDriver1        WROpcode = 11
	WRAtomicWrite    WROpcode = 15
)

// SendFlags are IBV_SEND_*.
type SendFlags uint32

// Send flags.
const (
	SendFence     SendFlags = 1 << 0
	SendSignaled  SendFlags = 1 << 1
	SendSolicited SendFlags = 1 << 2
	SendInline    SendFlags = 1 << 3
)

// SGE is ibv_sge.
type SGE struct {
	Addr   uint64
	Length uint32
	LKey   uint32
}

// SendWR is ibv_send_wr. SGEs and Inline may be reused when PostSend returns.
type SendWR struct {
	ID         uint64
	SGEs       []SGE
	Opcode     WROpcode
	Flags      SendFlags
	Imm        uint32 // host order; or the key that a send with invalidate or a local one ends
	RemoteAddr uint64
	RKey       uint32
	CompareAdd uint64
	Swap       uint64

	// Of datagrams. A Q_Key with the top bit set stands for the QP's own.
	AH         AH
	RemoteQPN  uint32
	RemoteQKey uint32

	Bind *MWBindWR // of WRBindMW
}

// GRHSize is how many bytes a receive of a UD QP has before the payload: the routing
// header, or on RoCE v2 the IP header in its place.
const GRHSize = 40

// MulticastQPN is the destination of datagrams to a group.
const MulticastQPN uint32 = 0xffffff

// RecvWR is ibv_recv_wr.
type RecvWR struct {
	ID   uint64
	SGEs []SGE
}

// EventType is IBV_EVENT_*.
type EventType uint32

// Asynchronous event types.
const (
	EventCQErr EventType = iota
	EventQPFatal
	EventQPReqErr
	EventQPAccessErr
	EventCommEst
	EventSQDrained
	EventPathMig
	EventPathMigErr
	EventDeviceFatal
	EventPortActive
	EventPortErr
	EventLIDChange
	EventPKeyChange
	EventSMChange
	EventSRQErr
	EventSRQLimitReached
	EventQPLastWQEReached
	EventClientReregister
	EventGIDChange
	EventWQFatal
)

var eventTypeNames = [...]string{"CQ_ERR", "QP_FATAL", "QP_REQ_ERR", "QP_ACCESS_ERR", "COMM_EST", "SQ_DRAINED", "PATH_MIG",
	"PATH_MIG_ERR", "DEVICE_FATAL", "PORT_ACTIVE", "PORT_ERR", "LID_CHANGE", "PKEY_CHANGE", "SM_CHANGE", "SRQ_ERR",
	"SRQ_LIMIT_REACHED", "QP_LAST_WQE_REACHED", "CLIENT_REREGISTER", "GID_CHANGE", "WQ_FATAL"}

// String is the type as the catalogue spells it: IBV_EVENT_ without its prefix.
func (e EventType) String() string {
	if int(e) < len(eventTypeNames) {
		return eventTypeNames[e]
	}
	return fmt.Sprintf("EventType(%d)", uint32(e))
}

// AsyncEvent is ibv_async_event.
type AsyncEvent struct {
	Type EventType
	QP   QP
	CQ   CQ
	SRQ  SRQ
	Port int
}

// LinkLayer is IBV_LINK_LAYER_*.
type LinkLayer uint8

// Link layers.
const (
	LinkUnspecified LinkLayer = iota
	LinkInfiniBand
	LinkEthernet
)

// PortState is IBV_PORT_*.
type PortState uint32

// Port states.
const (
	PortNop PortState = iota
	PortDown
	PortInit
	PortArmed
	PortActive
)

// PortAttr is ibv_port_attr.
type PortAttr struct {
	State             PortState
	MaxMTU, ActiveMTU MTU
	GIDTblLen         int
	PortCapFlags      uint32
	MaxMsgSize        uint32
	BadPKeyCntr       uint32
	QKeyViolCntr      uint32
	PKeyTblLen        uint16
	LID, SMLID        uint16
	LMC               uint8
	MaxVLNum          uint8
	SMSL              uint8
	SubnetTimeout     uint8
	InitTypeReply     uint8
	ActiveWidth       uint8
	ActiveSpeed       uint32
	PhysState         uint8
	LinkLayer         LinkLayer
	Flags             uint8 // bit 0: GRH required
	PortCapFlags2     uint16
}

// PortGRHRequired is the flag IBV_QPF_GRH_REQUIRED.
const PortGRHRequired uint8 = 1

// AtomicCap is IBV_ATOMIC_*.
type AtomicCap uint32

// Atomic capabilities.
const (
	AtomicNone AtomicCap = iota
	AtomicHCA
	AtomicGlob
)

// DeviceAttr is ibv_device_attr.
type DeviceAttr struct {
	FWVer                       string
	NodeGUID, SysImageGUID      uint64
	MaxMRSize, PageSizeCap      uint64
	VendorID, VendorPartID      uint32
	HWVer                       uint32
	MaxQP, MaxQPWR              int
	DeviceCapFlags              uint32
	MaxSGE, MaxSGERd            int
	MaxCQ, MaxCQE               int
	MaxMR, MaxPD                int
	MaxQPRdAtom, MaxResRdAtom   int
	MaxQPInitRdAtom             int
	Atomic                      AtomicCap
	MaxMW, MaxAH                int
	MaxSRQ, MaxSRQWR, MaxSRQSGE int
	MaxMcastGrp                 int
	MaxPKeys                    uint16
	LocalCAAckDelay             uint8
	PhysPortCnt                 uint8
}

// DeviceAtomicWrite in DeviceAttrEx.CapFlagsEx says that the kernel's driver has atomic writes
// (IB_UVERBS_DEVICE_ATOMIC_WRITE).
const DeviceAtomicWrite uint64 = 1 << 40

// DeviceAttrEx is ibv_device_attr_ex as far as it is modelled.
type DeviceAttrEx struct {
	DeviceAttr
	CapFlagsEx              uint64 // device_cap_flags_ex: flags of the kernel
	CompletionTimestampMask uint64
	HCACoreClockKHz         uint64
	PhysPortCntEx           uint32
	ODPGeneralCaps          uint64
	ODPRC, ODPUC, ODPUD     uint32
	MaxDynBFRegs            uint32 // mlx5dv_query_device
	MaxDMSize               uint64 // device memory in bytes; 0: none
	// MaxCQCount and MaxCQPeriod (microseconds) are ibv_cq_moderation_caps; zeros: events
	// cannot be moderated.
	MaxCQCount, MaxCQPeriod uint16
	CQEComp                 CQECompCaps // mlx5dv_query_device
}
