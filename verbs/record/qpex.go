package record

import (
	"fmt"

	"github.com/rdmasim/rdmasim/verbs"
)

// qpEx records a batch of the extended way to post when it ends, as its calls one after
// another.
type qpEx struct {
	verbs.QPEx
	q     *qp
	calls []string
}

func (q *qp) Ex() verbs.QPEx {
	x := q.QP.Ex()
	if x == nil {
		return nil
	}
	plain := func() *qpEx { return &qpEx{QPEx: x, q: q} }
	if d, ok := x.(verbs.DirectQPEx); ok {
		return wrap(q.r, x, func() *directEx { return &directEx{plain(), d} })
	}
	return wrap(q.r, x, plain)
}

func (e *qpEx) note(format string, a ...any) { e.calls = append(e.calls, fmt.Sprintf(format, a...)) }

func (e *qpEx) end(t verbs.Thread, name string, err error) {
	e.q.r.add(t, name, append([]string{e.q.name()}, e.calls...), err)
	e.calls = e.calls[:0]
}

func (e *qpEx) remote(rkey uint32, addr uint64) string {
	return e.q.r.addr(addr) + ":" + e.q.r.key(rkey)
}

func (e *qpEx) SetWR(id uint64, flags verbs.SendFlags) {
	e.note("wr_id %d flags %#x", id, uint32(flags))
	e.QPEx.SetWR(id, flags)
}

func (e *qpEx) WRStart(t verbs.Thread) { e.QPEx.WRStart(innerThread(t)) }

func (e *qpEx) WRComplete(t verbs.Thread) error {
	err := e.QPEx.WRComplete(innerThread(t))
	e.end(t, "wr_complete", err)
	return err
}

func (e *qpEx) WRAbort(t verbs.Thread) {
	e.QPEx.WRAbort(innerThread(t))
	e.end(t, "wr_abort", nil)
}

func (e *qpEx) WRSend(t verbs.Thread) {
	e.note("send")
	e.QPEx.WRSend(innerThread(t))
}

func (e *qpEx) WRSendImm(t verbs.Thread, imm uint32) {
	e.note("send imm %#x", imm)
	e.QPEx.WRSendImm(innerThread(t), imm)
}

func (e *qpEx) WRSendInv(t verbs.Thread, rkey uint32) {
	e.note("send inv %s", e.q.r.key(rkey))
	e.QPEx.WRSendInv(innerThread(t), rkey)
}

func (e *qpEx) WRRDMAWrite(t verbs.Thread, rkey uint32, remote uint64) {
	e.note("write to %s", e.remote(rkey, remote))
	e.QPEx.WRRDMAWrite(innerThread(t), rkey, remote)
}

func (e *qpEx) WRRDMAWriteImm(t verbs.Thread, rkey uint32, remote uint64, imm uint32) {
	e.note("write to %s imm %#x", e.remote(rkey, remote), imm)
	e.QPEx.WRRDMAWriteImm(innerThread(t), rkey, remote, imm)
}

func (e *qpEx) WRRDMARead(t verbs.Thread, rkey uint32, remote uint64) {
	e.note("read from %s", e.remote(rkey, remote))
	e.QPEx.WRRDMARead(innerThread(t), rkey, remote)
}

func (e *qpEx) WRAtomicCmpSwp(t verbs.Thread, rkey uint32, remote, compare, swap uint64) {
	e.note("compare %d swap %d at %s", compare, swap, e.remote(rkey, remote))
	e.QPEx.WRAtomicCmpSwp(innerThread(t), rkey, remote, compare, swap)
}

func (e *qpEx) WRAtomicFetchAdd(t verbs.Thread, rkey uint32, remote, add uint64) {
	e.note("add %d at %s", add, e.remote(rkey, remote))
	e.QPEx.WRAtomicFetchAdd(innerThread(t), rkey, remote, add)
}

func (e *qpEx) WRAtomicWrite(t verbs.Thread, rkey uint32, remote uint64, data [8]byte) {
	e.note("atomic write of %x to %s", data, e.remote(rkey, remote))
	e.QPEx.WRAtomicWrite(innerThread(t), rkey, remote, data)
}

func (e *qpEx) WRLocalInv(t verbs.Thread, rkey uint32) {
	e.note("local inv %s", e.q.r.key(rkey))
	e.QPEx.WRLocalInv(innerThread(t), rkey)
}

func (e *qpEx) WRBindMW(t verbs.Thread, mw verbs.MW, rkey uint32, info verbs.MWBindInfo) {
	e.note("bind %s to %s", e.q.r.key(rkey), e.q.r.window(info))
	info.MR = bare(info.MR)
	e.QPEx.WRBindMW(innerThread(t), bare(mw), rkey, info)
}

func (e *qpEx) SetSGE(t verbs.Thread, sge verbs.SGE) {
	e.note("sge %s", e.q.r.sges([]verbs.SGE{sge}))
	e.QPEx.SetSGE(innerThread(t), sge)
}

func (e *qpEx) SetSGEList(t verbs.Thread, sges []verbs.SGE) {
	e.note("sges %s", e.q.r.sges(sges))
	e.QPEx.SetSGEList(innerThread(t), sges)
}

func (e *qpEx) SetInlineData(t verbs.Thread, addr uint64, length uint32) {
	e.note("inline %s:%d", e.q.r.addr(addr), length)
	e.QPEx.SetInlineData(innerThread(t), addr, length)
}

func (e *qpEx) SetInlineDataList(t verbs.Thread, bufs []verbs.DataBuf) {
	for _, b := range bufs {
		e.note("inline %s:%d", e.q.r.addr(b.Addr), b.Length)
	}
	e.QPEx.SetInlineDataList(innerThread(t), bufs)
}

func (e *qpEx) SetUDAddr(t verbs.Thread, ah verbs.AH, remoteQPN, remoteQKey uint32) {
	e.note("to %s qkey %#x", e.q.r.qpn(remoteQPN), remoteQKey)
	e.QPEx.SetUDAddr(innerThread(t), bare(ah), remoteQPN, remoteQKey)
}
