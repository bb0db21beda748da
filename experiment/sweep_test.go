package experiment

import (
	"math"
	"slices"
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

// grid are all combinations of values, the last key fastest: of "k=1,2".
func grid(sweeps ...string) [][]Setting {
	points := [][]Setting{nil}
	for _, s := range sweeps {
		k, list, _ := strings.Cut(s, "=")
		var next [][]Setting
		for _, pt := range points {
			for v := range strings.SplitSeq(list, ",") {
				next = append(next, append(slices.Clone(pt), Setting{k, v}))
			}
		}
		points = next
	}
	return points
}

func sweep(t *testing.T, text string, sweeps ...string) (*Result, error) {
	t.Helper()
	s, err := ParseScenario("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.experiment().Execute(t.Context(), Request{Seed: 1, Points: grid(sweeps...)}, nil)
}

// What a note says of one point it says with that point's name; what is true of all is said once.
func TestNotesOfASweepNameThePoint(t *testing.T) {
	res, err := sweep(t, "name: x\ntraffic: [{transport: uc, messages: 10}, {messages: 10}]\n", "traffic.0.transport=rc,uc")
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(res.Notes, "\n")
	if !strings.Contains(notes, "traffic.0.transport=uc: Requests on uc and ud") || strings.Contains(notes, "transport=rc: Requests") {
		t.Errorf("notes:\n%s", notes)
	}
	if strings.Count(notes, "share cores") != 1 || !strings.Contains("\n"+notes, "\nLoads load0 and load1 share cores") {
		t.Errorf("notes:\n%s", notes)
	}
	if res, err = sweep(t, "name: x\nhosts: 3\nlink: switch\ntraffic: [{messages: 10}, {messages: 10}]\n", "traffic.1.from=0,2"); err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(res.Notes, "\n"); !strings.Contains(notes, "traffic.1.from=0: Loads load0 and load1 share cores") || strings.Contains(notes, "from=2: Loads") {
		t.Errorf("notes:\n%s", notes)
	}
}

// The result of a sweep over profiles names them all.
func TestSweepOverProfiles(t *testing.T) {
	res, err := sweep(t, "name: x\ntraffic: [{messages: 10}]\n", "profile=connectx-4,connectx-5")
	if err != nil {
		t.Fatal(err)
	}
	if res.Profile != "connectx-4, connectx-5" || len(strings.Split(res.ProfileHash, ", ")) != 2 {
		t.Errorf("profile %q, hash %q", res.Profile, res.ProfileHash)
	}
}

// A point that cannot be built is named, and those before it stay.
func TestSweepWithAPointThatFails(t *testing.T) {
	res, err := sweep(t, "name: x\ntraffic: [{inline: true, messages: 10}]\n", "traffic.0.payload=2B,4KiB,64B")
	if err == nil || !strings.Contains(err.Error(), "traffic.0.payload=4KiB: ") || len(res.Rows) == 0 || res.Complete {
		t.Fatalf("%v, result %+v", err, res)
	}
	if _, ok := err.(*UsageError); !ok || !strings.Contains(strings.Join(res.Notes, "\n"), "The sweep ended at traffic.0.payload=4KiB") {
		t.Errorf("%T, notes %q", err, res.Notes)
	}
}

// The name is that of the files and of no run.
func TestNameIsNotSweptOrSet(t *testing.T) {
	const text = "name: x\ntraffic: [{messages: 10}]\n"
	if _, err := sweep(t, text, "name=a,b"); err == nil || !strings.Contains(err.Error(), "the name changes nothing") {
		t.Errorf("sweep: %v", err)
	}
	s, err := ParseScenario("s.yaml", []byte(text))
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
