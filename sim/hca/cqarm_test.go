package hca

import (
	"fmt"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// What an arm reports of completions that are there depends on the rule: what no event has
// announced, or all that was not polled. What comes later is reported by both.
func TestArmLooksBack(t *testing.T) {
	for _, x := range []struct {
		name        string
		before      int // completions before the first arm, which reports them
		polledFirst int // of those, polled before the second arm
		between     int // completions after the event and before the second arm
		polled      int // of all, polled before the second arm too
		solicited   bool
		want        [2]int // events of the second arm, by rule
		later       [2]int // and of a completion after it
	}{
		{name: "all polled", before: 3, polledFirst: 3, later: [2]int{1, 1}},
		{name: "a part polled", before: 3, polledFirst: 1, want: [2]int{0, 1}, later: [2]int{1, 0}},
		{name: "none polled", before: 3, want: [2]int{0, 1}, later: [2]int{1, 0}},
		{name: "new ones, none polled", before: 3, between: 2, want: [2]int{1, 1}},
		{name: "new ones, the announced polled", before: 3, polledFirst: 3, between: 2, want: [2]int{1, 1}},
		{name: "new ones, all polled", before: 3, between: 2, polled: 5, later: [2]int{1, 1}},
		{name: "unsolicited", before: 3, polledFirst: 1, between: 1, solicited: true},
	} {
		for rule, word := range []string{ArmUnannounced: "unannounced", ArmUnpolled: "unpolled"} {
			t.Run(fmt.Sprintf("%s/%s", x.name, word), func(t *testing.T) {
				p := testParams()
				p.CQArm = CQArm(rule)
				h := newHost(t, sim.New(sim.Options{}), p, 1)
				cq := h.newCQ(4, 64)
				a, b := h.newQP(cq, cq), h.newQP(h.newCQ(4, 64), h.newCQ(4, 64))
				a.connect(b, defaults())
				b.connect(a, defaults())
				expect := func(when string, want int) {
					t.Helper()
					run(t, h.e, 20*sim.Microsecond)
					n := 0
					for h.nextEQE(h.ceq) != nil {
						n++
					}
					h.armEQ(h.ceq, h.eqn)
					if n != want {
						t.Fatalf("%s: %d events, want %d", when, n, want)
					}
				}
				post := func(n int) {
					for range n {
						a.post(wr{op: prm.WQEOpNOP})
					}
				}
				post(x.before)
				expect("before the first arm", 0)
				cq.arm(false)
				expect("first arm", 1)
				cq.sn++
				for range x.polledFirst {
					cq.poll()
				}
				post(x.between)
				expect("not armed", 0)
				for range x.polled {
					cq.poll()
				}
				cq.arm(x.solicited)
				expect("second arm", x.want[rule])
				post(1)
				expect("a completion after it", x.later[rule])
			})
		}
	}
}
