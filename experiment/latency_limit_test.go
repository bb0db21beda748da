package experiment

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment/table"
)

// A load that keeps one request outstanding is limited by latency, though the threads of a
// ping-pong spin all the time; a second run says what it consists of. What waits for a core or an
// engine is limited by that.
func TestLatencyIsTheLimit(t *testing.T) {
	for _, c := range []struct{ load, want string }{
		{"verb: write, measure: latency, messages: 50", "latency"},
		{"verb: write, payload: 64KiB, measure: latency, messages: 50", "latency"},
		{"verb: read, measure: latency, messages: 50", "latency"},
		{"verb: send, measure: latency, messages: 50, threads: 2", "latency"},
		{"verb: write, measure: latency, messages: 20, threads: 2, cores: [3]", "CPU"},
		{"verb: read, payload: 64KiB, measure: latency, messages: 50, threads: 8", "wire"},
		{"verb: read, window: 1, messages: 200", "window"},
	} {
		row, note := confirmed(t, c.load)
		if got := row.Get(LimitedBy); got != c.want {
			t.Errorf("%s: limited by %v, want %s", c.load, got, c.want)
			continue
		}
		if c.want != "latency" {
			if _, ok := row.Float(limitPercent); !ok {
				t.Errorf("%s: no use of a unit", c.load)
			}
			continue
		}
		if _, ok := row.Float(limitPercent); ok || row.Get(limitUnit) != oneOutstanding {
			t.Errorf("%s: %v %v", c.load, row.Get(limitUnit), row.Get(limitPercent))
		}
		_, parts, ok := strings.Cut(note, "a request consists of: ")
		sum := 0
		for _, m := range regexp.MustCompile(`(-?\d+) %`).FindAllStringSubmatch(parts, -1) {
			n, _ := strconv.Atoi(m[1])
			sum += n
		}
		if !ok || sum < 94 || sum > 106 || row.Get(Confirmed) != "yes" || !strings.Contains(parts, "PCIe ") || !strings.Contains(parts, "wire and switch ") {
			t.Errorf("%s: %s: parts of %d %%", c.load, note, sum)
		}
	}
}

// What a latency consists of follows what is in it: a longer cable is wire, a slower library is
// CPU.
func TestPartsOfALatency(t *testing.T) {
	share := func(part string, set ...string) int {
		_, note := confirmed(t, "verb: read, measure: latency, messages: 20", set...)
		m := regexp.MustCompile(part + ` (\d+) %`).FindStringSubmatch(note)
		if m == nil {
			return 0
		}
		n, _ := strconv.Atoi(m[1])
		return n
	}
	if n := share("wire and switch", "link.propagation=20us"); n < 90 {
		t.Errorf("of a READ over 4 km, %d %% is wire", n)
	}
	if n := share("CPU and library", "provider.post_call=5us"); n < 65 {
		t.Errorf("of a READ with a post of 5us, %d %% is CPU", n)
	}
	if n := share("CPU and library"); n > 30 {
		t.Errorf("of a READ, %d %% is CPU", n)
	}
}

// confirmed runs a load with --confirm, and returns the row of the load and the note about its
// limit.
func confirmed(t *testing.T, load string, set ...string) (*table.Row, string) {
	t.Helper()
	s, err := ParseScenario("one.yaml", fmt.Appendf(nil, "name: one\ntraffic:\n  - {%s}\n", load))
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Experiment().Execute(t.Context(), Request{Seed: 1, Confirm: true, Set: set}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range res.Notes {
		if strings.HasPrefix(n, "limited by ") {
			return &res.Rows[0], n
		}
	}
	t.Fatalf("%s: no note about the limit: %q", load, res.Notes)
	return nil, ""
}
