// Package xrc holds the cases of area XRC: domains, target QPs that processes share, and SRQs that
// packets name.
package xrc

import (
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("XRC-001", sharedByFile)
	s.Case("XRC-002", noDomainYet)
	s.Case("XRC-003", exclusive)
	s.Case("XRC-004", withoutFile)
	s.Case("XRC-005", closeInUse)
	s.Case("XRC-006", threeSRQs)
	s.Case("XRC-007", unknownSRQ)
	s.Case("XRC-008", foreignSRQ)
	s.Case("XRC-009", postOnTarget)
	s.Case("XRC-010", receiveOnSender)
	s.Case("XRC-011", openUnknown)
	s.Case("XRC-012", openOthers)
	s.Case("XRC-013", creatorDestroys)
	s.Case("XRC-014", creatorExits)
	s.Case("XRC-015", lastExits)
	s.Case("XRC-016", eventsOfAll)
	s.Case("XRC-017", modifyIsShared)
	s.Case("XRC-018", protection)
	s.Case("XRC-019", order)
	s.Case("XRC-020", completions)
	s.Case("XRC-021", unlinked)
	s.Case("XRC-022", paged)
	s.Case("XRC-023", incomplete)
	s.Case("XRC-024", nothingLeft)
	s.Case("XRC-025", twoHandles)
	s.Case("XRC-026", emptySRQ)
	s.Case("XRC-027", everyOperation)
	s.Case("XRC-028", builders)
	s.Case("XRC-029", headers)
	s.Case("XRC-030", srqDestroyed)
	s.Case("XRC-031", manyTargets)
	s.Case("XRC-032", limitEvent)
	s.Case("XRC-033", targetFlushed)
	s.Case("XRC-034", srqChanges)
	s.Case("XRC-035", overtaken)
	s.Case("XRC-036", twoSenders)
	s.Case("XRC-037", pagedOperations)
	s.Case("XRC-038", pagedAtomics)
	s.Case("SRQ-022", srqWithout)
	s.Case("CQ-019", cqOfSRQ)
	s.Case("QPS-033", ignoredAttributes)
	s.Case("QPS-034", drainTarget)
	s.Case("ATOM-013", atomics)
}

// domainFile names the domains of a case.
const domainFile = "domain"

func noDomainYet(c *spec.C) {
	e := kit.Open(c)
	fd := kit.OpenFile(c, domainFile)
	for _, flags := range []int{0, syscall.O_EXCL} {
		_, err := e.TryXRCD(c, fd, flags)
		c.Errno("open_xrcd of a file without domain", err, syscall.EAGAIN)
	}
	x := e.OpenXRCD(c, fd, syscall.O_CREAT)
	e.OpenXRCD(c, fd, 0).CloseNow(c)
	x.CloseNow(c)
	_, err := e.TryXRCD(c, fd, 0)
	c.Errno("open_xrcd after the last close", err, syscall.EAGAIN)
	_, err = e.TryXRCD(c, 1<<20, syscall.O_CREAT)
	c.Errno("open_xrcd of a descriptor that is not open", err, syscall.EBADF)
}

func exclusive(c *spec.C) {
	e := kit.Open(c)
	fd := kit.OpenFile(c, domainFile)
	x := e.OpenXRCD(c, fd, syscall.O_CREAT|syscall.O_EXCL)
	for _, flags := range []int{syscall.O_CREAT | syscall.O_EXCL, syscall.O_EXCL} {
		_, err := e.TryXRCD(c, fd, flags)
		c.Errno("open_xrcd with O_EXCL of a file with a domain", err, syscall.EINVAL)
	}
	other := kit.OpenOtherProcess(c, 0, nil)
	_, err := other.DoErr(c, player.OpenXRCD, kit.Args{"flags": syscall.O_CREAT | syscall.O_EXCL}, []byte(domainFile))
	c.Errno("the same in another process", err, syscall.EINVAL)
	x.CloseNow(c)
	e.OpenXRCD(c, fd, syscall.O_CREAT|syscall.O_EXCL)
}

func withoutFile(c *spec.C) {
	e := kit.Open(c)
	for _, flags := range []int{0, syscall.O_CREAT, syscall.O_EXCL, syscall.O_CREAT | syscall.O_EXCL} {
		x, err := e.TryXRCD(c, kit.NoFile, flags)
		c.NoErr("open_xrcd with fd -1", err)
		kit.Must(c, "close_xrcd", x.Close(c.T))
	}
	a, b := e.OpenXRCD(c, kit.NoFile, 0), e.OpenXRCD(c, kit.NoFile, 0)
	t := e.CreateTarget(c, a, kit.Default())
	_, err := e.TryTarget(c, b, t.QPN())
	c.Errno("open_qp through another domain without a file", err, syscall.EINVAL)
}

func closeInUse(c *spec.C) {
	e := kit.Open(c)
	fd := kit.OpenFile(c, domainFile)
	mine, other := e.OpenXRCD(c, fd, syscall.O_CREAT), e.OpenXRCD(c, fd, 0)
	t := e.CreateTarget(c, mine, kit.Default())
	c.Errno("close_xrcd with a target QP", mine.Close(c.T), syscall.EBUSY)
	s := e.CreateXRCSRQ(c, mine, 8)
	t.DestroyNow(c)
	c.Errno("close_xrcd with an SRQ", mine.Close(c.T), syscall.EBUSY)
	other.CloseNow(c) // it has no object of its own
	h := e.CreateTarget(c, mine, kit.Default())
	o := kit.OpenOtherProcess(c, 0, nil)
	d := o.Do(c, player.OpenXRCD, nil, []byte(domainFile)).Values["xrcd"]
	o.Do(c, player.OpenTarget, kit.Args{"xrcd": d, "qpn": uint64(h.QPN())}, nil)
	_, err := o.DoErr(c, player.CloseXRCD, kit.Args{"xrcd": d}, nil)
	c.Errno("close_xrcd with an opened target QP", err, syscall.EBUSY)
	o.Kill(c)
	s.DestroyNow(c)
	h.DestroyNow(c)
	mine.CloseNow(c)
}

// incomplete gives only a part of comp_mask, of which the library tells no errno.
func incomplete(c *spec.C) {
	e := kit.Open(c)
	for _, mask := range []uint32{0, verbs.XRCDInitFD, verbs.XRCDInitOFlags, 1 << 2, verbs.XRCDInitFD | verbs.XRCDInitOFlags | 1<<2} {
		_, err := e.Ctx.OpenXRCD(c.T, verbs.XRCDInitAttr{CompMask: mask, FD: kit.NoFile, OFlags: syscall.O_CREAT})
		c.Equal("open_xrcd is refused", err != nil, true)
	}
	d := e.OpenXRCD(c, kit.NoFile, syscall.O_CREAT)
	t := e.CreateTarget(c, d, kit.Default())
	for _, mask := range []uint32{0, verbs.QPOpenNum | verbs.QPOpenXRCD, verbs.QPOpenXRCD | verbs.QPOpenType, verbs.QPOpenNum | verbs.QPOpenType} {
		_, err := e.Ctx.OpenQP(c.T, verbs.QPOpenAttr{CompMask: mask, QPN: t.QPN(), XRCD: d.XRCD, Type: verbs.QPTXRCRecv})
		c.Equal("open_qp is refused", err != nil, true)
	}
	_, err := e.Ctx.CreateQP(c.T, verbs.QPInitAttr{Type: verbs.QPTXRCRecv})
	c.Errno("create_qp_ex of a target without domain", err, syscall.EINVAL)
}

func openUnknown(c *spec.C) {
	p := kit.NewXRCPair(c, kit.Default())
	gone := p.CreateTarget(c, p.Domain, kit.Default())
	gone.DestroyNow(c)
	for _, qpn := range []uint32{0, gone.QPN(), 0xffffff, p.B.QPN() | 1<<24} {
		_, err := p.TryTarget(c, p.Domain, qpn)
		c.Errno("open_qp", err, syscall.EINVAL)
	}
}

func openOthers(c *spec.C) {
	p := kit.NewXRCPair(c, kit.Default())
	rc := p.CreateQP(c, kit.Default())
	elsewhere := p.CreateTarget(c, p.OpenXRCD(c, kit.NoFile, 0), kit.Default())
	for _, x := range []struct {
		what string
		qpn  uint32
	}{{"an RC QP", rc.QPN()}, {"an XRC QP that sends", p.A.QPN()}, {"a target of another domain", elsewhere.QPN()}} {
		_, err := p.TryTarget(c, p.Domain, x.qpn)
		c.Errno("open_qp of "+x.what, err, syscall.EINVAL)
	}
	for _, typ := range []verbs.QPType{verbs.QPTRC, verbs.QPTXRCSend} {
		_, err := p.Ctx.OpenQP(c.T, verbs.QPOpenAttr{CompMask: verbs.QPOpenAll, QPN: p.B.QPN(), XRCD: p.Domain.XRCD, Type: typ})
		c.Errno("open_qp of a target by another type", err, syscall.EINVAL)
	}
}

// postOnTarget posts to a target QP, in a process of its own.
func postOnTarget(c *spec.C) {
	for _, op := range []string{player.PostSend, player.PostRecv} {
		o := kit.JoinXRC(c, domainFile, 1)
		t := o.Target(c)
		r, err := o.Try(c, op, kit.Args{"qp": t.ID, "opcode": uint64(verbs.WRSend)}, nil)
		c.NoErr("the process that posts", err)
		c.ErrnoIn(op, syscall.Errno(r.Errno), syscall.EINVAL, syscall.EOPNOTSUPP, syscall.ENOMEM)
	}
}

func receiveOnSender(c *spec.C) {
	p := kit.NewXRCPair(c, kit.Default())
	p.A.ExpectRecvRefused(c, "post_recv on an XRC QP that sends", 0, []verbs.RecvWR{{ID: 1}}, syscall.ENOMEM)
	a := p.A.InitAttr()
	a.Cap.MaxRecvWR, a.Cap.MaxRecvSGE = 1, 1
	q, err := p.PD.CreateQP(c.T, a)
	if kit.RecordErrno(c, "create_qp with room for a receive", err) == 0 {
		kit.Must(c, "destroy_qp", q.Destroy(c.T))
	}
}

func order(c *spec.C) {
	e := kit.Open(c)
	for _, domainFirst := range []bool{true, false} {
		d, cq := e.OpenXRCD(c, kit.NoFile, 0), e.CreateCQ(c, 16)
		s, err := e.Ctx.CreateSRQEx(c.T, verbs.SRQInitAttrEx{SRQInitAttr: verbs.SRQInitAttr{MaxWR: 8, MaxSGE: 1}, CompMask: verbs.SRQInitAll,
			Type: verbs.SRQXRC, PD: e.PD, XRCD: d.XRCD, CQ: cq})
		kit.Must(c, "create_srq_ex", err)
		c.Errno("destroy_cq before the SRQ", cq.Destroy(c.T), syscall.EBUSY)
		c.Errno("close_xrcd before the SRQ", d.Close(c.T), syscall.EBUSY)
		c.Errno("dealloc_pd before the SRQ", e.PD.Dealloc(c.T), syscall.EBUSY)
		c.NoErr("destroy_srq", s.Destroy(c.T))
		if domainFirst {
			d.CloseNow(c)
		}
	}
}

func srqWithout(c *spec.C) {
	e := kit.Open(c)
	d, cq := e.OpenXRCD(c, kit.NoFile, 0), e.CreateCQ(c, 16)
	for _, mask := range []uint32{verbs.SRQInitAll &^ verbs.SRQInitXRCD, verbs.SRQInitAll &^ verbs.SRQInitCQ,
		verbs.SRQInitType | verbs.SRQInitPD} {
		_, err := e.Ctx.CreateSRQEx(c.T, verbs.SRQInitAttrEx{SRQInitAttr: verbs.SRQInitAttr{MaxWR: 8, MaxSGE: 1}, CompMask: mask,
			Type: verbs.SRQXRC, PD: e.PD, XRCD: d.XRCD, CQ: cq})
		c.Errno("create_srq_ex", err, syscall.EINVAL)
	}
	s := e.CreateXRCSRQ(c, d, 8)
	o := kit.Default()
	o.SRQ = s.SRQ.SRQ
	for _, typ := range []verbs.QPType{verbs.QPTRC, verbs.QPTXRCSend} {
		_, err := e.PD.CreateQP(c.T, verbs.QPInitAttr{Type: typ, SendCQ: cq, RecvCQ: cq, SRQ: s.SRQ.SRQ, Cap: o.Cap})
		c.Errno("create_qp on an XRC SRQ", err, syscall.EINVAL)
	}
}

func cqOfSRQ(c *spec.C) {
	p := kit.NewXRCPair(c, kit.Default())
	s := p.CreateXRCSRQ(c, p.Domain, 8)
	c.Errno("destroy_cq of an XRC SRQ's CQ", s.CQ.Destroy(c.T), syscall.EBUSY)
	mem := p.Buffer(c, 64, kit.AllAccess)
	s.RecvInto(c, 1, mem.SGE(32, 8))
	p.A.Post(c, s.To(kit.Send(2, mem.SGE(0, 8))))
	kit.ExpectSuccess(c, p.A.SendCQ, 1)
	kit.ExpectSuccess(c, s.CQ, 1)
}

// ignoredAttributes gives attributes of the other direction, which uverbs takes out of the mask.
func ignoredAttributes(c *spec.C) {
	e := kit.Open(c)
	d := e.OpenXRCD(c, kit.NoFile, 0)
	o := kit.Default()
	t := e.CreateTarget(c, d, o)
	o.Type = verbs.QPTXRCSend
	a := e.CreateQP(c, o)
	for _, x := range []struct {
		q    *kit.QP
		peer kit.Peer
	}{{a, t.Peer()}, {t, a.Peer()}} {
		for _, s := range []verbs.QPState{verbs.QPSInit, verbs.QPSRTR, verbs.QPSRTS} {
			attr := x.q.AttrFor(x.peer)
			attr.State = s
			c.NoErr("modify_qp with all attributes of RC", x.q.Modify(c.T, &attr, kit.MaskFor(verbs.QPTRC, s)))
		}
	}
	again := e.CreateTarget(c, d, o)
	again.Opt.Type = verbs.QPTXRCRecv
	again.BringUp(c, a.Peer(), verbs.QPSInit)
	attr := again.AttrFor(a.Peer())
	attr.State = verbs.QPSRTR
	c.Errno("modify_qp of a target to RTR without min_rnr_timer",
		again.Modify(c.T, &attr, kit.MaskRTRRC&^verbs.QPMaskMinRNRTimer), syscall.EINVAL)
}

func drainTarget(c *spec.C) {
	p := kit.NewXRCPair(c, kit.Default())
	p.B.StepTo(c, p.A.Peer(), verbs.QPSRTS)
	kit.RecordErrno(c, "modify_qp of a target to SQD", p.B.Modify(c.T, &verbs.QPAttr{State: verbs.QPSSQD}, verbs.QPMaskState))
}
