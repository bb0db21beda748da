package experiment

import (
	"context"
	"strings"
	"testing"
	"time"
)

func latencyOf(t *testing.T, text string) *Result {
	t.Helper()
	s, err := ParseScenario("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.experiment().Execute(t.Context(), Request{Seed: 1}, nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return res
}

// A thread that takes the completion of another's message for its own shows a latency that no
// message had: 498 ns for a READ that takes 1.8 us.
func TestLatencyNeedsQueuesOfOneThread(t *testing.T) {
	const shared = "a latency load needs queue pairs and CQs that threads do not share"
	for _, c := range []struct{ load, want string }{
		{"verb: read, threads: 4, cq_sharing: 4, window: 64", shared},
		{"verb: read, threads: 2, qps_per_thread: 3, cq_sharing: 2", shared},
		{"verb: read, threads: 4, qp_sharing: 2", shared},
		{"verb: write, threads: 4, qp_sharing: 4", shared},
		{"verb: send, threads: 2, contexts: 2, cq_sharing: 2", shared},
		{"verb: read, threads: 2, qps_per_thread: 4, cq_sharing: 2", ""},
		{"verb: read, qps_per_thread: 3, cq_sharing: 2", ""},
		{"mix: [{verb: write}, {verb: read}]", "the latency of a write is measured by a ping-pong"},
		{"mix: [{verb: read}, {verb: write}]", "the latency of a write is measured by a ping-pong"},
		{"mix: [{verb: read}, {verb: send}]", ""},
		{"mix: [{verb: write}]", ""},
		{"verb: write, threads: 4, mrs: 3", "a region for each of the 4 threads: mrs is 3, and 4 are needed"},
		{"verb: write, threads: 5, pds: 2, mrs: 2", "a region for each of the 5 threads: mrs is 2, and 3 are needed"},
		{"verb: write, threads: 5, pds: 2, mrs: 3", ""},
	} {
		_, err := ParseScenario("s.yaml", []byte("name: x\ntraffic: [{measure: latency, messages: 10, "+c.load+"}]\n"))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.load, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.load, err, c.want)
		}
	}
}

// Threads that write to each other's places see messages that are not theirs.
func TestPingPongsDoNotMeet(t *testing.T) {
	if testing.Short() {
		t.Skip("a second and a half")
	}
	const load = "name: x\ntraffic: [{verb: write, payload: 4KiB, measure: latency, messages: 20, threads: 16, window: 1%s}]\n"
	p50 := func(more string) float64 {
		v, _ := latencyOf(t, strings.Replace(load, "%s", more, 1)).Rows[0].Get("latency_ns_p50").(float64)
		return v
	}
	if all, apart := p50(""), p50(", pds: 16"); all != apart || all == 0 {
		t.Errorf("a latency of %v ns in one protection domain, and %v with one for each thread", all, apart)
	}
}

// The peer's message says that a write has arrived; its ACK may be lost, and the send queue be full
// until the next try.
func TestPingPongWaitsForItsAcks(t *testing.T) {
	if testing.Short() {
		t.Skip("three seconds")
	}
	const text = "name: x\nfaults: [{do: drop, opcode: 17, skip: 20, count: 2}]\n" +
		"traffic: [{verb: write, payload: 8B, ack_timeout: 1, measure: latency, messages: 200, "
	for _, more := range []string{"window: 1}]\n", "window: 4, signal_every: 4}]\n", "window: 128, signal_every: 128}]\n"} {
		if n := latencyOf(t, text+more).Rows[0].Get("samples"); n != 200 {
			t.Errorf("%s: %v samples, want 200", more, n)
		}
	}
}

// A ping-pong whose messages no longer arrive ends with the completion that says so, and does not
// go on for ever: a thread that has waited for long looks seldom.
func TestPingPongWithoutAnswer(t *testing.T) {
	for _, long := range []string{"messages: 200", "duration: 1ms", "messages: 200, ack_timeout: 6"} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		s, err := ParseScenario("s.yaml", []byte("name: x\ntraffic: [{measure: latency, payload: 3000, "+long+"}]\nfaults: [{do: drop, skip: 40}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.experiment().Execute(ctx, Request{Seed: 1}, nil)
		if err != nil || !strings.Contains(strings.Join(res.Notes, " "), "RETRY_EXC_ERR") || !strings.Contains(strings.Join(res.Notes, " "), "a write") {
			t.Errorf("%s: %v", long, err)
		}
	}
}
