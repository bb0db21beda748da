package hca

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// measuredParams is a device with the ACK timer that was measured on ConnectX-6, after power-on.
func measuredParams() Params {
	p := testParams()
	p.RoCEAccl, p.RoCEAdpRetransEn, p.RoCESlowRestartEn = true, true, true
	p.AdaptiveStart, p.AckTimeoutMin = 1, 16
	return p
}

// death is what a request left that nobody answered.
type death struct {
	at         []sim.Time // transmissions, from the first on
	h          *host
	cqe        prm.CQE64
	unanswered Unanswered
}

// dies posts a WRITE that nobody answers on a device, and waits for its end.
func dies(t *testing.T, p Params, timeout, retries int) death {
	t.Helper()
	o := defaults()
	o.timeout, o.retry = uint32(timeout), uint32(retries)
	ha, hb, a, _, _, _ := twoHosts(t, p, 1, o)
	v := &void{e: ha.e}
	r := hb.newMR(4096, rightsAll)
	ha.d.SetWire(v)
	a.post(wr{op: prm.WQEOpRDMAWrite, raddr: r.va, rkey: r.rkey, inline: []byte("x")})
	d := death{h: ha, unanswered: p.Unanswered(uint8(timeout), uint32(retries))}
	run(t, ha.e, d.unanswered.Detection-sim.Microsecond)
	a.scq.expectNone()
	run(t, ha.e, 40*sim.Microsecond)
	d.cqe = a.scq.expectError(prm.CQEReqErr, prm.SyndromeTransportRetryExc)
	for _, at := range v.at {
		d.at = append(d.at, at-v.at[0])
	}
	return d
}

// TestDetection holds a device to the figures that were published of a ConnectX-6: the time of the
// error within 1 %, what is counted exactly.
func TestDetection(t *testing.T) {
	for _, c := range []struct {
		timeout, retries  int
		ms                float64 // from the request to its error
		last, first       float64 // ms: the last adaptive retransmission, and the first regular one; 0: there is none
		adaptive, regular int
	}{
		{10, 7, 3661.5, 440, 977, 6, 6}, {12, 7, 3661.5, 440, 977, 6, 6}, {14, 7, 3661.5, 440, 977, 6, 6}, {15, 7, 3661.5, 440, 977, 6, 6}, {16, 7, 3661.5, 440, 977, 6, 6},
		{17, 7, 7151.7, 977, 1782.7, 7, 6}, {20, 7, 59766, 8225, 16815, 10, 6},
		{14, 2, 977, 440, 0, 6, 1}, {14, 3, 1514, 440, 977, 6, 2}, {17, 2, 1782.7, 977, 0, 7, 1}, {20, 2, 16815, 8225, 0, 10, 1},
		{14, 1, 440, 0, 0, 5, 0}, {17, 1, 977, 0, 0, 6, 0}, {20, 1, 8225, 0, 0, 9, 0},
		{14, 0, 2050.7, 440, 977, 5, 3},
	} {
		t.Run(fmt.Sprintf("timeout %d, retry_cnt %d", c.timeout, c.retries), func(t *testing.T) {
			d := dies(t, measuredParams(), c.timeout, c.retries)
			near := func(what string, got sim.Time, ms float64) {
				t.Helper()
				if v := float64(got) / float64(sim.Millisecond); v < ms*0.99 || v > ms*1.01 {
					t.Errorf("%s after %.1f ms, want %.1f", what, v, ms)
				}
			}
			near("the error", d.unanswered.Detection, c.ms)
			if c.last != 0 {
				near("the last adaptive retransmission", d.at[c.adaptive], c.last)
			}
			if c.first != 0 {
				near("the first regular retransmission", d.at[c.adaptive+1], c.first)
			}
			again := len(d.at) - 1
			if want := c.adaptive + max(0, c.regular-1); again != want || d.unanswered.Transmissions != len(d.at) {
				t.Errorf("%d retransmissions, want %d; %d transmissions foretold", again, want, d.unanswered.Transmissions)
			}
			for _, n := range []struct {
				q    prm.QCounter
				want int
			}{{prm.QCRoCEADPRetrans, c.adaptive}, {prm.QCLocalAckTimeoutErr, c.regular}, {prm.QCRoCEADPRetransTo, 0}, {prm.QCRoCESlowRestartCNPs, again},
				{prm.QCReqTransportRetriesExceeded, 1}, {prm.QCPacketSeqErr, 0}, {prm.QCOutOfSequence, 0}, {prm.QCImpliedNAKSeqErr, 0}, {prm.QCDuplicateRequest, 0}} {
				if got := int(d.h.counter(n.q)); got != n.want {
					t.Errorf("counter %#x is %d, want %d", int(n.q), got, n.want)
				}
			}
			if n := int(d.h.d.Counters().RpCNPHandled); n != again {
				t.Errorf("rp_cnp_handled is %d, want %d", n, again)
			}
		})
	}
}

// TestRegularSpacing: regular timeouts are twice the timeout apart, to the picosecond.
func TestRegularSpacing(t *testing.T) {
	for timeout, interval := range map[int]sim.Time{8: 2 * codeTime(16), 16: 2 * codeTime(16), 17: 2 * codeTime(17), 20: 2 * codeTime(20), 22: 2 * codeTime(22)} {
		d := dies(t, measuredParams(), timeout, 7)
		n := len(d.at)
		for i := n - 4; i < n; i++ {
			if got := d.at[i] - d.at[i-1]; got != interval {
				t.Errorf("timeout %d: %v between two, want %v", timeout, got, interval)
			}
		}
	}
}

// TestWithoutFloor: min_ack_timeout_limit_disabled has retry_cnt retransmissions, the timeout
// apart, behind a first count that sends nothing.
func TestWithoutFloor(t *testing.T) {
	p := measuredParams()
	p.MinAckTimeoutLimitDisabled = true
	for _, timeout := range []int{1, 8, 14, 20} {
		for _, retries := range []int{0, 1, 7} {
			d := dies(t, p, timeout, retries)
			n := codeTime(uint8(timeout))
			if len(d.at) != retries+1 || d.h.counter(prm.QCRoCEADPRetrans) != 0 || int(d.h.counter(prm.QCLocalAckTimeoutErr)) != retries+2 {
				t.Fatalf("timeout %d, retry_cnt %d: %d transmissions, %d adaptive, %d timeouts", timeout, retries, len(d.at), d.h.counter(prm.QCRoCEADPRetrans), d.h.counter(prm.QCLocalAckTimeoutErr))
			}
			if first := d.unanswered.Detection - sim.Time(retries+1)*n; first < n/2 || first > n {
				t.Errorf("timeout %d, retry_cnt %d: the first count took %v of %v", timeout, retries, first, n)
			}
			for i := 2; i < len(d.at); i++ {
				if got := d.at[i] - d.at[i-1]; got != n {
					t.Errorf("timeout %d: %v between two, want %v", timeout, got, n)
				}
			}
		}
	}
	// Medians of each timeout and retry_cnt of the source; at timeout 8 the card's clock is too
	// coarse for fewer retries.
	for _, c := range []struct {
		timeout uint8
		retries uint32
		ms      float64
	}{{8, 7, 9.49}, {10, 0, 8.38}, {10, 3, 20.97}, {10, 7, 37.91}, {12, 0, 29.56}, {12, 3, 79.94}, {12, 7, 147.04}, {14, 0, 105.07}, {14, 3, 306.29}, {14, 7, 574.9},
		{16, 7, 2319.72}, {17, 7, 4735.57}, {18, 7, 9219.88}, {20, 7, 37939.02}} {
		if got := float64(p.Unanswered(c.timeout, c.retries).Detection) / float64(sim.Millisecond); got < c.ms*0.99 || got > c.ms*1.01 {
			t.Errorf("timeout %d, retry_cnt %d: %.2f ms, want %.2f", c.timeout, c.retries, got, c.ms)
		}
	}
}

// TestExactTimer: without the register, on InfiniBand and with adaptive retransmission switched off
// the formula of the specification holds.
func TestExactTimer(t *testing.T) {
	for name, change := range map[string]func(p *Params){
		"no register": func(p *Params) { p.RoCEAccl, p.RoCEAdpRetransEn, p.RoCESlowRestartEn = false, false, false },
		"adaptive off": func(p *Params) {
			p.RoCEAdpRetransEn = false
		},
	} {
		p := measuredParams()
		change(&p)
		d := dies(t, p, 12, 3)
		if len(d.at) != 4 || d.unanswered.Detection != 4*codeTime(12) || d.h.counter(prm.QCLocalAckTimeoutErr) != 4 || d.h.counter(prm.QCRoCEADPRetrans) != 0 {
			t.Errorf("%s: %d transmissions, %v", name, len(d.at), d.unanswered.Detection)
		}
	}
	p := measuredParams()
	p.LinkLayers, p.LinkLayer = EitherLinkLayer, InfiniBand
	if u := p.Unanswered(14, 7); u.Detection != 8*codeTime(14) || u.Adaptive != 0 {
		t.Errorf("InfiniBand: %+v", u)
	}
	p.IBAckTimer = IBTimerAsRoCE
	if u := p.Unanswered(14, 7); u.Adaptive == 0 {
		t.Errorf("InfiniBand as RoCE: %+v", u)
	}
}

// TestScheduleOfLumina: what was measured on a ConnectX-6 Dx of 2022 follows the same rule with
// other points and no floor at timeout 14.
func TestScheduleOfLumina(t *testing.T) {
	p := measuredParams()
	p.AdaptiveSchedule, p.AckTimeoutMin = ScheduleLumina, 14
	d := dies(t, p, 14, 7)
	want := []int{5592, 4194, 8388, 16777, 25165, 67108, 134217, 134217, 134217, 134217, 134217} // us
	if len(d.at) != len(want)+1 {
		t.Fatalf("sent %d times, want %d", len(d.at), len(want)+1)
	}
	for i, us := range want {
		if got := int((d.at[i+1] - d.at[i]) / sim.Microsecond); got != us {
			t.Errorf("wait %d: %d us, want %d", i+1, got, us)
		}
	}
}

// TestFirstFault: the first fault of a new process moves the regular part as a whole.
func TestFirstFault(t *testing.T) {
	p := measuredParams()
	p.FirstFault = true
	for timeout, bounds := range map[int][2]float64{14: {3500, 3760}, 20: {58460, 58790}} {
		before := measuredParams()
		usual := before.Unanswered(uint8(timeout), 7)
		d := dies(t, p, timeout, 7)
		ms := float64(d.unanswered.Detection) / float64(sim.Millisecond)
		if ms < bounds[0] || ms > bounds[1] || d.unanswered.Regular != usual.Regular || d.unanswered.Adaptive != usual.Adaptive {
			t.Errorf("timeout %d: %.0f ms, %+v after %+v", timeout, ms, d.unanswered, usual)
		}
		n := len(d.at)
		if got := d.at[n-1] - d.at[n-2]; got != 2*codeTime(uint8(max(16, timeout))) {
			t.Errorf("timeout %d: the regular part has %v between two", timeout, got)
		}
		least, typical, most, known := FirstFaultShift(uint8(timeout))
		if !known || least > typical || typical > most {
			t.Errorf("timeout %d: %v, %v, %v, %v", timeout, least, typical, most, known)
		}
	}
	if _, _, _, known := FirstFaultShift(18); known {
		t.Error("a shift for a timeout that was not measured")
	}
}

// TestTimerEndsSooner: an acknowledgement in the middle of a long wait starts the series anew, and
// the next loss is noticed after its first wait, though an event for the long one is still to come.
func TestTimerEndsSooner(t *testing.T) {
	ha, hb, a, _, ab, _ := twoHosts(t, measuredParams(), 1, defaults())
	v := &void{e: ha.e}
	r := hb.newMR(4096, rightsAll)
	w := wr{op: prm.WQEOpRDMAWrite, raddr: r.va, rkey: r.rkey, inline: []byte("x")}
	ha.d.SetWire(v)
	a.post(w)
	run(t, ha.e, 500*ms) // the sixth adaptive retransmission was at 440 ms
	if len(v.at) != 7 {
		t.Fatalf("%d transmissions", len(v.at))
	}
	ha.d.SetWire(ab)
	run(t, ha.e, 500*ms) // the first regular one arrives at 977 ms
	a.scq.expect(prm.CQEReq)
	v.at = nil
	ha.d.SetWire(v)
	a.post(w)
	run(t, ha.e, 30*ms)
	if len(v.at) != 2 || v.at[1]-v.at[0] < 20*ms || v.at[1]-v.at[0] > 22*ms {
		t.Fatalf("transmissions at %v, want a second one after 21 ms", v.at)
	}
}

// TestTimerOfTheLifeBefore: a queue pair that is set up again with a shorter timeout goes by that,
// though an event for the longer one is still to come.
func TestTimerOfTheLifeBefore(t *testing.T) {
	o := defaults()
	o.timeout, o.retry = 20, 1
	ha, _, a, b, _, _ := twoHosts(t, testParams(), 1, o)
	v := &void{e: ha.e}
	ha.d.SetWire(v)
	w := wr{op: prm.WQEOpRDMAWrite, inline: []byte("x")}
	a.post(w)
	run(t, ha.e, ms)
	a.modify2(prm.Op2RstQP)
	a.pi = 0
	o.timeout = 8
	a.connect(b, o)
	v.at = nil
	a.post(w)
	run(t, ha.e, 3*ms)
	a.scq.expectError(prm.CQEReqErr, prm.SyndromeTransportRetryExc)
	if len(v.at) != 2 || v.at[1]-v.at[0] > codeTime(8)+sim.Microsecond {
		t.Errorf("transmissions at %v", v.at)
	}
}

// TestPlanAndDevice compares what Unanswered foretells with what a device does, at random settings.
func TestPlanAndDevice(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		p := measuredParams()
		p.AdaptiveSchedule = RetransSchedule(r.IntN(len(schedules)))
		p.AdaptiveStart, p.AckTimeoutMin = r.IntN(4), r.IntN(20)
		p.RoCEAdpRetransEn, p.MinAckTimeoutLimitDisabled, p.RoCESlowRestartEn = r.IntN(3) > 0, r.IntN(3) == 0, r.IntN(2) == 0
		timeout, retries := 1+r.IntN(31), r.IntN(8)
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		d := dies(t, p, timeout, retries)
		u := d.unanswered
		if len(d.at) != u.Transmissions || int(d.h.counter(prm.QCRoCEADPRetrans)) != u.Adaptive || int(d.h.counter(prm.QCLocalAckTimeoutErr)) != u.Regular {
			t.Errorf("timeout %d, retry_cnt %d, %+v: %d transmissions, %d adaptive, %d regular, foretold %+v", timeout, retries, p.MinAckTimeoutLimitDisabled,
				len(d.at), d.h.counter(prm.QCRoCEADPRetrans), d.h.counter(prm.QCLocalAckTimeoutErr), u)
		}
		if again := len(d.at) - 1; p.RoCESlowRestartEn && int(d.h.counter(prm.QCRoCESlowRestartCNPs)) != again || !p.RoCESlowRestartEn && d.h.counter(prm.QCRoCESlowRestartCNPs) != 0 {
			t.Errorf("%d retransmissions, %d notices", again, d.h.counter(prm.QCRoCESlowRestartCNPs))
		}
	}
	p := measuredParams()
	if u := p.Unanswered(0, 7); u.Detection != 0 || u.Transmissions != 1 {
		t.Errorf("without a timer: %+v", u)
	}
}

// TestLongDeathIsCheap: a wait of a minute is a few events.
func TestLongDeathIsCheap(t *testing.T) {
	d := dies(t, measuredParams(), 20, 7)
	if n := d.h.e.Events(); n > 2000 {
		t.Errorf("%d events for %v", n, d.unanswered.Detection)
	}
}

// TestROCEAccl reads and writes the register; connections made from then on go by it.
func TestROCEAccl(t *testing.T) {
	o := defaults()
	ha, hb, _, _, _, _ := twoHosts(t, measuredParams(), 1, o)
	reg := prm.ROCEAcclReg(ha.readReg(prm.RegROCEAccl, nil))
	if !reg.HasAdpRetrans() || !reg.HasSlowRestart() || !reg.HasMinAckTimeoutLimitDisabled() || !reg.AdpRetransEn() || !reg.SlowRestartEn() || reg.MinAckTimeoutLimitDisabled() {
		t.Fatalf("after power-on % x", reg[:8])
	}
	ha.writeReg(prm.RegROCEAccl, prm.StatusOK, func(r []byte) { // selects nothing
		prm.ROCEAcclReg(r).SetMinAckTimeoutLimitDisabled(true)
	})
	if prm.ROCEAcclReg(ha.readReg(prm.RegROCEAccl, nil)).MinAckTimeoutLimitDisabled() {
		t.Error("a mode that was not selected has changed")
	}
	ha.writeReg(prm.RegROCEAccl, prm.StatusOK, func(r []byte) {
		prm.ROCEAcclReg(r).SetHasMinAckTimeoutLimitDisabled(true)
		prm.ROCEAcclReg(r).SetMinAckTimeoutLimitDisabled(true)
	})
	if reg := prm.ROCEAcclReg(ha.readReg(prm.RegROCEAccl, nil)); !reg.MinAckTimeoutLimitDisabled() || !reg.AdpRetransEn() {
		t.Errorf("written % x", reg[:8])
	}
	o.timeout, o.retry = 8, 7
	a, b := ha.newQP(ha.newCQ(9, 64), ha.newCQ(9, 64)), hb.newQP(hb.newCQ(9, 64), hb.newCQ(9, 64))
	a.connect(b, o)
	v := &void{e: ha.e}
	ha.d.SetWire(v)
	a.post(wr{op: prm.WQEOpRDMAWrite, inline: []byte("x")})
	run(t, ha.e, 10*ms)
	a.scq.expectError(prm.CQEReqErr, prm.SyndromeTransportRetryExc)
	if len(v.at) != 8 {
		t.Errorf("%d transmissions without the floor", len(v.at))
	}
}

// TestRetransmissionChecks: values that contradict each other are refused by name.
func TestRetransmissionChecks(t *testing.T) {
	for want, change := range map[string]func(p *Params){
		"RoCEAdpRetransEn is true, and RoCEAccl false":            func(p *Params) { p.RoCEAccl = false },
		"MinAckTimeoutLimitDisabled is true, and RoCEAccl false":  func(p *Params) { p.RoCEAccl, p.MinAckTimeoutLimitDisabled = false, true },
		"AdaptiveStart is 4, not in 0..3":                         func(p *Params) { p.AdaptiveStart = 4 },
		"AckTimeoutMin is 32, not in 0..31":                       func(p *Params) { p.AckTimeoutMin = 32 },
		"FirstFault is true, and says of adaptive retransmission": func(p *Params) { p.FirstFault, p.MinAckTimeoutLimitDisabled = true, true },
	} {
		p := measuredParams()
		change(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestAdaptiveBounds holds the schedules to what judges of frames allow any card.
func TestAdaptiveBounds(t *testing.T) {
	for word := range schedules {
		s := &schedules[word]
		for start := range s.starts {
			for n := range 24 {
				if got := s.step(start, n); got < roce.AdaptiveLeast*sim.Nanosecond {
					t.Errorf("schedule %d: wait %d from start %d is %v, and the least is %v", word, n, start, got, roce.AdaptiveLeast*sim.Nanosecond)
				}
			}
			p := measuredParams()
			p.AdaptiveSchedule, p.AdaptiveStart = RetransSchedule(word), start
			for code := uint8(1); code < 32; code++ {
				most := roce.AdaptiveMost + max(0, int(code)-20)
				if got := p.Unanswered(code, 7).Adaptive; got > most {
					t.Errorf("schedule %d: %d adaptive retransmissions at timeout %d from start %d, at most %d", word, got, code, start, most)
				}
			}
		}
	}
}
