//go:build hw

package mlx5

/*
#include "verbs.h"
#include "cm.h"
*/
import "C"

import (
	"fmt"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/verbs"
)

var _ verbs.ConnectionManager = (*process)(nil)

// cmTable are the wrappers of what librdmacm has made in this process. It shares one context of
// each device among all ids, and never closes it.
type cmTable struct {
	mu       sync.Mutex
	ids      map[unsafe.Pointer]*cmID
	contexts map[*C.struct_ibv_context]*context
	groups   map[uintptr]any // contexts of multicast groups, by the number that the library has
	last     uintptr
}

var cmObjects = cmTable{ids: map[unsafe.Pointer]*cmID{}, contexts: map[*C.struct_ibv_context]*context{}, groups: map[uintptr]any{}}

// eventChannel is rdma_event_channel.
type eventChannel struct {
	verbs.UnimplementedEventChannel
	p *process
	c unsafe.Pointer

	mu     sync.Mutex
	events map[*verbs.CMEvent]unsafe.Pointer // those that are not acknowledged
}

// errNoCM says why there is no connection manager, nil: there is one.
func errNoCM() error {
	if why := C.hw_cm_load(); why != nil {
		return fmt.Errorf("connection manager: %s: %w", C.GoString(why), syscall.EOPNOTSUPP)
	}
	return nil
}

// CreateEventChannel is rdma_create_event_channel.
func (p *process) CreateEventChannel(t verbs.Thread) (verbs.EventChannel, error) {
	defer enterCall(t, "rdma_create_event_channel").leaveCall()
	if err := errNoCM(); err != nil {
		return nil, err
	}
	c, err := C.hw_cm_create_channel()
	if c == nil {
		return nil, null("rdma_create_event_channel", err)
	}
	if err := unix.SetNonblock(int(C.hw_cm_channel_fd(c)), true); err != nil {
		C.hw_cm_destroy_channel(c)
		return nil, fmt.Errorf("events of a channel: %w", err)
	}
	return &eventChannel{p: p, c: c, events: map[*verbs.CMEvent]unsafe.Pointer{}}, nil
}

// CreateID is rdma_create_id, which has no parameter for the type: ids of PortSpaceIB are of type
// RC.
func (h *eventChannel) CreateID(t verbs.Thread, ps verbs.PortSpace, typ verbs.QPType, user any) (verbs.CMID, error) {
	defer enterCall(t, "rdma_create_id").leaveCall()
	if ps == verbs.PortSpaceIB && typ != 0 && typ != verbs.QPTRC {
		return nil, fmt.Errorf("rdma_create_id of port space IB makes ids of type RC only: %w", syscall.EOPNOTSUPP)
	}
	var id unsafe.Pointer
	ret, err := C.hw_cm_create_id(h.c, &id, C.int(ps))
	if ret != 0 {
		return nil, failed("rdma_create_id", ret, err)
	}
	return h.adopt(id, user), nil
}

// adopt wraps an id that the library has made.
func (h *eventChannel) adopt(id unsafe.Pointer, user any) *cmID {
	i := &cmID{channel: h, id: id, user: user}
	cmObjects.mu.Lock()
	defer cmObjects.mu.Unlock()
	cmObjects.ids[id] = i
	return i
}

func idOf(p unsafe.Pointer) *cmID {
	cmObjects.mu.Lock()
	defer cmObjects.mu.Unlock()
	return cmObjects.ids[p]
}

// Destroy is rdma_destroy_event_channel.
func (h *eventChannel) Destroy(t verbs.Thread) error {
	defer enterCall(t, "rdma_destroy_event_channel").leaveCall()
	if h.c == nil {
		return fmt.Errorf("rdma_destroy_event_channel: destroyed already: %w", syscall.EBADF)
	}
	C.hw_cm_destroy_channel(h.c)
	h.c = nil
	return nil
}

// Readable polls the channel.
func (h *eventChannel) Readable(t verbs.Thread) bool {
	defer enterCall(t, "poll of an event channel").leaveCall()
	return C.hw_wait(C.hw_cm_channel_fd(h.c), 0) == 0
}

// GetEvent is rdma_get_cm_event.
func (h *eventChannel) GetEvent(t verbs.Thread, timeout time.Duration) (*verbs.CMEvent, error) {
	defer enterCall(t, "rdma_get_cm_event").leaveCall()
	var e C.struct_hw_cm_event
	err := await(C.hw_cm_channel_fd(h.c), timeout, func() error {
		ret, err := C.hw_cm_get_event(h.c, &e)
		return failed("rdma_get_cm_event", ret, err)
	})
	if err != nil {
		return nil, err
	}
	v := h.event(&e)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events[v] = e.event
	return v, nil
}

func (h *eventChannel) event(e *C.struct_hw_cm_event) *verbs.CMEvent {
	v := &verbs.CMEvent{Type: verbs.CMEventType(e._type), Status: int(e.status)}
	if l := idOf(e.listen_id); l != nil {
		v.ListenID = l
		v.ID = h.adopt(e.id, l.Context())
	} else if i := idOf(e.id); i != nil {
		v.ID = i
	}
	data := C.GoBytes(unsafe.Pointer(&e.conn.private_data[0]), C.int(e.conn.length))
	v.Conn = verbs.ConnParam{PrivateData: data, ResponderResources: uint8(e.conn.responder_resources), InitiatorDepth: uint8(e.conn.initiator_depth),
		FlowControl: e.conn.flow_control != 0, RetryCount: uint8(e.conn.retry_count), RNRRetryCount: uint8(e.conn.rnr_retry_count),
		SRQ: e.conn.srq != 0, QPN: uint32(e.conn.qp_num)}
	if v.ID != nil && v.ID.Type() == verbs.QPTUD {
		v.Conn = verbs.ConnParam{}
		v.UD = verbs.UDParam{PrivateData: data, AH: goAH(&e.ah), QPN: uint32(e.conn.qp_num), QKey: uint32(e.qkey)}
	}
	if e.multicast != 0 {
		cmObjects.mu.Lock()
		v.Multicast = cmObjects.groups[uintptr(e.multicast)]
		cmObjects.mu.Unlock()
	}
	return v
}

// AckEvent is rdma_ack_cm_event.
func (h *eventChannel) AckEvent(t verbs.Thread, ev *verbs.CMEvent) error {
	defer enterCall(t, "rdma_ack_cm_event").leaveCall()
	h.mu.Lock()
	e, ok := h.events[ev]
	delete(h.events, ev)
	h.mu.Unlock()
	if !ok {
		return fmt.Errorf("rdma_ack_cm_event: acknowledged already, or of another channel: %w", syscall.EINVAL)
	}
	ret, err := C.hw_cm_ack_event(e)
	return failed("rdma_ack_cm_event", ret, err)
}

// cAddr is an address of the library's; the zero value is none.
func cAddr(a netip.AddrPort) (c C.struct_hw_cm_addr) {
	ip := a.Addr()
	if !ip.IsValid() {
		return c
	}
	c.port = C.uint16_t(a.Port())
	for i, b := range ip.AsSlice() {
		c.ip[i] = C.uint8_t(b)
		c.size++
	}
	if n, err := strconv.ParseUint(ip.Zone(), 10, 32); err == nil {
		c.scope = C.uint32_t(n)
	}
	return c
}

func goAddr(c *C.struct_hw_cm_addr) netip.AddrPort {
	ip, ok := netip.AddrFromSlice(C.GoBytes(unsafe.Pointer(&c.ip[0]), C.int(c.size)))
	if !ok {
		return netip.AddrPort{}
	}
	if c.scope != 0 {
		ip = ip.WithZone(strconv.FormatUint(uint64(c.scope), 10))
	}
	return netip.AddrPortFrom(ip, uint16(c.port))
}

// milliseconds is a time as the library takes it, rounded up.
func milliseconds(d time.Duration) C.int { return C.int((d + time.Millisecond - 1) / time.Millisecond) }
