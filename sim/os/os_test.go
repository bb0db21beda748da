package os

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/sim"
)

const ns, us = sim.Nanosecond, sim.Microsecond

func params() Params {
	return Params{InterruptLatency: 350 * ns, IRQEntry: 250 * ns, IRQExit: 250 * ns, SoftirqEntry: 200 * ns, Tasklet: 150 * ns,
		Jiffy: 4 * sim.Millisecond, SoftirqJiffies: 1, SoftirqRounds: 10, Wake: 700 * ns, WakeIdle: 800 * ns, IPI: 600 * ns, Switch: 1200 * ns,
		Migrated: 2 * us, MigratedNode: 5 * us, PollExit: 100 * ns, C1Exit: us, C6Exit: 133 * us, C6Residency: 600 * us, Idle: IdleC1,
		Lock: 15 * ns, LockHandover: 30 * ns, LineTransfer: 50 * ns, LineTransferNode: 130 * ns, WorkerCreation: 50 * us, WorkItem: 20 * ns, Slice: 2800 * us}
}

func machine(t testing.TB, cfg Config) (*sim.Engine, *Machine) {
	t.Helper()
	e := sim.New(sim.Options{Seed: 1, MaxEvents: 100_000_000})
	m, err := New(e, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e, m
}

func run(t testing.TB, e *sim.Engine, until sim.Time) {
	t.Helper()
	if err := e.Run(until); err != nil {
		t.Fatal(err)
	}
	e.Close()
}

// An interrupt on an idle CPU begins after its delivery, the exit from the idle state and its
// entry. The state depends on the policy and on how long the CPU has been idle.
func TestInterruptsLeaveIdleStates(t *testing.T) {
	for _, c := range []struct {
		idle Idle
		at   sim.Time
		exit sim.Time
	}{{IdlePoll, us, 100 * ns}, {IdleC1, us, us}, {IdleC1, sim.Millisecond, us}, {IdleC6, us, us}, {IdleC6, sim.Millisecond, 133 * us}} {
		p := params()
		p.Idle = c.idle
		e, m := machine(t, Config{Params: p, CPUs: 2})
		began := sim.Time(0)
		e.After(c.at, func(uint64) { m.CPU(1).Interrupt(func(x *Context) { began = x.Now() }) }, 0)
		run(t, e, sim.Second)
		if want := c.at + p.InterruptLatency + c.exit + p.IRQEntry; began != want {
			t.Errorf("policy %s, idle for %v: began at %v, want %v", IdleWords[c.idle], c.at, began, want)
		}
	}
}

// An interrupt stretches what it meets by the time that it takes, and no time is lost or counted
// twice.
func TestInterruptsStretchThreads(t *testing.T) {
	e, m := machine(t, Config{Params: params(), CPUs: 1})
	var began, ended sim.Time
	th := m.NewThread("work", nil, 0, func(t *Thread) {
		began = t.Now()
		t.Run(10 * us)
		ended = t.Now()
	})
	th.Start()
	for i := range 3 {
		e.After(sim.Time(4+i)*us, func(uint64) { m.CPU(0).Interrupt(func(x *Context) { x.Run(100 * ns) }) }, 0)
	}
	run(t, e, sim.Millisecond)
	p := m.Params()
	if got, want := ended-began, 10*us+3*(p.IRQEntry+100*ns+p.IRQExit); got != want {
		t.Errorf("10us of work with three interrupts took %v, want %v", got, want)
	}
	c := m.CPU(0)
	if got, want := c.Busy[LevelThread], p.C1Exit+p.Switch+10*us; got != want {
		t.Errorf("the thread has taken %v, want %v", got, want)
	}
	if c.Interrupts != 3 || m.Counts.Interrupts != 3 || c.Switches != 1 {
		t.Errorf("%d interrupts, %d switches", c.Interrupts, c.Switches)
	}
}

// A spinlock goes to who waits longest; an interrupt waits until the CPU's holder or waiter has it
// behind him.
func TestSpinLocksAreFIFO(t *testing.T) {
	e, m := machine(t, Config{Params: params(), CPUs: 8, Nodes: 2})
	l := m.NewSpinLock()
	var order []int
	irq := sim.Time(0)
	for i := range 8 {
		set, err := m.CPUSet(i, 1)
		if err != nil {
			t.Fatal(err)
		}
		th := m.NewThread(fmt.Sprint("t", i), set, i, func(t *Thread) {
			t.Run(sim.Time(10-i) * 10 * ns) // the last one comes first
			l.Lock(&t.Context)
			t.Run(5 * us)
			order = append(order, t.CPU())
			l.Unlock(&t.Context)
		})
		th.Start()
	}
	e.After(4*us, func(uint64) { m.CPU(0).Interrupt(func(x *Context) { irq = x.Now() }) }, 0)
	run(t, e, sim.Millisecond)
	if fmt.Sprint(order) != "[7 6 5 4 3 2 1 0]" || l.Waited != 7 || m.LockWaits != 7 || m.LineMoves != 7 {
		t.Errorf("order %v, %d waited, %d lines moved", order, l.Waited, m.LineMoves)
	}
	p := m.Params()
	// CPU 0 waits for seven others with interrupts off, then holds the lock itself.
	hand := 6*p.LineTransfer + p.LineTransferNode + 7*(p.LockHandover+p.Lock)
	if want := p.C1Exit + p.Switch + 30*ns + p.Lock + 8*5*us + hand + p.IRQEntry; irq != want {
		t.Errorf("the interrupt began at %v, want %v", irq, want)
	}
}

// An interrupt that has waited for a holder of a lock goes before what the holder does next, even
// at the same instant: it never meets a lock that the thread below it holds.
func TestInterruptsGoFirst(t *testing.T) {
	e, m := machine(t, Config{Params: params(), CPUs: 1})
	l := m.NewSpinLock()
	taken := 0
	th := m.NewThread("locks", nil, 0, func(t *Thread) {
		for range 1000 {
			l.Lock(&t.Context)
			t.Spend(300 * ns)
			l.Unlock(&t.Context)
		}
	})
	th.Start()
	for i := range 200 {
		e.After(sim.Time(i)*1300*ns, func(uint64) {
			m.CPU(0).Interrupt(func(x *Context) {
				l.Lock(x)
				taken++
				l.Unlock(x)
			})
		}, 0)
	}
	run(t, e, sim.Millisecond)
	if taken != 200 || l.Acquired != 1200 || l.Waited != 0 {
		t.Errorf("%d interrupts had the lock, it was taken %d times and waited for %d times", taken, l.Acquired, l.Waited)
	}
}

// A program gives its CPU to a kernel worker at the first tick after its slice, which it may end
// even beside nice -20 if both are even; and a kernel thread only when it asks.
func TestUserThreadsArePreempted(t *testing.T) {
	for _, user := range []bool{true, false} {
		e, m := machine(t, Config{Params: params(), CPUs: 1})
		began, asked := sim.Time(0), sim.Time(0)
		worker := m.NewThread("worker", nil, 0, func(t *Thread) {
			t.Run(us)
			t.Delay(5 * sim.Millisecond)
			began = t.Now()
		})
		worker.SetNice(-20)
		worker.Start()
		hog := m.NewThread("hog", nil, 0, func(t *Thread) {
			t.Run(20 * sim.Millisecond)
			asked = t.Now()
			t.Resched()
			t.Run(us)
		})
		hog.User = user
		e.After(us, func(uint64) { hog.Start() }, 0)
		run(t, e, sim.Second)
		if user && (began < 8*sim.Millisecond || began > 8*sim.Millisecond+10*us || asked < 20*sim.Millisecond) || !user && (began < asked || began > asked+10*us) {
			t.Errorf("user %v: the worker began at %v, and the hog asked at %v", user, began, asked)
		}
	}
}

// Two threads that ask get equal shares, and a thread of less weight less.
func TestSharesFollowWeights(t *testing.T) {
	for _, c := range []struct {
		nice int
		want float64
	}{{0, 1}, {5, 1024.0 / 335}} {
		e, m := machine(t, Config{Params: params(), CPUs: 1})
		var got [2]float64
		for i := range got {
			th := m.NewThread(fmt.Sprint("t", i), nil, 0, func(t *Thread) {
				for {
					t.Run(100 * us)
					got[i]++
					t.Resched()
				}
			})
			th.SetNice(i * c.nice)
			th.SetDaemon()
			th.Start()
		}
		run(t, e, 5*sim.Second)
		if r := got[0] / got[1]; r < c.want*0.9 || r > c.want*1.1 {
			t.Errorf("nice 0 and %d: %v and %v, a ratio of %.2f, want %.2f", c.nice, got[0], got[1], r, c.want)
		}
	}
}

// A wake-up goes to the idle CPU on which the thread ran; if that is busy, to an idle one of its
// node, never outside its affinity; and a thread pays for caches where it has not run.
func TestWakeUpsFindIdleCPUs(t *testing.T) {
	e, m := machine(t, Config{Params: params(), CPUs: 8, Nodes: 2})
	set, err := m.CPUSet(4, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // on two CPUs of the second node
		th := m.NewThread(fmt.Sprint("busy", i), set, 4, func(t *Thread) {
			t.Run(sim.Millisecond)
			if cpu := t.CPU(); cpu != 4 && cpu != 5 {
				panic(fmt.Sprintf("on CPU %d", cpu))
			}
		})
		th.Start()
	}
	where := -1
	free := m.NewThread("free", nil, 4, func(t *Thread) { where = t.CPU() })
	e.After(100*us, func(uint64) { m.CPU(0).Interrupt(func(x *Context) { x.Wake(free) }) }, 0)
	run(t, e, sim.Second)
	if where != 6 {
		t.Errorf("woken on CPU %d, want 6: the first idle one of the node", where)
	}
	if m.CPU(4).Switches != 2 || m.CPU(5).Switches != 1 || m.IPIs != 1 || m.Wakeups != 1 {
		t.Errorf("%d and %d switches, %+v", m.CPU(4).Switches, m.CPU(5).Switches, m.Counts)
	}
}

// A slow CPU takes longer for instructions, and no longer for messages and idle states.
func TestSlowCPUs(t *testing.T) {
	e, m := machine(t, Config{Params: params(), CPUs: 1, Slower: 400})
	began := sim.Time(0)
	m.CPU(0).Interrupt(func(x *Context) { began = x.Now() })
	run(t, e, sim.Second)
	if p := m.Params(); began != p.InterruptLatency+p.C1Exit+4*p.IRQEntry {
		t.Errorf("began at %v", began)
	}
}

func TestImpossibleMachines(t *testing.T) {
	e := sim.New(sim.Options{})
	bad := func(f func(*Params)) Params { p := params(); f(&p); return p }
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Params: params()}, "want 1 to 1024"}, {Config{Params: params(), CPUs: 2000}, "want 1 to 1024"},
		{Config{Params: params(), CPUs: 6, Nodes: 4}, "equally many on each"}, {Config{Params: params(), CPUs: 1, Slower: 1}, "want 10 to 10000"},
		{Config{Params: bad(func(p *Params) { p.Jiffy = 0 }), CPUs: 1}, "Jiffy"}, {Config{Params: bad(func(p *Params) { p.Slice = 0 }), CPUs: 1}, "Slice"},
		{Config{Params: bad(func(p *Params) { p.Wake = -1 }), CPUs: 1}, "Wake of"}, {Config{Params: bad(func(p *Params) { p.SoftirqRounds = 0 }), CPUs: 1}, "SoftirqRounds"},
		{Config{Params: bad(func(p *Params) { p.Idle = 9 }), CPUs: 1}, "Idle is 9"},
	} {
		if _, err := New(e, c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.want, err)
		}
	}
	_, m := machine(t, Config{Params: params(), CPUs: 4})
	if _, err := m.CPUSet(2, 3); err == nil || !strings.Contains(err.Error(), "the machine has CPUs 0 to 3") {
		t.Error(err)
	}
}

// Wake-ups between two threads of different CPUs.
func BenchmarkWakeups(b *testing.B) {
	e, m := machine(b, Config{Params: params(), CPUs: 16})
	var a, z *Thread
	n := 0
	pong := func(other **Thread) func(*Thread) {
		return func(t *Thread) {
			for n < b.N {
				n++
				t.Prepare()
				t.Wake(*other)
				t.Schedule("the other")
			}
			e.Stop()
		}
	}
	a, z = m.NewThread("a", nil, 0, pong(&z)), m.NewThread("z", nil, 1, pong(&a))
	a.SetDaemon()
	z.SetDaemon()
	b.ReportAllocs()
	b.ResetTimer()
	a.Start()
	_ = e.Run(sim.Never - 1)
	e.Close()
}
