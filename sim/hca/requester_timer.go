package hca

import (
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

// setDeadline (re)starts the ACK timer; one event at a time looks at it.
func (q *requester) setDeadline() {
	if q.timeout == 0 {
		return
	}
	q.deadline = q.u.e.Now() + q.timeout
	if q.breaks(rule.TimeoutIsTheQPs) {
		q.deadline += 4 * q.timeout
	}
	if !q.timerSet {
		q.timerSet = true
		q.u.e.At(q.deadline, q.u.h.timer, q.arg)
	}
}

// onTimer looks whether the ACK timer has run out; it may have been moved since
// the event was set.
func (q *requester) onTimer() {
	u := q.u
	q.timerSet = false
	now := u.e.Now()
	switch {
	case q.deadline == sim.Never:
		return
	case q.landingWaits():
		q.deadline = sim.Never
		return
	case now < q.deadline:
		q.timerSet = true
		u.e.At(q.deadline, u.h.timer, q.arg)
		return
	}
	q.deadline = sim.Never
	if !q.takesResponses() || !q.outstanding() {
		return
	}
	q.timedOut()
	if !q.useRetry() {
		return
	}
	if q.u.p.AdaptiveRetrans {
		q.qs.add(prm.QCRoCEADPRetrans)
	}
	q.undam()
	q.goBack()
	if q.dci != nil { // the connect packet may have been lost
		q.dci.announce = q.dci.connected
	}
	q.setDeadline()
	q.kick()
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

// adaptiveSteps are the waits of adaptive retransmission, one for each timeout of a
// packet in a row, in parts of the exact ACK timeout; the last one repeats. Yu et al.,
// Lumina (SIGCOMM 2023, section 6.3) saw 5.6, 4.1, 8.4, 16.7, 25.1, 67.1 and 134.2 ms
// at timeout 14, which is 67.1 ms, on a ConnectX-6 Dx. That other timeouts scale the
// series is an assumption.
var adaptiveSteps = [...]sim.Time{4, 3, 6, 12, 18, 48, 96}

// adaptiveParts is how many parts the exact timeout has.
const adaptiveParts = 48

// setTimer takes the ACK timeout and the retry count of a connection.
func (q *requester) setTimer(timeout sim.Time, retries uint32) {
	p := &q.u.p
	q.timeout, q.retryMax, q.retry = 0, retries, retries
	if timeout == 0 && q.breaks(rule.TimeoutZeroIsNone) {
		timeout = 8192 * sim.Nanosecond
	}
	if timeout > 0 {
		q.timeout = max(timeout, p.AckTimeoutFloor)
	}
	q.exactTimeout = q.timeout
	if !p.AdaptiveRetrans || q.timeout == 0 {
		return
	}
	if retries > 0 {
		q.retryMax += uint32(p.AdaptiveExtra)
		q.retry = q.retryMax
	}
	q.rewait(0)
}

// rewait makes step n the wait of the next timeout.
func (q *requester) rewait(n uint8) {
	q.backoff = min(n, uint8(len(adaptiveSteps)-1))
	q.timeout = q.exactTimeout * adaptiveSteps[q.backoff] / adaptiveParts
}

// timedOut counts an ACK timeout and chooses the next wait.
func (q *requester) timedOut() {
	q.qs.add(prm.QCLocalAckTimeoutErr)
	if q.u.p.AdaptiveRetrans {
		q.qs.add(prm.QCRoCEADPRetransTo)
		q.rewait(q.backoff + 1)
	}
}
