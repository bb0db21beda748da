//go:build hw

package mlx5

/*
#include "verbs.h"
*/
import "C"

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/verbs"
)

// cq is a completion queue.
type cq struct {
	verbs.UnimplementedCQ
	ctx  *context
	c    *C.struct_ibv_cq
	user any

	locks lockCount
}

// CreateCQ is ibv_create_cq, ibv_create_cq_ex when attr.Ex is set, and mlx5dv_create_cq
// for the form of entries.
func (c *context) CreateCQ(t verbs.Thread, a verbs.CQAttr) (verbs.CQ, error) {
	var ch *C.struct_ibv_comp_channel
	if h, ok := a.Channel.(*channel); ok && h != nil {
		ch = h.c
	}
	if !a.Ex && a.CQESize == 0 && !a.CQEPad && a.CQECompression == 0 {
		defer enterCall(t, "ibv_create_cq").leaveCall()
		q, err := C.ibv_create_cq(c.c, C.int(a.CQE), nil, ch, C.int(a.CompVector))
		if q == nil {
			return nil, null("ibv_create_cq", err)
		}
		return c.newCQ(q, a.Context), nil
	}
	x := C.struct_ibv_cq_init_attr_ex{cqe: C.uint32_t(a.CQE), channel: ch, comp_vector: C.uint32_t(a.CompVector),
		wc_flags: C.uint64_t(a.WCFlags), comp_mask: C.uint32_t(a.CompMask), flags: C.uint32_t(a.Flags)}
	if d, ok := a.ParentDomain.(*pd); ok && d != nil {
		x.parent_domain = d.p
	}
	if !c.mlx5 && (a.CQESize != 0 || a.CQEPad || a.CQECompression != 0) {
		return nil, fmt.Errorf("the form of entries on a device that is not mlx5: %w", syscall.EOPNOTSUPP)
	}
	q, err := c.createCQEx(t, &x, &a)
	if err != nil {
		return nil, err
	}
	o := &cqEx{c.newCQ((*C.struct_ibv_cq)(unsafe.Pointer(q)), a.Context), q}
	c.enter(unsafe.Pointer(q), o)
	return o, nil
}

func (c *context) createCQEx(t verbs.Thread, x *C.struct_ibv_cq_init_attr_ex, a *verbs.CQAttr) (*C.struct_ibv_cq_ex, error) {
	if a.CQESize != 0 || a.CQEPad || a.CQECompression != 0 {
		defer enterCall(t, "mlx5dv_create_cq").leaveCall()
		q, err := C.hw_dv_create_cq(c.c, x, C.int(a.CQESize), truth(a.CQEPad), C.int(a.CQECompression))
		if q == nil {
			return nil, null("mlx5dv_create_cq", err)
		}
		return q, nil
	}
	defer enterCall(t, "ibv_create_cq_ex").leaveCall()
	q, err := C.ibv_create_cq_ex(c.c, x)
	if q == nil {
		return nil, null("ibv_create_cq_ex", err)
	}
	return q, nil
}

func (c *context) newCQ(q *C.struct_ibv_cq, user any) *cq {
	o := &cq{ctx: c, c: q, user: user}
	o.locks.watch(c, unsafe.Pointer(q))
	c.enter(unsafe.Pointer(q), o)
	return o
}

// plain is the queue behind either kind.
func plain(q verbs.CQ) *cq {
	switch q := q.(type) {
	case *cq:
		return q
	case *cqEx:
		if q != nil {
			return q.cq
		}
	}
	return nil
}

func (q *cq) Cap() int     { return int(q.c.cqe) }
func (q *cq) Context() any { return q.user }

// Poll is ibv_poll_cq.
func (q *cq) Poll(t verbs.Thread, wc []verbs.WC) (int, error) {
	h := enterCall(t, "ibv_poll_cq")
	defer h.leaveCall()
	r := h.scratch(0, 0, 0, len(wc))
	return completions(r, C.hw_poll(q.c, r, C.int(len(wc)), &q.locks.c), wc)
}

// PollWait is ibv_poll_cq again and again.
func (q *cq) PollWait(t verbs.Thread, wc []verbs.WC, timeout time.Duration) (int, error) {
	h := enterCall(t, "ibv_poll_cq")
	defer h.leaveCall()
	r := h.scratch(0, 0, 0, len(wc))
	return completions(r, C.hw_poll_wait(q.c, r, C.int(len(wc)), C.int64_t(timeout), &q.locks.c), wc)
}

func completions(r *C.struct_hw_scratch, n C.int, wc []verbs.WC) (int, error) {
	if n < 0 {
		return 0, failed("ibv_poll_cq", n, syscall.EIO)
	}
	for i, w := range unsafe.Slice(r.out, int(n)) {
		wc[i] = verbs.WC{ID: uint64(w.id), Status: verbs.WCStatus(w.status), Opcode: verbs.WCOpcode(w.opcode),
			VendorErr: uint32(w.vendor_err), ByteLen: uint32(w.byte_len), Imm: uint32(w.imm), QPN: uint32(w.qpn),
			SrcQP: uint32(w.src_qp), Flags: verbs.WCFlags(w.flags), PKeyIndex: uint16(w.pkey_index), SLID: uint16(w.slid),
			SL: uint8(w.sl), DLIDPathBits: uint8(w.path_bits)}
	}
	return int(n), nil
}

// ReqNotify is ibv_req_notify_cq.
func (q *cq) ReqNotify(t verbs.Thread, solicitedOnly bool) error {
	defer enterCall(t, "ibv_req_notify_cq").leaveCall()
	ret, err := C.ibv_req_notify_cq(q.c, truth(solicitedOnly))
	return failed("ibv_req_notify_cq", ret, err)
}

// Resize is ibv_resize_cq.
func (q *cq) Resize(t verbs.Thread, cqe int) error {
	defer enterCall(t, "ibv_resize_cq").leaveCall()
	ret, err := C.ibv_resize_cq(q.c, C.int(cqe))
	return failed("ibv_resize_cq", ret, err)
}

// Modify is ibv_modify_cq.
func (q *cq) Modify(t verbs.Thread, m verbs.CQModeration) error {
	defer enterCall(t, "ibv_modify_cq").leaveCall()
	a := C.struct_ibv_modify_cq_attr{attr_mask: C.IBV_CQ_ATTR_MODERATE}
	a.moderate.cq_count, a.moderate.cq_period = C.uint16_t(m.Count), C.uint16_t(m.Period)
	ret, err := C.ibv_modify_cq(q.c, &a)
	return failed("ibv_modify_cq", ret, err)
}

// Destroy is ibv_destroy_cq, which waits for the acknowledgement of events.
func (q *cq) Destroy(t verbs.Thread) error {
	defer enterCall(t, "ibv_destroy_cq").leaveCall()
	ret, err := C.ibv_destroy_cq(q.c)
	if ret == 0 {
		q.ctx.leave(unsafe.Pointer(q.c))
	}
	return failed("ibv_destroy_cq", ret, err)
}

// cqEx is a queue of the extended call.
type cqEx struct {
	*cq
	x *C.struct_ibv_cq_ex
}

var _ verbs.CQEx = (*cqEx)(nil)

func (q *cqEx) StartPoll(t verbs.Thread, compMask uint32) error {
	defer enterCall(t, "ibv_start_poll").leaveCall()
	ret, err := C.hw_cqex_start(q.x, C.uint32_t(compMask), &q.locks.c)
	return failed("ibv_start_poll", ret, err)
}

func (q *cqEx) NextPoll(t verbs.Thread) error {
	defer enterCall(t, "ibv_next_poll").leaveCall()
	ret, err := C.ibv_next_poll(q.x)
	return failed("ibv_next_poll", ret, err)
}

func (q *cqEx) EndPoll(t verbs.Thread) {
	defer enterCall(t, "ibv_end_poll").leaveCall()
	C.ibv_end_poll(q.x)
}

func (q *cqEx) read(what C.int) uint64 { return uint64(C.hw_cqex_read(q.x, what)) }

func (q *cqEx) WRID() uint64               { return q.read(C.HW_WRID) }
func (q *cqEx) Status() verbs.WCStatus     { return verbs.WCStatus(q.read(C.HW_STATUS)) }
func (q *cqEx) ReadOpcode() verbs.WCOpcode { return verbs.WCOpcode(q.read(C.HW_OPCODE)) }
func (q *cqEx) ReadVendorErr() uint32      { return uint32(q.read(C.HW_VENDOR)) }
func (q *cqEx) ReadWCFlags() verbs.WCFlags { return verbs.WCFlags(q.read(C.HW_FLAGS)) }
func (q *cqEx) ReadByteLen() uint32        { return uint32(q.read(C.HW_LEN)) }
func (q *cqEx) ReadImmData() uint32        { return uint32(q.read(C.HW_IMM)) }
func (q *cqEx) ReadQPNum() uint32          { return uint32(q.read(C.HW_QPN)) }
func (q *cqEx) ReadSrcQP() uint32          { return uint32(q.read(C.HW_SRCQP)) }
func (q *cqEx) ReadSLID() uint32           { return uint32(q.read(C.HW_SLID)) }
func (q *cqEx) ReadSL() uint8              { return uint8(q.read(C.HW_SL)) }
func (q *cqEx) ReadDLIDPathBits() uint8    { return uint8(q.read(C.HW_PATH)) }
func (q *cqEx) ReadCompletionTS() uint64   { return q.read(C.HW_TS) }

// channel is a completion event channel.
type channel struct {
	verbs.UnimplementedCompChannel
	ctx *context
	c   *C.struct_ibv_comp_channel
}

// CreateCompChannel is ibv_create_comp_channel.
func (c *context) CreateCompChannel(t verbs.Thread) (verbs.CompChannel, error) {
	defer enterCall(t, "ibv_create_comp_channel").leaveCall()
	ch, err := C.ibv_create_comp_channel(c.c)
	if ch == nil {
		return nil, null("ibv_create_comp_channel", err)
	}
	if err := unix.SetNonblock(int(ch.fd), true); err != nil {
		C.ibv_destroy_comp_channel(ch)
		return nil, fmt.Errorf("events of a channel: %w", err)
	}
	return &channel{ctx: c, c: ch}, nil
}

// await takes an event with get, which answers EAGAIN when there is none, until the
// time is over.
func await(fd C.int, timeout time.Duration, get func() error) error {
	end := time.Now().Add(timeout)
	for {
		err := get()
		if verbs.ErrnoOf(err) != syscall.EAGAIN {
			return err
		}
		left := time.Until(end)
		if left <= 0 {
			return err
		}
		if e := C.hw_wait(fd, C.int64_t(left)); e != 0 {
			return fmt.Errorf("wait for an event: %w", syscall.Errno(e))
		}
	}
}

// Event is ibv_get_cq_event.
func (h *channel) Event(t verbs.Thread, timeout time.Duration) (verbs.CQ, error) {
	defer enterCall(t, "ibv_get_cq_event").leaveCall()
	var q *C.struct_ibv_cq
	var user unsafe.Pointer
	err := await(h.c.fd, timeout, func() error {
		ret, err := C.ibv_get_cq_event(h.c, &q, &user)
		return failed("ibv_get_cq_event", ret, err)
	})
	if err != nil {
		return nil, err
	}
	o, ok := h.ctx.object(unsafe.Pointer(q)).(verbs.CQ)
	if !ok {
		return nil, fmt.Errorf("event of a CQ that is gone: %w", syscall.EIO)
	}
	return o, nil
}

// Ack is ibv_ack_cq_events.
func (h *channel) Ack(t verbs.Thread, q verbs.CQ, n int) {
	defer enterCall(t, "ibv_ack_cq_events").leaveCall()
	if o := plain(q); o != nil {
		C.ibv_ack_cq_events(o.c, C.uint(n))
	}
}

// Destroy is ibv_destroy_comp_channel.
func (h *channel) Destroy(t verbs.Thread) error {
	defer enterCall(t, "ibv_destroy_comp_channel").leaveCall()
	ret, err := C.ibv_destroy_comp_channel(h.c)
	return failed("ibv_destroy_comp_channel", ret, err)
}

// AsyncEvent is ibv_get_async_event.
func (c *context) AsyncEvent(t verbs.Thread, timeout time.Duration) (verbs.AsyncEvent, error) {
	defer enterCall(t, "ibv_get_async_event").leaveCall()
	var e C.struct_ibv_async_event
	err := await(c.c.async_fd, timeout, func() error {
		ret, err := C.ibv_get_async_event(c.c, &e)
		return failed("ibv_get_async_event", ret, err)
	})
	if err != nil {
		return verbs.AsyncEvent{}, err
	}
	ev := verbs.AsyncEvent{Type: verbs.EventType(e.event_type)}
	var port C.int
	switch o := c.object(C.hw_async_element(&e, &port)).(type) {
	case verbs.CQ:
		ev.CQ = o
	case verbs.QP:
		ev.QP = o
	case verbs.SRQ:
		ev.SRQ = o
	}
	ev.Port = int(port)
	return ev, nil
}

// AckAsyncEvent is ibv_ack_async_event.
func (c *context) AckAsyncEvent(t verbs.Thread, ev verbs.AsyncEvent) {
	defer enterCall(t, "ibv_ack_async_event").leaveCall()
	var o unsafe.Pointer
	if q := queue(ev.QP); q != nil {
		o = unsafe.Pointer(q.q)
	} else if q := plain(ev.CQ); q != nil {
		o = unsafe.Pointer(q.c)
	} else if s, ok := ev.SRQ.(*srq); ok && s != nil {
		o = unsafe.Pointer(s.s)
	}
	C.hw_ack_async(C.int(ev.Type), o, C.int(ev.Port))
}
