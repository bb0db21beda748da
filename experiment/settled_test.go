package experiment

import (
	"strings"
	"testing"
)

// What a steady rate depends on, and has not settled, is said beside it; and nothing of one that
// has.
func TestNotesOfWhatHasNotSettled(t *testing.T) {
	alone := func(load string) string { return "name: x\ntraffic: [{name: a, " + load + "}]\n" }
	lossy := func(perMillion, load string) string {
		return "name: x\nset: {link.pfc: false, congestion.dcqcn: false}\nfaults: [{do: drop, direction: responses, per_million: " + perMillion + "}]\ntraffic: [{name: a, " + load + "}]\n"
	}
	const faults, mix, timer, standing = "a device waited for page faults", "what that verb costs", "waits for its ACK timer", "got something delivered in the first quarter"
	const reads = "verb: read, payload: 1B, mtu: 256, threads: 7, qps_per_thread: 7, window: 8, postlist: 7, duration: "
	for _, c := range []struct{ text, want string }{
		{alone("mrs: 50, on_demand: explicit, on_demand_at: from, payload: 64B, window: 16, duration: 8ms"), faults},
		{alone("verb: read, mrs: 100, on_demand: explicit, on_demand_at: to, payload: 64B, window: 16, duration: 20ms"), faults},
		{alone("verb: send, mrs: 50, on_demand: explicit, on_demand_at: from, payload: 64B, window: 16, duration: 8ms"), faults},
		{alone("mrs: 4000, on_demand: explicit, payload: 4KiB, window: 1, duration: 100ms"), faults},
		{alone("access: random, mr_size: 32MiB, on_demand: explicit, payload: 64B, window: 16, duration: 60ms"), faults},
		{alone("mrs: 50, on_demand: explicit, on_demand_at: from, payload: 64B, window: 16, messages: 40"), faults},
		{alone("mrs: 50, on_demand: explicit, on_demand_at: from, payload: 64B, window: 16, warmup: 15ms, duration: 200us"), ""},
		{alone("mrs: 50, payload: 64B, window: 16, warmup: 20us, duration: 200us"), ""},
		{alone("mix: [{verb: write, weight: 999}, {verb: faa}], window: 16, mr_size: 64B, warmup: 20us, duration: 150us"), mix},
		{alone("mix: [{verb: write, weight: 1000}, {verb: faa, weight: 1000}], window: 16, mr_size: 64B, warmup: 20us, duration: 150us"), ""},
		{lossy("5000", reads+"200us"), timer},
		{lossy("5000", "payload: 4KiB, window: 4, duration: 2ms"), timer},
		{lossy("20494", reads+"384us"), standing},
		{alone(reads + "300us"), ""},
	} {
		notes := strings.Join(executed(t, c.text, Request{}).Notes, "\n")
		if !strings.Contains(notes, c.want) || c.want == "" && strings.Contains(notes, "give it") {
			t.Errorf("%s: no note with %q, or one too many:\n%s", c.text, c.want, notes)
		}
	}
}

// A mix has the shares of its weights in a short time as in a long one.
func TestMixInAShortTime(t *testing.T) {
	for _, weight := range []string{"1", "1000"} {
		text := "name: x\ntraffic: [{mix: [{verb: write, weight: " + weight + "}, {verb: faa, weight: " + weight + "}], window: 16, mr_size: 64B, duration: 150us}]\n"
		short, long := runText(t, text).Results[0].Rate(), runText(t, text, Setting{"traffic.0.duration", "1500us"}).Results[0].Rate()
		if short < 0.95*long || short > 1.05*long {
			t.Errorf("weights %s: %.4g messages/s in 150 us, and %.4g in 1.5 ms", weight, short, long)
		}
	}
}
