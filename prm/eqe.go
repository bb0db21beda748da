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
	EventDCTDrained      EventType = 0x1c
	EventDCTKeyViolation EventType = 0x1d
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

// EQEOwnerInit is the owner byte that software writes to every entry before it
// creates the EQ.
const EQEOwnerInit = 1

// Port is the port of an EventPortChange.
func (e EQE) Port() uint8 { return e[0x28] >> 4 }

// SetPort sets the port number.
func (e EQE) SetPort(v uint8) { e[0x28] = e[0x28]&0x0f | v<<4 }

// Ready reports whether software owns the entry: ci is the consumer index (not
// reduced) and n the number of entries, a power of two.
func (e EQE) Ready(ci, n uint32) bool { return (e[0x3f]&1 != 0) == (ci&n != 0) }

// EQEOwner is the owner byte that a device writes to its entry number pi (not
// reduced) of n: the parity of the pass.
func EQEOwner(pi, n uint32) uint8 { return CQEOwner(pi, n) }
