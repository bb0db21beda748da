package hca

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// repeatRun is what became of WRITEs over a wire that loses.
type repeatRun struct {
	times               map[uint32]int // how often each PSN was sent
	timeouts, discarded uint64
	repeats, naks       uint64
	ahead               int32 // how far the requester was ahead of what the responder expected, at most
}

// aheadOf notes how far a requester is ahead of the responder.
type aheadOf struct {
	w        Wire
	to       *responder
	farthest *int32
}

func (l aheadOf) Send(f *roce.Frame) {
	*l.farthest = max(*l.farthest, roce.CmpPSN(f.BTH().PSN(), l.to.epsn))
	l.w.Send(f)
}

// repeat posts 40 WRITEs of 8 packets over a wire that loses packet k of them lose[k] times.
func repeat(t *testing.T, p Params, lose map[int]int) (r repeatRun) {
	const messages, packets = 40, 8
	p.SelectiveRepeat, p.PUPacket = true, 100*sim.Nanosecond
	o := defaults()
	o.timeout = 8
	ha, hb, a, b, ab, _ := twoHosts(t, p, 1, o)
	la, lb := ha.newMR(messages*packets<<10, rightsAll), hb.newMR(messages*packets<<10, rightsAll)
	la.fill(pattern)
	l := &lossy{w: aheadOf{ab, &hb.d.qpn(b.n).responder, &r.ahead}, lose: map[uint32]int{}}
	for k, n := range lose {
		l.lose[roce.AddPSN(a.psn, int32(k))] = n
	}
	ha.d.SetWire(l)
	for i := range uint64(messages) {
		a.post(wr{op: prm.WQEOpRDMAWrite, raddr: lb.va + i*packets<<10, rkey: lb.rkey, sges: []sge{la.sge(int(i)*packets<<10, packets<<10)}})
	}
	run(t, ha.e, 20*ms)
	for range messages {
		a.scq.expect(prm.CQEReq)
	}
	if !bytes.Equal(la.bytes(0, messages*packets<<10), lb.bytes(0, messages*packets<<10)) {
		t.Errorf("lost %v: memory differs", lose)
	}
	if live := ha.d.frames.Live + hb.d.frames.Live; live != 0 {
		t.Errorf("lost %v: %d frames leaked", lose, live)
	}
	r.times, r.timeouts, r.repeats = l.times, uint64(ha.counter(prm.QCLocalAckTimeoutErr)), ha.d.Counters().RepeatTimeouts
	c := hb.d.Counters()
	r.discarded, r.naks = c.EarlyDiscarded, c.NaksSent
	return r
}

// TestTwoDropsWithinARoundTrip: where a NAK names one packet, a second drop behind it fills the
// responder's window while the first is repaired, what comes then is discarded, and only the ACK
// timer brings it; NAKs with SACK and a requester that keeps to the window need no timer, and
// nothing is sent again but what was lost.
func TestTwoDropsWithinARoundTrip(t *testing.T) {
	lose := map[int]int{40: 1, 50: 1}
	p := testParams()
	p.RepeatWindow = 20
	if r := repeat(t, p, lose); r.discarded == 0 || r.timeouts == 0 {
		t.Errorf("single: %d packets were discarded, %d timeouts: the test loses too little", r.discarded, r.timeouts)
	}
	p.RepeatScheme = RepeatSACK
	r := repeat(t, p, lose)
	if r.discarded != 0 || r.timeouts != 0 || r.repeats != 0 || r.ahead > 20 {
		t.Errorf("sack: %d packets were discarded, %d and %d timeouts, %d packets ahead", r.discarded, r.timeouts, r.repeats, r.ahead)
	}
	if n := len(r.times); n != 320 {
		t.Errorf("sack: %d PSNs were sent", n)
	}
}

// TestSACKRepairsWhatIsLost: of drawn losses exactly what was lost is sent again, so often as it
// was lost; a repair that is lost waits for RepeatTimeout, and nothing for the ACK timer, which is
// 1 ms.
func TestSACKRepairsWhatIsLost(t *testing.T) {
	for seed := range uint64(60) {
		r, p := rand.New(rand.NewPCG(seed, 2)), testParams()
		p.RepeatScheme, p.RepeatWindow = RepeatSACK, []int{16, 64, 300}[seed%3]
		lose, twice := map[int]int{}, 0
		for k := range 40*8 - 40 {
			switch r.IntN(60) {
			case 0, 1, 2:
				lose[k] = 1
			case 3:
				if seed%2 == 1 {
					lose[k] = 2
					twice++
				}
			}
		}
		got := repeat(t, p, lose)
		if got.timeouts != 0 || got.discarded != 0 || (got.repeats != 0) != (twice > 0) {
			t.Errorf("seed %d: %d ACK timeouts, %d other ones for %d packets that were lost twice, %d discarded", seed, got.timeouts, got.repeats, twice, got.discarded)
		}
		sent := 0
		for _, n := range got.times {
			sent += n
		}
		if lost := len(lose) + twice; sent != 40*8+lost {
			t.Errorf("seed %d: %d packets were lost, and %d were sent again", seed, lost, sent-40*8)
		}
	}
}

// TestSACKAtTheEnd: without anything behind it, a packet waits for RepeatTimeout; an ACK timer that
// is off or of a schedule still stands behind.
func TestSACKAtTheEnd(t *testing.T) {
	p := testParams()
	p.RepeatScheme = RepeatSACK
	for _, c := range []struct {
		lose map[int]int
		want uint64
	}{{map[int]int{319: 1}, 1}, {map[int]int{319: 3}, 3}, {map[int]int{312: 1, 313: 1, 314: 1, 315: 1, 316: 1, 317: 1, 318: 1, 319: 1}, 1}} {
		r := repeat(t, p, c.lose)
		if r.repeats != c.want || r.timeouts != 0 {
			t.Errorf("lost %v: %d waits of RepeatTimeout, want %d, and %d of the ACK timer", c.lose, r.repeats, c.want, r.timeouts)
		}
	}
	// The first wait is for the ACK of the last message, which shows that 319 is missing, and it is
	// sent again.
	if r := repeat(t, p, map[int]int{319: 12}); r.timeouts != 1 || r.repeats != 1+10 {
		t.Errorf("lost 12 times: %d ACK timeouts of 1.05 ms, and %d of 0.1 ms before", r.timeouts, r.repeats)
	}
}

// TestRepeatByOperation: WRITEs are repaired by the packet, and what takes a receive goes back N.
func TestRepeatByOperation(t *testing.T) {
	for op, selective := range map[prm.WQEOpcode]bool{prm.WQEOpRDMAWrite: true, prm.WQEOpSend: false, prm.WQEOpRDMAWriteImm: false} {
		p := testParams()
		p.SelectiveRepeat, p.RepeatScheme, p.PUPacket = true, RepeatByOperation, 200*sim.Nanosecond
		o := defaults()
		o.timeout = 8
		ha, hb, a, b, ab, _ := twoHosts(t, p, 1, o)
		la, lb := ha.newMR(64<<10, rightsAll), hb.newMR(64<<10, rightsAll)
		la.fill(pattern)
		l := &lossy{w: ab, lose: map[uint32]int{roce.AddPSN(a.psn, 2): 1}}
		ha.d.SetWire(l)
		w := wr{op: op, sges: []sge{la.sge(0, 40<<10)}}
		if op != prm.WQEOpSend {
			w.raddr, w.rkey = lb.va, lb.rkey
		}
		if op != prm.WQEOpRDMAWrite {
			b.recv(lb.sge(0, 64<<10))
		}
		a.post(w)
		run(t, ha.e, 2*ms)
		a.scq.expect(prm.CQEReq)
		if !bytes.Equal(la.bytes(0, 40<<10), lb.bytes(0, 40<<10)) {
			t.Errorf("%v: memory differs", op)
		}
		if again := len(l.psns) - 40; (again == 1) != selective || again == 0 {
			t.Errorf("%v: %d packets are sent again", op, again)
		}
		if n := ha.counter(prm.QCLocalAckTimeoutErr); n != 0 {
			t.Errorf("%v: %d timeouts", op, n)
		}
	}
}
