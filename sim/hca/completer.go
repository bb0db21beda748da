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
func (q *connection) entry(c *cq, recv bool) (all []byte, e prm.CQE64) {
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

// errorCQE reports a WQE that failed or was flushed.
func (q *connection) errorCQE(op prm.CQEOpcode, idx uint16, sop prm.WQEOpcode, s prm.Syndrome) {
	c, all, flush := q.scq, prm.QCReqCQEError, prm.QCReqCQEFlushError
	if op == prm.CQERespErr {
		if c = q.recvCQ(); c == nil {
			return
		}
		all, flush = prm.QCRespCQEError, prm.QCRespCQEFlushError
	}
	if s == prm.SyndromeWRFlush && (q.vendor != vendorFlushedFirst+1 || q.breaks(rule.FlushedHeadIsNoFlush)) {
		q.qs.add(flush)
	}
	q.qs.add(all)
	b, e := q.entry(c, op == prm.CQERespErr)
	e.SetQPN(q.shown())
	e.SetSOp(sop)
	e.SetVendorErrSynd(q.vendorSynd(s))
	e.SetSyndrome(s)
	e.SetWQECounter(idx)
	e.SetOpOwn(op, prm.CQEFormatPlain, false, 0)
	c.push(b)
}

// vendorSynd is the vendor byte of an error CQE: the script's for the error that it
// caused, once.
func (q *connection) vendorSynd(s prm.Syndrome) uint8 {
	if v := q.vendor; v != 0 {
		q.vendor = 0
		return uint8(v - 1)
	}
	if int(s) < len(vendorSyndromes) {
		return vendorSyndromes[s]
	}
	return 0
}
