package verbs

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

// PortAttr is ibv_port_attr. MaxMsgSize is in bytes, and SubnetTimeout is a code t of 4.096 us *
// 2^t.
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

// PortGRHRequired is the bit of PortAttr.Flags for ports that need a GRH (IBV_QPF_GRH_REQUIRED).
const PortGRHRequired uint8 = 1

// AtomicCap is IBV_ATOMIC_*.
type AtomicCap uint32

// Atomic capabilities.
const (
	AtomicNone AtomicCap = iota
	AtomicHCA
	AtomicGlob
)

// DeviceAttr is ibv_device_attr. MaxMRSize is in bytes, PageSizeCap is a mask of page sizes in
// bytes, and LocalCAAckDelay is a code t of 4.096 us * 2^t.
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
	// MaxMcastQPAttach is how many QPs one multicast group takes, and MaxTotalMcastQPAttach all of
	// them together.
	MaxMcastQPAttach, MaxTotalMcastQPAttach int
	MaxPKeys                                uint16
	LocalCAAckDelay                         uint8
	PhysPortCnt                             uint8
}

// DeviceAtomicWrite is the bit of DeviceAttrEx.CapFlagsEx for a kernel driver with atomic writes
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
	ODPXRC                  uint32 // xrc_odp_caps
	MaxDynBFRegs            uint32 // mlx5dv_query_device
	MaxDMSize               uint64 // device memory in bytes; 0: none
	// MaxCQCount and MaxCQPeriod (microseconds) are ibv_cq_moderation_caps; zeros: events
	// cannot be moderated.
	MaxCQCount, MaxCQPeriod uint16
	CQEComp                 CQECompCaps // mlx5dv_query_device
}
