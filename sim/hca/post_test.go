package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// wr is a work request of the driver.
type wr struct {
	op      prm.WQEOpcode
	unsig   bool
	fence   bool
	se      bool
	raddr   uint64
	rkey    uint32
	imm     uint32
	swap    uint64
	compare uint64
	inline  []byte
	sges    []sge
	av      func(a prm.AVSegment) // of a datagram
	srqn    uint32                // of XRC
	stream  uint16                // of a DCI
}

type sge struct {
	key uint32
	va  uint64
	n   uint32
}

func (r *mr) sge(off, n int) sge { return sge{r.lkey, r.va + uint64(off), uint32(n)} }

// build lays the WQE of w out.
func (q *tQP) build(w wr) []byte {
	b := make([]byte, prm.CtrlSegmentSize, prm.MaxWQEBytes)
	grow := func(n int) []byte {
		b = b[:len(b)+n]
		return b[len(b)-n:]
	}
	if w.av != nil {
		a := prm.AVSegment(grow(prm.AVSegmentSize))
		a.SetExtended(true)
		w.av(a)
	}
	if q.xrc {
		prm.XRCSegment(grow(prm.XRCSegmentSize)).SetSRQN(w.srqn)
	}
	switch w.op {
	case prm.WQEOpRDMAWrite, prm.WQEOpRDMAWriteImm, prm.WQEOpRDMARead, prm.WQEOpAtomicCS, prm.WQEOpAtomicFA, prm.WQEOpAtomicWrite:
		prm.RaddrSegment(grow(prm.RaddrSegmentSize)).Set(w.raddr, w.rkey)
	}
	switch w.op {
	case prm.WQEOpAtomicCS, prm.WQEOpAtomicFA:
		a := prm.AtomicSegment(grow(prm.AtomicSegmentSize))
		a.SetSwapAdd(w.swap)
		a.SetCompare(w.compare)
	}
	if w.inline != nil {
		s := prm.InlineSegment(grow(prm.InlineSize(len(w.inline))))
		s.SetLen(len(w.inline))
		copy(s.Data(), w.inline)
	}
	for _, s := range w.sges {
		prm.DataSegment(grow(prm.DataSegmentSize)).Set(s.n, s.key, s.va)
	}
	fl := uint8(prm.CtrlCQUpdate)
	if w.unsig {
		fl = 0
	}
	if w.fence {
		fl |= prm.CtrlSmallAndFence
	}
	if w.se {
		fl |= prm.CtrlSolicited
	}
	c := prm.CtrlSegment(b)
	c.Set(w.op, 0, q.pi, q.n, len(b)/16, fl, w.imm)
	c.SetDCIStream(w.stream)
	return b
}

// put lays WQEs into the ring and the count into the doorbell record.
func (q *tQP) put(ws ...wr) []byte {
	var b []byte
	for _, w := range ws {
		b = q.build(w)
		q.last = q.pi
		for i := 0; i < len(b); i += 16 {
			at := (int(q.pi)*64 + i) % (tBlocks * 64)
			q.h.m.Write(q.sq+mem.PA(at), b[i:i+16])
		}
		q.pi += uint16((len(b) + 63) / 64)
	}
	q.record()
	return b
}

func (q *tQP) record() {
	var db [8]byte
	prm.QPDBRec(db[:]).SetSend(q.pi)
	prm.QPDBRec(db[:]).SetRecv(q.rqPI)
	q.h.m.Write(q.db, db[:])
}

// reg is the offset of the half of the bfreg that is next.
func (q *tQP) reg() uint64 {
	off := uint64(q.uar)*4096 + prm.UARBFOffset + q.half
	q.half ^= 256
	return off
}

// post posts with an 8-byte doorbell.
func (q *tQP) post(ws ...wr) {
	b := q.put(ws...)
	q.h.d.MMIOWrite(q.reg(), b[:8])
}

// push posts one WQE with BlueFlame.
func (q *tQP) push(w wr) {
	b := q.put(w)
	p := make([]byte, (len(b)+63)/64*64)
	copy(p, b)
	off := q.reg()
	for i := 0; i < len(p); i += 64 {
		q.h.d.MMIOWrite(off+uint64(i), p[i:i+64])
	}
}

// recv posts a receive.
func (q *tQP) recv(sges ...sge) {
	var b [64]byte
	for i := range 4 {
		s := prm.DataSegment(b[i*16 : i*16+16])
		if i < len(sges) {
			s.Set(sges[i].n, sges[i].key, sges[i].va)
		} else {
			s.Set(0, prm.InvalidLKey, 0)
			break
		}
	}
	q.h.m.Write(q.rq+mem.PA(int(q.rqPI)%tRecvs*64), b[:])
	q.rqPI++
	q.record()
}
