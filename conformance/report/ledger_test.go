package report

import (
	"strings"
	"testing"
	"time"
)

const ledgerHead = "provider: rxe\ndeviations:\n"

func entry(id, more string) string {
	return "- {id: " + id + ", title: t, evidence: e, owner: o, " + more + "}\n"
}

const fine = `where: {kernel: ">=6.1 <6.13"}, kind: errno, opened: "2026-11-21", review_by: "2027-11-20", predicts: [{case: DEV-006, step: s, got: EIO}]`

func read(t *testing.T, text string) (*Ledger, error) {
	t.Helper()
	l := &Ledger{}
	return l, l.Add("x.yaml", []byte(ledgerHead+text), func(id string) bool { return id == "DEV-006" })
}

func TestLedgerMistakes(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"twice":          {entry("A", fine) + entry("A", fine), "x.yaml:4:"},
		"unknown case":   {entry("A", strings.Replace(fine, "DEV-006", "DEV-899", 1)), `case "DEV-899" is unknown`},
		"everywhere":     {entry("A", strings.Replace(fine, `{kernel: ">=6.1 <6.13"}`, "{}", 1)), "never for all platforms"},
		"unknown key":    {entry("A", strings.Replace(fine, "kernel", "kernal", 1)), `did you mean "kernel"?`},
		"no bound":       {entry("A", strings.Replace(fine, ">=6.1 <6.13", "6.1", 1)), "a bound such as"},
		"kind":           {entry("A", strings.Replace(fine, "kind: errno", "kind: erno", 1)), "errno"},
		"no evidence":    {strings.Replace(entry("A", fine), "evidence: e, ", "", 1), "evidence"},
		"date":           {entry("A", strings.Replace(fine, "2026-11-21", "21.11.2026", 1)), "a date such as"},
		"late review":    {entry("A", strings.Replace(fine, "2027-11-20", "2028-11-20", 1)), "after 366 days"},
		"bug, no link":   {entry("A", strings.NewReplacer("kind: errno", "kind: bug", "2027-11-20", "2027-01-20").Replace(fine)), "a bug needs a link"},
		"no count":       {entry("A", strings.Replace(fine, "{case: DEV-006, step: s,", `{case: "*", field: wc_flags, step: s,`, 1)), "at_most, a number from 1, is needed"},
		"no bound of it": {entry("A", strings.Replace(fine, "got: EIO}", "got: EIO, sometimes: true}", 1)), "at_most, a number from 1, is needed"},
		"a bound of one": {entry("A", strings.Replace(fine, "got: EIO}", "got: EIO, at_most: 2}", 1)), "not allowed otherwise"},
		"unknown field":  {entry("A", fine+", skips: true"), "skips"},
	} {
		if _, err := read(t, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

func TestWhereAnEntryHolds(t *testing.T) {
	l, err := read(t, entry("A", fine))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		provider, kernel string
		want             bool
	}{
		{"rxe", "6.1.0-56-amd64", true}, {"rxe", "6.12.117+deb12-amd64", true}, {"rxe", "6.13.1", false}, {"rxe", "5.19.7", false},
		{"rxe", "", false}, {"mlx5", "6.1.0", false},
	} {
		if got := len(l.Of(Platform{KeyProvider: c.provider, KeyKernel: c.kernel})) == 1; got != c.want {
			t.Errorf("%s %s: holds %v, want %v", c.provider, c.kernel, got, c.want)
		}
	}
	far, err := read(t, entry("B", strings.Replace(fine, `kernel: ">=6.1 <6.13"`, "peer: rxe", 1)))
	if err != nil {
		t.Fatal(err)
	}
	for peer, want := range map[string]bool{"": true, "rxe": true, "mlx5": false} {
		details := map[string]string{KeyProvider: "rxe"}
		if peer != "" {
			details[KeyPeer] = peer
		}
		if got := len(far.Of(PlatformOf("hw-rxe", details))) == 1; got != want {
			t.Errorf("peer %q: holds %v, want %v", peer, got, want)
		}
	}
	p := Platform{KeyProvider: "rxe", KeyKernel: "6.1"}
	day := func(s string) time.Time { d, _ := time.Parse(dateForm, s); return d }
	if late := l.Overdue(p, day("2027-11-20")); len(late) != 0 {
		t.Errorf("on its day: %s", late)
	}
	if late := l.Overdue(p, day("2027-11-22")); len(late) != 1 {
		t.Errorf("after its day: %s", late)
	}
}

func TestAmbiguous(t *testing.T) {
	l, err := read(t, entry("A", fine)+entry("B", strings.Replace(fine, ">=6.1 <6.13", ">=6.10", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Ambiguous(Platform{KeyProvider: "rxe", KeyKernel: "6.12.1"}); err == nil {
		t.Error("two entries for one step of 6.12 are not found")
	}
	if err := l.Ambiguous(Platform{KeyProvider: "rxe", KeyKernel: "6.1.0"}); err != nil {
		t.Errorf("6.1 has only one: %v", err)
	}
	// Of a field of a completion, each value is an entry's own.
	flags := strings.Replace(fine, "predicts: [", `predicts: [{case: "*", step: "*", field: wc_flags, got: "1", at_most: 9}, {case: "*", step: "*", field: wc_flags, got: "3", at_most: 9}, `, 1)
	if l, err = read(t, entry("A", flags)); err != nil || l.Ambiguous(Platform{KeyProvider: "rxe", KeyKernel: "6.1.0"}) != nil {
		t.Errorf("two values of a field: %v, %v", err, l.Ambiguous(Platform{KeyProvider: "rxe", KeyKernel: "6.1.0"}))
	}
	// So is each value that a step has sometimes.
	chance := strings.Replace(fine, "predicts: [", `predicts: [{case: DEV-007, step: s, got: EIO, sometimes: true, at_most: 9}, {case: DEV-007, step: s, got: EFAULT, sometimes: true, at_most: 9}, `, 1)
	if l, err = read(t, entry("A", chance)); err != nil || l.Ambiguous(Platform{KeyProvider: "rxe", KeyKernel: "6.1.0"}) != nil {
		t.Errorf("two values of a step: %v", err)
	}
}

// An open prediction may explain no more than its bound says, in a run and in a comparison.
func TestBoundOfPredictions(t *testing.T) {
	l := &Ledger{}
	if err := l.Add("x.yaml", []byte(ledgerHead+entry("A", strings.Replace(fine, "{case: DEV-006, step: s, got: EIO}",
		`{case: "DEV-*", step: s, got: EIO, sometimes: true, at_most: 2}, {case: "*", step: "receive*", field: wc_flags, got: "1", at_most: 2}`, 1))), nil); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{KeyProvider: "rxe", KeyKernel: "6.1.0"}
	with := func(n int, o Observation) *Run {
		c := Case{ID: "DEV-001", Strength: "E", Outcome: Pass}
		for range n {
			c.Observations = append(c.Observations, o)
		}
		return recorded(t, Target{Kind: "hw"}, env, c)
	}
	by := Observation{Step: "s", Kind: "errno", Got: "EIO", Want: "0", Deviation: "A"}
	if got := l.Exceeded(with(2, by)); len(got) != 0 {
		t.Errorf("two steps: %v", got)
	}
	if got := l.Exceeded(with(3, by)); len(got) != 1 || !strings.Contains(got[0], "deviation A explains 3 steps (DEV-*: s), and at most 2") {
		t.Errorf("three steps: %v", got)
	}
	wc := func(flags int) Observation {
		return Observation{Step: "receive", Kind: "wc", Got: map[string]any{"status": "SUCCESS", "wc_flags": flags}, Want: "SUCCESS"}
	}
	for n, ok := range map[int]bool{2: true, 3: false} {
		c, err := Diff(with(n, wc(0)), with(n, wc(1)), DiffOptions{Ledger: l})
		if err != nil || c.OK() != ok || c.Summary[ExpectedDeviation] != 1 {
			t.Errorf("%d differences: %v, %+v", n, err, c)
		}
	}
}
