package report

import (
	"bytes"
	"encoding/json"
	"testing"
)

// recorded is a run of one case as it is after it was written and read.
func recorded(t *testing.T, target Target, env map[string]string, c Case) *Run {
	t.Helper()
	r := &Run{Schema: Schema, Seed: 1, Target: target, Environment: env, Cases: []Case{c}}
	var text bytes.Buffer
	if err := r.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	out := &Run{}
	if err := json.Unmarshal(text.Bytes(), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDiffClasses(t *testing.T) {
	card := map[string]string{KeyProvider: "mlx5", KeyPart: "0x1017", KeyKernel: "6.12.1"}
	rxe := map[string]string{KeyProvider: "rxe", KeyPart: "0x0", KeyKernel: "6.12.1"}
	sim, hw := Target{Kind: "sim", Profile: "connectx-5"}, Target{Kind: "hw"}
	saw := func(o Outcome, strength string, obs ...Observation) Case {
		return Case{ID: "RC-001", Outcome: o, Strength: strength, Observations: obs}
	}
	errno := func(got string, want any) Observation {
		return Observation{Step: "post", Kind: "errno", Got: got, Want: want}
	}
	wc := func(flags int) Observation {
		return Observation{Step: "receive", Kind: "wc", Want: "SUCCESS", Got: map[string]any{"status": "SUCCESS", "wc_flags": flags}}
	}
	attr := func(flags, max int) Observation {
		got := map[string]any{"Flags": flags, "Max": max}
		return Observation{Step: "attributes", Kind: "value", Got: got, Want: got}
	}
	vectors := func(n int) Case { // a step for each
		obs := []Observation{{Step: "vectors", Kind: KindPlatform, Got: n}}
		for range n {
			obs = append(obs, errno("0", "0"))
		}
		return saw(Pass, "E", obs...)
	}
	odd := vectors(2)
	odd.Observations[2].Step = "of one only"
	deviated := errno("EINVAL", "ENOMEM")
	deviated.Deviation = "RXE-02"
	ledger := &Ledger{}
	if err := ledger.Add("rxe.yaml", []byte(ledgerHead+entry("RXE-10",
		`where: {kernel: ">=6.1"}, kind: status, opened: "2026-11-21", review_by: "2027-11-20", predicts: [{case: "RC-*", step: "*", field: wc_flags, got: "1", at_most: 9}, {case: RC-001, step: attributes, field: Flags, got: "3"}]`)),
		func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	newer := map[string]string{KeyProvider: "mlx5", KeyPart: "0x1017", KeyKernel: "6.12.1", KeyFirmware: "2"}
	value := func(step string, got any) Observation { return Observation{Step: step, Kind: "value", Got: got} }
	listed := func(words ...string) Observation {
		return Observation{Step: "packets", Kind: "value", Got: words, Want: words}
	}
	chance := deviated
	chance.Deviation = "RXE-11"
	if err := ledger.Add("rxe2.yaml", []byte(ledgerHead+entry("RXE-11",
		`where: {kernel: ">=6.1"}, kind: timing, opened: "2026-11-21", review_by: "2027-11-20", predicts: [{case: "RC-*", step: post, got: EINVAL, sometimes: true, at_most: 3}]`)),
		func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	lacking := Case{ID: "RC-001", Strength: "E", Outcome: NotRun, Reason: Lacking + "dm"}
	tests := map[string]struct {
		a, b   *Run
		want   Class
		failed bool
	}{
		"equal":                 {recorded(t, sim, nil, saw(Pass, "E", errno("0", "0"))), recorded(t, hw, rxe, saw(Pass, "E", errno("0", "0"))), Same, false},
		"regression":            {recorded(t, hw, card, saw(Pass, "E", errno("0", nil))), recorded(t, hw, card, saw(Pass, "E", errno("EIO", nil))), Regression, true},
		"now fails":             {recorded(t, hw, card, saw(Pass, "E")), recorded(t, hw, card, saw(Fail, "E")), Regression, true},
		"sim gap":               {recorded(t, sim, nil, saw(Pass, "E", errno("0", nil))), recorded(t, hw, card, saw(Pass, "E", errno("EIO", nil))), SimGap, true},
		"sim alone fails":       {recorded(t, sim, nil, saw(Fail, "E")), recorded(t, hw, card, saw(Pass, "E")), SimGap, true},
		"in the set":            {recorded(t, sim, nil, saw(Pass, "S", errno("0", []string{"0", "EIO"}))), recorded(t, hw, card, saw(Pass, "S", errno("EIO", []string{"0", "EIO"}))), SameInSet, false},
		"drift":                 {recorded(t, hw, card, saw(Pass, "S", errno("0", []string{"0", "EIO"}))), recorded(t, hw, card, saw(Pass, "S", errno("EIO", []string{"0", "EIO"}))), DriftInSet, false},
		"value of a kind":       {recorded(t, sim, nil, saw(Pass, "E", errno("7", nil))), recorded(t, hw, rxe, saw(Pass, "E", errno("8", nil))), OtherPlatform, false},
		"step by ledger":        {recorded(t, sim, nil, saw(Pass, "E", errno("ENOMEM", "ENOMEM"))), recorded(t, hw, rxe, saw(PassDeviation, "E", deviated)), ExpectedDeviation, false},
		"field by ledger":       {recorded(t, sim, nil, saw(Pass, "E", wc(0))), recorded(t, hw, rxe, saw(Pass, "E", wc(1))), ExpectedDeviation, false},
		"other field":           {recorded(t, sim, nil, saw(Pass, "E", wc(0))), recorded(t, hw, rxe, saw(Pass, "E", wc(2))), Regression, true},
		"lacks it":              {recorded(t, sim, nil, saw(Pass, "E")), recorded(t, hw, rxe, saw(Unsupported, "E")), UnsupportedThere, false},
		"lacks it now":          {recorded(t, hw, card, saw(Pass, "E")), recorded(t, hw, card, saw(Unsupported, "E")), NewlyUnsupported, true},
		"has it now":            {recorded(t, hw, card, saw(Unsupported, "E")), recorded(t, hw, card, saw(Pass, "E")), NewlySupported, false},
		"no verdict":            {recorded(t, hw, card, saw(Pass, "E")), recorded(t, hw, card, saw(Error, "E")), Incomparable, true},
		"a step is gone":        {recorded(t, hw, card, saw(Pass, "E", errno("0", "0"))), recorded(t, hw, card, saw(Pass, "E")), Regression, true},
		"a step more":           {recorded(t, hw, card, saw(Pass, "E")), recorded(t, hw, card, saw(Pass, "E", errno("0", "0"))), Regression, true},
		"not run":               {recorded(t, hw, card, saw(Pass, "E")), recorded(t, hw, card, saw(NotRun, "E")), NotCompared, false},
		"attribute by ledger":   {recorded(t, sim, nil, saw(Pass, "E", attr(1, 5))), recorded(t, hw, rxe, saw(Pass, "E", attr(3, 5))), ExpectedDeviation, false},
		"another attribute":     {recorded(t, sim, nil, saw(Pass, "E", attr(1, 5))), recorded(t, hw, card, saw(Pass, "E", attr(3, 6))), SimGap, true},
		"a smaller machine":     {recorded(t, sim, nil, vectors(4)), recorded(t, hw, card, vectors(2)), FromEnvironment, false},
		"another step there":    {recorded(t, sim, nil, vectors(4)), recorded(t, hw, card, odd), SimGap, true},
		"the machine has grown": {recorded(t, hw, card, vectors(2)), recorded(t, hw, card, vectors(4)), Regression, true},
		"flaky":                 {recorded(t, hw, card, saw(Flaky, "E")), recorded(t, hw, card, saw(Pass, "E")), Unstable, false},
		"now flaky":             {recorded(t, hw, card, saw(Pass, "E")), recorded(t, hw, card, saw(Flaky, "E")), Regression, true},
		"flaky, not recorded":   {recorded(t, hw, card, saw(Unrecorded, "H")), recorded(t, hw, card, saw(Flaky, "H")), Regression, true},
		"flaky on the card":     {recorded(t, sim, nil, saw(Pass, "E")), recorded(t, hw, card, saw(Flaky, "E")), SimGap, true},
		"flaky twice":           {recorded(t, hw, card, saw(Flaky, "E")), recorded(t, hw, card, saw(Flaky, "E")), Unstable, false},
		"fails, not recorded":   {recorded(t, hw, card, saw(Unrecorded, "H")), recorded(t, hw, card, saw(Fail, "H")), Regression, true},
		"sim not recorded":      {recorded(t, sim, nil, saw(Unrecorded, "H")), recorded(t, hw, card, saw(Fail, "H")), SimGap, true},
		"runs now, and fails":   {recorded(t, hw, card, saw(NotRun, "E")), recorded(t, hw, card, saw(Fail, "E")), Regression, true},
		"has it now, and fails": {recorded(t, hw, card, saw(Unsupported, "E")), recorded(t, hw, card, saw(Fail, "E")), Regression, true},
		"the other lacks it":    {recorded(t, hw, rxe, saw(Unsupported, "E")), recorded(t, hw, card, saw(Fail, "E")), UnsupportedThere, false},
		"not run by sim":        {recorded(t, sim, nil, saw(NotRun, "E")), recorded(t, hw, card, saw(Fail, "E")), NotCompared, false},
		"H of a new firmware":   {recorded(t, hw, card, saw(Unrecorded, "H", value("v", 1))), recorded(t, hw, newer, saw(Unrecorded, "H", value("v", 2))), Changed, false},
		"H of the same":         {recorded(t, hw, card, saw(Unrecorded, "H", value("v", 1))), recorded(t, hw, card, saw(Unrecorded, "H", value("v", 2))), Regression, true},
		"equal H":               {recorded(t, hw, card, saw(Unrecorded, "H", value("v", 1))), recorded(t, hw, newer, saw(Pass, "H", value("v", 1))), Same, false},
		"H of sim and card":     {recorded(t, sim, nil, saw(Unrecorded, "H", value("v", 1))), recorded(t, hw, card, saw(Unrecorded, "H", value("v", 2))), NotRecorded, false},
		"mended":                {recorded(t, hw, rxe, saw(PassDeviation, "E", deviated)), recorded(t, hw, rxe, saw(Pass, "E", errno("ENOMEM", "ENOMEM"))), Improvement, false},
		"not this time":         {recorded(t, hw, rxe, saw(PassDeviation, "E", chance)), recorded(t, hw, rxe, saw(Pass, "E", errno("ENOMEM", "ENOMEM"))), ExpectedDeviation, false},
		"deviates now":          {recorded(t, hw, rxe, saw(Pass, "E", errno("ENOMEM", "ENOMEM"))), recorded(t, hw, rxe, saw(PassDeviation, "E", deviated)), NewDeviation, false},
		"goes another way":      {recorded(t, hw, rxe, saw(PassDeviation, "E", deviated, value("more", 1))), recorded(t, hw, rxe, saw(Pass, "E", errno("ENOMEM", "ENOMEM"), value("else", 1))), Improvement, false},
		"went another before":   {recorded(t, hw, rxe, saw(PassDeviation, "E", value("more", 1), deviated)), recorded(t, hw, rxe, saw(Pass, "E", errno("ENOMEM", "ENOMEM"))), Regression, true},
		"fails no more":         {recorded(t, hw, card, saw(Fail, "E")), recorded(t, hw, card, saw(Pass, "E")), Improvement, false},
		"says it lacks it":      {recorded(t, hw, card, saw(Pass, "E")), recorded(t, hw, newer, lacking), NewlyUnsupported, true},
		"lacked it":             {recorded(t, hw, card, lacking), recorded(t, hw, newer, saw(Pass, "E")), NewlySupported, false},
		"sim lacks it":          {recorded(t, sim, nil, lacking), recorded(t, hw, card, saw(Pass, "E")), Unproven, false},
		"lists of one case":     {recorded(t, hw, card, saw(Pass, "E", listed("a"))), recorded(t, hw, newer, saw(Pass, "E", listed("b"))), FromEnvironment, false},
		"stale, as the record says": {recorded(t, hw, card, saw(Pass, "E")), recorded(t, hw, card,
			Case{ID: "RC-001", Strength: "E", Outcome: Fail, Stale: []string{"X"}, Reason: "some words"}), StaleDeviation, true},
		"stale, as it says": {recorded(t, hw, card, saw(Pass, "E")), recorded(t, hw, card,
			Case{ID: "RC-001", Strength: "E", Outcome: Fail, Reason: "stale: no step shows deviation X"}), StaleDeviation, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := Diff(tt.a, tt.b, DiffOptions{Ledger: ledger})
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Cases[0].Class; got != tt.want || c.OK() == tt.failed {
				t.Errorf("class %s, ok %v; want %s, failed %v: %+v", got, c.OK(), tt.want, tt.failed, c.Cases[0])
			}
		})
	}
}

func TestDiffGate(t *testing.T) {
	a := &Run{Schema: Schema, Seed: 1, Cases: []Case{{ID: "A", Outcome: Pass}, {ID: "B", Outcome: Pass}}}
	b := &Run{Schema: Schema, Seed: 1, Cases: []Case{{ID: "B", Outcome: Pass}, {ID: "C", Outcome: Pass}}}
	if c, err := Diff(a, b, DiffOptions{}); err != nil || c.Summary[Incomparable] != 2 || c.OK() {
		t.Errorf("cases of one run only: %+v, %v", c, err)
	}
	if c, err := Diff(a, b, DiffOptions{Common: true}); err != nil || len(c.Cases) != 1 || !c.OK() {
		t.Errorf("common cases: %+v, %v", c, err)
	}
	b.Seed = 2
	if _, err := Diff(a, b, DiffOptions{}); err == nil {
		t.Error("two seeds are compared")
	}
}
