package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// vendorSyndromes are the vendor error bytes beside a syndrome. Only that they are
// not zero matters; the values are those that public logs of cards show.
var vendorSyndromes = [...]uint8{
	prm.SyndromeLocalLength: 0xd6, prm.SyndromeLocalQPOp: 0x68, prm.SyndromeLocalProt: 0x51,
	prm.SyndromeWRFlush: 0xf9, prm.SyndromeMWBind: 0x42, prm.SyndromeBadResp: 0x34,
	prm.SyndromeLocalAccess: 0x52, prm.SyndromeRemoteInvalReq: 0x8a, prm.SyndromeRemoteAccess: 0x88,
	prm.SyndromeRemoteOp: 0x89, prm.SyndromeTransportRetryExc: 0x81, prm.SyndromeRNRRetryExc: 0x87,
	prm.SyndromeRemoteAborted: 0x93,
}

// entry is the scratch for an entry of c, cleared, and its CQE64.
func (d *Device) entry(c *cq, q *connection, recv bool) (all []byte, e prm.CQE64) {
	all = c.all.entry[:c.cqe]
	clear(all)
	e = prm.CQE64(all[c.cqe-prm.CQE64Size:])
	e.SetSRQNUIdx(q.cqeIndex(recv))
	return all, e
}

// inCQE says whether n bytes of data may go into a CQE, the limit of the queue's
// context being max.
func inCQE(max, n int) bool { return n > 0 && n <= max }

// inlineLimit is how many bytes a CQE of c may take for a scatter-to-CQE setting.
func inlineLimit(v, up32, up64 uint32, c *cq) int {
	switch {
	case v == up64 && c.cqe == 2*prm.CQE64Size:
		return 64
	case v == up32 || v == up64:
		return 32
	}
	return 0
}

// putInline puts data into an entry and returns its format.
func putInline(all []byte, e prm.CQE64, data []byte) uint8 {
	switch {
	case len(data) == 0:
		return prm.CQEFormatPlain
	case len(data) <= len(e.InlineData()):
		copy(e.InlineData(), data)
		return prm.CQEFormatInline32
	}
	copy(all, data)
	return prm.CQEFormatInline64
}

// sendCQE reports a send WQE that is done; data is what its response scatters to
// the CQE.
func (q *requester) sendCQE(m *msg, data []byte) {
	d := q.d
	all, e := d.entry(q.scq, q.connection, false)
	format := putInline(all, e, data)
	if (m.kind == msgRead || m.kind == msgAtomic) && !d.breaks(rule.ReadsCountTheirBytes) {
		e.SetByteCnt(m.length)
	}
	e.SetTimestamp(d.timestamp(d.e.Now()))
	e.SetQPN(q.num)
	e.SetSOp(m.op)
	e.SetWQECounter(m.idx)
	e.SetOpOwn(prm.CQEReq, format, false, 0)
	q.scq.push(all)
}

// recvCQE reports a receive WQE that is done.
func (q *responder) recvCQE(op prm.CQEOpcode, idx uint16, imm, n uint32, solicited bool, data []byte) {
	d := q.d
	all, e := d.entry(q.rcq, q.connection, true)
	e.SetRQPN(q.remote) // 32 bytes of inline data take its place
	format := putInline(all, e, data)
	e.SetImmInvalPKey(imm)
	if d.breaks(rule.BytesAreCounted) {
		n = (n + 3) &^ 3
	}
	e.SetByteCnt(n)
	e.SetTimestamp(d.timestamp(d.e.Now()))
	e.SetQPN(q.num)
	e.SetWQECounter(idx)
	e.SetOpOwn(op, format, solicited, 0)
	q.rcq.push(all)
}

// errorCQE reports a WQE that failed or was flushed.
func (q *connection) errorCQE(op prm.CQEOpcode, idx uint16, sop prm.WQEOpcode, s prm.Syndrome) {
	c, all, flush := q.scq, prm.QCReqCQEError, prm.QCReqCQEFlushError
	if op == prm.CQERespErr {
		c, all, flush = q.rcq, prm.QCRespCQEError, prm.QCRespCQEFlushError
	}
	if s == prm.SyndromeWRFlush {
		q.qs.add(flush)
	}
	q.qs.add(all)
	b, e := q.d.entry(c, q, op == prm.CQERespErr)
	e.SetQPN(q.num)
	e.SetSOp(sop)
	e.SetVendorErrSynd(q.vendorSynd(s))
	e.SetSyndrome(s)
	e.SetWQECounter(idx)
	e.SetOpOwn(op, prm.CQEFormatPlain, false, 0)
	c.push(b)
}
