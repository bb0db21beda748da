package errs

import (
	"bytes"
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/match"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

const mtuBytes = 1024 // kit.Default has this path MTU

// landedPackets: a packet is checked whole, and a WRITE packet by packet.
func landedPackets(c *spec.C) {
	e := kit.Open(c)
	src := e.Buffer(c, 4*mtuBytes, kit.AllAccess)
	all := src.FillRandom(c)
	for _, tc := range []struct{ region, n, landed int }{
		{32, 64, 0}, {2048, 4096, 2048}, {2560, 4096, 2048}, {3072, 4096, 3072}, {1023, 2048, 0},
	} {
		dst := e.Buffer(c, tc.region, kit.AllAccess)
		before := dst.FillRandom(c)
		p := e.Pair(c, kit.Default())
		step := fmt.Sprintf("%d bytes to a region of %d", tc.n, tc.region)
		c.Status(step, p.A.PostAndPoll(c, kit.Write(1, dst, 0, src.SGE(0, tc.n))), verbs.WCRemAccessErr)
		kit.Measured(c, step+": bytes that landed", prefix(dst.Get(c, 0, tc.region), before, all), tc.landed)
		dst.CheckRedZones(c)
	}
}

// prefix is how many bytes at the beginning of got are of now, where the rest is of before; -1:
// neither.
func prefix(got, before, now []byte) int {
	n := 0
	for n < len(got) && got[n] == now[n] {
		n++
	}
	n -= n % mtuBytes // drawn bytes may agree by chance
	if !bytes.Equal(got[n:], before[n:]) {
		return -1
	}
	return n
}

// sentBeforeLengthError: the requester sends the packets that lie in its region before it fails.
func sentBeforeLengthError(c *spec.C) {
	p := connectHosts(c, kit.Default(), kit.AllAccess)
	for _, tc := range []struct{ region, n, sent int }{{4096, 5120, 4}, {2048, 4096, 2}, {3000, 4096, 2}, {512, 1024, 0}, {3072, 3584, 3}} {
		mem := p.e.Buffer(c, tc.region, kit.AllAccess)
		p.reconnect(c, kit.Default())
		step := fmt.Sprintf("%d bytes of a region of %d", tc.n, tc.region)
		packets := kit.Tap(c, func() {
			kit.MeasuredVendor(c, step, p.a.PostAndPoll(c, p.far.WriteTo(1, 0, mem.SGE(0, tc.n))), verbs.WCLocProtErr, vendorKeyTooShort)
		})
		kit.Measured(c, step+": packets sent", len(kit.PacketsTo(packets, p.b.QPN)), tc.sent)
	}
}

// sendPSN is the send PSN that a query of a queue pair gives, from the first of its requests on.
func sendPSN(c *spec.C, q *kit.QP) int {
	a, _, err := q.Query(c.T, verbs.QPMaskSQPSN)
	kit.Must(c, "query_qp", err)
	return int(roce.CmpPSN(a.SQPSN, q.Opt.PSN))
}

// psnAfterNAK: the send PSN stands where the responder stopped, at the boundary of what landed.
func psnAfterNAK(c *spec.C) {
	e := kit.Open(c)
	src := e.Buffer(c, 4*mtuBytes, kit.AllAccess)
	for packets := range 4 {
		dst := e.Buffer(c, max(1, packets*mtuBytes), kit.AllAccess)
		p := e.Pair(c, kit.Default())
		step := fmt.Sprintf("%d of 4 packets inside", packets)
		c.Status(step, p.A.PostAndPoll(c, kit.Write(1, dst, 0, src.All())), verbs.WCRemAccessErr)
		kit.Measured(c, step+": send PSN", sendPSN(c, p.A), packets)
	}
}

// psnAfterSilence: without an answer it stands behind what was sent.
func psnAfterSilence(c *spec.C) {
	p := connectHosts(c, shortRetries(), kit.AllAccess)
	for n := 1; n <= 4; n++ {
		p.reconnect(c, shortRetries())
		p.b.Process.Do(c, player.DestroyQP, kit.Args{"qp": p.b.ID}, nil)
		step := fmt.Sprintf("%d packets", n)
		c.Status(step, p.a.PostAndPoll(c, p.far.WriteTo(1, 0, p.mem.SGE(0, n*mtuBytes))), verbs.WCRetryExcErr)
		kit.Measured(c, step+": send PSN", sendPSN(c, p.a), n)
	}
}

// movedInTheMiddle moves a requester to ERR in the middle of a WRITE of 4 MiB. What has landed is
// whole packets, as many as the send PSN has advanced.
func movedInTheMiddle(c *spec.C) {
	const size = 4 << 20
	e := kit.Open(c)
	src, dst := e.Buffer(c, size, kit.AllAccess), e.Buffer(c, size, kit.AllAccess)
	src.FillByte(c, 0xa5)
	for i := range 3 {
		dst.FillByte(c, 0)
		p := e.Pair(c, kit.Default())
		p.A.Post(c, kit.Write(1, dst, 0, src.All()))
		c.T.Sleep(time.Duration(i+1) * 40 * time.Microsecond)
		p.A.ModifyState(c, verbs.QPSErr)
		wc := kit.PollOne(c, p.A.SendCQ)
		c.StatusIn("the write", wc, verbs.WCWRFlushErr, verbs.WCSuccess)
		c.T.Sleep(kit.QuietPeriod / 4) // packets that are on their way
		got := dst.Get(c, 0, size)
		n := bytes.Count(got, []byte{0xa5})
		kit.Measured(c, "a prefix of whole packets", n%mtuBytes == 0 && bytes.Equal(got[:n], bytes.Repeat([]byte{0xa5}, n)), true)
		kit.Measured(c, "packets landed less the advance of the send PSN", n/mtuBytes-sendPSN(c, p.A), 0)
	}
}

// silenceAfterDereg: after a deregistration a responder is silent for a millisecond, where it
// refuses an address behind a region at once.
func silenceAfterDereg(c *spec.C) {
	p := connectHosts(c, kit.Default(), kit.AllAccess)
	took := func(step string, wr verbs.SendWR) time.Duration {
		begin := c.T.Now()
		kit.MeasuredVendor(c, step, p.a.PostAndPoll(c, wr), verbs.WCRemAccessErr, vendorRefusedByKey)
		return c.T.Now() - begin
	}
	beyond := took("behind the region", p.far.WriteTo(1, farBytes, p.mem.SGE(0, 8)))
	c.Observe("behind the region, ms", beyond.Seconds()*1e3)
	if c.Has(kit.ExactTime) {
		c.True("behind the region: refused at once", beyond < 300*time.Microsecond, "it took %v", beyond)
	}
	p.reconnect(c, kit.Default())
	p.b.Process.Do(c, player.DeregBuffer, kit.Args{"buf": p.far.ID}, nil)
	kit.MeasuredTime(c, "after deregistration", took("deregistered", p.far.WriteTo(2, 0, p.mem.SGE(0, 8))), 1100*time.Microsecond, 0.05)
}

// recordInError: in RTS the register says what is posted. In ERR the doorbell record does: requests
// that it does not cover have no completion until it is raised.
func recordInError(c *spec.C) {
	e := kit.Open(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	for _, said := range []int{0, 1, 2, 3} {
		const posted = 3
		p := e.Pair(c, kit.Default())
		m := kit.Mlx5(c, p.A)
		bad := mem.SGE(0, 8)
		bad.LKey ^= 0x7f00
		kit.WriteRawWQE(c, p.A, 0, bad, mem, 32)
		kit.WriteRawWQE(c, p.A, 1, mem.SGE(0, 8), mem, 32)
		bell := kit.WriteRawWQE(c, p.A, 2, mem.SGE(0, 8), mem, 32)
		step := fmt.Sprintf("record %d of %d", said, posted)
		kit.Must(c, "write the doorbell record", m.WriteDoorbellRecord(c.T, uint16(said)))
		kit.Must(c, "ring", m.RingDoorbell(c.T, bell))
		c.Eventually(step+": state", func() verbs.QPState { return p.A.QueryState(c) }).Within(kit.QuietPeriod).Should(match.BeInState(verbs.QPSErr))
		first := kit.PollWithin(c, p.A.SendCQ, posted, kit.QuietPeriod)
		kit.Measured(c, step+": completions", len(first), said)
		kit.Must(c, "write the doorbell record", m.WriteDoorbellRecord(c.T, posted))
		later := kit.PollWithin(c, p.A.SendCQ, posted-said, kit.QuietPeriod)
		kit.Measured(c, step+": completions when it is raised", len(later), posted-said)
	}
}
