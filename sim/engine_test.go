package sim

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// log collects what happens, with the engine's time.
type log struct {
	e    *Engine
	what []string
}

func (l *log) add(s string) { l.what = append(l.what, l.e.Now().String()+" "+s) }

func (l *log) want(t *testing.T, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, l.what); d != "" {
		t.Errorf("wrong order (-want +got):\n%s", d)
	}
}

func newLog(o Options) (*Engine, *log) {
	e := New(o)
	return e, &log{e: e}
}

func mustRun(t *testing.T, e *Engine) {
	t.Helper()
	if err := e.Run(Never); err != nil {
		t.Fatal(err)
	}
}

func TestEqualTimesRunInTheOrderOfScheduling(t *testing.T) {
	e, l := newLog(Options{})
	names := []string{"a", "b", "c", "d"}
	h := func(i uint64) { l.add(names[i]) }
	e.After(20, h, 0)
	e.At(10, h, 1)
	e.At(20, h, 2)
	e.At(10, func(uint64) { l.add("x"); e.After(10, h, 3); e.After(0, h, 1) }, 0)
	mustRun(t, e)
	l.want(t, "10ps b", "10ps x", "10ps b", "20ps a", "20ps c", "20ps d")
}

// Programs come after the device events of their instant, even of those scheduled
// later, and among themselves by number.
func TestProgramsComeAfterDevicesByNumber(t *testing.T) {
	for _, lockstep := range []bool{false, true} {
		e, l := newLog(Options{Lockstep: lockstep})
		for _, name := range []string{"p0", "p1"} {
			e.Go(name, func(p *Proc) {
				if name == "p0" {
					p.Sleep(50) // p0 gets to its wait at 100 after p1 did
				}
				p.Sleep(100 - p.Now())
				l.add(name)
				p.Post(0, func(uint64) { l.add("post of " + name) }, 0)
				e.After(0, func(uint64) { l.add("device, asked by " + name) }, 0)
			})
		}
		e.At(40, func(uint64) { e.After(60, func(uint64) { l.add("device") }, 0) }, 0)
		mustRun(t, e)
		l.want(t, "100ps device", "100ps p0", "100ps device, asked by p0", "100ps post of p0",
			"100ps p1", "100ps device, asked by p1", "100ps post of p1")
	}
}

func TestPostsOfProgramsThatRanAheadAreInOrderOfTime(t *testing.T) {
	e, l := newLog(Options{})
	e.Go("ahead", func(p *Proc) {
		for range 3 {
			p.Advance(10)
			p.Post(5, func(uint64) { l.add("ahead") }, 0)
		}
	})
	e.Go("behind", func(p *Proc) {
		for range 3 {
			p.Advance(8)
			p.Post(5, func(uint64) { l.add("behind") }, 0)
		}
	})
	mustRun(t, e)
	l.want(t, "13ps behind", "15ps ahead", "21ps behind", "25ps ahead", "29ps behind", "35ps ahead")
}

func TestRunStopsAndGoesOn(t *testing.T) {
	e, l := newLog(Options{})
	for _, at := range []Time{10, 20, 30, 40} {
		e.At(at, func(uint64) {
			l.add("event")
			if at == 30 {
				e.Stop()
			}
		}, 0)
	}
	e.At(Never, func(uint64) { t.Error("an event at Never happened") }, 0)
	e.After(Never, func(uint64) { t.Error("an event after Never happened") }, 0)
	if err := e.Run(20); err != nil || e.Now() != 20 || len(l.what) != 2 {
		t.Errorf("until 20: %v, at %v, %d events", err, e.Now(), len(l.what))
	}
	if err := e.Run(25); err != nil || e.Now() != 25 || len(l.what) != 2 {
		t.Errorf("until 25: %v, at %v, %d events", err, e.Now(), len(l.what))
	}
	if err := e.Run(Never); err != nil || e.Now() != 30 {
		t.Errorf("stopped: %v, at %v", err, e.Now())
	}
	mustRun(t, e)
	l.want(t, "10ps event", "20ps event", "30ps event", "40ps event")
}

func TestProgramsStopAtTheLimitOfRun(t *testing.T) {
	e, l := newLog(Options{})
	e.Go("p", func(p *Proc) {
		for range 4 {
			p.Sleep(10)
			l.add("step")
		}
	})
	if err := e.Run(25); err != nil || len(l.what) != 2 || e.Now() != 25 {
		t.Errorf("until 25: %v, %d steps, at %v", err, len(l.what), e.Now())
	}
	mustRun(t, e)
	l.want(t, "10ps step", "20ps step", "30ps step", "40ps step")
}

func TestTimeRangeIsAnErrorAndNeverAWrap(t *testing.T) {
	for name, body := range map[string]func(e *Engine){
		"after":   func(e *Engine) { e.After(10, func(uint64) { e.After(Never-5, nil, 0) }, 0) },
		"advance": func(e *Engine) { e.Go("p", func(p *Proc) { p.Advance(Never - 5); p.Advance(10); t.Error("goes on") }) },
		"post":    func(e *Engine) { e.Go("p", func(p *Proc) { p.Advance(10); p.Post(Never-5, nil, 0) }) },
		"sleep":   func(e *Engine) { e.Go("p", func(p *Proc) { p.Sleep(Never); t.Error("goes on") }) },
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Options{})
			body(e)
			if err := e.Run(Never); !errors.Is(err, ErrTimeRange) {
				t.Errorf("got %v", err)
			}
			e.Close()
		})
	}
}

func TestEventBudget(t *testing.T) {
	for name, body := range map[string]func(e *Engine){
		"events": func(e *Engine) {
			var h Handler
			h = func(uint64) { e.After(1, h, 0) }
			e.After(1, h, 0)
		},
		"a program that nothing interrupts": func(e *Engine) {
			e.Go("p", func(p *Proc) {
				for {
					p.Sleep(1)
				}
			})
		},
		"a program that stands still": func(e *Engine) {
			e.Go("p", func(p *Proc) {
				for {
					p.Sync()
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Options{MaxEvents: 1000})
			body(e)
			if err := e.Run(Never); !errors.Is(err, ErrEventBudget) {
				t.Errorf("got %v", err)
			}
			e.Close()
		})
	}
}

func TestDeadlockSaysWhoWaitsForWhat(t *testing.T) {
	e := New(Options{})
	e.Go("reader", func(p *Proc) { p.Sleep(30); p.Park("CQ 5") })
	e.Go("worker", func(p *Proc) { p.SetDaemon(); p.Park("work") })
	e.Go("done", func(p *Proc) { p.Sleep(70) })
	err := e.Run(Never)
	var d *Deadlock
	if !errors.As(err, &d) {
		t.Fatalf("got %v", err)
	}
	want := &Deadlock{At: 70, Waiting: []string{"reader for CQ 5", "worker for work"}}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(err.Error(), "reader for CQ 5") {
		t.Error(err)
	}
	e.Close()
}

func TestDaemonsAloneAreNoDeadlock(t *testing.T) {
	e := New(Options{})
	e.Go("worker", func(p *Proc) { p.SetDaemon(); p.Park("work") })
	mustRun(t, e)
	e.Close()
}

func TestDrawsAreFixed(t *testing.T) {
	r := NewRand(42, "loss")
	got := []uint64{r.Uint64(), r.Uint64(), r.Uint64()}
	// SplitMix64 from 42 ^ FNV-1a("loss"), the first output dropped.
	want := []uint64{splitmix(42^fnv("loss"), 2), splitmix(42^fnv("loss"), 3), splitmix(42^fnv("loss"), 4)}
	if !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
	if a, b := NewRand(1, "a").Uint64(), NewRand(1, "b").Uint64(); a == b {
		t.Error("streams of two names are equal")
	}
	count := make([]int, 6)
	for range 6000 {
		count[r.Intn(6)]++
	}
	for i, n := range count {
		if n < 850 || n > 1150 {
			t.Errorf("%d came %d times of 6000", i, n)
		}
	}
}

// splitmix is output number n of SplitMix64, from its definition.
func splitmix(seed uint64, n uint64) uint64 {
	z := seed + n*0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

func fnv(s string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, c := range []byte(s) {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	return h
}

func TestServerServesInOrder(t *testing.T) {
	var s Server
	for _, c := range []struct{ t, d, start, end Time }{{10, 5, 10, 15}, {11, 5, 15, 20}, {40, 1, 40, 41}} {
		if start, end := s.Take(c.t, c.d); start != c.start || end != c.end {
			t.Errorf("Take(%v, %v) = %v, %v", c.t, c.d, start, end)
		}
	}
	if s.Busy != 11 || s.Served != 3 || s.FreeAt() != 41 {
		t.Errorf("%+v", s)
	}
}

func TestTimeString(t *testing.T) {
	for in, want := range map[Time]string{
		0: "0ps", 7: "7ps", 20_000: "20ns", 1_500_000: "1.5us", -1_500_000: "-1.5us",
		3 * Second: "3s", 1001: "1.001ns", Never: "never", Second + 1: "1.000000000001s",
	} {
		if got := in.String(); got != want {
			t.Errorf("%d is %q, want %q", int64(in), got, want)
		}
	}
}
