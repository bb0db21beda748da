package wirerule

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/verbs"
)

func TestActionsThereAndBack(t *testing.T) {
	for a := verbs.WirePass; a <= verbs.WireSpoil; a++ {
		r, err := Of(verbs.WireRule{Action: a})
		if err != nil || Acted(r.Action) != a {
			t.Errorf("action %d: %v, told as %d, %v", a, r.Action, Acted(r.Action), err)
		}
	}
	if _, err := Of(verbs.WireRule{Action: verbs.WireSpoil + 1}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("an unknown action: %v", err)
	}
}

func TestFields(t *testing.T) {
	got, err := Of(verbs.WireRule{Match: verbs.WireMatchPSN | verbs.WireMatchIteration, PSN: 5, Iteration: 2, Skip: 1, Count: 3, PerMillion: 7,
		Action: verbs.WireDelay, Delay: time.Microsecond, Edits: []verbs.ByteEdit{{Offset: 1}}, Keep: 9})
	want := fault.Rule{Match: fault.MatchPSN | fault.MatchIteration, PSN: 5, Iteration: 2, Skip: 1, Count: 3, Chance: 7,
		Action: fault.Delay, Delay: 1_000_000}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}
