package kernel

import (
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// xrcWorld is a device with XRC under a kernel of a design.
type xrcWorld struct{ *setup }

func newXRCWorld(t *testing.T, era XRCEra) *xrcWorld {
	p := testParams()
	p.XRC = era
	return &xrcWorld{newSetupOf(t, p, func(f *fakeFunction) {
		g := prm.HCACap(f.caps[prm.CapGeneral])
		g.SetXRC(true)
		g.SetLogMaxSRQSz(15)
	})}
}

// file is a request for the domain of the file numbered n.
func file(n uint64, flags int) XRCDReq {
	return XRCDReq{HasFile: true, File: Inode{Ino: n}, OFlags: flags}
}

func (w *xrcWorld) domain(u *Ucontext, n uint64) Handle {
	w.t.Helper()
	h, err := u.OpenXRCD(Caller{}, file(n, syscall.O_CREAT))
	wantErrno(w.t, "open XRC domain", err, 0)
	return h
}

func (w *xrcWorld) target(u *Ucontext, domain Handle) (Handle, uint32) {
	w.t.Helper()
	h, resp, err := u.CreateQP(Caller{}, QPReq{Type: verbs.QPTXRCRecv, XRCD: domain, UIDX: 0})
	wantErrno(w.t, "create target", err, 0)
	return h, resp.QPN
}

// left fails the test unless so many QPs and domains are there.
func (w *xrcWorld) left(when string, qps, domains int) {
	w.t.Helper()
	if r := w.d.Resources(); r.QP != qps || r.XRCD != domains {
		w.t.Errorf("%s: %d QPs and %d domains, want %d and %d", when, r.QP, r.XRCD, qps, domains)
	}
}

func TestOpenXRCD(t *testing.T) {
	w := newXRCWorld(t, XRC4_9)
	u, v := w.open(), w.open()
	open := func(what string, u *Ucontext, r XRCDReq, want syscall.Errno) Handle {
		t.Helper()
		h, err := u.OpenXRCD(Caller{}, r)
		wantErrno(t, what, err, want)
		return h
	}
	const create, excl = syscall.O_CREAT, syscall.O_EXCL
	open("no domain", u, file(1, 0), syscall.EAGAIN)
	open("no domain, O_EXCL", u, file(1, excl), syscall.EAGAIN)
	a := open("O_CREAT and O_EXCL", u, file(1, create|excl), 0)
	open("O_EXCL on a domain", v, file(1, excl), syscall.EINVAL)
	open("both on a domain", v, file(1, create|excl), syscall.EINVAL)
	b := open("a second opener", v, file(1, 0), 0)
	open("another file", v, file(2, 0), syscall.EAGAIN)
	for _, flags := range []int{0, create, excl, create | excl} {
		open("without file", u, XRCDReq{OFlags: flags}, 0)
	}
	w.left("with five domains", 0, 5)
	wantErrno(t, "close", u.CloseXRCD(Caller{}, a), 0)
	w.left("with one opener left", 0, 5)
	wantErrno(t, "close the last", v.CloseXRCD(Caller{}, b), 0)
	w.left("without", 0, 4)
	wantErrno(t, "close twice", v.CloseXRCD(Caller{}, b), syscall.ENOENT)
	u.Close(Caller{})
	w.left("after the end of the process", 0, 0)
}

// A domain holds the inode that names it, once, until it ends.
func TestXRCDHoldsItsInode(t *testing.T) {
	w := newXRCWorld(t, XRC4_9)
	u := w.open()
	var released []int
	open := func(n int) Handle {
		t.Helper()
		r := file(1, syscall.O_CREAT)
		r.Release = func() { released = append(released, n) }
		h, err := u.OpenXRCD(Caller{}, r)
		wantErrno(t, "open", err, 0)
		return h
	}
	first, second := open(1), open(2)
	if len(released) != 1 || released[0] != 2 {
		t.Errorf("released: %v, want that of the second opener", released)
	}
	wantErrno(t, "close", u.CloseXRCD(Caller{}, first), 0)
	if len(released) != 1 {
		t.Errorf("released before the domain ends: %v", released)
	}
	wantErrno(t, "close", u.CloseXRCD(Caller{}, second), 0)
	if len(released) != 2 || released[1] != 1 {
		t.Errorf("released: %v, want that of the first opener, too", released)
	}
}

// What a device without XRC answers, and what a target refuses.
func TestXRCIsRefused(t *testing.T) {
	s := newSetup(t, testParams())
	u := s.open()
	_, err := u.OpenXRCD(Caller{}, XRCDReq{})
	wantErrno(t, "no XRC: open domain", err, syscall.EOPNOTSUPP)
	w := newXRCWorld(t, XRC4_9)
	u = w.open()
	d, pd, cq := w.domain(u, 1), w.pd(u), w.cq(u)
	for _, x := range []struct {
		what string
		r    QPReq
		want syscall.Errno
	}{
		{"a PD", QPReq{XRCD: d, PD: pd}, syscall.EINVAL}, {"a send CQ", QPReq{XRCD: d, SendCQ: cq}, syscall.EINVAL},
		{"a receive CQ", QPReq{XRCD: d, RecvCQ: cq}, syscall.EINVAL}, {"no domain", QPReq{}, syscall.EINVAL},
		{"a PD as domain", QPReq{XRCD: pd}, syscall.EINVAL}, {"a handle that is not there", QPReq{XRCD: 999}, syscall.ENOENT},
		{"a wrong user index", QPReq{XRCD: d, UIDX: noUIDX}, syscall.EINVAL},
	} {
		x.r.Type = verbs.QPTXRCRecv
		_, _, err := u.CreateQP(Caller{}, x.r)
		wantErrno(t, x.what, err, x.want)
	}
	_, qpn := w.target(u, d)
	other := w.domain(u, 2)
	for _, x := range []struct {
		what   string
		domain Handle
		qpn    uint32
		typ    verbs.QPType
		want   syscall.Errno
	}{
		{"another domain", other, qpn, verbs.QPTXRCRecv, syscall.EINVAL}, {"another number", d, qpn + 1, verbs.QPTXRCRecv, syscall.EINVAL},
		{"another type", d, qpn, verbs.QPTXRCSend, syscall.EINVAL}, {"no domain", 0, qpn, verbs.QPTXRCRecv, syscall.EINVAL},
		{"a domain that is not there", 999, qpn, verbs.QPTXRCRecv, syscall.ENOENT},
	} {
		_, err := u.OpenQP(Caller{}, x.domain, x.qpn, x.typ, 0)
		wantErrno(t, "open QP: "+x.what, err, x.want)
	}
	wantErrno(t, "close a domain in use", u.CloseXRCD(Caller{}, d), syscall.EBUSY)
	u.Close(Caller{})
	w.left("in the end", 0, 0)
}

// Who keeps a target QP alive, and what is left when all processes are gone, by design.
func TestTargetLifetimes(t *testing.T) {
	for _, x := range []struct {
		name          string
		era           XRCEra
		afterCreator  int // QPs when its creator has ended and another process uses it
		afterAll      int
		domainsForAll int
	}{
		{"6.1", XRC6_1, 1, 0, 0}, {"4.9", XRC4_9, 1, 0, 0}, {"3.2", XRC3_2, 1, 1, 1},
	} {
		w := newXRCWorld(t, x.era)
		u, v := w.open(), w.open()
		_, qpn := w.target(u, w.domain(u, 1))
		_, err := v.OpenQP(Caller{}, w.domain(v, 1), qpn, verbs.QPTXRCRecv, 0)
		wantErrno(t, x.name+": open", err, 0)
		u.Close(Caller{})
		w.left(x.name+": creator gone", x.afterCreator, 1)
		v.Close(Caller{})
		w.left(x.name+": all gone", x.afterAll, x.domainsForAll)
	}
}

// A target that leaked is found again by its file and its number, and ends with that handle.
func TestLeakedTargetIsRecovered(t *testing.T) {
	w := newXRCWorld(t, XRC3_2)
	u := w.open()
	_, qpn := w.target(u, w.domain(u, 1))
	nameless, err := u.OpenXRCD(Caller{}, XRCDReq{})
	wantErrno(t, "open without file", err, 0)
	w.target(u, nameless)
	u.Close(Caller{})
	w.left("leaked", 2, 2)
	v := w.open()
	d, err := v.OpenXRCD(Caller{}, file(1, 0))
	wantErrno(t, "open the file again without O_CREAT", err, 0)
	h, err := v.OpenQP(Caller{}, d, qpn, verbs.QPTXRCRecv, 0)
	wantErrno(t, "open the QP", err, 0)
	_, err = v.DestroyQP(Caller{}, h)
	wantErrno(t, "destroy it", err, 0)
	v.Close(Caller{})
	w.left("the one without file stays", 1, 1)
}

func TestExplicitDestroy(t *testing.T) {
	for _, era := range []XRCEra{XRC4_9, XRC3_2} {
		w := newXRCWorld(t, era)
		u, v := w.open(), w.open()
		a, qpn := w.target(u, w.domain(u, 1))
		b, err := v.OpenQP(Caller{}, w.domain(v, 1), qpn, verbs.QPTXRCRecv, 0)
		wantErrno(t, "open", err, 0)
		_, err = u.DestroyQP(Caller{}, a)
		wantErrno(t, "destroy one handle", err, 0)
		w.left("one handle left", 1, 1)
		_, err = v.DestroyQP(Caller{}, b)
		wantErrno(t, "destroy the other", err, 0)
		w.left("none left", 0, 1)
	}
}

// The QP of the creator's alone ends with it, and nobody else can open it.
func TestCreatorsTarget(t *testing.T) {
	w := newXRCWorld(t, XRCCreator)
	u, v := w.open(), w.open()
	_, qpn := w.target(u, w.domain(u, 1))
	_, err := v.OpenQP(Caller{}, w.domain(v, 1), qpn, verbs.QPTXRCRecv, 0)
	wantErrno(t, "open", err, syscall.ENOSYS)
	u.Close(Caller{})
	w.left("creator gone", 0, 1)
}

// rcvAttr takes a receive QP to RTR.
func rcvAttr() (*verbs.QPAttr, verbs.QPAttrMask) {
	rtr := &transitions[verbs.QPSInit][verbs.QPSRTR]
	return &verbs.QPAttr{Port: 1, PathMTU: verbs.MTU1024, DestQPN: 7, MaxDestRdAtomic: 1,
		AH: verbs.AHAttr{IsGlobal: true, Port: 1, GRH: verbs.GRH{DGID: verbs.GID{10: 0xff, 11: 0xff, 12: 192, 14: 2, 15: 1}, SGIDIndex: 3}}}, initAttrs[svcXRCRecv] | rtr.must[svcXRCRecv]
}

func TestProposal(t *testing.T) {
	w := newXRCWorld(t, XRCProposal)
	u, v := w.open(), w.open()
	d, e := w.domain(u, 1), w.domain(v, 1)
	attr, mask := rcvAttr()
	for _, x := range []struct {
		what string
		mask verbs.QPAttrMask
	}{{"no address", mask &^ mAV}, {"no access flags", mask &^ mAccess}, {"a timeout", mask | mTimeout}, {"a send PSN", mask | mSQPSN}} {
		_, err := u.AllocXRCRcvQP(Caller{}, d, attr, x.mask)
		wantErrno(t, x.what, err, syscall.EINVAL)
	}
	w.left("after refusals", 0, 1)
	_, err := u.AllocXRCRcvQP(Caller{}, d, attr, mask)
	wantErrno(t, "alloc_xrc_rcv_qp", err, 0)
	_, err = u.CreateXRCRcvQP(Caller{}, d)
	wantErrno(t, "a call of another design", err, syscall.ENOSYS)
	_, _, err = u.CreateQP(Caller{}, QPReq{Type: verbs.QPTXRCRecv, XRCD: d})
	wantErrno(t, "a handle", err, syscall.ENOSYS)
	u.Close(Caller{})
	w.left("creator gone", 1, 1)
	wantErrno(t, "close the domain", v.CloseXRCD(Caller{}, e), 0)
	w.left("domain gone", 0, 0)
}

func TestOFED(t *testing.T) {
	w := newXRCWorld(t, XRCOFED1_3)
	u, v := w.open(), w.open()
	d, e := w.domain(u, 1), w.domain(v, 1)
	qpn, err := u.CreateXRCRcvQP(Caller{}, d)
	wantErrno(t, "create_xrc_rcv_qp", err, 0)
	wantErrno(t, "unregister before registering", v.UnregXRCRcvQP(Caller{}, e, qpn), syscall.EINVAL)
	wantErrno(t, "register another number", v.RegXRCRcvQP(Caller{}, e, qpn+1), syscall.EINVAL)
	for range 2 {
		wantErrno(t, "register", v.RegXRCRcvQP(Caller{}, e, qpn), 0)
	}
	wantErrno(t, "close the domain while registered", v.CloseXRCD(Caller{}, e), syscall.EBUSY)
	attr, mask := rcvAttr()
	attr.State = verbs.QPSInit
	wantErrno(t, "modify to RTR at once", v.ModifyXRCRcvQP(Caller{}, e, qpn, &verbs.QPAttr{State: verbs.QPSRTR}, mState), syscall.EINVAL)
	wantErrno(t, "modify to INIT", v.ModifyXRCRcvQP(Caller{}, e, qpn, attr, mState|initAttrs[svcXRCRecv]), 0)
	attr.State = verbs.QPSRTR
	wantErrno(t, "modify to RTR by the other", u.ModifyXRCRcvQP(Caller{}, d, qpn, attr, mask&^initAttrs[svcXRCRecv]|mState), 0)
	wantErrno(t, "unregister", v.UnregXRCRcvQP(Caller{}, e, qpn), 0)
	wantErrno(t, "unregister twice", v.UnregXRCRcvQP(Caller{}, e, qpn), syscall.EINVAL)
	w.left("one user", 1, 1)
	wantErrno(t, "register again", v.RegXRCRcvQP(Caller{}, e, qpn), 0)
	u.Close(Caller{})
	w.left("creator gone", 1, 1)
	v.Close(Caller{})
	w.left("all gone", 0, 0)
}

// Events come to each handle, or by number to each registered process, and to nobody who has left.
func TestTargetEvents(t *testing.T) {
	access := func(w *xrcWorld, qpn uint32) bool {
		e := make(prm.EQE, prm.EQESize)
		e.SetType(prm.EventWQAccessError)
		e.SetQueueType(prm.EventQueueQP)
		e.SetQPSRQN(qpn)
		return w.d.qps[qpn].event(e)
	}
	take := func(u *Ucontext) (all []AsyncEvent) {
		for {
			ev, err := u.WaitAsync(Caller{}, 0)
			if err != nil {
				return all
			}
			all = append(all, ev)
		}
	}
	w := newXRCWorld(t, XRC4_9)
	u, v, gone := w.open(), w.open(), w.open()
	_, qpn := w.target(u, w.domain(u, 1))
	d := w.domain(v, 1)
	for i := range 2 {
		_, err := v.OpenQP(Caller{}, d, qpn, verbs.QPTXRCRecv, uint64(i+10))
		wantErrno(t, "open", err, 0)
	}
	_, err := gone.OpenQP(Caller{}, w.domain(gone, 1), qpn, verbs.QPTXRCRecv, 0)
	wantErrno(t, "open", err, 0)
	gone.Close(Caller{})
	if !access(w, qpn) {
		t.Error("the event is nobody's")
	}
	if got := take(u); len(got) != 1 || got[0].Type != verbs.EventQPAccessErr {
		t.Errorf("creator: %v", got)
	}
	if got := take(v); len(got) != 2 || got[0].Cookie != 10 || got[1].Cookie != 11 {
		t.Errorf("two handles: %v", got)
	}

	w = newXRCWorld(t, XRC6_1)
	u = w.open()
	d = w.domain(u, 1)
	_, qpn = w.target(u, d)
	_, err = u.OpenQP(Caller{}, d, qpn, verbs.QPTXRCRecv, 10)
	wantErrno(t, "open", err, 0)
	access(w, qpn)
	if got := take(u); len(got) != 1 || got[0].Cookie == 10 {
		t.Errorf("a handle that was made and one that was opened: %v", got)
	}

	w = newXRCWorld(t, XRCProposal)
	u = w.open()
	attr, mask := rcvAttr()
	qpn, err = u.AllocXRCRcvQP(Caller{}, w.domain(u, 1), attr, mask)
	wantErrno(t, "alloc_xrc_rcv_qp", err, 0)
	access(w, qpn)
	if got, c := take(u), w.d.Counters(); len(got) != 0 || c.LoggedEvents != 1 {
		t.Errorf("the kernel's alone: events %v, %d in the log", got, c.LoggedEvents)
	}

	w = newXRCWorld(t, XRCOFED1_3)
	u = w.open()
	qpn, err = u.CreateXRCRcvQP(Caller{}, w.domain(u, 1))
	wantErrno(t, "create", err, 0)
	access(w, qpn)
	if got := take(u); len(got) != 1 || got[0].QPN != qpn {
		t.Errorf("registered: %v, want one of QP %#x", got, qpn)
	}
}

func TestXRCSRQ(t *testing.T) {
	w := newXRCWorld(t, XRC4_9)
	u := w.open()
	pd, cq, d := w.pd(u), w.cq(u), w.domain(u, 1)
	req := SRQReq{Type: verbs.SRQXRC, PD: pd, XRCD: d, CQ: cq, UIDX: 5, MaxWR: 7, MaxSGE: 1,
		BufAddr: w.buf(mem.PageSize, mem.Read|mem.Write), DBAddr: w.buf(mem.PageSize, mem.Read|mem.Write)}
	for _, x := range []struct {
		what   string
		change func(*SRQReq)
		want   syscall.Errno
	}{
		{"no domain", func(r *SRQReq) { r.XRCD = 0 }, syscall.EINVAL}, {"no CQ", func(r *SRQReq) { r.CQ = 0 }, syscall.EINVAL},
		{"a wrong user index", func(r *SRQReq) { r.UIDX = noUIDX }, syscall.EINVAL}, {"a type that is not there", func(r *SRQReq) { r.Type = 9 }, syscall.EOPNOTSUPP},
	} {
		r := req
		x.change(&r)
		_, _, err := u.CreateSRQ(Caller{}, r)
		wantErrno(t, x.what, err, x.want)
	}
	h, _, err := u.CreateSRQ(Caller{}, req)
	wantErrno(t, "create", err, 0)
	c := prm.CreateXRCSRQIn(w.f.last[prm.OpCreateXRCSRQ]).Context()
	if c.CQN() == 0 || c.XRCD() == 0 || c.PD() == 0 || c.UserIndex() != 5 || c.LogSize() != 3 || c.LogRQStride() != 1 {
		t.Errorf("context: CQ %d, XRCD %d, PD %d, user index %d, 2^%d WQEs, stride 2^%d", c.CQN(), c.XRCD(), c.PD(), c.UserIndex(), c.LogSize(), c.LogRQStride())
	}
	_, _, err = u.DestroyCQ(Caller{}, cq)
	wantErrno(t, "destroy its CQ", err, syscall.EBUSY)
	wantErrno(t, "close its domain", u.CloseXRCD(Caller{}, d), syscall.EBUSY)
	wantErrno(t, "dealloc its PD", u.DeallocPD(Caller{}, pd), syscall.EBUSY)
	_, _, err = u.CreateQP(Caller{}, func() QPReq { r := w.qpReq(pd, cq, verbs.QPTRC); r.SRQ, r.HasSRQ = h, true; return r }())
	wantErrno(t, "an RC QP on it", err, syscall.EINVAL)
	_, err = u.DestroySRQ(Caller{}, h)
	wantErrno(t, "destroy", err, 0)
	wantErrno(t, "close the domain", u.CloseXRCD(Caller{}, d), 0)
}
