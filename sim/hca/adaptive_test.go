package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// void swallows frames and remembers when they came.
type void struct {
	e  *sim.Engine
	at []sim.Time
}

func (v *void) Send(f *roce.Frame) {
	v.at = append(v.at, v.e.Now())
	f.Release()
}

// TestReadRecovery: what a lost READ response costs is the two delays of the profile.
func TestReadRecovery(t *testing.T) {
	p := testParams()
	p.NackGenerate[1], p.NackReact[1] = 150*sim.Microsecond, 130*sim.Microsecond
	ha, hb, a, _, _, ba := twoHosts(t, p, 1, defaults())
	la, lb := ha.newMR(16<<10, rightsAll), hb.newMR(16<<10, rightsAll)
	w := wr{op: prm.WQEOpRDMARead, raddr: lb.va, rkey: lb.rkey, sges: []sge{la.sge(0, 8192)}}
	took := func() sim.Time {
		start := ha.e.Now()
		a.post(w)
		for {
			run(t, ha.e, 100*sim.Nanosecond)
			if e := a.scq.poll(); e != nil && e.Opcode() == prm.CQEReq {
				return ha.e.Now() - start
			}
		}
	}
	whole := took()
	hb.d.SetWire(&skip{w: ba, n: 3})
	lost := took() - whole
	if least := 280 * sim.Microsecond; lost < least || lost > least+5*sim.Microsecond {
		t.Errorf("a lost response cost %v, want 280 us and a round trip", lost)
	}
}

// skip loses the frame that comes n-th.
type skip struct {
	w Wire
	n int
}

func (s *skip) Send(f *roce.Frame) {
	if s.n--; s.n == 0 {
		f.Release()
		return
	}
	s.w.Send(f)
}
