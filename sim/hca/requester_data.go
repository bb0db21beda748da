package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/odp"
)

// onReadResponse is a packet of a READ's data.
func (q *qp) onReadResponse(p *roce.Packet, psn uint32) {
	if !q.acked(roce.AddPSN(psn, -1)) {
		return
	}
	if q.head == q.tail || q.una != psn {
		return
	}
	m := q.msg(q.head)
	if m.op == prm.WQEOpAtomicWrite {
		q.onAtomicWritten(m, p)
		return
	}
	off := m.next * uint32(q.mtu)
	last := m.next+1 == m.n
	ackOK := !p.Has(roce.HasAETH) || p.AETH().Syndrome().Type() == roce.SyndromeTypeAck
	if m.kind != msgRead || p.Info().Last != last || p.PayloadLen() != int(min(uint32(q.mtu), m.length-off)) || !ackOK {
		q.qs.add(prm.QCReqBadResponse)
		q.failHead(prm.SyndromeBadResp)
		return
	}
	q.rnr = q.rnrMax
	if !q.land(m, off, p.Payload()) {
		return
	}
	m.next++
	q.una = roce.AddPSN(psn, 1)
	if last {
		q.endRead(m)
	}
	q.progress()
}

// land writes response data to where a READ's or an atomic's data segments say,
// or, when it is small and all of it is here, into the CQE.
func (q *qp) land(m *msg, off uint32, data []byte) bool {
	if q.inCQE(q.csReq, len(data)) && m.signal && uint32(len(data)) == m.length && q.scripted == nil {
		q.sendCQE(m, data)
		m.signal = false
		return true
	}
	w := &q.d.parsed
	if prm.ParseSendWQE(q.landing[m.land].wqe, q.st, w) != nil {
		q.d.bug("QP %#x: the landing area of WQE %d changed", q.num, m.idx)
	}
	c := cursor{}
	for skip := off; skip > 0; {
		s, next, _ := w.Data(c.at)
		if skip < s.Len {
			c.pos = skip
			break
		}
		skip -= s.Len
		c.at = next
	}
	for len(data) > 0 {
		s, next, ok := w.Data(c.at)
		if !ok {
			q.d.bug("QP %#x: a READ's landing area is too small", q.num)
		}
		n := int(min(uint32(len(data)), s.Len-c.pos))
		if !q.d.writeTo(q.user, s.LKey, s.Addr+uint64(c.pos), data[:n], odp.LocalWrite) {
			q.qs.add(prm.QCReqLocalProtection)
			q.failHead(prm.SyndromeLocalProt)
			return false
		}
		data = data[n:]
		if c.pos += uint32(n); c.pos == s.Len {
			c.at, c.pos = next, 0
		}
	}
	return true
}

// cursor is a place in a list of data segments.
type cursor struct {
	at  int
	pos uint32
}

// writeTo posts the DMA writes of p to [va, va+len(p)) of a key.
func (d *Device) writeTo(u odp.User, key uint32, va uint64, p []byte, a odp.Access) bool {
	runs, r := d.keys.Translate(u, key, va, len(p), a, d.runs[:0])
	if r != odp.OK {
		return false
	}
	d.runs = runs
	for _, run := range runs {
		d.writeAt(run.PA, p[:run.Len])
		p = p[run.Len:]
	}
	return true
}

// writeAt writes p to memory of the host or on the device.
func (d *Device) writeAt(pa mem.PA, p []byte) {
	if pa >= onChip {
		d.memory.write(uint64(pa-onChip), p)
		return
	}
	d.bus.WriteDMA(pa, p)
}

func (q *qp) endRead(m *msg) {
	q.reads--
	q.landing[m.land].busy = false
}

func (q *qp) onAtomicAck(p *roce.Packet, psn uint32) {
	if !q.acked(roce.AddPSN(psn, -1)) || q.head == q.tail || q.una != psn {
		return
	}
	m := q.msg(q.head)
	if m.kind != msgAtomic || m.op == prm.WQEOpAtomicWrite || p.AETH().Syndrome().Type() != roce.SyndromeTypeAck {
		q.qs.add(prm.QCReqBadResponse)
		q.failHead(prm.SyndromeBadResp)
		return
	}
	q.rnr = q.rnrMax
	var v [8]byte
	putHost64(v[:], p.AtomicAckETH().Original())
	if !q.land(m, 0, v[:]) {
		return
	}
	m.next = 1
	q.una = roce.AddPSN(psn, 1)
	q.endRead(m)
	q.progress()
}

// Atomics work on 8-byte values in the host's order, which is little endian
// (atomic_req_8B_endianness_mode 1).
func host64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

func putHost64(b []byte, v uint64) {
	_ = b[7]
	for i := range 8 {
		b[i] = byte(v >> (8 * i))
	}
}
