package experiment

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// intoOne is a scenario of n flows into the port of one host, from n others.
func intoOne(n int, verb, load string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: x\nhosts: %d\ncores: 32\nlink: switch\ntraffic:\n", n+1)
	for i := range n {
		from, to := i, n
		if verb == "read" { // responses go to who reads
			from, to = n, i
		}
		fmt.Fprintf(&b, "  - {name: s%d, from: %d, to: %d, cores: [%d], verb: %s, mr_size: 1MiB, %s}\n", i, from, to, i, verb, load)
	}
	return b.String()
}

// TestRatesAreConserved: flows that share a port do not get more of it together than it has,
// however few of their messages begin and end in the measured time.
func TestRatesAreConserved(t *testing.T) {
	if over := overPort(t, intoOne(16, "write", "payload: 3584B, mtu: 4096, window: 7, warmup: 4us, duration: 60us, ack_timeout: 5"), "generic-roce"); over > 8*4096 {
		t.Errorf("%.0f bits more than a port of 100 Gb/s carries, of messages that do not quite fill a packet", over)
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
		n := rapid.SampledFrom([]int{1, 2, 3, 4, 8, 16}).Draw(t, "flows")
		mtu := rapid.SampledFrom([]int{1024, 4096}).Draw(t, "mtu")
		payload := 512 * rapid.OneOf(rapid.IntRange(1, 8), rapid.IntRange(1, 2048)).Draw(t, "blocks")
		load := fmt.Sprintf("payload: %dB, mtu: %d, window: %d, warmup: %dus, duration: %dus, ack_timeout: 5", payload, mtu, rapid.IntRange(1, 8).Draw(t, "window"),
			rapid.IntRange(0, 30).Draw(t, "warmup"), rapid.IntRange(5, 60).Draw(t, "duration"))
		over := overPort(t, intoOne(n, draw("verb", "write", "send", "read"), load), draw("profile", "connectx-5", "connectx-5-ib", "generic-roce"))
		if over > float64(8*mtu) { // a packet that was arriving when the time began
			t.Errorf("%.0f bits more than a port of 100 Gb/s carries", over)
		}
	})
}

// overPort is how many bits more a scenario's loads have delivered together than a port of 100 Gb/s
// carries in their time.
func overPort(t rapid.TB, text, profile string) float64 {
	s, err := ParseScenario("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.With(Setting{"profile", profile}); err != nil {
		t.Fatal(err)
	}
	p, err := s.LoadProfile()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.run(context.Background(), 1, p, nil, "")
	if err != nil {
		t.Skip(err)
	}
	bits, measured := 0.0, out.loads[0].Duration.Seconds()
	for i, r := range out.Results {
		bits += r.Rate() * float64(out.loads[i].Payload) * 8 * measured
	}
	return bits - 100e9*measured
}
