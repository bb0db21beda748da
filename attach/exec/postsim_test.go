//go:build linux && amd64

package exec

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
)

// postQueue is struct queue of testdata/posts.c.
type postQueue struct {
	verbs.QP
	peer int
	all  bool
	ring int // WQEBBs
	sent uint16
	// Receives.
	posted, taken, polled int
}

// simPosts is testdata/posts.c on sim/provider.
type simPosts struct {
	strings.Builder
	tb     *testbed.Testbed
	t      verbs.Thread
	words  []string
	ctx    verbs.Context
	pd     verbs.PD
	tds    [postDomains]verbs.TD
	pds    [postDomains]verbs.PD
	cq     verbs.CQ
	mr     verbs.MR
	buf    verbs.Buffer
	gid    verbs.GIDEntry
	queues [postQueues]*postQueue
	nextID uint64
	due    int
}

// simulatePosts runs a program on a testbed and returns what posts.c prints, with a line for
// each store to a register.
func simulatePosts(t *testing.T, program string, dynamic bool) string {
	t.Helper()
	p, err := profile.Load(profile.Default)
	if err != nil {
		t.Fatal(err)
	}
	p.Kernel.Generation = kernel.Static
	if dynamic {
		p.Kernel.Generation = kernel.Dynamic
	}
	x := &simPosts{words: strings.Fields(program)}
	cfg := testbed.Default(p)
	cfg.Env = map[string]string{}
	for i, w := range x.words {
		if w == "env" {
			cfg.Env[x.words[i+1]] = x.words[i+2]
		}
	}
	if x.tb, err = testbed.New(cfg); err != nil {
		t.Fatal(err)
	}
	if err := x.tb.Run(0, func(th verbs.Thread) { x.t = th; x.run() }); err != nil {
		t.Fatalf("%v\n%s", err, x.String())
	}
	if err := x.tb.Close(); err != nil {
		t.Fatal(err)
	}
	return x.String()
}

func (x *simPosts) word() string {
	w := x.words[0]
	x.words = x.words[1:]
	return w
}

func (x *simPosts) number() int {
	w := x.word()
	n, err := strconv.Atoi(w)
	must("number "+w, err)
	return n
}

func (x *simPosts) big() uint64 {
	w := x.word()
	n, err := strconv.ParseUint(w, 10, 64)
	must("number "+w, err)
	return n
}

// must ends the program of the simulated thread, and with it the run.
func must(what string, err error) {
	if err != nil {
		panic(fmt.Sprintf("%s: %v", what, err))
	}
}

func (x *simPosts) run() {
	for len(x.words) > 0 {
		switch w := x.word(); w {
		case "program":
			fmt.Fprintf(x, "program %d\n", x.number())
		case "env":
			x.words = x.words[2:]
		case "open":
			x.open()
		case "close": // the testbed's end does it
		case "td":
			x.newTD()
		case "tdfree":
			x.freeTD(x.number())
		case "qp":
			x.newQP()
		case "qpfree":
			x.freeQP(x.number())
		case "connect":
			x.connect(x.number(), x.number())
		case "post":
			x.post()
		case "drain":
			x.drain()
		default:
			panic(w)
		}
	}
}

func (x *simPosts) open() {
	devs, err := x.t.Process().Devices(x.t)
	must("devices", err)
	x.ctx, err = devs[0].Open(x.t)
	if err != nil {
		fmt.Fprintf(x, "open 0\n")
		return
	}
	fmt.Fprintf(x, "open 1\n")
	x.buf, err = x.t.Process().Map(x.t, postMemory, verbs.MapOptions{})
	must("map", err)
	b := make([]byte, postMemory)
	for i := range b {
		b[i] = byte(uint32(i) * 0x9e3779b1 >> 24)
	}
	_, err = x.buf.WriteAt(x.t, b, 0)
	must("write", err)
	x.pd, err = x.ctx.AllocPD(x.t)
	must("pd", err)
	x.mr, err = x.pd.RegMR(x.t, x.buf.Addr(), postMemory,
		verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteRead|verbs.AccessRemoteAtomic)
	must("mr", err)
	x.cq, err = x.ctx.CreateCQ(x.t, verbs.CQAttr{CQE: 4095})
	must("cq", err)
	x.gid, err = x.ctx.QueryGIDEx(x.t, 1, 0, 0)
	must("gid", err)
	fmt.Fprintf(x, "key %08x at %x\n", x.mr.LKey(), x.buf.Addr())
}

func (x *simPosts) newTD() {
	i := x.number()
	td, err := x.ctx.AllocTD(x.t, verbs.TDInitAttr{})
	fmt.Fprintf(x, "td %d %d\n", i, verbs.ErrnoOf(err))
	if err != nil {
		return
	}
	x.tds[i] = td
	x.pds[i], err = x.ctx.AllocParentDomain(x.t, verbs.ParentDomainAttr{PD: x.pd, TD: td})
	must("parent domain", err)
}

func (x *simPosts) freeTD(i int) {
	if x.tds[i] == nil {
		return
	}
	must("dealloc of a parent domain", x.pds[i].Dealloc(x.t))
	must("dealloc_td", x.tds[i].Dealloc(x.t))
	x.tds[i], x.pds[i] = nil, nil
}

func (x *simPosts) newQP() {
	id, td, all := x.number(), x.number(), x.number() == 1
	u := func() uint32 { return uint32(x.number()) }
	a := verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: x.cq, RecvCQ: x.cq, SigAll: all,
		Cap: verbs.QPCap{MaxSendWR: u(), MaxRecvWR: u(), MaxSendSGE: u(), MaxRecvSGE: u(), MaxInline: u()}}
	pd := x.pd
	if td >= 0 && x.pds[td] != nil {
		pd = x.pds[td]
	}
	qp, err := pd.CreateQP(x.t, a)
	if err != nil {
		fmt.Fprintf(x, "qp %d error %d\n", id, verbs.ErrnoOf(err))
		return
	}
	q := &postQueue{QP: qp, peer: -1, all: all, ring: 1}
	x.queues[id] = q
	m := qp.(verbs.Mlx5QP)
	var last [prm.WQEBBSize]byte
	for m.SendQueue(x.t, (2*q.ring-1)*prm.WQEBBSize, last[:]) == nil {
		q.ring *= 2
	}
	c, r := qp.Caps(), m.BFReg()
	size := r.Size
	fmt.Fprintf(x, "qp %d qpn %06x caps %d %d %d %d %d ring %d bf %x %d\n", id, qp.QPN(), c.MaxSendWR, c.MaxRecvWR,
		c.MaxSendSGE, c.MaxRecvSGE, c.MaxInline, q.ring, r.Offset, size)
}

func (x *simPosts) freeQP(id int) {
	q := x.queues[id]
	if q == nil {
		return
	}
	if q.peer >= 0 {
		x.queues[q.peer].peer = -1
	}
	must("destroy_qp", q.Destroy(x.t))
	x.queues[id] = nil
}

func (x *simPosts) connect(a, b int) {
	if x.queues[a] == nil || x.queues[b] == nil {
		return
	}
	x.ready(a, b)
	if a != b {
		x.ready(b, a)
	}
	x.queues[a].peer, x.queues[b].peer = b, a
}

func (x *simPosts) ready(from, to int) {
	q := x.queues[from]
	a := verbs.QPAttr{State: verbs.QPSInit, Port: 1, PathMTU: verbs.MTU256, DestQPN: x.queues[to].QPN(),
		Access:          verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic,
		MaxDestRdAtomic: 8, MinRNRTimer: 1, Timeout: 18, RetryCnt: 7, RNRRetry: 7, MaxRdAtomic: 8,
		AH: verbs.AHAttr{IsGlobal: true, Port: 1, GRH: verbs.GRH{DGID: x.gid.GID, HopLimit: 64}}}
	must("INIT", q.Modify(x.t, &a, verbs.QPMaskState|verbs.QPMaskPKeyIndex|verbs.QPMaskPort|verbs.QPMaskAccessFlags))
	a.State = verbs.QPSRTR
	must("RTR", q.Modify(x.t, &a, verbs.QPMaskState|verbs.QPMaskAV|verbs.QPMaskPathMTU|verbs.QPMaskDestQPN|verbs.QPMaskRQPSN|
		verbs.QPMaskMaxDestRdAtomic|verbs.QPMaskMinRNRTimer))
	a.State = verbs.QPSRTS
	must("RTS", q.Modify(x.t, &a, verbs.QPMaskState|verbs.QPMaskTimeout|verbs.QPMaskRetryCnt|verbs.QPMaskRNRRetry|
		verbs.QPMaskSQPSN|verbs.QPMaskMaxQPRdAtomic))
}

func receives(op verbs.WROpcode) bool {
	return op == verbs.WRSend || op == verbs.WRSendImm || op == verbs.WRRDMAWriteImm
}

func (x *simPosts) receive(id int) bool {
	q := x.queues[id]
	wr := x.id()
	if q.posted-q.polled == postSlots {
		return false
	}
	_, err := q.PostRecv(x.t, []verbs.RecvWR{{ID: wr, SGEs: []verbs.SGE{{
		Addr: x.buf.Addr() + uint64(id*postSlab+postRecv+q.posted%postSlots*postSlot), Length: postSlot, LKey: x.mr.LKey()}}}})
	recv, _ := q.QP.(verbs.Mlx5QP).DoorbellRecord(x.t)
	fmt.Fprintf(x, "recv %d %d record %d\n", id, verbs.ErrnoOf(err), recv)
	if err == nil {
		q.posted++
	}
	return err == nil
}

func (x *simPosts) id() uint64 {
	x.nextID++
	return x.nextID - 1
}

func (x *simPosts) request(id int) (w verbs.SendWR) {
	if s := x.word(); s != "wr" {
		panic(s)
	}
	w = verbs.SendWR{ID: x.id(), Opcode: verbs.WROpcode(x.number()), Flags: verbs.SendFlags(x.number()), RKey: x.mr.RKey()}
	base := x.buf.Addr() + uint64(id*postSlab)
	w.RemoteAddr = base + postRemote + x.big()
	w.Imm, w.CompareAdd, w.Swap = uint32(x.big()), x.big(), x.big()
	switch w.Opcode {
	case verbs.WRRDMARead, verbs.WRAtomicCmpSwp, verbs.WRAtomicFetchAdd:
		base += postDst
	}
	for range x.number() {
		w.SGEs = append(w.SGEs, verbs.SGE{Addr: base + x.big(), Length: uint32(x.number()), LKey: x.mr.LKey()})
	}
	return w
}

func (x *simPosts) post() {
	id := x.number()
	q := x.queues[id]
	wrs := make([]verbs.SendWR, x.number())
	want := 0
	for i := range wrs {
		if wrs[i] = x.request(id); receives(wrs[i].Opcode) {
			want++
		}
	}
	if q == nil || q.peer < 0 {
		return
	}
	to := x.queues[q.peer]
	for to.posted-to.taken < want {
		if !x.receive(q.peer) {
			return
		}
	}
	x.tb.Log().Start()
	bad, err := q.PostSend(x.t, wrs)
	x.t.Sleep(10 * time.Microsecond)
	stores := x.tb.Log().Stop()
	for _, w := range wrs[:bad] {
		if q.all || w.Flags&verbs.SendSignaled != 0 {
			x.due++
		}
		if receives(w.Opcode) {
			x.due++
			to.taken++
		}
	}
	_, sent := q.QP.(verbs.Mlx5QP).DoorbellRecord(x.t)
	fmt.Fprintf(x, "post %d %d at %d record %d\n", id, verbs.ErrnoOf(err), bad, sent)
	x.printRing(id, uint16(sent))
	x.printStores(stores)
}

func (x *simPosts) drain() {
	var wcs []verbs.WC
	buf := make([]verbs.WC, 256)
	for len(wcs) < x.due {
		n, err := x.cq.PollWait(x.t, buf, time.Second)
		must("poll", err)
		if n == 0 {
			panic(syscall.ETIMEDOUT)
		}
		wcs = append(wcs, buf[:n]...)
	}
	x.due = 0
	for _, q := range x.queues {
		if q != nil {
			q.polled = q.taken
		}
	}
	x.t.Sleep(2 * time.Millisecond) // for what nobody was told of
	for _, recv := range []bool{false, true} {
		for id, q := range x.queues {
			for i := range wcs {
				if q != nil && wcs[i].QPN == q.QPN() && (wcs[i].Opcode&verbs.WCOpRecv != 0) == recv {
					x.printWC(id, &wcs[i])
				}
			}
		}
	}
	b := make([]byte, postMemory)
	_, err := x.buf.ReadAt(x.t, b, 0)
	must("read", err)
	h := fnv.New64a()
	_, _ = h.Write(b)
	fmt.Fprintf(x, "memory %016x\n", h.Sum64())
}

func (x *simPosts) printWC(id int, w *verbs.WC) {
	bytes, imm := uint32(0), uint32(0)
	if w.Opcode&verbs.WCOpRecv != 0 || slices.Contains([]verbs.WCOpcode{verbs.WCOpRDMARead, verbs.WCOpCompSwap, verbs.WCOpFetchAdd}, w.Opcode) {
		bytes = w.ByteLen
	}
	if w.Opcode&verbs.WCOpRecv != 0 && w.Flags&verbs.WCWithImm != 0 {
		imm = w.Imm
	}
	fmt.Fprintf(x, "wc %d id %d status %d opcode %d bytes %d flags %x imm %d\n", id, w.ID, uint32(w.Status), uint32(w.Opcode), bytes, uint32(w.Flags), imm)
}
