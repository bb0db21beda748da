package verbs

// Bits of DeviceAttrEx.ODPGeneralCaps (enum ibv_odp_general_caps).
const (
	ODPSupport         uint64 = 1 << 0
	ODPSupportImplicit uint64 = 1 << 1 // regions of the whole address space
)

// Bits of DeviceAttrEx.ODPRC and of the other transports (enum ibv_odp_transport_cap_bits).
const (
	ODPSend    uint32 = 1 << 0
	ODPRecv    uint32 = 1 << 1
	ODPWrite   uint32 = 1 << 2
	ODPRead    uint32 = 1 << 3
	ODPAtomic  uint32 = 1 << 4
	ODPSRQRecv uint32 = 1 << 5
)

// NamedCounter is a counter under the name that the kernel gives it.
type NamedCounter struct {
	Name  string
	Value uint64
}

// AdviseMRAdvice is enum ibv_advise_mr_advice.
type AdviseMRAdvice uint32

// Advices.
const (
	AdvisePrefetch        AdviseMRAdvice = iota // for reading
	AdvisePrefetchWrite                         // for writing
	AdvisePrefetchNoFault                       // only what is in memory
)

// AdviseMRFlags are flags of ibv_advise_mr.
type AdviseMRFlags uint32

// AdviseFlush has the call wait until it is done (IBV_ADVISE_MR_FLAG_FLUSH).
const AdviseFlush AdviseMRFlags = 1 << 0
