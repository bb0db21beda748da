package calibrate

import (
	"flag"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
)

var (
	longerChecks = flag.String("validate.longer", "3,7,18,29", "numbers of the checks that TestFiguresInLongerWindows runs again; all: each")
	longerTimes  = flag.Int64("validate.times", 3, "how much longer the windows are")
)

// steadyRate is the change of a rate, as a share of it, that needs no remark.
const steadyRate = 0.05

// runOf runs a scenario with its own profile.
func runOf(t *testing.T, s *experiment.Scenario) *experiment.Outcome {
	t.Helper()
	p, err := s.LoadProfile()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Run(t.Context(), 1, p)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// longer is the scenario with windows that are times as long. ok: it has some.
func longer(s *experiment.Scenario, times int64) (ok bool) {
	s.Traffic = slices.Clone(s.Traffic)
	for i := range s.Traffic {
		t := &s.Traffic[i]
		switch {
		case t.Messages > 0 && t.Duration > 0:
			return false // whichever ends first
		case t.Messages > 0:
			continue
		case t.Duration == 0:
			t.Duration = int64(200 * 1000 * 1000)
		}
		t.Duration *= times
		ok = true
	}
	return ok
}

// aRate is a metric that does not depend on how long it is measured.
var aRate = regexp.MustCompile(`_mps$|(^|\.)gbps$|_us$|_ns$`)

// valueOf is a figure of the runs with window i, were each count so many times what it is; ok is
// false if there is no such run. A figure that is the same with twice the counts, as a share of
// look-ups that miss is, does not depend on how long it is measured.
func valueOf(value string, outs map[string][2]*experiment.Outcome, i int, counts float64) (v float64, ok bool, err error) {
	ok = true
	v, err = Eval(value, func(run, metric string) (float64, error) {
		if outs[run][i] == nil {
			ok = false
			return 1, nil
		}
		v, _, err := outs[run][i].Metric(metric)
		if !aRate.MatchString(metric) {
			v *= counts
		}
		return v, err
	})
	return v, ok, err
}

// TestFiguresInLongerWindows: a figure of validate is what it is in a longer window.
func TestFiguresInLongerWindows(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	all, err := loadValidations(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, v := range all {
		if number := strconv.Itoa(v.Check); v.NotModelled != "" || *longerChecks != "all" && !slices.Contains(strings.Split(*longerChecks, ","), number) {
			continue
		}
		outs := map[string][2]*experiment.Outcome{}
		for _, name := range keysOf(v.Runs) {
			var o [2]*experiment.Outcome
			for i, times := range []int64{1, *longerTimes} {
				s, err := v.run(name)
				if err != nil {
					t.Fatal(err)
				}
				if !longer(s, times) {
					break
				}
				o[i] = runOf(t, s)
			}
			outs[name] = o
		}
		for _, f := range v.Figures {
			var got [2]float64
			comparable := true
			for i := range got {
				v, once, err := valueOf(f.Value, outs, i, 1)
				if comparable = comparable && once; !comparable {
					break
				}
				twice, _, _ := valueOf(f.Value, outs, i, 2)
				if err != nil {
					t.Fatal(err)
				}
				got[i] = v
				comparable = math.Abs(twice-v) <= 1e-9*math.Abs(v)
			}
			if !comparable {
				continue
			}
			compared++
			t.Logf("figure %s: %.4g %s, and %.4g in windows %d times as long", f.ID, got[0], f.Unit, got[1], *longerTimes)
			// A difference of two rates may be nothing, whose parts of a hundred say nothing.
			if _, absolute := strconv.ParseFloat(f.Tolerance, 64); math.Abs(got[1]-got[0]) > steadyRate*math.Abs(got[0]) && (absolute != nil || !within(got[1], got[0], f.Tolerance)) {
				t.Errorf("figure %s: %.4g %s, and %.4g in windows %d times as long", f.ID, got[0], f.Unit, got[1], *longerTimes)
			}
		}
	}
	if compared == 0 {
		t.Error("no figure was compared")
	}
}
