package workload

import (
	"cmp"
	"fmt"

	"github.com/rdmasim/rdmasim/verbs"
)

// port is the only port that loads use.
const port = 1

// side is one end of a load: a process with contexts, and the QPs of each thread.
type side struct {
	proc verbs.Process
	ctxs []*ctx
	qps  [][]*conn // [thread group][qp]
}

type ctx struct {
	c    verbs.Context
	pds  []verbs.PD
	mrs  []region // of PD 0 .. in turn
	size uint64   // of each region
	gid  verbs.GID
	gidx uint8
	lid  uint16 // of an InfiniBand port, which needs no GID; 0: Ethernet
	cqs  []verbs.CQ
	// users of the last CQ, for sharing
	users int
}

type region struct {
	buf verbs.Buffer
	mr  verbs.MR
}

// conn is one QP with what a poster needs.
type conn struct {
	qp   verbs.QP
	cq   verbs.CQ
	rcq  verbs.CQ
	pd   int
	own  int // region of a ping-pong
	ctx  *ctx
	peer *conn
	ah   verbs.AH // to the peer, of datagrams
	// received are receives that have completed and were not posted again yet.
	received int
	// writes are those of a ping-pong whose completions were not polled yet.
	writes int
	// times says when completions of cq were written; nil where polls must do.
	times verbs.TimedCQ
}

func (l *Load) openSide(t verbs.Thread, host verbs.Host, target bool) (*side, error) {
	proc, err := host.NewProcess(t, l.environment(target))
	if err != nil {
		return nil, fmt.Errorf("new process: %w", err)
	}
	s := &side{proc: proc}
	return s, in(t, proc, "setup", func(t verbs.Thread) error { return l.build(t, s, target) })
}

// in runs f in a thread of a process and waits for it: verbs.ErrProcessDied when the
// process ends before.
func in(t verbs.Thread, proc verbs.Process, name string, f func(t verbs.Thread) error) error {
	err := fmt.Errorf("%s: %w", proc.Name(), verbs.ErrProcessDied)
	t.Join(proc.Start(t, name, -1, func(t verbs.Thread) { err = f(t) }))
	return err
}

func (l *Load) build(t verbs.Thread, s *side, target bool) error {
	n := l.Contexts
	if target {
		n = 1
	}
	for i := 0; i < n; i++ {
		c, err := l.openContext(t, s.proc, target)
		if err != nil {
			return fmt.Errorf("context %d: %w", i, err)
		}
		s.ctxs = append(s.ctxs, c)
	}
	groups := l.Threads / l.QPShare
	for g := 0; g < groups; g++ {
		c := s.ctxs[g*l.QPShare*n/l.Threads]
		var set []*conn
		var cq, rcq verbs.CQ
		pd := len(s.qps) % len(c.pds)
		dom, err := l.domain(t, c, pd, target)
		if err != nil {
			return fmt.Errorf("thread %d: %w", g, err)
		}
		for q := 0; q < l.QPs; q++ {
			if cq == nil || l.CQShare > 0 {
				if cq, err = l.completionQueue(t, c); err != nil {
					return fmt.Errorf("thread %d: create CQ: %w", g, err)
				}
			}
			if rcq == nil {
				if rcq, err = c.c.CreateCQ(t, verbs.CQAttr{CQE: max(l.RecvDepth*l.QPs, 1)}); err != nil {
					return fmt.Errorf("thread %d: create receive CQ: %w", g, err)
				}
			}
			k, err := l.createQP(t, c, dom, cq, rcq)
			if err != nil {
				return fmt.Errorf("thread %d: QP %d: %w", g, q, err)
			}
			k.pd, k.own = pd, g
			set = append(set, k)
		}
		s.qps = append(s.qps, set)
	}
	return nil
}

// completionQueue gives the CQ of the next QP: a new one, or the context's last
// while fewer than CQShare QPs use it.
func (l *Load) completionQueue(t verbs.Thread, c *ctx) (verbs.CQ, error) {
	if l.CQShare > 0 && len(c.cqs) > 0 && c.users < l.CQShare {
		c.users++
		return c.cqs[len(c.cqs)-1], nil
	}
	share := max(l.CQShare, 1)
	if l.CQShare == 0 {
		share = l.QPs
	}
	cq, err := c.c.CreateCQ(t, verbs.CQAttr{CQE: max(1, share*(l.Window/l.SignalEvery+2))})
	if err != nil {
		return nil, err
	}
	c.cqs, c.users = append(c.cqs, cq), 1
	return cq, nil
}

func (l *Load) openContext(t verbs.Thread, p verbs.Process, target bool) (*ctx, error) {
	devs, err := p.Devices(t)
	if err != nil {
		return nil, fmt.Errorf("device list: %w", err)
	}
	if len(devs) == 0 {
		return nil, fmt.Errorf("host %s has no RDMA device", p.Host().Name())
	}
	vc, err := devs[0].Open(t)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", devs[0].Name(), err)
	}
	c := &ctx{c: vc, size: l.sizeAt(target)}
	if err := c.learnAddress(t); err != nil {
		return nil, err
	}
	if err := l.checkPageable(t, vc, target); err != nil {
		return nil, err
	}
	for i := 0; i < l.PDs; i++ {
		pd, err := vc.AllocPD(t)
		if err != nil {
			return nil, fmt.Errorf("alloc PD: %w", err)
		}
		c.pds = append(c.pds, pd)
	}
	for i := 0; i < l.MRs*l.PDs; i++ {
		r, err := l.mapRegion(t, p, c.pds[i%l.PDs], target)
		if err != nil {
			return nil, fmt.Errorf("register MR %d: %w", i, err)
		}
		c.mrs = append(c.mrs, r)
	}
	return c, nil
}

// learnAddress finds the address by which peers reach the port.
func (c *ctx) learnAddress(t verbs.Thread) error {
	var entries [64]verbs.GIDEntry
	n, err := c.c.QueryGIDTable(t, entries[:], 0)
	if err != nil {
		return fmt.Errorf("query GID table: %w", err)
	}
	if n > 0 && entries[0].Type == verbs.GIDTypeIB {
		a, err := c.c.QueryPort(t, port)
		c.lid = a.LID
		return err
	}
	c.gid, c.gidx, err = roceGID(entries[:n])
	return err
}

// pathTo is the address of the port of another context.
func (c *ctx) pathTo(peer *ctx) verbs.AHAttr {
	if c.lid != 0 {
		return verbs.AHAttr{Port: port, DLID: peer.lid}
	}
	return verbs.AHAttr{IsGlobal: true, Port: port, GRH: verbs.GRH{DGID: peer.gid, SGIDIndex: c.gidx, HopLimit: 64}}
}

// roceGID picks the RoCEv2 entry with an IPv4 address, or else the first RoCEv2.
func roceGID(entries []verbs.GIDEntry) (verbs.GID, uint8, error) {
	best := -1
	for i := range entries {
		if entries[i].Type != verbs.GIDTypeRoCEv2 || entries[i].Port != port {
			continue
		}
		v4 := entries[i].GID[10] == 0xff && entries[i].GID[11] == 0xff
		if best < 0 || v4 {
			best = i
			if v4 {
				break
			}
		}
	}
	if best < 0 {
		return verbs.GID{}, 0, fmt.Errorf("port %d has no RoCE v2 GID", port)
	}
	return entries[best].GID, uint8(entries[best].Index), nil
}

// domain is the PD that a thread's QPs are made on.
func (l *Load) domain(t verbs.Thread, c *ctx, pd int, target bool) (verbs.PD, error) {
	if l.TD == TDNone || l.TD == "" || target {
		return c.pds[pd], nil
	}
	var attr verbs.TDInitAttr
	if l.TD == TDIndependent {
		attr = verbs.TDInitAttr{CompMask: verbs.TDInitAttrIndependent, Independent: 1}
	}
	td, err := c.c.AllocTD(t, attr)
	if err != nil {
		return nil, fmt.Errorf("alloc TD: %w", err)
	}
	dom, err := c.c.AllocParentDomain(t, verbs.ParentDomainAttr{PD: c.pds[pd], TD: td})
	if err != nil {
		return nil, fmt.Errorf("alloc parent domain: %w", err)
	}
	return dom, nil
}

func (l *Load) createQP(t verbs.Thread, c *ctx, pd verbs.PD, cq, rcq verbs.CQ) (*conn, error) {
	inline := l.InlineMax
	if inline == 0 && l.Inline {
		inline = l.Payload
	}
	qp, err := pd.CreateQP(t, verbs.QPInitAttr{
		Type: types[l.Transport], SendCQ: cq, RecvCQ: rcq,
		Cap: verbs.QPCap{MaxSendWR: uint32(l.Window), MaxRecvWR: uint32(max(l.RecvDepth, 1)),
			MaxSendSGE: 1, MaxRecvSGE: 1, MaxInline: inline},
	})
	if err != nil {
		return nil, fmt.Errorf("create QP: %w", err)
	}
	k := &conn{qp: qp, cq: cq, rcq: rcq, ctx: c}
	if q, ok := cq.(verbs.TimedCQ); ok && l.Messages == 0 && q.KeepTimes(pollBatch) {
		k.times = q
	}
	return k, nil
}

// connect brings both QPs to RTS. Each side's calls are made by a thread of its
// own process.
func (l *Load) connect(t verbs.Thread, a, b *side) error {
	for g := range a.qps {
		for q := range a.qps[g] {
			a.qps[g][q].peer, b.qps[g][q].peer = b.qps[g][q], a.qps[g][q]
		}
	}
	for _, s := range []*side{a, b} {
		err := in(t, s.proc, "connect", func(t verbs.Thread) error {
			for g := range s.qps {
				for q, k := range s.qps[g] {
					if err := l.bringUp(t, k); err != nil {
						return fmt.Errorf("thread %d QP %d: %w", g, q, err)
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// defaultMTU is the path MTU of a load that names none.
const defaultMTU = verbs.MTU1024

func (l *Load) bringUp(t verbs.Thread, k *conn) error {
	const psn = 0x1000
	typ := types[l.Transport]
	mtu, rd := l.MTU, l.RdAtomic
	mtu = cmp.Or(mtu, defaultMTU)
	rd = cmp.Or(rd, 16)
	ah := k.ctx.pathTo(k.peer.ctx)
	access := verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic
	attr := verbs.QPAttr{Port: port, Access: access, QKey: QKey, AH: ah, PathMTU: mtu, DestQPN: k.peer.qp.QPN(), RQPSN: psn,
		MaxDestRdAtomic: rd, MinRNRTimer: code(l.MinRNRTimer, 12), SQPSN: psn, Timeout: code(l.AckTimeout, AckTimeout), RetryCnt: code(l.RetryCnt, 7), RNRRetry: code(l.RNRRetry, 7), MaxRdAtomic: rd}
	for _, to := range []verbs.QPState{verbs.QPSInit, verbs.QPSRTR, verbs.QPSRTS} {
		from := attr.State
		attr.State = to
		if err := k.qp.Modify(t, &attr, needed(typ, to)); err != nil {
			return fmt.Errorf("%v to %v: %w", from, to, err)
		}
	}
	if typ != verbs.QPTUD {
		return nil
	}
	h, err := k.ctx.pds[k.pd].CreateAH(t, ah)
	if err != nil {
		return fmt.Errorf("address handle: %w", err)
	}
	k.ah = h
	return nil
}

// code is an attribute that may be left out.
func code(v *uint8, left uint8) uint8 {
	if v == nil {
		return left
	}
	return *v
}

// QKey is the Q_Key of datagram QPs.
const QKey = 0x11111111

// needed are the attributes that the step of a QP to a state must have.
func needed(typ verbs.QPType, to verbs.QPState) verbs.QPAttrMask {
	m := verbs.QPMaskState
	switch {
	case to == verbs.QPSInit && typ == verbs.QPTUD:
		m |= verbs.QPMaskPort | verbs.QPMaskPKeyIndex | verbs.QPMaskQKey
	case to == verbs.QPSInit:
		m |= verbs.QPMaskPort | verbs.QPMaskPKeyIndex | verbs.QPMaskAccessFlags
	case to == verbs.QPSRTR && typ != verbs.QPTUD:
		m |= verbs.QPMaskAV | verbs.QPMaskPathMTU | verbs.QPMaskDestQPN | verbs.QPMaskRQPSN
		if typ == verbs.QPTRC {
			m |= verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer
		}
	case to == verbs.QPSRTS:
		m |= verbs.QPMaskSQPSN
		if typ == verbs.QPTRC {
			m |= verbs.QPMaskTimeout | verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry | verbs.QPMaskMaxQPRdAtomic
		}
	}
	return m
}
