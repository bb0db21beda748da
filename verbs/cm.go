package verbs

import (
	"net/netip"
	"time"
)

// The connection manager, in the terms of librdmacm ("cm"). Errors are the errno that its calls
// set. What a call of the library waits for, the call here waits for: the acknowledgement of events
// in Destroy and Migrate, for one.

// ConnectionManager is implemented by processes whose programs can use librdmacm ("cm").
type ConnectionManager interface {
	// CreateEventChannel is rdma_create_event_channel.
	CreateEventChannel(t Thread) (EventChannel, error)
}

// CMFileOpener is implemented by processes that can open the channel device without librdmacm ("raw
// cm").
type CMFileOpener interface {
	OpenCMFile(t Thread) (CMFile, error)
}

// CMFile is an open file of the channel device (/dev/infiniband/rdma_cm).
type CMFile interface {
	// Write is write(2) of a command of the user ABI, with its header. Answers go to the address in
	// the command.
	Write(t Thread, command []byte) (int, error)
	// Close is close(2): the kernel destroys the ids of the file.
	Close(t Thread) error
}

// EventChannel is rdma_event_channel: ids report their events to it. It belongs to the process that
// made it.
type EventChannel interface {
	// CreateID is rdma_create_id. The port space determines the QP type; only PortSpaceIB takes typ
	// (0: RC). context is the user's own value. EINVAL: there is no such port space.
	CreateID(t Thread, ps PortSpace, typ QPType, context any) (CMID, error)
	// GetEvent is rdma_get_cm_event: it waits up to timeout for the oldest event. EAGAIN: none has
	// come (a timeout of 0 is a channel with O_NONBLOCK). EINTR: a signal came first. When a REP
	// comes, the library brings the id's QP to RTS and answers; the program gets CMEstablished, or
	// CMConnectError.
	GetEvent(t Thread, timeout time.Duration) (*CMEvent, error)
	// Readable is poll of the channel's descriptor: whether GetEvent would return at once.
	Readable(t Thread) bool
	// AckEvent is rdma_ack_cm_event: each event is acknowledged once.
	AckEvent(t Thread, ev *CMEvent) error
	// Destroy is rdma_destroy_event_channel. The ids of the channel must be gone: librdmacm does
	// not check it, and events of an id without its channel go nowhere.
	Destroy(t Thread) error
}

// CMID is rdma_cm_id.
type CMID interface {
	// Channel returns the channel that gets the events of the id.
	Channel() EventChannel
	// Context is the user's own value. The id of a connection request has that of its listener.
	Context() any
	// SetContext replaces the value that Context returns.
	SetContext(v any)
	// PortSpace returns the port space given at creation.
	PortSpace() PortSpace
	// Type returns the type of the QPs of the id.
	Type() QPType
	// Verbs is the context of the id's device; nil until the id has a device. The library opens it,
	// shares it among all ids of a process, and never closes it.
	Verbs() Context
	// Port is the port of the device; 0 without a device.
	Port() int
	// QP is what CreateQP made; nil before.
	QP() QP
	// LocalAddr and PeerAddr are rdma_get_local_addr and rdma_get_peer_addr with their ports; zero
	// values where there is none.
	LocalAddr() netip.AddrPort
	PeerAddr() netip.AddrPort

	// BindAddr is rdma_bind_addr. Port 0 takes a free one. EADDRNOTAVAIL: no interface has the
	// address, or a wildcard address is bound to the port. ENODEV: an interface without RDMA has
	// it. EADDRINUSE, EACCES, EINVAL: rdma-core, rdma_bind_addr(3).
	BindAddr(t Thread, addr netip.AddrPort) error
	// ResolveAddr is rdma_resolve_addr; a zero src leaves the source address to the route.
	// CMAddrResolved or CMAddrError follows.
	ResolveAddr(t Thread, src, dst netip.AddrPort, timeout time.Duration) error
	// ResolveRoute is rdma_resolve_route. CMRouteResolved or CMRouteError follows.
	ResolveRoute(t Thread, timeout time.Duration) error
	// QueryPath returns the path records of the id: one, when the route is resolved.
	QueryPath(t Thread) ([]PathRecord, error)
	// CreateQP is rdma_create_qp: pd nil is the library's own. The new QP is in INIT, a UD QP in
	// RTS.
	CreateQP(t Thread, pd PD, attr QPInitAttr) (QP, error)
	// DestroyQP is rdma_destroy_qp.
	DestroyQP(t Thread) error
	// InitQPAttr is rdma_init_qp_attr: what ModifyQP needs to bring the id's QP to a state.
	InitQPAttr(t Thread, state QPState) (QPAttr, QPAttrMask, error)
	// Connect is rdma_connect; p nil: the device's maxima, and retry counts of 7.
	Connect(t Thread, p *ConnParam) error
	// Listen is rdma_listen. Backlog 0: the system's limit.
	Listen(t Thread, backlog int) error
	// Accept is rdma_accept; p nil: the values of the request.
	Accept(t Thread, p *ConnParam) error
	// Reject is rdma_reject.
	Reject(t Thread, private []byte) error
	// Establish is rdma_establish: it completes the connection of an id without a QP, after
	// CMConnectResponse.
	Establish(t Thread) error
	// Disconnect is rdma_disconnect: the QP of the id goes to ERR, then DREQ or DREP leaves.
	Disconnect(t Thread) error
	// Notify is rdma_notify: an asynchronous event of the QP, EventCommEst or EventPathMig.
	Notify(t Thread, ev EventType) error
	// JoinMulticast is rdma_join_multicast_ex. CMMulticastJoin or CMMulticastError follows; at
	// CMMulticastJoin the library attaches the id's QP, if it has one, to the group.
	JoinMulticast(t Thread, group netip.Addr, flags MulticastFlags, context any) error
	// LeaveMulticast is rdma_leave_multicast. EADDRNOTAVAIL: the id has not joined the group.
	LeaveMulticast(t Thread, group netip.Addr) error
	// Migrate is rdma_migrate_id: waiting events of the id move along.
	Migrate(t Thread, to EventChannel) error
	// SetOption is rdma_set_option, with the value's bytes in the order of the host.
	SetOption(t Thread, level CMOptionLevel, name int, value []byte) error
	// Destroy is rdma_destroy_id: it waits until each event of the id that was taken is
	// acknowledged. The QP must be gone.
	Destroy(t Thread) error
}

// PortSpace is RDMA_PS_*.
type PortSpace uint16

// Port spaces.
const (
	PortSpaceIPoIB PortSpace = 0x0002
	PortSpaceTCP   PortSpace = 0x0106
	PortSpaceUDP   PortSpace = 0x0111
	PortSpaceIB    PortSpace = 0x013f
)

// CMEventType is RDMA_CM_EVENT_*.
type CMEventType uint32

// Events.
const (
	CMAddrResolved CMEventType = iota
	CMAddrError
	CMRouteResolved
	CMRouteError
	CMConnectRequest
	CMConnectResponse
	CMConnectError
	CMUnreachable
	CMRejected
	CMEstablished
	CMDisconnected
	CMDeviceRemoval
	CMMulticastJoin
	CMMulticastError
	CMAddrChange
	CMTimewaitExit
)

var cmEventNames = [...]string{
	"ADDR_RESOLVED", "ADDR_ERROR", "ROUTE_RESOLVED", "ROUTE_ERROR", "CONNECT_REQUEST", "CONNECT_RESPONSE", "CONNECT_ERROR", "UNREACHABLE",
	"REJECTED", "ESTABLISHED", "DISCONNECTED", "DEVICE_REMOVAL", "MULTICAST_JOIN", "MULTICAST_ERROR", "ADDR_CHANGE", "TIMEWAIT_EXIT",
}

// String returns the name of RDMA_CM_EVENT_* without the prefix.
func (e CMEventType) String() string { return nameOf(cmEventNames[:], e, "CMEventType") }

// CMEvent is rdma_cm_event. Private data has the length that the kernel reports: the room in the
// message, not what was sent.
type CMEvent struct {
	ID       CMID
	ListenID CMID // of CMConnectRequest
	Type     CMEventType
	// Status is 0, a negative errno, or, for CMRejected and CMUnreachable, the peer's reason.
	Status int
	Conn   ConnParam // of ids that connect
	UD     UDParam   // of ids of type UD, in every event
	// Multicast is the group's context of CMMulticastJoin and CMMulticastError.
	Multicast any
}

// ConnParam is rdma_conn_param.
type ConnParam struct {
	PrivateData        []byte
	ResponderResources uint8
	InitiatorDepth     uint8
	FlowControl        bool
	RetryCount         uint8 // of Connect
	RNRRetryCount      uint8
	SRQ                bool   // only where the id has no QP
	QPN                uint32 // only where the id has no QP
	QKey               uint32 // of ids of type UD; 0: the default
}

// Values of ConnParam that stand for the device's maximum.
const (
	MaxRespRes   = 0xff
	MaxInitDepth = 0xff
)

// UDParam is rdma_ud_param.
type UDParam struct {
	PrivateData []byte
	AH          AHAttr
	QPN         uint32
	QKey        uint32
}

// DefaultUDQKey is the Q_Key of UD ids unless a program gives another (RDMA_UDP_QKEY).
const DefaultUDQKey = 0x0123_4567

// CMOptionLevel is RDMA_OPTION_ID or RDMA_OPTION_IB.
type CMOptionLevel uint32

// Levels of options, and the options of each.
const (
	CMOptionID CMOptionLevel = 0
	CMOptionIB CMOptionLevel = 1

	CMOptionTOS        = 0 // 1 byte
	CMOptionReuseAddr  = 1 // int
	CMOptionAFOnly     = 2 // int
	CMOptionACKTimeout = 3 // 1 byte
	CMOptionIBPath     = 1 // records of ibv_path_data
)

// MulticastFlags are RDMA_MC_JOIN_FLAG_*, by number.
type MulticastFlags uint16

// How a group is joined.
const (
	MulticastFullMember MulticastFlags = 0
	MulticastSendOnly   MulticastFlags = 1
)

// PathRecord is ibv_path_record.
type PathRecord struct {
	DGID, SGID   GID
	DLID, SLID   uint16
	FlowLabel    uint32
	HopLimit     uint8
	TrafficClass uint8
	Reversible   bool
	NumPath      uint8
	PKey         uint16
	SL           uint8
	MTU          MTU
	Rate         uint8 // code; 0: the port's
	Lifetime     uint8 // 4.096 us times 2 to the power of it
}
