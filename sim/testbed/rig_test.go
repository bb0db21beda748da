package testbed

import (
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/record"
)

// config is the usual testbed with a changed profile.
func config(tb testing.TB, change ...func(*Config)) Config {
	tb.Helper()
	p, err := profile.Load("connectx-5")
	if err != nil {
		tb.Fatal(err)
	}
	c := Default(p)
	for _, f := range change {
		f(&c)
	}
	return c
}

// static is the kernel and the library of the static generation.
func static(c *Config) { oldKernel(c); oldLibrary(c) }

func oldKernel(c *Config)  { c.Profile.Kernel.Generation = kernel.Static }
func oldLibrary(c *Config) { c.Profile.Provider.Generation = kernel.Static }

func lockstep(c *Config) { c.Lockstep = true }

func infiniBand(c *Config) { c.Profile.HCA.LinkLayer = hca.InfiniBand }

// run runs body on a fresh testbed and closes it.
func run(tb testing.TB, c Config, body func(x *rig)) *Testbed {
	tb.Helper()
	b, err := New(c)
	if err != nil {
		tb.Fatal(err)
	}
	err = b.Run(0, func(t verbs.Thread) { body(&rig{TB: tb, bed: b, t: t}) })
	if err != nil {
		tb.Errorf("run: %v", err)
	}
	if err := b.Close(); err != nil {
		tb.Errorf("close: %v", err)
	}
	return b
}

// rig is a test running in a simulated thread.
type rig struct {
	testing.TB
	bed *Testbed
	t   verbs.Thread
	typ verbs.QPType // of queue pairs; 0: RC

	lids     map[verbs.GID]uint16 // of InfiniBand ports
	recorded *record.Testbed      // decorates bed; nil: nothing is recorded
}

// ok stops the test when a call failed.
func (x *rig) ok(what string, err error) {
	x.Helper()
	if err != nil {
		x.Fatalf("%s: %v", what, err)
	}
}

// node is one side of a connection.
type node struct {
	ctx verbs.Context
	pd  verbs.PD
	cq  verbs.CQ
	qp  verbs.QP
	buf verbs.Buffer
	mr  verbs.MR
	gid verbs.GIDEntry
}

const everything = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic

// open opens the first device of the thread's host.
func (x *rig) open(t verbs.Thread) verbs.Context {
	x.Helper()
	devs, err := t.Process().Devices(t)
	x.ok("devices", err)
	ctx, err := devs[0].Open(t)
	x.ok("open", err)
	return ctx
}

// node makes one side with size bytes of memory.
func (x *rig) node(t verbs.Thread, size uint64) *node {
	x.Helper()
	n := &node{ctx: x.open(t)}
	x.fill(t, n, size)
	return n
}

func (x *rig) fill(t verbs.Thread, n *node, size uint64) {
	x.Helper()
	var err error
	n.pd, err = n.ctx.AllocPD(t)
	x.ok("pd", err)
	n.cq, err = n.ctx.CreateCQ(t, verbs.CQAttr{CQE: 1023})
	x.ok("cq", err)
	n.buf, err = t.Process().Map(t, size, verbs.MapOptions{})
	x.ok("map", err)
	n.mr, err = n.pd.RegMR(t, n.buf.Addr(), size, everything)
	x.ok("mr", err)
	n.qp = x.qp(t, n.pd, n.cq)
	n.gid = x.gid(t, n.ctx)
}

// gid is the RoCEv2 entry with an IPv4 address.
func (x *rig) gid(t verbs.Thread, ctx verbs.Context) verbs.GIDEntry {
	x.Helper()
	tab := make([]verbs.GIDEntry, 256)
	k, err := ctx.QueryGIDTable(t, tab, 0)
	x.ok("gids", err)
	for _, g := range tab[:k] {
		if g.Type == verbs.GIDTypeRoCEv2 && g.GID[10] == 0xff {
			return g
		}
		if g.Type == verbs.GIDTypeIB {
			a, err := ctx.QueryPort(t, 1)
			x.ok("port", err)
			if x.lids == nil {
				x.lids = map[verbs.GID]uint16{}
			}
			x.lids[g.GID] = a.LID
			return g
		}
	}
	x.Fatalf("no RoCEv2 GID with an IPv4 address in %v", tab[:k])
	return verbs.GIDEntry{}
}

func (x *rig) qp(t verbs.Thread, pd verbs.PD, cq verbs.CQ) verbs.QP {
	x.Helper()
	typ := x.typ
	if typ == 0 {
		typ = verbs.QPTRC
	}
	q, err := pd.CreateQP(t, verbs.QPInitAttr{Type: typ, SendCQ: cq, RecvCQ: cq,
		Cap: verbs.QPCap{MaxSendWR: 128, MaxRecvWR: 128, MaxSendSGE: 2, MaxRecvSGE: 2, MaxInline: 28}})
	x.ok("qp", err)
	return q
}

// connect takes a QP to RTS towards another.
func (x *rig) connect(t verbs.Thread, q verbs.QP, own, peer verbs.GIDEntry, dest uint32, mtu verbs.MTU) {
	x.Helper()
	x.connectWith(t, q, own, peer, dest, mtu, verbs.QPAttr{Timeout: 14, RetryCnt: 7, RNRRetry: 7})
}

// connectWith is connect with the timeout and the retry counts of r.
func (x *rig) connectWith(t verbs.Thread, q verbs.QP, own, peer verbs.GIDEntry, dest uint32, mtu verbs.MTU, r verbs.QPAttr) {
	x.Helper()
	a := verbs.QPAttr{State: verbs.QPSInit, Port: 1, Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic}
	x.ok("INIT", q.Modify(t, &a, verbs.QPMaskState|verbs.QPMaskPKeyIndex|verbs.QPMaskPort|verbs.QPMaskAccessFlags))
	a = verbs.QPAttr{State: verbs.QPSRTR, PathMTU: mtu, DestQPN: dest, RQPSN: 77, MaxDestRdAtomic: 16, MinRNRTimer: 12,
		AH: verbs.AHAttr{IsGlobal: true, Port: 1, GRH: verbs.GRH{DGID: peer.GID, SGIDIndex: uint8(own.Index), HopLimit: 64}}}
	if lid := x.lids[peer.GID]; lid != 0 {
		a.AH = verbs.AHAttr{Port: 1, DLID: lid}
	}
	x.ok("RTR", q.Modify(t, &a, verbs.QPMaskState|verbs.QPMaskAV|verbs.QPMaskPathMTU|verbs.QPMaskDestQPN|verbs.QPMaskRQPSN|
		verbs.QPMaskMaxDestRdAtomic|verbs.QPMaskMinRNRTimer))
	a = verbs.QPAttr{State: verbs.QPSRTS, SQPSN: 77, Timeout: r.Timeout, RetryCnt: r.RetryCnt, RNRRetry: r.RNRRetry, MaxRdAtomic: 16}
	x.ok("RTS", q.Modify(t, &a, verbs.QPMaskState|verbs.QPMaskSQPSN|verbs.QPMaskTimeout|verbs.QPMaskRetryCnt|
		verbs.QPMaskRNRRetry|verbs.QPMaskMaxQPRdAtomic))
}

// pair is two connected nodes: both in the caller's process, or the second on the
// other host. do runs f in a thread of the second's process.
func (x *rig) pair(remote bool, size uint64) (a, b *node, do func(f func(verbs.Thread))) {
	x.Helper()
	a = x.node(x.t, size)
	do = func(f func(verbs.Thread)) { f(x.t) }
	if remote {
		p, err := x.bed.Hosts()[1].NewProcess(x.t, nil)
		x.ok("process", err)
		do = func(f func(verbs.Thread)) { x.t.Join(p.Start(x.t, "peer", -1, f)) }
	}
	do(func(t verbs.Thread) {
		b = x.node(t, size)
		x.connect(t, b.qp, b.gid, a.gid, a.qp.QPN(), verbs.MTU1024)
	})
	x.connect(x.t, a.qp, a.gid, b.gid, b.qp.QPN(), verbs.MTU1024)
	return a, b, do
}

// sge is part of the node's memory.
func (n *node) sge(off, length int) []verbs.SGE {
	return []verbs.SGE{{Addr: n.buf.Addr() + uint64(off), Length: uint32(length), LKey: n.mr.LKey()}}
}

// wait waits for one completion and expects success.
func (x *rig) wait(t verbs.Thread, n *node) verbs.WC {
	x.Helper()
	var wc [1]verbs.WC
	k, err := n.cq.PollWait(t, wc[:], time.Second)
	x.ok("poll", err)
	if k != 1 {
		x.Fatalf("no completion in a second")
	}
	if wc[0].Status != verbs.WCSuccess {
		x.Fatalf("completion with %v, vendor error %#x", wc[0].Status, wc[0].VendorErr)
	}
	return wc[0]
}

func (x *rig) post(n *node, w verbs.SendWR) {
	x.Helper()
	_, err := n.qp.PostSend(x.t, []verbs.SendWR{w})
	x.ok("post", err)
}

func (x *rig) write(t verbs.Thread, b verbs.Buffer, p []byte, off int) {
	x.Helper()
	_, err := b.WriteAt(t, p, int64(off))
	x.ok("write memory", err)
}

func (x *rig) read(t verbs.Thread, b verbs.Buffer, off, n int) []byte {
	x.Helper()
	p := make([]byte, n)
	_, err := b.ReadAt(t, p, int64(off))
	x.ok("read memory", err)
	return p
}
