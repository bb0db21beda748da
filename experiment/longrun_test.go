package experiment

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// twoInto is a scenario of two loads of one host into another, with what the first has of its own
// and the second.
func twoInto(first, second string) string {
	return fmt.Sprintf("name: x\nhosts: 3\nlink: switch\ntraffic:\n  - {name: a, to: 2, %s}\n  - {name: b, to: 2, %s}\n", first, second)
}

// TestIntervalsContainTheLongRun: the rate of a longer time lies in the interval of a rate, or
// within the 5 % that need no remark, or the run says that it may not.
func TestIntervalsContainTheLongRun(t *testing.T) {
	if testing.Short() {
		t.Skip("short tests make no long run")
	}
	alone := func(load string) string { return "name: x\ntraffic: [{name: a, " + load + "}]\n" }
	quiet := 0
	for _, text := range []string{
		alone("payload: 8B"), alone("payload: 64KiB, window: 4"), alone("payload: 1MiB, window: 2"), alone("verb: read, payload: 16KiB, window: 8"),
		alone("verb: send, payload: 256B"), alone("verb: send, payload: 256B, threads: 4"), alone("verb: send, payload: 8B, inline: true, postlist: 32, signal_every: 32, recv_depth: 600"), alone("verb: faa, threads: 2, window: 8, mr_size: 8B"), alone("transport: uc, payload: 32KiB, window: 16, signal_every: 8"),
		alone("transport: ud, payload: 512B, window: 32"), alone("qps_per_thread: 16, spread: 16, payload: 4KiB"), alone("verb: faa, threads: 8, qps_per_thread: 8, mr_size: 8B"),
		twoInto("payload: 1MiB, window: 8", "cores: [8], payload: 64B, window: 16"), twoInto("payload: 4KiB, window: 16", "cores: [8], verb: read, payload: 4KiB, window: 8"),
		twoInto("transport: ud, payload: 712B, qps_per_thread: 4, window: 12", "cores: [8, 9], verb: send, payload: 982116B, threads: 2, window: 5, on_demand: explicit"),
		twoInto("transport: uc, payload: 32396B, qps_per_thread: 4, window: 157, signal_every: 48", "cores: [8, 9, 10, 11], transport: ud, payload: 247B, threads: 4, window: 4"),
	} {
		us := func(d time.Duration) string { return fmt.Sprintf("%dus", d.Microseconds()) }
		run := func(warmup, duration time.Duration) *Outcome {
			var changes []Setting
			for i := range strings.Count(text, "{name: ") {
				changes = append(changes, Setting{fmt.Sprintf("traffic.%d.warmup", i), us(warmup)}, Setting{fmt.Sprintf("traffic.%d.duration", i), us(duration)})
			}
			return looked(t, text, changes...)
		}
		var long *Outcome
		for _, duration := range []time.Duration{25 * time.Microsecond, 100 * time.Microsecond, 400 * time.Microsecond} {
			short := run(20*time.Microsecond, duration)
			for _, i := range short.quiet() {
				r := short.Results[i]
				if long == nil {
					long = run(300*time.Microsecond, 1500*time.Microsecond)
				}
				quiet++
				if off := math.Abs(long.Results[i].Rate()/r.Rate() - 1); off > max(r.Confidence, steady) {
					t.Errorf("%s\n%v: load %s has %.4g messages/s, ±%.1f %%, and %.4g in a longer time, without a note", text, duration, short.loads[i].Name, r.Rate(), 100*r.Confidence, long.Results[i].Rate())
				}
			}
		}
	}
	if quiet < 10 { // of 50
		t.Errorf("%d rates have no note: the test shows little", quiet)
	}
}

// TestSentRatesAreConserved: what a host sends on uc and ud is no more than its port carries,
// however long the messages are that are under way.
func TestSentRatesAreConserved(t *testing.T) {
	for _, duration := range []string{"20us", "47us", "150us"} {
		out := runText(t, twoInto("transport: uc, payload: 32396B, mtu: 256, qps_per_thread: 4, window: 157, signal_every: 48, postlist: 103, warmup: 32us, duration: "+duration,
			"transport: ud, payload: 247B, cores: [8, 9, 10, 11, 12, 13, 14, 15], threads: 8, qps_per_thread: 26, window: 4, warmup: 32us, duration: "+duration))
		sum := 0.0
		for i, r := range out.Results {
			sum += r.Rate() * float64(out.loads[i].Payload) * 8 / 1e9
		}
		if sum > 100 {
			t.Errorf("%s: %.1f Gb/s sent together by a port of 100 Gb/s", duration, sum)
		}
	}
}
