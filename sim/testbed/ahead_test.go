package testbed

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/verbs"
)

// inBothModes runs a body that takes notes, in lockstep and ahead, and compares these.
func inBothModes(t *testing.T, deadline time.Duration, want error, body func(b *Testbed, t verbs.Thread, note func(string))) {
	t.Helper()
	var notes [2][]string
	for i, set := range []func(*Config){lockstep, func(*Config) {}} {
		b, err := New(config(t, set))
		if err != nil {
			t.Fatal(err)
		}
		err = b.Run(deadline, func(t verbs.Thread) {
			body(b, t, func(s string) { notes[i] = append(notes[i], fmt.Sprint(b.eng.Current().Now(), " ", s)) })
		})
		if !errors.Is(err, want) {
			t.Errorf("run: %v, want %v", err, want)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		slices.Sort(notes[i]) // threads note private work out of order
	}
	if len(notes[0]) == 0 || !slices.Equal(notes[0], notes[1]) {
		t.Errorf("in lockstep:\n%q\nahead:\n%q", notes[0], notes[1])
	}
}

// A thread that the library ends takes its process with it when its clock has come to that, and
// not before: what the others did until then they did.
func TestAbortAhead(t *testing.T) {
	inBothModes(t, 0, nil, func(b *Testbed, t verbs.Thread, note func(string)) {
		other, err := b.Hosts()[0].NewProcess(t, nil)
		if err != nil {
			panic(err)
		}
		last := t.Process().Start(t, "last", 1, func(t verbs.Thread) { t.Sleep(100) })
		waits := other.Start(t, "waits", 2, func(t verbs.Thread) {
			t.Join(last)
			note("joined")
		})
		other.Start(t, "aborts", 3, func(t verbs.Thread) {
			t.Sleep(50)
			t.Work(200)
			t.Work(200)
			panic(provider.Abort{Text: "as the library does"})
		})
		t.Join(waits)
		note("the end")
	})
}

// A thread is not ahead of the deadline of a run.
func TestDeadlineAhead(t *testing.T) {
	inBothModes(t, 10*time.Microsecond, ErrDeadline, func(_ *Testbed, t verbs.Thread, note func(string)) {
		for {
			t.Work(300)
			note("worked")
		}
	})
}
