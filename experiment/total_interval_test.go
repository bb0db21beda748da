package experiment

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment/table"
)

// The total of several clients has the interval of the summed batches, so that --against can tell a
// change from none; where loads were measured in different times it has none.
func TestTotalsHaveIntervals(t *testing.T) {
	run := func(text string, set ...string) *Result {
		t.Helper()
		s, err := ParseScenario("s.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.Experiment().Execute(t.Context(), Request{Seed: 1, Set: set}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	total := func(res *Result) *table.Row {
		t.Helper()
		for i := range res.Rows {
			if res.Rows[i].Get("row") == "total" {
				return &res.Rows[i]
			}
		}
		t.Fatal("no total")
		return nil
	}
	const incast = "name: incast\nset: {link.pfc: \"true\"}\ntraffic:\n  - {clients: 4, payload: 16KiB, mtu: 4096, window: 4, warmup: 100us, duration: 1ms}\n"
	was := run(incast)
	all, ok := total(was).Float("rate_ci95_percent")
	widest := 0.0
	for i := range was.Rows {
		if v, has := was.Rows[i].Float("rate_ci95_percent"); has && was.Rows[i].Get("row") == "client" {
			widest = max(widest, v)
		}
	}
	if !ok || all <= 0 || all > 2 || all >= widest {
		t.Errorf("the total of an incast whose link is full: ±%v %% (%v); its clients: up to ±%v %%", all, ok, widest)
	}

	var old bytes.Buffer
	if err := was.Write(&old, "jsonl"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "old.jsonl")
	if err := os.WriteFile(file, old.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ set, beyond string }{{"link.bandwidth=50Gbps", "yes"}, {"link.bandwidth=99950Mbps", "no"}} {
		now := run(incast, "traffic.0.warmup=100us", c.set)
		rec, err := ReadRecords(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		if err := now.Compare(rec, nil, nil); err != nil {
			t.Fatal(err)
		}
		seen := false
		for _, ch := range now.Against.Changes {
			if strings.HasPrefix(ch.Row, "total") && (ch.Column == "rate_mps" || ch.Column == "gbps") {
				seen = true
				if ch.Beyond != c.beyond {
					t.Errorf("%s: %s %v -> %v is beyond: %s, want %s", c.set, ch.Column, ch.Old, ch.New, ch.Beyond, c.beyond)
				}
			}
		}
		if !seen {
			t.Errorf("%s changes nothing in the total", c.set)
		}
	}

	mixed := total(run("name: mixed\ntraffic:\n  - {name: a, payload: 64B, warmup: 20us, duration: 200us}\n  - {name: b, verb: read, payload: 64KiB, mtu: 4096, window: 4, cores: [1], warmup: 20us, duration: 200us}\n"))
	rate, ok1 := mixed.Float("rate_ci95_percent")
	goodput, ok2 := mixed.Float("gbps_ci95_percent")
	if !ok1 || !ok2 || rate == goodput {
		t.Errorf("messages of two sizes: ±%v %% of the rate (%v), ±%v %% of the goodput (%v)", rate, ok1, goodput, ok2)
	}
	if half := interval(mixed, "gbps"); half == nil || rate == goodput {
		t.Error("the goodput has no interval")
	} else if g, _ := mixed.Float("gbps"); *half != table.Rounded(g*goodput/100) {
		t.Errorf("the goodput's interval is %v", *half)
	}
	apart := total(run("name: apart\ntraffic:\n  - {name: a, duration: 100us}\n  - {name: b, cores: [1], start: 50us, duration: 100us}\n"))
	if v, ok := apart.Float("rate_ci95_percent"); ok {
		t.Errorf("loads of different times: ±%v %%", v)
	}
}
