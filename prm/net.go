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

// Bits of self_lb_block of a TIR: which packets of its own transport domain it takes. The header
// calls them SELF_LB_BLOCK_BLOCK_...; drivers set them where such packets are to come
// (mlx5e_refresh_tirs, MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC).
const (
	TIRSelfLBUnicast   = 1
	TIRSelfLBMulticast = 2
)

// WQEInlineNone is the value of EthCap.WQEInlineMode of a device that needs no headers in WQEs.
const WQEInlineNone = 2

// Flow tables: types, miss actions, what an entry does, kinds of its destinations, op_mods of
// SET_FLOW_TABLE_ROOT and SET_FLOW_TABLE_ENTRY, field selects of the changes of both, and the only
// kind of criteria that is here (mlx5_ifc.h).
const (
	FlowTableNICReceive  = 0
	FlowTableNICTransmit = 1

	FlowMissDefault = 0
	FlowMissForward = 1

	FlowActionAllow        = 1 << 0
	FlowActionDrop         = 1 << 1
	FlowActionForward      = 1 << 2
	FlowActionCount        = 1 << 3
	FlowActionReformat     = 1 << 4
	FlowActionDecap        = 1 << 5
	FlowActionModifyHeader = 1 << 6

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

// Values of MODIFY_VPORT_STATE's admin_state beside VportStateDown and VportStateUp, and its
// op_mods.
const (
	VportStateFollow = 2

	VportStateOfVNIC   = 0
	VportStateOfUplink = 2
)

// SetMACs writes both addresses, which are in the order of an Ethernet header: the destination
// first.
func (h FlowHeaders) SetMACs(b []byte) {
	h.SetDMACHigh(be32(b, 0))
	h.SetDMACLow(uint32(be16(b, 4)))
	h.SetSMACHigh(be32(b, 6))
	h.SetSMACLow(uint32(be16(b, 10)))
}

// NetWord is a word of 16 bits at the beginning of b, in network order, as headers have it.
func NetWord(b []byte) uint16 { return be16(b, 0) }

// AppendNetWord appends a word of 16 bits in network order.
func AppendNetWord(b []byte, v uint16) []byte { return append(b, byte(v>>8), byte(v)) }

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

// Received Ethernet packets in a CQE (device.h, CQE_*): bits of HDSIPExt, the parts of L4L3HdrType
// and RSSHashType.
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

// HeaderChanges is a list of HeaderChange and HeaderCopy.
type HeaderChanges []byte

// Count is how many whole entries there are.
func (l HeaderChanges) Count() int { return len(l) / HeaderChangeSize }

// At is entry i.
func (l HeaderChanges) At(i int) HeaderChange {
	return HeaderChange(l[i*HeaderChangeSize:][:HeaderChangeSize:HeaderChangeSize])
}

// Copy is entry i as a copy.
func (l HeaderChanges) Copy(i int) HeaderCopy { return HeaderCopy(l.At(i)) }

// Data is the headers of a new tunnel, which begin in the last word of the view.
func (c AllocPacketReformatIn) Data() []byte { return c[AllocPacketReformatInSize-2:] }

// ICMAddress is where entries that programs write find the TIR.
func (c CreateTIROut) ICMAddress() uint64 {
	return uint64(c.ICMAddressHigh())<<40 | uint64(c.ICMAddressMid())<<32 | uint64(c.ICMAddressLow())
}

// PutICMAddress sets ICMAddress.
func (c CreateTIROut) PutICMAddress(a uint64) {
	c.SetICMAddressHigh(uint32(a >> 40))
	c.SetICMAddressMid(uint32(a >> 32 & 0xff))
	c.SetICMAddressLow(uint32(a))
}

// PutICMAddress is where entries that programs write find the table.
func (c CreateFlowTableOut) PutICMAddress(a uint64) {
	CreateTIROut(c).PutICMAddress(a) // the same places
}

// Header changes: types in HeaderChange and in STEHeaderChange (mlx5_ifc.h MLX5_ACTION_TYPE_*;
// dr_ste_v0.c of rdma-core, dr_ste_v0_action_mdfy_op).
const (
	HeaderSet    = 1
	HeaderAdd    = 2
	HeaderCopied = 3

	STEHeaderCopied = 1
	STEHeaderSet    = 2
	STEHeaderAdd    = 3
)

// Types of packet reformats (mlx5_ifc.h, MLX5_REFORMAT_TYPE_*).
const (
	ReformatL2ToL2Tunnel = 2
	ReformatL3TunnelToL2 = 3
	ReformatL2ToL3Tunnel = 4
)

// Steering entries of format 0 (dr_ste_v0.c of rdma-core): types, what happens to a packet that
// leaves and to one that arrives, and the bit of STE.FlowTag that says there is one.
const (
	STETransmit = 1
	STEReceive  = 2
	STEModify   = 6

	STEPushVLAN = 1
	STEEncapL3  = 3
	STEEncap    = 4

	STEDecap   = 2
	STEDecapL3 = 3
	STEPopVLAN = 4

	STEHasFlowTag = 1 << 31
)

// MissAddress is where packets go that do not match.
func (s STE) MissAddress() uint64 { return uint64(s.MissHigh())<<32 | uint64(s.MissLow())<<6 }

// PutMissAddress sets MissAddress.
func (s STE) PutMissAddress(a uint64) {
	s.SetMissHigh(uint32(a >> 32 & 0xff))
	s.SetMissLow(uint32(a) >> 6)
}

// Next is the table for packets that match: where it is and how many entries it has, a power of
// two; 0: none.
func (s STE) Next() (addr uint64, entries uint64) {
	x := uint64(s.NextHigh())<<27 | uint64(s.NextLow())
	entries = x & -x
	return (x ^ entries) << 5, entries
}

// PutNext sets Next.
func (s STE) PutNext(addr, entries uint64) {
	x := addr>>5 | entries
	s.SetNextHigh(uint32(x >> 27))
	s.SetNextLow(uint32(x & (1<<27 - 1)))
}

// Counter is the flow counter of an entry; 0: none.
func (s STE) Counter() uint32 { return s.CounterHigh()<<16 | s.CounterLow() }

// PutCounter sets Counter.
func (s STE) PutCounter(n uint32) {
	s.SetCounterLow(n & 0xffff)
	s.SetCounterHigh(n >> 16)
}

// STEDontCare is the kind of a look-up that looks at nothing (DR_STE_LU_TYPE_DONT_CARE).
const STEDontCare = 0x0f
