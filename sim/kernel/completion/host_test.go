package completion_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel/completion"
	"github.com/rdmasim/rdmasim/sim/kernel/completion/oracle"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs/kernel"
)

// What cannot be is refused with what is allowed.
func TestRefusals(t *testing.T) {
	r := oracle.NewRig(rule.Broken{}, 4, false)
	done := func(kernel.Context, *kernel.WC) {}
	alloc := func(a kernel.CQAttr) error { _, err := r.A.AllocCQ(a); return err }
	pool := func(a kernel.CQAttr, n int) error { _, err := r.A.PoolCQ(a, n); return err }
	create := func(a kernel.CQAttr) error { _, err := r.A.CreateCQ(a, func(kernel.Context) {}); return err }
	adapter := func(c completion.Config) error { c.Params = oracle.Costs; _, err := completion.New(r.M, c); return err }
	soft, err := r.A.AllocCQ(kernel.CQAttr{Size: 4, Poll: kernel.Softirq, Done: done})
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
		{adapter(completion.Config{Vectors: 5}), "the device has 1 to 4"}, {adapter(completion.Config{Vectors: 1, Batch: 1 << 20}), "a batch of 1048576: want 1 to 65536"}, {adapter(completion.Config{Vectors: 2, Affinity: []int{1}}), "give each a CPU"},
		{adapter(completion.Config{Vectors: 1, Affinity: []int{4}}), "the machine has CPUs 0 to 3"}, {adapter(completion.Config{Vectors: 1, Unbound: []int{3, 4}}), "CPU 4 in the cpumask of the unbound workqueue: the machine has CPUs 0 to 3"},
		{adapter(completion.Config{Vectors: 1, Unbound: []int{-1}}), "CPU -1 in the cpumask"}, {adapter(completion.Config{Vectors: 1, Unbound: []int{2, 2}}), "CPU 2 is twice"},
		{r.A.Start("far", 4, 1, func(kernel.Thread) {}), "thread far: os: an affinity for CPUs 4 to 4"},
		{invalid(func(p *completion.Params) { p.Arm = -1 }), "Arm is"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%q: %v", c.want, c.err)
		}
	}
}

func invalid(f func(*completion.Params)) error { p := oracle.Costs; f(&p); return p.Validate() }

// A CQ with more completions than entries ends the run with a sentence.
func TestOverrun(t *testing.T) {
	r := oracle.NewRig(rule.Broken{}, 1, false)
	q, err := r.A.CreateCQ(kernel.CQAttr{Size: 3}, func(kernel.Context) {})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		q.Arrive(0, uint64(i))
	}
	if err := r.E.Run(sim.Second); err == nil || !strings.Contains(err.Error(), "CQ 0 of 4 entries overruns") {
		t.Error(err)
	}
	r.E.Close()
}

// Shared CQs are filled first fit: a CQ for each poll context and vector, and another one when it
// is full.
func TestPool(t *testing.T) {
	r := oracle.NewRig(rule.Broken{}, 2, false)
	get := func(p kernel.PollContext, vector, n int) kernel.CQ {
		q, err := r.A.PoolCQ(kernel.CQAttr{Poll: p, Vector: vector, Done: func(kernel.Context, *kernel.WC) {}}, n)
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

// The owner of a plain CQ polls it, and gets one event for each arm; a completion that waits
// already brings one at once.
func TestPlainCQ(t *testing.T) {
	r, events := oracle.NewRig(rule.Broken{}, 2, false), 0
	l, w := r.A.NewLock(0), r.A.NewWaitQueue()
	q, err := r.A.CreateCQ(kernel.CQAttr{Size: 16}, func(c kernel.Context) {
		events++
		l.Lock(c)
		w.WakeOne(c)
		l.Unlock(c)
	})
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	err = r.A.Start("owner", 1, 1, func(k kernel.Thread) {
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
	if err := r.E.Run(sim.Second); err != nil {
		t.Fatal(err)
	}
	r.E.Close()
	if events != 3 || taken != 12 || r.A.Arms != 3 {
		t.Errorf("%d events, %d completions, %d arms", events, taken, r.A.Arms)
	}
}

// DIM raises the moderation of a CQ with many completions, which lowers its interrupts, and loses
// none.
func TestModeration(t *testing.T) {
	var msis [2]uint64
	for i := range msis {
		r, n := oracle.NewRig(rule.Broken{}, 2, false), 0
		var q kernel.CQ
		q = r.Alloc(kernel.CQAttr{Poll: kernel.Softirq, Moderate: i == 1, Done: func(_ kernel.Context, wc *kernel.WC) {
			if n++; n < 20_000 {
				q.Arrive(max(3, 60-time.Duration(n)/300)*time.Microsecond, wc.ID) // ever more, or DIM would stay where it is
			}
		}})
		for j := range 40 {
			q.Arrive(oracle.BurstAt+time.Duration(j)*130, uint64(j))
		}
		if wrong := r.Run(sim.Second); len(wrong) > 0 {
			t.Fatal(wrong)
		}
		r.E.Close()
		if n < 20_000 {
			t.Errorf("moderated %v: %d completions", i == 1, n)
		}
		if msis[i] = r.A.MSIs; (r.A.ModifyCQs > 0) != (i == 1) {
			t.Errorf("moderated %v: %d changes", i == 1, r.A.ModifyCQs)
		}
	}
	if msis[1] == 0 || msis[1] >= msis[0] {
		t.Errorf("%d interrupts with DIM, %d without", msis[1], msis[0])
	}
}

// The same events in lockstep give the same counts.
func TestLockstep(t *testing.T) {
	var got [2]string
	for i := range got {
		r, s := oracle.NewRig(rule.Broken{}, 4, false), &oracle.Seen{}
		if i == 1 {
			r = oracle.NewLockstepRig(4)
		}
		for v := range 4 {
			q := r.Alloc(kernel.CQAttr{Vector: v, Poll: kernel.PollContext(1 + v), Done: s.Handler(700)})
			for j := range 200 {
				q.Arrive(time.Duration(j)*900, uint64(j))
			}
		}
		if wrong := r.Run(sim.Second); len(wrong) > 0 {
			t.Fatal(wrong)
		}
		r.E.Close()
		got[i] = fmt.Sprint(r.M.Counts, r.A.Counts, s.Handled, s.Last, r.M.CPU(0).Busy, r.M.CPU(1).Busy)
	}
	if got[0] != got[1] {
		t.Errorf("%s\nin lockstep:\n%s", got[0], got[1])
	}
}
