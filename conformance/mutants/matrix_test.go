package mutants

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/sim/mutant"
)

func testItems(t *testing.T) []conformance.Item {
	t.Helper()
	items, err := conformance.Items(testMutants(""))
	if err != nil {
		t.Fatal(err)
	}
	return items
}

// All that is wanted runs, and all kills count.
func TestMatrixCountsKills(t *testing.T) {
	h := testHunt(t, DefaultWall)
	h.wanted = func(_ mutant.Mutant, id string) bool { return id != "CQ-002" }
	m := mutant.Mutant{Name: "dies elsewhere", Area: "DEV"}
	fates, err := h.run(context.Background(), []mutant.Mutant{m}, 1, func(fate) {})
	if f := fates[0]; err != nil || f.outcome != Killed || !slices.Equal(f.kills, []string{"CQ-001"}) || len(f.tried) != 5 || f.tried["CQ-002"] {
		t.Errorf("%+v, %v", fates, err)
	}
}

// A mutant that none of a part of its pairs kills meets the other cases as well, and one that a
// pair kills does not.
func TestPartOfTheMatrixHuntsOn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	h := testHunt(t, DefaultWall)
	h.wanted, h.all = func(_ mutant.Mutant, id string) bool { return id == "CQ-001" }, true
	mutants := []mutant.Mutant{{Name: "dies at once", Area: "CQ"}, {Name: "dies elsewhere", Area: "DEV"}, {Name: "survives", Area: "DEV"}}
	fates, err := h.run(context.Background(), mutants, 1, func(fate) {})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s %s %d %s %d", fates[0].kills, fates[1].kills, len(fates[1].tried), fates[2].outcome, len(fates[2].tried))
	if want := "[CQ-002] [CQ-001] 1 survived 6"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A case that the usual profile lacks something for runs where it can, and a mutant of another
// profile there.
func TestCasesRunWhereTheyCan(t *testing.T) {
	h := &hunt{elsewhere: func(id string) string { return map[string]string{"IB-001": "ib", "IB-002": "ib"}[id] }}
	for _, tt := range []struct{ own, ids, profile, some string }{
		{"", "RC-001 IB-001 RC-002", "", "RC-001 RC-002"}, {"", "IB-001 RC-001 IB-002", "ib", "IB-001 IB-002"}, {"cx6", "IB-001 RC-001", "cx6", "IB-001 RC-001"},
	} {
		m, some := h.onOneProfile(mutant.Mutant{Name: "m", Profile: tt.own}, strings.Fields(tt.ids))
		if m.Profile != tt.profile || strings.Join(some, " ") != tt.some {
			t.Errorf("%s: %q on %q, want %q on %q", tt.ids, some, m.Profile, tt.some, tt.profile)
		}
	}
}

// What a run has found replaces what a matrix said of its pairs and of no others; what nobody tried
// is named.
func TestMatrixKeepsWhatDidNotRun(t *testing.T) {
	items := testItems(t)
	mutants := []mutant.Mutant{{Name: "a"}, {Name: "b"}}
	m := &Matrix{Schema: matrixSchema, Cases: []string{"DEV-001", "CQ-001", "CQ-999"}, Mutants: []MatrixRow{
		{Name: "a", Kills: []string{"DEV-001", "CQ-999"}, Crashes: []string{"CQ-001"}}, {Name: "gone", Kills: []string{"DEV-001"}}}}
	m.merge(mutants, items, map[string]*fate{"a": {tried: map[string]bool{"DEV-001": true, "DEV-002": true}, kills: []string{"DEV-002"}}})
	a, b := m.row("a"), m.row("b")
	if m.row("gone") != nil || slices.Contains(m.Cases, "CQ-999") || len(m.Cases) != len(items) {
		t.Errorf("what is gone is still there: %+v", m)
	}
	if !slices.Equal(a.Kills, []string{"DEV-002"}) || !slices.Equal(a.Crashes, []string{"CQ-001"}) || !slices.Equal(a.Untried, []string{"DEV-003", "DEV-004", "CQ-002"}) {
		t.Errorf("a: %+v", a)
	}
	if len(b.Untried) != len(items) || m.tried("b", "DEV-001") || !m.tried("a", "CQ-001") || m.tried("a", "CQ-002") {
		t.Errorf("b: %+v", b)
	}
	var text bytes.Buffer
	if err := m.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	again, err := parseMatrix("x.json", text.Bytes())
	if err != nil || fmt.Sprint(again) != fmt.Sprint(m) {
		t.Errorf("%v, %v; want %v", again, err, m)
	}
}

func TestMatrixThatIsNone(t *testing.T) {
	for text, want := range map[string]string{"": "it is empty", "{}": `schema "": want`, `{"pears": 1}`: `unknown field "pears"`, `{"schema": `: "it ends in the middle"} {
		if _, err := parseMatrix("x.json", []byte(text)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "move x.json away") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A part of the matrix is a tenth of its kills and always the same, fewer of what takes long; it
// has a proof of each row that must kill, and notices when one no longer does. What kills nothing
// proves nothing.
func TestSampleOfTheMatrix(t *testing.T) {
	items := testItems(t)
	var mutants []mutant.Mutant
	known := &Matrix{}
	for i := range 2000 {
		m := mutant.Mutant{Name: fmt.Sprintf("m%d", i)}
		mutants = append(mutants, m)
		known.Mutants = append(known.Mutants, MatrixRow{Name: m.Name, Kills: []string{"DEV-001", "DEV-002"}})
	}
	known.Mutants[7].Kills, known.Mutants[8].Kills = []string{"CQ-001"}, []string{"CQ-001", "CQ-002"}
	mutants[8].Killers = []string{"CQ-001"}
	s := newSample(10, known, &rows{Long: []string{"DEV-002"}}, items, mutants)
	count := map[string]int{}
	for _, m := range mutants {
		for _, i := range items {
			if s.has(m, i.Entry.ID) {
				count[i.Entry.ID]++
			}
		}
	}
	if n := count["DEV-001"]; n < 160 || n > 240 {
		t.Errorf("%d of 2000 kills of DEV-001, want a tenth", n)
	}
	if n := count["DEV-002"]; n < 5 || n > 40 {
		t.Errorf("%d of 2000 kills of DEV-002, which takes long, want a hundredth", n)
	}
	if n := count["DEV-003"]; n != 0 {
		t.Errorf("%d pairs of DEV-003, which kills nothing", n)
	}
	if !s.has(mutants[8], "CQ-001") || !s.has(mutants[8], "CQ-002") {
		t.Errorf("the proofs are %v", s.proofs)
	}
	weak := map[string]*fate{"m8": {tried: map[string]bool{"CQ-001": true, "CQ-002": true, "DEV-001": true}, kills: []string{"CQ-002"}}}
	if got := s.judge(weak); len(got) != 1 || !strings.Contains(got[0], "CQ-001 does not kill m8 any more") {
		t.Errorf("findings %q", got)
	}
}

// A row that must kill, and kills none, says why; what says so of another row is stale.
func TestIdleRowsAreExplained(t *testing.T) {
	items := testItems(t)
	r := &Report{Mutants: []Result{{Cases: []string{"DEV-001", "CQ-002"}}}}
	idle := idleCases(items, r)
	if slices.Contains(idle, "DEV-001") || slices.Contains(idle, "CQ-002") || !slices.Contains(idle, "CQ-001") {
		t.Errorf("idle: %q", idle)
	}
	all := &rows{}
	for _, id := range idle {
		all.Idle = append(all.Idle, idleRow{id, "because"})
	}
	if got := all.judge(items, idle); len(got) != 0 {
		t.Errorf("findings %q", got)
	}
	for _, tt := range []struct {
		rows rows
		want string
	}{
		{rows{Idle: all.Idle[1:]}, idle[0] + " kills no mutant"},
		{rows{Idle: append(slices.Clone(all.Idle), idleRow{"CQ-002", "because"})}, "explains why CQ-002 kills no mutant"},
		{rows{Idle: all.Idle, Long: []string{"CQ-999"}}, "names CQ-999, which is not a case"},
	} {
		if got := tt.rows.judge(items, idle); len(got) != 1 || !strings.Contains(got[0], tt.want) {
			t.Errorf("findings %q, want %q", got, tt.want)
		}
	}
	if _, err := parseRows("x.yaml", []byte("idle:\n  - id: CQ-001\n")); err == nil || !strings.Contains(err.Error(), "x.yaml:2") {
		t.Errorf("a row without a reason: %v", err)
	}
}

// The committed matrix knows every mutant and case, and by it every row of strength E or S kills a
// mutant or says why not. Rows that kill none have met all mutants, but for those that take long.
func TestEveryRowKillsAMutant(t *testing.T) {
	_, known, rows, items := committed(t)
	var unknown []string
	for _, m := range ofCases(mutant.All()) {
		r := known.row(m.Name)
		if r == nil || slices.ContainsFunc(known.idle(items), func(id string) bool {
			return slices.Contains(r.Untried, id) && rows.reason(id) != "" && !slices.Contains(rows.Long, id)
		}) {
			unknown = append(unknown, m.Name)
		}
	}
	for _, i := range items {
		if !slices.Contains(known.Cases, i.Entry.ID) {
			unknown = append(unknown, i.Entry.ID)
		}
	}
	if len(unknown) > 0 {
		t.Fatalf("fixtures/%s does not know all pairs of %s ... (%d)\nmake build && bin/conform mutants --matrix --untried --update fixtures/%s",
			matrixFile, strings.Join(unknown[:min(8, len(unknown))], ", "), len(unknown), matrixFile)
	}
	for _, f := range rows.judge(items, known.idle(items)) {
		t.Error(f)
	}
}

// committed is what the page about mutants is made from.
func committed(t *testing.T) (*Survivors, *Matrix, *rows, []conformance.Item) {
	t.Helper()
	explained, err := ReadSurvivors()
	if err != nil {
		t.Fatal(err)
	}
	known, err := ReadMatrix()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readRows()
	if err != nil {
		t.Fatal(err)
	}
	items, err := conformance.Items(conformance.Suite())
	if err != nil {
		t.Fatal(err)
	}
	return explained, known, rows, items
}

// What an interrupted run has seen is kept, and what another run has put into the file meanwhile.
func TestMatrixOfTwoRunsAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "matrix.json")
	all := ofCases(mutant.All())
	seen := func(n int, kills string) {
		h := &Hunt{hunt: &hunt{items: testItems(t)}, cfg: &Config{Profile: "connectx-5", Seed: 1, Update: file}}
		fates := make([]fate, 2)
		fates[0] = fate{judged: true, tried: map[string]bool{"DEV-001": true, "CQ-001": true}, kills: []string{kills}}
		fates[1] = fate{tried: map[string]bool{"DEV-001": true}} // of a mutant that was interrupted
		m, err := (&Outcome{hunt: h, ran: judged(all[n:n+2], fates)}).Matrix(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := errors.Join(m.WriteJSON(&b), os.WriteFile(file, b.Bytes(), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	seen(0, "DEV-001")
	seen(1, "CQ-001")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := parseMatrix(file, text)
	if err != nil {
		t.Fatal(err)
	}
	if !m.kills(all[0].Name, "DEV-001") || !m.kills(all[1].Name, "CQ-001") || m.tried(all[2].Name, "DEV-001") || m.tried(all[1].Name, "DEV-002") {
		t.Errorf("%+v\n%+v\n%+v", m.Mutants[0], m.Mutants[1], m.Mutants[2])
	}
}
