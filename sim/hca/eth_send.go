package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mkey"
)

// packetSenders are the SQs of a function.
type packetSenders struct {
	*packetQueues
	out                 *packetPort
	sqs                 []*packetSQ
	onRead, onPart, onL sim.Handler // of an SQ: a WQE, a part of the packet has been read; the packet has left
}

// packetSQ is a send queue for Ethernet packets. It takes one WQE at a time: reads it, gathers the
// packet, sends it, and goes on when the packet has left.
type packetSQ struct {
	packetQueue
	senders *packetSenders
	ctx     [prm.SQCSize]byte
	tis     *tis // nil: it sends nothing
	uar     uint32
	have    int // basic blocks that were read
	blocks  uint16
	parsed  prm.PacketWQE
	payload []byte
}

// tis is a way to send; SQs name it.
type tis struct {
	ctx   [prm.TISCSize]byte
	users int // SQs
}

// maxPacketSend is what one WQE may send: the longest of Linux (GSO_MAX_SIZE) and its headers.
const maxPacketSend = 1<<16 + 512

func newPacketSenders(q *packetQueues, out *packetPort) *packetSenders {
	v := &packetSenders{packetQueues: q, out: out}
	v.onRead = func(arg uint64) {
		if q := v.named(arg); q != nil && q.read() {
			q.begin()
		}
	}
	v.onPart = func(arg uint64) {
		if q := v.named(arg); q != nil && q.read() {
			q.send()
		}
	}
	v.onL = func(arg uint64) {
		if q := v.named(arg); q != nil {
			q.sent()
		}
	}
	return v
}

// at is the SQ with a number, or nil.
func (v *packetSenders) at(n uint32) *packetSQ {
	if uint64(n) >= uint64(len(v.sqs)) {
		return nil
	}
	return v.sqs[n]
}

// named is the SQ of an event word, or nil when it is gone.
func (v *packetSenders) named(arg uint64) *packetSQ {
	if q := v.at(uint32(arg & queueIndexMask)); q != nil && q.arg == arg {
		return q
	}
	return nil
}

// doorbell rings an SQ, with the WQE itself if that was pushed. It reports false when there is none
// with this number at the page.
func (v *packetSenders) doorbell(page uint32, c prm.CtrlSegment, wqe []byte) bool {
	q := v.at(c.QPN())
	if q == nil || q.uar != page {
		return false
	}
	if q.state == prm.PacketQueueRST {
		v.core.c.DoorbellsState++
		return true
	}
	pi := c.WQEIndex() + wqeBlocks(c)
	if int16(pi-q.pi) <= 0 || uint32(pi-q.ci) > q.size {
		v.core.c.DoorbellsOdd++
		return true
	}
	idle := !q.busy && q.ci == q.pi && q.ci == c.WQEIndex()
	q.pi = pi
	if n := int(wqeBlocks(c)); idle && q.state == prm.PacketQueueRDY && len(wqe) >= n*prm.WQEBBSize {
		q.push(wqe[:n*prm.WQEBBSize])
	}
	q.next()
	return true
}

// wqeBlocks is how many basic blocks a WQE has.
func wqeBlocks(c prm.CtrlSegment) uint16 {
	return uint16(max(1, (c.DS()+segmentsPerBlock-1)/segmentsPerBlock))
}

// next begins with the next WQE.
func (q *packetSQ) next() {
	if q.busy || q.ci == q.pi || q.state == prm.PacketQueueRST || q.state == prm.PacketQueueERR && !q.flush {
		return
	}
	q.busy = true
	q.have = min(int(q.pi-q.ci), prm.MaxWQEBytes/prm.WQEBBSize, int(q.size))
	q.senders.core.c.WQEFetches++
	q.senders.core.c.WQEBlocksFetched += uint64(q.have)
	q.fetch(q.have, q.senders.onRead)
}

// push carries out a WQE whose bytes came with the doorbell.
func (q *packetSQ) push(wqe []byte) {
	if len(q.wqe) < len(wqe) {
		q.wqe = make([]byte, len(wqe))
	}
	copy(q.wqe, wqe)
	q.busy, q.have = true, len(wqe)/prm.WQEBBSize
	q.senders.core.c.WQEsPushed++
	q.begin()
}

// begin carries out the WQE that has come.
func (q *packetSQ) begin() {
	c := prm.CtrlSegment(q.wqe[:prm.CtrlSegmentSize])
	q.blocks = min(wqeBlocks(c), uint16(q.have))
	q.senders.core.c.WQEs++
	switch {
	case q.state == prm.PacketQueueERR:
		q.failed(prm.SyndromeWRFlush)
	case wqeBlocks(c) > uint16(q.have):
		q.failed(prm.SyndromeLocalLength)
	case c.Opcode() == prm.WQEOpNOP:
		q.sent()
	default:
		q.gather()
	}
}

// gather reads the packet.
func (q *packetSQ) gather() {
	w, v := &q.parsed, q.senders
	if q.tis == nil || prm.ParsePacketWQE(q.wqe[:q.have*prm.WQEBBSize], w) != nil {
		q.failed(prm.SyndromeLocalQPOp)
		return
	}
	if w.Bytes > maxPacketSend {
		q.failed(prm.SyndromeLocalLength)
		return
	}
	for s, at, ok := w.Data(0); ok; s, at, ok = w.Data(at) {
		if s.Inline == nil && s.Len > 0 && !v.dma.allowed(q.user, s.LKey, s.Addr, int(s.Len)) {
			q.failed(prm.SyndromeLocalProt)
			return
		}
	}
	if len(q.payload) < int(w.Bytes) {
		q.payload = make([]byte, w.Bytes)
	}
	p := q.payload
	for s, at, ok := w.Data(0); ok; s, at, ok = w.Data(at) {
		if s.Inline != nil {
			copy(p, s.Inline)
		} else if s.Len > 0 {
			q.reads += v.dma.readParts(q.user, s.LKey, s.Addr, p[:s.Len], v.onPart, q.arg)
		}
		p = p[s.Len:]
	}
	if q.reads == 0 {
		q.send()
	}
}

// send gives the packet, or those that it is cut into, to the port.
func (q *packetSQ) send() {
	w, v := &q.parsed, q.senders
	ok, td := false, prm.TISC(q.tis.ctx[:]).TransportDomain()
	if payload := q.payload[:w.Bytes]; w.Ctrl.Opcode() == prm.WQEOpTSO {
		ok = v.out.sendLong(td, w.Eth, w.Headers, payload)
	} else {
		ok = v.out.sendOne(td, w.Eth, w.Headers, payload)
	}
	if !ok {
		q.failed(prm.SyndromeLocalLength)
		return
	}
	v.e.At(max(v.port.portFree, v.e.Now()), v.onL, q.arg)
}

// sent is the end of a WQE without an error.
func (q *packetSQ) sent() {
	c := prm.CtrlSegment(q.wqe[:prm.CtrlSegmentSize])
	if c.FMCESE()&prm.CtrlCQUpdate != 0 {
		b, e := q.completion(q.ci)
		e.SetQPN(q.num)
		e.SetSOp(c.Opcode())
		e.SetOpOwn(prm.CQEReq, prm.CQEFormatPlain, c.FMCESE()&prm.CtrlSolicited != 0, 0)
		q.cq.push(b)
	}
	q.done()
}

// failed is the end of a WQE with an error: the queue goes to ERR.
func (q *packetSQ) failed(s prm.Syndrome) {
	q.state = prm.PacketQueueERR
	q.errorCQE(prm.CQEReqErr, q.ci, s)
	q.done()
}

func (q *packetSQ) done() {
	q.ci += q.blocks
	q.busy = false
	q.next()
}

// setState is a transition that a command has asked for.
func (q *packetSQ) setState(to uint32) {
	switch to {
	case prm.PacketQueueRST:
		q.payload = nil
		q.restart()
	case prm.PacketQueueERR:
		q.payload = nil
		q.forget()
		q.state = to
		q.next()
	default:
		q.state = to
	}
}

// cqFailed moves the SQs of a CQ that has failed to ERR.
func (v *packetSenders) cqFailed(c *cq) {
	for _, q := range v.sqs {
		if q != nil && q.cq == c && q.state != prm.PacketQueueRST {
			q.forget()
			q.state, q.flush = prm.PacketQueueERR, false
		}
	}
}

// allowed says whether [va, va+n) of a key may be read.
func (m *dma) allowed(u mkey.User, key uint32, va uint64, n int) bool {
	runs, r := m.keys.Translate(u, key, va, n, mkey.LocalRead, m.runs[:0])
	m.runs = runs[:0]
	return r == mkey.OK
}

// readParts starts the DMA reads of [va, va+len(p)) of a key into p. It returns how many there are;
// each ends with done(arg).
func (m *dma) readParts(u mkey.User, key uint32, va uint64, p []byte, done sim.Handler, arg uint64) (reads int) {
	runs, r := m.keys.Translate(u, key, va, len(p), mkey.LocalRead, m.runs[:0])
	m.runs = runs
	if r != mkey.OK {
		return 0
	}
	if len(runs) == 0 {
		clear(p)
	}
	for _, run := range runs {
		if run.PA >= onChip {
			m.memory.read(uint64(run.PA-onChip), p[:run.Len])
		} else {
			m.bus.ReadDMA(run.PA, p[:run.Len], done, arg)
			reads++
		}
		p = p[run.Len:]
	}
	return reads
}
