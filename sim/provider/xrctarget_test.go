package provider

import "testing"

// Places of target QPs come back, whichever was given back, and each names the QP that has it now.
func TestTargetCookies(t *testing.T) {
	c := &Context{}
	var all [4]*TargetQP
	take := func(i int) {
		all[i] = &TargetQP{ctx: c}
		all[i].cookie = targetCookie | uint64(c.targets.take(all[i]))
	}
	for i := range all {
		take(i)
	}
	for round := range 100 {
		old := [2]*TargetQP{all[round%4], all[(round+2)%4]}
		for _, q := range old {
			q.release()
			if c.qpOf(q.cookie) != nil {
				t.Fatalf("round %d: cookie %#x names a QP that is gone", round, q.cookie)
			}
		}
		take(round % 4)
		take((round + 2) % 4)
		for _, q := range all {
			if c.qpOf(q.cookie) != q {
				t.Fatalf("round %d: cookie %#x names another QP", round, q.cookie)
			}
		}
	}
	if len(c.targets.all) != len(all) || len(c.targets.free) != 0 {
		t.Errorf("%d places for %d QPs, %d free", len(c.targets.all), len(all), len(c.targets.free))
	}
}
