package qps

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

func registerAttributes(s *spec.Suite) {
	s.Case("QPS-010", queryReturnsAll)
	s.Case("QPS-011", psnCut)
	s.Case("QPS-016", invalidGIDIndex)
	s.Case("QPS-017", notGlobal)
	s.Case("QPS-018", portOutOfRange)
	s.Case("QPS-019", keyIndexOutOfRange)
	s.Case("QPS-020", mtuTooLarge)
	s.Case("QPS-021", initiatorDepth)
	s.Case("QPS-022", responderDepth)
	s.Case("QPS-023", alternatePath)
	s.Case("QPS-035", rateLimit)
	s.Case("QPS-038", dataInOrder)
	s.Case("QPS-036", rawPacketWithoutRight)
	s.Case("QPS-040", privilegedQKey)
	s.Case("QPS-041", highestQKey)
}

func queryReturnsAll(c *spec.C) {
	e := kit.Open(c)
	o := kit.Default()
	o.Access = verbs.AccessRemoteWrite | verbs.AccessRemoteRead
	o.MTU, o.PSN, o.Timeout, o.RetryCnt, o.RNRRetry, o.MinRNRTimer = verbs.MTU512, 0xabcdef, 17, 5, 3, 21
	q := e.CreateQP(c, o)
	a := q.AttrFor(kit.Peer{QPN: q.QPN(), Addr: e.LocalAddr, PSN: 0x13579b})
	a.MaxRdAtomic, a.MaxDestRdAtomic = 4, 8
	// The hop limit stays what kit.AHTo says: on RoCE the core replaces it by the
	// route's (ib_resolve_unicast_gid_dmac). The SL becomes an Ethernet priority, and
	// whether query gives it back is the device's affair: it is recorded only.
	a.AH = e.AHTo(e.LocalAddr)
	a.AH.GRH.TrafficClass, a.AH.SL = 0x60, 3
	for s := verbs.QPSInit; s <= verbs.QPSRTS; s++ {
		a.State = s
		c.NoErr("modify_qp to "+s.String(), q.Modify(c.T, &a, kit.MaskFor(verbs.QPTRC, s)))
	}
	got, initAttr, err := q.Query(c.T, allMask)
	c.NoErr("query_qp", err)
	for _, f := range []struct {
		name      string
		got, want any
	}{
		{"state", got.State, verbs.QPSRTS}, {"current state", got.CurState, verbs.QPSRTS},
		{"port", got.Port, a.Port}, {"key index", got.PKeyIndex, a.PKeyIndex},
		{"access flags", got.Access & kit.RemoteAll, a.Access}, {"path MTU", got.PathMTU, a.PathMTU},
		{"destination QPN as set", got.DestQPN == a.DestQPN, true}, {"receive PSN", got.RQPSN, a.RQPSN},
		{"send PSN", got.SQPSN, a.SQPSN}, {"timeout", got.Timeout, a.Timeout}, {"retry count", got.RetryCnt, a.RetryCnt},
		{"RNR retry", got.RNRRetry, a.RNRRetry}, {"minimum RNR timer", got.MinRNRTimer, a.MinRNRTimer},
		{"max_rd_atomic", got.MaxRdAtomic, a.MaxRdAtomic}, {"max_dest_rd_atomic", got.MaxDestRdAtomic, a.MaxDestRdAtomic},
		{"AH global", got.AH.IsGlobal, true}, {"AH destination GID as set", got.AH.GRH.DGID == a.AH.GRH.DGID, true},
		{"AH source GID index", got.AH.GRH.SGIDIndex, a.AH.GRH.SGIDIndex}, {"AH hop limit", got.AH.GRH.HopLimit, a.AH.GRH.HopLimit},
		{"AH traffic class", got.AH.GRH.TrafficClass, a.AH.GRH.TrafficClass},
		{"max_send_wr", got.Cap.MaxSendWR, q.Caps().MaxSendWR}, {"max_recv_wr", got.Cap.MaxRecvWR, q.Caps().MaxRecvWR},
		{"max_send_sge", got.Cap.MaxSendSGE, q.Caps().MaxSendSGE}, {"max_recv_sge", got.Cap.MaxRecvSGE, q.Caps().MaxRecvSGE},
		{"max_inline_data", got.Cap.MaxInline, q.Caps().MaxInline}, {"type", initAttr.Type, verbs.QPTRC},
	} {
		c.Equal(f.name, f.got, f.want)
	}
	c.Observe("AH SL", got.AH.SL)
}

func psnCut(c *spec.C) {
	e := kit.Open(c)
	q := e.CreateQP(c, kit.Default())
	a := q.AttrFor(q.Peer())
	a.RQPSN, a.SQPSN = 0xff123456, 0x01abcdef
	for s := verbs.QPSInit; s <= verbs.QPSRTS; s++ {
		a.State = s
		c.NoErr("modify_qp to "+s.String(), q.Modify(c.T, &a, kit.MaskFor(verbs.QPTRC, s)))
	}
	got, _, err := q.Query(c.T, allMask)
	c.NoErr("query_qp", err)
	c.Equal("receive PSN", got.RQPSN, uint32(0x123456))
	c.Equal("send PSN", got.SQPSN, uint32(0xabcdef))
}

// atInit is a QP of type RC in INIT and the attributes that would take it to RTR.
func atInit(c *spec.C) (*kit.QP, verbs.QPAttr) {
	q := kit.Open(c).CreateQP(c, kit.Default())
	q.BringUp(c, q.Peer(), verbs.QPSInit)
	a := q.AttrFor(q.Peer())
	a.State = verbs.QPSRTR
	return q, a
}

func invalidGIDIndex(c *spec.C) {
	q, a := atInit(c)
	var tab [256]verbs.GIDEntry
	n, err := q.Env.Ctx.QueryGIDTable(c.T, tab[:], 0)
	c.NoErr("query_gid_table", err)
	used := map[uint8]bool{}
	for _, g := range tab[:n] {
		used[uint8(g.Index)] = true
	}
	empty := uint8(255)
	for used[empty] {
		empty--
	}
	a.AH.GRH.SGIDIndex = empty
	c.ErrnoIn("RTR with an empty GID index", q.Modify(c.T, &a, kit.MaskRTRRC), syscall.EINVAL, syscall.ENOENT,
		syscall.ENODATA)
	c.Equal("state", q.QueryState(c), verbs.QPSInit)
}

func notGlobal(c *spec.C) {
	q, a := atInit(c)
	a.AH.IsGlobal = false
	c.Errno("RTR without a global route", q.Modify(c.T, &a, kit.MaskRTRRC), syscall.EINVAL)
	c.Equal("state", q.QueryState(c), verbs.QPSInit)
}

func portOutOfRange(c *spec.C) {
	e := kit.Open(c)
	dev, err := e.Ctx.QueryDevice(c.T)
	c.NoErr("query_device", err)
	q := e.CreateQP(c, kit.Default())
	for _, port := range []uint8{0, dev.PhysPortCnt + 1, 255} {
		a := q.AttrFor(q.Peer())
		a.State, a.Port = verbs.QPSInit, port
		c.Errno(fmt.Sprintf("INIT with port %d", port), q.Modify(c.T, &a, kit.MaskInitRC), syscall.EINVAL)
		c.Equal("state", q.QueryState(c), verbs.QPSReset)
	}
}

func keyIndexOutOfRange(c *spec.C) {
	e := kit.Open(c)
	port, err := e.Ctx.QueryPort(c.T, int(e.Port))
	c.NoErr("query_port", err)
	q := e.CreateQP(c, kit.Default())
	for _, index := range []uint16{port.PKeyTblLen, 0xffff} {
		a := q.AttrFor(q.Peer())
		a.State, a.PKeyIndex = verbs.QPSInit, index
		c.ErrnoIn("INIT with a key index outside the table", q.Modify(c.T, &a, kit.MaskInitRC), syscall.EINVAL)
		c.Equal("state", q.QueryState(c), verbs.QPSReset)
	}
}

func mtuTooLarge(c *spec.C) {
	q, a := atInit(c)
	port, err := q.Env.Ctx.QueryPort(c.T, int(q.Env.Port))
	c.NoErr("query_port", err)
	c.Observe("active MTU", port.ActiveMTU.Bytes())
	a.PathMTU = port.ActiveMTU + 1
	c.ErrnoIn("RTR with a path MTU above the active one", q.Modify(c.T, &a, kit.MaskRTRRC), syscall.EINVAL)
	c.Equal("state", q.QueryState(c), verbs.QPSInit)
	a.PathMTU = port.ActiveMTU
	c.NoErr("RTR with the active MTU", q.Modify(c.T, &a, kit.MaskRTRRC))
}

func initiatorDepth(c *spec.C) {
	e := kit.Open(c)
	dev, err := e.Ctx.QueryDevice(c.T)
	c.NoErr("query_device", err)
	q := e.CreateQP(c, kit.Default())
	q.BringUp(c, q.Peer(), verbs.QPSRTR)
	a := q.AttrFor(q.Peer())
	a.State, a.MaxRdAtomic = verbs.QPSRTS, uint8(dev.MaxQPInitRdAtom+1)
	c.ErrnoIn("max_rd_atomic above the limit", q.Modify(c.T, &a, kit.MaskRTSRC), syscall.EINVAL)
	c.Equal("state", q.QueryState(c), verbs.QPSRTR)
	a.MaxRdAtomic = uint8(dev.MaxQPInitRdAtom)
	c.NoErr("max_rd_atomic at the limit", q.Modify(c.T, &a, kit.MaskRTSRC))
}

func responderDepth(c *spec.C) {
	q, a := atInit(c)
	dev, err := q.Env.Ctx.QueryDevice(c.T)
	c.NoErr("query_device", err)
	a.MaxDestRdAtomic = uint8(dev.MaxQPRdAtom + 1)
	if c.ErrnoIn("max_dest_rd_atomic above the limit", q.Modify(c.T, &a, kit.MaskRTRRC), syscall.EINVAL, 0) != 0 {
		c.Equal("state", q.QueryState(c), verbs.QPSInit)
		a.MaxDestRdAtomic = uint8(dev.MaxQPRdAtom)
		c.NoErr("max_dest_rd_atomic at the limit", q.Modify(c.T, &a, kit.MaskRTRRC))
	}
}

func alternatePath(c *spec.C) {
	q := kit.Open(c).CreateQP(c, kit.Default())
	q.BringUp(c, q.Peer(), verbs.QPSRTS)
	a := q.AttrFor(q.Peer())
	a.State, a.AltAH, a.AltPort, a.PathMigState = verbs.QPSRTS, a.AH, a.Port, 1
	err := q.Modify(c.T, &a, verbs.QPMaskState|verbs.QPMaskAltPath|verbs.QPMaskPathMigState)
	c.ErrnoIn("alternate path on RoCE", err, syscall.EINVAL, syscall.EOPNOTSUPP)
	c.Equal("state", q.QueryState(c), verbs.QPSRTS)
}

// dataInOrder: bit 0 says that whole messages are in order, bit 1 that aligned blocks
// of 128 bytes are; flag bit 0 asks for both bits (ibv_query_qp_data_in_order.3).
func dataInOrder(c *spec.C) {
	const whole, aligned, returnCaps = 1, 2, 1
	q := kit.Open(c).CreateQP(c, kit.Default())
	for _, op := range []verbs.WROpcode{verbs.WRRDMAWrite, verbs.WRSend, verbs.WRRDMARead} {
		caps, err := q.DataInOrder(c.T, op, returnCaps)
		c.NoErr("query_qp_data_in_order with caps", err)
		plain, err := q.DataInOrder(c.T, op, 0)
		c.NoErr("query_qp_data_in_order", err)
		c.True("only defined bits", caps&^(whole|aligned) == 0, "got %#x", caps)
		c.Equal("flags 0 is the whole-message bit", plain, caps&whole)
		c.Observe(fmt.Sprintf("opcode %d", op), caps)
	}
}

// rateLimit sets a rate limit, which only QPs of raw packets have, at the steps to RTR and RTS and
// in RTS.
func rateLimit(c *spec.C) {
	e := kit.Open(c)
	types := []verbs.QPType{verbs.QPTRC, verbs.QPTUC, verbs.QPTUD}
	for _, t := range types {
		if t == verbs.QPTUC && !c.Has("uc") || t == verbs.QPTUD && !c.Has("ud") {
			continue
		}
		o := kit.Default()
		o.Type = t
		q := e.CreateQP(c, o)
		for s := verbs.QPSInit; s <= verbs.QPSRTS; s++ {
			a := q.AttrFor(q.Peer())
			a.State, a.RateLimit = s, 1000
			step := fmt.Sprintf("%s to %v with a rate limit", spec.Words(t), s)
			c.ErrnoIn(step, q.Modify(c.T, &a, kit.MaskFor(t, s)|verbs.QPMaskRateLimit), syscall.EINVAL, syscall.EOPNOTSUPP)
			q.StepTo(c, q.Peer(), s)
		}
		a := verbs.QPAttr{State: verbs.QPSRTS, RateLimit: 1000}
		c.ErrnoIn(spec.Words(t)+" in RTS with a rate limit", q.Modify(c.T, &a, verbs.QPMaskState|verbs.QPMaskRateLimit), syscall.EINVAL, syscall.EOPNOTSUPP)
		c.Equal(spec.Words(t)+": state", q.QueryState(c), verbs.QPSRTS)
	}
}
