package sim

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestKill(t *testing.T) {
	e, l := newLog(Options{})
	victim := e.Go("victim", func(p *Proc) {
		p.OnExit(func() { l.add("exit of victim") })
		defer l.add("deferred")
		defer func() {
			at := e.Now()
			p.Sync() // no time passes for a program that is being killed
			if e.Now() != at {
				t.Errorf("the clock went from %v to %v", at, e.Now())
			}
		}()
		p.Sleep(500)
		t.Error("goes on")
	})
	e.Go("killer", func(p *Proc) {
		p.Sleep(100)
		victim.Kill()
		victim.Kill()
		p.Engine().cur.Kill() // itself: nothing
		p.Post(0, func(uint64) { l.add("post of killer") }, 0)
		p.Sleep(10)
		l.add("killer goes on")
	})
	mustRun(t, e)
	if !victim.Done() {
		t.Error("victim is not done")
	}
	l.want(t, "100ps deferred", "100ps exit of victim", "100ps post of killer", "110ps killer goes on")
}

func TestKillBeforeTheStart(t *testing.T) {
	e, l := newLog(Options{})
	p := e.Go("p", func(p *Proc) { t.Error("started") })
	p.OnExit(func() { l.add("exit") })
	p.Kill()
	mustRun(t, e)
	if !p.Done() {
		t.Error("not done")
	}
	l.want(t, "0ps exit")
}

func TestKillOfAParkedProgramWithAWakeUpUnderWay(t *testing.T) {
	e := New(Options{})
	p := e.Go("p", func(p *Proc) { p.Park("x"); t.Error("goes on") })
	e.At(10, func(uint64) { p.Wake(20) }, 0)
	e.At(15, func(uint64) { p.Kill() }, 0)
	mustRun(t, e)
}

func TestCloseRunsWhatIsDeferred(t *testing.T) {
	e := New(Options{})
	n := 0
	for range 3 {
		e.Go("p", func(p *Proc) { defer func() { n++ }(); p.Park("x") })
	}
	if err := e.Run(Never); err == nil {
		t.Error("no deadlock")
	}
	e.Close()
	if n != 3 {
		t.Errorf("%d of 3 were unwound", n)
	}
}

func TestPanicSurfacesFromRunWithItsStack(t *testing.T) {
	e := New(Options{})
	cause := errors.New("the cause")
	exits := 0
	e.Go("bad", func(p *Proc) {
		p.OnExit(func() { exits++ })
		p.Sleep(25)
		explode(cause)
	})
	defer func() {
		x, ok := recover().(*ProgramPanic)
		if !ok {
			t.Fatal("no ProgramPanic")
		}
		if x.Program != "bad" || x.At != 25 || !errors.Is(x, cause) || !strings.Contains(x.Error(), "explode") {
			t.Errorf("got %v", x)
		}
		if exits != 1 {
			t.Error("OnExit did not run")
		}
		e.Close()
		if err := e.Run(Never); err != nil { // the engine can be used again
			t.Error(err)
		}
	}()
	_ = e.Run(Never)
}

//go:noinline
func explode(err error) { panic(err) }

func TestParkUntil(t *testing.T) {
	e, l := newLog(Options{})
	p := e.Go("p", func(p *Proc) {
		wait := func(until Time) {
			if p.ParkUntil("it", until) {
				l.add("timed out")
			} else {
				l.add("woken")
			}
		}
		wait(100) // woken at 50: the event at 100 is stale
		wait(200) // not ended by it
		wait(Never)
		wait(300) // a device event at the very deadline is in time
		wait(310) // earlier than a stale one
		wait(0)   // in the past: ends at once
	})
	for _, at := range []Time{50, 250, 300} {
		e.At(at, func(uint64) { p.Wake(e.Now()) }, 0)
	}
	mustRun(t, e)
	l.want(t, "50ps woken", "200ps timed out", "250ps woken", "300ps woken", "310ps timed out", "310ps timed out")
}

func TestManyWaitsWithADeadlineKeepOneEvent(t *testing.T) {
	e := New(Options{})
	p := e.Go("p", func(p *Proc) {
		for range 1000 {
			if p.ParkUntil("x", p.Now()+Second) {
				t.Error("timed out")
			}
			if n := e.Pending(); n > 4 {
				t.Fatalf("%d events", n)
			}
		}
	})
	e.Go("waker", func(q *Proc) {
		for range 1000 {
			q.Sleep(10)
			p.Wake(q.Now())
		}
	})
	mustRun(t, e)
}

func TestStartedByAProgramAtItsLocalTime(t *testing.T) {
	e, l := newLog(Options{})
	e.Go("parent", func(p *Proc) {
		p.Advance(40)
		e.Go("child", func(p *Proc) { p.Sync(); l.add("child") })
	})
	mustRun(t, e)
	l.want(t, "40ps child")
}

// step is an action of a random program.
type step struct {
	Kind int
	D    Time
	Who  int
}

// runPrograms runs random programs that share a log, a token with waiters, and
// device events, and returns every effect in the order in which it happened.
func runPrograms(progs [][]step, lockstep bool) []string {
	e, l := newLog(Options{Lockstep: lockstep})
	procs := make([]*Proc, len(progs))
	tokens := 0
	device := func(i uint64) {
		l.add("device event " + string(rune('a'+i)))
		tokens++
		for _, p := range procs {
			p.Wake(e.Now())
		}
	}
	posted := func(i uint64) { l.add("posted by " + string(rune('a'+i))); e.After(7, device, i) }
	for i, prog := range progs {
		name := string(rune('a' + i))
		procs[i] = e.Go(name, func(p *Proc) {
			for _, s := range prog {
				switch s.Kind {
				case 0, 1:
					p.Advance(s.D)
				case 2:
					p.Post(s.D, posted, uint64(i))
				case 3:
					p.Sync()
					l.add(name + " sees " + string(rune('0'+tokens%10)))
				case 4:
					p.Sync()
					e.After(s.D, device, uint64(i))
				case 5:
					p.Sync()
					if tokens == 0 {
						out := p.ParkUntil("token", p.Now()+s.D)
						p.Sync()
						if out {
							l.add(name + " gave up")
						}
					}
					if tokens > 0 {
						tokens--
						l.add(name + " takes a token")
					}
				case 6:
					p.Sync()
					procs[s.Who%len(procs)].Wake(p.Now() + s.D)
				}
			}
			p.Sync()
			l.add(name + " ends")
		})
	}
	if err := e.Run(Never); err != nil {
		l.add(err.Error())
	}
	e.Close()
	return l.what
}

func TestRunAheadEqualsLockstep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.Custom(func(t *rapid.T) step {
			return step{
				Kind: rapid.IntRange(0, 6).Draw(t, "kind"),
				D:    Time(rapid.IntRange(0, 20).Draw(t, "d")),
				Who:  rapid.IntRange(0, 4).Draw(t, "who"),
			}
		})
		progs := rapid.SliceOfN(rapid.SliceOfN(gen, 0, 25), 1, 5).Draw(t, "programs")
		a, b := runPrograms(progs, false), runPrograms(progs, true)
		if d := cmp.Diff(b, a); d != "" {
			t.Fatalf("run-ahead differs from lockstep (-lockstep +ahead):\n%s", d)
		}
	})
}

// Whether a program is idle does not depend on how far ahead it or another one ran.
func TestIdle(t *testing.T) {
	for _, lockstep := range []bool{false, true} {
		e := New(Options{Lockstep: lockstep})
		parks := func(p *Proc) { p.Advance(10); p.Park("nothing") }
		spins := func(p *Proc) { p.Spin("a lock") }
		var all []*Proc
		var got [3][]bool
		looks := func(p *Proc) {
			for i, at := range []Time{5, 10, 11} {
				p.Sleep(at - p.Now())
				for _, x := range all {
					got[i] = append(got[i], x.Idle())
				}
			}
			all[3].Wake(p.Now()) // as the holder of a lock does, which may be ahead
			got[2] = append(got[2], all[3].Idle())
		}
		for i, body := range []func(p *Proc){parks, looks, parks, spins} {
			all = append(all, e.Go(fmt.Sprint(i), body))
		}
		_ = e.Run(20)
		want := [3][]bool{{false, true, false, false}, {true, true, false, false}, {true, true, true, false, false}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("lockstep %v: %v, want %v", lockstep, got, want)
		}
	}
}
