package cpu

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/sim"
)

func TestFreeLock(t *testing.T) {
	r := newRig(sim.Options{}, params())
	var l Spinlock
	r.thread(0, func(p *sim.Proc, c *Core) {
		for range 3 {
			if w := l.Lock(p, c); w != 0 || !l.Held() {
				t.Errorf("waited %v, held %v", w, l.Held())
			}
			l.Unlock(p, c)
		}
		if p.Now() != 75*ns || l.Held() {
			t.Errorf("three times took %v", p.Now())
		}
	})
	r.run(t)
	r.thread(1, func(p *sim.Proc, c *Core) {
		at := p.Now()
		l.Lock(p, c) // free, but the line is elsewhere
		if p.Now()-at != 50*ns {
			t.Errorf("took %v", p.Now()-at)
		}
		l.Unlock(p, c)
	})
	r.run(t)
}

// Threads that queue for the lock get it in the order in which they came, and pay
// the hand-over; events do not grow with the time that they spin.
func TestLockIsFair(t *testing.T) {
	for _, lockstep := range []bool{false, true} {
		r := newRig(sim.Options{Lockstep: lockstep}, params())
		var l Spinlock
		var got []string
		for i, arrive := range []sim.Time{0, 30 * ns, 20 * ns, 30 * ns} {
			r.thread(i, func(p *sim.Proc, c *Core) {
				p.Advance(arrive)
				w := l.Lock(p, c)
				got = append(got, fmt.Sprintf("%d waited %v until %v", i, w, p.Now()))
				p.Sleep(1000 * ns)
				l.Unlock(p, c)
			})
		}
		r.run(t)
		// Held from 20ns for 1005ns; each later one comes 100ns (80 + 20) after a release.
		wantLog(t, got,
			"0 waited 0ps until 20ns",
			"2 waited 1.085us until 1.125us",
			"1 waited 2.18us until 2.23us",
			"3 waited 3.285us until 3.335us")
		if c := r.h.Core(3).Counters(); c.LockWaited != 1 || c.LockWait != 3285*ns {
			t.Errorf("%+v", *c)
		}
		if n := r.e.Events(); !lockstep && n > 20 {
			t.Errorf("%d events", n)
		}
	}
}

func TestALockOutlivesAKilledWaiter(t *testing.T) {
	r := newRig(sim.Options{}, params())
	var l Spinlock
	var waiter *sim.Proc
	ok := false
	r.thread(0, func(p *sim.Proc, c *Core) {
		l.Lock(p, c)
		p.Sleep(500 * ns)
		waiter.Kill()
		l.Unlock(p, c)
	})
	waiter = r.e.Go("waiter", func(p *sim.Proc) { p.Advance(50 * ns); l.Lock(p, r.h.Core(1)); t.Error("got it") })
	r.thread(2, func(p *sim.Proc, c *Core) { p.Advance(60 * ns); l.Lock(p, c); ok = true; l.Unlock(p, c) })
	r.run(t)
	if !ok {
		t.Error("the next one never got the lock")
	}
}

func TestMisuseOfALockPanics(t *testing.T) {
	for name, body := range map[string]func(l *Spinlock, p *sim.Proc, c *Core){
		"twice":   func(l *Spinlock, p *sim.Proc, c *Core) { l.Lock(p, c); l.Lock(p, c) },
		"unowned": func(l *Spinlock, p *sim.Proc, c *Core) { l.Unlock(p, c) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(sim.Options{}, params())
			r.thread(0, func(p *sim.Proc, c *Core) { body(new(Spinlock), p, c) })
			defer func() {
				if recover() == nil {
					t.Error("unnoticed")
				}
			}()
			r.run(t)
		})
	}
}

// step is an action of a random thread.
type step struct {
	Kind, Obj int
	D         sim.Time
}

// runThreads runs random threads over shared locks, lines and a device, and
// returns all that can be seen of it.
func runThreads(progs [][]step, cores int, lockstep bool) []string {
	r := newRig(sim.Options{Lockstep: lockstep}, params())
	var locks [2]Spinlock
	var lines [2]Line
	var log []string
	for i, prog := range progs {
		r.thread(i%cores, func(p *sim.Proc, c *Core) {
			note := func(what string) { log = append(log, fmt.Sprintf("%d %s %v", i, what, p.Now())) }
			for _, s := range prog {
				switch s.Kind {
				case 0:
					c.Run(p, s.D)
				case 1, 2: // a critical section that runs ahead
					l := &locks[s.Obj]
					w := l.Lock(p, c)
					c.Run(p, s.D)
					if s.Kind == 2 { // or does not
						p.Sync()
						note(fmt.Sprintf("waited %v", w))
					}
					c.Store(p, r.mapping(WriteCombining), uint64(s.Obj)*256, make([]byte, 64))
					l.Unlock(p, c)
				case 3:
					c.Touch(p, &lines[s.Obj])
				case 4:
					c.Store(p, r.mapping(WriteCombining), uint64(8*i), make([]byte, 8))
					c.Fence(p)
				case 5:
					c.Store(p, r.mapping(Uncached), 0x900, make([]byte, 8))
				}
			}
			p.Sync()
			note("ends")
		})
	}
	if err := r.e.Run(sim.Never); err != nil {
		log = append(log, err.Error())
	}
	log = append(log, r.f.log...)
	for i := range r.h.Cores() {
		log = append(log, fmt.Sprintf("%+v", *r.h.Core(i).Counters()))
	}
	return log
}

func TestRunAheadEqualsLockstep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.Custom(func(t *rapid.T) step {
			return step{
				Kind: rapid.IntRange(0, 5).Draw(t, "kind"),
				Obj:  rapid.IntRange(0, 1).Draw(t, "obj"),
				D:    sim.Time(rapid.IntRange(0, 60).Draw(t, "d")) * ns,
			}
		})
		progs := rapid.SliceOfN(rapid.SliceOfN(gen, 0, 20), 1, 5).Draw(t, "programs")
		cores := rapid.IntRange(1, 5).Draw(t, "cores")
		a, b := runThreads(progs, cores, false), runThreads(progs, cores, true)
		if d := cmp.Diff(b, a); d != "" {
			t.Fatalf("run-ahead differs from lockstep (-lockstep +ahead):\n%s", d)
		}
	})
}

func BenchmarkLock(b *testing.B) {
	for _, threads := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			r := newRig(sim.Options{}, params())
			var l Spinlock
			for i := range threads {
				r.thread(i, func(p *sim.Proc, c *Core) {
					for range b.N / threads {
						l.Lock(p, c)
						c.Run(p, 50*ns)
						l.Unlock(p, c)
						c.Run(p, 70*ns)
					}
				})
			}
			b.ReportAllocs()
			b.ResetTimer()
			_ = r.e.Run(sim.Never)
		})
	}
}
