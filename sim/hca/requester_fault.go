package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/odp"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// A requester that meets an absent page sends nothing until the driver has answered the fault. What
// was sent before is answered as ever; a response that has no place to land is dropped, and asked
// for again afterwards.

// cannotGather is a packet of the message at the cursor whose data is not there.
//
//go:noinline
func (q *requester) cannotGather(r mkey.Result, packet int) {
	m, operation := q.msg(q.cur), uint32(prm.ODPWrite)
	if m.op != prm.WQEOpRDMAWrite && m.op != prm.WQEOpRDMAWriteImm {
		operation = prm.ODPSend
	}
	if !q.pages(r, operation) || q.breaks(rule.GatherWaitsForPages) || !q.await(odp.GatherSide, q.cur, q.pkt*uint32(q.mtu), packet, m.length) {
		q.refused = r
		q.failAt(q.cur, prm.SyndromeLocalProt)
		return
	}
	w := &q.u.parsed // the packet is made again from its first byte
	if prm.ParseSendWQE(q.sq.whole(int(m.nbb)), uint32(q.st), w) != nil {
		q.u.bug("QP %#x: WQE %d changed in the buffer", q.num, m.idx)
	}
	q.segAt, q.segPos, q.rest.len = 0, 0, 0
	q.skip(w, uint64(q.pkt)*uint64(q.mtu))
}

// cannotLand is a response whose data has no place to go to, off bytes behind the beginning of the
// message at the head.
//
//go:noinline
func (q *requester) cannotLand(r mkey.Result, off uint32, packet int) {
	i := q.unanswered()
	m, operation := q.msg(i), uint32(prm.ODPRead)
	if m.kind == msgAtomic {
		operation = prm.ODPAtomic
	}
	if !q.breaks(rule.LandingWaitsForPages) && q.pages(r, operation) && q.await(odp.LandingSide, i, off, packet, m.length) {
		q.deadline = sim.Never
		q.beginAsking()
		return
	}
	q.qs.add(prm.QCReqLocalProtection)
	q.failAnswered(prm.SyndromeLocalProt)
}

// await has message i wait for pages.
func (q *requester) await(s odp.Side, i, committed uint32, packet int, length uint32) bool {
	f := q.newFault(s, packet)
	f.WQE, f.Index, f.Committed, f.Length = true, q.msg(i).idx, committed, length
	f.Bytes = max(f.Bytes, length-committed)
	t := q.u.faults.Raise(f)
	if t == 0 {
		return false
	}
	q.faults[s], q.paging = pageWait{t, i}, true
	return true
}
