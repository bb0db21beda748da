package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/verbs"
)

// Setters that a request on a UD or XRC QP must have before it is whole.
const settersAddressed = 2

// Ex is ibv_qp_to_qp_ex.
func (q *QP) Ex() verbs.QPEx {
	if q.ex == nil {
		return nil
	}
	return q.ex
}

var _ verbs.QPEx = (*qpEx)(nil)

// SetWR sets wr_id and wr_flags.
func (e *qpEx) SetWR(id uint64, flags verbs.SendFlags) { e.id, e.flags = id, flags }

// WRStart takes the queue's lock. The calls of a batch are calls through pointers that
// do little each: what entering and leaving the library costs is charged here once.
func (e *qpEx) WRStart(vt verbs.Thread) {
	t := Of(vt)
	q := e.q
	p := q.ctx.proc.Params
	start := t.P.Now()
	t.Core.Run(t.P, p.PostCall)
	left := q.sq.lock.acquire(t, p, 0)
	t.Core.Run(t.P, left+t.Core.Claim(t.P, &q.sq.line))
	e.posting, e.err, e.full, e.start = posting{}, nil, false, start
	e.postedBefore, e.fenceBefore = q.sq.posted, q.fmCache
}

// WRComplete rings once for the batch, or takes it back.
func (e *qpEx) WRComplete(vt verbs.Thread) error {
	t := Of(vt)
	q := e.q
	t.Core.Run(t.P, q.ctx.proc.Params.Bookkeeping)
	t.P.Sync()
	err := e.err
	if e.refused {
		err = fmt.Errorf("the QP is in RESET: %w", syscall.EINVAL)
	}
	switch {
	case err != nil:
		e.rollBack()
	case e.nreq > 0:
		c := &q.ctx.proc.C
		c.SendCalls++
		c.SendWRs += uint64(e.nreq)
		q.record(t, &e.posting)
		q.ringBell(t, &e.posting, 0)
	}
	q.sq.lock.release(t)
	t.span("wr_complete", e.start, uint64(q.qpn))
	if err != nil {
		return fmt.Errorf("wr_complete: %w", err)
	}
	return nil
}

// WRAbort takes the batch back.
func (e *qpEx) WRAbort(vt verbs.Thread) {
	t := Of(vt)
	t.P.Sync()
	e.rollBack()
	e.q.sq.lock.release(t)
}

func (e *qpEx) rollBack() { e.q.sq.posted, e.q.fmCache = e.postedBefore, e.fenceBefore }

// fail notes the first error of the batch.
func (e *qpEx) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// begin is _common_wqe_init: the control segment of the next request. ok is false when
// there is no place for it.
func (e *qpEx) begin(t *Thread, op verbs.WROpcode, imm uint32) (ok bool) {
	q := e.q
	if q.allowedOps()&exOps[op] == 0 {
		panic(Abort{fmt.Sprintf("segmentation fault: %q calls a builder that a QP of type %d does not have (opcode %d)", t.name, q.typ, op)})
	}
	return e.beginAs(t, wqeOpcode(op), 0, imm)
}

// beginAs is begin for an opcode of the device's. done is what the completion says that the entry
// does not.
func (e *qpEx) beginAs(t *Thread, op prm.WQEOpcode, done verbs.WCOpcode, imm uint32) (ok bool) {
	q := e.q
	sq := &q.sq
	t.Core.Run(t.P, q.ctx.proc.Params.BuildWQE)
	e.setters = 0
	if e.full = q.overflow(t, sq, e.nreq, q.sendCQ); e.full {
		e.fail(fmt.Errorf("the send queue holds %d: %w", sq.maxPost, syscall.ENOMEM))
		return false
	}
	idx := sq.posted & uint32(sq.cnt-1)
	e.ctrl, e.ds = int(idx)<<sq.shift, 1
	sq.note(idx, e.id, e.nreq)
	sq.requests[idx].driver = done
	fm := q.fence(&verbs.SendWR{Flags: e.flags}) | q.signal
	q.fmCache = 0
	prm.CtrlSegment(q.seg(e.ctrl)).Set(op, 0, uint16(sq.posted), q.qpn, 0, fm, imm)
	return true
}

// exOps are the bits of SendOpsFlags for the builders' opcodes.
var exOps = [...]uint64{verbs.WRRDMAWrite: verbs.QPExRDMAWrite, verbs.WRRDMAWriteImm: verbs.QPExRDMAWriteImm,
	verbs.WRSend: verbs.QPExSend, verbs.WRSendImm: verbs.QPExSendImm, verbs.WRRDMARead: verbs.QPExRDMARead,
	verbs.WRAtomicCmpSwp: verbs.QPExAtomicCmpSwp, verbs.WRAtomicFetchAdd: verbs.QPExAtomicFetchAdd,
	verbs.WRLocalInv: verbs.QPExLocalInv, verbs.WRBindMW: verbs.QPExBindMW, verbs.WRSendInv: verbs.QPExSendInv,
	verbs.WRAtomicWrite: verbs.QPExAtomicWrite}

// build writes everything of a request but its address and its data.
func (e *qpEx) build(vt verbs.Thread, w verbs.SendWR) {
	t := Of(vt)
	q := e.q
	if !e.begin(t, w.Opcode, w.Imm) {
		e.nreq++
		return
	}
	switch q.typ {
	case verbs.QPTUD, verbs.QPTDriver:
		e.ds += datagramSize / segSize
	case verbs.QPTXRCSend:
		e.ds += prm.XRCSegmentSize / segSize
	}
	if q.typ != verbs.QPTUD {
		if err := q.transport(&e.posting, &w); err != nil {
			e.fail(err)
		}
	}
	t.Core.Run(t.P, sim.Time(e.ds-1)*q.ctx.proc.Params.BuildSegment)
	e.data = e.ctrl + e.ds*segSize
	e.nreq++
}

// finish is _common_wqe_finalize: the request is whole.
func (e *qpEx) finish(t *Thread) {
	q := e.q
	prm.CtrlSegment(q.seg(e.ctrl)).SetDS(e.ds)
	bytes := e.ds * segSize
	t.Core.Run(t.P, sim.Time((bytes-1)/wqebb)*q.ctx.proc.Params.BuildLine)
	q.sq.posted += uint32((bytes + wqebb - 1) / wqebb)
}

// addressed says whether each request names its target.
func (q *QP) addressed() bool {
	return q.typ == verbs.QPTUD || q.typ == verbs.QPTXRCSend || q.typ == verbs.QPTDriver
}

// set ends a setter.
func (e *qpEx) set(t *Thread) {
	if !e.q.addressed() || e.setters == settersAddressed-1 {
		e.finish(t)
		return
	}
	e.setters++
}

// WRSend builds a SEND.
func (e *qpEx) WRSend(t verbs.Thread) { e.build(t, verbs.SendWR{Opcode: verbs.WRSend}) }

// WRSendImm builds a SEND with immediate.
func (e *qpEx) WRSendImm(t verbs.Thread, imm uint32) {
	e.build(t, verbs.SendWR{Opcode: verbs.WRSendImm, Imm: imm})
}

// WRSendInv builds a SEND that invalidates a key of the peer.
func (e *qpEx) WRSendInv(t verbs.Thread, rkey uint32) {
	e.build(t, verbs.SendWR{Opcode: verbs.WRSendInv, Imm: rkey})
}

// WRRDMAWrite builds an RDMA write.
func (e *qpEx) WRRDMAWrite(t verbs.Thread, rkey uint32, remote uint64) {
	e.build(t, verbs.SendWR{Opcode: verbs.WRRDMAWrite, RKey: rkey, RemoteAddr: remote})
}

// WRRDMAWriteImm builds an RDMA write with immediate.
func (e *qpEx) WRRDMAWriteImm(t verbs.Thread, rkey uint32, remote uint64, imm uint32) {
	e.build(t, verbs.SendWR{Opcode: verbs.WRRDMAWriteImm, RKey: rkey, RemoteAddr: remote, Imm: imm})
}

// WRRDMARead builds an RDMA read.
func (e *qpEx) WRRDMARead(t verbs.Thread, rkey uint32, remote uint64) {
	e.build(t, verbs.SendWR{Opcode: verbs.WRRDMARead, RKey: rkey, RemoteAddr: remote})
}

// WRAtomicCmpSwp builds a compare-and-swap.
func (e *qpEx) WRAtomicCmpSwp(t verbs.Thread, rkey uint32, remote, compare, swap uint64) {
	e.build(t, verbs.SendWR{Opcode: verbs.WRAtomicCmpSwp, RKey: rkey, RemoteAddr: remote, CompareAdd: compare, Swap: swap})
}

// WRAtomicFetchAdd builds a fetch-and-add.
func (e *qpEx) WRAtomicFetchAdd(t verbs.Thread, rkey uint32, remote, add uint64) {
	e.build(t, verbs.SendWR{Opcode: verbs.WRAtomicFetchAdd, RKey: rkey, RemoteAddr: remote, CompareAdd: add})
}

// wqeOpcode is the opcode of a builder's request; ibv_post_send has no atomic write.
func wqeOpcode(op verbs.WROpcode) prm.WQEOpcode {
	if op == verbs.WRAtomicWrite {
		return prm.WQEOpAtomicWrite
	}
	return wqeOpcodes[op]
}

// WRAtomicWrite builds an atomic write, whose data goes inline: it needs no setter.
func (e *qpEx) WRAtomicWrite(vt verbs.Thread, rkey uint32, remote uint64, data [8]byte) {
	t := Of(vt)
	q := e.q
	if !e.begin(t, verbs.WRAtomicWrite, 0) {
		return
	}
	prm.RaddrSegment(q.seg(e.ctrl+segSize)).Set(remote, rkey)
	s := prm.InlineSegment(q.seg(e.ctrl + 2*segSize))
	s.SetLen(len(data))
	copy(s[prm.InlineHeaderSize:], data[:])
	e.ds += 2
	t.Core.Run(t.P, 2*q.ctx.proc.Params.BuildSegment)
	e.nreq++
	e.finish(t)
}

// WRLocalInv builds a local invalidate.
func (e *qpEx) WRLocalInv(t verbs.Thread, rkey uint32) {
	e.buildUMR(Of(t), &verbs.SendWR{Opcode: verbs.WRLocalInv, Imm: rkey})
}

// WRBindMW builds a bind. The library takes any window for one of type 2.
func (e *qpEx) WRBindMW(t verbs.Thread, mw verbs.MW, rkey uint32, info verbs.MWBindInfo) {
	m, ok := mw.(*MW)
	if !ok || m == nil {
		panic(Abort{fmt.Sprintf("segmentation fault: %q binds no window", Of(t).name)})
	}
	e.buildUMR(Of(t), &verbs.SendWR{Opcode: verbs.WRBindMW,
		Bind: &verbs.MWBindWR{MW: &MW{typ: verbs.MWType2, rkey: m.rkey}, RKey: rkey, Info: info}})
}

// buildUMR is _build_umr_wqe: the request needs no setter.
func (e *qpEx) buildUMR(t *Thread, w *verbs.SendWR) {
	q := e.q
	if !e.begin(t, w.Opcode, 0) {
		return
	}
	key, err := q.umr(&e.posting, w)
	if err != nil {
		e.fail(err)
		return
	}
	prm.CtrlSegment(q.seg(e.ctrl)).SetImm(key)
	t.Core.Run(t.P, sim.Time(e.ds-1)*q.ctx.proc.Params.BuildSegment)
	q.fmCache = prm.CtrlSmallFence
	e.nreq++
	e.finish(t)
}

// SetSGE is ibv_wr_set_sge.
func (e *qpEx) SetSGE(vt verbs.Thread, sge verbs.SGE) {
	one := [1]verbs.SGE{sge}
	e.setData(Of(vt), one[:])
}

// SetSGEList is ibv_wr_set_sge_list.
func (e *qpEx) SetSGEList(vt verbs.Thread, sges []verbs.SGE) {
	t := Of(vt)
	if len(sges) > e.q.sq.maxGS {
		e.fail(fmt.Errorf("%d SGEs, limit %d: %w", len(sges), e.q.sq.maxGS, syscall.ENOMEM))
		sges = nil
	}
	e.setData(t, sges)
}

func (e *qpEx) setData(t *Thread, sges []verbs.SGE) {
	if e.full {
		return
	}
	t.Core.Run(t.P, sim.Time(len(sges))*e.q.ctx.proc.Params.BuildSegment)
	e.q.dataSegs(&e.posting, sges, false)
	e.set(t)
}

// SetInlineData is ibv_wr_set_inline_data.
func (e *qpEx) SetInlineData(vt verbs.Thread, addr uint64, length uint32) {
	e.setInline(Of(vt), []verbs.SGE{{Addr: addr, Length: length}})
}

// SetInlineDataList is ibv_wr_set_inline_data_list.
func (e *qpEx) SetInlineDataList(vt verbs.Thread, bufs []verbs.DataBuf) {
	sges := make([]verbs.SGE, len(bufs))
	for i, b := range bufs {
		sges[i] = verbs.SGE{Addr: b.Addr, Length: b.Length}
	}
	e.setInline(Of(vt), sges)
}

func (e *qpEx) setInline(t *Thread, pieces []verbs.SGE) {
	if e.full {
		return
	}
	q := e.q
	t.P.Sync() // the data may be what the device writes
	before := e.ds
	if err := q.inlineData(t, &e.posting, &verbs.SendWR{SGEs: pieces}); err != nil {
		e.fail(err)
	} else {
		e.inline = true
	}
	lines := ((e.ds-before)*segSize + wqebb - 1) / wqebb
	t.Core.Run(t.P, sim.Time(lines)*q.ctx.proc.Params.InlineCopy)
	e.set(t)
}

// SetUDAddr is ibv_wr_set_ud_addr.
func (e *qpEx) SetUDAddr(vt verbs.Thread, ah verbs.AH, remoteQPN, remoteQKey uint32) {
	t := Of(vt)
	if e.q.typ != verbs.QPTUD {
		panic(Abort{fmt.Sprintf("segmentation fault: %q gives a datagram's address to a QP of type %d", t.name, e.q.typ)})
	}
	if e.full {
		return
	}
	s := posting{ctrl: e.ctrl, ds: 1}
	e.q.datagramSeg(t, &s, &verbs.SendWR{AH: ah, RemoteQPN: remoteQPN, RemoteQKey: remoteQKey})
	e.set(t)
}

// SetXRCSRQN is ibv_wr_set_xrc_srqn.
func (e *qpEx) SetXRCSRQN(vt verbs.Thread, remoteSRQN uint32) {
	t := Of(vt)
	if e.q.typ != verbs.QPTXRCSend {
		panic(Abort{fmt.Sprintf("segmentation fault: %q gives the SRQ of an XRC peer to a QP of type %d", t.name, e.q.typ)})
	}
	if e.full {
		return
	}
	s := posting{ctrl: e.ctrl, ds: 1}
	e.q.xrcSeg(&s, &verbs.SendWR{XRCRemoteSRQN: remoteSRQN})
	e.set(t)
}
