package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// posted is a doorbell or a push for the WQE at index idx with ds units.
func (q *requester) posted(idx uint16, ds int, wqe []byte) {
	if q.state != prm.QPStateRTS && q.state != prm.QPStateSQD && !q.flushes() || q.sqSize == 0 {
		q.u.c.DoorbellsState++
		return
	}
	n := uint16(max(1, (ds*prm.DSSize+prm.WQEBBSize-1)/prm.WQEBBSize))
	pi := idx + n
	if int16(pi-q.pi) <= 0 || uint32(pi-q.oldest()) > q.sqSize {
		// Late, repeated, or made of stale bytes: the record knows.
		q.u.c.DoorbellsOdd++
		q.owner.readRecord()
		return
	}
	if wqe != nil && q.state == prm.QPStateRTS && idx == q.pi && q.got == idx && !q.fetch && q.take(idx, wqe) {
		q.u.c.WQEsPushed++
	}
	q.pi = pi
	if q.flushes() {
		q.flushSQ()
		return
	}
	if wqe == nil && q.got != pi && q.u.p.FetchPerDoorbell {
		q.rung = append(q.rung, pi)
	}
	q.readAhead()
	q.kick()
}

// take puts a pushed WQE into the buffer if there is room.
func (q *requester) take(idx uint16, wqe []byte) bool {
	n := uint16(len(wqe) / prm.WQEBBSize)
	if int(idx+n-q.ci) > q.u.p.WQEBuffer {
		return false
	}
	q.needBuf()
	at := int(idx) * prm.WQEBBSize & (len(q.buf) - 1)
	k := copy(q.buf[at:], wqe)
	copy(q.buf, wqe[k:])
	q.got = idx + n
	if len(q.u.caches.sendWQEs.nodes) > 0 {
		q.keepWQE(idx)
	}
	return true
}

func (q *requester) needBuf() {
	if q.buf == nil {
		q.buf = make([]byte, q.u.p.WQEBuffer*prm.WQEBBSize)
	}
}

// readAhead fetches WQEs before the cursor needs them: when less than half of the
// buffer is filled.
func (q *requester) readAhead() {
	if q.state == prm.QPStateRTS && int(q.got-q.ci) < q.u.p.WQEBuffer/2 {
		q.fetchWQEs()
	}
}

// fetchWQEs starts a DMA read of what is posted and not in the buffer: as much as
// there is room for, contiguous, up to FetchLimit; with FetchPerDoorbell by a read for
// each doorbell that is waiting.
func (q *requester) fetchWQEs() {
	if q.fetch || q.got == q.pi {
		return
	}
	u := q.u
	room := u.p.WQEBuffer - int(q.got-q.ci)
	n := min(int(q.pi-q.got), room, u.p.FetchLimit)
	if n <= 0 {
		return
	}
	q.needBuf()
	at := int(q.got) * prm.WQEBBSize & (len(q.buf) - 1)
	slot := uint32(q.got) & (q.sqSize - 1)
	n = min(n, (len(q.buf)-at)/prm.WQEBBSize, int(q.sqSize-slot))
	pa, bytes := q.ring.at(q.sqOff+uint64(slot)*prm.WQEBBSize, n*prm.WQEBBSize)
	q.fetch, q.stale = true, false
	u.c.WQEFetches++
	u.c.WQEBlocksFetched += uint64(bytes / prm.WQEBBSize)
	x := q.arg | uint64(bytes/prm.WQEBBSize)<<fetchShift
	head, data := q.split[0], q.split[1]
	q.split = [2]int{}
	if head > 0 && head+data <= bytes {
		u.bus.ReadDMA(pa, q.buf[at:at+head], u.h.none, 0)
		u.bus.ReadDMA(pa+mem.PA(head), q.buf[at+head:at+head+data], u.h.fetch, x)
		return
	}
	from, done := q.got, 0
	for _, pi := range q.rung {
		k := int(int16(pi-from)) * prm.WQEBBSize
		if k > bytes {
			break
		}
		done++
		if 0 < k && k < bytes {
			u.bus.ReadDMA(pa, q.buf[at:at+k], u.h.none, 0)
			pa, at, bytes, from = pa+mem.PA(k), at+k, bytes-k, pi
		}
	}
	q.rung = q.rung[:copy(q.rung, q.rung[done:])]
	u.bus.ReadDMA(pa, q.buf[at:at+bytes], u.h.fetch, x)
}

func (q *requester) onFetch(n int) {
	q.fetch = false
	if q.stale {
		q.stale = false
	} else {
		q.got += uint16(n)
	}
	if q.flushes() {
		q.flushSQ()
		return
	}
	q.readAhead()
	q.kick()
}

// whole is the WQE of n blocks at the cursor in one piece, which must be in the
// buffer.
func (q *requester) whole(n int) []byte {
	at := int(q.ci) * prm.WQEBBSize & (len(q.buf) - 1)
	if at+n*prm.WQEBBSize <= len(q.buf) {
		return q.buf[at : at+n*prm.WQEBBSize]
	}
	w := q.u.wqe[:n*prm.WQEBBSize]
	k := copy(w, q.buf[at:])
	copy(w[k:], q.buf)
	return w
}

// blocks is the length of the WQE at the cursor, 0 while it is not all there.
func (q *requester) blocks() int {
	have := int(q.got - q.ci)
	if have == 0 {
		return 0
	}
	at := int(q.ci) * prm.WQEBBSize & (len(q.buf) - 1)
	n := max(1, (prm.CtrlSegment(q.buf[at:]).DS()*prm.DSSize+prm.WQEBBSize-1)/prm.WQEBBSize)
	if int(q.pi-q.ci) < n {
		n = int(q.pi - q.ci) // it names more than was posted: malformed
	}
	if have < n {
		return 0
	}
	return n
}

// begun notes the parts of a WQE of which the first lines were pushed, if it is the one to
// be fetched next.
func (q *requester) begun(idx uint16, lines []byte) {
	if q.got == idx && q.got == q.pi && !q.fetch {
		q.split = inlineParts(lines)
	}
}

// inlineParts is the length of a SEND's or WRITE's header with the inline length
// word, and of the inline data behind it; zeros for any other WQE.
func inlineParts(lines []byte) (parts [2]int) {
	c := prm.CtrlSegment(lines)
	at := prm.CtrlSegmentSize
	switch c.Opcode() {
	case prm.WQEOpRDMAWrite, prm.WQEOpRDMAWriteImm:
		at += prm.RaddrSegmentSize
	case prm.WQEOpSend, prm.WQEOpSendImm, prm.WQEOpSendInv:
	default:
		return parts
	}
	seg := prm.InlineSegment(lines[at:])
	n := seg.Len()
	if !seg.Inline() || at+prm.InlineHeaderSize+n > c.DS()*prm.DSSize {
		return parts
	}
	return [2]int{at + prm.InlineHeaderSize, n}
}
