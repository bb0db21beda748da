package simulator_test

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/conformance/random"
	"github.com/rdmasim/rdmasim/conformance/target/simulator"
	"github.com/rdmasim/rdmasim/sim/mutant"
)

var (
	programs = flag.Int("programs", 150, "how many programs TestTwoProfiles draws")
	first    = flag.Uint64("first", 1, "the seed of its draws")
)

// all is what drawn programs may use.
var all = random.Has{Late: true, Atomic: true, SRQ: true, UC: true, Resize: true, Events: true, Rereg: true, Moderation: true, MW1: true, MW2: true, UD: true, IPv6: true, TD: true, CQEx: true}

func simulated(t *testing.T, cfg simulator.Config) *random.Local {
	t.Helper()
	target, err := simulator.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &random.Local{Target: target, Seed: 1, Text: true}
}

// TestTwoProfiles: what the contract fixes does not depend on the generation of the device. What
// lands before a local error is noticed is unspecified, and differs between devices with
// hca.card_faults and others, so like is compared with like.
func TestTwoProfiles(t *testing.T) {
	for _, pair := range [][2]string{{"connectx-5", "connectx-6dx"}, {"connectx-4", "generic-roce"}} {
		sides := []random.Side{simulated(t, simulator.Config{Profile: pair[0]}), simulated(t, simulator.Config{Profile: pair[1]})}
		f, err := random.Search(sides, all, *programs, *first, time.Minute, nil)
		if err != nil {
			t.Fatal(err)
		}
		if f != nil {
			t.Errorf("%s and %s: %s\n%s\n%s", pair[0], pair[1], &f.Difference, f.Text(), f.Source("random"))
		}
	}
}

// TestProgramsAreIndependent: what a program shows does not depend on those before it on the same
// testbed.
func TestProgramsAreIndependent(t *testing.T) {
	side := simulated(t, simulator.Config{})
	var batch []random.Program
	for i := range uint64(random.Batch) {
		batch = append(batch, random.NewDraw(all).Program(9, i))
	}
	shown := func(list []random.Program) []*random.Outcome {
		t.Helper()
		out, err := side.Run(list)
		if err != nil || len(out) != len(list) {
			t.Fatalf("%d outcomes of %d programs: %v", len(out), len(list), err)
		}
		return out
	}
	together := shown(batch)
	slices.Reverse(batch)
	reversed := shown(batch)
	slices.Reverse(reversed)
	slices.Reverse(batch)
	for i := range batch {
		for how, o := range map[string]*random.Outcome{"behind others": reversed[i], "alone": shown(batch[i : i+1])[0]} {
			if d := random.Compare(together[i], o); d != nil || together[i].Vague != o.Vague || *together[i].Cover != *o.Cover {
				t.Errorf("program %d %s: %v\n%s", i+1, how, d, batch[i].Text())
			}
		}
	}
}

// TestFindsAndShrinks: a device that gives a queue pair a right that it was not given is found, by
// a program of no more than what it takes.
func TestFindsAndShrinks(t *testing.T) {
	m, err := mutant.Find("remote-write-always")
	if err != nil {
		t.Fatal(err)
	}
	broken := simulated(t, simulator.Config{Adjust: m.Break})
	f, err := random.Search([]random.Side{broken}, all, 500, 1, 10*time.Second, nil)
	if err != nil || f == nil {
		t.Fatalf("%v, found %v", err, f)
	}
	t.Logf("after %d programs: %s\n%s", f.Tried, &f.Difference, f.Text())
	p := &f.Programs[len(f.Programs)-1]
	// A write behind a message shows it too: each step ends with an empty write. So does a query of
	// the queue pair.
	last := &p.Steps[len(p.Steps)-1]
	if len(f.Programs) > 1 || len(p.Steps) > 2 || last.Kind != random.StepQuery && len(last.List) != 1 || len(p.Regions) != 1 {
		t.Errorf("%d steps, %d regions: a query, or one write to one region, shows it\n%s", len(p.Steps), len(p.Regions), p.Text())
	}
	if v := f.Difference.Violation; v == nil || !strings.Contains(v.Want, "REM_") && !strings.Contains(v.Want, "access 0") {
		t.Errorf("%s", &f.Difference)
	}
	again, err := random.Parse([]byte(f.Text()))
	if err != nil {
		t.Fatal(err)
	}
	if _, d, err := random.Judge(again, []random.Side{broken}, nil); err != nil || d == nil || d.String() != f.Difference.String() {
		t.Errorf("the program read from its text: %v, %v", d, err)
	}
}
