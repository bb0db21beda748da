package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment/chart"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/fixtures"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestRowKeepsOrderAndRounds(t *testing.T) {
	var r table.Row
	r.Set("z", 1).Set("a", 1.23456789).Set("b", "x").Set("z", 2)
	got, err := json.Marshal(r)
	if err != nil || string(got) != `{"z":2,"a":1.23457,"b":"x"}` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestFormats(t *testing.T) {
	res := &Result{Name: "x", Version: "1", Profile: "p", ProfileHash: "h", Rows: []table.Row{}, Hypotheses: []string{"uar.bf_conflict=none"}}
	var r table.Row
	res.Rows = append(res.Rows, *r.Set("rate_mps", 1.5).Set("name", "n").Set("none", math.Inf(1)).Set("nan", math.NaN()))
	res.Note("something")
	for format, want := range map[string]string{"table": "INCOMPLETE", "csv": "rate_mps,name,none,nan\n1.5,n,,\n", "json": `"complete": false`} {
		var b bytes.Buffer
		if err := res.Write(&b, format); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%s: %v\n%s\nwant %s", format, err, b.String(), want)
		}
	}
}

func TestScenarioErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"name: x\ntraffic:\n  - {thread: 3}\n", `s.yaml:3:6: unknown field "thread" (did you mean "threads"?)`},
		{"name: x\ntraffic:\n  - {page_size: 8KiB}\n", `s.yaml:3:17: "8KiB" is not one of 4KiB, 2MiB, 1GiB (did you mean "4KiB"?)`},
		{"name: x\ntraffic:\n  - {pagesize: 4KiB}\n", `s.yaml:3:6: unknown field "pagesize" (did you mean "page_size"?)`},
		{"name: x\npage_size: 2MiB\ntraffic: [{verb: read}]\n", `s.yaml:2:1: unknown field "page_size" (it is a field of the items of "traffic")`},
		{"name: x\nset: {kernel.page_size: 2MiB}\ntraffic: [{verb: read}]\n", "s.yaml:2:6: kernel.page_size: page size 2097152: hosts have pages of 4096 bytes, and huge pages under the memory regions of a load that has page_size: 2MiB or 1GiB"},
		{"name: x\ntraffic:\n  - {window: 4, signal_every: 8}\n", "s.yaml:3:"},
		{"name: x\nprofile: connectx-55\ntraffic: [{verb: read}]\n", `s.yaml:2:10: unknown profile "connectx-55" (did you mean "connectx-5"?)`},
		{"name: x\nset: {uar.bf_conflictt: none}\ntraffic: [{verb: read}]\n", `did you mean "uar.bf_conflict"`},
		{"name: x\nset: {uar.bf_conflict: sometimes}\ntraffic: [{verb: read}]\n", "s.yaml:2:24: "},
		{"name: x\ntraffic: [{verb: read, to: 5}]\n", "the scenario has hosts 0 to 1"},
		{"name: x\nlink: loopback\ntraffic: [{verb: read, threads: 17}]\n", "17 threads on 16 cores"},
		{"name: x\ntraffic: [{verb: cas, payload: 16B}]\n", "an atomic has 8"},
		{"name: x\ntraffic: [{mix: [{verb: cas}, {verb: write}], payload: 2B}]\n", "an atomic has 8"},
		{"name: x\ntraffic: [{verb: read, transport: uc}]\n", "verb read does not exist on transport uc"},
		{"name: x\ntraffic: [{verb: write, transport: ud}]\n", "verb write does not exist on transport ud"},
		{"name: x\ntraffic: [{transport: ud, mr_size: 4KiB, payload: 4090B}]\n", "behind a routing header of 40"},
		{"name: x\ntraffic: [{payload: 64B, stride: 32B}]\n", "stride is 32 bytes, and must be a multiple of 8 and at least the payload of 64"},
		{"name: x\ntraffic: [{payload: 8B, stride: 12B}]\n", "stride is 12 bytes, and must be a multiple of 8"},
		{"name: x\ntraffic: [{local_mr_size: 16B, payload: 64B}]\n", "which is more than the local_mr_size of 16"},
		{"name: x\ntraffic:\n  - {local_mrsize: 16B}\n", `s.yaml:3:6: unknown field "local_mrsize" (did you mean "local_mr_size"?)`},
		{"name: x\ntraffic: [{churn: reg_mr, stride: 64B}]\n", "leave out local_mr_size and stride"},
		{"name: x\ntraffic: [{churn: reg_mr, both_ways: true}]\n", "a load with churn posts nothing"},
		{"name: x\ntraffic: [{churn: dereg_mr, on_demand: explicit}]\n", "registers pinned memory"},
		{"name: x\ntraffic: [{churn: reg_mr, threads: 2, contexts: 2}]\n", "a load with churn has one context"},
		{"name: x\ntraffic: [{verb: write, td: per-thread, threads: 2, qp_sharing: 2}]\n", "exclude each other"},
	} {
		_, err := ParseScenario("s.yaml", []byte(c.src))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\n got %v\nwant %s", c.src, err, c.want)
		}
	}
}

// Loads with churn run beside others, at the pace that work gives; work slows a poster down.
func TestChurnAndWork(t *testing.T) {
	out := runText(t, "name: x\ntraffic:\n  - {name: busy, payload: 2B, inline: true, window: 8, work: 1us, duration: 100us}\n"+
		"  - {name: keeps, churn: reg_mr, cores: [3], mrs: 3, messages: 9, work: 10us}\n"+
		"  - {name: drops, churn: dereg_mr, cores: [4], mrs: 9, work: 20us, warmup: 10us, duration: 100us}\n")
	if r := out.Results[0].Rate() / 1e6; r < 0.8 || r > 1 {
		t.Errorf("%v M/s of a thread that computes 1us for each post", r)
	}
	for i, want := range []uint64{3, 5} {
		if got := out.Results[i+1].Threads[0].Completed; got != want {
			t.Errorf("load %d: %d regions, want %d", i+1, got, want)
		}
	}
	if n, _ := out.Counter("host0.hca.key_flushes"); n != 5 {
		t.Errorf("%v flushes for 5 regions", n)
	}
}

// The refusal of an object that a scenario needs is reported at its place in the file, or
// as one of --set if that caused it.
func TestScenarioRefused(t *testing.T) {
	for _, c := range []struct {
		src, set, want string
	}{
		{"name: x\ntraffic:\n  - {payload: 4KiB, inline: true}\n", "", "s.yaml:3:5: load load0, host 0: thread 0: QP 0: create QP: create_qp: send WQEs of "},
		{"name: x\ntraffic:\n  - {payload: 2B}\n", "uar.bf_busy=3", `--set: uar.bf_busy: time "3" has no unit`},
		{"name: x\ntraffic:\n  - {payload: 2B}\n", "profile=connectx5", `--set: unknown profile "connectx5"`},
	} {
		s, err := ParseScenario("s.yaml", []byte(c.src))
		if err != nil {
			t.Fatal(err)
		}
		req := Request{Seed: 1}
		if c.set != "" {
			req.Set = []string{c.set}
		}
		_, err = s.experiment().Execute(t.Context(), req, nil)
		var u *UsageError
		if !errors.As(err, &u) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q, --set %q:\n got %v\nwant usage error %s", c.src, c.set, err, c.want)
		}
	}
}

// A cable has two ends: a load between hosts that none joins would end with a message of the
// transport's retries.
func TestLoadNeedsACable(t *testing.T) {
	for hosts, joined := range map[string]bool{"from: 0, to: 1": true, "from: 1, to: 0": true, "from: 2, to: 3": true, "from: 3, to: 3": true,
		"from: 0, to: 2": false, "from: 1, to: 2": false, "from: 4, to: 0": false} {
		text := "name: x\nhosts: 5\nlink: %s\ntraffic:\n  - {" + hosts + "}\n"
		if _, err := ParseScenario("s.yaml", fmt.Appendf(nil, text, "switch")); err != nil {
			t.Errorf("%s, switch: %v", hosts, err)
		}
		_, err := ParseScenario("s.yaml", fmt.Appendf(nil, text, "cable"))
		if joined != (err == nil) || err != nil && !strings.Contains(err.Error(), "no cable joins them") {
			t.Errorf("%s: %v", hosts, err)
		}
	}
}

// A mix with atomics has 8-byte messages by default, and a load that is over before its
// first poll has a note that its rate means little.
func TestScenarioDefaultsAndRoughRates(t *testing.T) {
	s, err := ParseScenario("s.yaml", []byte("name: x\ntraffic: [{mix: [{verb: cas}, {verb: faa}], messages: 10}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if p := s.Traffic[0].Payload; p != 8 {
		t.Errorf("payload %d, want 8", p)
	}
	for messages, rough := range map[string]bool{"10": true, "100000": false} {
		res, err := s.experiment().Execute(t.Context(), Request{Seed: 1, Set: []string{"traffic.0.messages=" + messages}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(res.Notes, " "), "its rate says little"); got != rough {
			t.Errorf("%s messages: rough %v, want %v; notes %q", messages, got, rough, res.Notes)
		}
	}
}

// Loads run on all transports.
func TestTransports(t *testing.T) {
	for _, load := range []string{"transport: rc, verb: send", "transport: uc, verb: send", "transport: uc, mix: [{verb: write}, {verb: write_imm}]",
		"transport: ud", "transport: ud, payload: 2000B, threads: 3, qps_per_thread: 2"} {
		s, err := ParseScenario("s.yaml", []byte("name: x\ntraffic: [{"+load+", messages: 200, window: 32}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.experiment().Execute(t.Context(), Request{Seed: 1}, nil)
		if err != nil {
			t.Fatalf("%s: %v", load, err)
		}
		if v, ok := res.Rows[0].Get("rate_mps").(float64); !ok || v <= 0 {
			t.Errorf("%s: rate %v", load, res.Rows[0].Get("rate_mps"))
		}
	}
}

func TestTableHasABlockForEachKind(t *testing.T) {
	var a, b table.Row
	a.Set("row", "traffic").Set("name", "n").Set("rate_mps", 1.5)
	b.Set("row", "counter").Set("value", 3).Set("td", nil)
	res := &Result{Rows: []table.Row{a, b, a}, Complete: true}
	var out bytes.Buffer
	if err := res.Write(&out, "table"); err != nil {
		t.Fatal(err)
	}
	const want = "      row  name  rate_mps\n  traffic     n       1.5\n  traffic     n       1.5\n\n      row  value  td\n  counter      3   -\n\n"
	if !strings.HasPrefix(out.String(), want) {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func FuzzScenario(f *testing.F) {
	names, err := fixtures.List("scenarios")
	if err != nil {
		f.Fatal(err)
	}
	for _, n := range names {
		src, _ := fixtures.Read("scenarios/" + n)
		f.Add(src)
	}
	f.Fuzz(func(_ *testing.T, src []byte) { _, _ = ParseScenario("f.yaml", src) })
}

func TestStoredFilesParse(t *testing.T) {
	if _, err := Scenarios(); err != nil {
		t.Error(err)
	}
}

// TestGoldenSchema keeps the schema that editors use equal to what is read.
func TestGoldenSchema(t *testing.T) {
	const path = "../docs/scenario.schema.json"
	got, err := ScenarioSchema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/scenario.schema.json is not what the program reads: make golden (%v)", err)
	}
}

func TestPlot(t *testing.T) {
	var rows []table.Row
	for i := 1; i <= 16; i *= 2 {
		var r table.Row
		rows = append(rows, *r.Set("x", i).Set("y", float64(i)*1.5).Set("s", "a").Set("g", 1))
	}
	p := chart.Plot{File: "f", X: "x", Y: "y", Series: "s", LogX: true, Only: map[string]any{"g": 1}}
	png, svg, err := p.Draw(rows, "")
	if err != nil || !bytes.HasPrefix(png, []byte("\x89PNG")) || !bytes.Contains(svg, []byte("<svg")) {
		t.Errorf("plot: %v, %d bytes of PNG, %d of SVG", err, len(png), len(svg))
	}
	if _, _, err := p.Draw(nil, ""); err == nil {
		t.Error("a plot of nothing gave no error")
	}
}
