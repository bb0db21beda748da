package experiment

import (
	"math"
	"strings"
	"testing"
)

// The messages beside a measured time are those of that time, of which the rate is; those of the
// whole run, to which the counters belong, are more.
func TestMessagesAreThoseOfTheMeasuredTime(t *testing.T) {
	res := execute(t, "name: x\ntraffic: [{window: 128, signal_every: 64, warmup: 20us, duration: 100us}]\n", Request{})
	for i := range res.Rows[:2] {
		row := &res.Rows[i]
		n, _ := row.Float("messages")
		all, _ := row.Float("messages_all")
		rate, _ := row.Float("rate_mps")
		if math.Abs(n-100*rate) > 1e-6*n || all <= n {
			t.Errorf("row %v: %v messages in 100 us at %v M/s, %v in all", row.Get("row"), n, rate, all)
		}
	}
}

// The name is that of the files and of no run.
func TestNameIsNotSet(t *testing.T) {
	s, err := ParseScenario("s.yaml", []byte("name: x\ntraffic: [{messages: 10}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.experiment().Execute(t.Context(), Request{Set: []string{"name=y"}}, nil); err == nil || !strings.Contains(err.Error(), "only the scenario's file can give it") {
		t.Errorf("set: %v", err)
	}
}

// A variable that the library does not read changes nothing, so it is a mistake.
func TestUnknownVariable(t *testing.T) {
	for name, want := range map[string]string{"MLX5_SINGLE_THREADD": `did you mean "MLX5_SINGLE_THREADED"?`, "mlx5_shut_up_bf": `did you mean "MLX5_SHUT_UP_BF"?`,
		"PATH": "the simulated library reads MLX5_", "MLX5_SHUT_UP_BF": ""} {
		_, err := ParseScenario("s.yaml", []byte("name: x\ntraffic:\n  - {messages: 10, env: {"+name+": 1}}\n"))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "s.yaml:3:")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
