//go:build hw

package mlx5

/*
#include "verbs.h"
*/
import "C"

import (
	"fmt"
	"syscall"
	"unsafe"

	"github.com/rdmasim/rdmasim/verbs"
)

// PostSend is ibv_post_send: one crossing into C for the whole list.
func (q *qp) PostSend(t verbs.Thread, wrs []verbs.SendWR) (int, error) {
	h := enterCall(t, "ibv_post_send")
	defer h.leaveCall()
	if err := q.noCQ(); err != nil {
		return 0, err
	}
	sges := 0
	for i := range wrs {
		sges += len(wrs[i].SGEs)
		if q.reads(&wrs[i]) {
			return q.withoutAH(h, wrs[:i])
		}
	}
	if len(wrs) == 0 {
		return 0, nil
	}
	r := h.scratch(len(wrs), 0, sges, 0)
	entries := unsafe.Slice(r.sge, int(r.sges))
	for i := range unsafe.Slice(r.send, len(wrs)) {
		sendRequest(&unsafe.Slice(r.send, len(wrs))[i], &wrs[i])
		entries = fillSGEs(entries, wrs[i].SGEs)
	}
	var bad C.int
	ret, err := C.hw_post_send(q.q, r, C.int(len(wrs)), &bad, &q.sends.c)
	return int(bad), failed("ibv_post_send", ret, err)
}

// reads reports whether a provider would read through a missing address handle. Bindings
// on datagram queues are refused before that by librxe (validate_send_wr).
func (q *qp) reads(w *verbs.SendWR) bool {
	return q.init.Type == verbs.QPTUD && w.AH == nil && (q.ctx.mlx5 || w.Opcode != verbs.WRBindMW)
}

// errNoAH is the answer to a datagram without address handle, which libraries do not check for.
var errNoAH = fmt.Errorf("a datagram without address handle is not handed to the library: %w", syscall.EFAULT)

// withoutAH posts the requests before such a datagram.
func (q *qp) withoutAH(t *thread, before []verbs.SendWR) (int, error) {
	if bad, err := q.PostSend(t, before); err != nil {
		return bad, err
	}
	return len(before), errNoAH
}

func sendRequest(d *C.struct_hw_send, w *verbs.SendWR) {
	*d = C.struct_hw_send{id: C.uint64_t(w.ID), remote: C.uint64_t(w.RemoteAddr), compare: C.uint64_t(w.CompareAdd), swap: C.uint64_t(w.Swap),
		opcode: C.uint32_t(w.Opcode), flags: C.uint32_t(w.Flags), imm: C.uint32_t(w.Imm), rkey: C.uint32_t(w.RKey), nsge: C.uint32_t(len(w.SGEs)),
		remote_qpn: C.uint32_t(w.RemoteQPN), remote_qkey: C.uint32_t(w.RemoteQKey), xrc_srqn: C.uint32_t(w.XRCRemoteSRQN)}
	if a, ok := w.AH.(*ah); ok && a != nil {
		d.ah = a.a
	}
	if b := w.Bind; b != nil {
		bind(d, b.MW, b.RKey, &b.Info)
	}
}

func bind(d *C.struct_hw_send, window verbs.MW, rkey uint32, info *verbs.MWBindInfo) {
	if w, ok := window.(*mw); ok && w != nil {
		d.mw = w.w
	}
	if m, ok := info.MR.(*mr); ok && m != nil {
		d.bind_mr = m.m
	}
	d.bind_rkey, d.bind_addr, d.bind_length, d.bind_access = C.uint32_t(rkey), C.uint64_t(info.Addr), C.uint64_t(info.Length), C.uint32_t(info.Access)
}

func fillSGEs(to []C.struct_ibv_sge, from []verbs.SGE) []C.struct_ibv_sge {
	for i, s := range from {
		to[i] = C.struct_ibv_sge{addr: C.uint64_t(s.Addr), length: C.uint32_t(s.Length), lkey: C.uint32_t(s.LKey)}
	}
	return to[len(from):]
}

// recvRequests puts receives into the thread's room.
func (h *thread) recvRequests(wrs []verbs.RecvWR) *C.struct_hw_scratch {
	sges := 0
	for i := range wrs {
		sges += len(wrs[i].SGEs)
	}
	r := h.scratch(0, len(wrs), sges, 0)
	entries := unsafe.Slice(r.sge, int(r.sges))
	to := unsafe.Slice(r.recv, len(wrs))
	for i := range wrs {
		to[i] = C.struct_hw_recv{id: C.uint64_t(wrs[i].ID), nsge: C.uint32_t(len(wrs[i].SGEs))}
		entries = fillSGEs(entries, wrs[i].SGEs)
	}
	return r
}

// PostRecv is ibv_post_recv.
func (q *qp) PostRecv(t verbs.Thread, wrs []verbs.RecvWR) (int, error) {
	h := enterCall(t, "ibv_post_recv")
	defer h.leaveCall()
	if err := q.noRecvCQ(); err != nil || len(wrs) == 0 {
		return 0, err
	}
	var bad C.int
	ret, err := C.hw_post_recv(q.q, nil, h.recvRequests(wrs), C.int(len(wrs)), &bad, &q.recvs.c)
	return int(bad), failed("ibv_post_recv", ret, err)
}

// PostRecv is ibv_post_srq_recv.
func (s *srq) PostRecv(t verbs.Thread, wrs []verbs.RecvWR) (int, error) {
	h := enterCall(t, "ibv_post_srq_recv")
	defer h.leaveCall()
	if len(wrs) == 0 {
		return 0, nil
	}
	var bad C.int
	ret, err := C.hw_post_recv(nil, s.s, h.recvRequests(wrs), C.int(len(wrs)), &bad, &s.locks.c)
	return int(bad), failed("ibv_post_srq_recv", ret, err)
}

// BindMW is ibv_bind_mw.
func (q *qp) BindMW(t verbs.Thread, window verbs.MW, b verbs.MWBind) error {
	h := enterCall(t, "ibv_bind_mw")
	defer h.leaveCall()
	if q.init.Type == verbs.QPTUD && q.ctx.mlx5 {
		return errNoAH
	}
	if b.Info.MR == nil && !q.ctx.mlx5 {
		return fmt.Errorf("a bind to no region is not handed to the library: %w", syscall.EFAULT)
	}
	d := &unsafe.Slice(h.scratch(1, 0, 0, 0).send, 1)[0]
	*d = C.struct_hw_send{id: C.uint64_t(b.ID), flags: C.uint32_t(b.Flags)}
	bind(d, window, 0, &b.Info)
	ret, err := C.hw_bind_mw(q.q, d.mw, d)
	return failed("ibv_bind_mw", ret, err)
}
