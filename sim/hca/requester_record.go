package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// What a requester of ConnectX-5 and ConnectX-6 shows when something fails, beside the ACK timer
// (Params.CardFaults). The figures are of github.com/unionxic/rdma-fault-characterization (2026).

// refusedKey takes the vendor byte of the key that was refused last.
func (q *requester) refusedKey(s prm.Syndrome) (vendor uint16) {
	if s == prm.SyndromeLocalProt && q.u.p.CardFaults && !q.breaks(rule.LocalKeyErrorsNameTheirCause) {
		vendor = localVendor(q.refused)
	}
	q.refused = mkey.OK
	return vendor
}

// sendsBefore says whether the first packet of a SEND or WRITE lies before the place where the data
// segment at va leaves its region, behind prior bytes of others. Such a request is begun: a
// requester compares a length with its region packet by packet.
func (q *requester) sendsBefore(m *msg, w *prm.SendWQE, lkey uint32, va, prior uint64) bool {
	if !q.u.p.CardFaults || m.kind != msgPush || !q.reliable() || w.Bytes <= uint64(q.mtu) || q.breaks(rule.LengthsAreCheckedByPacket) {
		return false
	}
	if prior >= uint64(q.mtu) {
		return true
	}
	_, r := q.u.dma.keys.Check(q.user(), lkey, va, uint64(q.mtu)-prior, mkey.LocalRead)
	return r == mkey.OK
}

// reportFlush completes a request with a flush error.
func (q *requester) reportFlush(idx uint16, op prm.WQEOpcode) {
	if q.u.p.CardFaults && !q.headGone && !q.breaks(rule.FlushedHeadNamesItsCause) {
		q.vendor = vendorFlushedFirst + 1
	}
	q.headGone = true
	q.errorCQE(prm.CQEReqErr, idx, op, prm.SyndromeWRFlush)
}

// followsRecord says whether the doorbell record, and not the doorbell register, tells which
// requests of a QP in ERR complete.
func (q *requester) followsRecord() bool {
	return q.u.p.CardFaults && q.state == prm.QPStateERR && q.sq.size > 0 && !q.target()
}

// hold is the state ERR where the record rules: requests stay until it has been read.
func (q *requester) hold() {
	q.rung = q.sq.pi
	q.cur, q.reads = q.tail, 0
	for i := range q.landing {
		q.landing[i].busy = false
	}
}

// flushTo completes the requests before the record's index, with their error or a flush error, and
// reports whether there were any. If the record is behind the first of them, none completes, not
// even the one that failed.
func (q *requester) flushTo(record uint16) (found bool) {
	if q.breaks(rule.RecordRulesInError) {
		record = q.rung
	}
	q.record = record
	if uint32(record-q.oldest()) > q.sq.size {
		return false
	}
	for q.head != q.tail {
		m := q.msg(q.head)
		if int16(record-m.idx) <= 0 {
			return found
		}
		found = true
		if q.headFails {
			q.reportFailed(m)
		} else {
			q.reportFlush(m.idx, m.op)
		}
		q.head++
		if q.head == q.tail {
			q.sq.moveTo(m.idx + uint16(m.nbb))
		}
	}
	q.cur = q.tail
	if uint32(record-q.sq.ci) > q.sq.size {
		return found
	}
	q.sq.pi = record
	found = found || q.sq.ci != q.sq.pi
	q.flushSQ()
	return found
}

// awaitsRecord says whether requests that the register has announced are not before the record: a
// card gives their completions when the record is raised.
func (q *requester) awaitsRecord() bool {
	return q.followsRecord() && (q.head != q.tail || int16(q.rung-q.record) > 0)
}

// Looks at a record that is behind: a card has given the missing completions 14 to 73 us after the
// record was raised. After so many looks their distances double, so that a QP that was left behind
// costs a bounded number of events.
const (
	recordLook  = 43 * sim.Microsecond
	recordLooks = 1 << 18
)

// standsAt is the send PSN that a query of a QP in ERR gives: after a NAK what the responder has
// carried out, else what was sent.
func (q *requester) standsAt() uint32 {
	switch {
	case q.breaks(rule.QueryTellsWhereItStopped):
	case q.una == q.sent || q.nakked:
		return q.una
	case q.txq.head >= 0 && !q.lastLeave && q.backoff == 0 && q.retry == q.retryMax: // what has not left was not sent
		if psn := q.u.slot(q.txq.head).f.BTH().PSN(); roce.CmpPSN(psn, q.una) >= 0 && roce.CmpPSN(psn, q.sent) < 0 {
			return psn
		}
	}
	return q.sent
}
