package oracle

import (
	"bytes"
	"slices"
	"sort"

	"github.com/rdmasim/rdmasim/roce"
)

// packet is a request packet of the connection, once for all its transmissions.
// Positions are PSNs that do not wrap: they count on past 2^24.
type packet struct {
	pos, end   int64 // first PSN, and the one behind the last that it reserves
	r          *rec  // the first transmission
	last       int64 // when it was last sent
	sent       int   // transmissions
	msn        int64 // requests that are complete once it is executed
	ackReq     bool  // in its last transmission
	delivered  bool  // some transmission may have arrived
	arrivals   int   // transmissions that may have
	refusals   int   // RNR NAKs for it
	corrupted  bool  // one was corrupted
	kept       *rec  // it came early, and a responder that repeats selectively kept it
	got        int64 // READ, ATOMIC: position of the first response that has not arrived
	heard      int64 // when the one before it was sent
	answer     uint64
	answered   bool // an ATOMIC was
	askedSince int64
}

func (p *packet) class() roce.Class { return p.r.info.Class }

// responds reports whether the request has a response of its own kind.
func (p *packet) responds() bool {
	switch p.class() {
	case roce.ClassReadRequest, roce.ClassAtomic, roce.ClassFlush, roce.ClassAtomicWrite:
		return true
	}
	return false
}

// run is a READ that a responder has to answer, whole or from its middle.
type run struct {
	pk        *packet
	next, end int64 // positions of the next response and behind the last
	first     int64
	length    uint32 // bytes from first
	again     bool   // of a repeated request
}

// half is the state machine of one direction: a requester and its responder.
type half struct {
	j   *judge
	s   *stream
	mtu int

	begun  bool
	middle bool // the capture begins in the middle of the connection
	blind  bool // frames were edited, or a hole has its verdict: nothing more is judged
	pk     []*packet
	next   int64 // position of the next new request
	seen   int64 // time of the last frame of either direction
	resent int

	// The message that is being sent.
	open  roce.Class
	sum   uint64
	reth  uint32
	srqn  uint32
	first *rec
	count int64 // requests that were sent to their end

	requester
	responder
	history
	resends resends
}

func newHalf(j *judge, s *stream) *half { return &half{j: j, s: s, mtu: j.o.MTU} }

// violationUnlessLost is Violation, or Inconclusive where a loss that is not marked could explain
// it.
func (h *half) violationUnlessLost() Kind {
	if h.j.o.Delivered && !h.uncertain && h.complete() {
		return Violation
	}
	return Inconclusive
}

// unlessLate is Violation, or Inconclusive where frames were delayed: a requester without an answer
// in its turn asks again, drops what comes behind it, and follows a NAK when it has come.
func (h *half) unlessLate() Kind {
	if h.uncertain {
		return Inconclusive
	}
	return Violation
}

// position is where a PSN lies near the next new one.
func (h *half) position(psn uint32) int64 {
	return h.next + int64(roce.CmpPSN(psn, uint32(h.next)&roce.PSNMask))
}

func psn(pos int64) uint32 { return uint32(pos) & roce.PSNMask }

// at is the packet that reserves a position, nil if none does.
func (h *half) at(pos int64) *packet {
	i := h.index(pos)
	if i < 0 || pos >= h.pk[i].end {
		return nil
	}
	return h.pk[i]
}

func (h *half) index(pos int64) int {
	return sort.Search(len(h.pk), func(i int) bool { return h.pk[i].pos > pos }) - 1
}

// before is how many requests are complete when everything before a position is.
func (h *half) before(pos int64) int64 {
	if i := h.index(pos - 1); i >= 0 {
		return h.pk[i].msn
	}
	return 0
}

// request takes a request packet in the order in which it was sent.
func (h *half) request(r *rec) {
	h.watch(r, true)
	if h.blind {
		h.countOnly(r)
		h.seen = r.Time
		return
	}
	if h.begun && h.isNewConnection(r) {
		h.restart(r)
	}
	if !h.begun {
		h.beginConnection(r)
	}
	pos := h.position(r.psn)
	switch {
	case pos >= h.next:
		if pos > h.next {
			h.checkSkipped(r, pos)
		}
		if !h.blind {
			h.newRequest(r, pos)
		}
	default:
		h.repeatedRequest(r, pos)
	}
	h.seen = r.Time
}

func (h *half) beginConnection(r *rec) {
	h.begun, h.middle = true, !r.info.First
	h.next = int64(r.psn) + 1<<24
	h.unacked, h.proved, h.inOrder = h.next, h.next-1, h.next-1
	h.highestInOrder, h.resendLast = h.inOrder, h.inOrder
	h.resendNext, h.passNext, h.nakPos, h.rnrPos, h.nakOut, h.rnrOut = -1, -1, -1, -1, -1, -1
	h.seen = r.Time
	if h.middle && !h.disprove(r, "the flow begins with %s", r.info.Name) {
		h.report(Violation, "OR-029", r, "the connection begins with %s", r.info.Name)
	}
	if want := h.j.o.StartPSN; want != nil && *want != r.psn {
		h.report(Violation, "OR-027", r, "the first PSN is %#06x, configured is %#06x", r.psn, *want)
	}
}

// isNewConnection reports whether a request begins a new connection of the same two QPs: it is
// the first packet of a message, nothing is outstanding or the old connection is
// dead, some time has passed, and it does not go on where the old one ended.
func (h *half) isNewConnection(r *rec) bool {
	pos := h.position(r.psn)
	quiet := h.unacked == h.next || h.dead
	if !r.info.First || pos == h.next && !h.dead || r.Time-h.seen < h.j.o.flight()/2 {
		return false
	}
	if p := h.at(pos); p != nil && p.pos == pos && same(p.r, r) {
		return h.j.o.Reconnects && quiet && pos == h.pk[0].pos && !h.countsOn(r)
	}
	if h.j.o.Reconnects && pos == h.pk[0].pos {
		return true
	}
	return quiet && (pos == h.pk[0].pos || pos > h.next || pos < h.pk[0].pos || h.dead)
}

// mostAhead is how many frames are looked at for it: a requester has fewer under way before the
// first answer, and a forged capture cannot keep the judge busy.
const mostAhead = 1024

// countsOn says whether the responder goes on counting behind a request that could begin a new
// connection: the next MSN is higher than what has come in order since. A requester without its
// pages asks again for READs and atomics from the first one on.
func (h *half) countsOn(r *rec) bool {
	answer := h.nextMSN(r.Number)
	if answer == nil {
		return false
	}
	next, complete := r.psn, int64(0)
	i, _ := slices.BinarySearchFunc(h.s.recs, r.Number, func(x *rec, n int) int { return x.Number - n })
	for _, q := range h.s.recs[i:min(i+mostAhead, len(h.s.recs))] {
		if q.Number > answer.Number {
			break
		}
		if q.kind != roce.KindRequest || q.psn != next || !q.Fate.arrives() {
			continue
		}
		next = roce.AddPSN(next, 1)
		if q.info.Class == roce.ClassReadRequest {
			next = roce.AddPSN(q.psn, int32(roce.PacketsOf(q.p.RETH().Length(), h.pathMTU())))
		}
		if q.info.Last {
			complete++
		}
	}
	return !within(int64(answer.p.AETH().MSN()), 0, complete)
}

// nextMSN is the first response behind a frame that has an MSN; nil without one.
func (h *half) nextMSN(frame int) *rec {
	if h.s.peer == nil {
		return nil
	}
	recs := h.s.peer.recs
	i, _ := slices.BinarySearchFunc(recs, frame, func(x *rec, n int) int { return x.Number - n })
	for _, r := range recs[i:min(i+mostAhead, len(recs))] {
		if r.kind == roce.KindResponse && r.info.Headers.Has(roce.HasAETH) {
			return r
		}
	}
	return nil
}

// restart forgets the old connection. The MSN that its next response would have had shows
// later whether it really is a new connection.
func (h *half) restart(r *rec) {
	h.report(Note, "OR-027", r, "the connection seems to begin again, at PSN %#06x after %#06x", r.psn, psn(h.next-1))
	h.low, h.high, h.slack = 0, 0, 0
	h.resends.open = nil
	*h = half{j: h.j, s: h.s, mtu: h.mtu, resent: h.resent, history: h.history, resends: h.resends,
		responder: responder{restartRec: r, oldMSN: h.base + h.count, oldNext: h.next}}
}

// checkSkipped judges a new request that is not the next one.
func (h *half) checkSkipped(r *rec, pos int64) {
	if h.complete() && !h.j.o.Declared {
		h.report(Violation, "OR-028", r, "PSN %#06x, the next is %#06x", r.psn, psn(h.next))
	} else if !h.hole {
		h.hole, h.holeAt, h.holeRec = true, h.next, r
	}
	if !h.complete() {
		h.skipped(r, pos)
	}
	h.next = pos
	h.open = 0
	h.lenient = true
	if h.inOrder == h.highestInOrder { // the responder cannot have what was not sent
		h.gapped = true
	}
}

// newRequest takes a request packet that was not sent before.
func (h *half) newRequest(r *rec, pos int64) {
	h.checkNewRequest(r, pos)
	h.checkSequence(r)
	p := &packet{pos: pos, end: h.endOf(r, pos), r: r, last: r.Time, sent: 1, ackReq: r.p.BTH().AckReq(), got: pos}
	if r.info.Last {
		h.count++
	}
	p.msn = h.count
	h.pk = append(h.pk, p)
	if p.responds() {
		h.unanswered++
	}
	h.next = p.end
	h.resends.open = nil
	if h.guessed && !h.complete() && r.info.Class == roce.ClassReadRequest { // how many PSNs it reserves is not certain
		h.lenient = true
	}
	h.checkLimits(r, p)
	h.arriveAtResponder(p, r, p.pos)
}

// checkSequence judges opcode order and payload of a new request packet.
func (h *half) checkSequence(r *rec) {
	info, n := r.info, r.p.PayloadLen()
	switch {
	case h.lenient, h.middle && len(h.pk) == 0:
		h.lenient = false
	case info.First && h.open != 0:
		h.contradict(h.newest(), "OR-029", r, "%s inside an unfinished message", info.Name)
	case !info.First && h.open != info.Class:
		h.contradict(h.newest(), "OR-029", r, "%s without the first packet of its message", info.Name)
	}
	if info.First {
		h.sum, h.reth, h.first = 0, 0, r
		if info.Headers.Has(roce.HasRETH) {
			h.reth = r.p.RETH().Length()
		}
	} else if h.open == 0 {
		h.reth = 0
		h.sum = 1 << 40 // unknown
	}
	m := h.pathMTU()
	if !info.Payload.Allows(n, m) && info.Payload != roce.PayloadNone {
		switch {
		case n == 0 && info.Headers&(roce.HasImmDt|roce.HasIETH) != 0:
			h.contradict(r, "OR-032", r, "%s without payload", info.Name)
		case h.guessed:
			h.report(Violation, "OR-030", r, "%s with %d bytes at MTU %d", info.Name, n, m)
		default:
			h.contradict(r, "OR-030", r, "%s with %d bytes at MTU %d", info.Name, n, m)
		}
	}
	h.sum += uint64(n)
	if info.Class == roce.ClassWrite && info.Last && h.sum < 1<<40 && h.sum != uint64(h.reth) {
		h.contradict(h.first, "OR-031", r, "a WRITE of %d bytes whose RETH says %d", h.sum, h.reth)
	}
	h.open = info.Class
	if info.Last {
		h.open = 0
	}
	if info.Headers.Has(roce.HasXRCETH) {
		n := r.p.XRCETH().SRQN()
		if !info.First && n != h.srqn && len(h.pk) > 0 && (h.complete() || h.newest().psn == roce.AddPSN(r.psn, -1)) {
			h.contradict(h.newest(), "OR-095", r, "SRQ %#x inside a message to SRQ %#x", n, h.srqn)
		}
		h.srqn = n
	}
}

// same reports whether two transmissions carry the same request. AckReq and what the
// path changes may differ.
func same(a, b *rec) bool {
	return a.p.Op == b.p.Op && bytes.Equal(a.p.Ext(), b.p.Ext()) && samePayload(a, b) &&
		a.p.BTH().Solicited() == b.p.BTH().Solicited()
}

// samePayload compares payloads, of frames that were cut their lengths.
func samePayload(a, b *rec) bool {
	if a.cut() || b.cut() {
		return a.p.PayloadLen() == b.p.PayloadLen()
	}
	return bytes.Equal(a.p.Payload(), b.p.Payload())
}

// repeatedRequest takes a request packet whose PSN was sent before.
func (h *half) repeatedRequest(r *rec, pos int64) {
	p := h.at(pos)
	if p == nil {
		if pos < h.pk[0].pos && h.middle && h.complete() {
			return
		}
		if !h.disprove(r, "PSN %#06x is sent again, and its first transmission is missing", r.psn) {
			h.report(Violation, "OR-028", r, "PSN %#06x was never due: the next is %#06x", r.psn, psn(h.next))
			return
		}
		h.resent++
		h.fill(r, pos)
		return
	}
	h.resent++
	if h.complete() && h.answers == 0 && pos > h.pk[0].pos && pos != h.resendNext {
		h.disprove(r, "PSN %#06x is sent again and not %#06x, so that was answered, and no answer was seen", r.psn, h.pk[0].r.psn)
	}
	if p.pos == pos {
		h.checkSameRequest(p, r)
	} else {
		h.insideRead(p, r, pos)
	}
	h.account(p, r, pos)
	h.checkRetransmission(p, r, pos)
	p.sent++
	p.last, p.ackReq = r.Time, r.p.BTH().AckReq()
	h.arriveAtResponder(p, r, pos)
}

// newest is the request with the highest PSN.
func (h *half) newest() *rec { return h.pk[len(h.pk)-1].r }
