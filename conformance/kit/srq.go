package kit

import (
	"time"

	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// SRQ is a shared receive queue.
type SRQ struct {
	verbs.SRQ
	DestroyNow func(c *spec.C) // destroys it; the case's end does it too
}

// CreateSRQ creates an SRQ for at least wr receives of sge entries.
func (e *Env) CreateSRQ(c *spec.C, wr, sge int) *SRQ { return e.CreateSRQOn(c, e.PD, wr, sge) }

// CreateSRQOn creates an SRQ on a PD for at least wr receives of sge entries.
func (e *Env) CreateSRQOn(c *spec.C, pd verbs.PD, wr, sge int) *SRQ {
	s, err := pd.CreateSRQ(c.T, verbs.SRQInitAttr{MaxWR: uint32(wr), MaxSGE: uint32(sge)})
	ok(c, "create_srq", err)
	return &SRQ{s, DestroyOnce(c, "destroy_srq", s.Destroy)}
}

// Recv posts receives and fails the case if one is refused.
func (s *SRQ) Recv(c *spec.C, wrs ...verbs.RecvWR) {
	if bad, err := s.PostRecv(c.T, wrs); err != nil {
		c.Failf("post_srq_recv: want success, got %s at request %d of %d (%v)",
			verbs.ErrnoName(verbs.ErrnoOf(err)), bad, len(wrs), err)
	}
}

// RecvInto posts one receive and fails the case if it is refused.
func (s *SRQ) RecvInto(c *spec.C, id uint64, sges ...verbs.SGE) {
	s.Recv(c, verbs.RecvWR{ID: id, SGEs: sges})
}

// EventsWithin takes and acknowledges asynchronous events as long as each comes within d of the one
// before. It returns those of the given types.
func (e *Env) EventsWithin(c *spec.C, d time.Duration, types ...verbs.EventType) []verbs.AsyncEvent {
	var out []verbs.AsyncEvent
	for {
		ev, err := e.Ctx.AsyncEvent(c.T, d)
		if err != nil {
			return out
		}
		e.Ctx.AckAsyncEvent(c.T, ev)
		for _, t := range types {
			if ev.Type == t {
				out = append(out, ev)
			}
		}
	}
}
