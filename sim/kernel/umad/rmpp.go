package umad

import (
	"slices"

	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim"
)

// Transfers in segments (mad_rmpp.c).
const (
	rmppData    = mad.Size - 36 // bytes of a segment behind its header (IB_MGMT_RMPP_DATA)
	rmppWindow  = 64            // segments that a receiver allows at a time: an eighth of ib_mad's receives
	maxTable    = 1 << 20       // bytes of a message, and of what is put together: ours
	maxParts    = 64            // messages that an agent has in part: ours
	rmppTimeout = 2 * sim.Second
	rmppRetries = 3
)

// assembly is a message of which not all segments have come.
type assembly struct {
	tid    uint64
	class  uint8
	lid    uint16
	data   []byte
	next   uint32 // segment
	window uint32
}

// segment takes a segment of an answer, acknowledges where it must, and returns the message when it
// is whole.
func (a *agent) segment(b mad.MAD, from *Header) (whole []byte) {
	r, off := b.RMPP(), dataOffset(b.Class())
	i := slices.IndexFunc(a.parts, func(x *assembly) bool { return x.tid == b.TID() && x.class == b.Class() && x.lid == from.LID })
	if i < 0 {
		if r.Segment() != 1 || len(a.parts) == maxParts {
			return nil
		}
		i = len(a.parts)
		a.parts = append(a.parts, &assembly{tid: b.TID(), class: b.Class(), lid: from.LID, next: 1, window: 1, data: slices.Clone(b[:off])})
	}
	x := a.parts[i]
	if r.Segment() != x.next {
		if r.Segment() < x.next { // again: the acknowledgement was lost
			a.acknowledge(b, from, x)
		}
		return nil
	}
	x.next++
	segment := b[off:]
	if r.Flags()&mad.RMPPLast != 0 {
		if pad := rmppData - int(r.Payload()); pad >= 0 && pad <= len(segment) {
			segment = segment[:len(segment)-pad]
		}
	}
	x.data = append(x.data, segment...)
	last := r.Flags()&mad.RMPPLast != 0
	if r.Segment() == x.window {
		x.window += rmppWindow
		a.acknowledge(b, from, x)
	} else if last {
		a.acknowledge(b, from, x)
	}
	if last || len(x.data) > maxTable {
		a.parts = slices.Delete(a.parts, i, i+1)
		if last {
			return x.data
		}
	}
	return nil
}

// acknowledge says which segment came last, and how many may (ack_recv).
func (a *agent) acknowledge(b mad.MAD, from *Header, x *assembly) {
	m := make(mad.MAD, mad.Size)
	copy(m, b[:dataOffset(b.Class())])
	m[3] ^= mad.Response
	r := m.RMPP()
	r.SetType(mad.RMPPAck)
	r.SetFlags(mad.RMPPActive)
	r.SetSegment(x.next - 1)
	r.SetWindow(x.window)
	h := Header{LID: from.LID, SL: from.SL, PathBits: from.PathBits, GRH: from.GRH, GID: from.GID, HopLimit: from.HopLimit}
	_ = a.f.p.send(a, &h, m)
}

// table is a message that is sent in segments.
type table struct {
	data     []byte // behind the headers
	off      int
	segments uint32
	sent     uint32
	acked    uint32
	window   uint32
}

func newTable(head mad.MAD, data []byte, off int) *table {
	t := &table{data: slices.Clone(data[off:]), off: off, window: 1}
	n := mad.Size - off
	t.segments = max(1, uint32((len(t.data)+n-1)/n))
	clear(head[off:])
	return t
}

// start sends the first segment.
func (t *table) start(x *exchange) error {
	if x.timeout == 0 {
		x.timeout, x.retries = rmppTimeout, rmppRetries
	}
	err := t.more(x)
	if err != nil {
		x.end()
	}
	return err
}

// again sends what was not acknowledged.
func (t *table) again(x *exchange) error {
	t.sent = t.acked
	return t.more(x)
}

// more sends what the window allows (send_next_seg).
func (t *table) more(x *exchange) error {
	room := mad.Size - t.off
	for t.sent < t.segments && t.sent < t.window {
		part := t.data[int(t.sent)*room:]
		part = part[:min(len(part), room)]
		t.sent++
		m := slices.Clone(x.b)
		copy(m[t.off:], part)
		r := m.RMPP()
		r.SetVersion(mad.RMPPVersion)
		r.SetType(mad.RMPPData)
		r.SetSegment(t.sent)
		flags, payload, last := uint8(mad.RMPPActive), uint32(0), uint32(rmppData-(room-(len(t.data)-int(t.segments-1)*room)))
		if t.sent == 1 {
			flags |= mad.RMPPFirst
			payload = (t.segments-1)*rmppData + last
		}
		if t.sent == t.segments {
			flags |= mad.RMPPLast
			payload = last
		}
		r.SetFlags(flags)
		r.SetPayload(payload)
		if err := x.a.f.p.send(x.a, &x.h, m); err != nil {
			return err
		}
	}
	x.stop()
	x.wait()
	return nil
}

// acknowledged takes what the receiver of a table says, if it is one of this agent's.
func (a *agent) acknowledged(b mad.MAD) bool {
	for _, x := range a.sends {
		t := x.table
		if t == nil || x.b.TID() != b.TID() || x.b.Class() != b.Class() {
			continue
		}
		r := b.RMPP()
		switch {
		case r.Type() != mad.RMPPAck || r.Segment() > t.segments:
			x.end()
		case r.Segment() >= t.segments:
			x.end()
		default:
			t.acked, t.window = max(t.acked, r.Segment()), max(t.window, r.Window())
			_ = t.more(x)
		}
		return true
	}
	return false
}
