package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/rule"
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

// buildSend writes one request into the ring.
func (q *QP) buildSend(t *Thread, s *posting, w *verbs.SendWR) error {
	sq := &q.sq
	if int(w.Opcode) >= len(wqeOpcodes) {
		return unknownOpcode(w)
	}
	if q.overflow(t, sq, s.nreq, q.sendCQ) && !t.breaks(rule.SendQueueHasALimit) {
		return sq.full()
	}
	if len(w.SGEs) > sq.limit {
		return sq.tooManySGEs(w)
	}
	idx := sq.posted & uint32(sq.cnt-1)
	s.ctrl, s.ds, s.copied = int(idx)<<sq.shift, 1, 0
	s.block = q.block(s.ctrl)
	ctrl := prm.CtrlSegment(s.block[:segSize:segSize])
	fm := q.fence(w) | q.signal
	if t.breaks(rule.FenceIsPassedOn) {
		fm &^= prm.CtrlFenceMask
	}
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
	} else if q.raw() {
		if err := q.ethernetSeg(t, s, w); err != nil {
			return err
		}
	} else {
		if q.typ == verbs.QPTXRCSend {
			q.xrcSeg(s, w)
		}
		if w.Opcode == verbs.WRRDMAWrite && s.ds == 1 { // most are
			prm.RaddrSegment(s.block[segSize:]).Set(w.RemoteAddr, w.RKey)
			s.ds++
		} else if err := q.transport(s, w); err != nil {
			return err
		}
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
	sq.note(idx, w.ID, s.nreq)
	sq.posted += uint32((s.ds*segSize + wqebb - 1) / wqebb)
	q.fmCache = 0
	return nil
}

// The errors of buildSend are made in functions of their own: it is called for each request.

//go:noinline
func unknownOpcode(w *verbs.SendWR) error {
	return fmt.Errorf("opcode %d: %w", w.Opcode, syscall.EINVAL)
}

//go:noinline
func (q *queue) full() error {
	return fmt.Errorf("the send queue holds %d: %w", q.maxPost, syscall.ENOMEM)
}

//go:noinline
func (q *queue) tooManySGEs(w *verbs.SendWR) error {
	return fmt.Errorf("%d SGEs, limit %d: %w", len(w.SGEs), q.limit, syscall.ENOMEM)
}

//go:noinline
func (q *QP) tooMuchInline() error {
	return fmt.Errorf("inline data above %d B: %w", q.maxInl, syscall.ENOMEM)
}

// buildUMR is the rest of buildSend for a bind or a local invalidate. It leaves a fence
// for the request behind it.
func (q *QP) buildUMR(s *posting, w *verbs.SendWR, idx uint32, ctrl prm.CtrlSegment, fm uint8) error {
	sq := &q.sq
	sq.note(idx, w.ID, s.nreq)
	key, err := q.umr(s, w)
	if err != nil {
		return err
	}
	ctrl.Set(prm.WQEOpUMR, 0, uint16(sq.posted), q.qpn, s.ds, fm, key)
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

// xrcSeg says which SRQ of the peer receives.
//
//go:noinline
func (q *QP) xrcSeg(s *posting, w *verbs.SendWR) {
	g := prm.XRCSegment(s.next(q)[:prm.XRCSegmentSize])
	g.SetSRQN(w.XRCRemoteSRQN)
	s.ds++
}

// transport writes the segments between control and data.
//
//go:noinline
func (q *QP) transport(s *posting, w *verbs.SendWR) error {
	switch w.Opcode {
	case verbs.WRRDMARead, verbs.WRAtomicCmpSwp, verbs.WRAtomicFetchAdd:
		if q.typ != verbs.QPTRC && q.typ != verbs.QPTXRCSend && q.typ != verbs.QPTDriver {
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
	prm.RaddrSegment(s.next(q)).Set(w.RemoteAddr, w.RKey)
	s.ds++
	if atomic {
		a := prm.AtomicSegment(s.next(q))
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
			prm.DataSegment(s.next(q)).Set(n, g.LKey, g.Addr)
			s.ds++
		}
	}
}

// inlineData copies the payload behind a length word. The copy wraps at the ring's
// end.
func (q *QP) inlineData(t *Thread, s *posting, w *verbs.SendWR) error {
	if len(w.SGEs) != 1 {
		return q.inlineList(t, s, w)
	}
	n, at := w.SGEs[0].Length, uint32(s.ds*segSize)
	if n == 0 || n > uint32(q.maxInl) || at+prm.InlineHeaderSize+n > uint32(len(s.block)) {
		return q.inlineList(t, s, w)
	}
	b := s.block[at : at+prm.InlineHeaderSize+n]
	prm.InlineSegment(b).SetLen(int(n))
	q.load(t, b[prm.InlineHeaderSize:], w.SGEs[0].Addr)
	s.ds += prm.InlineSize(int(n)) / segSize
	s.copied = int(n)
	return nil
}

// inlineList is inlineData of several pieces, and of what goes on in another block.
//
//go:noinline
func (q *QP) inlineList(t *Thread, s *posting, w *verbs.SendWR) error {
	total := 0
	for i := range w.SGEs {
		total += int(w.SGEs[i].Length)
		if total > q.maxInl && !t.breaks(rule.InlineHasALimit) {
			return q.tooMuchInline()
		}
	}
	if total == 0 {
		return nil
	}
	prm.InlineSegment(s.next(q)).SetLen(total)
	q.gatherInline(t, s, w)
	s.ds += prm.InlineSize(total) / segSize
	s.copied = total
	return nil
}

// gatherInline copies the pieces.
func (q *QP) gatherInline(t *Thread, s *posting, w *verbs.SendWR) {
	at := s.ctrl + s.ds*segSize + prm.InlineHeaderSize
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
}

// load reads memory of the process as the library's own loads do: what is not mapped
// ends the process.
func (q *QP) load(t *Thread, p []byte, va uint64) {
	page := mem.VA(va) &^ (mem.PageSize - 1)
	off := int(mem.VA(va) - page)
	g := &q.source
	if g.page != page || g.changes != q.ctx.proc.K.Space.Changes {
		q.lookUp(page)
	}
	if off+len(p) <= len(g.b) {
		copy(p, g.b[off:])
		return
	}
	q.loadSlowly(t, p, va)
}

// lookUp finds a page that inline data comes from.
//
//go:noinline
func (q *QP) lookUp(page mem.VA) {
	space := q.ctx.proc.K.Space
	q.source = inlinePageCache{page, space.Changes, space.Window(page, mem.PageSize, mem.Read)}
}

//go:noinline
func (q *QP) loadSlowly(t *Thread, p []byte, va uint64) {
	if err := q.ctx.proc.K.Space.ReadAt(p, mem.VA(va)); err != nil {
		panic(Abort{fmt.Sprintf("segmentation fault: %q reads %d B at %#x: %v", t.name, len(p), va, err)})
	}
}

// overflow is mlx5_wq_overflow: the tail is read again under the CQ's lock before the
// queue is called full.
func (q *QP) overflow(t *Thread, w *queue, nreq int, cq *CQ) bool {
	return int(w.head-w.tail)+nreq >= w.maxPost && q.overflowSurely(t, w, nreq, cq)
}

//go:noinline
func (q *QP) overflowSurely(t *Thread, w *queue, nreq int, cq *CQ) bool {
	left := cq.lock.acquire(t, q.ctx.proc.Params, 0)
	full := int(w.head-w.tail)+nreq >= w.maxPost
	t.Core.Run(t.P, left)
	cq.lock.release(t)
	t.P.Sync()
	return full
}
