package prm

// Sub-types of EventPageFault (odp.c of mlx5_ib, mlx5_ib_eq_pf_process).
const (
	PageFaultSubWQE    = 0
	PageFaultSubRDMA   = 1
	PageFaultSubMemory = 2
)

// Bits of the type of a page fault in the transport scheme.
const (
	FaultRequestor = 1 << iota
	FaultWrite
	FaultRDMA
)

// Types of a fault of PageFaultSubWQE, as the driver reads the same bits (odp.c, enum
// mlx5_pagefault_type).
const (
	FaultRMP            = 0 // the number is that of an SRQ
	FaultSendOrWrite    = 1 // of a QP's send queue
	FaultReceive        = 2 // of a QP's receive queue
	FaultReadOrAtomic   = 3 // where the response of a send queue's WQE lands
	PageFaultMemoryLast = 0x80
)

// Operations of ODPSchemeCap (mlx5_ifc_odp_per_transport_service_cap_bits).
const (
	ODPSend       = 1 << 31
	ODPReceive    = 1 << 30
	ODPWrite      = 1 << 29
	ODPRead       = 1 << 28
	ODPAtomic     = 1 << 27
	ODPSRQReceive = 1 << 26
)

// Token48 is the token of a fault in the memory scheme, 48 bits.
func (f PageFaultMemory) Token48() uint64 { return uint64(f.TokenHigh())<<32 | uint64(f.TokenLow()) }

// PutToken48 sets the token of a page fault, 48 bits.
func (f PageFaultMemory) PutToken48(v uint64) {
	f.SetTokenHigh(uint16(v >> 32))
	f.SetTokenLow(uint32(v))
}

// Token48 is the token that is resumed.
func (r PageFaultResumeMemoryIn) Token48() uint64 {
	return uint64(r.TokenHigh())<<32 | uint64(r.TokenLow())
}

// PutToken48 sets the token of a page fault, 48 bits.
func (r PageFaultResumeMemoryIn) PutToken48(v uint64) {
	r.SetTokenHigh(uint32(v >> 32))
	r.SetTokenLow(uint32(v))
}
