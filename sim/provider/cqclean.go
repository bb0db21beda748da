package provider

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// clean drops the entries of a QP that is reset or destroyed, by its user index, moves the others
// up over the holes with the owner bit of where they come to lie, and reports the consumer index
// (__mlx5_cq_clean, 3.3). It adds to cost what that takes.
func (q *CQ) clean(t *Thread, uidx uint32, srq *SRQ, cost *sim.Time) {
	if t.breaks(rule.CQIsCleanedOfAQP) {
		return
	}
	pi := q.ci
	for pi-q.ci < q.n {
		if _, ready := q.look(t, pi); !ready {
			break
		}
		pi++
	}
	*cost += q.ctx.proc.Params.CleanCQE*sim.Time(pi-q.ci) + t.unspent
	t.unspent = 0
	freed := uint32(0)
	for i := pi; i != q.ci; {
		i--
		e := q.at(i)
		switch {
		case e.SRQNUIdx() == uidx:
			if srq != nil && e.Opcode().Responder() {
				srq.retire(t, e.WQECounter())
				*cost += t.unspent
				t.unspent = 0
			}
			freed++
		case freed > 0:
			dst := i + freed
			q.move(dst, i)
		}
	}
	if freed > 0 {
		q.ci += freed
		prm.CQDBRec(q.db.b).SetCI(q.ci)
	}
}

// move copies entry src over entry dst of the same ring, whose owner bit stays that
// of its place.
func (q *CQ) move(dst, src uint32) {
	d := q.ring.at(int(dst&(q.n-1)) * q.esize)[:q.esize]
	copy(d, q.ring.at(int(src&(q.n-1)) * q.esize)[:q.esize])
	e := prm.CQE64(d[q.esize-prm.CQE64Size:])
	e.SetOpOwn(e.Opcode(), e.Format(), e.SE(), prm.CQEOwner(dst, q.n))
}
