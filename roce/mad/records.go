package mad

import "github.com/rdmasim/rdmasim/roce"

// Sizes of records.
const (
	ClassPortInfoSize  = 72
	InformInfoSize     = 36
	NodeRecordSize     = 108
	PortInfoRecordSize = 68
	PathRecordSize     = 64
	MCMemberRecordSize = 52
)

// Selector says how a component with a limit is meant.
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

// ClassPortInfo says what an agent can do.
type ClassPortInfo []byte

// CanSendOnlyFullMember is the capability of having members that only send and yet make a group.
const CanSendOnlyFullMember = 1 << 1

func (c ClassPortInfo) SetBaseVersion(v uint8)  { c[0] = v }
func (c ClassPortInfo) SetClassVersion(v uint8) { c[1] = v }

// Capabilities2 are the 27 further capabilities.
func (c ClassPortInfo) Capabilities2() uint32 { return be.Uint32(c[4:]) >> 5 }

// SetCapabilities2 sets them, and the time of an answer as 4.096 us times a power of two.
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

// PathRecord is a way from one port to another, 64 bytes.
type PathRecord []byte

func (r PathRecord) ServiceID() uint64           { return be.Uint64(r) }
func (r PathRecord) DGID() roce.GID              { return gid(r[8:]) }
func (r PathRecord) SGID() roce.GID              { return gid(r[24:]) }
func (r PathRecord) DLID() uint16                { return be.Uint16(r[40:]) }
func (r PathRecord) SLID() uint16                { return be.Uint16(r[42:]) }
func (r PathRecord) FlowLabel() uint32           { return flowLabel(r[44:]) }
func (r PathRecord) HopLimit() uint8             { return r[47] }
func (r PathRecord) TrafficClass() uint8         { return r[48] }
func (r PathRecord) Reversible() bool            { return r[49]&0x80 != 0 }
func (r PathRecord) Number() uint8               { return bits(r[49], 0, 7) }
func (r PathRecord) PKey() uint16                { return be.Uint16(r[50:]) }
func (r PathRecord) QoSClass() uint16            { return be.Uint16(r[52:]) >> 4 }
func (r PathRecord) SL() uint8                   { return bits(r[53], 0, 4) }
func (r PathRecord) MTU() (Selector, uint8)      { return limited(r[54]) }
func (r PathRecord) Rate() (Selector, uint8)     { return limited(r[55]) }
func (r PathRecord) Lifetime() (Selector, uint8) { return limited(r[56]) }

func (r PathRecord) SetServiceID(v uint64)           { be.PutUint64(r, v) }
func (r PathRecord) SetDGID(v roce.GID)              { copy(r[8:24], v[:]) }
func (r PathRecord) SetSGID(v roce.GID)              { copy(r[24:40], v[:]) }
func (r PathRecord) SetDLID(v uint16)                { be.PutUint16(r[40:], v) }
func (r PathRecord) SetSLID(v uint16)                { be.PutUint16(r[42:], v) }
func (r PathRecord) SetFlowLabel(v uint32)           { setFlowLabel(r[44:], v) }
func (r PathRecord) SetHopLimit(v uint8)             { r[47] = v }
func (r PathRecord) SetTrafficClass(v uint8)         { r[48] = v }
func (r PathRecord) SetReversible(v bool)            { setBits(&r[49], 7, 1, b2u(v)) }
func (r PathRecord) SetNumber(v uint8)               { setBits(&r[49], 0, 7, v) }
func (r PathRecord) SetPKey(v uint16)                { be.PutUint16(r[50:], v) }
func (r PathRecord) SetQoSClass(v uint16)            { be.PutUint16(r[52:], be.Uint16(r[52:])&0xF|v<<4) }
func (r PathRecord) SetSL(v uint8)                   { setBits(&r[53], 0, 4, v) }
func (r PathRecord) SetMTU(s Selector, v uint8)      { setLimited(&r[54], s, v) }
func (r PathRecord) SetRate(s Selector, v uint8)     { setLimited(&r[55], s, v) }
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

// MCMemberRecord is a multicast group with a member of it, 52 bytes.
type MCMemberRecord []byte

func (r MCMemberRecord) MGID() roce.GID              { return gid(r) }
func (r MCMemberRecord) PortGID() roce.GID           { return gid(r[16:]) }
func (r MCMemberRecord) QKey() uint32                { return be.Uint32(r[32:]) }
func (r MCMemberRecord) MLID() uint16                { return be.Uint16(r[36:]) }
func (r MCMemberRecord) MTU() (Selector, uint8)      { return limited(r[38]) }
func (r MCMemberRecord) TrafficClass() uint8         { return r[39] }
func (r MCMemberRecord) PKey() uint16                { return be.Uint16(r[40:]) }
func (r MCMemberRecord) Rate() (Selector, uint8)     { return limited(r[42]) }
func (r MCMemberRecord) Lifetime() (Selector, uint8) { return limited(r[43]) }
func (r MCMemberRecord) SL() uint8                   { return bits(r[44], 4, 4) }
func (r MCMemberRecord) FlowLabel() uint32           { return flowLabel(r[44:]) }
func (r MCMemberRecord) HopLimit() uint8             { return r[47] }
func (r MCMemberRecord) Scope() uint8                { return bits(r[48], 4, 4) }
func (r MCMemberRecord) JoinState() uint8            { return bits(r[48], 0, 4) }

func (r MCMemberRecord) SetMGID(v roce.GID)              { copy(r[0:16], v[:]) }
func (r MCMemberRecord) SetPortGID(v roce.GID)           { copy(r[16:32], v[:]) }
func (r MCMemberRecord) SetQKey(v uint32)                { be.PutUint32(r[32:], v) }
func (r MCMemberRecord) SetMLID(v uint16)                { be.PutUint16(r[36:], v) }
func (r MCMemberRecord) SetMTU(s Selector, v uint8)      { setLimited(&r[38], s, v) }
func (r MCMemberRecord) SetTrafficClass(v uint8)         { r[39] = v }
func (r MCMemberRecord) SetPKey(v uint16)                { be.PutUint16(r[40:], v) }
func (r MCMemberRecord) SetRate(s Selector, v uint8)     { setLimited(&r[42], s, v) }
func (r MCMemberRecord) SetLifetime(s Selector, v uint8) { setLimited(&r[43], s, v) }
func (r MCMemberRecord) SetSL(v uint8)                   { setBits(&r[44], 4, 4, v) }
func (r MCMemberRecord) SetFlowLabel(v uint32)           { setFlowLabel(r[44:], v) }
func (r MCMemberRecord) SetHopLimit(v uint8)             { r[47] = v }
func (r MCMemberRecord) SetScope(v uint8)                { setBits(&r[48], 4, 4, v) }
func (r MCMemberRecord) SetJoinState(v uint8)            { setBits(&r[48], 0, 4, v) }

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

// NodeTypeCA is that of a host's adapter.
const NodeTypeCA = 1

func (r NodeRecord) LID() uint16      { return be.Uint16(r) }
func (r NodeRecord) NodeGUID() uint64 { return be.Uint64(r[16:]) }
func (r NodeRecord) PortGUID() uint64 { return be.Uint64(r[24:]) }

// Description is the name that a person gave the node.
func (r NodeRecord) Description() string {
	b := r[44:NodeRecordSize]
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

func (r NodeRecord) SetLID(v uint16)               { be.PutUint16(r, v) }
func (r NodeRecord) SetVersions(base, class uint8) { r[4], r[5] = base, class }
func (r NodeRecord) SetNodeType(v uint8)           { r[6] = v }
func (r NodeRecord) SetPorts(v uint8)              { r[7] = v }
func (r NodeRecord) SetSystemGUID(v uint64)        { be.PutUint64(r[8:], v) }
func (r NodeRecord) SetNodeGUID(v uint64)          { be.PutUint64(r[16:], v) }
func (r NodeRecord) SetPortGUID(v uint64)          { be.PutUint64(r[24:], v) }
func (r NodeRecord) SetPartitions(v uint16)        { be.PutUint16(r[32:], v) }
func (r NodeRecord) SetLocalPort(v uint8)          { r[40] = v }
func (r NodeRecord) SetDescription(s string)       { copy(r[44:NodeRecordSize], s) }

// PortInfoRecord is what is set of a port, 68 bytes.
type PortInfoRecord []byte

func (r PortInfoRecord) LID() uint16           { return be.Uint16(r) }
func (r PortInfoRecord) PortLID() uint16       { return be.Uint16(r[20:]) }
func (r PortInfoRecord) SMLID() uint16         { return be.Uint16(r[22:]) }
func (r PortInfoRecord) State() roce.PortState { return roce.PortState(bits(r[36], 0, 4)) }
func (r PortInfoRecord) SetLID(v uint16)       { be.PutUint16(r, v) }
func (r PortInfoRecord) SetPort(v uint8)       { r[2] = v }
func (r PortInfoRecord) SetGIDPrefix(v uint64) { be.PutUint64(r[12:], v) }
func (r PortInfoRecord) SetPortLID(v uint16)   { be.PutUint16(r[20:], v) }
func (r PortInfoRecord) SetSMLID(v uint16)     { be.PutUint16(r[22:], v) }
func (r PortInfoRecord) SetLocalPort(v uint8)  { r[32] = v }

func (r PortInfoRecord) SetState(v roce.PortState) { setBits(&r[36], 0, 4, uint8(v)) }
func (r PortInfoRecord) SetPhysicalState(v uint8)  { setBits(&r[37], 4, 4, v) }
func (r PortInfoRecord) SetLMC(v uint8)            { setBits(&r[38], 0, 3, v) }
func (r PortInfoRecord) SetMTU(v roce.MTU) {
	setBits(&r[40], 4, 4, uint8(v))
	setBits(&r[45], 0, 4, uint8(v))
}
func (r PortInfoRecord) SetSMSL(v uint8)          { setBits(&r[40], 0, 4, v) }
func (r PortInfoRecord) SetSubnetTimeout(v uint8) { setBits(&r[55], 0, 5, v) }
