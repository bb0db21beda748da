// Package comp holds the cases of area COMP: completion channels.
package comp

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("COMP-001", neverArmed)
	s.Case("COMP-002", oneForMany)
	s.Case("COMP-003", solicitedOnly)
	s.Case("COMP-004", solicitedAndError)
	s.Case("COMP-005", armedForSolicitedAndAny)
	s.Case("COMP-006", eventNamesItsCQ)
	s.Case("COMP-007", channelInUse)
	s.Case("COMP-008", unacknowledged)
	s.Case("COMP-009", nonBlocking)
	s.Case("COMP-010", interrupted)
	s.Case("COMP-011", manyCQs)
	s.Case("COMP-012", noLostWakeUp, spec.Deadline(10*time.Minute))
	s.Case("COMP-013", bothSides)
	s.Case("COMP-014", destroyedWithEvents)
	s.Case("COMP-015", polledInPart)
}

// bench is a connected pair whose CQs report to one channel: the send CQ of A and the
// receive CQ of B.
type bench struct {
	*kit.Pair
	ch         verbs.CompChannel
	send, recv verbs.CQ
	mem        *kit.Buffer
}

func newBench(c *spec.C) *bench {
	e := kit.Open(c)
	b := &bench{ch: e.Channel(c)}
	b.send, b.recv = b.cq(c, e, "send"), b.cq(c, e, "receive")
	o := kit.Default()
	o.SendCQ, o.RecvCQ = b.send, b.recv
	b.Pair = e.UnconnectedPair(c, o)
	b.Connect(c)
	b.mem = e.Buffer(c, 256, kit.AllAccess)
	return b
}

// cq creates a CQ that reports to the channel.
func (b *bench) cq(c *spec.C, e *kit.Env, context any) verbs.CQ {
	return e.CQOn(c, b.ch, context)
}

// write posts n signalled writes of A.
func (b *bench) write(c *spec.C, n int) {
	for i := range n {
		b.A.Post(c, kit.Write(uint64(i), b.mem, 128, b.mem.SGE(0, 8)))
	}
}

// message sends from A to B, into a receive that is posted for it.
func (b *bench) message(c *spec.C, solicited bool) {
	b.B.RecvInto(c, 1, b.mem.SGE(128, 64))
	wr := kit.Send(1, b.mem.SGE(0, 8))
	if solicited {
		wr.Flags |= verbs.SendSolicited
	}
	b.A.Post(c, wr)
}

// expectEvent takes the next event of a channel, which must name the CQ, and acknowledges it.
func expectEvent(c *spec.C, ch verbs.CompChannel, step string, want verbs.CQ) {
	got, err := ch.Event(c.T, kit.CompletionTimeout)
	if c.Errno(step, err, 0); err != nil {
		return // as the ledger knows
	}
	ch.Ack(c.T, got, 1)
	c.True(step+": CQ", got == want, "%s: the event names another CQ", step)
}

// expectNoEvent checks that no event comes.
func expectNoEvent(c *spec.C, ch verbs.CompChannel, step string) {
	got, err := ch.Event(c.T, kit.QuietPeriod)
	if err == nil {
		ch.Ack(c.T, got, 1)
	}
	c.Errno(step, err, syscall.EAGAIN)
}

func neverArmed(c *spec.C) {
	b := newBench(c)
	b.write(c, 50)
	for range 10 {
		b.message(c, true)
	}
	expectNoEvent(c, b.ch, "get_cq_event without req_notify_cq")
	kit.ExpectSuccess(c, b.send, 60)
	kit.ExpectSuccess(c, b.recv, 10)
	expectNoEvent(c, b.ch, "get_cq_event after polling")
}

func oneForMany(c *spec.C) {
	b := newBench(c)
	for range 3 {
		kit.Arm(c, b.send, false)
		b.write(c, 50)
		expectEvent(c, b.ch, "get_cq_event after req_notify_cq", b.send)
		kit.ExpectSuccess(c, b.send, 50)
		b.write(c, 1)
		expectNoEvent(c, b.ch, "a second get_cq_event for one req_notify_cq")
		kit.ExpectSuccess(c, b.send, 1)
	}
}

func solicitedOnly(c *spec.C) {
	b := newBench(c)
	kit.Arm(c, b.recv, true)
	b.message(c, false)
	expectNoEvent(c, b.ch, "get_cq_event after an unsolicited receive")
	kit.ExpectSuccess(c, b.recv, 1)
	b.message(c, true)
	expectEvent(c, b.ch, "get_cq_event after a solicited receive", b.recv)
	kit.ExpectSuccess(c, b.recv, 1)
	kit.Arm(c, b.recv, true)
	b.message(c, false)
	b.message(c, true)
	expectEvent(c, b.ch, "get_cq_event when the solicited receive comes second", b.recv)
	kit.ExpectSuccess(c, b.recv, 2)
	expectNoEvent(c, b.ch, "a second get_cq_event")
	kit.ExpectSuccess(c, b.send, 4)
}

func solicitedAndError(c *spec.C) {
	b := newBench(c)
	kit.Arm(c, b.send, true)
	b.write(c, 1)
	expectNoEvent(c, b.ch, "get_cq_event after a send-side success")
	kit.ExpectSuccess(c, b.send, 1)
	bad := kit.Write(9, b.mem, 128, b.mem.SGE(0, 8))
	bad.RKey ^= 0x100
	b.A.Post(c, bad)
	expectEvent(c, b.ch, "get_cq_event after an error", b.send)
	c.Status("write with a bad rkey", kit.PollOne(c, b.send), verbs.WCRemAccessErr)
}

func armedForSolicitedAndAny(c *spec.C) {
	for _, arms := range [][]bool{{true, false}, {false, true}, {true, false, true}} {
		b := newBench(c)
		for _, s := range arms {
			kit.Arm(c, b.recv, s)
			c.T.Sleep(registerPollTime(c))
		}
		b.message(c, false)
		expectEvent(c, b.ch, "get_cq_event after arming for any and for solicited, unsolicited receive", b.recv)
		kit.ExpectSuccess(c, b.recv, 1)
		expectNoEvent(c, b.ch, "a second get_cq_event")
		kit.ExpectSuccess(c, b.send, 1)
	}
}

// registerPollTime is how long a device may take to see a store to a register: one that looks at
// its registers by a program that waits for a processor misses the first of two stores until then.
func registerPollTime(c *spec.C) time.Duration {
	if c.Has(kit.ExactTime) {
		return kit.QuietPeriod / 20
	}
	return 5 * kit.QuietPeriod
}

func eventNamesItsCQ(c *spec.C) {
	b := newBench(c)
	other := b.Env.Channel(c)
	type own struct{ name string }
	mine := &own{"mine"}
	elsewhere := b.Env.CQOn(c, other, mine)
	o := kit.Default()
	o.SendCQ = elsewhere
	p := b.Env.Pair(c, o)
	for _, cq := range []verbs.CQ{b.send, b.recv, elsewhere} {
		kit.Arm(c, cq, false)
	}
	b.message(c, false)
	p.A.Post(c, kit.Write(1, b.mem, 128, b.mem.SGE(0, 8)))
	seen := map[any]int{}
	for range 2 {
		got, err := b.ch.Event(c.T, kit.CompletionTimeout)
		c.NoErr("get_cq_event", err)
		b.ch.Ack(c.T, got, 1)
		c.True("CQ", got == b.send || got == b.recv, "the event names a CQ of another channel")
		seen[got.Context()]++
	}
	c.Equal("contexts", []int{seen["send"], seen["receive"]}, []int{1, 1})
	got, err := other.Event(c.T, kit.CompletionTimeout)
	c.NoErr("get_cq_event of the other channel", err)
	other.Ack(c.T, got, 1)
	c.True("CQ", got == elsewhere, "the event names another CQ")
	c.True("context", got.Context() == any(mine), "the context is %v", got.Context())
	expectNoEvent(c, b.ch, "nothing more")
	expectNoEvent(c, other, "nothing more on the other channel")
	kit.ExpectSuccess(c, b.send, 1)
	kit.ExpectSuccess(c, b.recv, 1)
	kit.ExpectSuccess(c, elsewhere, 1)
}

func channelInUse(c *spec.C) {
	e := kit.Open(c)
	ch, err := e.Ctx.CreateCompChannel(c.T)
	c.NoErr("create_comp_channel", err)
	cq, err := e.Ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 15, Channel: ch})
	c.NoErr("create_cq", err)
	c.Errno("destroy_comp_channel with a CQ", ch.Destroy(c.T), syscall.EBUSY)
	c.NoErr("destroy_cq", cq.Destroy(c.T))
	c.NoErr("destroy_comp_channel without", ch.Destroy(c.T))
}

// pairWithOwnCQ is a CQ on a channel with a pair on it; the pair can be destroyed.
func pairWithOwnCQ(c *spec.C, e *kit.Env, ch verbs.CompChannel) (verbs.CQ, *kit.Pair) {
	cq, err := e.Ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 63, Channel: ch})
	kit.Must(c, "create_cq", err)
	o := kit.Default()
	o.SendCQ = cq
	return cq, e.Pair(c, o)
}

func unacknowledged(c *spec.C) {
	e := kit.Open(c)
	ch := e.Channel(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	cq, p := pairWithOwnCQ(c, e, ch)
	for range 2 {
		kit.Arm(c, cq, false)
		p.A.Post(c, kit.Write(1, mem, 32, mem.SGE(0, 8)))
		got, err := ch.Event(c.T, kit.CompletionTimeout)
		c.NoErr("get_cq_event", err)
		c.True("event", got == cq, "the event names another CQ")
		kit.ExpectSuccess(c, cq, 1)
	}
	p.A.DestroyNow(c)
	p.B.DestroyNow(c)
	var done atomic.Bool
	destroyer := c.Go("destroyer", -1, func(c *spec.C) {
		c.NoErr("destroy_cq", cq.Destroy(c.T))
		done.Store(true)
	})
	for left := 2; left > 0; left-- {
		c.T.Sleep(kit.QuietPeriod)
		c.True("destroy_cq waits", !done.Load(), "destroy_cq returned with %d events not acknowledged", left)
		ch.Ack(c.T, cq, 1)
	}
	kit.JoinThreads(c, destroyer)
	c.True("destroy_cq returns", done.Load(), "destroy_cq did not return after the last acknowledgement")
}

func nonBlocking(c *spec.C) {
	b := newBench(c)
	for range 3 {
		start := c.T.Now()
		_, err := b.ch.Event(c.T, 0)
		c.Errno("get_cq_event of an empty channel", err, syscall.EAGAIN)
		c.True("time", c.T.Now()-start < kit.QuietPeriod, "it took %v", c.T.Now()-start)
		kit.Arm(c, b.send, false)
		b.write(c, 1)
		got, err := b.ch.Event(c.T, 0)
		for end := c.T.Now() + kit.CompletionTimeout; errors.Is(err, syscall.EAGAIN) && c.T.Now() < end; {
			c.T.Sleep(kit.QuietPeriod)
			got, err = b.ch.Event(c.T, 0)
		}
		c.Errno("get_cq_event with an event there", err, 0)
		b.ch.Ack(c.T, got, 1)
		kit.ExpectSuccess(c, b.send, 1)
	}
}

func interrupted(c *spec.C) {
	b := newBench(c)
	var woke atomic.Bool
	sleeper := c.Go("sleeper", -1, func(c *spec.C) {
		_, err := b.ch.Event(c.T, kit.CompletionTimeout)
		c.ErrnoIn("get_cq_event when a signal comes", err, syscall.EINTR)
		woke.Store(true)
	})
	c.T.Sleep(kit.QuietPeriod)
	c.True("it sleeps", !woke.Load(), "get_cq_event returned before the signal")
	kit.Must(c, "send a signal", c.T.Interrupt(sleeper))
	kit.JoinThreads(c, sleeper)
	kit.Arm(c, b.send, false)
	b.write(c, 1)
	expectEvent(c, b.ch, "get_cq_event afterwards", b.send)
	kit.ExpectSuccess(c, b.send, 1)
}

func bothSides(c *spec.C) {
	b := newBench(c)
	kit.Arm(c, b.send, false)
	b.write(c, 1)
	expectEvent(c, b.ch, "get_cq_event of the send side", b.send)
	kit.ExpectSuccess(c, b.send, 1)
	kit.Arm(c, b.recv, false)
	b.message(c, false)
	expectEvent(c, b.ch, "get_cq_event of the receive side", b.recv)
	kit.ExpectSuccess(c, b.recv, 1)
	kit.ExpectSuccess(c, b.send, 1)
	kit.Arm(c, b.send, false)
	b.B.RecvInto(c, 1, b.mem.SGE(128, 64))
	b.A.Post(c, kit.Read(2, b.mem, 128, b.mem.SGE(0, 8)), kit.Send(3, b.mem.SGE(0, 8)))
	expectEvent(c, b.ch, "get_cq_event of a read", b.send)
	kit.ExpectSuccess(c, b.send, 2)
	expectNoEvent(c, b.ch, "nothing more")
	kit.ExpectSuccess(c, b.recv, 1)
}

func destroyedWithEvents(c *spec.C) {
	e := kit.Open(c)
	ch := e.Channel(c)
	mem := e.Buffer(c, 64, kit.AllAccess)
	cq, p := pairWithOwnCQ(c, e, ch)
	stays, q := pairWithOwnCQ(c, e, ch)
	kit.DestroyOnce(c, "destroy_cq", stays.Destroy)
	c.Defer(func() { q.A.DestroyNow(c); q.B.DestroyNow(c) })
	kit.Arm(c, cq, false)
	p.A.Post(c, kit.Write(1, mem, 32, mem.SGE(0, 8)))
	c.T.Sleep(kit.QuietPeriod)
	p.A.DestroyNow(c)
	p.B.DestroyNow(c)
	c.NoErr("destroy_cq with an event that nobody took", cq.Destroy(c.T))
	expectNoEvent(c, ch, "get_cq_event after the CQ is gone")
	kit.Arm(c, stays, false)
	q.A.Post(c, kit.Write(1, mem, 32, mem.SGE(0, 8)))
	expectEvent(c, ch, "get_cq_event of another CQ", stays)
	kit.ExpectSuccess(c, stays, 1)
}

// polledInPart records whether an arm reports completions that are in the CQ already: those that no
// event has announced, and those that were announced and not polled. A completion that is added to
// an armed CQ is reported by every rule.
func polledInPart(c *spec.C) {
	b := newBench(c)
	for _, polled := range []int{0, 3, 8} {
		b.write(c, 8)
		c.T.Sleep(kit.QuietPeriod)
		kit.Arm(c, b.send, false)
		c.Observe(fmt.Sprintf("events before %d of 8 were polled", polled), takeEvent(c, b.ch))
		kit.ExpectSuccess(c, b.send, polled)
		kit.Arm(c, b.send, false)
		again := takeEvent(c, b.ch)
		c.Observe(fmt.Sprintf("events after %d of 8 were polled", polled), again)
		if again > 0 {
			kit.ExpectSuccess(c, b.send, 8-polled)
			kit.Arm(c, b.send, false)
		}
		b.write(c, 1)
		expectEvent(c, b.ch, "get_cq_event of the next completion", b.send)
		if again > 0 {
			polled = 8
		}
		kit.ExpectSuccess(c, b.send, 8-polled+1)
	}
	expectNoEvent(c, b.ch, "nothing more")
}

// takeEvent acknowledges the next event of a channel, and says how many came in a quiet period:
// none or one.
func takeEvent(c *spec.C, ch verbs.CompChannel) int {
	got, err := ch.Event(c.T, kit.QuietPeriod)
	if err != nil {
		c.Errno("get_cq_event", err, syscall.EAGAIN)
		return 0
	}
	ch.Ack(c.T, got, 1)
	return 1
}
