package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mkey"
)

// Work requests that change memory keys (UMR): binds of memory windows and local invalidates of any
// connection, registration by the queues of the host's kernel, and all that a driver does to its
// keys on a queue of its own, of service type REG_UMR.
//
// A UMR takes effect as a whole when it is begun, on a driver's queue when its doorbell comes: the
// completion that says so is later, by what the reads of the work request and of its list of
// entries take. A driver that does not wait for it, because it is a model that acts at instants,
// finds the key changed.

// umrQueue is what a queue needs for UMRs, made with the first.
type umrQueue struct {
	seen    uint16      // REG_UMR: behind the last WQE that has taken effect
	stopped bool        // REG_UMR: one of them failed
	results []umrResult // of those that the requester has not begun
	wqe     prm.SendWQE
	bytes   [prm.MaxWQEBytes]byte

	asked, read uint32 // lists of entries whose reads were begun, and have ended
	stale       uint32 // reads of before a reset that have not ended
}

// umrResult is how a WQE ended: 0 or a syndrome.
type umrResult struct {
	idx      uint16
	syndrome prm.Syndrome
}

func (q *requester) umrs() *umrQueue {
	if q.umr == nil {
		q.umr = new(umrQueue)
	}
	return q.umr
}

// reset forgets what was posted before 2RST.
func (v *umrQueue) reset() {
	v.stale += v.asked - v.read
	v.seen, v.stopped, v.results, v.asked, v.read = 0, false, v.results[:0], 0, 0
}

// noticeUMRs carries out what was posted to a driver's queue, up to the first that fails.
func (q *requester) noticeUMRs() {
	v := q.umrs()
	for q.state == prm.QPStateRTS && !v.stopped && v.seen != q.sq.pi {
		idx := v.seen
		b := q.peekWQE(idx, v.bytes[:])
		v.seen += uint16(len(b) / prm.WQEBBSize)
		if prm.ParseSendWQE(b, prm.STRegUMR, &v.wqe) != nil || !q.named(&v.wqe) || v.wqe.Ctrl.Opcode() != prm.WQEOpUMR {
			// The requester says what is wrong with it, or it is a NOP.
			v.stopped = v.wqe.Ctrl.Opcode() != prm.WQEOpNOP
			continue
		}
		s := q.runUMR(&v.wqe)
		v.stopped = s != 0
		v.results = append(v.results, umrResult{idx, s})
	}
}

// peekWQE reads the WQE at an index as it lies in the ring: at most what was posted.
func (q *requester) peekWQE(idx uint16, b []byte) []byte {
	block := func(i int) {
		pa, _ := q.ring.at(q.sq.off+uint64(uint32(idx+uint16(i))&(q.sq.size-1))*prm.WQEBBSize, prm.WQEBBSize)
		q.u.bus.PeekDMA(pa, b[i*prm.WQEBBSize:(i+1)*prm.WQEBBSize])
	}
	block(0)
	n := max(1, (prm.CtrlSegment(b).DS()+segmentsPerBlock-1)/segmentsPerBlock)
	n = min(n, int(q.sq.pi-idx), len(b)/prm.WQEBBSize)
	for i := 1; i < n; i++ {
		block(i)
	}
	return b[:n*prm.WQEBBSize]
}

// doUMR begins a UMR: it takes effect now, if it has not at the doorbell. The message m ends when
// its list was read.
func (q *requester) doUMR(m *msg, w *prm.SendWQE) prm.Syndrome {
	v := q.umrs()
	var s prm.Syndrome
	if len(v.results) > 0 && v.results[0].idx == m.idx {
		s = v.results[0].syndrome
		v.results = append(v.results[:0], v.results[1:]...)
	} else {
		s = q.runUMR(w)
	}
	if s == 0 {
		q.readList(m, w)
	}
	return s
}

// runUMR is the effect of a UMR.
func (q *requester) runUMR(w *prm.SendWQE) prm.Syndrome {
	u := q.u
	u.settle() // what has arrived looked at keys as they were
	list, s := w.Inline, prm.Syndrome(0)
	if n := int(w.UMR.XLTOctowords()) * prm.DSSize; n > 0 && list == nil {
		if list, s = q.peekList(w, n); s != 0 {
			return s
		}
	}
	by := mkey.Queue{User: q.user(), Driver: q.st == prm.STRegUMR}
	by.FastRegister = by.Driver || q.context().FRE()
	if u.dma.keys.Update(by, w.Ctrl.Imm(), w.UMR, w.MKC, list) != mkey.OK {
		return prm.SyndromeMWBind
	}
	if by.Driver {
		q.noteKey(w)
	}
	return 0
}

// noteKey keeps the caches true to a key that a driver has changed.
func (q *requester) noteKey(w *prm.SendWQE) {
	u, index := q.u, w.Ctrl.Imm()>>8
	mask, c := w.UMR.MKeyMask(), w.MKC
	if mask&prm.MKeyMaskFree == 0 {
		return
	}
	if !c.Free() {
		u.gone.remove(index)
		u.caches.fillKey(index, c.StartAddr(), c.Len())
		return
	}
	u.gone.add(index, u.e.Now(), u.p.DeregSilence)
	if u.p.FlushOnDestroy {
		u.caches.flushKeys()
	}
}

// peekList reads the n bytes of entries that the data segments of a UMR name.
func (q *requester) peekList(w *prm.SendWQE, n int) ([]byte, prm.Syndrome) {
	if w.Bytes < uint64(n) {
		return nil, prm.SyndromeLocalLength
	}
	list := make([]byte, 0, n)
	for s, at, ok := w.Data(0); ok && len(list) < n; s, at, ok = w.Data(at) {
		part := list[len(list) : len(list)+min(int(s.Len), n-len(list))]
		if !q.u.dma.peek(q.user(), s.LKey, s.Addr, part) {
			return nil, prm.SyndromeLocalProt
		}
		list = list[:len(list)+len(part)]
	}
	return list, 0
}

// readList reads the list of a UMR as the bus carries it: what it says is known.
func (q *requester) readList(m *msg, w *prm.SendWQE) {
	n := int(w.UMR.XLTOctowords()) * prm.DSSize
	if w.Inline != nil || n == 0 {
		return
	}
	u, v := q.u, q.umr
	for s, at, ok := w.Data(0); ok && n > 0; s, at, ok = w.Data(at) {
		part := min(int(s.Len), n)
		reads := u.dma.readAndDrop(q.user(), s.LKey, s.Addr, part, u.h.list, q.arg)
		v.asked += uint32(reads)
		n -= part
	}
	m.next = v.asked
}

// onList is the end of one of these reads.
func (q *requester) onList() {
	v := q.umr
	if v.stale > 0 {
		v.stale--
		return
	}
	v.read++
	if q.state == prm.QPStateRTS || q.state == prm.QPStateSQD {
		q.complete()
	}
}

// listRead says whether the list of a UMR has been read. Other messages have none.
func (q *requester) listRead(m *msg) bool {
	return m.next == 0 || q.umr == nil || int32(q.umr.read-m.next) >= 0
}
