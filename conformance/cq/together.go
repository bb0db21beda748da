package cq

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// heldBackTries are the rounds after the first: where times are real, a machine that is busy may
// run the program too late, and a device that waits for its period is late every time.
const heldBackTries = 20

// heldBack has a moderated CQ hold its event back: one completion fewer than it waits for bring
// none, and the next brings it, long before the period ends.
func heldBack(c *spec.C) {
	e := kit.Open(c)
	a, err := e.Ctx.QueryDeviceEx(c.T, 0)
	c.NoErr("query_device_ex", err)
	ch := e.Channel(c)
	cq := e.CreateCQWith(c, verbs.CQAttr{CQE: 255, Channel: ch})
	p := pairWithSendCQ(c, e, cq)
	mem := e.Buffer(c, 64, kit.AllAccess)
	period := time.Duration(a.MaxCQPeriod) * time.Microsecond
	post := func(n int) {
		for i := range n {
			p.A.Post(c, kit.Write(uint64(i), mem, 32, mem.SGE(0, 8)))
		}
	}
	// try is one round: how long it took, whether the program was quick enough to tell the count
	// from the period, and what waiting for an event returned one completion before the count, and
	// with it.
	try := func(n int) (took time.Duration, quick bool, before, with error) {
		kit.Must(c, "req_notify_cq", cq.ReqNotify(c.T, false))
		start := c.T.Now()
		post(n - 1)
		got, before := ch.Event(c.T, period/4)
		quick = c.T.Now()-start < period
		post(1)
		if before != nil {
			if got, with = ch.Event(c.T, kit.CompletionTimeout+period); with != nil {
				return c.T.Now() - start, quick, before, with
			}
		}
		took = c.T.Now() - start
		ch.Ack(c.T, got, 1)
		kit.ExpectSuccess(c, cq, n)
		return took, quick && took < period, before, with
	}
	for _, n := range []int{2, 3, 8} {
		if n > int(a.MaxCQCount) {
			continue
		}
		c.Errno("modify_cq", cq.Modify(c.T, verbs.CQModeration{Count: uint16(n), Period: a.MaxCQPeriod}), 0)
		took, quick, before, with := try(n)
		for more := heldBackTries; !quick && with == nil && more > 0; more-- {
			took, quick, before, with = try(n)
		}
		if quick {
			c.Errno(fmt.Sprintf("event after %d of %d completions", n-1, n), before, syscall.EAGAIN)
		}
		c.NoErr(fmt.Sprintf("event after all %d", n), with)
		c.True("the event comes before the period ends", quick, "with %d completions it came after %v, the period is %v", n, took, period)
	}
}

// compressed has a device with compression report many messages at once, of a different length
// each: the acknowledgements of the sender wait behind the data of READs, and the receives come as
// fast as the link carries them.
func compressed(c *spec.C) {
	e := kit.Open(c)
	attr, err := e.Ctx.QueryDeviceEx(c.T, 0)
	c.NoErr("query_device", err)
	for _, f := range []uint8{verbs.CQECompHash, verbs.CQECompCsum, verbs.CQECompCsumStrideIndex} {
		if attr.CQEComp.Formats&uint32(f) == 0 {
			continue
		}
		name := fmt.Sprintf("format %d", f)
		cq := e.CreateCQWith(c, verbs.CQAttr{CQE: 1023, Ex: true, CQECompression: f})
		sends, receives := burst(c, e, cq)
		for i, wc := range sends {
			if wc.Status != verbs.WCSuccess || wc.ID != uint64(i) {
				c.Failf("%s: completion %d of the sender: %v, wr_id %d", name, i, wc.Status, wc.ID)
			}
		}
		for i, wc := range receives {
			if wc.Status != verbs.WCSuccess || wc.ID != uint64(1000+i) || wc.ByteLen != uint32(burstLength(i)) {
				c.Failf("%s: completion %d of the receiver: %v, wr_id %d, %d bytes, want %d", name, i, wc.Status, wc.ID, wc.ByteLen, burstLength(i))
			}
		}
		c.Equal(name+": completions", []int{len(sends), len(receives)}, []int{burstReads + burstSends, burstSends})
	}
}

const (
	burstReads = 4
	burstSends = 60
)

func burstLength(i int) int { return 40 + i }

// burst posts READs and SENDs at once, of a pair with one CQ, and sorts their completions by the
// QP.
func burst(c *spec.C, e *kit.Env, cq verbs.CQ) (sends, receives []verbs.WC) {
	o := kit.Default()
	o.SendCQ, o.RecvCQ = cq, cq
	p := e.Pair(c, o)
	const read = 32 << 10
	mem := e.Buffer(c, (burstReads+1)*read, kit.AllAccess)
	inbox := e.Buffer(c, burstSends*128, kit.AllAccess)
	for i := range burstSends {
		p.B.RecvInto(c, uint64(1000+i), inbox.SGE(i*128, 128))
	}
	var wrs []verbs.SendWR
	for i := range burstReads {
		wrs = append(wrs, kit.Read(uint64(i), mem, 0, mem.SGE((i+1)*read, read)))
	}
	for i := range burstSends {
		wrs = append(wrs, kit.Send(uint64(burstReads+i), mem.SGE(0, burstLength(i))))
	}
	p.A.Post(c, wrs...)
	deadline := c.T.Now() + kit.CompletionTimeout
	for wc := make([]verbs.WC, 16); len(sends)+len(receives) < burstReads+2*burstSends && c.T.Now() < deadline; {
		n, err := cq.Poll(c.T, wc)
		if err != nil && !errors.Is(err, syscall.EAGAIN) {
			c.NoErr("poll_cq", err)
		}
		for _, w := range wc[:n] {
			if w.QPN == p.A.QPN() {
				sends = append(sends, w)
			} else {
				receives = append(receives, w)
			}
		}
		if n == 0 {
			c.T.Sleep(10 * time.Microsecond)
		}
	}
	return sends, receives
}
