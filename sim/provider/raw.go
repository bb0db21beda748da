package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// raw says whether the QP is of raw packets.
func (q *QP) raw() bool { return q.typ == verbs.QPTRawPacket }

// ethernetSeg writes the segment before the data of a packet (qp.c, the case IBV_QPT_RAW_PACKET of
// _mlx5_post_send), of whose headers the device wants none in it. EINVAL: a long send, for which
// requests have no headers.
func (q *QP) ethernetSeg(t *Thread, s *posting, w *verbs.SendWR) error {
	if w.Opcode == verbs.WRTSO {
		return fmt.Errorf("a long send without headers: %w", syscall.EINVAL)
	}
	b := s.next(q)[:prm.EthSegmentSize]
	clear(b)
	if w.Flags&verbs.SendIPCsum != 0 || t.breaks(rule.ChecksumsAreFilledInOnRequest) {
		prm.EthSegment(b).SetCSFlags(prm.EthL3Checksum | prm.EthL4Checksum)
	}
	s.ds++
	return nil
}

// startReceiving tells the device what was posted before RTR. The queue of raw packets is alive
// from INIT on, so the library keeps its doorbell record back until then (mlx5_modify_qp and
// mlx5_post_recv).
func (q *QP) startReceiving(t *Thread) {
	if !q.raw() {
		return
	}
	q.receives = true
	left := q.rq.lock.acquire(t, q.ctx.proc.Params, q.ctx.proc.Params.DoorbellRecord)
	q.dbRecord.SetRecv(uint16(q.rq.head))
	t.Core.DMABarrier(t.P)
	t.Core.Run(t.P, left)
	q.rq.lock.release(t)
}

// checksumsOK is get_csum_ok: whether an entry says that the checksums of IPv4 and of what is in it
// are right.
func checksumsOK(e prm.CQE64) bool {
	const ok = prm.CQEL3OK | prm.CQEL4OK
	return e.HDSIPExt()&ok == ok && e.L4L3HdrType()&(prm.CQEL3IPv4|prm.CQEL3IPv6) == prm.CQEL3IPv4
}

// Flow is a rule that steers packets.
type Flow struct {
	verbs.UnimplementedFlow
	ctx *Context
	h   kernel.Handle
}

// CreateFlow is ibv_create_flow.
func (q *QP) CreateFlow(vt verbs.Thread, a verbs.FlowAttr) (_ verbs.Flow, err error) {
	defer Of(vt).answers(&err)
	t := q.ctx.enter(vt)
	r := kernel.FlowReq{QP: q.h, Type: uint32(a.Type), Priority: a.Priority, Port: a.Port, Flags: uint32(a.Flags)}
	for i := range a.Specs {
		s, err := kernel.FlowSpecOf(&a.Specs[i])
		if err != nil {
			return nil, fmt.Errorf("create_flow: spec %d: %w", i, err)
		}
		r.Specs = append(r.Specs, s)
	}
	h, err := q.ctx.u.CreateFlow(t.caller, r)
	if err != nil {
		return nil, err
	}
	return &Flow{ctx: q.ctx, h: h}, nil
}

// Destroy is ibv_destroy_flow.
func (f *Flow) Destroy(vt verbs.Thread) (err error) {
	defer Of(vt).answers(&err)
	t := f.ctx.enter(vt)
	if err := f.ctx.u.DestroyFlow(t.caller, f.h); err != nil {
		return fmt.Errorf("destroy_flow: %w", err)
	}
	return nil
}
