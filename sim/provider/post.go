package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// wqeOpcodes is mlx5_ib_opcode.
var wqeOpcodes = [...]prm.WQEOpcode{
	verbs.WRRDMAWrite: prm.WQEOpRDMAWrite, verbs.WRRDMAWriteImm: prm.WQEOpRDMAWriteImm,
	verbs.WRSend: prm.WQEOpSend, verbs.WRSendImm: prm.WQEOpSendImm, verbs.WRRDMARead: prm.WQEOpRDMARead,
	verbs.WRAtomicCmpSwp: prm.WQEOpAtomicCS, verbs.WRAtomicFetchAdd: prm.WQEOpAtomicFA,
	verbs.WRLocalInv: prm.WQEOpUMR, verbs.WRBindMW: prm.WQEOpUMR, verbs.WRSendInv: prm.WQEOpSendInv,
	verbs.WRTSO: prm.WQEOpTSO, verbs.WRDriver1: prm.WQEOpUMR,
}

// posting is the state of one call of post_send.
type posting struct {
	nreq   int
	inline bool // some request of the list was inline
	// ctrl is where the last control segment begins and ds its size so far. After an
	// error they may belong to the request that failed: the register is then written
	// from it, as the library does: a quirk of the legacy call (qp.c,
	// _mlx5_post_send).
	ctrl int
	ds   int
}

// PostSend is ibv_post_send (qp.c, _mlx5_post_send). All bytes of the list and the
// doorbell record are written at one instant: when the queue's lock is taken, or,
// without a lock, when they are built. The register write leaves at the thread's
// time, after the cost of building.
func (q *QP) PostSend(vt verbs.Thread, wrs []verbs.SendWR) (bad int, err error) {
	t := Of(vt)
	p := q.ctx.proc.Params
	start := t.P.Now()
	t.Core.Run(t.P, p.PostCall)
	left := q.sq.lock.acquire(t, p, q.sendCost(p, wrs))
	left += t.Core.Claim(t.P, &q.sq.line)
	var s posting
	for bad = range wrs {
		if err = q.buildSend(t, &s, &wrs[bad]); err != nil {
			err = fmt.Errorf("post_send: request %d: %w", bad, err)
			break
		}
		s.nreq++
	}
	if err == nil {
		bad = len(wrs)
	}
	if s.nreq > 0 {
		c := &q.ctx.proc.C
		c.SendCalls++
		c.SendWRs += uint64(s.nreq)
		q.record(t, &s)
		q.ringBell(t, &s, left)
	} else {
		t.Core.Run(t.P, left)
	}
	q.sq.lock.release(t)
	t.span("post_send", start, uint64(q.qpn))
	return bad, err
}

// sendCost is the CPU time to build the list, from what it asks for.
func (q *QP) sendCost(p *Params, wrs []verbs.SendWR) sim.Time {
	d := p.Bookkeeping
	for i := range wrs {
		w := &wrs[i]
		segs, payload := 0, 0
		if q.typ == verbs.QPTUD {
			segs = datagramSize / segSize
		}
		switch w.Opcode {
		case verbs.WRRDMAWrite, verbs.WRRDMAWriteImm, verbs.WRRDMARead:
			segs++
		case verbs.WRAtomicCmpSwp, verbs.WRAtomicFetchAdd:
			segs += 2
		case verbs.WRBindMW:
			segs = bindUnits - 1
		case verbs.WRLocalInv:
			segs = unbindUnits - 1
		}
		bytes := prm.CtrlSegmentSize + segs*segSize
		if w.Flags&verbs.SendInline != 0 {
			for j := range w.SGEs {
				payload += int(w.SGEs[j].Length)
			}
			payload = min(payload, q.maxInl)
			bytes += prm.InlineSize(payload)
		} else {
			segs += len(w.SGEs)
			bytes += segSize * len(w.SGEs)
		}
		d += p.BuildWQE + sim.Time(segs)*p.BuildSegment + sim.Time((bytes-1)/wqebb)*p.BuildLine +
			sim.Time((payload+wqebb-1)/wqebb)*p.InlineCopy
	}
	return d
}

// seg is the 16 bytes of the send queue at a running offset.
func (q *QP) seg(off int) []byte {
	return q.ring.at(q.sq.off + off&q.sq.mask)[:segSize:segSize]
}

// buildSend writes one request into the ring.
func (q *QP) buildSend(t *Thread, s *posting, w *verbs.SendWR) error {
	sq := &q.sq
	if int(w.Opcode) >= len(wqeOpcodes) {
		return fmt.Errorf("opcode %d: %w", w.Opcode, syscall.EINVAL)
	}
	if q.overflow(t, sq, s.nreq, q.sendCQ) {
		return fmt.Errorf("the send queue holds %d: %w", sq.maxPost, syscall.ENOMEM)
	}
	if len(w.SGEs) > sq.limit {
		return fmt.Errorf("%d SGEs, limit %d: %w", len(w.SGEs), sq.limit, syscall.ENOMEM)
	}
	idx := sq.posted & uint32(sq.cnt-1)
	s.ctrl, s.ds = int(idx)<<sq.shift, 1
	ctrl := prm.CtrlSegment(q.seg(s.ctrl))
	fm := q.fence(w) | q.signal
	imm := uint32(0)
	switch w.Opcode {
	case verbs.WRSendImm, verbs.WRRDMAWriteImm, verbs.WRSendInv:
		imm = w.Imm
	case verbs.WRBindMW, verbs.WRLocalInv:
		return q.buildUMR(s, w, idx, ctrl, fm)
	}
	ctrl.SetSignature(0)
	ctrl.SetFMCESE(fm)
	ctrl.SetImm(imm)
	if q.typ == verbs.QPTUD {
		q.datagramSeg(t, s, w) // whatever the opcode: the device refuses what is no SEND
	} else if err := q.transport(s, w); err != nil {
		return err
	}
	if w.Flags&verbs.SendInline != 0 && len(w.SGEs) > 0 {
		if err := q.inlineData(t, s, w); err != nil {
			return err
		}
		s.inline = true
	} else {
		q.dataSegs(s, w.SGEs, w.Opcode == verbs.WRAtomicCmpSwp || w.Opcode == verbs.WRAtomicFetchAdd)
	}
	ctrl.Set(wqeOpcodes[w.Opcode], 0, uint16(sq.posted), q.qpn, s.ds, fm, imm)
	sq.wrid[idx], sq.heads[idx] = w.ID, sq.head+uint32(s.nreq)
	sq.posted += uint32((s.ds*segSize + wqebb - 1) / wqebb)
	q.fmCache = 0
	return nil
}

// buildUMR is the rest of buildSend for a bind or a local invalidate. It leaves a fence
// for the request behind it.
func (q *QP) buildUMR(s *posting, w *verbs.SendWR, idx uint32, ctrl prm.CtrlSegment, fm uint8) error {
	key, err := q.umr(s, w)
	if err != nil {
		return err
	}
	sq := &q.sq
	ctrl.Set(prm.WQEOpUMR, 0, uint16(sq.posted), q.qpn, s.ds, fm, key)
	sq.wrid[idx], sq.heads[idx] = w.ID, sq.head+uint32(s.nreq)
	sq.posted += uint32((s.ds*segSize + wqebb - 1) / wqebb)
	q.fmCache = prm.CtrlSmallFence
	return nil
}

// fence is fm_ce_se from the request's flags: IBV_SEND_FENCE overrides the fence that
// an earlier request left for this one.
func (q *QP) fence(w *verbs.SendWR) uint8 {
	fm := q.fmCache
	if w.Flags&verbs.SendFence != 0 {
		fm = prm.CtrlSmallAndFence
	}
	if w.Flags&verbs.SendSignaled != 0 {
		fm |= prm.CtrlCQUpdate
	}
	if w.Flags&verbs.SendSolicited != 0 {
		fm |= prm.CtrlSolicited
	}
	return fm
}

// overflow is mlx5_wq_overflow: the tail is read again under the CQ's lock before the
// queue is called full.
func (q *QP) overflow(t *Thread, w *queue, nreq int, cq *CQ) bool {
	if int(w.head-w.tail)+nreq < w.maxPost {
		return false
	}
	left := cq.lock.acquire(t, q.ctx.proc.Params, 0)
	full := int(w.head-w.tail)+nreq >= w.maxPost
	t.Core.Run(t.P, left)
	cq.lock.release(t)
	t.P.Sync()
	return full
}

// transport writes the segments between control and data.
func (q *QP) transport(s *posting, w *verbs.SendWR) error {
	switch w.Opcode {
	case verbs.WRRDMARead, verbs.WRAtomicCmpSwp, verbs.WRAtomicFetchAdd:
		if q.typ != verbs.QPTRC {
			return nil // the device refuses it
		}
	case verbs.WRRDMAWrite, verbs.WRRDMAWriteImm:
	case verbs.WRDriver1:
		return fmt.Errorf("opcode %d: the UMR of direct verbs is not modelled: %w", w.Opcode, syscall.EOPNOTSUPP)
	default:
		return nil
	}
	atomic := w.Opcode == verbs.WRAtomicCmpSwp || w.Opcode == verbs.WRAtomicFetchAdd
	if atomic && !q.atomics {
		return fmt.Errorf("the device has no atomics: %w", syscall.EOPNOTSUPP)
	}
	prm.RaddrSegment(q.seg(s.ctrl+s.ds*segSize)).Set(w.RemoteAddr, w.RKey)
	s.ds++
	if atomic {
		a := prm.AtomicSegment(q.seg(s.ctrl + s.ds*segSize))
		if w.Opcode == verbs.WRAtomicCmpSwp {
			a.SetSwapAdd(w.Swap)
			a.SetCompare(w.CompareAdd)
		} else {
			a.SetSwapAdd(w.CompareAdd)
		}
		s.ds++
	}
	return nil
}

// dataSegs writes the gather list; entries of length 0 are skipped. Where an atomic
// leaves its result the library writes 8 bytes, whatever the entry says (qp.c,
// set_data_ptr_seg_atomic).
func (q *QP) dataSegs(s *posting, sges []verbs.SGE, atomic bool) {
	for i := range sges {
		if g := &sges[i]; g.Length != 0 {
			n := g.Length
			if atomic {
				n = atomicSize
			}
			prm.DataSegment(q.seg(s.ctrl+s.ds*segSize)).Set(n, g.LKey, g.Addr)
			s.ds++
		}
	}
}

// inlineData copies the payload behind a length word. The copy wraps at the ring's
// end.
func (q *QP) inlineData(t *Thread, s *posting, w *verbs.SendWR) error {
	total := 0
	for i := range w.SGEs {
		total += int(w.SGEs[i].Length)
		if total > q.maxInl {
			return fmt.Errorf("inline data above %d bytes: %w", q.maxInl, syscall.ENOMEM)
		}
	}
	if total == 0 {
		return nil
	}
	off := s.ctrl + s.ds*segSize
	prm.InlineSegment(q.seg(off)).SetLen(total)
	at := off + prm.InlineHeaderSize
	for i := range w.SGEs {
		va, left := w.SGEs[i].Addr, int(w.SGEs[i].Length)
		for left > 0 {
			pos := at & q.sq.mask
			dst := q.ring.at(q.sq.off + pos)
			n := min(left, len(dst), q.sq.mask+1-pos)
			q.load(t, dst[:n], va)
			at, va, left = at+n, va+uint64(n), left-n
		}
	}
	s.ds += prm.InlineSize(total) / segSize
	return nil
}

// glance is the page of the process that inline data last came from.
type glance struct {
	page    mem.VA
	changes uint64 // of the address space when it was looked up
	b       []byte // nil: not one readable page
}

// load reads memory of the process as the library's own loads do: what is not mapped
// ends the process.
func (q *QP) load(t *Thread, p []byte, va uint64) {
	page := mem.VA(va) &^ (mem.PageSize - 1)
	off := int(mem.VA(va) - page)
	g := &q.source
	if space := q.ctx.proc.K.Space; g.page != page || g.changes != space.Changes {
		*g = glance{page, space.Changes, space.Window(page, mem.PageSize, mem.Read)}
	}
	if off+len(p) <= len(g.b) {
		copy(p, g.b[off:])
		return
	}
	if err := q.ctx.proc.K.Space.ReadAt(p, mem.VA(va)); err != nil {
		panic(Abort{fmt.Sprintf("segmentation fault: %q reads %d bytes at %#x: %v", t.name, len(p), va, err)})
	}
}

// record moves the head and stores the doorbell record.
func (q *QP) record(t *Thread, s *posting) {
	q.sq.head += uint32(s.nreq)
	prm.QPDBRec(q.db.b).SetSend(uint16(q.sq.posted))
	if log := q.ctx.proc.DoorbellRecord; log != nil {
		log(t, q.qpn, uint16(q.sq.posted))
	}
}

// ringBell is the rest of post_send_db: lock of the register, BlueFlame or doorbell,
// flush, and the change of halves. t owes the time of what it did before. Offset and buffer size share the lock's line; where
// there is no lock, the queue's or the user's promise protects them.
func (q *QP) ringBell(t *Thread, s *posting, owed sim.Time) {
	bf := q.bf
	t.Core.Run(t.P, owed+t.Core.Costs().DMABarrier+q.ctx.proc.Params.DoorbellRecord)
	owed = 0
	if bf.locked {
		bf.taken++
		wait, cost := bf.lock.Take(t.P, t.Core)
		if wait > 0 {
			bf.waits++
			bf.waited += wait
		}
		owed = cost + t.Core.Claim(t.P, &bf.line)
	} else {
		t.Core.Fence(t.P)
		if bf.buf != 0 {
			t.Core.Touch(t.P, &bf.line)
		}
	}
	if q.blueFlame(s) {
		q.push(t, s, owed)
	} else {
		q.doorbell++
		q.ctx.proc.C.Doorbells++
		t.Core.StoreAfter(t.P, bf.m, bf.off+bf.half, q.seg(s.ctrl)[:prm.DoorbellSize], owed)
	}
	t.Core.Fence(t.P)
	bf.half ^= bf.buf
	if bf.locked {
		bf.lock.Unlock(t.P, t.Core)
	}
}

// blueFlame is the decision of post_send_db.
func (q *QP) blueFlame(s *posting) bool {
	return !q.ctx.env.ShutUpBF && s.nreq == 1 && q.bf.uuarn != 0 && (s.inline || q.ctx.env.PreferBF) &&
		s.ds > 1 && s.ds <= int(q.bf.buf)/segSize
}

// push copies the WQE into the register in blocks of 64 bytes.
func (q *QP) push(t *Thread, s *posting, owed sim.Time) {
	q.blue++
	proc := q.ctx.proc
	bytes := min(align(s.ds*segSize, wqebb), proc.Params.BFLines*wqebb)
	proc.C.BlueFlame++
	proc.C.BlueFlameBytes += uint64(bytes)
	for at := 0; at < bytes; at += wqebb {
		src := q.ring.at(q.sq.off + (s.ctrl+at)&q.sq.mask)[:wqebb]
		t.Core.StoreAfter(t.P, q.bf.m, q.bf.off+q.bf.half+uint64(at), src, owed+proc.Params.BFCopyLine)
		owed = 0
	}
}

// PostRecv is ibv_post_recv (qp.c, mlx5_post_recv): no register is written.
func (q *QP) PostRecv(vt verbs.Thread, wrs []verbs.RecvWR) (bad int, err error) {
	t := Of(vt)
	p := q.ctx.proc.Params
	rq := &q.rq
	start := t.P.Now()
	t.Core.Run(t.P, p.PostCall)
	cost := p.Bookkeeping
	for i := range wrs {
		cost += p.BuildRecv + sim.Time(len(wrs[i].SGEs))*p.BuildSegment
	}
	left := rq.lock.acquire(t, p, cost)
	left += t.Core.Claim(t.P, &rq.line)
	nreq := 0
	for bad = range wrs {
		if err = q.buildRecv(t, nreq, &wrs[bad]); err != nil {
			err = fmt.Errorf("post_recv: request %d: %w", bad, err)
			break
		}
		nreq++
	}
	if err == nil {
		bad = len(wrs)
	}
	if nreq > 0 {
		q.ctx.proc.C.RecvCalls++
		q.ctx.proc.C.RecvWRs += uint64(nreq)
		rq.head += uint32(nreq)
		prm.QPDBRec(q.db.b).SetRecv(uint16(rq.head))
		left += p.DoorbellRecord
		t.Core.DMABarrier(t.P)
	}
	t.Core.Run(t.P, left)
	rq.lock.release(t)
	t.span("post_recv", start, uint64(q.qpn))
	return bad, err
}

func (q *QP) buildRecv(t *Thread, nreq int, w *verbs.RecvWR) error {
	rq := &q.rq
	if q.overflow(t, rq, nreq, q.recvCQ) {
		return fmt.Errorf("the receive queue holds %d: %w", rq.maxPost, syscall.ENOMEM)
	}
	if len(w.SGEs) > rq.limit {
		return fmt.Errorf("%d SGEs, limit %d: %w", len(w.SGEs), rq.limit, syscall.EINVAL)
	}
	idx := (rq.head + uint32(nreq)) & uint32(rq.cnt-1)
	off := rq.off + int(idx)<<rq.shift
	wqe := q.ring.at(off)[: 1<<rq.shift : 1<<rq.shift]
	j := 0
	for i := range w.SGEs {
		if g := &w.SGEs[i]; g.Length != 0 {
			prm.DataSegment(wqe[j*segSize:]).Set(g.Length, g.LKey, g.Addr)
			j++
		}
	}
	if j < rq.maxGS {
		prm.DataSegment(wqe[j*segSize:]).Set(0, prm.InvalidLKey, 0)
	}
	rq.wrid[idx] = w.ID
	return nil
}
