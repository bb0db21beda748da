package experiment

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// looked runs a scenario, with changes, and looks behind its measured time as a run does that
// prints rates.
func looked(t *testing.T, text string, changes ...Setting) *Outcome {
	t.Helper()
	s, p := changed(t, text, changes...)
	out, err := s.run(t.Context(), 1, p, nil, "")
	if err == nil {
		err = s.lookAhead(t.Context(), 1, p, nil, out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// executed runs a scenario as the command line does.
func executed(t *testing.T, text string, req Request) *Result {
	t.Helper()
	s, err := ParseScenario("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Seed = 1
	res, err := s.experiment().Execute(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// drains is a load with a rate that is steady for longer than 25 us, and 13 % lower later.
const drains = "verb: send, payload: 256B, threads: 4, warmup: 20us, "

// What becomes of a rate, and what makes it doubtful, is said beside it.
func TestNotesOfRates(t *testing.T) {
	const lasts, bursts, quarters, beside, rare = "does not last", "bursts, or with pauses,", "the quarters of the measured time", "What loads without a steady rate take", "acted on"
	alone := func(load string) string { return "name: x\ntraffic: [{name: a, " + load + "}]\n" }
	lossy := func(perMillion, load string) string {
		return "name: x\nfaults: [{do: drop, per_million: " + perMillion + "}]\ntraffic: [{name: a, ack_timeout: 5, " + load + "}]\n"
	}
	const paced = "payload: 16KiB, work: 10us, warmup: 20us, "
	for _, c := range []struct{ text, want string }{
		{alone(drains + "duration: 25us"), "in the next 659µs, if all loads go on; give it a longer duration"},
		{alone("payload: 4KiB, window: 8, warmup: 20us, messages: 60"), lasts}, // no window is full at the end
		{alone(drains + "duration: 1ms"), ""},
		{alone(paced + "duration: 80us"), bursts},
		{alone(paced + "duration: 100us"), quarters},
		{twoInto("payload: 4KiB, window: 16, warmup: 20us, duration: 25us", "cores: [8], verb: read, payload: 4KiB, window: 8, warmup: 20us, duration: 25us"), beside + " from others on their hosts later is not in the rates of these: a beside b."},
		{lossy("100", "payload: 4KiB, window: 4, duration: 300us"), "Fault 1 (drop) acted on 0 of the frames"},
		{lossy("20000", "payload: 4KiB, window: 4, duration: 2ms"), ""},
		{"name: x\nfaults: [{do: drop, skip: 100000}]\ntraffic: [{payload: 4KiB, window: 4, duration: 300us}]\n", "Fault 1 (drop) acted on 0 of the frames"},
		{"name: x\nfaults: [{do: drop, per_million: 100}]\ntraffic: [{transport: uc, payload: 4KiB, window: 4, duration: 300us}]\n", ""},
	} {
		notes := strings.Join(executed(t, c.text, Request{}).Notes, "\n")
		if !strings.Contains(notes, c.want) {
			t.Errorf("%s: no note with %q:\n%s", c.text, c.want, notes)
		}
		for _, other := range []string{lasts, bursts, quarters, beside} {
			if c.want == "" && strings.Contains(notes, other) || c.want == bursts && other == quarters && strings.Contains(notes, other) {
				t.Errorf("%s: a note with %q:\n%s", c.text, other, notes)
			}
		}
		if c.want == "" && strings.Contains(notes, "Give the loads a duration") {
			t.Errorf("%s: a note on a fault:\n%s", c.text, notes)
		}
	}
}

// Looking behind the measured time changes nothing of the run: rows, counters, capture, what faults
// did.
func TestLookingAheadChangesNothing(t *testing.T) {
	const text = "name: x\nfaults: [{do: drop, per_million: 2000}]\ntraffic: [{name: a, " + drains + "duration: 25us}]\n"
	dir := t.TempDir()
	capture := func(name string, seen func(Request)) []byte {
		path := filepath.Join(dir, name)
		seen(Request{Pcap: path, Counters: true})
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return src
	}
	var res *Result
	got := capture("a.pcapng", func(req Request) { res = executed(t, text, req) })
	if !strings.Contains(strings.Join(res.Notes, "\n"), "Give the loads a duration") {
		t.Errorf("notes %q", res.Notes)
	}
	plain := &Result{}
	want := capture("b.pcapng", func(req Request) {
		s, err := ParseScenario("s.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		rec, err := req.recorder(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p, _ := s.LoadProfile()
		out, err := s.run(t.Context(), 1, p, rec, "")
		if err != nil {
			t.Fatal(err)
		}
		out.breaks = true // which are not looked at
		if err := out.emit(&Env{Ctx: t.Context(), Seed: 1, Out: plain, rec: rec, counters: true}, s, p); err != nil {
			t.Fatal(err)
		}
		if out.later != nil {
			t.Error("it was looked at")
		}
		if err := rec.end(nil); err != nil {
			t.Fatal(err)
		}
	})
	if !bytes.Equal(got, want) {
		t.Error("the capture has changed")
	}
	if !reflect.DeepEqual(res.Rows, plain.Rows) {
		t.Errorf("rows have changed:\n%v\n%v", res.Rows, plain.Rows)
	}
}

// What a load delivers later is found with all others going on, those of other ends too.
func TestLoadsGoOnTogether(t *testing.T) {
	text := twoInto("payload: 1KiB, window: 32, warmup: 20us, duration: 60us", "cores: [8], payload: 1KiB, window: 32, warmup: 20us, duration: 400us")
	out := looked(t, text)
	if out.later == nil || out.later[0] == nil || out.later[1] != nil {
		t.Fatalf("looked at: %v; want the first alone", out.later)
	}
	together := runText(t, text, Setting{"traffic.0.duration", "400us"}).Results
	if got, want := out.later[0].rate, together[0].Rate(); math.Abs(got/want-1) > 0.02 || want > 0.95*out.Results[1].Rate() {
		t.Errorf("the first load goes on with %.4g messages/s, and has %.4g beside the second, which has %.4g, and %.4g without it for the most part", got, want, together[1].Rate(), out.Results[1].Rate())
	}
}

// What has been measured for long, or has gone through its queues often, is not looked at.
func TestLongRunsAreNotLookedAt(t *testing.T) {
	for load, want := range map[string]bool{
		drains + "duration: 25us": true, drains + "duration: 1ms": false, "window: 4, duration: 50us": false, "window: 64, duration: 20us, warmup: 50us": true,
		"window: 4, duration: 20us, warmup: 100us": false, "measure: latency, messages: 5": false, "churn: reg_mr, duration: 50us": false, "messages: 100000": false,
		"payload: 64KiB, threads: 4, qps_per_thread: 4, window: 16, warmup: 1ms, duration: 1500us": true, // 2,900 messages, and 256 are outstanding
	} {
		if out := looked(t, "name: x\ntraffic: [{name: a, "+load+"}]\n"); (out.later != nil) != want {
			t.Errorf("%s: looked at: %v", load, out.later != nil)
		}
	}
}

// A run that ends while some loads have ended has one result of each.
func TestRunThatEndsBetweenLoads(t *testing.T) {
	s, err := ParseScenario("s.yaml", []byte("name: x\ntraffic: [{name: a, duration: 20us}, {name: b, cores: [3], duration: 300us}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, _ := s.LoadProfile()
	whole, err := s.run(t.Context(), 1, p, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	until := whole.Results[0].End + 100*time.Microsecond
	out, err := s.runUntil(t.Context(), 1, p, nil, "", until)
	if err != nil || len(out.Results) != 2 {
		t.Fatalf("%d results of 2 loads, error %v", len(out.Results), err)
	}
	if out.Results[0].Rate() != whole.Results[0].Rate() || out.Results[1].End != until {
		t.Errorf("%v of %v, and until %v", out.Results[0].Rate(), whole.Results[0].Rate(), out.Results[1].End)
	}
}
