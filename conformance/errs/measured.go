package errs

import (
	"fmt"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// The cases of this file and of measured_*.go are what ConnectX-5 and ConnectX-6 were measured to
// show when something fails (github.com/unionxic/rdma-fault-characterization, 2026).

// vendor bytes by cause.
const (
	vendorKeyUnknown   = 0x52
	vendorKeyTooShort  = 0x53
	vendorKeyNoRight   = 0x33
	vendorRefusedByQP  = 0x8a
	vendorRefusedByKey = 0x88
	vendorNoReceive    = 0x87
	vendorNoAnswer     = 0x81
	vendorFlushedHead  = 0xf5
	vendorFlushed      = 0xf9
)

// pairOfHosts is a connection between two hosts, with memory on each.
type pairOfHosts struct {
	e    *kit.Env
	a    *kit.QP
	b    *kit.OtherQP
	mem  *kit.Buffer
	far  *kit.OtherBuffer
	host int // index of the far host
}

const farBytes = 8192

func connectHosts(c *spec.C, o kit.Options, access verbs.AccessFlags) *pairOfHosts {
	p := &pairOfHosts{e: kit.Open(c), host: kit.RemoteHost(c)}
	other := kit.OpenOtherProcess(c, p.host, nil)
	p.mem, p.far = p.e.Buffer(c, farBytes, kit.AllAccess), other.Buffer(c, farBytes, access, 0)
	p.reconnect(c, o)
	return p
}

// reconnect replaces the queue pairs, and leaves the processes and their memory.
func (p *pairOfHosts) reconnect(c *spec.C, o kit.Options) {
	p.a, p.b = p.e.PairWith(c, p.far.Process, o)
}

// shortRetries is a connection that gives up soon, whatever the rule of its timer.
func shortRetries() kit.Options {
	o := kit.Default()
	o.RetryCnt = 1
	return o
}

func localKeyUnknown(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	want := mem.FillRandom(c)
	bad := verbs.SGE{Addr: mem.Addr(0), Length: 8, LKey: mem.MR.LKey() ^ 0x7f00}
	kit.MeasuredVendor(c, "write", p.A.PostAndPoll(c, kit.Write(1, mem, 32, bad)), verbs.WCLocProtErr, vendorKeyUnknown)
	mem.ExpectContents(c, "memory", want)
}

func localLength(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem, far := p.Buffer(c, 64, kit.AllAccess), p.Buffer(c, 256, kit.AllAccess)
	want := far.FillRandom(c)
	for _, n := range []int{65, 128} {
		step := fmt.Sprintf("%d bytes of a region of 64", n)
		q := p.Pair(c, kit.Default())
		kit.MeasuredVendor(c, step, q.A.PostAndPoll(c, kit.Write(1, far, 0, mem.SGE(0, n))), verbs.WCLocProtErr, vendorKeyTooShort)
	}
	far.ExpectContents(c, "memory", want)
}

func readWithoutLocalWrite(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem, far := p.Buffer(c, 64, verbs.AccessRemoteRead), p.Buffer(c, 64, kit.AllAccess)
	want := mem.FillRandom(c)
	kit.MeasuredVendor(c, "read", p.A.PostAndPoll(c, kit.Read(1, far, 0, mem.SGE(0, 8))), verbs.WCLocProtErr, vendorKeyNoRight)
	mem.ExpectContents(c, "memory", want)
}

// refusedByQP has a queue pair refuse what the region permits.
func refusedByQP(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	want := mem.FillRandom(c)
	for _, tc := range []struct {
		name   string
		access verbs.AccessFlags
		wr     verbs.SendWR
	}{
		{"write", verbs.AccessRemoteRead, kit.Write(1, mem, 32, mem.SGE(0, 8))},
		{"fetch and add", verbs.AccessRemoteRead | verbs.AccessRemoteWrite, kit.FetchAdd(1, mem, 32, 1, mem.SGE(0, 8))},
	} {
		o := kit.Default()
		o.Access = tc.access
		p := e.Pair(c, o)
		kit.MeasuredVendor(c, tc.name, p.A.PostAndPoll(c, tc.wr), verbs.WCRemInvReqErr, vendorRefusedByQP)
		c.Equal(tc.name+": the responder's state", p.B.QueryState(c), verbs.QPSErr)
	}
	mem.ExpectContents(c, "memory", want)
}

func refusedByKey(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	want := mem.FillRandom(c)
	unknown := kit.Write(1, mem, 32, mem.SGE(0, 8))
	unknown.RKey ^= 0x7f00
	for _, tc := range []struct {
		name string
		wr   verbs.SendWR
	}{{"a key that is unknown", unknown}, {"an address behind the region", writeToNoRegion(1, mem)}, {"half beyond the region", kit.Write(1, mem, 60, mem.SGE(0, 8))}} {
		p := e.Pair(c, kit.Default())
		kit.MeasuredVendor(c, tc.name, p.A.PostAndPoll(c, tc.wr), verbs.WCRemAccessErr, vendorRefusedByKey)
		c.Equal(tc.name+": the responder's state", p.B.QueryState(c), verbs.QPSErr)
	}
	mem.ExpectContents(c, "memory", want)
}

func noReceive(c *spec.C) {
	o := kit.Default()
	o.RNRRetry = 2
	p := kit.NewPair(c, o)
	mem := p.Buffer(c, 64, kit.AllAccess)
	kit.MeasuredVendor(c, "send", p.A.PostAndPoll(c, kit.Send(1, mem.SGE(0, 8))), verbs.WCRNRRetryExcErr, vendorNoReceive)
	c.Equal("the responder's state", p.B.QueryState(c), verbs.QPSRTS)
}

// noAnswer has the far queue pair in each state in which it answers nothing, and destroyed.
func noAnswer(c *spec.C) {
	p := connectHosts(c, shortRetries(), kit.AllAccess)
	for _, state := range []verbs.QPState{verbs.QPSErr, verbs.QPSReset, verbs.QPSInit} {
		p.reconnect(c, shortRetries())
		if state == verbs.QPSInit {
			p.b.Process.Do(c, player.SetState, kit.Args{"qp": p.b.ID, "state": uint64(verbs.QPSReset)}, nil)
			p.b.Connect(c, p.a.Peer(), p.a.Opt, state)
		} else {
			p.b.Process.Do(c, player.SetState, kit.Args{"qp": p.b.ID, "state": uint64(state)}, nil)
		}
		wc := p.a.PostAndPoll(c, p.far.WriteTo(1, 0, p.mem.SGE(0, 8)))
		kit.MeasuredVendor(c, "responder in "+state.String(), wc, verbs.WCRetryExcErr, vendorNoAnswer)
	}
	p.reconnect(c, shortRetries())
	p.b.Process.Do(c, player.DestroyQP, kit.Args{"qp": p.b.ID}, nil)
	wc := p.a.PostAndPoll(c, p.far.WriteTo(1, 0, p.mem.SGE(0, 8)))
	kit.MeasuredVendor(c, "responder destroyed", wc, verbs.WCRetryExcErr, vendorNoAnswer)
}

// takesInRTR: a responder that was never moved to RTS takes WRITEs.
func takesInRTR(c *spec.C) {
	p := kit.Open(c).UnconnectedPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	p.B.BringUp(c, p.A.Peer(), verbs.QPSRTR)
	p.A.BringUp(c, p.B.Peer(), verbs.QPSRTS)
	want := mem.FillRandom(c)[:8]
	c.Status("write", p.A.PostAndPoll(c, kit.Write(1, mem, 32, mem.SGE(0, 8))), verbs.WCSuccess)
	c.Equal("bytes", mem.Get(c, 32, 8), want)
	c.Equal("the responder's state", p.B.QueryState(c), verbs.QPSRTR)
}

// flushedHead moves a queue pair to ERR whose peer answers nothing, with requests under way, and
// one that fails.
func flushedHead(c *spec.C) {
	o := kit.Default()
	o.Timeout = 20
	p := connectHosts(c, o, kit.AllAccess)
	p.b.Process.Do(c, player.DestroyQP, kit.Args{"qp": p.b.ID}, nil)
	for id := uint64(1); id <= 4; id++ {
		p.a.Post(c, p.far.WriteTo(id, 0, p.mem.SGE(0, 8)))
	}
	p.a.ModifyState(c, verbs.QPSErr)
	expectFlushes(c, "moved to ERR", kit.Poll(c, p.a.SendCQ, 4), vendorFlushedHead)

	local := p.e.Pair(c, kit.Default())
	local.A.Post(c, writeToNoRegion(1, p.mem), kit.Write(2, p.mem, 32, p.mem.SGE(0, 8)), kit.Write(3, p.mem, 32, p.mem.SGE(0, 8)))
	wc := kit.Poll(c, local.A.SendCQ, 3)
	kit.MeasuredVendor(c, "the head that fails", wc[0], verbs.WCRemAccessErr, vendorRefusedByKey)
	expectFlushes(c, "behind it", wc[1:], vendorFlushed)
}

// expectFlushes checks flushed requests: the first has the vendor byte head.
func expectFlushes(c *spec.C, name string, wcs []verbs.WC, head uint32) {
	for i, wc := range wcs {
		want := uint32(vendorFlushed)
		if i == 0 {
			want = head
		}
		kit.MeasuredVendor(c, fmt.Sprintf("%s: request %d", name, i+1), wc, verbs.WCWRFlushErr, want)
	}
}
