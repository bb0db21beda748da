package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// departed is a packet of an unreliable QP that leaves the port. Nobody acknowledges
// it: the message is done when its last packet is gone.
func (d *Device) departed(s *slot) {
	arg, epoch := s.left, s.epoch
	s.left = 0
	if s.group {
		d.echo(s.f)
	}
	q := d.qpArg(arg)
	if q == nil || q.epoch != epoch {
		return
	}
	q.una = roce.AddPSN(s.f.BTH().PSN(), 1)
	q.complete()
	q.kick()
}

// execUC does what a request packet of an unreliable connection asks for. A gap ends
// the message that was arriving; its receive WQE is used again. What cannot be executed is dropped with the rest of its message. It
// reports true when the packet must wait for a receive WQE.
func (q *qp) execUC(p *roce.Packet) (wait bool) {
	info := p.Info()
	if psn := p.BTH().PSN(); psn != q.epsn {
		q.qs.add(prm.QCOutOfSequence)
		q.in, q.epsn = inNone, psn
	}
	class := inSend
	if info.Class == roce.ClassWrite {
		class = inWrite
	}
	if info.First {
		q.in = inNone
	} else if q.in != class {
		q.dropMessage()
		return false
	}
	if !p.PayloadOK(q.mtu) || p.PadCount() != roce.PadCount(p.PayloadLen()) || class == inWrite && !q.rwe {
		q.dropMessage()
		return false
	}
	if info.TakesReceive && !q.recvOpen && !q.hasRecv() {
		if q.wantRecv() {
			return true
		}
		q.qs.add(prm.QCOutOfBuffer)
		q.dropMessage()
		return false
	}
	if class == inSend {
		q.execSend(p, info)
	} else {
		q.execWrite(p, info)
	}
	return false
}

// dropMessage gives up the message that is arriving, silently. What it has written
// stays, and the rest of it will find no message to belong to.
func (q *qp) dropMessage() {
	q.in = inNone
	q.epsn = roce.AddPSN(q.epsn, 1)
}

// toSQError moves an unreliable QP to SQER: what was posted to its send queue is
// flushed; it goes on receiving.
func (q *qp) toSQError() {
	q.setState(prm.QPStateSQER)
	q.epoch++
	q.abandon(&q.txq)
	q.waiting, q.deadline, q.open, q.halt = false, sim.Never, false, false
	q.flushTaken()
	q.una, q.sent = q.psn, q.psn
	q.readRecord()
}

// flushTaken completes with a flush error what the requester has taken.
func (q *qp) flushTaken() {
	for q.head != q.tail {
		m := q.msg(q.head)
		q.errorCQE(prm.CQEReqErr, m.idx, m.op, prm.SyndromeWRFlush)
		q.head++
		if q.head == q.tail {
			q.moveCursor(m.idx + uint16(m.nbb))
		}
	}
	q.cur, q.reads = q.tail, 0
	for i := range q.landing {
		q.landing[i].busy = false
	}
}
