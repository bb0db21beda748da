package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// Work requests that have the device copy (MMO WQEs of modifier DMA): no packet leaves. Both keys
// are checked for the whole range before anything is moved. A queue's copies are carried out one
// after the other, a burst at a time: its bytes are read, and written when all of them are there.
// How a card divides a copy, and how many it works on at once, is not published.

// copyBurst is how many bytes of a copy are read before they are written.
const copyBurst = 64 << 10

// copies are those of a queue, made with the first.
type copies struct {
	jobs        []copyJob // the first is being carried out
	buf         []byte
	burst       int    // bytes of the burst
	reads       uint32 // of the burst that have not ended
	stale       uint32 // reads of before a reset that have not ended
	asked, done uint32
	beginning   bool // doCopy sees to the end of the message itself
	failed      bool // then
}

// copyJob is a copy: n bytes.
type copyJob struct {
	msg            uint32 // its message
	from, to       uint64
	fromKey, toKey uint32
	n              uint64
}

// reset forgets what was posted before 2RST.
func (v *copies) reset() {
	v.stale += v.reads
	v.jobs, v.reads, v.asked, v.done = v.jobs[:0], 0, 0, 0
}

// copiable says whether the device has such a copy: on RC, and of no other MMO operation.
func (q *requester) copiable(w *prm.SendWQE) bool {
	return q.u.p.CopyLogMax > 0 && q.st == prm.STRC && w.Ctrl.OpMod() == prm.MMODMA
}

// doCopy checks a copy and begins it. The message m, the newest, ends with it.
func (q *requester) doCopy(m *msg, w *prm.SendWQE) prm.Syndrome {
	if w.Segments != 2 {
		return prm.SyndromeLocalQPOp
	}
	s, at, _ := w.Data(0)
	from := *s
	s, _, _ = w.Data(at)
	to := *s
	if from.Len != to.Len || uint64(from.Len) > 1<<q.u.p.CopyLogMax {
		return prm.SyndromeLocalLength
	}
	j := copyJob{q.tail - 1, from.Addr, to.Addr, from.LKey, to.LKey, uint64(from.Len)}
	q.u.settle() // what has arrived looked at memory as it was
	keys, need := q.u.dma.keys, mkey.Access(mkey.LocalWrite)
	if q.breaks(rule.CopiesNeedAWritableTarget) {
		need = mkey.LocalRead
	}
	if _, r := keys.Check(q.user(), j.fromKey, j.from, j.n, mkey.LocalRead); r != mkey.OK {
		return prm.SyndromeLocalProt
	}
	if _, r := keys.Check(q.user(), j.toKey, j.to, j.n, need); r != mkey.OK {
		return prm.SyndromeLocalProt
	}
	if q.copy == nil {
		q.copy = new(copies)
	}
	v := q.copy
	v.asked++
	m.next = v.asked
	v.jobs = append(v.jobs, j)
	if len(v.jobs) > 1 {
		return 0
	}
	v.beginning, v.failed = true, false
	q.readBurst()
	if v.beginning = false; v.failed {
		return prm.SyndromeLocalProt
	}
	return 0
}

// readBurst reads the next bytes of the first copy.
func (q *requester) readBurst() {
	u, v := q.u, q.copy
	for len(v.jobs) > 0 {
		j := &v.jobs[0]
		v.burst = int(min(j.n, copyBurst))
		if len(v.buf) < v.burst {
			v.buf = make([]byte, v.burst)
		}
		runs, r := u.dma.keys.Translate(q.user(), j.fromKey, j.from, v.burst, mkey.LocalRead, u.dma.runs[:0])
		if r != mkey.OK {
			q.failCopy()
			return
		}
		u.dma.runs = runs
		b := v.buf[:v.burst]
		if len(runs) == 0 {
			clear(b)
		}
		for _, run := range runs {
			if run.PA >= onChip {
				u.dma.memory.read(uint64(run.PA-onChip), b[:run.Len])
			} else {
				v.reads++
				u.bus.ReadDMA(run.PA, b[:run.Len], u.h.copied, q.arg)
			}
			b = b[run.Len:]
		}
		if v.reads > 0 || !q.writeBurst() {
			return
		}
	}
}

// onCopied is the end of a read.
func (q *requester) onCopied() {
	v := q.copy
	if v.stale > 0 {
		v.stale--
		return
	}
	v.reads--
	if v.reads == 0 && len(v.jobs) > 0 && q.writeBurst() {
		q.readBurst()
	}
}

// writeBurst writes what was read, and reports whether there is more to do.
func (q *requester) writeBurst() bool {
	u, v := q.u, q.copy
	j := &v.jobs[0]
	access := mkey.Access(mkey.LocalWrite)
	if q.breaks(rule.CopiesNeedAWritableTarget) {
		access = mkey.LocalRead
	}
	if q.state != prm.QPStateRTS && q.state != prm.QPStateSQD {
		v.jobs = v.jobs[:0]
		return false
	}
	if u.dma.writeTo(q.user(), j.toKey, j.to, v.buf[:v.burst], access) != mkey.OK {
		q.failCopy()
		return false
	}
	n := uint64(v.burst)
	j.from, j.to, j.n = j.from+n, j.to+n, j.n-n
	if j.n > 0 {
		return true
	}
	v.jobs = append(v.jobs[:0], v.jobs[1:]...)
	v.done++
	if !v.beginning {
		q.complete()
	}
	return len(v.jobs) > 0
}

// failCopy ends a copy whose keys are not what they were when it began, and those behind it.
func (q *requester) failCopy() {
	v := q.copy
	i := v.jobs[0].msg
	v.jobs = v.jobs[:0]
	if v.failed = v.beginning; v.failed {
		return
	}
	q.failAt(i, prm.SyndromeLocalProt)
}

// copied says whether a copy is done.
func (q *requester) copied(m *msg) bool { return int32(q.copy.done-m.next) >= 0 }
