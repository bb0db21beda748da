package errs

import (
	"fmt"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// vendorError holds that the code which has no public table is not 0 where the device
// found the error, and the same each time.
func vendorError(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	badKey := verbs.SGE{Addr: mem.Addr(0), Length: 8, LKey: mem.MR.LKey() ^ 0x7f00}
	for _, tc := range []struct {
		name string
		wr   verbs.SendWR
		want verbs.WCStatus
	}{
		{"remote access", writeToNoRegion(1, mem), verbs.WCRemAccessErr},
		{"local protection", kit.Write(2, mem, 32, badKey), verbs.WCLocProtErr},
	} {
		var first uint32
		for i := range 3 {
			wc := e.Pair(c, kit.Default()).A.PostAndPoll(c, tc.wr)
			c.Status(tc.name, wc, tc.want)
			c.True(tc.name+": vendor_err", wc.VendorErr != 0, "it is 0")
			if i == 0 {
				first = wc.VendorErr
			}
			c.Equal(tc.name+": the same vendor_err", wc.VendorErr == first, true)
		}
	}
}

func responderFault(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 2048, kit.AllAccess)
	want := mem.FillRandom(c)
	// More than fits a CQE: a small message may be delivered there and need no key.
	p.B.RecvInto(c, 9, verbs.SGE{Addr: mem.Addr(1024), Length: 1000, LKey: mem.MR.LKey() ^ 0x7f00})
	c.Status("requester", p.A.PostAndPoll(c, kit.Send(1, mem.SGE(0, 1000))), verbs.WCRemOpErr)
	wc := kit.PollOne(c, p.B.RecvCQ)
	c.Status("responder", wc, verbs.WCLocProtErr)
	c.Equal("wr_id", wc.ID, uint64(9))
	mem.ExpectContents(c, "memory", want)
}

func nothingOfFailingPacket(c *spec.C) {
	e := kit.Open(c)
	src := e.Buffer(c, 4096, kit.AllAccess)
	dst := e.Buffer(c, 4096, kit.AllAccess)
	src.FillRandom(c)
	for _, tc := range []struct{ off, n int }{{4096 - 500, 501}, {4000, 1024}, {4095, 2}, {-1, 100}} {
		want := dst.FillRandom(c)
		p := e.Pair(c, kit.Default())
		step := fmt.Sprintf("%d bytes at %d", tc.n, tc.off)
		c.Status(step, p.A.PostAndPoll(c, kit.Write(1, dst, tc.off, src.SGE(0, tc.n))), verbs.WCRemAccessErr)
		dst.ExpectContents(c, step+": memory", want)
		dst.CheckRedZones(c)
	}
}

func endOutOfBounds(c *spec.C) {
	e := kit.Open(c)
	src := e.Buffer(c, 16384, kit.AllAccess)
	dst := e.Buffer(c, 8192, kit.AllAccess)
	all := src.FillRandom(c)
	for _, n := range []int{8193, 8192 + 1024, 16384} {
		before := dst.FillRandom(c)
		p := e.Pair(c, kit.Default())
		step := fmt.Sprintf("%d bytes to a region of %d", n, dst.Len)
		c.Status(step, p.A.PostAndPoll(c, kit.Write(1, dst, 0, src.SGE(0, n))), verbs.WCRemAccessErr)
		got, prefix := dst.Get(c, 0, dst.Len), 0
		for prefix < len(got) && got[prefix] == all[prefix] {
			prefix++
		}
		// A drawn byte may agree by chance; packets are of 1024 bytes.
		prefix -= prefix % 1024
		c.Observe(step+": bytes written", prefix)
		c.Equal(step+": the rest", got[prefix:], before[prefix:])
		dst.CheckRedZones(c)
	}
}

// readBecomesInvalid deregisters the far region from another thread while a long
// read of it is under way. Where the read wins it is tried again with less delay.
func readBecomesInvalid(c *spec.C) {
	e := kit.Open(c)
	const size = 8 << 20
	dst := e.Buffer(c, size, kit.AllAccess)
	far := kit.Map(c, size)
	data := c.Rand().Bytes(4096)
	for at := 0; at < size; at += len(data) {
		_, err := far.WriteAt(c.T, data, int64(at))
		kit.Must(c, "write memory", err)
	}
	for attempt := range 6 {
		p := e.Pair(c, kit.Default())
		mr, err := e.PD.RegMR(c.T, far.Addr(), size, verbs.AccessRemoteRead)
		kit.Must(c, "reg_mr", err)
		wr := verbs.SendWR{ID: 1, Opcode: verbs.WRRDMARead, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{dst.All()},
			RemoteAddr: far.Addr(), RKey: mr.RKey()}
		dst.FillByte(c, 0)
		p.A.Post(c, wr)
		c.T.Sleep(kit.QuietPeriod / 200 >> attempt)
		c.NoErr("dereg_mr", mr.Dereg(c.T))
		wcs, all := kit.AwaitCompletions(c, "an end of the read", p.A.SendCQ, 1)
		if !all {
			return
		}
		wc := wcs[0]
		if wc.Status == verbs.WCSuccess && attempt < 5 {
			continue
		}
		c.StatusIn("read", wc, verbs.WCRemAccessErr, verbs.WCRemOpErr)
		got, prefix := dst.Get(c, 0, size), 0
		for prefix < size && got[prefix] == data[prefix%len(data)] {
			prefix++
		}
		c.True("a prefix", prefix < size, "the whole range arrived although the read failed")
		for i := (prefix/1024 + 1) * 1024; i < size; i++ {
			if got[i] != 0 {
				c.Failf("byte %d was written behind the prefix of %d", i, prefix)
			}
		}
		return
	}
}

func badKeyPosition(c *spec.C) {
	e := kit.Open(c)
	src := e.Buffer(c, 4096, kit.AllAccess)
	dst := e.Buffer(c, 4096, kit.AllAccess)
	src.FillRandom(c)
	for _, bad := range []int{0, 1, 2} {
		sges := []verbs.SGE{src.SGE(0, 100), src.SGE(1000, 100), src.SGE(2000, 100)}
		sges[bad].LKey ^= 0x7f00
		want := dst.FillRandom(c)
		p := e.Pair(c, kit.Default())
		step := fmt.Sprintf("bad key in piece %d of 3", bad+1)
		c.Status(step, p.A.PostAndPoll(c, kit.Write(1, dst, 0, sges...)), verbs.WCLocProtErr)
		dst.ExpectContents(c, step+": far memory", want)
	}
}

func wrongQPN(c *spec.C) {
	e := kit.Open(c)
	o := kit.Default()
	o.Timeout, o.RetryCnt = 10, 2
	mem := e.Buffer(c, 64, kit.AllAccess)
	want := mem.FillRandom(c)
	dead := e.CreateQP(c, o)
	p := e.UnconnectedPair(c, o)
	p.B.BringUp(c, p.A.Peer(), verbs.QPSRTS)
	peer := p.B.Peer()
	peer.QPN = dead.QPN()
	dead.DestroyNow(c)
	p.A.BringUp(c, peer, verbs.QPSRTS)
	p.B.RecvInto(c, 1, mem.SGE(32, 8))
	c.Status("write to nobody", p.A.PostAndPoll(c, kit.Write(1, mem, 32, mem.SGE(0, 8))), verbs.WCRetryExcErr)
	kit.ExpectNoCompletion(c, p.B.RecvCQ, kit.QuietPeriod)
	mem.ExpectContents(c, "memory", want)
}

func differentMTU(c *spec.C) {
	e := kit.Open(c)
	o := kit.Default()
	o.Timeout, o.RetryCnt = 10, 2
	src, dst := e.Buffer(c, 4096, kit.AllAccess), e.Buffer(c, 4096, kit.AllAccess)
	p := e.UnconnectedPair(c, o)
	p.B.Opt.MTU = verbs.MTU512
	p.Connect(c)
	c.Status("small enough for both", p.A.PostAndPoll(c, kit.Write(1, dst, 0, src.SGE(0, 512))), verbs.WCSuccess)
	want := dst.FillRandom(c)
	c.StatusIn("larger than the receiver's", p.A.PostAndPoll(c, kit.Write(2, dst, 0, src.SGE(0, 3000))), verbs.WCRemInvReqErr,
		verbs.WCRetryExcErr)
	dst.ExpectContents(c, "memory", want)
}

func wrongPSN(c *spec.C) {
	e := kit.Open(c)
	o := kit.Default()
	o.Timeout, o.RetryCnt = 10, 2
	mem := e.Buffer(c, 64, kit.AllAccess)
	for _, tc := range []struct {
		name  string
		delta uint32
	}{{"ahead", 5}, {"far ahead", 1 << 22}, {"behind", 0xffffff - 4}} {
		p := e.UnconnectedPair(c, o)
		peer := p.A.Peer()
		peer.PSN = (peer.PSN + tc.delta) & 0xffffff
		p.B.BringUp(c, peer, verbs.QPSRTS)
		p.A.BringUp(c, p.B.Peer(), verbs.QPSRTS)
		want := mem.FillRandom(c)
		wc := p.A.PostAndPoll(c, kit.Write(1, mem, 32, mem.SGE(0, 8)))
		c.StatusIn("the responder expects a PSN "+tc.name, wc, verbs.WCRetryExcErr, verbs.WCSuccess)
		mem.ExpectContents(c, "memory", want)
	}
}

func peerKilled(c *spec.C) {
	e := kit.Open(c)
	o := kit.Default()
	o.Timeout, o.RetryCnt = 10, 3
	a, b := e.RemotePair(c, o)
	mem := e.Buffer(c, 64, kit.AllAccess)
	far := b.Process.Buffer(c, 64, kit.AllAccess, 0)
	c.Status("write to the living", a.PostAndPoll(c, far.WriteTo(1, 0, mem.SGE(0, 8))), verbs.WCSuccess)
	b.Process.Kill(c)
	c.T.Sleep(kit.QuietPeriod)
	c.Status("write to the dead", a.PostAndPoll(c, far.WriteTo(2, 0, mem.SGE(0, 8))), verbs.WCRetryExcErr)
	_, err := b.Process.Try(c, player.QueryQP, kit.Args{"qp": b.ID}, nil)
	c.True("the process has ended", err != nil, "it still answers")
	a2, b2 := e.RemotePair(c, o)
	far2 := b2.Process.Buffer(c, 64, kit.AllAccess, 0)
	want := mem.FillRandom(c)[:8]
	c.Status("write on a new connection", a2.PostAndPoll(c, far2.WriteTo(3, 0, mem.SGE(0, 8))), verbs.WCSuccess)
	c.Equal("bytes", far2.Get(c, 0, 8), want)
}
