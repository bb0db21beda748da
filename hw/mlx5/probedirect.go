//go:build hw

package mlx5

import "github.com/rdmasim/rdmasim/verbs"

// directTokens are those of direct verbs, which no device of another provider has.
var directTokens = []string{"dv.dc", "dv.dci_streams", "dv.ooo", "dv.memcpy", "dv.raw", "dv.mkey", "dv.sig", "dv.sport", "dv.lag", "dv.resqpn",
	"dv.dm_op", "dv.var", "datadirect"}

// direct sets the tokens of mlx5 direct verbs.
func (p *probe) direct() {
	for _, token := range directTokens {
		p.set(token, verbs.Absent)
	}
	if !p.ctx.mlx5 {
		return
	}
	a, err := p.ctx.QueryDirect(p.t, verbs.DirectContextKnownMask)
	if err != nil {
		return
	}
	p.set("dv.dci_streams", has(a.DCIStreams.LogNumConcurrent > 0))
	p.set("dv.memcpy", has(a.MaxWRMemcpyLength > 0))
	p.set("dv.sig", has(a.SigBlockProt != 0))
	p.set("dv.ooo", has(a.CompMask&verbs.DirectOOORecvWRs != 0 && a.OOORecvWRsRC > 0))
	p.directQPs(a)
	p.directMemory()
	n, err := p.ctx.ReserveQPN(p.t)
	if p.set("dv.resqpn", answer(err)); err == nil {
		_ = p.ctx.ReleaseQPN(p.t, n)
	}
	v, err := p.ctx.AllocVAR(p.t, 0)
	if p.set("dv.var", answer(err)); err == nil {
		_ = v.Free(p.t)
	}
}

// directQPs tries queue pairs with direct attributes.
func (p *probe) directQPs(a verbs.DirectAttr) {
	attr := verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: p.cq, RecvCQ: p.cq, CompMask: verbs.QPInitSendOpsFlags, SendOpsFlags: verbs.QPExSend,
		Cap:    verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1},
		Direct: &verbs.DirectQPAttr{CompMask: verbs.DirectQPSendOpsFlags, SendOpsFlags: verbs.DirectQPExRawWQE}}
	q, err := p.pd.CreateQP(p.t, attr)
	if p.set("dv.raw", answer(err)); err == nil {
		if a.NumLagPorts > 1 {
			_, _, err := q.(verbs.DirectQP).QueryLagPort(p.t)
			p.set("dv.lag", has(err == nil))
		}
		if p.connectToItself(q) == nil {
			p.set("dv.sport", answer(q.(verbs.DirectQP).ModifyUDPSport(p.t, 0xc123)))
		}
		_ = q.Destroy(p.t)
	}
	attr.Type, attr.Direct = verbs.QPTDriver, &verbs.DirectQPAttr{CompMask: verbs.DirectQPDC, DCType: verbs.DCI}
	attr.Cap.MaxRecvWR, attr.Cap.MaxRecvSGE = 0, 0
	q, err = p.pd.CreateQP(p.t, attr)
	if p.set("dv.dc", answer(err)); err == nil {
		_ = q.Destroy(p.t)
	}
}

// connectToItself brings a queue pair to RTS with itself as the peer: nothing is sent.
func (p *probe) connectToItself(q verbs.QP) error {
	port, index := p.ctx.Preferred()
	g, err := p.ctx.QueryGID(p.t, port, index)
	if err != nil {
		return err
	}
	a := verbs.QPAttr{Port: uint8(port), PathMTU: verbs.MTU1024, DestQPN: q.QPN(), Timeout: 14, RetryCnt: 7, RNRRetry: 7, MinRNRTimer: 12,
		MaxRdAtomic: 1, MaxDestRdAtomic: 1, AH: verbs.AHAttr{IsGlobal: true, Port: uint8(port), GRH: verbs.GRH{DGID: g, SGIDIndex: uint8(index), HopLimit: 64}}}
	for _, s := range []struct {
		to   verbs.QPState
		mask verbs.QPAttrMask
	}{
		{verbs.QPSInit, verbs.QPMaskPKeyIndex | verbs.QPMaskPort | verbs.QPMaskAccessFlags},
		{verbs.QPSRTR, verbs.QPMaskAV | verbs.QPMaskPathMTU | verbs.QPMaskDestQPN | verbs.QPMaskRQPSN | verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer},
		{verbs.QPSRTS, verbs.QPMaskSQPSN | verbs.QPMaskTimeout | verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry | verbs.QPMaskMaxQPRdAtomic},
	} {
		a.State = s.to
		if err := q.Modify(p.t, &a, s.mask|verbs.QPMaskState); err != nil {
			return err
		}
	}
	return nil
}

// directMemory tries indirect keys, and the operations of device memory.
func (p *probe) directMemory() {
	k, err := p.ctx.CreateMkey(p.t, p.pd, verbs.MkeyIndirect, 1)
	if p.set("dv.mkey", answer(err)); err == nil {
		_ = k.Destroy(p.t)
	}
	m, err := p.ctx.AllocDirectDM(p.t, verbs.DMAttr{Length: 64}, verbs.DirectDMAttr{})
	if err != nil {
		return
	}
	op, err := m.(verbs.DirectDM).MapOp(p.t, 0)
	if p.set("dv.dm_op", answer(err)); err == nil {
		_ = op.Unmap(p.t)
	}
	_ = m.Free(p.t)
}
