package completion

import (
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/os"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs/kernel"
)

// CQ is a completion queue: the ring that the device writes, and what ib_core has of it.
type CQ struct {
	a    *Adapter
	vec  *vector
	attr kernel.CQAttr
	id   int
	comp func(c *os.Context) // event handler, in hard interrupt

	// The device's part.
	ring       []kernel.WC
	head, tail uint64 // consumer and producer index
	armed      bool
	armedAt    uint64 // consumer index of the arm
	period     sim.Time
	count      uint64
	timer      uint64 // generation of the timer of the period
	onArrive   sim.Handler
	onArm      sim.Handler
	onPeriod   sim.Handler

	// That of ib_core.
	wcs    []kernel.WC
	poll   irqPoll
	work   *os.Work
	pool   *os.Pool
	dim    *dim
	shared int // entries that users of a shared CQ have taken
	direct [batchDirect]kernel.WC
}

func (a *Adapter) newCQ(attr kernel.CQAttr) (*CQ, error) {
	if attr.Vector < 0 || attr.Vector >= len(a.vectors) {
		return nil, fmt.Errorf("completion: a CQ on vector %d: the device has vectors 0 to %d", attr.Vector, len(a.vectors)-1)
	}
	if attr.Size < 1 || attr.Size > mostEntries {
		return nil, fmt.Errorf("completion: a CQ of %d entries: want 1 to %d", attr.Size, mostEntries)
	}
	size := 1
	for size < attr.Size {
		size *= 2
	}
	q := &CQ{a: a, vec: a.vectors[attr.Vector], attr: attr, id: a.cqs, ring: make([]kernel.WC, size), count: 1}
	q.onArrive, q.onArm, q.onPeriod = q.arrived, q.arm, q.periodOver
	a.cqs++
	return q, nil
}

// CreateCQ implements kernel.Host.
func (a *Adapter) CreateCQ(attr kernel.CQAttr, event func(kernel.Context)) (kernel.CQ, error) {
	q, err := a.newCQ(attr)
	if err != nil {
		return nil, err
	}
	if attr.Moderate {
		return nil, fmt.Errorf("completion: DIM moderates CQs of ib_alloc_cq only: leave Moderate out, or use AllocCQ")
	}
	q.comp = func(c *os.Context) { event((*context)(c)) }
	return q, nil
}

// AllocCQ implements kernel.Host.
func (a *Adapter) AllocCQ(attr kernel.CQAttr) (kernel.CQ, error) {
	q, err := a.newCQ(attr)
	if err != nil {
		return nil, err
	}
	if attr.Done == nil {
		return nil, fmt.Errorf("completion: a CQ that ib_core polls needs Done, the handler of its completions")
	}
	q.wcs = make([]kernel.WC, a.batch)
	if a.broken.Has(rule.PollBatchIs16) {
		q.wcs = q.wcs[:min(batchDirect, a.batch)]
	}
	switch attr.Poll {
	case kernel.Direct:
		q.comp = func(*os.Context) {}
		if a.broken.Has(rule.DirectIsNeverArmed) {
			q.arm(0)
		}
		return q, nil
	case kernel.Softirq:
		q.comp = q.schedIRQPoll
	case kernel.Workqueue:
		q.pool = a.m.BoundPool(q.vec.cpu.ID())
	case kernel.UnboundWorkqueue:
		q.pool = a.unbound
	case kernel.Interrupt:
		q.comp = q.inline
	default:
		return nil, fmt.Errorf("completion: poll context %d: want direct, softirq, workqueue, unbound or irq-inline", attr.Poll)
	}
	if q.pool != nil {
		q.work = &os.Work{Run: q.workFunction}
		q.comp = q.queueWork
	}
	if attr.Moderate {
		q.dim = newDIM(q)
	}
	q.arm(0)
	return q, nil
}

// PoolCQ implements kernel.Host: first fit.
func (a *Adapter) PoolCQ(attr kernel.CQAttr, n int) (kernel.CQ, error) {
	if attr.Poll == kernel.Direct {
		return nil, fmt.Errorf("completion: the pool has no CQ of poll context direct: make one with AllocCQ")
	}
	if n < 1 || n > mostShared {
		return nil, fmt.Errorf("completion: %d entries of a shared CQ: want 1 to %d", n, mostShared)
	}
	for _, q := range a.pool {
		if q.attr.Poll == attr.Poll && q.attr.Vector == attr.Vector && q.shared+n <= mostShared {
			q.shared += n
			return q, nil
		}
	}
	attr.Size = mostShared
	k, err := a.AllocCQ(attr)
	if err != nil {
		return nil, err
	}
	q := k.(*CQ)
	q.shared = n
	a.pool = append(a.pool, q)
	return q, nil
}

// Arrive implements kernel.CQ.
func (q *CQ) Arrive(d time.Duration, id uint64) { q.a.m.Engine().After(ps(d), q.onArrive, id) }

// arrived writes a CQE.
func (q *CQ) arrived(id uint64) {
	if q.tail-q.head == uint64(len(q.ring)) {
		q.a.m.Engine().Fail(fmt.Errorf("completion: CQ %d of %d entries overruns: its owner has more requests outstanding than it has room for", q.id, len(q.ring)))
		return
	}
	q.ring[q.tail&uint64(len(q.ring)-1)] = kernel.WC{ID: id, Arrived: dur(q.a.m.Engine().Now())}
	q.tail++
	q.a.mark("CQE", q.tail)
	q.moderate()
}

// moderate fires when enough CQEs are beyond the index of the arm, or starts the period.
func (q *CQ) moderate() {
	if !q.armed || q.tail == q.armedAt {
		return
	}
	if q.tail-q.armedAt >= q.count || q.period == 0 {
		q.fire()
		return
	}
	if q.tail-q.armedAt == 1 {
		q.timer++
		q.a.m.Engine().After(q.period, q.onPeriod, q.timer)
	}
}

func (q *CQ) periodOver(timer uint64) {
	if timer == q.timer && q.armed && q.tail != q.armedAt {
		q.fire()
	}
}

func (q *CQ) fire() {
	q.armed = q.a.broken.Has(rule.OneArmOneEvent)
	q.timer++
	q.vec.event(q)
}

// arm is the arrival of an arm at the device, with a consumer index: a CQE beyond it fires at once.
func (q *CQ) arm(index uint64) {
	q.armed, q.armedAt = true, index
	if q.a.missed { // this device looks at new CQEs only
		q.armedAt = q.tail
	}
	if q.tail-q.armedAt >= 1 && q.period > 0 && q.tail-q.armedAt < q.count {
		q.timer++
		q.a.m.Engine().After(q.period, q.onPeriod, q.timer)
		return
	}
	q.moderate()
}

// Event is what the driver does with an event of the CQ, in hard interrupt.
func (q *CQ) Event(c *os.Context) { q.comp(c) }

// take is ib_poll_cq.
func (q *CQ) take(c *os.Context, wc []kernel.WC) int {
	p := &q.a.par
	c.Begin("poll", uint64(len(wc)))
	c.Run(p.PollCall)
	n := 0
	for ; n < len(wc) && q.head != q.tail; n++ {
		wc[n] = q.ring[q.head&uint64(len(q.ring)-1)]
		q.head++
	}
	q.a.Polls++
	if n == 0 {
		q.a.EmptyPolls++
	}
	q.a.Completions += uint64(n)
	c.Spend(sim.Time(n) * p.PollCQE)
	c.End()
	return n
}

// notify is ib_req_notify_cq.
func (q *CQ) notify(c *os.Context, missed bool) bool {
	c.Begin("arm", uint64(q.id))
	c.Run(q.a.par.Arm)
	c.End()
	q.a.Arms++
	q.a.MMIO++
	if !q.a.missed {
		q.a.m.Engine().After(q.a.par.ArmLatency, q.onArm, q.head)
		return false
	}
	q.arm(q.head) // such a device is software, or answers before the call returns
	if missed && q.head != q.tail {
		q.a.Missed++
		return !q.a.broken.Has(rule.MissedEventsAreHandled)
	}
	return false
}

// process handles completions up to a budget, and says how many (__ib_process_cq). k is what c is
// to a program.
func (q *CQ) process(c *os.Context, k kernel.Context, budget int, wcs []kernel.WC) int {
	done := 0
	for {
		n := q.take(c, wcs[:min(len(wcs), budget-done)])
		for i := range n {
			c.Spend(q.a.par.Dispatch)
			q.attr.Done(k, &wcs[i])
		}
		done += n
		if (n != len(wcs) && !(q.a.broken.Has(rule.ShortBatchEnds) && n > 0)) || done >= budget {
			return done
		}
	}
}

// inline is the event handler of kernel.Interrupt.
func (q *CQ) inline(c *os.Context) {
	n := q.process(c, (*context)(c), q.a.budgetWQ, q.wcs)
	if q.notify(c, true) {
		for n = q.process(c, (*context)(c), q.a.budgetWQ, q.wcs); q.notify(c, true); n += q.process(c, (*context)(c), q.a.budgetWQ, q.wcs) {
		}
	}
	q.dim.update(c, n)
}

// queueWork is the event handler of the workqueues.
func (q *CQ) queueWork(c *os.Context) {
	p := q.pool
	if q.attr.Poll == kernel.Workqueue {
		cpu := c.CPU()
		if q.a.broken.Has(rule.BoundWorkStaysOnItsCPU) {
			cpu = (cpu + 1) % q.a.m.CPUs()
		}
		p = q.a.m.BoundPool(cpu)
	}
	c.Queue(p, q.work)
}

// workFunction is ib_cq_poll_work.
func (q *CQ) workFunction(t *os.Thread) {
	c := &t.Context
	if q.a.broken.Has(rule.ArmFollowsThePoll) {
		q.notify(c, false)
	}
	n := q.process(c, (*thread)(t), q.a.budgetWQ, q.wcs)
	if n >= q.a.budgetWQ && !q.a.broken.Has(rule.FullBudgetIsNotRearmed) || !q.a.broken.Has(rule.ArmFollowsThePoll) && q.notify(c, true) {
		c.Queue(q.a.poolOf(q, c), q.work)
		return
	}
	q.dim.update(c, n)
}

// poolOf is the pool on which a CQ's work is queued from a context.
func (a *Adapter) poolOf(q *CQ, c *os.Context) *os.Pool {
	if q.attr.Poll == kernel.Workqueue {
		return a.m.BoundPool(c.CPU())
	}
	return q.pool
}

// ProcessDirect implements kernel.CQ.
func (q *CQ) ProcessDirect(k kernel.Context, budget int) (int, error) {
	if q.attr.Poll != kernel.Direct || q.attr.Done == nil {
		return 0, fmt.Errorf("completion: CQ %d is not of poll context direct: the kernel polls it", q.id)
	}
	if budget < 1 {
		return 0, fmt.Errorf("completion: a budget of %d: want at least 1", budget)
	}
	wcs := q.direct[:]
	if q.a.broken.Has(rule.DirectBatchIs8) {
		wcs = q.wcs
	}
	return q.process(inner(k), k, budget, wcs), nil
}
