package experiment

import (
	"errors"
	"strings"
	"testing"
)

// Loads whose memory pages on demand move their messages, in both directions too; what contradicts
// itself is refused.
func TestLoadsOnDemand(t *testing.T) {
	for _, c := range []struct{ traffic, want string }{
		{"verb: send, on_demand: explicit, cold: true, measure: latency", ""},
		{"verb: read, on_demand: implicit, on_demand_at: to, measure: latency", ""},
		{"verb: read, on_demand: explicit, on_demand_at: both, both_ways: true, mr_size: 1MiB, payload: 4KiB, access: random, window: 8", ""},
		{"verb: send, cold: true, measure: latency", "give on_demand"},
		{"verb: send, on_demand: explicit, cold: true", "measure latency"},
		{"verb: write, on_demand: explicit, measure: latency", "ping-pong"},
		{"verb: send, on_demand: explicit, both_ways: true", "both_ways"},
		{"verb: write, on_demand: explicit, page_size: 2MiB", "page_size"},
	} {
		s, err := ParseScenario("s.yaml", []byte("name: x\ntraffic:\n  - {messages: 8, "+c.traffic+"}\n"))
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want an error with %q", c.traffic, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", c.traffic, err)
		}
		out := ran(t, s)
		n, _ := out.Counter("kernel.num_page_faults")
		if r := out.Results[0]; r.Failed != nil || r.Threads[0].Completed != 8 || n == 0 {
			t.Errorf("%s: %d messages, %v page faults, %v", c.traffic, r.Threads[0].Completed, n, r.Failed)
		}
	}
}

// Work that the device cannot do on absent pages is refused before it begins, at its load.
func TestOnDemandThatTheDeviceLacks(t *testing.T) {
	for load, want := range map[string]string{
		"verb: faa, on_demand: explicit":                                      "s.yaml:2:11: load load0, host 0: context 0: the device does not page memory on demand for faa on rc",
		"verb: write, transport: uc, on_demand: implicit":                     "for write on uc",
		"transport: ud, on_demand: explicit, on_demand_at: to":                "for send on ud",
		"transport: ud, on_demand: explicit, on_demand_at: to, receive: none": "",
		"verb: send, on_demand: explicit":                                     "",
	} {
		s, err := ParseScenario("s.yaml", []byte("name: x\ntraffic: [{duration: 20us, "+load+"}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.experiment().Execute(t.Context(), Request{Seed: 1}, nil)
		if bad := (*UsageError)(nil); want == "" && err != nil || want != "" && (!errors.As(err, &bad) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", load, err, want)
		}
	}
}
