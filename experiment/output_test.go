package experiment

import (
	"strings"
	"testing"
)

// execute runs a scenario as the command does.
func execute(t *testing.T, text string, req Request) *Result {
	t.Helper()
	s, err := ParseScenario("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Seed = max(req.Seed, 1)
	res, err := s.experiment().Execute(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// Counters are rows only if they are asked for.
func TestCountersOnRequest(t *testing.T) {
	for _, asked := range []bool{false, true} {
		res := execute(t, "name: x\ntraffic: [{messages: 10}]\n", Request{Counters: asked})
		found := false
		for i := range res.Rows {
			found = found || res.Rows[i].Get("counter") != nil
		}
		if found != asked {
			t.Errorf("asked for counters: %v, got some: %v", asked, found)
		}
	}
}

// What there is of an object can become less in a run.
func TestCountersOfObjectsThatGo(t *testing.T) {
	res := execute(t, "name: x\ntraffic: [{churn: dereg_mr, mrs: 20, messages: 9}]\n", Request{Counters: true})
	for i := range res.Rows {
		if r := &res.Rows[i]; r.Get("counter") == "host0/mlx5_0/resources/mr" {
			if r.Get("value") != -9 {
				t.Errorf("9 regions went: %v", r)
			}
			return
		}
	}
	t.Error("regions are not counted")
}

// What the faults of a scenario did is told as that of --fault is.
func TestFaultsOfAScenarioAreCounted(t *testing.T) {
	res := execute(t, "name: x\nfaults: [{do: drop, direction: requests, flow: 1, packet: 5, iteration: 1}]\ntraffic: [{messages: 10}]\n",
		Request{Set: []string{"faults.0.packet=6"}})
	if notes := strings.Join(res.Notes, "\n"); !strings.Contains(notes, "fault 1 (drop): frames matched: 1, acted on: 1") {
		t.Errorf("notes: %s", notes)
	}
}

// Loads that share cores by default are named, also with a load that was given these cores; those
// that were all given cores are not.
func TestLoadsThatShareCores(t *testing.T) {
	for _, c := range []struct {
		text  string
		named bool
	}{
		{"[{messages: 10}, {messages: 10}]", true},
		{"[{messages: 10}, {messages: 10, cores: [1]}]", false},
		{"[{messages: 10}, {messages: 10, cores: [0]}]", true},
		{"[{messages: 10, cores: [0]}, {messages: 10}]", true},
		{"[{messages: 10, cores: [0]}, {messages: 10, cores: [0]}]", false},
		{"[{messages: 10}, {messages: 10, from: 1, to: 0}]", false},
		{"[{messages: 10}, {verb: send, messages: 10, from: 1, to: 0}]", true}, // its receiver
	} {
		notes := strings.Join(execute(t, "name: x\ntraffic: "+c.text+"\n", Request{}).Notes, "\n")
		if strings.Contains(notes, "share cores") != c.named {
			t.Errorf("%s: %s", c.text, notes)
		}
	}
}
