package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/fake"
	"github.com/rdmasim/rdmasim/conformance/harness"
	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/sim/mutant"
)

// testMutants is a suite on mutants that end in every way. Its cases run in workers.
func testMutants(name string) *spec.Suite {
	s := &spec.Suite{}
	on := func(c *spec.C, mutants ...string) bool {
		for _, m := range mutants {
			if m == name {
				return true
			}
		}
		return false
	}
	s.Case("DEV-001", func(c *spec.C) {
		c.Failf("it fails without any mutant too")
	})
	s.Case("DEV-002", func(c *spec.C) {
		c.Observe("seen before", 1)
		if on(c, "panics") {
			panic("in the device")
		}
		if on(c, "panics and is killed") {
			go func() { panic("elsewhere") }()
			time.Sleep(time.Hour)
		}
	})
	s.Case("DEV-003", func(c *spec.C) {
		if on(c, "hangs") {
			time.Sleep(time.Hour)
		}
	})
	s.Case("DEV-004", func(c *spec.C) {
		if on(c, "judged by the wire") {
			c.True(kit.OracleStep+"RQ-01", false, "the oracle: a frame too many")
		}
		if on(c, "without a whole capture") {
			c.Integrityf("frames are missing")
		}
	})
	s.Case("CQ-001", func(c *spec.C) {
		c.Equal("entries", on(c, "dies elsewhere", "panics and is killed"), false)
	})
	s.Case("CQ-002", func(c *spec.C) {
		c.True("the likely one", !on(c, "dies at once"), "it is dead")
	})
	return s
}

func workOnTestMutants() int {
	var name string
	targets := func(job harness.Job) (spec.Target, error) {
		name = job.Mutant
		return fake.Target{}, nil
	}
	// The bodies ask for the mutant when they run, which is after the job was read.
	s := &spec.Suite{}
	for i, c := range testMutants("").Cases() {
		s.Case(c.ID, func(c *spec.C) { testMutants(name).Cases()[i].Body(c) })
	}
	if err := harness.Work(os.Stdin, targets, s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func testHunt(t *testing.T, wall time.Duration) *hunt {
	t.Helper()
	t.Setenv("CONFORM_TEST_MUTANTS", "1")
	items, err := conformance.Items(testMutants(""))
	if err != nil {
		t.Fatal(err)
	}
	c := &Config{Program: os.Args[0], Profile: "none", Seed: 1, Wall: wall, Stderr: os.Stderr}
	return &hunt{items: items, attack: c.attack(nil), explained: func(string) bool { return false }}
}

// A mutant is killed by an assertion and by nothing else, in whatever way its cases end,
// and none of them ends the run.
func TestEveryMutantHasItsFate(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	tests := []struct {
		m                 mutant.Mutant
		outcome, id, step string
		reason            string
	}{
		{mutant.Mutant{Name: "dies at once", Area: "DEV", Killers: []string{"CQ-002"}}, Killed, "CQ-002", "the likely one", ""},
		{mutant.Mutant{Name: "dies elsewhere", Area: "DEV"}, Killed, "CQ-001", "entries", ""},
		{mutant.Mutant{Name: "survives", Area: "DEV"}, Survived, "", "", ""},
		{mutant.Mutant{Name: "panics", Area: "CQ"}, Failed, "", "", "DEV-002: panic: in the device"},
		{mutant.Mutant{Name: "panics and is killed", Area: "DEV"}, Killed, "CQ-001", "entries", ""},
		{mutant.Mutant{Name: "judged by the wire", Area: "DEV"}, Survived, "", "", ""},
		{mutant.Mutant{Name: "without a whole capture", Area: "DEV"}, Survived, "", "", ""},
	}
	var mutants []mutant.Mutant
	for _, tt := range tests {
		mutants = append(mutants, tt.m)
	}
	var reports [2]bytes.Buffer
	for i := range reports {
		fates, err := testHunt(t, DefaultWall).run(context.Background(), mutants, 1+2*i, func(fate) {})
		if err != nil {
			t.Fatal(err)
		}
		r := newReport(&Config{}, mutants, fates, false)
		if err := r.WriteJSON(&reports[i]); err != nil {
			t.Fatal(err)
		}
		for k, tt := range tests {
			got := r.Mutants[k]
			if got.Outcome != tt.outcome || got.Case != tt.id || got.Step != tt.step || !strings.HasPrefix(got.Reason, tt.reason) {
				t.Errorf("%s: %+v; want %s by %q at %q (%s)", tt.m.Name, got, tt.outcome, tt.id, tt.step, tt.reason)
			}
		}
	}
	if !bytes.Equal(reports[0].Bytes(), reports[1].Bytes()) {
		t.Errorf("equal runs gave\n%s\nand\n%s", &reports[0], &reports[1])
	}
}

// A case that hangs in real time is an error of the mutant. On a busy machine the worker itself
// may need longer than a short limit, so it is raised until the worker has come to the case.
func TestMutantThatHangs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for wall := time.Second; ; wall *= 4 {
		fates, err := testHunt(t, wall).run(context.Background(), []mutant.Mutant{{Name: "hangs", Area: "DEV"}}, 1, func(fate) {})
		if err == nil && fates[0].outcome == Failed && strings.HasPrefix(fates[0].reason, "DEV-003: killed: it hung") {
			return
		}
		if wall > 5*time.Minute {
			t.Fatalf("fate %+v, %v", fates, err)
		}
	}
}

// The cases that are likely to kill come before all that may crash.
func TestLikelyCasesComeFirst(t *testing.T) {
	likely, area, rest := testHunt(t, DefaultWall).sorted(mutant.Mutant{Area: "DEV", Killers: []string{"CQ-002"}})
	if !slices.Equal(likely, []string{"CQ-002"}) || len(area) != 4 || !slices.Equal(rest, []string{"CQ-001"}) {
		t.Errorf("%q, %q, %q", likely, area, rest)
	}
}

// An interrupted run says what it knows.
func TestInterruptedHunt(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	mutants := []mutant.Mutant{{Name: "dies at once", Area: "CQ"}, {Name: "survives", Area: "DEV"}}
	fates, err := testHunt(t, DefaultWall).run(ctx, mutants, 1, func(fate) { cancel() })
	if err != nil {
		t.Fatal(err)
	}
	r := newReport(&Config{}, mutants, fates, ctx.Err() != nil)
	if !r.Incomplete || len(r.Mutants) != 1 || r.Mutants[0].Outcome != Killed {
		t.Errorf("report %+v", r)
	}
	if f := (&Survivors{[]Survivor{{"nobody", "because"}}}).judge(r, true); len(f) != 0 {
		t.Errorf("findings of an interrupted run: %q", f)
	}
}

func TestSurvivorsAreExplained(t *testing.T) {
	r := &Report{Mutants: []Result{
		{Name: "a", Outcome: Killed, Case: "CQ-001"}, {Name: "b", Outcome: Survived}, {Name: "c", Outcome: Failed, Reason: "CQ-002: panic"},
	}}
	tests := map[string]struct {
		list string
		all  bool
		want []string
	}{
		"nothing is explained": {"", true, []string{"b survives", "c is killed by no assertion"}},
		"all is":               {"b c", true, nil},
		"a stale one":          {"a b c", true, []string{"a is killed by CQ-001: remove it"}},
		"an unknown one":       {"b c d", true, []string{"explains d, and there is no such mutant"}},
		"not in a part":        {"b c d", false, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &Survivors{}
			for _, n := range strings.Fields(tt.list) {
				s.Survivors = append(s.Survivors, Survivor{n, "because"})
			}
			got := s.judge(r, tt.all)
			if len(got) != len(tt.want) {
				t.Fatalf("findings %q, want %q", got, tt.want)
			}
			for i, w := range tt.want {
				if !strings.Contains(got[i], w) {
					t.Errorf("finding %q, want %q", got[i], w)
				}
			}
		})
	}
	if _, err := parseSurvivors("x.yaml", []byte("survivors:\n  - name: a\n")); err == nil || !strings.Contains(err.Error(), "x.yaml:2") {
		t.Errorf("a survivor without a reason: %v", err)
	}
	if _, err := ReadSurvivors(); err != nil {
		t.Error(err)
	}
}

// Every mutant has a name, a rule, an area and killers that the catalogue and the suite
// know.
func TestMutantsAreWellNamed(t *testing.T) {
	cat, err := conformance.LoadCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	_, _, _, items := committed(t)
	areas, names := map[string]bool{}, map[string]bool{}
	for _, a := range cat.Areas {
		areas[a.Area] = true
	}
	areas[mutant.CompletionArea] = true
	for _, m := range mutant.All() {
		if names[m.Name] || !areas[m.Area] || m.Rule == "" || strings.HasSuffix(m.Rule, ".") || strings.HasPrefix(m.Rule, "Rule(") {
			t.Errorf("mutant %+v: twice, or without an area of the catalogue or a rule", m)
		}
		names[m.Name] = true
		if m.Counted() { // TestEveryAreaHasMutants looks at their probes
			continue
		}
		for _, id := range m.Killers {
			if !slices.ContainsFunc(items, func(i conformance.Item) bool { return i.Entry.ID == id }) {
				t.Errorf("mutant %s: killer %s has no code", m.Name, id)
			}
		}
	}
	if len(names) < 30 {
		t.Errorf("%d mutants", len(names))
	}
}

func TestPickMutants(t *testing.T) {
	all := []mutant.Mutant{{Name: "a-b", Area: "RC"}, {Name: "a-c", Area: "MR"}, {Name: "d", Area: "MR"}}
	for filter, want := range map[string]string{"": "a-b a-c d", "rc": "a-b", "a-*": "a-b a-c", "d,RC": "a-b d"} {
		var words []string
		if filter != "" {
			words = strings.Split(filter, ",")
		}
		picked, err := Pick(all, words)
		var names []string
		for _, m := range picked {
			names = append(names, m.Name)
		}
		if err != nil || strings.Join(names, " ") != want {
			t.Errorf("--filter %q: %q, %v; want %s", filter, names, err, want)
		}
	}
}

func TestReportOfMutantsIsAnObject(t *testing.T) {
	var b bytes.Buffer
	r := newReport(&Config{Identity: "p", Seed: 3}, []mutant.Mutant{{Name: "n", Area: "A", Rule: "R < S"}},
		[]fate{{outcome: Killed, judged: true, kill: report.Case{ID: "CQ-001", Reason: "x: no", Observations: []report.Observation{{Step: "x"}}}}}, false)
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Mutants []map[string]string `json:"mutants"`
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"name": "n", "area": "A", "rule": "R < S", "outcome": "killed", "case": "CQ-001", "step": "x"}
	if fmt.Sprint(got.Mutants[0]) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got.Mutants[0], want)
	}
}
