package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// sendRing is a send queue as it lies in memory: what is posted, what of it the device has at
// hand, and what it fetches. Indexes count basic blocks modulo 2^16.
type sendRing struct {
	*connection
	buf      []byte // blocks ci..got-1
	pi       uint16 // behind the last WQE known to be posted
	ci       uint16 // of the WQE at the cursor
	got      uint16
	fetching bool   // a WQE fetch is under way
	stale    bool   // its result must not be used
	cut      bool   // the WQE at the cursor names more than was posted
	passed   bool   // the WQE at the cursor may be begun: nothing changes that until it is, or until passed is taken back
	size     uint32 // basic blocks
	*ringRare
}

// ringRare is what few messages need of a sendRing.
type ringRare struct {
	off   uint64   // of the SQ in the ring
	split [2]int   // lengths of the two reads that the next fetch is made of, or zeros
	rung  []uint16 // producer indexes of doorbells whose WQEs are to be fetched
	kept  []int32  // places of WQEs in the cache, by block; nil: none yet
}

// clear is the state after reset; what is under way stays marked.
func (r *sendRing) clear() {
	rare := r.ringRare
	*rare = ringRare{off: rare.off, rung: rare.rung[:0]}
	*r = sendRing{connection: r.connection, ringRare: rare, size: r.size, buf: r.buf, fetching: r.fetching, stale: r.fetching}
}

// take puts a pushed WQE into the buffer if there is room, and with PushIdle if nothing is there.
func (r *sendRing) take(idx uint16, wqe []byte) bool {
	n := uint16(len(wqe) / prm.WQEBBSize)
	if int(idx+n-r.ci) > r.u.p.WQEBuffer || r.u.p.PushIdle && idx != r.ci {
		return false
	}
	if r.got = idx + n; n == 1 && r.buf != nil && len(r.u.caches.sendWQEs.nodes) == 0 { // the rule
		at := int(idx) * prm.WQEBBSize & (len(r.buf) - 1)
		*(*[prm.WQEBBSize]byte)(r.buf[at:]) = [prm.WQEBBSize]byte(wqe)
		return true
	}
	return r.takeElse(idx, wqe)
}

// takeElse is the rest of take for a WQE of several blocks, for the first one, and with a cache
// of WQEs.
//
//go:noinline
func (r *sendRing) takeElse(idx uint16, wqe []byte) bool {
	r.needBuf()
	at := int(idx) * prm.WQEBBSize & (len(r.buf) - 1)
	k := copy(r.buf[at:], wqe)
	copy(r.buf, wqe[k:])
	if len(r.u.caches.sendWQEs.nodes) > 0 {
		r.keep(idx)
	}
	return true
}

func (r *sendRing) needBuf() {
	if r.buf == nil {
		r.buf = make([]byte, r.u.p.WQEBuffer*prm.WQEBBSize)
	}
}

// note keeps the producer index of a doorbell whose WQEs are to be fetched.
//
//go:noinline
func (r *sendRing) note(pi uint16) { r.rung = append(r.rung, pi) }

// readAhead fetches WQEs before the cursor needs them: when less than half of the
// buffer is filled.
func (r *sendRing) readAhead() {
	if r.got != r.pi {
		r.readOn()
	}
}

// readOn is readAhead where something is posted that is not in the buffer.
//
//go:noinline
func (r *sendRing) readOn() {
	if r.state == prm.QPStateRTS && int(r.got-r.ci) < r.u.p.WQEBuffer>>1 {
		r.fetchMore()
	}
}

// fetchMore starts a DMA read of what is posted and not in the buffer: as much as
// there is room for, contiguous, up to FetchLimit; with FetchPerDoorbell by a read for
// each doorbell that is waiting.
func (r *sendRing) fetchMore() {
	if !r.fetching && r.got != r.pi {
		r.fetchNow()
	}
}

//go:noinline
func (r *sendRing) fetchNow() {
	u := r.u
	room := u.p.WQEBuffer - int(r.got-r.ci)
	n := min(int(r.pi-r.got), room, u.p.FetchLimit)
	if n <= 0 {
		return
	}
	r.needBuf()
	at := int(r.got) * prm.WQEBBSize & (len(r.buf) - 1)
	slot := uint32(r.got) & (r.size - 1)
	n = min(n, (len(r.buf)-at)/prm.WQEBBSize, int(r.size-slot))
	pa, bytes := r.ring.at(r.off+uint64(slot)*prm.WQEBBSize, n*prm.WQEBBSize)
	r.fetching, r.stale = true, false
	u.c.WQEFetches++
	u.c.WQEBlocksFetched += uint64(bytes / prm.WQEBBSize)
	x := r.arg | uint64(bytes/prm.WQEBBSize)<<fetchShift
	head, data := r.split[0], r.split[1]
	r.split = [2]int{}
	if head > 0 && head+data <= bytes {
		u.bus.ReadDMA(pa, r.buf[at:at+head], u.h.none, 0)
		u.bus.ReadDMA(pa+mem.PA(head), r.buf[at+head:at+head+data], u.h.fetch, x)
		return
	}
	from, done := r.got, 0
	for _, pi := range r.rung {
		k := int(int16(pi-from)) * prm.WQEBBSize
		if k > bytes {
			break
		}
		done++
		if 0 < k && k < bytes {
			u.bus.ReadDMA(pa, r.buf[at:at+k], u.h.none, 0)
			pa, at, bytes, from = pa+mem.PA(k), at+k, bytes-k, pi
		}
	}
	r.rung = r.rung[:copy(r.rung, r.rung[done:])]
	u.bus.ReadDMA(pa, r.buf[at:at+bytes], u.h.fetch, x)
}

// fetched is n basic blocks that have come.
func (r *sendRing) fetched(n int) {
	r.fetching = false
	if r.stale {
		r.stale = false
	} else {
		r.got += uint16(n)
	}
}

// whole is the WQE of n blocks at the cursor in one piece, which must be in the
// buffer.
func (r *sendRing) whole(n int) []byte {
	at := int(r.ci) * prm.WQEBBSize & (len(r.buf) - 1)
	if at+n*prm.WQEBBSize <= len(r.buf) {
		return r.buf[at : at+n*prm.WQEBBSize]
	}
	return r.joined(at, n)
}

// joined is the WQE of n blocks at a place of the buffer, behind whose end it goes on.
//
//go:noinline
func (r *sendRing) joined(at, n int) []byte {
	w := r.u.wqe[:n*prm.WQEBBSize]
	k := copy(w, r.buf[at:])
	copy(w[k:], r.buf)
	return w
}

// segmentsPerBlock is how many units of a DS count are in a WQEBB.
const segmentsPerBlock = prm.WQEBBSize / prm.DSSize

// first is the control segment of the WQE at the cursor and how many blocks the WQE has: 0
// while it is not all there.
func (r *sendRing) first() (c prm.CtrlSegment, blocks int) {
	have := uint(r.got - r.ci)
	if have == 0 {
		return nil, 0
	}
	at := int(r.ci) * prm.WQEBBSize & (len(r.buf) - 1)
	c = prm.CtrlSegment(r.buf[at : at+prm.CtrlSegmentSize : at+prm.CtrlSegmentSize])
	n := max(1, (uint(c.DS())+segmentsPerBlock-1)/segmentsPerBlock)
	if r.cut = n > uint(r.pi-r.ci); r.cut { // malformed
		n = uint(r.pi - r.ci)
	}
	if have < n {
		return nil, 0
	}
	return c, int(n)
}

// begun notes the parts of a WQE of which the first lines were pushed, if it is the one to
// be fetched next.
func (r *sendRing) begun(idx uint16, lines []byte) {
	if r.got == idx && r.got == r.pi && !r.fetching {
		r.split = inlineParts(lines, r.st)
	}
}

// inlineParts is the length of a SEND's or WRITE's header with the inline length
// word, and of the inline data behind it; zeros for any other WQE.
func inlineParts(lines []byte, st uint8) (parts [2]int) {
	if st == prm.STDCI { // the address vector fills the lines
		return parts
	}
	c := prm.CtrlSegment(lines)
	at := prm.CtrlSegmentSize
	if st == prm.STXRC {
		at += prm.XRCSegmentSize
	}
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

// moveTo sets the cursor to WQE index idx.
func (r *sendRing) moveTo(idx uint16) {
	r.passed = false
	if step := idx - r.ci; step <= r.got-r.ci {
		r.ci = idx
		return
	}
	r.ci, r.got = idx, idx
	r.stale = r.fetching
}

// learn takes over a producer index of the doorbell record, if it can be one; oldest is the index
// of the oldest WQE that is not completed.
func (r *sendRing) learn(pi, oldest uint16) {
	if r.size > 0 && uint32(pi-oldest) <= r.size && uint32(pi-oldest) > uint32(r.pi-oldest) {
		r.pi = pi
	}
}

// readAgain reads a WQE for its bytes on the bus. What they say is known.
func (r *sendRing) readAgain(idx uint16, blocks uint8) {
	u := r.u
	slot := uint32(idx) & (r.size - 1)
	pa, n := r.ring.at(r.off+uint64(slot)*prm.WQEBBSize, min(int(blocks), int(r.size-slot))*prm.WQEBBSize)
	u.c.WQEBlocksFetched += uint64(n / prm.WQEBBSize)
	u.bus.ReadDMA(pa, u.again[:n], u.h.none, 0)
}

// keep notes a send WQE that has come, and reports whether it was kept.
func (r *sendRing) keep(idx uint16) bool {
	if r.kept == nil {
		r.kept = make([]int32, r.size)
	}
	hit, _ := r.u.caches.sendWQEs.touch(&r.kept[uint32(idx)&(r.size-1)], uint64(r.num)<<16|uint64(idx))
	return hit
}
