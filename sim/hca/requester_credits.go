package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
)

// End-to-end credits of reliable connections (IBTA Vol. 1, 9.7.7.2): with Params.Credits a
// responder says in every ACK how many receives it has, and a requester sends no message that takes
// one beyond its limit sequence number, but for one that asks for an ACK and so for news.

// credit learns from a response, also from an old one, and reports whether more may be sent. A
// responder that has once announced no count does not limit any more.
func (q *requester) credit(p *roce.Packet) bool {
	if !p.Info().Headers.Has(roce.HasAETH) || p.AETH().Syndrome().Type() != roce.SyndromeTypeAck || q.unlimited {
		return false
	}
	code := p.AETH().Syndrome().Value()
	if code == roce.CreditUnlimited {
		q.unlimited = true
		return true
	}
	lsn := (p.AETH().MSN() + uint32(roce.Credits(code))) & roce.PSNMask
	if roce.CmpPSN(lsn, q.lsn) <= 0 {
		return false
	}
	q.lsn = lsn
	return true
}

// limited says whether credits hold back the next new message, of this opcode.
func (q *requester) limited(op prm.WQEOpcode) bool {
	switch op {
	case prm.WQEOpSend, prm.WQEOpSendImm, prm.WQEOpSendInv, prm.WQEOpRDMAWriteImm:
	default:
		return false
	}
	if q.unlimited || q.st != prm.STRC || roce.CmpPSN(q.ssn, q.lsn) <= 0 {
		return false
	}
	q.u.c.CreditWaits++
	return true
}

// spendCredit is what a new message does to the limit: one that takes no receive raises it.
func (q *requester) spendCredit(op prm.WQEOpcode) {
	switch op {
	case prm.WQEOpRDMAWrite, prm.WQEOpRDMARead, prm.WQEOpAtomicCS, prm.WQEOpAtomicFA, prm.WQEOpAtomicWrite:
		q.lsn = (q.lsn + 1) & roce.PSNMask
	}
}

// probes says whether the message that is being sent is the one beyond the limit, whose ACK must
// come.
func (q *requester) probes() bool {
	return q.u.p.Credits && !q.unlimited && roce.CmpPSN(q.ssn, q.lsn) > 0
}
