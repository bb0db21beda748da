package kit

import (
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Operations that each type of QP may post through the extended interface.
const (
	OpsUD = verbs.QPExSend | verbs.QPExSendImm
	OpsUC = OpsUD | verbs.QPExSendInv | verbs.QPExRDMAWrite | verbs.QPExRDMAWriteImm | verbs.QPExLocalInv | verbs.QPExBindMW
	OpsRC = OpsUC | verbs.QPExRDMARead | verbs.QPExAtomicCmpSwp | verbs.QPExAtomicFetchAdd
)

// QPEx returns the QP's extended interface for posting (ibv_qp_ex). It fails the case if there is
// none.
func (q *QP) QPEx(c *spec.C) verbs.QPEx {
	x := q.QP.Ex()
	if x == nil {
		c.Failf("the QP was created with send_ops_flags %#x and is no ibv_qp_ex", q.Opt.SendOps)
	}
	return x
}

// PostEx posts requests through the extended interface, in one batch, and fails the case if they
// are refused.
func (q *QP) PostEx(c *spec.C, wrs ...verbs.SendWR) {
	if q.Opt.SendOps == 0 {
		q.QPEx(c) // which says what is wrong
	}
	_, err := q.TryPost(c, wrs)
	ok(c, "wr_complete", err)
}

// TryPost posts requests through the interface for which the QP was made. A list is posted up to
// the request bad that is refused; of a batch of the extended interface nothing is posted then, and
// bad is 0.
func (q *QP) TryPost(c *spec.C, wrs []verbs.SendWR) (bad int, err error) {
	if q.Opt.SendOps == 0 {
		return q.PostSend(c.T, wrs)
	}
	x := q.QPEx(c)
	x.WRStart(c.T)
	for i := range wrs {
		BuildWR(c, x, &wrs[i])
	}
	return 0, x.WRComplete(c.T)
}

// BuildWR builds a request through x, between WRStart and WRComplete: SetWR, the builder of the
// opcode, and the setters. An opcode for which it has no builder ends the case without a verdict.
func BuildWR(c *spec.C, x verbs.QPEx, w *verbs.SendWR) {
	x.SetWR(w.ID, w.Flags&^verbs.SendInline)
	t := c.T
	switch w.Opcode {
	case verbs.WRSend:
		x.WRSend(t)
	case verbs.WRSendImm:
		x.WRSendImm(t, w.Imm)
	case verbs.WRSendInv:
		x.WRSendInv(t, w.Imm)
	case verbs.WRRDMAWrite:
		x.WRRDMAWrite(t, w.RKey, w.RemoteAddr)
	case verbs.WRRDMAWriteImm:
		x.WRRDMAWriteImm(t, w.RKey, w.RemoteAddr, w.Imm)
	case verbs.WRRDMARead:
		x.WRRDMARead(t, w.RKey, w.RemoteAddr)
	case verbs.WRAtomicCmpSwp:
		x.WRAtomicCmpSwp(t, w.RKey, w.RemoteAddr, w.CompareAdd, w.Swap)
	case verbs.WRAtomicFetchAdd:
		x.WRAtomicFetchAdd(t, w.RKey, w.RemoteAddr, w.CompareAdd)
	case verbs.WRLocalInv:
		x.WRLocalInv(t, w.Imm)
		return
	case verbs.WRBindMW:
		x.WRBindMW(t, w.Bind.MW, w.Bind.RKey, w.Bind.Info)
		return
	default:
		c.Errorf("no builder for opcode %s", spec.Words(w.Opcode))
	}
	setData(t, x, w)
	if w.AH != nil {
		x.SetUDAddr(t, w.AH, w.RemoteQPN, w.RemoteQKey)
	}
	if w.XRCRemoteSRQN != 0 {
		x.SetXRCSRQN(t, w.XRCRemoteSRQN)
	}
}

// setData calls the setter for one SGE or the one for a list.
func setData(t verbs.Thread, x verbs.QPEx, w *verbs.SendWR) {
	inline := w.Flags&verbs.SendInline != 0
	switch {
	case len(w.SGEs) == 1 && inline:
		x.SetInlineData(t, w.SGEs[0].Addr, w.SGEs[0].Length)
	case len(w.SGEs) == 1:
		x.SetSGE(t, w.SGEs[0])
	case inline:
		bufs := make([]verbs.DataBuf, len(w.SGEs))
		for i, g := range w.SGEs {
			bufs[i] = verbs.DataBuf{Addr: g.Addr, Length: g.Length}
		}
		x.SetInlineDataList(t, bufs)
	default:
		x.SetSGEList(t, w.SGEs)
	}
}
