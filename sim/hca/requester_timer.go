package hca

import (
	"math"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// startTimer starts the ACK timer when none runs.
func (q *requester) startTimer() {
	if q.timeout != 0 && q.deadline == sim.Never {
		q.setDeadline()
	}
}

// setDeadline (re)starts the ACK timer. One event looks at it, and another only where the timer
// must end before that.
func (q *requester) setDeadline() {
	if q.timeout == 0 {
		return
	}
	q.deadline = q.u.e.Now() + q.timeout
	if q.breaks(rule.TimeoutIsTheQPs) {
		q.deadline += 4 * q.timeout
	}
	if !q.timerSet || q.timerLong {
		q.setTimerEvent()
	}
}

// setTimerEvent sets an event for the deadline unless one comes before it.
//
//go:noinline
func (q *requester) setTimerEvent() {
	if q.timerSet && q.timerAt <= q.deadline {
		return
	}
	q.timerSet, q.timerLong, q.timerAt = true, q.backoff > 0, q.deadline
	q.u.e.At(q.deadline, q.u.h.timer, q.arg)
}

// onTimer looks whether the ACK timer has run out; it may have been moved since
// the event was set.
func (q *requester) onTimer() {
	now := q.u.e.Now()
	if !q.timerSet || now != q.timerAt { // an earlier event has taken its place
		return
	}
	q.timerSet = false
	switch {
	case q.deadline == sim.Never:
		return
	case q.landingWaits():
		q.deadline = sim.Never
		return
	case now < q.deadline:
		q.setTimerEvent()
		return
	}
	q.deadline = sim.Never
	if !q.takesResponses() || !q.outstanding() {
		return
	}
	q.timerWaits += q.timeout
	if q.u.sacking && q.repeatTimedOut() {
		return
	}
	switch effect, alive := q.timedOut(); {
	case !alive:
		return
	case effect == countsInVain:
		q.setDeadline()
		return
	}
	q.slowRestart()
	q.undam()
	q.goBack()
	if q.dci != nil { // the connect packet may have been lost
		q.dci.announce = q.dci.connected
	}
	q.setDeadline()
	q.kick()
}

// longestAnswer is what an answer takes at most where nothing is lost, or a 16th of the ACK timeout
// if that is more.
const longestAnswer = 100 * sim.Microsecond

// timerWaited is for how long the requester has waited in vain for answers by now: until its ACK
// timer ran out, and since the latest answer, if that is longer than answers take.
func (q *requester) timerWaited(now sim.Time) sim.Time {
	if q.deadline == sim.Never {
		return q.timerWaits
	}
	waits := now - (q.deadline - q.timeout)
	if waits <= max(longestAnswer, q.timeout/16) {
		waits = 0
	}
	return q.timerWaits + waits
}

// pause is what the requester takes before it sends again.
func (q *requester) pause(t sim.Time) {
	switch {
	case q.waiting:
	case t > 0:
		q.wait(t)
	default:
		q.setDeadline()
	}
}

// wait keeps the requester quiet for t; the ACK timer stops meanwhile.
func (q *requester) wait(t sim.Time) {
	q.waiting, q.waitEnd, q.deadline = true, q.u.e.Now()+t, sim.Never
	q.u.e.After(t, q.u.h.wait, q.arg)
}

func (q *requester) onWait() {
	u := q.u
	if !q.waiting || u.e.Now() < q.waitEnd {
		return
	}
	q.waiting = false
	if q.dams {
		q.endDamming()
	}
	if q.outstanding() {
		q.setDeadline()
	}
	q.kick()
}

// setTimer takes the ACK timeout code and the retry count of a connection.
func (q *requester) setTimer(code uint8, retries uint32) {
	q.timeout, q.retryMax, q.retry, q.backoff = 0, retries, retries, 0
	q.resends, q.failedSent = 0, 0
	q.timerLong = q.timerSet // the event may be of a longer timeout before
	if q.reliable() {        // nothing is acknowledged on UC and UD
		if code == 0 && q.breaks(rule.TimeoutZeroIsNone) {
			code = 1
		}
		if code != 0 {
			q.ack = newAckTimer(&q.u.p, q.u.accl, code, retries)
			q.rewait(0)
		}
	}
}

// rewait makes the wait after n timeouts in a row the next one.
func (q *requester) rewait(n uint8) {
	q.backoff = n
	q.timeout = q.ack.wait(n)
	if n == 0 && q.sacks() {
		q.timeout = min(q.timeout, q.u.p.RepeatTimeout)
	}
}

// timedOut counts an ACK timeout, chooses the next wait and takes a retry where the rule says so.
// Without one left the QP fails.
func (q *requester) timedOut() (effect timeoutEffect, alive bool) {
	effect, counter := q.ack.effect(q.backoff)
	if counter == prm.QCRoCEADPRetrans && q.breaks(rule.AdaptiveTimeoutsCountApart) {
		counter = prm.QCLocalAckTimeoutErr
	}
	if q.ack.retries == 0 && q.breaks(rule.RetryCountZeroSendsAgain) {
		effect = takesRetry
	}
	if q.ack.adapts(q.backoff) && q.breaks(rule.AdaptivePhaseTakesARetry) {
		effect = sendsAgain
	}
	if counter == prm.QCLocalAckTimeoutErr { // also the one that ends with the error
		q.qs.add(counter)
	}
	switch effect {
	case takesRetry:
		alive = q.takeRetry(0)
	case takesLastToo:
		alive = q.takeRetry(1)
	default:
		alive = true
	}
	if !alive {
		return effect, false
	}
	if counter != prm.QCLocalAckTimeoutErr {
		q.qs.add(counter)
	}
	if q.backoff < math.MaxUint8 {
		q.rewait(q.backoff + 1)
	}
	return effect, true
}

// slowRestart is what a retransmission after a timeout does to the congestion control of its QP: it
// handles a notice that nobody sent. That the notice slows the QP down where DCQCN is on follows
// from what notices are.
func (q *requester) slowRestart() {
	if !q.ack.slowRestart {
		return
	}
	q.qs.add(prm.QCRoCESlowRestartCNPs)
	if q.breaks(rule.RetransmissionsMakeNotices) {
		return
	}
	if q.u.p.Congestion.DCQCN {
		q.notified()
		return
	}
	q.u.c.RpCNPHandled++
}
