package completion

import (
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/sim/os"
	"github.com/rdmasim/rdmasim/verbs/kernel"
)

// context is an os.Context as a program sees it: the pointer is the same, so that handing it over
// allocates nothing.
type context os.Context

func (c *context) Now() time.Duration   { return dur((*os.Context)(c).Now()) }
func (c *context) Work(d time.Duration) { (*os.Context)(c).Run(ps(d)) }
func (c *context) CPU() int             { return (*os.Context)(c).CPU() }

func (c *context) Begin(name string, id uint64) { (*os.Context)(c).Begin(name, id) }
func (c *context) End()                         { (*os.Context)(c).End() }

// thread is an os.Thread as a program sees it.
type thread os.Thread

func (t *thread) Now() time.Duration   { return dur((*os.Thread)(t).Now()) }
func (t *thread) Work(d time.Duration) { (*os.Thread)(t).Run(ps(d)) }
func (t *thread) CPU() int             { return (*os.Thread)(t).CPU() }

func (t *thread) Begin(name string, id uint64) { (*os.Thread)(t).Begin(name, id) }
func (t *thread) End()                         { (*os.Thread)(t).End() }
func (t *thread) NeedResched() bool            { return (*os.Thread)(t).NeedResched() }
func (t *thread) Resched()                     { (*os.Thread)(t).Resched() }
func (t *thread) Sleep(d time.Duration)        { (*os.Thread)(t).Delay(ps(d)) }

// inner is what a program's context stands for.
func inner(k kernel.Context) *os.Context {
	switch c := k.(type) {
	case *context:
		return (*os.Context)(c)
	case *thread:
		return &(*os.Thread)(c).Context
	}
	panic(fmt.Sprintf("completion: a context of type %T is of another host", k))
}

// Poll implements kernel.CQ.
func (q *CQ) Poll(c kernel.Context, wc []kernel.WC) int { return q.take(inner(c), wc) }

// ReqNotify implements kernel.CQ.
func (q *CQ) ReqNotify(c kernel.Context, missed bool) bool { return q.notify(inner(c), missed) }

// CPUs implements kernel.Host.
func (a *Adapter) CPUs() int { return a.m.CPUs() }

// Vectors implements kernel.Host.
func (a *Adapter) Vectors() int { return len(a.vectors) }

// Start implements kernel.Host.
func (a *Adapter) Start(name string, first, n int, body func(kernel.Thread)) error {
	set, err := a.m.CPUSet(first, n)
	if err != nil {
		return fmt.Errorf("thread %s: %w", name, err)
	}
	t := a.m.NewThread(name, set, first, func(t *os.Thread) { body((*thread)(t)) })
	t.SetDaemon()
	t.Start()
	return nil
}

// NewLock implements kernel.Host.
func (a *Adapter) NewLock(lines int) kernel.Lock {
	l := a.m.NewSpinLock()
	l.Guarded = lines
	return &lock{l}
}

type lock struct{ l *os.SpinLock }

func (l *lock) Lock(c kernel.Context)   { l.l.Lock(inner(c)) }
func (l *lock) Unlock(c kernel.Context) { l.l.Unlock(inner(c)) }
func (l *lock) Stats() kernel.LockStats {
	return kernel.LockStats{Acquired: l.l.Acquired, Waited: l.l.Waited, Wait: dur(l.l.Wait), Lines: l.l.Lines}
}

// NewWaitQueue implements kernel.Host.
func (a *Adapter) NewWaitQueue() kernel.WaitQueue { return &waitQueue{} }

type waitQueue struct{ q os.WaitQueue }

func (w *waitQueue) Wait(k kernel.Thread, l kernel.Lock) {
	t := (*os.Thread)(k.(*thread))
	w.q.Add(t)
	l.Unlock(k)
	t.Schedule("a wake-up")
	w.q.Remove(t)
	l.Lock(k)
}

func (w *waitQueue) WakeOne(c kernel.Context) { w.q.WakeOne(inner(c)) }

// NewWork implements kernel.Host.
func (a *Adapter) NewWork(cpu int, run func(kernel.Thread)) kernel.Work {
	return &work{a.m.BoundPool(cpu), &os.Work{Run: func(t *os.Thread) { run((*thread)(t)) }}}
}

type work struct {
	p *os.Pool
	w *os.Work
}

func (w *work) Queue(c kernel.Context) { inner(c).Queue(w.p, w.w) }

// After implements kernel.Host.
func (a *Adapter) After(d time.Duration, f func(time.Duration)) {
	e := a.m.Engine()
	e.After(ps(d), func(uint64) { f(dur(e.Now())) }, 0)
}
