package verbs

// FlowType is IBV_FLOW_ATTR_*.
type FlowType uint32

// Types of rules.
const (
	FlowNormal           FlowType = 0 // packets that match the specs
	FlowAllDefault       FlowType = 1 // packets that no other rule takes
	FlowMulticastDefault FlowType = 2 // packets to multicast groups that no other rule takes
	FlowSniffer          FlowType = 3 // all packets of the port
)

// FlowFlags are IBV_FLOW_ATTR_FLAGS_*.
type FlowFlags uint32

// Flags of rules.
const (
	FlowDontTrap FlowFlags = 1 << 1 // packets go on to the rules behind it, too
	FlowEgress   FlowFlags = 1 << 2 // of packets that are sent
)

// FlowSpecType is IBV_FLOW_SPEC_*.
type FlowSpecType uint32

// Types of specs. FlowSpecIPv4 has the addresses alone.
const (
	FlowSpecEth     FlowSpecType = 0x20
	FlowSpecIPv4    FlowSpecType = 0x30
	FlowSpecIPv6    FlowSpecType = 0x31
	FlowSpecIPv4Ext FlowSpecType = 0x32
	FlowSpecTCP     FlowSpecType = 0x40
	FlowSpecUDP     FlowSpecType = 0x41
	FlowSpecTag     FlowSpecType = 0x1000
	FlowSpecDrop    FlowSpecType = 0x1001
)

// FlowAttr is ibv_flow_attr with the specs behind it.
type FlowAttr struct {
	Type     FlowType
	Priority uint16 // rules of smaller ones come first
	Port     uint8
	Flags    FlowFlags
	Specs    []FlowSpec
}

// FlowSpec is an ibv_flow_spec. A packet matches if it has the header and equals Val in the bits of
// Mask.
type FlowSpec struct {
	Type      FlowSpecType
	Val, Mask FlowFilter
	Tag       uint32 // of FlowSpecTag
}

// FlowFilter is the filters of all types side by side. Numbers are in host order, addresses as they
// are sent.
type FlowFilter struct {
	// Of Ethernet. VLANTag is a whole TCI.
	DstMAC, SrcMAC     [6]byte
	EtherType, VLANTag uint16
	// Of IP. The addresses of IPv4 are the first 4 bytes. Proto is next_hdr of IPv6, TOS its
	// traffic class, and TTL its hop limit. IPFlags is of IPv4, FlowLabel of IPv6.
	SrcIP, DstIP             [16]byte
	Proto, TOS, TTL, IPFlags uint8
	FlowLabel                uint32
	// Of TCP and UDP.
	SrcPort, DstPort uint16
}

// Flow is a rule that steers packets.
type Flow interface {
	// Destroy is ibv_destroy_flow.
	Destroy(t Thread) error
}
