package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

var _ verbs.DirectQPEx = (*qpEx)(nil)

// noDirect ends the process: the call goes through a pointer that mlx5_qp_fill_wr_pfns has left
// null.
func (e *qpEx) noDirect(vt verbs.Thread, call string) {
	panic(Abort{fmt.Sprintf("segmentation fault: %q calls mlx5dv_wr_%s on a QP that does not have it", Of(vt).name, call)})
}

// WRRawWQE is mlx5dv_wr_raw_wqe: what flags and operation are is in the bytes, of which the control
// segment says how many there are (qp.c, mlx5_wr_raw_wqe). It forgets the fence that an earlier
// request left for this one.
func (e *qpEx) WRRawWQE(vt verbs.Thread, wqe []byte) {
	t := Of(vt)
	q := e.q
	sq := &q.sq
	if directOps(&q.init) == 0 {
		e.noDirect(vt, "raw_wqe")
	}
	if len(wqe) < prm.CtrlSegmentSize || len(wqe) < prm.CtrlSegment(wqe).DS()*segSize {
		panic(Abort{fmt.Sprintf("segmentation fault: %q posts a raw WQE that is longer than its memory", t.name)})
	}
	t.Core.Run(t.P, q.ctx.proc.Params.BuildWQE)
	if e.full = q.overflow(t, sq, e.nreq, q.sendCQ); e.full {
		// The library goes on with the last request that it built; the model does not.
		e.fail(fmt.Errorf("the send queue holds %d: %w", sq.maxPost, syscall.ENOMEM))
		e.nreq++
		return
	}
	idx := sq.posted & uint32(sq.cnt-1)
	e.ctrl, e.ds = int(idx)<<sq.shift, prm.CtrlSegment(wqe).DS()
	sq.note(idx, e.id, e.nreq)
	if !t.breaks(rule.RawRequestsSayTheyAre) {
		sq.requests[idx].driver = verbs.WCOpDriver2
	}
	q.fmCache = 0
	for off := 0; off < e.ds*segSize; off += segSize {
		copy(q.seg(e.ctrl+off), wqe[off:off+segSize])
	}
	ctrl := prm.CtrlSegment(q.seg(e.ctrl))
	ctrl.SetWQEIndex(uint16(sq.posted))
	if t.breaks(rule.RawRequestsHaveTheirFlags) {
		ctrl.SetFMCESE(prm.CtrlCQUpdate)
	}
	t.Core.Run(t.P, sim.Time(e.ds-1)*q.ctx.proc.Params.BuildSegment)
	bytes := e.ds * segSize
	t.Core.Run(t.P, sim.Time((bytes-1)/wqebb)*q.ctx.proc.Params.BuildLine)
	sq.posted += uint32((bytes + wqebb - 1) / wqebb)
	e.nreq++
}
