package kit

import (
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Operations that each type of QP may post the extended way.
const (
	OpsUD = verbs.QPExSend | verbs.QPExSendImm
	OpsUC = OpsUD | verbs.QPExSendInv | verbs.QPExRDMAWrite | verbs.QPExRDMAWriteImm | verbs.QPExLocalInv | verbs.QPExBindMW
	OpsRC = OpsUC | verbs.QPExRDMARead | verbs.QPExAtomicCmpSwp | verbs.QPExAtomicFetchAdd
)

// Extended is the QP's extended way to post.
func (q *QP) Extended(c *spec.C) verbs.QPEx {
	x := q.QP.Ex()
	if x == nil {
		c.Failf("the QP was created with send_ops_flags %#x and is no ibv_qp_ex", q.Opt.SendOps)
	}
	return x
}

// PostEx posts requests the extended way, in one batch that must be accepted.
func (q *QP) PostEx(c *spec.C, wrs ...verbs.SendWR) {
	x := q.Extended(c)
	x.WRStart(c.T)
	for i := range wrs {
		Build(c, x, &wrs[i])
	}
	ok(c, "wr_complete", x.WRComplete(c.T))
}

// Build calls the builder and the setters of a request.
func Build(c *spec.C, x verbs.QPEx, w *verbs.SendWR) {
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
		c.Errorf("no builder for opcode %d", w.Opcode)
	}
	setData(t, x, w)
	if w.AH != nil {
		x.SetUDAddr(t, w.AH, w.RemoteQPN, w.RemoteQKey)
	}
}

// setData uses the setter for one piece or the one for several.
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
