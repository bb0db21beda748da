package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// Here stands when a requester sends again what nobody answers. Which rule holds, the register
// ROCE_ACCL says, and on a device without it, or on InfiniBand, the formula of the specification.
// The figures are measurements of ConnectX-5 and ConnectX-6 that were published in 2026
// (github.com/unionxic/rdma-fault-characterization, harness/ack_timeout); how firmware comes to
// them is not public.

// roceAccl is what the register ROCE_ACCL says; connections that are made from then on go by it.
type roceAccl struct {
	adaptive    bool // roce_adp_retrans_en
	slowRestart bool // roce_slow_restart_en
	unlimited   bool // min_ack_timeout_limit_disabled
}

// newRoCEAccl is the register after power-on.
func newRoCEAccl(p *Params) roceAccl {
	return roceAccl{p.RoCEAdpRetransEn, p.RoCESlowRestartEn, p.MinAckTimeoutLimitDisabled}
}

// timerRule is by which rule the ACK timer of a connection goes.
type timerRule uint8

const (
	exactTimer     timerRule = iota // retry_cnt retransmissions, each after the timeout
	adaptiveTimer                   // those of the schedule, then regular ones at twice the timeout
	unlimitedTimer                  // as exact, after a first count that sends nothing
)

// ackTimer is the rule of one connection with its times.
type ackTimer struct {
	rule        timerRule
	slowRestart bool
	start       int
	schedule    *schedule
	adaptive    uint8    // retransmissions of the schedule
	nominal     sim.Time // the timeout, raised to the device's floor
	first       sim.Time // unlimited: the first count
	shift       sim.Time // adaptive: by which the regular part begins later than the schedule says
	retries     uint32   // retry_cnt
}

// A connection with retry_cnt 0 makes sevenAlone retransmissions, adaptive and regular, and gives
// up at the timeout after them. In six of eight trials at timeout 14 the series began at the point
// with index startAlone: five adaptive ones, three timeouts, 2,051 ms
// (github.com/unionxic/rdma-fault-characterization, harness/ack_timeout).
const (
	sevenAlone = 7
	startAlone = 2
)

// newAckTimer is the rule for a connection with an ACK timeout of a code that is not 0, and a retry
// count.
func newAckTimer(p *Params, reg roceAccl, code uint8, retries uint32) ackTimer {
	t := ackTimer{retries: retries, nominal: codeTime(code)}
	measured := p.RoCEAccl && (p.LinkLayer == Ethernet || p.IBAckTimer == IBTimerAsRoCE)
	switch {
	case measured && reg.unlimited:
		t.rule, t.first = unlimitedTimer, schedules[p.AdaptiveSchedule].silent(t.nominal, code >= uint8(p.AckTimeoutMin))
	case measured && reg.adaptive:
		t.rule, t.schedule, t.start = adaptiveTimer, &schedules[p.AdaptiveSchedule], p.AdaptiveStart
		t.nominal = codeTime(max(code, uint8(p.AckTimeoutMin)))
		if retries == 0 {
			t.start = startAlone
		}
		for t.adaptive = 1; t.step(t.adaptive) <= t.nominal; {
			t.adaptive++
		}
		if p.FirstFault {
			_, t.shift, _, _ = FirstFaultShift(code)
		}
	default:
		t.nominal = max(t.nominal, p.AckTimeoutFloor)
	}
	t.slowRestart = measured && reg.slowRestart
	return t
}

// codeTime is the ACK timeout of a code.
func codeTime(code uint8) sim.Time { return sim.Time(roce.AckTimeout(code)) * sim.Nanosecond }

func (t *ackTimer) step(n uint8) sim.Time { return t.schedule.step(t.start, int(n)) }

// wait is how long the timer runs when n timeouts have come in a row.
func (t *ackTimer) wait(n uint8) sim.Time {
	interval := 2 * t.nominal
	switch {
	case t.rule == unlimitedTimer && n == 0:
		return t.first
	case t.rule != adaptiveTimer:
		return t.nominal
	case n < t.adaptive:
		return t.step(n)
	case n == t.adaptive:
		return max(0, min(t.step(n), interval)+t.shift)
	}
	return interval
}

// timeoutEffect is what an ACK timeout does.
type timeoutEffect uint8

const (
	sendsAgain   timeoutEffect = iota // adaptive: it takes no retry
	takesRetry                        // it sends again while a retry is left
	takesLastToo                      // it sends again while more than one is left: the last one ends with the error
	countsInVain                      // nothing is sent
)

// effect is that of the timeout after n others in a row, and how it is counted.
func (t *ackTimer) effect(n uint8) (timeoutEffect, prm.QCounter) {
	counter := prm.QCLocalAckTimeoutErr
	if t.adapts(n) {
		counter = prm.QCRoCEADPRetrans
	}
	switch {
	case t.rule == unlimitedTimer && n == 0:
		return countsInVain, counter
	case t.rule != adaptiveTimer || t.retries == 0 && n >= sevenAlone:
		return takesRetry, counter
	case t.retries == 0:
		return sendsAgain, counter
	case n+1 >= t.adaptive: // the whole adaptive phase takes one
		return takesLastToo, counter
	}
	return sendsAgain, counter
}

// adapts says whether the timeout after n others in a row is of the schedule.
func (t *ackTimer) adapts(n uint8) bool { return t.rule == adaptiveTimer && n < t.adaptive }

// FirstFaultShift says by how much later than after another fault of the same process the regular
// timeouts of a new process's first fault begin, at a timeout code: at least, typically, at most.
// It is known of the codes up to 16 and of 20 (published for 14 and 20); of others known is false.
// The sum is what moves; number and distance of the regular timeouts stay.
func FirstFaultShift(code uint8) (least, typical, most sim.Time, known bool) {
	const ms = sim.Millisecond
	switch {
	case code <= 16: // 3.50 to 3.76 s, mostly 3.75, in place of 3,661.8 ms
		return -162 * ms, 88 * ms, 98 * ms, true
	case code == 20: // 58.46 to 58.79 s in place of 59.77 s
		return -1310 * ms, -1145 * ms, -980 * ms, true
	}
	return 0, 0, 0, false
}

// Unanswered is what becomes of a request that nobody answers.
type Unanswered struct {
	Detection     sim.Time // from the request on the wire to its error; 0: it waits for ever
	Transmissions int
	Adaptive      int // retransmissions by the schedule
	Regular       int // ACK timeouts that are counted as such
}

// Unanswered follows a connection of the device with an ACK timeout code and a retry count, after
// power-on.
func (p *Params) Unanswered(code uint8, retries uint32) Unanswered {
	u := Unanswered{Transmissions: 1}
	if code == 0 {
		return u
	}
	t, left := newAckTimer(p, newRoCEAccl(p), code, retries), retries
	for n := uint8(0); ; n++ {
		u.Detection += t.wait(n)
		effect, counter := t.effect(n)
		over := effect == takesRetry && left == 0 || effect == takesLastToo && left <= 1
		switch {
		case counter == prm.QCLocalAckTimeoutErr:
			u.Regular++
		case !over:
			u.Adaptive++
		}
		if over {
			return u
		}
		if effect != countsInVain {
			u.Transmissions++
		}
		if effect == takesRetry || effect == takesLastToo {
			left--
		}
	}
}

// FirstRetransmission is when the first retransmission of an unanswered request leaves; 0: never.
func (p *Params) FirstRetransmission(code uint8) sim.Time {
	if code == 0 {
		return 0
	}
	t := newAckTimer(p, newRoCEAccl(p), code, 1)
	if t.rule == unlimitedTimer {
		return t.first + t.nominal
	}
	return t.wait(0)
}
