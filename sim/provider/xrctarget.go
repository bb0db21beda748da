package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// TargetQP is a handle of an XRC target QP. The kernel has the QP; the library has sizes, which
// creation may ask for, and a register that nothing rings.
type TargetQP struct {
	verbs.UnimplementedQP
	ctx    *Context
	h      kernel.Handle
	qpn    uint32
	cookie uint64
	init   verbs.QPInitAttr
	state  verbs.QPState
	sq, rq wqSize
	posted [2]int // sends and receives, which no device reads
	limit  [2]int // of SGEs, as queue.limit
	bf     *bfReg
	own    bool
	acks   acks
}

// targetCookie marks the cookies of target QPs among those of all QPs, which are user indices.
const targetCookie = 1 << 32

// CreateQP is ibv_create_qp_ex: XRC targets, which have no PD.
func (c *Context) CreateQP(vt verbs.Thread, a verbs.QPInitAttr) (_ verbs.QP, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	if err := c.noQueues(); err != nil {
		return nil, err
	}
	q, err := c.createTarget(t, &a)
	if err != nil {
		return nil, fmt.Errorf("create_qp_ex: %w", err)
	}
	return q, nil
}

func (c *Context) createTarget(t *Thread, a *verbs.QPInitAttr) (*TargetQP, error) {
	switch {
	case a.CompMask&^(maskKnown|verbs.QPInitXRCD) != 0:
		return nil, fmt.Errorf("comp_mask %#x: %w", a.CompMask, syscall.EINVAL)
	case a.Type != verbs.QPTXRCRecv:
		return nil, fmt.Errorf("QP type %d without a PD: %w", a.Type, syscall.EINVAL)
	case a.CreateFlags != 0:
		return nil, fmt.Errorf("create_flags %#x: %w", a.CreateFlags, syscall.EOPNOTSUPP)
	case a.CompMask&verbs.QPInitSendOpsFlags != 0:
		return nil, fmt.Errorf("send_ops_flags %#x for an XRC target: %w", a.SendOpsFlags, syscall.EOPNOTSUPP)
	case a.CompMask&verbs.QPInitXRCD == 0:
		return nil, fmt.Errorf("no XRC domain: %w", syscall.EINVAL)
	}
	x, err := c.xrcdOf(a.XRCD)
	if err != nil {
		return nil, err
	}
	q := &TargetQP{ctx: c, init: *a, limit: [2]int{-1, -1}}
	if q.sq, err = c.sizeSQ(a.Type, opsAny, a.Cap); err != nil {
		return nil, err
	}
	if q.rq, err = c.sizeRQ(a.Cap); err != nil {
		return nil, err
	}
	r := kernel.QPReq{Type: a.Type, XRCD: x.h, Cap: a.Cap, UIDX: targetUIDX}
	if a.SRQ != nil {
		s, ok := a.SRQ.(*SRQ)
		if !ok || s == nil || s.ctx != c {
			return nil, fmt.Errorf("an SRQ of another context: %w", syscall.EINVAL)
		}
		r.SRQ, r.HasSRQ = s.h, true
	}
	if q.bf, q.own, err = c.queueRegister(t, &r); err != nil {
		return nil, err
	}
	q.cookie = targetCookie | uint64(c.targets.take(q))
	r.Cookie = q.cookie
	h, resp, err := c.u.CreateQP(t.caller, r)
	if err != nil {
		q.release()
		return nil, err
	}
	q.h, q.qpn = h, resp.QPN
	return q, nil
}

// targetUIDX is the user index of target QPs: the library gives them none.
const targetUIDX = 0

// OpenQP is ibv_open_qp. The library does not know the state of the QP behind the handle.
func (c *Context) OpenQP(vt verbs.Thread, a verbs.QPOpenAttr) (_ verbs.QP, err error) {
	defer Of(vt).answers(&err)
	t := c.enter(vt)
	if err := c.noQueues(); err != nil {
		return nil, err
	}
	const needed = verbs.QPOpenNum | verbs.QPOpenXRCD | verbs.QPOpenType
	switch {
	case a.CompMask&^verbs.QPOpenAll != 0:
		return nil, fmt.Errorf("open_qp: comp_mask %#x: %w", a.CompMask, syscall.EOPNOTSUPP)
	case a.CompMask&needed != needed:
		return nil, fmt.Errorf("open_qp: comp_mask %#x: %w", a.CompMask, syscall.EINVAL)
	}
	x, err := c.xrcdOf(a.XRCD)
	if err != nil {
		return nil, fmt.Errorf("open_qp: %w", err)
	}
	q := &TargetQP{ctx: c, qpn: a.QPN, state: verbs.QPSUnknown,
		init: verbs.QPInitAttr{Type: a.Type, Context: a.Context, XRCD: a.XRCD}}
	q.cookie = targetCookie | uint64(c.targets.take(q))
	if q.h, err = c.u.OpenQP(t.caller, x.h, a.QPN, a.Type, q.cookie); err != nil {
		q.release()
		return nil, fmt.Errorf("open_qp: %w", err)
	}
	return q, nil
}

// qpOf is the QP of a cookie, or nil.
func (c *Context) qpOf(cookie uint64) verbs.QP {
	if cookie&targetCookie != 0 {
		if i := cookie &^ targetCookie; i < uint64(len(c.targets.all)) && c.targets.all[i] != nil {
			return c.targets.all[i]
		}
		return nil
	}
	if q, ok := c.completerOf(uint32(cookie)).(*QP); ok {
		return q
	}
	return nil
}

func (q *TargetQP) release() {
	q.ctx.targets.put(uint32(q.cookie))
	if q.own {
		q.ctx.bf.pools.Put(q.bf.pool)
	}
}

// QPN is the number of the QP.
func (q *TargetQP) QPN() uint32 { return q.qpn }

// Context is the qp_context given at creation.
func (q *TargetQP) Context() any { return q.init.Context }

// State is the state that the library remembers.
func (q *TargetQP) State() verbs.QPState { return q.state }

// Caps are what the library made room for, though no device looks there.
func (q *TargetQP) Caps() verbs.QPCap {
	return verbs.QPCap{MaxSendWR: uint32(q.sq.maxPost), MaxRecvWR: uint32(q.rq.maxPost), MaxSendSGE: uint32(q.sq.maxGS),
		MaxRecvSGE: uint32(q.rq.maxGS), MaxInline: uint32(q.sq.inline)}
}

// Modify is ibv_modify_qp.
func (q *TargetQP) Modify(vt verbs.Thread, a *verbs.QPAttr, mask verbs.QPAttrMask) error {
	t := q.ctx.enter(vt)
	if err := q.ctx.u.ModifyQP(t.caller, q.h, a, mask); err != nil {
		return fmt.Errorf("modify_qp: %w", err)
	}
	if mask&verbs.QPMaskState == 0 {
		return nil
	}
	q.state = a.State
	switch a.State {
	case verbs.QPSReset:
		q.posted, q.limit = [2]int{}, [2]int{-1, -1}
	case verbs.QPSInit:
		q.limit[1] = q.rq.maxGS
	case verbs.QPSRTS:
		q.limit[0] = q.sq.maxGS
	}
	return nil
}

// Query is ibv_query_qp.
func (q *TargetQP) Query(vt verbs.Thread, mask verbs.QPAttrMask) (verbs.QPAttr, verbs.QPInitAttr, error) {
	return q.ctx.queryQP(vt, q.h, mask, q.init, q.Caps(), &q.state)
}

// Destroy is ibv_destroy_qp: it closes the handle.
func (q *TargetQP) Destroy(vt verbs.Thread) error {
	t := q.ctx.enter(vt)
	async, err := q.ctx.u.DestroyQP(t.caller, q.h)
	if err != nil {
		return fmt.Errorf("destroy_qp: %w", err)
	}
	q.acks.wait(t, async, "a QP")
	q.release()
	return nil
}

// PostSend and PostRecv take requests until the room that the QP was made with is used up. They go
// to memory that nobody reads.
func (q *TargetQP) PostSend(vt verbs.Thread, wrs []verbs.SendWR) (bad int, err error) {
	for bad = range wrs {
		if err = q.post(Of(vt), 0, q.sq.maxPost, len(wrs[bad].SGEs), syscall.ENOMEM); err != nil {
			return bad, fmt.Errorf("post_send: request %d: %w", bad, err)
		}
	}
	return len(wrs), nil
}

// PostRecv is as PostSend.
func (q *TargetQP) PostRecv(vt verbs.Thread, wrs []verbs.RecvWR) (bad int, err error) {
	for bad = range wrs {
		if err = q.post(Of(vt), 1, q.rq.maxPost, len(wrs[bad].SGEs), syscall.EINVAL); err != nil {
			return bad, fmt.Errorf("post_recv: request %d: %w", bad, err)
		}
	}
	return len(wrs), nil
}

func (q *TargetQP) post(t *Thread, ring, room, sges int, tooMany syscall.Errno) error {
	t.Core.Run(t.P, q.ctx.proc.Params.PostCall)
	if q.posted[ring] >= room {
		return fmt.Errorf("a post to an XRC target QP, which has no queue: %w", syscall.ENOMEM)
	}
	if sges > q.limit[ring] {
		return fmt.Errorf("%d SGEs, limit %d: %w", sges, q.limit[ring], tooMany)
	}
	q.posted[ring]++
	return nil
}
