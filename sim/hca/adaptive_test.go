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

// TestAdaptiveWaits: a packet that nobody answers is sent again after each of the
// published waits, the last of which repeats, and more often than retry_cnt says; an
// answer starts the series anew.
func TestAdaptiveWaits(t *testing.T) {
	p := testParams()
	p.AdaptiveRetrans, p.AdaptiveExtra = true, 3
	o := defaults() // timeout 14, 7 retries
	ha, hb, a, _, ab, _ := twoHosts(t, p, 1, o)
	v := &void{e: ha.e}
	r := hb.newMR(4096, rightsAll)
	w := wr{op: prm.WQEOpRDMAWrite, raddr: r.va, rkey: r.rkey, inline: []byte("x")}

	ha.d.SetWire(v)
	a.post(w)
	run(t, ha.e, 8*ms) // one retry: 5.6 ms
	ha.d.SetWire(ab)
	run(t, ha.e, 10*ms)
	a.scq.expect(prm.CQEReq)
	if len(v.at) != 2 || ha.counter(prm.QCRoCEADPRetrans) != 2 {
		t.Fatalf("%d frames, %d adaptive retransmissions", len(v.at), ha.counter(prm.QCRoCEADPRetrans))
	}

	v.at = nil
	ha.d.SetWire(v)
	a.post(w)
	run(t, ha.e, 2000*ms)
	a.scq.expectError(prm.CQEReqErr, prm.SyndromeTransportRetryExc)
	want := []int{5592, 4194, 8388, 16777, 25165, 67108, 134217, 134217, 134217, 134217} // us
	if len(v.at) != len(want)+1 {
		t.Fatalf("sent %d times, want %d", len(v.at), len(want)+1)
	}
	for i, us := range want {
		if got := int((v.at[i+1] - v.at[i]) / sim.Microsecond); got != us {
			t.Errorf("wait %d: %d us, want %d", i+1, got, us)
		}
	}
	if n := ha.counter(prm.QCRoCEADPRetransTo); n != 13 {
		t.Errorf("roce_adp_retrans_to is %d, want 13", n)
	}
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
