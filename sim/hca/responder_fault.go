package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/odp"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// A responder that meets an absent page has the peer try again: it answers with an RNR NAK, of the
// QP's own timer, and nothing has changed. It stands still until the driver has answered the fault,
// also when the page is there before (Lesokhin et al., ASPLOS 2017, section 4: the firmware
// suspends the queue's side, and the driver resumes it). What an unreliable peer has sent is lost.
// That atomics do so too is assumed.
//
// The source of a READ is looked for when the READ is accepted, so that nothing behind it has been
// executed when it is not there: requests are executed in their order, and an RNR NAK names the one
// that is expected. What goes away later finds requests behind the READ executed and perhaps
// acknowledged, and holds the responses instead. What a card does then is not published.

// targetFault is a request of which the target is absent.
func (q *responder) targetFault(p *roce.Packet) {
	f := q.newFault(odp.WriteSide, p.PayloadLen())
	switch p.Info().Class {
	case roce.ClassReadRequest:
		h := p.RETH()
		f.Side, f.Packet = odp.ReadSide, uint16(min(uint32(q.mtu), h.Length()))
		f.RKey, f.VA, f.Length = h.RKey(), h.VA(), h.Length()
	case roce.ClassWrite:
		f.Committed, f.Length = q.wlen-q.wleft, q.wlen
		f.RKey, f.VA = q.wkey, q.wva-uint64(f.Committed)
	case roce.ClassAtomic:
		h := p.AtomicETH()
		f.RKey, f.VA, f.Length, f.Atomic = h.RKey(), h.VA(), atomicSize, true
	default:
		h := p.RETH()
		f.RKey, f.VA, f.Length = h.RKey(), h.VA(), h.Length()
	}
	f.Bytes = max(f.Bytes, f.Length-f.Committed)
	q.awaitPages(f)
}

// holdRead holds the responses from that of a READ on, whose source has gone away since it was
// accepted. Where a fault of a later READ is out it waits for that answer first, since one fault of
// the side is out at most. It reports false where the driver cannot be told.
func (q *responder) holdRead(r *response) bool {
	if w := &q.faults[odp.ReadSide-odp.WriteSide]; *w == 0 {
		f := q.newFault(odp.ReadSide, min(q.mtu, int(r.left)))
		f.RKey, f.VA, f.Length = r.rkey, r.va, r.left
		f.Bytes = max(f.Bytes, r.left)
		if *w = q.u.faults.Raise(f); *w == 0 {
			return false
		}
		q.heldFault = true
	}
	q.held = true
	return true
}

// receiveFault is a packet whose place in the receive buffers is absent. In the form of completions
// a receive WQE of an SRQ goes back, and the message takes another one when it comes again; that
// one which holds a part of a message stays is assumed.
func (q *responder) receiveFault(p *roce.Packet) {
	f := q.newFault(odp.WriteSide, p.PayloadLen())
	f.WQE, f.Index, f.Committed = true, q.recvIdx, q.recvGot
	if q.srq != nil {
		f.SRQ, f.Number = true, q.srq.num
	}
	if q.awaitPages(f) && f.SRQ && f.Committed == 0 && q.u.p.ODP.SRQFault == odp.SRQFaultCompletion {
		q.recvOpen, q.vendor = false, prm.VendorSyndODPFault+1
		q.errorCQE(prm.CQERespErr, q.recvIdx, 0, prm.SyndromeRemoteAborted)
	}
}

// awaitPages has the peer try again, and the driver told unless it is already. It reports false
// when the queue fails instead.
func (q *responder) awaitPages(f odp.Fault) bool {
	w := &q.faults[f.Side-odp.WriteSide]
	if *w == 0 {
		if *w = q.u.faults.Raise(f); *w == 0 && f.WQE {
			q.failRecv(prm.SyndromeLocalProt, roce.NAKRemoteOp)
			return false
		} else if *w == 0 {
			q.fatal(roce.NAKRemoteAccess)
			return false
		}
		q.paging = q.faults[0] != 0
	}
	q.notReady()
	return true
}

// unscattered is the verdict on a packet that the receive buffers have refused.
func (q *responder) unscattered() verdict {
	operation := uint32(prm.ODPReceive)
	if q.srq != nil {
		operation = prm.ODPSRQReceive
	}
	if q.pages(q.u.dma.result, operation) && !q.breaks(rule.ReceiveWaitsForPages) {
		return noBuffer
	}
	return noScatter
}

// waitRule is the rule by which a WRITE or an atomic of the peer waits for its pages.
func waitRule(operation uint32) rule.Rule {
	if operation == prm.ODPAtomic {
		return rule.AtomicWaitsForPages
	}
	return rule.WriteWaitsForPages
}
