package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// execDatagram receives a datagram: into a receive WQE, behind the routing header.
//
// Inferred: what is longer than the buffers ends the receive with a length error, as
// the completions that IPoIB and perftest report show, and the QP with it.
func (q *responder) execDatagram(p *roce.Packet) {
	if q.recvOpen { // that of a datagram for which there was no page
		q.rewindRecv()
	} else {
		q.takeRecv()
	}
	if v := q.fillDatagram(p); v != passed {
		q.refuse(v, p)
		return
	}
	q.recvOpen = false
	q.datagramCQE(p, uint32(roce.GRHSize+p.PayloadLen()))
}

// scatterGRH writes the routing header of a datagram. Without one its room is left as it is.
func (q *responder) scatterGRH(p *roce.Packet) bool {
	if !p.PutGRH(q.grh[:]) || q.breaks(rule.DatagramsBringTheirRoute) {
		q.skipRecv(len(q.grh))
		return true
	}
	return q.scatter(q.grh[:])
}

// l3Types are the codes by which a CQE on RoCE names the routing header (cq.c of
// mlx5_ib, MLX5_CQE_ROCE_L3_HEADER_TYPE_*). They share their place with the SL.
var l3Types = [...]uint32{roce.RoCEv1: 0, roce.RoCEv2IPv6: 1, roce.RoCEv2IPv4: 2}

// datagramCQE reports a datagram.
func (q *responder) datagramCQE(p *roce.Packet, n uint32) {
	u := q.u
	all, e := q.entry(q.rcq, true)
	op := prm.CQERespSend
	switch {
	case p.Has(roce.HasImmDt):
		op = prm.CQERespSendImm
		e.SetImmInvalPKey(p.ImmDt().Value())
	case q.special(): // the driver looks for its index itself (handle_responder of mlx5_ib, cq.c)
		e.SetImmInvalPKey(uint32(p.BTH().PKey()))
	case p.Framing == roce.InfiniBand:
		e.SetImmInvalPKey(q.context().PrimaryPath().PKeyIndex())
	}
	e.SetRQPN(p.DETH().SrcQP())
	if p.Framing == roce.InfiniBand {
		q.ibDatagramCQE(e, p)
	} else {
		e.SetGRH(1)
		e.SetSL(l3Types[p.Framing])
	}
	e.SetByteCnt(n)
	e.SetTimestamp(u.timestamp(u.e.Now()))
	e.SetQPN(q.num)
	e.SetWQECounter(q.recvIdx)
	e.SetOpOwn(op, prm.CQEFormatPlain, p.BTH().Solicited(), 0)
	q.rcq.push(all)
}

// ibDatagramCQE is what a completion of a datagram says on InfiniBand.
func (q *responder) ibDatagramCQE(e prm.CQE64, p *roce.Packet) {
	h := p.LRH()
	e.SetSLID(h.SLID())
	e.SetSL(uint32(h.SL()))
	e.SetMLPath(uint8(h.DLID()) & (1<<q.u.ib.info.LMC - 1))
	if p.HasGRH() {
		e.SetGRH(1)
	}
}
