// Package kernel has what a program in the kernel uses to handle completions: the CQs of ib_core
// (include/rdma/ib_verbs.h: ib_alloc_cq, ib_create_cq, ib_poll_cq, ib_req_notify_cq,
// ib_process_cq_direct, ib_cq_pool_get), threads, spinlocks and wait queues. Only the simulator has
// it: no device lets a program outside the kernel choose how the kernel polls.
package kernel

import "time"

// PollContext says where the completions of a CQ are handled (enum ib_poll_context).
type PollContext uint8

// The poll contexts.
const (
	// Direct: the owner calls CQ.ProcessDirect. The CQ is never armed.
	Direct PollContext = iota
	// Softirq: irq_poll, with a budget of 256.
	Softirq
	// Workqueue: a worker of the CPU that took the interrupt.
	Workqueue
	// UnboundWorkqueue: a worker of any CPU of the host's pool.
	UnboundWorkqueue
	// Interrupt handles them in the hard interrupt. It is hypothetical: ib_core has no such
	// context.
	Interrupt
)

// String returns the text form.
func (p PollContext) String() string {
	return [...]string{"direct", "softirq", "workqueue", "unbound", "irq-inline"}[p]
}

// WC is a work completion.
type WC struct {
	ID      uint64        // wr_id
	Arrived time.Duration // when the device wrote the CQE
}

// Context is the context in which code runs: a thread, a softirq or a hard interrupt.
type Context interface {
	// Now returns the time of the simulation.
	Now() time.Duration
	// Work uses the CPU for d, more if interrupts come meanwhile.
	Work(d time.Duration)
	// CPU is the number of the CPU.
	CPU() int
	// Begin names what follows up to End in a timeline, which nests; id is shown with it.
	Begin(name string, id uint64)
	End()
}

// Thread is a kernel thread.
type Thread interface {
	Context
	// NeedResched says whether another thread should run instead (need_resched).
	NeedResched() bool
	// Resched gives the CPU to another thread if one should run (cond_resched).
	Resched()
	// Sleep sleeps for d.
	Sleep(d time.Duration)
}

// Lock is a spinlock that is taken with interrupts off.
type Lock interface {
	// Lock spins until the lock is free and takes it; Unlock gives it back.
	Lock(c Context)
	Unlock(c Context)
	// Stats counts what the lock has seen so far.
	Stats() LockStats
}

// LockStats are what a lock has seen.
type LockStats struct {
	Acquired, Waited uint64
	Wait             time.Duration // of all that waited
	Lines            uint64        // how often its cache line came from another CPU
}

// WaitQueue is where threads sleep, of which a wake-up wakes the one that has slept longest.
type WaitQueue interface {
	// Wait sleeps until a wake-up. The lock is held before and after, and free meanwhile.
	Wait(t Thread, l Lock)
	// WakeOne wakes one thread, if any sleeps.
	WakeOne(c Context)
}

// Work is a work item. It runs once for all that queue it before it begins, and not twice at once.
type Work interface{ Queue(c Context) }

// CQAttr are the attributes of a CQ.
type CQAttr struct {
	Vector int // completion vector
	Size   int // entries
	// Poll is where completions are handled, and Done handles one. In the workqueues its context is
	// a Thread, which may sleep.
	Poll PollContext
	Done func(c Context, wc *WC)
	// Moderate has DIM choose the interrupt moderation (RDMA DIM); for all poll contexts but
	// Direct.
	Moderate bool
}

// CQ is a completion queue.
type CQ interface {
	// Poll takes up to len(wc) completions (ib_poll_cq).
	Poll(c Context, wc []WC) int
	// ReqNotify arms the CQ for its next completion (ib_req_notify_cq). With missed the answer says
	// whether completions wait that will bring no event (IB_CQ_REPORT_MISSED_EVENTS).
	ReqNotify(c Context, missed bool) bool
	// ProcessDirect handles up to budget completions of a Direct CQ in batches of 8, and says how
	// many (ib_process_cq_direct).
	ProcessDirect(c Context, budget int) (int, error)
	// Arrive has the device complete a request after d: what a peer, or the wire, does by then.
	Arrive(d time.Duration, id uint64)
}

// Host is a machine with an adapter.
type Host interface {
	// CPUs returns the number of CPUs.
	CPUs() int
	// Vectors returns the number of completion vectors.
	Vectors() int
	// AllocCQ makes a CQ that ib_core polls (ib_alloc_cq).
	AllocCQ(a CQAttr) (CQ, error)
	// CreateCQ makes one whose owner polls: event is called in hard interrupt, once for each arm
	// (ib_create_cq). It is not armed yet.
	CreateCQ(a CQAttr, event func(c Context)) (CQ, error)
	// PoolCQ is a shared CQ with room for n more entries on a vector (ib_cq_pool_get): that of the
	// poll context and the vector with room, or a new one. Done of the first user handles the
	// completions of all.
	PoolCQ(a CQAttr, n int) (CQ, error)
	// Start starts a kernel thread on n CPUs from the first on.
	Start(name string, first, n int, body func(t Thread)) error
	// NewLock makes a spinlock; lines is how many cache lines of what it guards come with its own
	// from another CPU.
	NewLock(lines int) Lock
	// NewWaitQueue makes a wait queue (init_waitqueue_head).
	NewWaitQueue() WaitQueue
	// NewWork makes a work item of the workqueue of completions for a CPU (queue_work_on).
	NewWork(cpu int, run func(t Thread)) Work
	// After calls f after d, in no context: of this package it may call CQ.Arrive only.
	After(d time.Duration, f func(now time.Duration))
}
