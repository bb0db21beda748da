package verbs

import (
	"net/netip"
)

// GID is a global identifier, 16 bytes in network order.
type GID [16]byte

// String returns the address as package net/netip writes it, such as "fe80::1" or
// "::ffff:10.0.0.1".
func (g GID) String() string { return netip.AddrFrom16(g).String() }

// GIDType is the type of an ibv_gid_entry.
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

// String returns the name of IBV_QPS_* without the prefix.
func (s QPState) String() string { return nameOf(qpStateNames[:], s, "QPState") }

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

// MTU is a path MTU as a code (enum ibv_mtu); Bytes returns the size.
type MTU uint32

// Path MTUs.
const (
	MTU256  MTU = 1
	MTU512  MTU = 2
	MTU1024 MTU = 3
	MTU2048 MTU = 4
	MTU4096 MTU = 5
)

// Bytes returns the payload size in bytes, or 0 for an undefined code.
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

// QPAttr is ibv_qp_attr. Timeout and AltTimeout are codes t of 4.096 us * 2^t (0: no timer),
// MinRNRTimer is a code of the RNR NAK timer field (0 to 31), an RNRRetry of 7 has no limit, and
// RateLimit is in kbit/s.
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
	XRCD         XRCD // of an XRC target, with QPInitXRCD
	Cap          QPCap
	SigAll       bool
	CompMask     uint32
	CreateFlags  uint32
	SendOpsFlags uint64
	SourceQPN    uint32
	Direct       *DirectQPAttr // nil, or mlx5dv_create_qp in place of ibv_create_qp_ex
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

// AllocAnswer is the result of a custom allocator.
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
