package oracle

import (
	"encoding/binary"

	"github.com/rdmasim/rdmasim/roce"
)

// mad is a management datagram (include/rdma/ib_mad.h).
type mad []byte

const (
	madSize   = 256
	madHeader = 24
	classCM   = 0x07
	methodOut = 0x03 // Send
)

func (m mad) base() uint8       { return m[0] }
func (m mad) class() uint8      { return m[1] }
func (m mad) version() uint8    { return m[2] }
func (m mad) method() uint8     { return m[3] }
func (m mad) tid() uint64       { return binary.BigEndian.Uint64(m[8:16]) }
func (m mad) attribute() uint16 { return binary.BigEndian.Uint16(m[16:18]) }
func (m mad) data() []byte      { return m[madHeader:] }
func (m mad) local() uint32     { return binary.BigEndian.Uint32(m.data()) }
func (m mad) remote() uint32    { return binary.BigEndian.Uint32(m.data()[4:]) }

// Attributes of the connection manager.
const (
	cmREQ  = 0x10
	cmREP  = 0x13
	cmRTU  = 0x14
	cmDREQ = 0x15
	cmDREP = 0x16
)

func get24(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

// offer is what a REQ or REP says of its sender's QP.
type offer struct {
	r    *rec
	host roce.GID // of the sender
	to   roce.GID
	qpn  uint32
	psn  uint32 // with which the other side is to begin (cm.c, rq_psn and sq_psn)
	mtu  int
}

// handshake is a connection that the CM makes.
type handshake struct {
	req, rep     *offer
	reqID, repID uint32
	tid          uint64
	resources    uint8
	closing      bool
}

// management replays the connection manager's messages on QP1.
func (j *judge) management() {
	var open []*handshake
	var all []*rec
	for _, s := range j.streams {
		if s.transport == roce.UD && s.qpn == roce.GSIQPN {
			all = append(all, s.recs...)
		}
	}
	sortByNumber(all)
	for _, r := range all {
		if r.cut() {
			continue
		}
		name := flowName(&r.p)
		if r.p.PayloadLen() != madSize {
			j.verdict(Violation, "OR-097", r.Number, name, "a management datagram of %d bytes", r.p.PayloadLen())
			continue
		}
		m := mad(r.p.Payload())
		if m.base() != 1 || m.class() == classCM && (m.version() != 2 || m.method() != methodOut) {
			j.verdict(Violation, "OR-097", r.Number, name, "base version %d, class %#02x version %d, method %#02x", m.base(), m.class(), m.version(), m.method())
			continue
		}
		if m.class() == classCM {
			open = j.cm(r, m, name, open)
		}
	}
	for _, h := range open {
		j.offered(h)
	}
}

func (j *judge) cm(r *rec, m mad, name string, open []*handshake) []*handshake {
	d := m.data()
	host, to := ends(&r.p)
	find := func(f func(h *handshake) bool) *handshake {
		for i := len(open) - 1; i >= 0; i-- {
			if f(open[i]) {
				return open[i]
			}
		}
		return nil
	}
	swapped := func(h *handshake) bool {
		return h.rep != nil && (h.req.host == host && h.req.to == to && h.reqID == m.local() && h.repID == m.remote() ||
			h.req.host == to && h.req.to == host && h.repID == m.local() && h.reqID == m.remote())
	}
	// What was not seen before may have been sent before the capture, in the other direction, or
	// been lost by the tap.
	unseen := func(format string, a ...any) {
		if j.o.Complete {
			j.verdict(Violation, "OR-098", r.Number, name, format, a...)
		} else {
			j.unproved(Violation, "OR-098", r, name, format, a...)
		}
	}
	switch m.attribute() {
	case cmREQ:
		if find(func(h *handshake) bool {
			return h.req.host == host && h.req.to == to && h.reqID == m.local() && h.tid == m.tid()
		}) == nil {
			return append(open, &handshake{reqID: m.local(), tid: m.tid(), resources: d[35],
				req: &offer{r, host, to, get24(d[32:]), get24(d[44:]), roce.MTU(d[50] >> 4).Bytes()}})
		}
	case cmREP:
		h := find(func(h *handshake) bool { return h.req.host == to && h.req.to == host && h.reqID == m.remote() })
		switch {
		case h == nil:
			unseen("a REP for communication ID %#x, which no REQ named", m.remote())
		case h.tid != m.tid():
			unseen("a REP with transaction %#x, the last REQ with its communication ID had %#x", m.tid(), h.tid)
		case h.rep == nil:
			h.repID, h.rep = m.local(), &offer{r, host, to, get24(d[12:]), get24(d[20:]), h.req.mtu}
			if d[25] > h.resources {
				j.verdict(Violation, "OR-101", r.Number, name, "initiator depth %d, the REQ offers %d", d[25], h.resources)
			}
		}
	case cmRTU:
		if find(swapped) == nil {
			unseen("an RTU for %#x and %#x, which no REP named", m.local(), m.remote())
		}
	case cmDREQ:
		if h := find(swapped); h != nil {
			h.closing = true
		}
	case cmDREP:
		if h := find(swapped); h != nil && !h.closing {
			unseen("a DREP without a DREQ")
		}
	}
	return open
}

// offered compares the data packets of a connection with what its REQ and REP said.
func (j *judge) offered(h *handshake) {
	if h.rep == nil {
		return
	}
	for _, s := range j.streams {
		if s.transport != roce.RC && s.transport != roce.UC || s.requests == 0 || s.recs[0].Number < h.req.r.Number {
			continue
		}
		from, to := h.req, h.rep
		if s.src == h.rep.host && s.dst == h.req.host && s.qpn == h.req.qpn {
			from, to = h.rep, h.req
		}
		if s.src != from.host || s.dst != to.host || s.qpn != to.qpn {
			continue
		}
		// Queue pairs have the numbers of earlier ones, whose REQ this may be where frames are
		// missing.
		differ := func(r *rec, format string, a ...any) {
			if j.o.Complete && (s.half == nil || s.half.complete()) {
				j.verdict(Violation, "OR-100", r.Number, s.name, format, a...)
			} else {
				j.unproved(Violation, "OR-100", r, s.name, format, a...)
			}
		}
		if r := requestsOf(s)[0]; r.psn != to.psn {
			differ(r, "the first PSN is %#06x, the CM said %#06x", r.psn, to.psn)
		}
		if s.half != nil && !s.half.guessed && from.mtu != 0 && s.half.mtu > from.mtu {
			differ(s.recs[0], "packets of %d bytes, the CM said %d", s.half.mtu, from.mtu)
		}
	}
}
