package prm

// States of an SQ and of an RQ (mlx5_ifc.h, MLX5_SQC_STATE_* and MLX5_RQC_STATE_*).
const (
	PacketQueueRST = 0
	PacketQueueRDY = 1
	PacketQueueERR = 3
)

// Bits of ModifyRQIn.Select (mlx5_ifc.h, MLX5_MODIFY_RQ_IN_MODIFY_BITMASK_*).
const (
	ModifyRQVSD        = 1 << 1
	ModifyRQScatterFCS = 1 << 2
	ModifyRQCounterSet = 1 << 3
)

// ModifySQRateLimit is a bit of ModifySQIn.Select.
const ModifySQRateLimit = 1 << 0

// Values of TIRC.DispType, TIRC.RxHashFn and bits of TIRC.OuterSelectedFields.
const (
	TIRDirect   = 0
	TIRIndirect = 1

	RxHashNone         = 0
	RxHashInvertedXOR8 = 1
	RxHashToeplitz     = 2

	RxHashSrcIP  = 1 << 0
	RxHashDstIP  = 1 << 1
	RxHashSport  = 1 << 2
	RxHashDport  = 1 << 3
	RxHashFields = RxHashSrcIP | RxHashDstIP | RxHashSport | RxHashDport | 1<<4 // the last is the SPI of IPsec
)

// Bits of self_lb_block of a TIR: which packets of its own transport domain it takes. The header calls them
// SELF_LB_BLOCK_BLOCK_...; drivers set them where such packets are to come (mlx5e_refresh_tirs, MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC).
const (
	TIRSelfLBUnicast   = 1
	TIRSelfLBMulticast = 2
)

// WQEInlineNone is the value of EthCap.WQEInlineMode of a device that needs no headers in WQEs.
const WQEInlineNone = 2

// Flow tables: types, miss actions, what an entry does, kinds of its destinations, op_mods of
// SET_FLOW_TABLE_ROOT and SET_FLOW_TABLE_ENTRY, field selects of the changes of both, and the only kind of
// criteria that is here (mlx5_ifc.h).
const (
	FlowTableNICReceive = 0

	FlowMissDefault = 0
	FlowMissForward = 1

	FlowActionAllow   = 1 << 0
	FlowActionDrop    = 1 << 1
	FlowActionForward = 1 << 2
	FlowActionCount   = 1 << 3

	FlowToTable = 1
	FlowToTIR   = 2

	FlowRootSet  = 0
	FlowRootTake = 1

	FlowEntrySet    = 0
	FlowEntryChange = 1

	FlowChangeAction       = 1 << 0
	FlowChangeTag          = 1 << 1
	FlowChangeDestinations = 1 << 2
	FlowChangeCounters     = 1 << 3

	FlowTableMissID = 1 << 0

	FlowMatchOuter = 1 << 0
)

// Values of MODIFY_VPORT_STATE's admin_state beside VportStateDown and VportStateUp, and its op_mods.
const (
	VportStateFollow = 2

	VportStateOfVNIC   = 0
	VportStateOfUplink = 2
)

// SetMACs writes both addresses, which are in the order of an Ethernet header: the destination first.
func (h FlowHeaders) SetMACs(b []byte) {
	h.SetDMACHigh(be32(b, 0))
	h.SetDMACLow(uint32(be16(b, 4)))
	h.SetSMACHigh(be32(b, 6))
	h.SetSMACLow(uint32(be16(b, 10)))
}

// NetWord is a word of 16 bits at the beginning of b, in network order, as headers have it.
func NetWord(b []byte) uint16 { return be16(b, 0) }

// RQList is a list of the numbers of RQs, a word each.
type RQList []byte

// Count is how many whole entries there are.
func (l RQList) Count() int { return len(l) / 4 }

// At returns entry i.
func (l RQList) At(i int) uint32 { return bits(l, 4*i, 23, 0) }

// Set sets entry i.
func (l RQList) Set(i int, n uint32) { put(l, 4*i, 23, 0, n) }

// FlowDestinations is the list of a flow table entry.
type FlowDestinations []byte

// Count is how many whole entries there are.
func (l FlowDestinations) Count() int { return len(l) / FlowDestinationSize }

// At is entry i.
func (l FlowDestinations) At(i int) FlowDestination {
	return FlowDestination(l[i*FlowDestinationSize:][:FlowDestinationSize:FlowDestinationSize])
}

// Counter is the number of the flow counter in entry i.
func (l FlowDestinations) Counter(i int) uint32 { return be32(l, i*FlowDestinationSize) }

// SetCounter sets the flow counter of entry i.
func (l FlowDestinations) SetCounter(i int, id uint32) { putBE32(l, i*FlowDestinationSize, id) }

// FlowStatistics is a list of pairs {packets, octets}.
type FlowStatistics []byte

// Count is how many whole pairs there is room for.
func (l FlowStatistics) Count() int { return len(l) / 16 }

// Packets returns the packets of pair i.
func (l FlowStatistics) Packets(i int) uint64 { return be64(l, 16*i) }

// Octets returns the bytes of pair i.
func (l FlowStatistics) Octets(i int) uint64 { return be64(l, 16*i+8) }

// Set sets entry i.
func (l FlowStatistics) Set(i int, packets, octets uint64) {
	putBE64(l, 16*i, packets)
	putBE64(l, 16*i+8, octets)
}

// Received Ethernet packets in a CQE (device.h, CQE_*): bits of HDSIPExt, the parts of L4L3HdrType and
// RSSHashType.
const (
	CQEL2OK = 1 << 0
	CQEL3OK = 1 << 1
	CQEL4OK = 1 << 2

	CQEVLAN       = 1 << 0 // VLANInfo is a tag that was taken out of the packet
	CQEL3IPv6     = 1 << 2
	CQEL3IPv4     = 2 << 2
	CQEL4TCPNoAck = 1 << 4
	CQEL4UDP      = 2 << 4
	CQEL4TCPAck   = 3 << 4 // without data
	CQEL4TCPData  = 4 << 4 // and an ACK

	CQERSSIPv4 = 1 << 2
	CQERSSIPv6 = 2 << 2
	CQERSSTCP  = 1 << 6
	CQERSSUDP  = 2 << 6
)
