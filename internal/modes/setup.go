package modes

import (
	"fmt"
	"hash/crc32"
	"time"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
)

// bed is a program in a testbed.
type bed struct {
	p       *Program
	tb      *testbed.Testbed
	procs   []*proc
	eps     []*endpoint
	main    log
	threads []log
	runners []*runner
	memory  []string
}

// proc is a process with what its endpoints share.
type proc struct {
	verbs.Process
	ctx verbs.Context
	pd  verbs.PD
	cq  verbs.CQ
	srq verbs.SRQ
	gid verbs.GIDEntry
	lid uint16
}

// endpoint is a QP and what belongs to it.
type endpoint struct {
	proc *proc
	conn *Conn
	qp   verbs.QP
	cq   verbs.CQ
	ch   verbs.CompChannel
	buf  verbs.Buffer
	mr   verbs.MR
	mw   verbs.MW
	key  uint32 // the window's first key, once bound
	ah   verbs.AH
	peer *endpoint
}

const everything = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic | verbs.AccessMWBind

// must ends the program: what it needs could not be made.
func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		panic(unmade{err})
	}
}

// unmade is why a program could not begin.
type unmade struct{ error }

// body is the program's main thread.
func (b *bed) body(t verbs.Thread) {
	defer func() {
		if v := recover(); v != nil {
			u, ok := v.(unmade)
			if !ok {
				panic(v)
			}
			b.main.add(t, "set-up: %v", u)
		}
	}()
	b.make(t)
	b.main.add(t, "set up")
	t.Sleep(time.Duration(start/sim.Nanosecond) - t.Now())
	var started []verbs.Thread
	for i := range b.p.Threads {
		th := &b.p.Threads[i]
		started = append(started, b.procs[th.Proc].Start(t, fmt.Sprint("t", i), th.Core, func(t verbs.Thread) {
			r := &runner{bed: b, log: &b.threads[i], t: t, no: i}
			b.runners[i] = r
			for k := range th.Ops {
				r.do(k, &th.Ops[k])
			}
			r.log.add(t, "ends")
		}))
	}
	for _, th := range started {
		t.Join(th)
	}
	b.main.add(t, "joined")
	t.Sleep(time.Duration(b.p.Tail))
	b.collect(t)
}

// make makes processes and endpoints and joins these.
func (b *bed) make(t verbs.Thread) {
	for i := range b.p.Procs {
		x := &b.p.Procs[i]
		pr := &proc{Process: t.Process()}
		if i > 0 {
			pr.Process = must(b.tb.Hosts()[x.Host].NewProcess(t, x.Env))
		}
		b.procs = append(b.procs, pr)
		b.in(t, pr, func(t verbs.Thread) { b.open(t, pr, x) })
	}
	for i := range b.p.Conns {
		c := &b.p.Conns[i]
		for _, k := range c.Procs {
			e := &endpoint{proc: b.procs[k], conn: c}
			b.eps = append(b.eps, e)
			b.in(t, e.proc, func(t verbs.Thread) { b.endpoint(t, e, &b.p.Procs[k]) })
		}
		l, r := b.eps[2*i], b.eps[2*i+1]
		l.peer, r.peer = r, l
		for _, e := range []*endpoint{l, r} {
			b.in(t, e.proc, func(t verbs.Thread) {
				check(e.connect(t))
				for range c.Posted {
					e.recv(t, 1)
				}
			})
		}
	}
}

// in runs f in a thread of a process.
func (b *bed) in(t verbs.Thread, p *proc, f func(t verbs.Thread)) {
	var failed any
	t.Join(p.Start(t, "set-up", 0, func(t verbs.Thread) {
		defer func() {
			if v, ok := recover().(unmade); ok {
				failed = v
			}
		}()
		f(t)
	}))
	if failed != nil {
		panic(failed)
	}
}

// open opens the device of a process.
func (b *bed) open(t verbs.Thread, pr *proc, x *Process) {
	devs := must(pr.Devices(t))
	if len(devs) == 0 {
		panic(unmade{fmt.Errorf("no device")})
	}
	pr.ctx = must(devs[0].Open(t))
	pr.pd = must(pr.ctx.AllocPD(t))
	if x.OneCQ {
		pr.cq = must(pr.ctx.CreateCQ(t, verbs.CQAttr{CQE: 255}))
	}
	if x.OneSRQ {
		pr.srq = must(pr.pd.CreateSRQ(t, verbs.SRQInitAttr{MaxWR: 64, MaxSGE: 1}))
	}
	table := make([]verbs.GIDEntry, 256)
	for _, g := range table[:must(pr.ctx.QueryGIDTable(t, table, 0))] {
		if g.Type == verbs.GIDTypeRoCEv2 && g.GID[10] == 0xff || g.Type == verbs.GIDTypeIB {
			pr.gid = g
		}
	}
	pr.lid = must(pr.ctx.QueryPort(t, 1)).LID
}

// endpoint makes a QP and its memory.
func (b *bed) endpoint(t verbs.Thread, e *endpoint, x *Process) {
	pr, c := e.proc, e.conn
	e.buf = must(pr.Map(t, bufferSize, verbs.MapOptions{}))
	e.mr = must(pr.pd.RegMR(t, e.buf.Addr(), bufferSize, everything))
	fill := make([]byte, recvBase)
	for i := range fill {
		fill[i] = byte(i*7 + len(b.eps))
	}
	must(e.buf.WriteAt(t, fill, 0))
	if e.cq = pr.cq; e.cq == nil {
		attr := verbs.CQAttr{CQE: c.CQE}
		if c.Channel {
			e.ch = must(pr.ctx.CreateCompChannel(t))
			attr.Channel = e.ch
		}
		e.cq = must(pr.ctx.CreateCQ(t, attr))
	}
	pd := pr.pd
	if c.TD {
		td := must(pr.ctx.AllocTD(t, verbs.TDInitAttr{}))
		pd = must(pr.ctx.AllocParentDomain(t, verbs.ParentDomainAttr{PD: pr.pd, TD: td}))
	}
	e.qp = must(pd.CreateQP(t, verbs.QPInitAttr{Type: c.Type, SendCQ: e.cq, RecvCQ: e.cq, SRQ: pr.srq, SigAll: c.SigAll,
		Cap: verbs.QPCap{MaxSendWR: c.Send, MaxRecvWR: c.Recv, MaxSendSGE: 2, MaxRecvSGE: 1, MaxInline: c.Inline}}))
	if c.Window {
		e.mw = must(pr.pd.AllocMW(t, verbs.MWType2))
		e.key = verbs.IncRKey(e.mw.RKey())
	}
}

// address is the way to the peer.
func (e *endpoint) address() verbs.AHAttr {
	if e.proc.gid.Type == verbs.GIDTypeIB {
		return verbs.AHAttr{Port: 1, DLID: e.peer.proc.lid}
	}
	return verbs.AHAttr{IsGlobal: true, Port: 1, GRH: verbs.GRH{DGID: e.peer.proc.gid.GID, SGIDIndex: uint8(e.proc.gid.Index), HopLimit: 64}}
}

const qkey = 0x1234

// connect takes the QP from RESET to RTS.
func (e *endpoint) connect(t verbs.Thread) error {
	c := e.conn
	a := verbs.QPAttr{State: verbs.QPSInit, Port: 1, QKey: qkey, Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic}
	mask := verbs.QPMaskState | verbs.QPMaskPKeyIndex | verbs.QPMaskPort
	if c.Type == verbs.QPTUD {
		mask |= verbs.QPMaskQKey
	} else {
		mask |= verbs.QPMaskAccessFlags
	}
	if err := e.qp.Modify(t, &a, mask); err != nil {
		return err
	}
	a = verbs.QPAttr{State: verbs.QPSRTR, PathMTU: c.MTU, DestQPN: e.peer.qp.QPN(), RQPSN: 7, MaxDestRdAtomic: c.Reads, MinRNRTimer: c.RNRTimer, AH: e.address()}
	mask = verbs.QPMaskState
	if c.Type != verbs.QPTUD {
		mask |= verbs.QPMaskAV | verbs.QPMaskPathMTU | verbs.QPMaskDestQPN | verbs.QPMaskRQPSN
	}
	if c.Type == verbs.QPTRC {
		mask |= verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer
	}
	if err := e.qp.Modify(t, &a, mask); err != nil {
		return err
	}
	a = verbs.QPAttr{State: verbs.QPSRTS, SQPSN: 7, Timeout: c.Timeout, RetryCnt: c.Retry, RNRRetry: c.RNR, MaxRdAtomic: c.Reads}
	mask = verbs.QPMaskState | verbs.QPMaskSQPSN
	if c.Type == verbs.QPTRC {
		mask |= verbs.QPMaskTimeout | verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry | verbs.QPMaskMaxQPRdAtomic
	}
	if err := e.qp.Modify(t, &a, mask); err != nil {
		return err
	}
	if c.Type == verbs.QPTUD && e.ah == nil {
		var err error
		e.ah, err = e.proc.pd.CreateAH(t, e.address())
		return err
	}
	return nil
}

// recv posts n receives.
func (e *endpoint) recv(t verbs.Thread, n int) error {
	var w []verbs.RecvWR
	for i := range n {
		at := recvBase + i*recvSize
		w = append(w, verbs.RecvWR{ID: 1000 + uint64(i), SGEs: []verbs.SGE{{Addr: e.buf.Addr() + uint64(at), Length: recvSize, LKey: e.mr.LKey()}}})
	}
	var err error
	if e.proc.srq != nil {
		_, err = e.proc.srq.PostRecv(t, w)
	} else {
		_, err = e.qp.PostRecv(t, w)
	}
	return err
}

// collect reads what is left in memory.
func (b *bed) collect(t verbs.Thread) {
	for i, e := range b.eps {
		t.Join(e.proc.Start(t, "collect", 0, func(t verbs.Thread) {
			all := make([]byte, bufferSize)
			_, err := e.buf.ReadAt(t, all, 0)
			b.memory = append(b.memory, fmt.Sprintf("endpoint %d: %08x %v", i, crc32.ChecksumIEEE(all), err))
		}))
	}
}
