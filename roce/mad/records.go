package mad

import "github.com/rdmasim/rdmasim/roce"

// Sizes of records.
const (
	ClassPortInfoSize    = 72
	InformInfoSize       = 36
	NodeRecordSize       = 108
	PortInfoRecordSize   = 68
	PathRecordSize       = 64
	SwitchInfoRecordSize = 24
	LinkRecordSize       = 8
	SMInfoRecordSize     = 32
	BlockRecordSize      = 72 // of a table that is asked for by blocks
	MCMemberRecordSize   = 52
)

// Selector says how to compare a component that is a limit.
type Selector uint8

// Selectors.
const (
	Greater Selector = iota
	Less
	Exactly
	Largest
)

// bits reads the n bits of b that begin shift bits above the lowest of the byte.
func bits(b byte, shift, n uint) uint8 { return b >> shift & (1<<n - 1) }

func setBits(b *byte, shift, n uint, v uint8) {
	mask := byte(1<<n-1) << shift
	*b = *b&^mask | v<<shift&mask
}

func limited(b byte) (Selector, uint8)        { return Selector(bits(b, 6, 2)), bits(b, 0, 6) }
func setLimited(b *byte, s Selector, v uint8) { *b = byte(s)<<6 | v&0x3F }
func gid(b []byte) roce.GID                   { return roce.GID(b[:16]) }
func flowLabel(b []byte) uint32               { return be.Uint32(b) >> 8 & 0xFFFFF }
func setFlowLabel(b []byte, v uint32)         { be.PutUint32(b, be.Uint32(b)&^(0xFFFFF<<8)|v&0xFFFFF<<8) }

// ClassPortInfo says what the agent of a class can do, 72 bytes.
type ClassPortInfo []byte

// CanSendOnlyFullMember is the bit of Capabilities2 for full members of a multicast group that only
// send.
const CanSendOnlyFullMember = 1 << 1

// SetBaseVersion sets the base version.
func (c ClassPortInfo) SetBaseVersion(v uint8) { c[0] = v }

// SetClassVersion sets the class version.
func (c ClassPortInfo) SetClassVersion(v uint8) { c[1] = v }

// Capabilities2 returns the second capability mask: bits 31:5 of the word at byte 4.
func (c ClassPortInfo) Capabilities2() uint32 { return be.Uint32(c[4:]) >> 5 }

// SetCapabilities2 sets the second capability mask (27 bits) and the code t of the response time,
// 4.096 us * 2^t.
func (c ClassPortInfo) SetCapabilities2(v uint32, responseTime uint8) {
	be.PutUint32(c[4:], v<<5|uint32(responseTime)&31)
}

// Components of a PathRecord, bits of a request.
const (
	PathServiceID    uint64 = 1 << iota
	PathServiceIDLow        // the low half of the service ID has a bit of its own
	PathDGID
	PathSGID
	PathDLID
	PathSLID
	PathRawTraffic
	_
	PathFlowLabel
	PathHopLimit
	PathTrafficClass
	PathReversible
	PathNumber
	PathPKey
	PathQoSClass
	PathSL
	PathMTUSelector
	PathMTU
	PathRateSelector
	PathRate
	PathLifetimeSelector
	PathLifetime
)

// PathRecord is a path from one port to another, 64 bytes.
type PathRecord []byte

// ServiceID returns the service ID: 64 bits at byte 0.
func (r PathRecord) ServiceID() uint64 { return be.Uint64(r) }

// DGID returns the destination GID: 16 bytes from byte 8 on.
func (r PathRecord) DGID() roce.GID { return gid(r[8:]) }

// SGID returns the source GID: 16 bytes from byte 24 on.
func (r PathRecord) SGID() roce.GID { return gid(r[24:]) }

// DLID returns the destination LID: 16 bits at byte 40.
func (r PathRecord) DLID() uint16 { return be.Uint16(r[40:]) }

// SLID returns the source LID: 16 bits at byte 42.
func (r PathRecord) SLID() uint16 { return be.Uint16(r[42:]) }

// FlowLabel returns the flow label: bits 27:8 of the word at byte 44.
func (r PathRecord) FlowLabel() uint32 { return flowLabel(r[44:]) }

// HopLimit returns the hop limit: byte 47.
func (r PathRecord) HopLimit() uint8 { return r[47] }

// TrafficClass returns the traffic class: byte 48.
func (r PathRecord) TrafficClass() uint8 { return r[48] }

// Reversible reports whether the path can be used in both directions: bit 7 of byte 49.
func (r PathRecord) Reversible() bool { return r[49]&0x80 != 0 }

// Number returns the number of paths: bits 6:0 of byte 49.
func (r PathRecord) Number() uint8 { return bits(r[49], 0, 7) }

// PKey returns the partition key: 16 bits at byte 50.
func (r PathRecord) PKey() uint16 { return be.Uint16(r[50:]) }

// QoSClass returns the QoS class: bits 15:4 of the 16 at byte 52.
func (r PathRecord) QoSClass() uint16 { return be.Uint16(r[52:]) >> 4 }

// SL returns the service level: bits 3:0 of byte 53.
func (r PathRecord) SL() uint8 { return bits(r[53], 0, 4) }

// MTU returns the MTU code and its selector: bits 5:0 and 7:6 of byte 54.
func (r PathRecord) MTU() (Selector, uint8) { return limited(r[54]) }

// Rate returns the rate code and its selector: bits 5:0 and 7:6 of byte 55.
func (r PathRecord) Rate() (Selector, uint8) { return limited(r[55]) }

// Lifetime returns the packet lifetime, as t of 4.096 us * 2^t, and its selector: bits 5:0 and 7:6
// of byte 56.
func (r PathRecord) Lifetime() (Selector, uint8) { return limited(r[56]) }

// SetServiceID sets the service ID.
func (r PathRecord) SetServiceID(v uint64) { be.PutUint64(r, v) }

// SetDGID sets the destination GID.
func (r PathRecord) SetDGID(v roce.GID) { copy(r[8:24], v[:]) }

// SetSGID sets the source GID.
func (r PathRecord) SetSGID(v roce.GID) { copy(r[24:40], v[:]) }

// SetDLID sets the destination LID.
func (r PathRecord) SetDLID(v uint16) { be.PutUint16(r[40:], v) }

// SetSLID sets the source LID.
func (r PathRecord) SetSLID(v uint16) { be.PutUint16(r[42:], v) }

// SetFlowLabel sets the flow label.
func (r PathRecord) SetFlowLabel(v uint32) { setFlowLabel(r[44:], v) }

// SetHopLimit sets the hop limit.
func (r PathRecord) SetHopLimit(v uint8) { r[47] = v }

// SetTrafficClass sets the traffic class.
func (r PathRecord) SetTrafficClass(v uint8) { r[48] = v }

// SetReversible sets whether the path can be used in both directions.
func (r PathRecord) SetReversible(v bool) { setBits(&r[49], 7, 1, b2u(v)) }

// SetNumber sets the number of paths.
func (r PathRecord) SetNumber(v uint8) { setBits(&r[49], 0, 7, v) }

// SetPKey sets the partition key.
func (r PathRecord) SetPKey(v uint16) { be.PutUint16(r[50:], v) }

// SetQoSClass sets the QoS class.
func (r PathRecord) SetQoSClass(v uint16) { be.PutUint16(r[52:], be.Uint16(r[52:])&0xF|v<<4) }

// SetSL sets the service level.
func (r PathRecord) SetSL(v uint8) { setBits(&r[53], 0, 4, v) }

// SetMTU sets the MTU code and its selector.
func (r PathRecord) SetMTU(s Selector, v uint8) { setLimited(&r[54], s, v) }

// SetRate sets the rate code and its selector.
func (r PathRecord) SetRate(s Selector, v uint8) { setLimited(&r[55], s, v) }

// SetLifetime sets the code t of the packet lifetime and its selector.
func (r PathRecord) SetLifetime(s Selector, v uint8) { setLimited(&r[56], s, v) }

func b2u(v bool) uint8 {
	if v {
		return 1
	}
	return 0
}

// Components of an MCMemberRecord, bits of a request.
const (
	MemberMGID uint64 = 1 << iota
	MemberPortGID
	MemberQKey
	MemberMLID
	MemberMTUSelector
	MemberMTU
	MemberTrafficClass
	MemberPKey
	MemberRateSelector
	MemberRate
	MemberLifetimeSelector
	MemberLifetime
	MemberSL
	MemberFlowLabel
	MemberHopLimit
	MemberScope
	MemberJoinState
)

// Join states, bits of what a member is.
const (
	JoinFull uint8 = 1 << iota
	JoinNonMember
	JoinSendOnlyNonMember
	JoinSendOnlyFull
)

// MCMemberRecord is a member of a multicast group, 52 bytes.
type MCMemberRecord []byte

// MGID returns the GID of the group: 16 bytes at byte 0.
func (r MCMemberRecord) MGID() roce.GID { return gid(r) }

// PortGID returns the GID of the member's port: 16 bytes from byte 16 on.
func (r MCMemberRecord) PortGID() roce.GID { return gid(r[16:]) }

// QKey returns the Q_Key: 32 bits at byte 32.
func (r MCMemberRecord) QKey() uint32 { return be.Uint32(r[32:]) }

// MLID returns the LID of the group: 16 bits at byte 36.
func (r MCMemberRecord) MLID() uint16 { return be.Uint16(r[36:]) }

// MTU returns the MTU code and its selector: bits 5:0 and 7:6 of byte 38.
func (r MCMemberRecord) MTU() (Selector, uint8) { return limited(r[38]) }

// TrafficClass returns the traffic class: byte 39.
func (r MCMemberRecord) TrafficClass() uint8 { return r[39] }

// PKey returns the partition key: 16 bits at byte 40.
func (r MCMemberRecord) PKey() uint16 { return be.Uint16(r[40:]) }

// Rate returns the rate code and its selector: bits 5:0 and 7:6 of byte 42.
func (r MCMemberRecord) Rate() (Selector, uint8) { return limited(r[42]) }

// Lifetime returns the packet lifetime, as t of 4.096 us * 2^t, and its selector: bits 5:0 and 7:6
// of byte 43.
func (r MCMemberRecord) Lifetime() (Selector, uint8) { return limited(r[43]) }

// SL returns the service level: bits 7:4 of byte 44.
func (r MCMemberRecord) SL() uint8 { return bits(r[44], 4, 4) }

// FlowLabel returns the flow label: bits 27:8 of the word at byte 44.
func (r MCMemberRecord) FlowLabel() uint32 { return flowLabel(r[44:]) }

// HopLimit returns the hop limit: byte 47.
func (r MCMemberRecord) HopLimit() uint8 { return r[47] }

// Scope returns the scope of the group: bits 7:4 of byte 48.
func (r MCMemberRecord) Scope() uint8 { return bits(r[48], 4, 4) }

// JoinState returns how the port is a member, JoinFull and the like: bits 3:0 of byte 48.
func (r MCMemberRecord) JoinState() uint8 { return bits(r[48], 0, 4) }

// SetMGID sets the GID of the group.
func (r MCMemberRecord) SetMGID(v roce.GID) { copy(r[0:16], v[:]) }

// SetPortGID sets the GID of the member's port.
func (r MCMemberRecord) SetPortGID(v roce.GID) { copy(r[16:32], v[:]) }

// SetQKey sets the Q_Key.
func (r MCMemberRecord) SetQKey(v uint32) { be.PutUint32(r[32:], v) }

// SetMLID sets the LID of the group.
func (r MCMemberRecord) SetMLID(v uint16) { be.PutUint16(r[36:], v) }

// SetMTU sets the MTU code and its selector.
func (r MCMemberRecord) SetMTU(s Selector, v uint8) { setLimited(&r[38], s, v) }

// SetTrafficClass sets the traffic class.
func (r MCMemberRecord) SetTrafficClass(v uint8) { r[39] = v }

// SetPKey sets the partition key.
func (r MCMemberRecord) SetPKey(v uint16) { be.PutUint16(r[40:], v) }

// SetRate sets the rate code and its selector.
func (r MCMemberRecord) SetRate(s Selector, v uint8) { setLimited(&r[42], s, v) }

// SetLifetime sets the code t of the packet lifetime and its selector.
func (r MCMemberRecord) SetLifetime(s Selector, v uint8) { setLimited(&r[43], s, v) }

// SetSL sets the service level.
func (r MCMemberRecord) SetSL(v uint8) { setBits(&r[44], 4, 4, v) }

// SetFlowLabel sets the flow label.
func (r MCMemberRecord) SetFlowLabel(v uint32) { setFlowLabel(r[44:], v) }

// SetHopLimit sets the hop limit.
func (r MCMemberRecord) SetHopLimit(v uint8) { r[47] = v }

// SetScope sets the scope of the group.
func (r MCMemberRecord) SetScope(v uint8) { setBits(&r[48], 4, 4, v) }

// SetJoinState sets how the port is a member, JoinFull and the like.
func (r MCMemberRecord) SetJoinState(v uint8) { setBits(&r[48], 0, 4, v) }

// Components of records that are of a port.
const (
	RecordLID  uint64 = 1 << 0
	RecordPort uint64 = 1 << 1 // of a PortInfoRecord

	// Of a NodeRecord, behind the LID and a reserved component.
	NodeBaseVersion uint64 = 1 << 2
	NodeGUID        uint64 = 1 << 7
	NodePortGUID    uint64 = 1 << 8
)

// NodeRecord is an end node at the port by which it was reached, 108 bytes.
type NodeRecord []byte

// NodeTypeCA is the node type of a host's channel adapter.
const NodeTypeCA = 1

// LID returns the LID of the port: 16 bits at byte 0.
func (r NodeRecord) LID() uint16 { return be.Uint16(r) }

// PortGUID returns the port GUID: 64 bits at byte 24.
func (r NodeRecord) PortGUID() uint64 { return be.Uint64(r[24:]) }

// Description returns the name of the node, up to 64 bytes that end at the first zero.
func (r NodeRecord) Description() string {
	b := r[44:NodeRecordSize]
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// SetLID sets the LID of the port.
func (r NodeRecord) SetLID(v uint16) { be.PutUint16(r, v) }

// SetVersions sets the versions of management datagrams in general and of the class.
func (r NodeRecord) SetVersions(base, class uint8) { r[4], r[5] = base, class }

// SetNodeType sets the node type, such as NodeTypeCA.
func (r NodeRecord) SetNodeType(v uint8) { r[6] = v }

// SetPorts sets the number of ports.
func (r NodeRecord) SetPorts(v uint8) { r[7] = v }

// SetSystemGUID sets the system image GUID.
func (r NodeRecord) SetSystemGUID(v uint64) { be.PutUint64(r[8:], v) }

// SetNodeGUID sets the node GUID.
func (r NodeRecord) SetNodeGUID(v uint64) { be.PutUint64(r[16:], v) }

// SetPortGUID sets the port GUID.
func (r NodeRecord) SetPortGUID(v uint64) { be.PutUint64(r[24:], v) }

// SetPartitions sets the number of entries of the P_Key table.
func (r NodeRecord) SetPartitions(v uint16) { be.PutUint16(r[32:], v) }

// SetLocalPort sets the number of the port.
func (r NodeRecord) SetLocalPort(v uint8) { r[40] = v }

// SetDescription sets the name of the node, of which the first 64 bytes count; a shorter one leaves
// the bytes behind it as they are.
func (r NodeRecord) SetDescription(s string) { copy(r[44:NodeRecordSize], s) }

// PortInfoRecord is the configuration and state of a port, 68 bytes.
type PortInfoRecord []byte

// PortLID returns the base LID of the port: 16 bits at byte 20.
func (r PortInfoRecord) PortLID() uint16 { return be.Uint16(r[20:]) }

// SMLID returns the LID of the master subnet manager: 16 bits at byte 22.
func (r PortInfoRecord) SMLID() uint16 { return be.Uint16(r[22:]) }

// State returns the state of the port: bits 3:0 of byte 36.
func (r PortInfoRecord) State() roce.PortState { return roce.PortState(bits(r[36], 0, 4)) }

// SetLID sets the LID by which the record is found.
func (r PortInfoRecord) SetLID(v uint16) { be.PutUint16(r, v) }

// SetPort sets the port number by which the record is found.
func (r PortInfoRecord) SetPort(v uint8) { r[2] = v }

// SetGIDPrefix sets the GID prefix.
func (r PortInfoRecord) SetGIDPrefix(v uint64) { be.PutUint64(r[12:], v) }

// SetPortLID sets the base LID of the port.
func (r PortInfoRecord) SetPortLID(v uint16) { be.PutUint16(r[20:], v) }

// SetSMLID sets the LID of the master subnet manager.
func (r PortInfoRecord) SetSMLID(v uint16) { be.PutUint16(r[22:], v) }

// SetLocalPort sets the number of the port.
func (r PortInfoRecord) SetLocalPort(v uint8) { r[32] = v }

// SetState sets the state of the port.
func (r PortInfoRecord) SetState(v roce.PortState) { setBits(&r[36], 0, 4, uint8(v)) }

// SetPhysicalState sets the physical state.
func (r PortInfoRecord) SetPhysicalState(v uint8) { setBits(&r[37], 4, 4, v) }

// SetLMC sets the LID mask control: the port has 2^v LIDs.
func (r PortInfoRecord) SetLMC(v uint8) { setBits(&r[38], 0, 3, v) }

// SetMTU sets both the MTU in use (neighbour MTU) and the MTU capability to a code.
func (r PortInfoRecord) SetMTU(v roce.MTU) {
	setBits(&r[40], 4, 4, uint8(v))
	setBits(&r[45], 0, 4, uint8(v))
}

// SetSMSL sets the service level to the master subnet manager.
func (r PortInfoRecord) SetSMSL(v uint8) { setBits(&r[40], 0, 4, v) }

// SetSubnetTimeout sets the code t of the longest way through the subnet, 4.096 us * 2^t.
func (r PortInfoRecord) SetSubnetTimeout(v uint8) { setBits(&r[55], 0, 5, v) }
