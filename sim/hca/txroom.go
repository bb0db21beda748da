package hca

import "github.com/rdmasim/rdmasim/sim"

// txRoom is the room that the payload of packets in preparation takes, all QPs together, and
// the engines that wait for it.
type txRoom struct {
	*core
	txBytes  int
	stalled  sim.FIFO[uint64] // event words of QPs that wait, with the engine in bit 63
	trying   uint64           // event word of the first of them, while it looks whether there is room; 0: none does
	before   int              // txBytes when it began
	refused  bool             // and there is not
	full     sim.Waiting      // an engine is stalled
	resuming bool             // a resume event is set
	pauser   Pauser           // the port's wire, if it has priority flow control
	crowded  bool             // an engine is stalled, or there is a pauser: room takes a closer look
	passed   int              // bytes of packets that went into preparation while the first of stalled was the first
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
	if r.stalled.Len() > 0 && !r.resuming {
		r.resuming = true
		r.e.After(0, r.h.resume, 0)
	}
}

// stall has an engine wait for room. One whose turn has come, and that has found none, keeps its
// place; one that stalls at a further packet has had its turn.
func (r *txRoom) stall(word uint64) {
	if word == r.trying && r.txBytes == r.before {
		r.refused = true
		return
	}
	r.c.TxStalls++
	r.stalled.Push(word)
	r.crowded = true
	r.full.Set(r.e.Now(), true)
}

// onResume runs stalled engines, in turn, until there is no room for one.
func (r *txRoom) onResume(uint64) {
	for more := true; more; {
		r.resuming = false
		waiting := r.stalled.Len()
		if waiting == 0 {
			return
		}
		r.trying, r.refused, r.before = *r.stalled.Front(), false, r.txBytes
		r.engines.goOn(r.trying)
		r.trying = 0
		if r.refused {
			return
		}
		r.stalled.Pop()
		r.passed = 0
		r.crowded = r.pauser != nil || r.stalled.Len() > 0
		r.full.Set(r.e.Now(), r.stalled.Len() > 0)
		more = r.stalled.Len() < waiting && !r.resuming
	}
}

// room says whether a packet of n bytes may go into preparation; one always may.
func (r *txRoom) room(n int) bool {
	if r.crowded {
		return r.roomBehind(n)
	}
	used := r.txBytes
	return n == 0 || used == 0 || used+n <= r.p.TxBuffer
}

// roomBehind is room where engines wait or the port has flow control. What a paused port holds back
// takes room too. Packets of engines that do not wait pass the first that does while there is room
// for them and not for it, but no more of them than the buffer holds: small ones would else starve
// a large one, of which there is always some in the way. Who waits behind others goes on when they
// have: for as long as one waits, some room is taken or a resume event is set.
//
//go:noinline
func (r *txRoom) roomBehind(n int) bool {
	used := r.txBytes
	if r.pauser != nil {
		used += r.pauser.Queued()
	}
	switch {
	case n == 0:
		return true
	case used != 0 && used+n > r.p.TxBuffer:
		return false
	case r.trying != 0 || r.stalled.Len() == 0:
		return true
	case r.passed+n > r.p.TxBuffer:
		return false
	}
	r.passed += n
	return true
}
