package provider

import (
	"fmt"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// PostSend is ibv_post_send (qp.c, _mlx5_post_send). All bytes of the list and the
// doorbell record are written at one instant: when the queue's lock is taken, or,
// without a lock, when they are built. The register write leaves at the thread's
// time, after the cost of building.
func (q *QP) PostSend(vt verbs.Thread, wrs []verbs.SendWR) (bad int, err error) {
	t := Of(vt)
	p := q.ctx.proc.Params
	start := t.P.Now()
	t.Core.Run(t.P, p.PostCall)
	if t.breaks(rule.TargetTakesNoPosts) && q.dct() {
		return len(wrs), nil
	}
	left := q.sq.lock.acquire(t, p, q.sendCost(p, wrs))
	left += t.Core.Claim(t.P, &q.sq.line)
	var s posting
	for bad = range wrs {
		if err = q.buildSend(t, &s, &wrs[bad]); err != nil {
			err = badRequest(bad, err)
			t.answers(&err)
			break
		}
		s.nreq++
	}
	if err == nil {
		bad = len(wrs)
	}
	if s.nreq > 0 {
		c := &q.ctx.proc.C
		c.SendCalls++
		c.SendWRs += uint64(s.nreq)
		if t.breaks(rule.RecordBeforeDoorbell) {
			q.ringBell(t, &s, left)
			q.record(t, &s)
		} else {
			q.record(t, &s)
			q.ringBell(t, &s, left)
		}
	} else {
		t.Core.Run(t.P, left)
	}
	q.sq.lock.release(t)
	t.span("post_send", start, uint64(q.qpn))
	return bad, err
}

//go:noinline
func badRequest(n int, err error) error { return fmt.Errorf("post_send: request %d: %w", n, err) }

// postCost is what sendCost was for a request with one entry.
type postCost struct {
	op     verbs.WROpcode
	inline verbs.SendFlags
	length uint32
	cost   sim.Time // 0: none yet
}

// sendCost is the CPU time to build the list. Programs post many requests of one kind, one by one.
func (q *QP) sendCost(p *Params, wrs []verbs.SendWR) sim.Time {
	if len(wrs) != 1 || len(wrs[0].SGEs) != 1 {
		return q.listCost(p, wrs)
	}
	w, last := &wrs[0], &q.lastCost
	if w.Opcode != last.op || w.Flags&verbs.SendInline != last.inline || w.SGEs[0].Length != last.length || last.cost == 0 {
		*last = postCost{w.Opcode, w.Flags & verbs.SendInline, w.SGEs[0].Length, q.listCost(p, wrs)}
	}
	return last.cost
}

// listCost is the CPU time to build a list, from what it asks for.
//
//go:noinline
func (q *QP) listCost(p *Params, wrs []verbs.SendWR) sim.Time {
	d := p.Bookkeeping
	for i := range wrs {
		w := &wrs[i]
		segs, payload := 0, 0
		if q.typ == verbs.QPTUD {
			segs = datagramSize / segSize
		}
		switch w.Opcode {
		case verbs.WRRDMAWrite, verbs.WRRDMAWriteImm, verbs.WRRDMARead:
			segs++
		case verbs.WRAtomicCmpSwp, verbs.WRAtomicFetchAdd:
			segs += 2
		case verbs.WRBindMW:
			segs = bindUnits - 1
		case verbs.WRLocalInv:
			segs = unbindUnits - 1
		}
		bytes := prm.CtrlSegmentSize + segs*segSize
		if w.Flags&verbs.SendInline != 0 {
			for j := range w.SGEs {
				payload += int(w.SGEs[j].Length)
			}
			payload = min(payload, q.maxInl)
			bytes += prm.InlineSize(payload)
		} else {
			segs += len(w.SGEs)
			bytes += segSize * len(w.SGEs)
		}
		d += p.BuildWQE + sim.Time(segs)*p.BuildSegment + sim.Time((bytes-1)/wqebb)*p.BuildLine +
			sim.Time((payload+wqebb-1)/wqebb)*p.InlineCopy
	}
	return d
}
