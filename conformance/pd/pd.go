// Package pd holds the cases of area PD: protection and parent domains.
package pd

import (
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("PD-001", thousand)
	s.Case("PD-002", busyByMR)
	s.Case("PD-003", busyByQP)
	s.Case("PD-004", busyBySRQ)
	s.Case("PD-005", busyByMW)
	s.Case("PD-006", busyByAH)
	s.Case("PD-007", foreignLKey)
	s.Case("PD-008", foreignRKey)
	s.Case("PD-009", foreignSRQ)
	s.Case("PD-010", foreignAH)
	s.Case("PD-011", parentWithoutPD)
	s.Case("PD-012", parentCompMask)
	s.Case("PD-013", busyByParent)
	s.Case("PD-014", parentBusy)
	s.Case("PD-015", parentAsPD)
	s.Case("PD-016", allocatorBalanced)
	s.Case("PD-017", allocatorDefault)
	s.Case("PD-018", allocatorFails)
	s.Case("PD-020", importedRegisters)
	s.Case("PD-021", importUnused)
	s.Case("PD-022", unimported)
	s.Case("PD-023", unimportedParent)
}

func thousand(c *spec.C) {
	ctx := c.Open()
	const n = 1000
	for round := range 2 { // the second finds what the first did not release
		var pds []verbs.PD
		for i := range n {
			pd, err := ctx.AllocPD(c.T)
			if err != nil {
				c.Failf("alloc_pd %d of %d in round %d: %v", i+1, n, round+1, err)
			}
			pds = append(pds, pd)
		}
		c.Observe("live at once", len(pds))
		for _, pd := range slices.Backward(pds) {
			kit.Must(c, "dealloc_pd", pd.Dealloc(c.T))
		}
	}
}

func busyByMR(c *spec.C) {
	e := kit.Open(c)
	pd := e.AllocPD(c)
	o := kit.Default()
	o.PD = pd
	mem := e.BufferOn(c, pd, 4096, kit.AllAccess)
	c.Errno("dealloc_pd with an MR", pd.Dealloc(c.T), syscall.EBUSY)
	p := e.Pair(c, o)
	dst := e.BufferOn(c, pd, 4096, kit.AllAccess)
	want := mem.FillRandom(c)
	c.Status("write from the MR", p.A.PostAndPoll(c, kit.Write(1, dst, 0, mem.All())), verbs.WCSuccess)
	dst.ExpectContents(c, "bytes", want)
}

func busyByQP(c *spec.C) {
	e := kit.Open(c)
	pd := e.AllocPD(c)
	o := kit.Default()
	o.PD = pd
	q := e.CreateQP(c, o)
	c.Errno("dealloc_pd with a QP", pd.Dealloc(c.T), syscall.EBUSY)
	q.DestroyNow(c)
}

func busyBySRQ(c *spec.C) {
	e := kit.Open(c)
	pd := e.AllocPD(c)
	s := e.CreateSRQOn(c, pd, 16, 1)
	c.Errno("dealloc_pd with an SRQ", pd.Dealloc(c.T), syscall.EBUSY)
	s.DestroyNow(c)
}

func busyByMW(c *spec.C) {
	e := kit.Open(c)
	for _, typ := range []verbs.MWType{verbs.MWType1, verbs.MWType2} {
		pd := e.AllocPD(c)
		w, err := pd.AllocMW(c.T, typ)
		c.NoErr("alloc_mw", err)
		c.Errno("dealloc_pd with a memory window", pd.Dealloc(c.T), syscall.EBUSY)
		c.NoErr("dealloc_mw", w.Dealloc(c.T))
	}
}

// busyByAH records whether a PD can go before its address handle, which may be unknown to the
// kernel.
func busyByAH(c *spec.C) {
	e := kit.Open(c)
	pd, err := e.Ctx.AllocPD(c.T)
	kit.Must(c, "alloc_pd", err)
	ah, err := pd.CreateAH(c.T, e.AHTo(e.LocalAddr))
	kit.Must(c, "create_ah", err)
	first := kit.RecordErrno(c, "dealloc_pd with an address handle", pd.Dealloc(c.T))
	c.Errno("destroy_ah", ah.Destroy(c.T), 0)
	if first != 0 {
		c.Errno("dealloc_pd", pd.Dealloc(c.T), 0)
	}
}

func foreignLKey(c *spec.C) {
	e := kit.Open(c)
	a, b := e.RemotePair(c, kit.WithLongTimeout(c, kit.Default()))
	own := e.Buffer(c, 64, kit.AllAccess)
	other := e.BufferOn(c, e.AllocPD(c), 64, kit.AllAccess)
	b.Recv(c, b.Process.Buffer(c, 64, kit.AllAccess, 0), 2)
	good := kit.Tap(c, func() {
		c.Status("send from an MR of the PD", a.PostAndPoll(c, kit.Send(6, own.SGE(0, 16))), verbs.WCSuccess)
	})
	c.Equal("packets of the send that may", len(kit.PacketsTo(good, b.QPN, roce.RCSendOnly)), 1)
	c.Equal("its receive", b.Process.AwaitStatuses(c, 1, kit.CompletionTimeout), []verbs.WCStatus{verbs.WCSuccess})
	var wc verbs.WC
	packets := kit.Tap(c, func() { wc = a.PostAndPoll(c, kit.Send(7, other.SGE(0, 16))) })
	c.Status("send from an MR of another PD", wc, verbs.WCLocProtErr)
	c.Equal("wr_id", wc.ID, uint64(7))
	c.Equal("packets to the peer", len(kit.PacketsTo(packets, b.QPN, roce.RCSendOnly)), 0)
	c.Equal("other receives", len(b.Process.AwaitStatuses(c, 1, kit.QuietPeriod)), 0)
}

func foreignRKey(c *spec.C) {
	e := kit.Open(c)
	other := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	p, _ := e.PairWith(c, other, kit.Default())
	src := e.Buffer(c, 64, kit.AllAccess)
	src.FillRandom(c)
	pd := other.Do(c, "pd", nil, nil).Values["pd"]
	dst := other.Buffer(c, 64, kit.AllAccess, pd)
	before := dst.Get(c, 0, 64)
	c.Status("write by an rkey of another PD", p.PostAndPoll(c, dst.WriteTo(3, 0, src.All())), verbs.WCRemAccessErr)
	c.Equal("memory", dst.Get(c, 0, 64), before)
}

// foreignSRQ has a QP take receives of an SRQ of another PD, into memory of either. The messages
// are too long for a completion to carry.
func foreignSRQ(c *spec.C) {
	const n = 256
	e := kit.Open(c)
	pd := e.AllocPD(c)
	s := e.CreateSRQOn(c, pd, 16, 1)
	o := kit.Default()
	o.SRQ = s.SRQ
	o.RecvCQ = e.CreateCQ(c, 16)
	if !e.RecordCreate(c, "create_qp with an SRQ of another PD", o) {
		return
	}
	src := e.Buffer(c, n, kit.AllAccess)
	for i, t := range []struct {
		name string
		mem  *kit.Buffer
	}{{"the SRQ's PD", e.BufferOn(c, pd, n, kit.AllAccess)}, {"the QP's PD", e.Buffer(c, n, kit.AllAccess)}} {
		p := e.Pair(c, o)
		s.RecvInto(c, uint64(i), t.mem.All())
		c.Completion("send to memory of "+t.name, p.A.PostAndPoll(c, kit.Send(1, src.All())))
		kit.RecordCompletions(c, "receive into memory of "+t.name, o.RecvCQ, 1)
		p.A.DestroyNow(c)
		p.B.DestroyNow(c)
	}
}

func foreignAH(c *spec.C) {
	e := kit.Open(c)
	a, b, mem := e.NewUD(c), e.NewUD(c), e.Buffer(c, 256, kit.AllAccess)
	ah, err := e.AllocPD(c).CreateAH(c.T, e.AHTo(e.LocalAddr))
	c.NoErr("create_ah on another PD", err)
	kit.DestroyOnce(c, "destroy_ah", ah.Destroy)
	b.RecvInto(c, 1, mem.SGE(64, 128))
	_, err = a.PostSend(c.T, []verbs.SendWR{kit.Datagram(2, ah, b.QPN(), mem.SGE(0, 8))})
	if kit.RecordErrno(c, "send by a handle of another PD", err) == 0 {
		kit.RecordCompletions(c, "completion", a.SendCQ, 1)
	}
	kit.RecordCompletions(c, "receive", b.RecvCQ, 1)
}

func parentWithoutPD(c *spec.C) {
	e := kit.Open(c)
	_, err := e.Ctx.AllocParentDomain(c.T, verbs.ParentDomainAttr{})
	c.Errno("alloc_parent_domain without a PD", err, syscall.EINVAL)
}

func parentCompMask(c *spec.C) {
	e := kit.Open(c)
	for _, bit := range []uint{3, 16, 31} { // newer releases of rdma-core know bit 2
		_, err := e.Ctx.AllocParentDomain(c.T, verbs.ParentDomainAttr{PD: e.PD, CompMask: 1 << bit})
		c.Errno("alloc_parent_domain with an unknown comp_mask bit", err, syscall.EINVAL)
	}
}

func busyByParent(c *spec.C) {
	e := kit.Open(c)
	pd := e.AllocPD(c)
	parent, err := e.Ctx.AllocParentDomain(c.T, verbs.ParentDomainAttr{PD: pd})
	c.NoErr("alloc_parent_domain", err)
	c.Errno("dealloc_pd under a parent domain", pd.Dealloc(c.T), syscall.EBUSY)
	c.Errno("dealloc the parent domain", parent.Dealloc(c.T), 0)
}

func parentBusy(c *spec.C) {
	e := kit.Open(c)
	parent, err := e.Ctx.AllocParentDomain(c.T, verbs.ParentDomainAttr{PD: e.PD})
	c.NoErr("alloc_parent_domain", err)
	o := kit.Default()
	o.PD = parent
	q := e.CreateQP(c, o)
	c.Errno("dealloc with a QP", parent.Dealloc(c.T), syscall.EBUSY)
	q.DestroyNow(c)
	cq, err := e.Ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 16, Ex: true, CompMask: cqMaskPD, ParentDomain: parent})
	c.NoErr("create_cq_ex on the parent domain", err)
	c.Errno("dealloc with a CQ", parent.Dealloc(c.T), syscall.EBUSY)
	c.NoErr("destroy_cq", cq.Destroy(c.T))
	c.Errno("dealloc with nothing on it", parent.Dealloc(c.T), 0)
}

// parentAsPD makes on a parent domain whatever the device has, and moves data with a
// QP of the PD below it.
func parentAsPD(c *spec.C) {
	e := kit.Open(c)
	parent := e.ParentDomain(c)
	p := e.Pair(c, kit.Default())
	src, dst := e.BufferOn(c, parent, 4096, kit.AllAccess), e.BufferOn(c, parent, 4096, kit.AllAccess)
	want := src.FillRandom(c)
	c.Status("write between MRs of the parent domain", p.A.PostAndPoll(c, kit.Write(1, dst, 0, src.All())), verbs.WCSuccess)
	dst.ExpectContents(c, "bytes", want)
	o := kit.Default()
	o.PD = parent
	q := e.Pair(c, o)
	plain := e.Buffer(c, 4096, kit.AllAccess)
	c.Status("write by a QP of the parent domain to an MR of the PD", q.A.PostAndPoll(c, kit.Write(2, plain, 0, src.All())), verbs.WCSuccess)
	plain.ExpectContents(c, "bytes in the PD's MR", want)
	if c.Has("srq") {
		srq, err := parent.CreateSRQ(c.T, verbs.SRQInitAttr{MaxWR: 16, MaxSGE: 1})
		c.NoErr("create_srq", err)
		c.NoErr("destroy_srq", srq.Destroy(c.T))
	}
	if c.Has("mw") {
		mw, err := parent.AllocMW(c.T, 1)
		c.NoErr("alloc_mw", err)
		c.NoErr("dealloc_mw", mw.Dealloc(c.T))
	}
	if c.Has("ud") {
		ah, err := parent.CreateAH(c.T, e.AHTo(e.LocalAddr))
		c.NoErr("create_ah", err)
		c.NoErr("destroy_ah", ah.Destroy(c.T))
	}
}
