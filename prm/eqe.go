package prm

// EventType is the type of an event queue entry.
type EventType uint8

// Event types (device.h, MLX5_EVENT_TYPE_*).
const (
	EventComp            EventType = 0x00
	EventPathMig         EventType = 0x01
	EventCommEst         EventType = 0x02
	EventSQDrained       EventType = 0x03
	EventCQError         EventType = 0x04
	EventWQCatasError    EventType = 0x05
	EventPathMigFailed   EventType = 0x07
	EventInternalError   EventType = 0x08
	EventPortChange      EventType = 0x09
	EventCmd             EventType = 0x0a
	EventPageRequest     EventType = 0x0b
	EventPageFault       EventType = 0x0c
	EventNICVportChange  EventType = 0x0d
	EventWQInvalReqError EventType = 0x10
	EventWQAccessError   EventType = 0x11
	EventSRQCatasError   EventType = 0x12
	EventSRQLastWQE      EventType = 0x13
	EventSRQRQLimit      EventType = 0x14
	EventXRQError        EventType = 0x18
	EventDBBFCongestion  EventType = 0x1a
	EventStall           EventType = 0x1b
)

// Sub-types of EventPortChange.
const (
	PortChangeDown        = 1
	PortChangeActive      = 4
	PortChangeInitialized = 5
	PortChangeLID         = 6
	PortChangePKey        = 7
	PortChangeGUID        = 8
	PortChangeClientRereg = 9
)

// Queue types of a QP event.
const (
	EventQueueQP  = 0
	EventQueueRQ  = 1
	EventQueueSQ  = 2
	EventQueueDCT = 6
)

// Syndromes of EventCQError.
const (
	CQErrOverrun         = 1
	CQErrAccessViolation = 2
)

// EQE is an event queue entry.
type EQE []byte

// EQESize is its length in bytes.
const EQESize = 64

// EQEOwnerInit is the owner byte that software writes to every entry before it
// creates the EQ.
const EQEOwnerInit = 1

func (e EQE) Type() EventType     { return EventType(e[1]) }
func (e EQE) SetType(v EventType) { e[1] = byte(v) }
func (e EQE) SubType() uint8      { return e[3] }
func (e EQE) SetSubType(v uint8)  { e[3] = v }

// Data is the part whose form depends on the type.
func (e EQE) Data() []byte { return e[0x20:0x3c:0x3c] }

// CompCQN is the CQ of an EventComp.
func (e EQE) CompCQN() uint32     { return bits(e, 0x38, 23, 0) }
func (e EQE) SetCompCQN(v uint32) { put(e, 0x38, 23, 0, v) }

// QPSRQN is the number in a QP or SRQ event, and QueueType the kind of the former.
func (e EQE) QPSRQN() uint32       { return bits(e, 0x38, 23, 0) }
func (e EQE) SetQPSRQN(v uint32)   { put(e, 0x38, 23, 0, v) }
func (e EQE) QueueType() uint8     { return e[0x34] }
func (e EQE) SetQueueType(v uint8) { e[0x34] = v }

// CQErrCQN and CQErrSyndrome are the data of an EventCQError.
func (e EQE) CQErrCQN() uint32         { return bits(e, 0x20, 23, 0) }
func (e EQE) SetCQErrCQN(v uint32)     { put(e, 0x20, 23, 0, v) }
func (e EQE) CQErrSyndrome() uint8     { return e[0x2b] }
func (e EQE) SetCQErrSyndrome(v uint8) { e[0x2b] = v }

// Port is the port of an EventPortChange.
func (e EQE) Port() uint8     { return e[0x28] >> 4 }
func (e EQE) SetPort(v uint8) { e[0x28] = e[0x28]&0x0f | v<<4 }

// CmdVector has a bit for each finished entry of the command queue.
func (e EQE) CmdVector() uint32     { return be32(e, 0x20) }
func (e EQE) SetCmdVector(v uint32) { putBE32(e, 0x20, v) }

func (e EQE) Signature() uint8     { return e[0x3e] }
func (e EQE) SetSignature(v uint8) { e[0x3e] = v }
func (e EQE) Owner() uint8         { return e[0x3f] }
func (e EQE) SetOwner(v uint8)     { e[0x3f] = v }

// Ready reports whether software owns the entry: ci is the consumer index (not
// reduced) and n the number of entries, a power of two.
func (e EQE) Ready(ci, n uint32) bool { return (e[0x3f]&1 != 0) == (ci&n != 0) }

// EQEOwner is the owner byte that a device writes to its entry number pi (not
// reduced) of n: the parity of the pass.
func EQEOwner(pi, n uint32) uint8 { return CQEOwner(pi, n) }
