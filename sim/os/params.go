// Package os is the operating system of a simulated host as far as completions of an adapter meet
// it: CPUs with the contexts hard interrupt, softirq and thread, run queues, wake-ups and context
// switches, idle states, ksoftirqd, worker pools with concurrency management, spinlocks, and
// exclusive wait queues.
//
// Code of a context is a coroutine that is written straight down: it spends CPU time (Run), and an
// interrupt that comes meanwhile stretches it. All of it is kernel code of a kernel without
// preemption (PREEMPT_NONE): a thread gives its CPU away when it sleeps or asks (Resched). User
// code (Thread.User) is preempted.
//
// The rules are those of Linux 6.12: kernel/softirq.c, kernel/workqueue.c, kernel/sched/core.c and
// fair.c. The periodic tick takes no time, and comes only while threads wait. Not modelled: load
// balancing of threads that wait, CPU_INTENSIVE workers, rescuers, real-time classes, and
// simultaneous multithreading.
package os

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
)

// Idle is what a CPU without work does.
type Idle uint8

// The policies. Their words are IdleWords.
const (
	IdlePoll Idle = iota // it polls for work: no state is left, and no interrupt is needed
	IdleC1               // it halts at once
	IdleC6               // it halts, and is in C6 once it has been idle for the residency of that state
)

// IdleWords are the values of Params.Idle in a profile.
var IdleWords = []string{"poll", "c1", "c6"}

// Params are the costs and the sizes of the operating system. The zero value is not usable.
type Params struct {
	InterruptLatency sim.Time // from the arrival of an interrupt's message to the CPU's reaction
	IRQEntry         sim.Time // up to the handler's first instruction
	IRQExit          sim.Time // from its last one
	SoftirqEntry     sim.Time // raising a softirq and entering its loop at the exit of an interrupt
	Tasklet          sim.Time // an empty pass of the tasklet softirq
	Jiffy            sim.Time // the unit in which softirqs measure their limits
	SoftirqJiffies   int      // a softirq loop goes on for less than this
	SoftirqRounds    int      // and for no more rounds than this
	Wake             sim.Time // waking a thread, on the CPU of the waker
	WakeIdle         sim.Time // the same with an interprocessor interrupt to an idle CPU
	IPI              sim.Time // delivery of an interprocessor interrupt
	Switch           sim.Time // switching to another thread
	Migrated         sim.Time // more for a thread that ran on another CPU of its node before: caches
	MigratedNode     sim.Time // and on another node
	PollExit         sim.Time // leaving the idle state: polling
	C1Exit           sim.Time
	C6Exit           sim.Time
	C6Residency      sim.Time // how long a CPU is idle before it is in C6
	Idle             Idle
	Lock             sim.Time // taking and freeing a spinlock whose line is here
	LockHandover     sim.Time // more when a waiter gets it, beside the line
	LineTransfer     sim.Time // a cache line comes from another CPU of the node
	LineTransferNode sim.Time // from another node
	WorkerCreation   sim.Time // making a worker thread
	WorkItem         sim.Time // taking a work item from the list, under the lock of the pool
	Slice            sim.Time // of a thread of nice 0
}

// mostLatency bounds each cost: a longer one is a mistake in writing it.
const mostLatency = sim.Second

// Validate says what is impossible in p.
func (p *Params) Validate() error {
	for _, c := range []struct {
		name string
		t    sim.Time
	}{
		{"InterruptLatency", p.InterruptLatency}, {"IRQEntry", p.IRQEntry}, {"IRQExit", p.IRQExit}, {"SoftirqEntry", p.SoftirqEntry},
		{"Tasklet", p.Tasklet}, {"Wake", p.Wake}, {"WakeIdle", p.WakeIdle}, {"IPI", p.IPI}, {"Switch", p.Switch}, {"Migrated", p.Migrated},
		{"MigratedNode", p.MigratedNode}, {"PollExit", p.PollExit}, {"C1Exit", p.C1Exit}, {"C6Exit", p.C6Exit}, {"C6Residency", p.C6Residency},
		{"Lock", p.Lock}, {"LockHandover", p.LockHandover}, {"LineTransfer", p.LineTransfer}, {"LineTransferNode", p.LineTransferNode},
		{"WorkerCreation", p.WorkerCreation}, {"WorkItem", p.WorkItem},
	} {
		if c.t < 0 || c.t > mostLatency {
			return fmt.Errorf("os: %s of %v: want 0 to %v", c.name, c.t, mostLatency)
		}
	}
	if p.Jiffy <= 0 || p.Jiffy > mostLatency {
		return fmt.Errorf("os: Jiffy of %v: want more than 0, as 4 ms with HZ=250", p.Jiffy)
	}
	if p.Slice <= 0 || p.Slice > mostLatency {
		return fmt.Errorf("os: Slice of %v: want more than 0, up to %v", p.Slice, mostLatency)
	}
	if p.SoftirqJiffies < 1 || p.SoftirqRounds < 1 {
		return fmt.Errorf("os: SoftirqJiffies of %d, SoftirqRounds of %d: want at least 1 of each", p.SoftirqJiffies, p.SoftirqRounds)
	}
	if int(p.Idle) >= len(IdleWords) {
		return fmt.Errorf("os: Idle is %d: want one of %v", p.Idle, IdleWords)
	}
	return nil
}
