package random

import (
	"errors"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/model"
	"github.com/rdmasim/rdmasim/verbs"
)

// An XRC program has a sender, A, its target, B, and two SRQs in the target's domain, each with a
// CQ of its own. Steps of receives and of a limit are of the SRQ of their side.

// noSRQ is the number of a Request's SRQ that does not exist.
const noSRQ = 2

// validXRC says what is wrong with an XRC program.
func (p *Program) validXRC() error {
	if p.UC || p.UD || p.SRQ || p.Window != 0 || p.paged() {
		return errors.New("XRC has no other type, no other SRQ, no windows and no regions on demand here")
	}
	for _, s := range p.Steps {
		if s.Kind == StepDrain || s.Side == 1 && (s.Kind == StepSend || len(s.List) > 0) || s.Late > 0 || s.All && s.Kind == StepRenew {
			return errors.New("only side A of XRC sends; it is not drained, waits for no receive, and the SRQs keep their CQs")
		}
	}
	return nil
}

// openXRC makes the domain and its SRQs.
func (r *run) openXRC() {
	r.domainXRC = r.env.OpenXRCD(r.c, kit.NoFile, syscall.O_CREAT)
	for k := range r.named {
		n := r.cq(k, true)
		s, err := r.env.Ctx.CreateSRQEx(r.c.T, verbs.SRQInitAttrEx{SRQInitAttr: verbs.SRQInitAttr{MaxWR: uint32(r.p.depth()), MaxSGE: uint32(r.p.sges())},
			CompMask: verbs.SRQInitAll, Type: verbs.SRQXRC, PD: r.env.PD, XRCD: r.domainXRC.XRCD, CQ: r.cqs[n]})
		kit.Must(r.c, "create_srq_ex", err)
		kit.DestroyOnce(r.c, "destroy_srq", s.Destroy)
		r.named[k] = s
		r.numbers[k], err = s.Num(r.c.T)
		kit.Must(r.c, "get_srq_num", err)
		r.namedM[k] = &model.SRQ{World: r.world, Cap: int(s.Caps().MaxWR), SGEs: int(s.Caps().MaxSGE), CQ: r.cm[n]}
		a, err := s.Query(r.c.T)
		kit.Must(r.c, "query_srq", err)
		r.namedM[k].Most = max(r.namedM[k].Cap, int(a.MaxWR))
	}
	r.numbers[noSRQ] = r.numbers[0] ^ wrong
}

// createXRC makes the sender and its target.
func (r *run) createXRC(o kit.Options) {
	for k := range r.qps {
		o.Access = r.p.Access[k]
		m := &model.QP{Name: side(k), MostRd: r.most.MaxQPInitRdAtom, MostDestRd: r.most.MaxQPRdAtom}
		if k == 0 {
			o.SendCQ, o.RecvCQ = r.cqs[r.cq(0, false)], r.cqs[r.cq(0, true)]
			q := r.env.CreateQP(r.c, o)
			m.Type, m.Number, m.Cap, m.SigAll, m.Extended = o.Type, q.QPN(), q.Caps(), o.SigAll, o.SendOps != 0
			m.SendCQ, m.RecvCQ = r.cm[r.cq(0, false)], r.cm[r.cq(0, true)]
			r.qps[k], r.qm[k] = q, r.world.NewQP(m)
		} else {
			q := r.env.CreateTarget(r.c, r.domainXRC, o)
			m.Number = q.QPN()
			r.qps[k], r.qm[k] = q, r.world.NewTarget(m, r.namedM[:])
		}
		o.PSN = o.NthPSN(0x1000)
	}
}

// name gives a request the number of an SRQ.
func (r *run) name(n int, w *verbs.SendWR, m *model.Request) {
	if r.p.XRC {
		if w.XRCRemoteSRQN = r.numbers[n]; n < noSRQ {
			m.SRQ = r.namedM[n]
		}
	}
}

// shared is the SRQ of a side; nil: it has none.
func (r *run) shared(side int) (verbs.SRQ, *model.SRQ) {
	switch {
	case r.p.XRC:
		return r.named[side], r.namedM[side]
	case r.srq != nil:
		return r.srq, r.sm
	}
	return nil, nil
}

// receives is how many receives of a side wait.
func (r *run) receives(side int) int {
	if _, s := r.shared(side); s != nil {
		return s.Posted()
	}
	return r.qm[side].Posted()
}
