package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// packetReceivers are the RQs of a function.
type packetReceivers struct {
	*packetQueues
	rqs              []*packetRQ
	onRecord, onRead sim.Handler // of an RQ: the doorbell record, a WQE has been read
	bare             []byte      // a packet without its VLAN tag
	whole            []byte      // one with its FCS
}

// packetRQ is a receive queue for Ethernet packets: a ring of WQEs that are lists of data segments.
type packetRQ struct {
	packetQueue
	receivers *packetReceivers
	ctx       [prm.RQCSize]byte
	qs        *qset
	users     int // TIRs and entries of RQTs
	waiting   sim.FIFO[received]
	record    [prm.DBRecSize]byte
}

// received is a packet on its way into an RQ.
type received struct {
	f        *roce.Frame
	h        ether.Headers
	tag      uint32 // of the flow table entry
	hash     uint32
	hashType uint8
}

func newPacketReceivers(q *packetQueues) *packetReceivers {
	v := &packetReceivers{packetQueues: q}
	v.onRecord = func(arg uint64) {
		if q := v.named(arg); q != nil {
			q.recordRead()
		}
	}
	v.onRead = func(arg uint64) {
		if q := v.named(arg); q != nil && q.read() {
			q.receive()
		}
	}
	return v
}

// at is the RQ with a number, or nil.
func (v *packetReceivers) at(n uint32) *packetRQ {
	if uint64(n) >= uint64(len(v.rqs)) {
		return nil
	}
	return v.rqs[n]
}

// named is the RQ of an event word, or nil when it is gone.
func (v *packetReceivers) named(arg uint64) *packetRQ {
	if q := v.at(uint32(arg & queueIndexMask)); q != nil && q.arg == arg {
		return q
	}
	return nil
}

// deliver gives a packet to the queue, with a reference to its frame.
func (q *packetRQ) deliver(p received) {
	if q.state != prm.PacketQueueRDY || q.waiting.Len() >= int(q.size) {
		q.noBuffer(p.f)
		return
	}
	q.waiting.Push(p)
	q.next()
}

// noBuffer drops a packet for which there is no WQE.
func (q *packetRQ) noBuffer(f *roce.Frame) {
	q.receivers.c.rxNoBuffer++
	q.qs.add(prm.QCOutOfBuffer)
	f.Release()
}

// next begins with the next packet, if there is one and a WQE has to be looked for.
func (q *packetRQ) next() {
	if q.busy || q.waiting.Len() == 0 {
		return
	}
	q.busy = true
	if q.ci != q.pi {
		q.fetch(1, q.receivers.onRead)
		return
	}
	q.receivers.core.c.RecvRecordReads++
	q.receivers.bus.ReadDMA(q.dbr, q.record[:], q.receivers.onRecord, q.arg)
}

// recordRead takes over what the doorbell record says.
func (q *packetRQ) recordRead() {
	if pi := prm.QPDBRec(q.record[:]).Recv(); uint32(pi-q.ci) <= q.size {
		q.pi = pi
	}
	q.busy = false
	switch {
	case q.state == prm.PacketQueueERR:
		for ; q.ci != q.pi; q.ci++ {
			q.errorCQE(prm.CQERespErr, q.ci, prm.SyndromeWRFlush)
		}
	case q.ci == q.pi:
		q.noBuffer(q.waiting.Pop().f)
		q.next()
	default:
		q.next()
	}
}

// receive writes the first packet that waits to where the WQE says.
func (q *packetRQ) receive() {
	p := q.waiting.Pop()
	b, tag := p.f.B, false
	if !prm.RQC(q.ctx[:]).VSD() && roce.Ethernet(b).Type() == roce.EtherTypeVLAN && p.h.Tagged {
		b, tag = q.receivers.untagged(b), true
	}
	defer p.f.Release()
	all := b
	if prm.RQC(q.ctx[:]).ScatterFCS() {
		v := q.receivers
		v.whole = ether.AppendFCS(append(v.whole[:0], b...), p.f.B)
		all = v.whole
	}
	if s := q.scatter(all); s != 0 {
		q.errorCQE(prm.CQERespErr, q.ci, s)
		q.ci++
		q.fail()
		return
	}
	q.complete(&p, b, len(all), tag)
	q.ci++
	q.busy = false
	q.next()
}

// untagged is a frame without its first tag.
func (v *packetReceivers) untagged(b []byte) []byte {
	const addresses = 12
	v.bare = append(append(v.bare[:0], b[:addresses]...), b[addresses+roce.VLANSize:]...)
	return v.bare
}

// scatter writes a packet to the data segments of the WQE.
func (q *packetRQ) scatter(b []byte) prm.Syndrome {
	v := q.receivers
	for at := 0; len(b) > 0; at += prm.DataSegmentSize {
		if at == int(q.unit) {
			return prm.SyndromeLocalLength
		}
		s := prm.DataSegment(q.wqe[at : at+prm.DataSegmentSize])
		if s.LKey() == prm.InvalidLKey && s.ByteCount() == 0 {
			if v.breaks(rule.LongPacketsFailTheirReceive) {
				return 0
			}
			return prm.SyndromeLocalLength
		}
		n := min(len(b), int(s.ByteCount()&^prm.StartPadding))
		if n > 0 && v.dma.writeTo(q.user, s.LKey(), s.Addr(), b[:n], mkey.LocalWrite) != mkey.OK {
			return prm.SyndromeLocalProt
		}
		b = b[n:]
	}
	return 0
}

// complete reports a packet, which is as it was sent but for a tag that was taken out, and of which
// n bytes were written.
func (q *packetRQ) complete(p *received, b []byte, n int, untagged bool) {
	all, e := q.completion(q.ci)
	h := p.h
	if untagged {
		h = ether.Parse(b)
		e.SetVLANInfo(p.h.TCI)
	}
	e.SetL4L3HdrType(headerTypes(&h, untagged))
	ok := uint8(prm.CQEL2OK)
	if h.NetworkOK(b) {
		ok |= prm.CQEL3OK
	}
	if h.TransportOK(b) || q.receivers.breaks(rule.WrongChecksumsAreReported) {
		ok |= prm.CQEL4OK
	}
	e.SetHDSIPExt(ok)
	e.SetChecksum(h.Sum(b))
	e.SetRSSHash(p.hash)
	e.SetRSSHashType(p.hashType)
	e.SetByteCnt(uint32(n))
	if !q.receivers.breaks(rule.FlowTagsAreReported) {
		e.SetFlowTag(p.tag)
	}
	e.SetOpOwn(prm.CQERespSend, prm.CQEFormatPlain, false, 0)
	q.cq.push(all)
}

// headerTypes is what a CQE says of the headers of a packet.
func headerTypes(h *ether.Headers, untagged bool) (v uint8) {
	if untagged {
		v |= prm.CQEVLAN
	}
	switch h.Version {
	case 4:
		v |= prm.CQEL3IPv4
	case 6:
		v |= prm.CQEL3IPv6
	}
	switch {
	case h.Transport == 0:
	case h.Proto == roce.ProtoUDP:
		v |= prm.CQEL4UDP
	case h.TCPFlags&ether.TCPACK == 0:
		v |= prm.CQEL4TCPNoAck
	case h.Payload == h.End:
		v |= prm.CQEL4TCPAck
	default:
		v |= prm.CQEL4TCPData
	}
	return v
}

// drop releases the packets that wait.
func (q *packetRQ) drop() {
	for q.waiting.Len() > 0 {
		q.noBuffer(q.waiting.Pop().f)
	}
}

// fail is the transition to ERR; with flush, what is posted completes with an error.
func (q *packetRQ) fail() {
	q.drop()
	q.forget()
	q.state = prm.PacketQueueERR
	if q.flush {
		q.receivers.bus.ReadDMA(q.dbr, q.record[:], q.receivers.onRecord, q.arg)
	}
}

// setState is a transition that a command has asked for.
func (q *packetRQ) setState(to uint32) {
	switch to {
	case prm.PacketQueueRST:
		q.drop()
		q.restart()
	case prm.PacketQueueERR:
		q.fail()
	default:
		q.state = to
	}
}

// cqFailed moves the RQs of a CQ that has failed to ERR.
func (v *packetReceivers) cqFailed(c *cq) {
	for _, q := range v.rqs {
		if q != nil && q.cq == c && q.state != prm.PacketQueueRST {
			q.flush = false
			q.fail()
		}
	}
}
