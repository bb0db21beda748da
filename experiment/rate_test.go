package experiment

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/sim/profile"
)

// changed is a scenario, with changes, and its profile.
func changed(t *testing.T, text string, changes ...Setting) (*Scenario, *profile.Profile) {
	t.Helper()
	s, err := ParseScenario("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.With(changes...); err != nil {
		t.Fatal(err)
	}
	p, err := s.LoadProfile()
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

// runText runs a scenario, with changes, and returns what its loads measured.
func runText(t *testing.T, text string, changes ...Setting) *Outcome {
	t.Helper()
	s, _ := changed(t, text, changes...)
	return ran(t, s)
}

// ran runs a scenario.
func ran(t *testing.T, s *Scenario) *Outcome {
	t.Helper()
	p, err := s.LoadProfile()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.run(t.Context(), 1, p, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A rate is what was delivered in the measured time over that time, also for a load that stalls:
// two senders overflow the switch, and one of them waits for its ACK timeout for most of the time.
func TestRateOfALoadThatStalls(t *testing.T) {
	out := runText(t, incast, Setting{"traffic.0.duration", "20ms"}, Setting{"traffic.1.duration", "20ms"})
	stalled := false
	for i, l := range out.loads {
		// When the measured time ends a whole window is under way, which completes later; of one
		// poll across the end a part counts, and a poll finds less than half a window.
		completed, window := float64(out.Results[i].Threads[0].Completed), float64(l.Window)
		least, most := (completed-window)/l.Duration.Seconds(), (completed-window/2)/l.Duration.Seconds()
		if got := out.Results[i].Rate(); got > most || got < least {
			t.Errorf("load %s: %.0f messages/s, and %.0f to %.0f were delivered", l.Name, got, least, most)
		}
		stalled = stalled || most < 5000 // 2.6 Gb/s
	}
	if !stalled {
		t.Error("no load stalls: the test shows nothing")
	}
}

// Loads that share a port do not get more of it together than it has.
func TestRatesOfLoadsAddUp(t *testing.T) {
	for _, c := range []struct{ payload, duration, pfc string }{{"4KiB", "100us", "false"}, {"4KiB", "100us", "true"}, {"64KiB", "1ms", "false"}, {"64KiB", "5ms", "false"}} {
		var b strings.Builder
		b.WriteString("name: incast16\nhosts: 17\nlink: switch\ntraffic:\n")
		for i := range 16 {
			fmt.Fprintf(&b, "  - {name: s%d, from: %d, to: 16, verb: write, payload: %s, mr_size: 256KiB, window: 16, duration: %s}\n", i, i, c.payload, c.duration)
		}
		out := runText(t, b.String(), Setting{"link.pfc", c.pfc}, Setting{"link.pfc_xoff", "16KiB"}, Setting{"link.pfc_xon", "8KiB"})
		sum := 0.0
		for i, r := range out.Results {
			sum += r.Rate() * float64(out.loads[i].Payload) * 8 / 1e9
		}
		if sum > 100 {
			t.Errorf("%v: %.1f Gb/s together on a port of 100 Gb/s", c, sum)
		}
	}
}

// All loads begin at one time, also if receives are posted for one of them first.
func TestLoadsBeginTogether(t *testing.T) {
	out := runText(t, "name: x\ntraffic:\n  - {name: victim, messages: 200}\n  - {name: attacker, cores: [3], verb: send, recv_depth: 4096, messages: 200}\n"+
		"  - {name: third, cores: [5], verb: send, recv_depth: 256, warmup: 1us, messages: 200}\n")
	for i, r := range out.Results {
		if begin := r.Begin - out.loads[i].Warmup; begin != out.Results[0].Begin {
			t.Errorf("load %s begins %v after load %s", out.loads[i].Name, begin-out.Results[0].Begin, out.loads[0].Name)
		}
	}
}

// A load with a start of its own begins that much later, its warm-up included, and what it measures
// begins with it.
func TestLoadThatStartsLater(t *testing.T) {
	out := runText(t, "name: x\ntraffic:\n  - {name: victim, duration: 100us}\n  - {name: late, cores: [3], start: 40us, warmup: 5us, duration: 20us}\n"+
		"  - {name: ping, cores: [5], start: 10us, measure: latency, messages: 5}\n  - {name: churn, churn: reg_mr, cores: [7], start: 30us, mrs: 2, messages: 2}\n")
	for i, want := range []time.Duration{0, 45 * time.Microsecond, 10 * time.Microsecond, 30 * time.Microsecond} {
		if d := out.Results[i].Begin - out.Results[0].Begin; d != want || out.Results[i].Threads[0].Completed == 0 {
			t.Errorf("load %s is measured from %v on, with %v messages; want %v", out.loads[i].Name, d, out.Results[i].Threads[0].Completed, want)
		}
	}
}

// A load that was measured also without another one, which had ended, is named.
func TestLoadsThatEndEarly(t *testing.T) {
	for messages, named := range map[string]bool{"200": true, "100000": false} {
		s, err := ParseScenario("s.yaml", []byte("name: x\ntraffic:\n  - {name: short, messages: "+messages+"}\n  - {name: long, cores: [3], duration: 100us}\n"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.experiment().Execute(t.Context(), Request{Seed: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(res.Notes, "\n"), "Load long was measured also when these had ended: short"); got != named {
			t.Errorf("%s messages: named %v, notes %q", messages, got, res.Notes)
		}
	}
}

// A rate that has not become steady in the measured time has a note, and one that has needs none,
// however few polls it was counted in.
func TestUnsteadyRateHasNote(t *testing.T) {
	const counter = "name: x\ntraffic: [{verb: faa, mr_size: 8B, threads: 8, qps_per_thread: %d, window: 128, duration: %s}]\n"
	const bulk = "name: x\ntraffic: [{verb: write, payload: 1MiB, window: %d, duration: %s}]\n"
	const many = "name: x\ntraffic: [{qps_per_thread: 64, warmup: %s, duration: %s}]\n"
	for _, c := range []struct {
		text   string
		steady bool
	}{
		{fmt.Sprintf(counter, 8, "200us"), false}, // 8192 requests wait for a counter that takes 2 in a microsecond
		{fmt.Sprintf(counter, 8, "20ms"), true},
		{fmt.Sprintf(bulk, 2, "600us"), true},      // 7 messages
		{fmt.Sprintf(many, "0ns", "200us"), false}, // 8192 requests are posted in 950 us, and none is polled
		{fmt.Sprintf(many, "900us", "200us"), false},
		{fmt.Sprintf(many, "1ms", "200us"), true},
		{fmt.Sprintf(many, "300us", "100us"), false},
		{"name: x\ntraffic: [{qps_per_thread: 64, messages: 5000}]\n", false},
		{fmt.Sprintf(bulk, 8, "100us"), false},
		{"name: x\ntraffic: [{messages: 10}]\n", false},
		{"name: x\ntraffic: [{messages: 100000}]\n", true},
		{"name: x\ntraffic: [{messages: 10, warmup: 10ms}]\n", false}, // over before the measured time
	} {
		s, err := ParseScenario("s.yaml", []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.experiment().Execute(t.Context(), Request{Seed: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(res.Notes, "\n")
		if steady := !strings.Contains(notes, "give it"); steady != c.steady {
			t.Errorf("%s: steady %v, want %v: ±%v %%, notes\n%s", c.text, steady, c.steady, res.Rows[0].Get("rate_ci95_percent"), notes)
		}
	}
}

// What a figure does not say is said beside it.
func TestFiguresThatNeedANote(t *testing.T) {
	for _, c := range []struct{ load, want string }{
		{"verb: write, transport: uc, name: a", "count all messages that were sent, whether they arrived or not: a."},
		{"transport: ud, receive: none, name: a", "count all messages that were sent, whether they arrived or not: a."},
		{"measure: latency, messages: 10", "its percentiles rest on 10 samples"},
		{"measure: latency, messages: 1", "its percentiles rest on one sample,"},
		{"measure: latency, messages: 10, warmup: 1ms", "no message began and ended in the measured time; give it more messages, or a shorter warmup"},
		{"messages: 10, warmup: 10ms", "before the measured time began; give it more messages, or a shorter warmup"},
		{"measure: latency, messages: 100", ""},
		{"messages: 10000", ""},
	} {
		s, err := ParseScenario("s.yaml", []byte("name: x\ntraffic:\n  - {"+c.load+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.experiment().Execute(t.Context(), Request{Seed: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(res.Notes, "\n"); !strings.Contains(notes, c.want) || c.want == "" && notes != "" {
			t.Errorf("%s: notes %q, want %q", c.load, notes, c.want)
		}
	}
}

// A load that registers memory sends nothing, and has no rate of bytes.
func TestChurnHasNoRateOfBytes(t *testing.T) {
	s, err := ParseScenario("s.yaml", []byte("name: x\ntraffic:\n  - {churn: reg_mr, mrs: 8, duration: 100us}\n"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.experiment().Execute(t.Context(), Request{Seed: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Rows[0].Get("gbps"); got != nil {
		t.Errorf("gbps is %v", got)
	}
}

// A thread that polls more slowly than its messages complete has completions waiting in its queue.
// What waits when the measured time begins was delivered before.
func TestRateOfAQueueThatIsDrained(t *testing.T) {
	for _, duration := range []string{"50us", "100us", "200us", "1ms"} {
		out := runText(t, "name: x\nhosts: 2\ntraffic:\n"+
			"  - {name: a, from: 0, to: 1, verb: write, payload: 4KiB, duration: "+duration+", warmup: 50us}\n"+
			"  - {name: w, from: 0, to: 1, verb: send, payload: 64B, duration: "+duration+", warmup: 50us}\n")
		rate := out.Results[0].Rate() * 4096 * 8 / 1e9
		if rate < 85 || rate > 96 { // payload of 4 KiB in four packets, beside the other load
			t.Errorf("%s: %.1f Gb/s of payload on a port of 100 Gb/s", duration, rate)
		}
		t.Logf("%s: %.2f, %.2f", duration, rate, out.Results[1].Rate()*64*8/1e9)
	}
}
