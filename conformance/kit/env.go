package kit

import (
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// CompletionTimeout is how long the kit waits for a completion that must come.
const CompletionTimeout = 10 * time.Second

// QuietPeriod is how long the kit watches for a completion that must not come.
const QuietPeriod = 20 * time.Millisecond

// ExactTime is the capability of a testbed with exact times. Elsewhere timers have coarse steps,
// and packets on their way take their time.
const ExactTime = spec.ExactTime

// Access flags that most regions and queue pairs have.
const (
	RemoteAll = verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic
	AllAccess = verbs.AccessLocalWrite | RemoteAll
)

// Env is a context that the case's process has open, with a PD.
type Env struct {
	Ctx       verbs.Context
	PD        verbs.PD
	GID       verbs.GIDEntry // what connections use
	LocalAddr Addr           // of the port
	IB        bool           // the port's link layer is InfiniBand
	Port      uint8
}

// Addr is the address of a port: its GID, and on InfiniBand its LID.
type Addr struct {
	GID verbs.GID
	LID uint16
}

// Open opens the first device, allocates a PD and chooses the port and the GID of connections.
func Open(c *spec.C) *Env {
	e := &Env{Ctx: c.Open(), Port: 1}
	if p, ok := e.Ctx.(verbs.Preferrer); ok {
		if port, _ := p.Preferred(); port > 0 {
			e.Port = uint8(port)
		}
	}
	e.PD = e.AllocPD(c)
	gid, err := player.PickGID(c.T, e.Ctx, uint32(e.Port))
	ok(c, "choose a GID", err)
	lid, err := player.LID(c.T, e.Ctx, gid)
	ok(c, "query_port", err)
	e.GID, e.IB, e.LocalAddr = gid, lid != 0, Addr{gid.GID, lid}
	return e
}

// AsyncEvent takes and acknowledges the next event of a context, waiting up to timeout (EAGAIN:
// none came). It skips changes of speed, which newer kernels report and no case asks for.
func AsyncEvent(c *spec.C, e *Env, timeout time.Duration) (verbs.AsyncEvent, error) {
	for {
		ev, err := e.Ctx.AsyncEvent(c.T, timeout)
		if err != nil {
			return ev, err
		}
		e.Ctx.AckAsyncEvent(c.T, ev)
		if ev.Type != verbs.EventDeviceSpeedChange {
			return ev, nil
		}
	}
}

// AwaitPortEvent takes and acknowledges the next event of a context, and fails the case if none
// comes within CompletionTimeout. If want is PORT_ACTIVE on InfiniBand, it skips PORT_ERR, which a
// port reports while it waits for the subnet manager. The caller compares the event with want.
func AwaitPortEvent(c *spec.C, e *Env, want verbs.EventType) verbs.AsyncEvent {
	waits := e.IB && want == verbs.EventPortActive
	for skipped := false; ; skipped = true {
		ev, err := AsyncEvent(c, e, CompletionTimeout)
		if err == nil && waits && ev.Type == verbs.EventPortErr {
			continue
		}
		c.NoErr("get_async_event", err)
		if waits && !skipped && ev.Type == want && !c.Has(ExactTime) {
			skipOvertaken(c, e)
		}
		return ev
	}
}

// skipOvertaken skips the PORT_ERR of a port that was waiting for the subnet manager when its
// PORT_ACTIVE has come first: Linux queries the port for each event in a work of its own, and works
// that wait for a query overtake one another (ib_dispatch_event and ib_cache_event_task of
// drivers/infiniband/core/cache.c).
func skipOvertaken(c *spec.C, e *Env) {
	if ev, err := AsyncEvent(c, e, 10*QuietPeriod); err == nil && ev.Type != verbs.EventPortErr {
		c.Equal("event that PORT_ACTIVE has overtaken", ev.Type.String(), verbs.EventPortErr.String())
	}
}

// ok fails the case when err is not nil, without an observation.
func ok(c *spec.C, step string, err error) {
	if err != nil {
		c.Failf("%s: want success, got %s (%v)", step, verbs.ErrnoName(verbs.ErrnoOf(err)), err)
	}
}

// Must fails the case if err is not nil, and records nothing. It is for steps that the case needs
// but is not about.
func Must(c *spec.C, step string, err error) { ok(c, step, err) }

// DestroyOnce returns a function that calls destroy the first time and does nothing afterwards. The
// end of the case calls it too; an error of destroy fails the case.
func DestroyOnce(c *spec.C, what string, destroy func(t verbs.Thread) error) func(c *spec.C) {
	done := false
	f := func(c *spec.C) {
		if done {
			return
		}
		done = true
		ok(c, what, destroy(c.T))
	}
	c.Defer(func() { f(c) })
	return f
}

// AllocPD allocates a PD, which is deallocated when the case ends.
func (e *Env) AllocPD(c *spec.C) verbs.PD {
	pd, err := e.Ctx.AllocPD(c.T)
	ok(c, "alloc_pd", err)
	DestroyOnce(c, "dealloc_pd", pd.Dealloc)
	return pd
}

// TD is a thread domain and the parent domain on it.
type TD struct {
	TD   verbs.TD
	PD   verbs.PD        // parent domain of the Env's PD and the TD
	Free func(c *spec.C) // frees both; the case's end does it too
}

// AllocTD allocates a thread domain and a parent domain on it, which are freed when the case ends.
func (e *Env) AllocTD(c *spec.C) *TD {
	td, err := e.Ctx.AllocTD(c.T, verbs.TDInitAttr{})
	ok(c, "alloc_td", err)
	return e.parentDomainOn(c, td)
}

// AllocIndependentTD is AllocTD for a thread domain with the independent attribute.
func (e *Env) AllocIndependentTD(c *spec.C) *TD {
	td, err := e.Ctx.AllocTD(c.T, verbs.TDInitAttr{CompMask: verbs.TDInitAttrIndependent, Independent: 1})
	ok(c, "alloc_td (independent)", err)
	return e.parentDomainOn(c, td)
}

func (e *Env) parentDomainOn(c *spec.C, td verbs.TD) *TD {
	freeTD := DestroyOnce(c, "dealloc_td", td.Dealloc)
	pd, err := e.Ctx.AllocParentDomain(c.T, verbs.ParentDomainAttr{PD: e.PD, TD: td})
	ok(c, "alloc_parent_domain", err)
	freePD := DestroyOnce(c, "dealloc parent domain", pd.Dealloc)
	return &TD{TD: td, PD: pd, Free: func(c *spec.C) { freePD(c); freeTD(c) }}
}

// ParentDomain allocates a parent domain without a thread domain.
func (e *Env) ParentDomain(c *spec.C) verbs.PD {
	pd, err := e.Ctx.AllocParentDomain(c.T, verbs.ParentDomainAttr{PD: e.PD})
	ok(c, "alloc_parent_domain", err)
	DestroyOnce(c, "dealloc parent domain", pd.Dealloc)
	return pd
}

// CreateCQ creates a CQ of at least n entries.
func (e *Env) CreateCQ(c *spec.C, n int) verbs.CQ {
	cq, err := e.Ctx.CreateCQ(c.T, verbs.CQAttr{CQE: n})
	ok(c, "create_cq", err)
	DestroyOnce(c, "destroy_cq", cq.Destroy)
	return cq
}

// Poll takes exactly n completions and fails the case unless they come within CompletionTimeout.
func Poll(c *spec.C, cq verbs.CQ, n int) []verbs.WC {
	wc := make([]verbs.WC, n)
	if got := pollFor(c, cq, wc, CompletionTimeout); got < n {
		c.Failf("poll: want completions: %d, got %d in %v", n, got, CompletionTimeout)
	}
	return wc
}

// AwaitCompletions polls for n completions on a target that may be known to withhold some. If some
// are missing, that is recorded as a failed step, and with a known deviation the case goes on: the
// result is then false.
func AwaitCompletions(c *spec.C, step string, cq verbs.CQ, n int) ([]verbs.WC, bool) {
	return AwaitCompletionsWithin(c, step, cq, n, CompletionTimeout)
}

// AwaitCompletionsWithin is AwaitCompletions with a time other than CompletionTimeout.
func AwaitCompletionsWithin(c *spec.C, step string, cq verbs.CQ, n int, d time.Duration) ([]verbs.WC, bool) {
	wc := PollWithin(c, cq, n, d)
	if len(wc) < n {
		c.True(step, false, "want %d completions, got %d in %v", n, len(wc), d)
	}
	return wc, len(wc) == n
}

// PollOne takes one completion, as Poll does.
func PollOne(c *spec.C, cq verbs.CQ) verbs.WC { return Poll(c, cq, 1)[0] }

// PollWithin returns up to n completions that come within d.
func PollWithin(c *spec.C, cq verbs.CQ, n int, d time.Duration) []verbs.WC {
	wc := make([]verbs.WC, n)
	return wc[:pollFor(c, cq, wc, d)]
}

func pollFor(c *spec.C, cq verbs.CQ, wc []verbs.WC, d time.Duration) int {
	end := c.T.Now() + d
	got := 0
	for got < len(wc) {
		n, err := cq.PollWait(c.T, wc[got:], end-c.T.Now())
		ok(c, "poll_cq", err)
		got += n
		if n == 0 && c.T.Now() >= end {
			break
		}
	}
	return got
}

// RecordCompletions records up to n completions that come within QuietPeriod, without judging them:
// it is for what hardware decides.
func RecordCompletions(c *spec.C, step string, cq verbs.CQ, n int) []verbs.WC {
	got := PollWithin(c, cq, n, QuietPeriod)
	if len(got) == 0 {
		c.Observe(step, "no completion")
	}
	for _, w := range got {
		c.Completion(step, w)
	}
	return got
}

// RecordErrno records the errno of a call without judging it, for what hardware decides, and
// returns it.
func RecordErrno(c *spec.C, step string, err error) Errno {
	e := verbs.ErrnoOf(err)
	c.Observe(step, verbs.ErrnoName(e))
	return e
}

// ExpectSuccess takes n completions and fails the case unless all are successful. It returns them.
func ExpectSuccess(c *spec.C, cq verbs.CQ, n int) []verbs.WC {
	wc := Poll(c, cq, n)
	for i, w := range wc {
		if w.Status != verbs.WCSuccess {
			c.Completion("completion", w)
			c.Failf("completion %d of %d: want SUCCESS, got %v (wr_id %d, vendor error %#x)", i+1, n, w.Status, w.ID, w.VendorErr)
		}
	}
	return wc
}

// ExpectNoCompletion watches cq for d and fails the case if a completion appears.
func ExpectNoCompletion(c *spec.C, cq verbs.CQ, d time.Duration) {
	if wc := PollWithin(c, cq, 1, d); len(wc) != 0 {
		c.Completion("unexpected completion", wc[0])
		c.Failf("want no completion, got %v (wr_id %d, opcode %s)", wc[0].Status, wc[0].ID, spec.Words(wc[0].Opcode))
	}
}

// JoinThreads waits for the end of threads that c.Go started.
func JoinThreads(c *spec.C, threads ...verbs.Thread) {
	for _, t := range threads {
		c.T.Join(t)
	}
}

// RunThreads runs body in n new threads, with i from 0 to n-1, and waits for the end of all.
func RunThreads(c *spec.C, n int, body func(c *spec.C, i int)) {
	threads := make([]verbs.Thread, n)
	for i := range n {
		threads[i] = c.Go(fmt.Sprintf("worker%d", i), -1, func(c *spec.C) { body(c, i) })
	}
	JoinThreads(c, threads...)
}
