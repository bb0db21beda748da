package player

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/rdmasim/rdmasim/verbs"
)

func (a *Agent) createQP(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	pd, err := a.pd(c)
	if err != nil {
		return err
	}
	return a.createQPOn(t, pd, c, r)
}

func (a *Agent) createTDQP(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	base, err := a.pd(c)
	if err != nil {
		return err
	}
	td, err := a.ctx.AllocTD(t, verbs.TDInitAttr{})
	if err != nil {
		return err
	}
	pd, err := a.ctx.AllocParentDomain(t, verbs.ParentDomainAttr{PD: base, TD: td})
	if err != nil {
		return err
	}
	a.clean = append(a.clean, func(t verbs.Thread) { _ = td.Dealloc(t) }, func(t verbs.Thread) { _ = pd.Dealloc(t) })
	return a.createQPOn(t, pd, c, r)
}

func (a *Agent) createQPOn(t verbs.Thread, pd verbs.PD, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	arg := func(name string, def uint32) uint32 {
		if v, ok := c.Args[name]; ok {
			return uint32(v)
		}
		return def
	}
	var srq verbs.SRQ
	if n := c.Args["srq"]; n != 0 {
		var err error
		if srq, err = pick(a.srqs, n, "srq"); err != nil {
			return err
		}
	}
	qp, err := pd.CreateQP(t, verbs.QPInitAttr{SRQ: srq, Type: verbs.QPType(arg("type", uint32(verbs.QPTRC))), SendCQ: a.cq, RecvCQ: a.cq,
		SigAll: c.Args["sig_all"] != 0,
		Cap: verbs.QPCap{MaxSendWR: arg("send_wr", 64), MaxRecvWR: arg("recv_wr", 64), MaxSendSGE: arg("send_sge", 1),
			MaxRecvSGE: arg("recv_sge", 1), MaxInline: arg("inline", 0)}})
	if err != nil {
		return err
	}
	a.qps = append(a.qps, qp)
	r.Values["qp"], r.Values["qpn"] = uint64(len(a.qps)), uint64(qp.QPN())
	r.Values["max_inline"] = uint64(qp.Caps().MaxInline)
	if m, ok := qp.(verbs.Mlx5QP); ok {
		bf := m.BFReg()
		r.Values["bf_page"], r.Values["bf_offset"], r.Values["bf_size"] = uint64(bf.UARPage), uint64(bf.Offset), uint64(bf.Size)
		if bf.NeedLock {
			r.Values["bf_lock"] = 1
		}
	}
	return nil
}

func (a *Agent) connect(t verbs.Thread, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	qp, err := pick(a.qps, c.Args["qp"], "qp")
	if err != nil {
		return err
	}
	to := verbs.QPState(c.Args["to"])
	if to == verbs.QPSReset {
		to = verbs.QPSRTS
	}
	mtu, access := verbs.MTU(c.Args["mtu"]), verbs.AccessFlags(c.Args["access"])
	mtu = cmp.Or(mtu, verbs.MTU1024)
	access = cmp.Or(access, verbs.AccessRemoteWrite|verbs.AccessRemoteRead|verbs.AccessRemoteAtomic)
	if len(c.Data) != 16 {
		return fmt.Errorf("player: connect without the peer's GID")
	}
	attr := verbs.QPAttr{State: verbs.QPSInit, Port: a.port, Access: access, PathMTU: mtu, DestQPN: uint32(c.Args["dest_qpn"]),
		RQPSN: uint32(c.Args["rq_psn"]), SQPSN: uint32(c.Args["sq_psn"]), Timeout: uint8(c.Args["timeout"]),
		RetryCnt: uint8(c.Args["retry"]), RNRRetry: uint8(c.Args["rnr"]), MinRNRTimer: uint8(c.Args["rnr_timer"]),
		MaxRdAtomic: uint8(c.Args["rd"]), MaxDestRdAtomic: uint8(c.Args["dest_rd"]),
		QKey: uint32(c.Args["qkey"]),
		AH:   a.path(c)}
	for _, s := range wayUp(verbs.QPType(c.Args["type"])) {
		attr.State = s.state
		if err := qp.Modify(t, &attr, s.mask|verbs.QPMaskState); err != nil {
			return err
		}
		if s.state == to {
			break
		}
	}
	return nil
}

// path is the way to the peer of a connect: on InfiniBand by its LID alone.
func (a *Agent) path(c verbs.PlayerCommand) verbs.AHAttr {
	if a.ib {
		return verbs.AHAttr{Port: a.port, DLID: uint16(c.Args["dlid"])}
	}
	ah := verbs.AHAttr{IsGlobal: true, Port: a.port, GRH: verbs.GRH{SGIDIndex: uint8(a.gid.Index), HopLimit: 64}}
	copy(ah.GRH.DGID[:], c.Data)
	return ah
}

// step is a state with the attributes that the way to it needs.
type step struct {
	state verbs.QPState
	mask  verbs.QPAttrMask
}

// wayUp is the way of a transport from RESET to RTS; type 0 is RC.
func wayUp(t verbs.QPType) [3]step {
	const (
		initial = verbs.QPMaskPKeyIndex | verbs.QPMaskPort
		path    = verbs.QPMaskAV | verbs.QPMaskPathMTU | verbs.QPMaskDestQPN | verbs.QPMaskRQPSN
	)
	switch t {
	case verbs.QPTUD:
		return [3]step{{verbs.QPSInit, initial | verbs.QPMaskQKey}, {verbs.QPSRTR, 0}, {verbs.QPSRTS, verbs.QPMaskSQPSN}}
	case verbs.QPTUC:
		return [3]step{{verbs.QPSInit, initial | verbs.QPMaskAccessFlags}, {verbs.QPSRTR, path}, {verbs.QPSRTS, verbs.QPMaskSQPSN}}
	}
	return [3]step{
		{verbs.QPSInit, initial | verbs.QPMaskAccessFlags},
		{verbs.QPSRTR, path | verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer},
		{verbs.QPSRTS, verbs.QPMaskTimeout | verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry | verbs.QPMaskSQPSN |
			verbs.QPMaskMaxQPRdAtomic},
	}
}

func (a *Agent) setState(t verbs.Thread, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	qp, err := pick(a.qps, c.Args["qp"], "qp")
	if err != nil {
		return err
	}
	return qp.Modify(t, &verbs.QPAttr{State: verbs.QPState(c.Args["state"])}, verbs.QPMaskState)
}

func (a *Agent) queryQP(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	qp, err := pick(a.qps, c.Args["qp"], "qp")
	if err != nil {
		return err
	}
	at, _, err := qp.Query(t, verbs.QPMaskState|verbs.QPMaskSQPSN|verbs.QPMaskRQPSN)
	r.Values["state"], r.Values["sq_psn"], r.Values["rq_psn"] = uint64(at.State), uint64(at.SQPSN), uint64(at.RQPSN)
	return err
}

func (a *Agent) destroyQP(t verbs.Thread, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	qp, err := pick(a.qps, c.Args["qp"], "qp")
	if err != nil {
		return err
	}
	if qp == nil {
		return fmt.Errorf("player: qp destroyed twice")
	}
	if err := qp.Destroy(t); err != nil {
		return err
	}
	a.qps[c.Args["qp"]-1] = nil
	return nil
}

func (a *Agent) sges(c verbs.PlayerCommand) ([]verbs.SGE, error) {
	var list []verbs.SGE
	for n := ""; c.Args["buf"+n] != 0; n = strconv.Itoa(len(list)) {
		b, err := a.buffer(c.Args["buf"+n])
		if err != nil {
			return nil, err
		}
		s := verbs.SGE{Addr: b.mem.Addr() + c.Args["off"+n], Length: uint32(c.Args["len"+n])}
		if b.mr != nil {
			s.LKey = b.mr.LKey()
		}
		list = append(list, s)
	}
	return list, nil
}

func (a *Agent) postSend(t verbs.Thread, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	qp, sges, err := a.target(c)
	if err != nil {
		return err
	}
	wr := []verbs.SendWR{{ID: c.Args["id"], SGEs: sges, Opcode: verbs.WROpcode(c.Args["opcode"]),
		Flags: verbs.SendFlags(c.Args["flags"]), Imm: uint32(c.Args["imm"]), RemoteAddr: c.Args["remote"],
		RKey: uint32(c.Args["rkey"]), CompareAdd: c.Args["compare"], Swap: c.Args["swap"],
		XRCRemoteSRQN: uint32(c.Args["srqn"])}}
	for range max(c.Args["count"], 1) {
		if _, err := qp.PostSend(t, wr); err != nil {
			return err
		}
		wr[0].ID++
		if len(sges) > 0 {
			sges[0].Addr += c.Args["step"]
		}
	}
	return nil
}

// target is the QP and the memory that a command names.
func (a *Agent) target(c verbs.PlayerCommand) (verbs.QP, []verbs.SGE, error) {
	qp, err := pick(a.qps, c.Args["qp"], "qp")
	if err != nil {
		return nil, nil, err
	}
	sges, err := a.sges(c)
	return qp, sges, err
}

func (a *Agent) postRecv(t verbs.Thread, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	qp, sges, err := a.target(c)
	if err != nil {
		return err
	}
	wr := []verbs.RecvWR{{ID: c.Args["id"], SGEs: sges}}
	for range max(c.Args["count"], 1) {
		if _, err := qp.PostRecv(t, wr); err != nil {
			return err
		}
		wr[0].ID++
	}
	return nil
}

func (a *Agent) race(t verbs.Thread, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	qp, sges, err := a.target(c)
	if err != nil {
		return err
	}
	n := int(c.Args["threads"])
	errs := make([]error, n)
	threads := make([]verbs.Thread, n)
	for i := range n {
		threads[i] = t.Process().Start(t, fmt.Sprintf("race%d", i), -1, func(t verbs.Thread) {
			wr := []verbs.SendWR{{ID: uint64(i), SGEs: sges, Opcode: verbs.WRSend, Flags: verbs.SendSignaled}}
			for range c.Args["count"] {
				if _, errs[i] = qp.PostSend(t, wr); errs[i] != nil {
					return
				}
			}
		})
	}
	for _, th := range threads {
		t.Join(th)
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
