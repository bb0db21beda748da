package completion

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/os"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs/kernel"
)

// What cannot be is refused with what is allowed.
func TestRefusals(t *testing.T) {
	r := newRig(t, rule.Broken{}, 4, false)
	done := func(kernel.Context, *kernel.WC) {}
	alloc := func(a kernel.CQAttr) error { _, err := r.a.AllocCQ(a); return err }
	pool := func(a kernel.CQAttr, n int) error { _, err := r.a.PoolCQ(a, n); return err }
	create := func(a kernel.CQAttr) error { _, err := r.a.CreateCQ(a, func(kernel.Context) {}); return err }
	adapter := func(c Config) error { c.Params = costs; _, err := New(r.m, c); return err }
	soft, err := r.a.AllocCQ(kernel.CQAttr{Size: 4, Poll: kernel.Softirq, Done: done})
	if err != nil {
		t.Fatal(err)
	}
	_, direct := soft.ProcessDirect(nil, 1)
	for _, c := range []struct {
		err  error
		want string
	}{
		{alloc(kernel.CQAttr{Vector: 4, Size: 1, Done: done}), "vectors 0 to 3"}, {alloc(kernel.CQAttr{Done: done}), "want 1 to"},
		{alloc(kernel.CQAttr{Size: 1}), "needs Done"}, {alloc(kernel.CQAttr{Size: 1, Done: done, Poll: 9}), "want direct, softirq"},
		{pool(kernel.CQAttr{Done: done, Poll: kernel.Direct}, 1), "no CQ of poll context direct"}, {pool(kernel.CQAttr{Done: done, Poll: kernel.Softirq}, 5000), "want 1 to 4096"},
		{create(kernel.CQAttr{Size: 1, Moderate: true}), "leave Moderate out"}, {direct, "not of poll context direct"},
		{adapter(Config{Vectors: 5}), "the device has 1 to 4"}, {adapter(Config{Vectors: 2, Affinity: []int{1}}), "give each a CPU"},
		{adapter(Config{Vectors: 1, Affinity: []int{4}}), "the machine has CPUs 0 to 3"}, {adapter(Config{Vectors: 1, UnboundFirst: 3, UnboundCPUs: 2}), "the machine has CPUs 0 to 3"},
		{r.a.Start("far", 4, 1, func(kernel.Thread) {}), "thread far: os: an affinity for CPUs 4 to 4"},
		{invalid(func(p *Params) { p.Arm = -1 }), "Arm of"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%q: %v", c.want, c.err)
		}
	}
}

func invalid(f func(*Params)) error { p := costs; f(&p); return p.Validate() }

// A CQ with more completions than entries ends the run with a sentence.
func TestOverrun(t *testing.T) {
	r := newRig(t, rule.Broken{}, 1, false)
	q, err := r.a.CreateCQ(kernel.CQAttr{Size: 3}, func(kernel.Context) {})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		q.Arrive(0, uint64(i))
	}
	if err := r.e.Run(sim.Second); err == nil || !strings.Contains(err.Error(), "CQ 0 of 4 entries overruns") {
		t.Error(err)
	}
	r.e.Close()
}

// Shared CQs are filled first fit: a CQ for each poll context and vector, and another one when it is full.
func TestPool(t *testing.T) {
	r := newRig(t, rule.Broken{}, 2, false)
	get := func(p kernel.PollContext, vector, n int) kernel.CQ {
		q, err := r.a.PoolCQ(kernel.CQAttr{Poll: p, Vector: vector, Done: func(kernel.Context, *kernel.WC) {}}, n)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	a := get(kernel.Softirq, 0, 4000)
	if get(kernel.Softirq, 1, 10) == a || get(kernel.Workqueue, 0, 10) == a || get(kernel.Softirq, 0, 97) == a || get(kernel.Softirq, 0, 96) != a {
		t.Error("a request has the CQ of another vector or poll context, or of one without room")
	}
}

// The owner of a plain CQ polls it, and gets one event for each arm; a completion that waits already brings one at once.
func TestPlainCQ(t *testing.T) {
	r, events := newRig(t, rule.Broken{}, 2, false), 0
	l, w := r.a.NewLock(), r.a.NewWaitQueue()
	q, err := r.a.CreateCQ(kernel.CQAttr{Size: 16}, func(c kernel.Context) {
		events++
		l.Lock(c)
		w.WakeOne(c)
		l.Unlock(c)
	})
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	err = r.a.Start("owner", 1, 1, func(k kernel.Thread) {
		var wc [4]kernel.WC
		l.Lock(k)
		for range 3 {
			if q.ReqNotify(k, true) {
				t.Error("an mlx5 has reported completions that wait")
			}
			w.Wait(k, l)
			taken += q.Poll(k, wc[:])
			k.Resched()
		}
		l.Unlock(k)
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		q.Arrive(time.Millisecond, uint64(i))
	}
	if err := r.e.Run(sim.Second); err != nil {
		t.Fatal(err)
	}
	r.e.Close()
	if events != 3 || taken != 12 || r.a.Arms != 3 {
		t.Errorf("%d events, %d completions, %d arms", events, taken, r.a.Arms)
	}
}

// DIM raises the moderation of a CQ with many completions, which lowers its interrupts, and loses none.
func TestModeration(t *testing.T) {
	var msis [2]uint64
	for i := range msis {
		r, n := newRig(t, rule.Broken{}, 2, false), 0
		var q kernel.CQ
		q = r.alloc(t, kernel.CQAttr{Poll: kernel.Softirq, Moderate: i == 1, Done: func(_ kernel.Context, wc *kernel.WC) {
			if n++; n < 20_000 {
				q.Arrive(max(3, 60-time.Duration(n)/300)*time.Microsecond, wc.ID) // ever more, or DIM would stay where it is
			}
		}})
		for j := range 40 {
			q.Arrive(burstAt+time.Duration(j)*130, uint64(j))
		}
		if wrong := r.run(sim.Second); len(wrong) > 0 {
			t.Fatal(wrong)
		}
		r.e.Close()
		if n < 20_000 {
			t.Errorf("moderated %v: %d completions", i == 1, n)
		}
		if msis[i] = r.a.MSIs; (r.a.ModifyCQs > 0) != (i == 1) {
			t.Errorf("moderated %v: %d changes", i == 1, r.a.ModifyCQs)
		}
	}
	if msis[1] == 0 || msis[1] >= msis[0] {
		t.Errorf("%d interrupts with DIM, %d without", msis[1], msis[0])
	}
}

// rdma_dim on samples whose outcome follows from its source.
func TestDIMDecides(t *testing.T) {
	d := &dim{step: 1}
	for i, c := range []struct{ rate, events, want int64 }{
		{1000, 1000, 0}, // the first sample: the same; 100 completions for 100 events, more than 50 * 0
		{2000, 1000, 1}, // better: a step
		{4000, 1000, 2},
		{2000, 1000, 1}, // worse: turn
		{2000, 1000, 1}, // the same, at a ratio above 50
		{2000, 4000, 2}, // a worse ratio: turn again
	} {
		d.profile = d.decide(c.rate, c.events)
		if d.profile != int(c.want) {
			t.Errorf("sample %d: profile %d, want %d", i, d.profile, c.want)
		}
	}
	d.profile, d.prevRatio = 4, 100
	if d.profile = d.decide(2000, 2000); d.profile != 0 {
		t.Errorf("same at a low ratio: profile %d, want 0", d.profile)
	}
}

// The same events in lockstep give the same counts.
func TestLockstep(t *testing.T) {
	var got [2]string
	for i := range got {
		e := sim.New(sim.Options{Seed: 1, Lockstep: i == 1})
		m, err := os.New(e, os.Config{Params: osCosts, CPUs: 4})
		if err != nil {
			t.Fatal(err)
		}
		a, err := New(m, Config{Params: costs, Vectors: 4})
		if err != nil {
			t.Fatal(err)
		}
		r, s := &rig{e, m, a}, &seen{}
		for v := range 4 {
			q := r.alloc(t, kernel.CQAttr{Vector: v, Poll: kernel.PollContext(1 + v), Done: s.handler(700)})
			for j := range 200 {
				q.Arrive(time.Duration(j)*900, uint64(j))
			}
		}
		if err := e.Run(sim.Second); err != nil {
			t.Fatal(err)
		}
		e.Close()
		got[i] = fmt.Sprint(m.Counts, a.Counts, s.handled, s.last, m.CPU(0).Busy, m.CPU(1).Busy)
	}
	if got[0] != got[1] {
		t.Errorf("%s\nin lockstep:\n%s", got[0], got[1])
	}
}
