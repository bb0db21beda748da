package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// adaptiveSteps are the waits of adaptive retransmission, one for each timeout of a
// packet in a row, in parts of the exact ACK timeout; the last one repeats. Yu et al.,
// Lumina (SIGCOMM 2023, section 6.3) saw 5.6, 4.1, 8.4, 16.7, 25.1, 67.1 and 134.2 ms
// at timeout 14, which is 67.1 ms, on a ConnectX-6 Dx. That other timeouts scale the
// series is an assumption.
var adaptiveSteps = [...]sim.Time{4, 3, 6, 12, 18, 48, 96}

// adaptiveParts is how many parts the exact timeout has.
const adaptiveParts = 48

// setTimer takes the ACK timeout and the retry count of a connection.
func (q *qp) setTimer(timeout sim.Time, retries uint32) {
	p := &q.d.p
	q.timeout, q.retryMax, q.retry = 0, retries, retries
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
func (q *qp) rewait(n uint8) {
	q.backoff = min(n, uint8(len(adaptiveSteps)-1))
	q.timeout = q.exactTimeout * adaptiveSteps[q.backoff] / adaptiveParts
}

// timedOut counts an ACK timeout and chooses the next wait.
func (q *qp) timedOut() {
	q.qs.add(prm.QCLocalAckTimeoutErr)
	if q.d.p.AdaptiveRetrans {
		q.qs.add(prm.QCRoCEADPRetransTo)
		q.rewait(q.backoff + 1)
	}
}
