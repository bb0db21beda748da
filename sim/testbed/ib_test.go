package testbed

import (
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// incast has n hosts write to one more, and returns when each was done.
func incast(t *testing.T, c Config, n int) (done []time.Duration, tb *Testbed) {
	c.Hosts, c.Switched = nil, true
	for i := range n + 1 {
		c.Hosts = append(c.Hosts, HostConfig{Name: "host" + string(rune('0'+i)), Cores: 8, Memory: 1 << 30, Devices: 1})
	}
	const size, count, start = 4096, 200, 50 * time.Millisecond
	tb = run(t, c, func(x *rig) {
		sink := x.bed.Hosts()[n]
		sp, err := sink.NewProcess(x.t, nil)
		x.ok("process", err)
		for i := range n {
			p := x.t.Process()
			if i > 0 {
				p, err = x.bed.Hosts()[i].NewProcess(x.t, nil)
				x.ok("process", err)
			}
			var a, b *node
			x.t.Join(p.Start(x.t, "near", -1, func(t verbs.Thread) { a = x.node(t, size) }))
			x.t.Join(sp.Start(x.t, "far", -1, func(t verbs.Thread) {
				b = x.node(t, size)
				x.connect(t, b.qp, b.gid, a.gid, a.qp.QPN(), verbs.MTU4096)
			}))
			p.Start(x.t, "writer", -1, func(t verbs.Thread) {
				x.connect(t, a.qp, a.gid, b.gid, b.qp.QPN(), verbs.MTU4096)
				t.Sleep(start - t.Now()) // all at once
				x.stream(t, []flow{a.writes(b, size)}, 0, count, 50)
				done = append(done, t.Now())
			})
		}
		for len(done) < n {
			x.t.Sleep(time.Microsecond)
		}
	})
	return done, tb
}

// Three hosts that write to one are held back by credits: nothing is lost or sent again.
func TestIBIncast(t *testing.T) {
	done, tb := incast(t, config(t, infiniBand), 3)
	if len(done) != 3 {
		t.Fatalf("%d writers ended", len(done))
	}
	again, _ := incast(t, config(t, infiniBand, lockstep), 3)
	for i := range done {
		if again[i] != done[i] {
			t.Errorf("writer %d ended at %v, in lockstep at %v", i, done[i], again[i])
		}
	}
	stalls := uint64(0)
	for _, r := range tb.Counters() {
		switch {
		case r.Name == "sim_credit_stalls":
			stalls += r.Value
		case r.Name == "port_xmit_discards", strings.HasSuffix(r.Name, "lost") && strings.HasSuffix(r.Unit, "/port"):
			if r.Value != 0 {
				t.Errorf("%s of %s is %d", r.Name, r.Unit, r.Value)
			}
		}
	}
	if stalls == 0 {
		t.Error("no sender waited for credits")
	}
}
