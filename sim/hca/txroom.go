package hca

// txRoom is the room that the payload of packets in preparation takes, all QPs together, and
// the engines that wait for it.
type txRoom struct {
	*core
	txBytes  int
	stalled  argQueue // event words of QPs that wait, with the engine in bit 63
	resuming bool     // a resume event is set
	pauser   Pauser   // the port's wire, if it has priority flow control
	engines  stalledEngines
}

// stalledEngines are the engines of QPs, as what they wait for sees them.
type stalledEngines interface {
	// goOn has an engine work that has waited for room.
	goOn(word uint64)
}

// responderBit marks a responder in the queue of stalled engines.
const responderBit = 1 << 63

// resumeOne lets the engine go on that has waited longest for room.
func (r *txRoom) resumeOne() {
	if r.stalled.len() > 0 && !r.resuming {
		r.resuming = true
		r.e.After(0, r.h.resume, 0)
	}
}

// stall has an engine wait for room.
func (r *txRoom) stall(word uint64) {
	r.c.TxStalls++
	r.stalled.push(word)
}

// onResume runs stalled engines, in turn, until one stalls again.
func (r *txRoom) onResume(uint64) {
	for more := true; more; {
		r.resuming = false
		before := r.stalled.len()
		if before == 0 {
			return
		}
		r.engines.goOn(r.stalled.pop())
		more = r.stalled.len() < before && !r.resuming
	}
}

// room says whether a packet of n bytes may go into preparation; one always may. What a
// paused port holds back takes room too.
func (r *txRoom) room(n int) bool {
	used := r.txBytes
	if r.pauser != nil {
		used += r.pauser.Queued()
	}
	return n == 0 || used == 0 || used+n <= r.p.TxBuffer
}
