package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

var (
	wireScenarios = flag.Int("wire-scenarios", 30, "random scenarios whose captures are judged")
	wireSeed      = flag.Uint64("wire-seed", 0, "number of the first of them")
)

// Whatever a scenario does, its capture breaks no rule when it is judged by the flags that belong
// to it.
func TestWireOfRandomScenarios(t *testing.T) {
	n := *wireScenarios
	if testing.Short() {
		n = min(n, 5)
	}
	for i := range n {
		seed := *wireSeed + uint64(i)
		text, flags := drawScenario(rand.New(rand.NewPCG(seed, 1)))
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			capture, err := captured(t, text)
			if err != nil && strings.Contains(err.Error(), "no completion in 1s") { // it waits for longer than a load does
				t.Skip(err)
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			code, out, errs := judgeFile(t, append(flags, capture)...)
			if code != exitOK || !strings.Contains(out, " 0 violations") {
				t.Errorf("%v: exit %d\n%s\n%.1500s%s", flags, code, text, violations(out), errs)
			}
		})
	}
}

// Scenarios whose captures were judged wrong, each with why.
func TestWireOfScenariosThatWereJudgedWrong(t *testing.T) {
	const two, wide = "name: s\n", "name: s\nhosts: 3\nlink: switch\n"
	for _, c := range []struct{ why, flags, text string }{
		{"answers of READs that come late are missing where they should be", "--sender selective-repeat", wide + `profile: generic-roce
set: {hca.selective_repeat: true}
traffic: [{from: 1, to: 2, messages: 100, window: 4, payload: 16KiB, mtu: 256, ack_timeout: 8, recv_depth: 4, mix: [{verb: send, weight: 2}, {verb: read}]}]
faults: [{do: delay, delay: 20us, per_million: 5000}, {do: corrupt, direction: responses, per_million: 5000}]`},
		{"a NAK and an ACK for one late request", "", two + `traffic: [{messages: 200, window: 64, payload: 8, mtu: 4096, rd_atomic: 1, recv_depth: 4, mix: [{verb: write_imm, weight: 2}, {verb: faa}]}]
faults: [{do: delay, delay: 1us, packet: 1, iteration: 1, count: 1}]`},
		{"a switch marks behind the tap", "", wide + `profile: generic-roce
set: {congestion.dcqcn: true, switch.ecn_min: 20KiB, switch.ecn_max: 100KiB}
traffic:
  - {from: 1, to: 2, messages: 50, window: 4, transport: uc, verb: send, payload: 3000}
  - {from: 0, to: 2, messages: 200, window: 64, payload: 2KiB, mtu: 256, verb: write_imm, qps_per_thread: 3}`},
		{"a READ is asked for again while its answer comes, and new requests follow", "--odp", wide + `profile: connectx-5-ib
traffic: [{from: 0, to: 2, messages: 200, window: 16, payload: 64, min_rnr_timer: 5, ack_timeout: 8, mix: [{verb: write_imm}, {verb: read}], on_demand: implicit, on_demand_at: to, mr_size: 64KiB, access: random, signal_every: 2}]
faults: [{do: drop, per_million: 20000}]`},
		{"an RNR NAK for a second try that was on its way", "--odp", two + `set: {hca.adaptive_schedule: lumina, hca.ack_timeout_min: 0}
traffic:
  - {from: 0, to: 1, messages: 200, window: 16, transport: uc, verb: write_imm, payload: 3000}
  - {from: 1, to: 0, messages: 200, window: 16, payload: 16KiB, mtu: 4096, rd_atomic: 4, min_rnr_timer: 5, ack_timeout: 8, recv_depth: 4, mix: [{verb: read, weight: 2}, {verb: write}], on_demand: implicit, on_demand_at: to, mr_size: 1MiB, access: random, signal_every: 2}
faults: [{do: drop, direction: responses, per_million: 20000}, {do: mark, direction: requests, packet: 34, iteration: 2, count: 1}]`},
		{"requests behind a repeated READ do not show the MTU", "--odp --sender selective-repeat", wide + `set: {hca.selective_repeat: true, hca.adaptive_schedule: lumina, hca.ack_timeout_min: 0}
traffic:
  - {from: 0, to: 2, messages: 100, window: 16, payload: 3000, mtu: 4096, rd_atomic: 1, min_rnr_timer: 5, ack_timeout: 8, recv_depth: 128, mix: [{verb: send, weight: 2}, {verb: read}], on_demand: implicit, on_demand_at: from, mr_size: 1MiB, access: fixed, signal_every: 4}
  - {from: 1, to: 2, messages: 200, window: 1, transport: ud, payload: 512}
faults: [{do: drop, per_million: 20000}, {do: drop, direction: requests, packet: 20, iteration: 2, count: 1}]`},
		{"a READ is repeated whole while its answers come", "", wide + `set: {hca.credits: true, hca.adaptive_schedule: lumina, hca.ack_timeout_min: 0}
traffic: [{from: 1, to: 2, messages: 50, window: 16, payload: 16KiB, mtu: 256, rd_atomic: 4, ack_timeout: 12, recv_depth: 128, mix: [{verb: send}, {verb: read}], signal_every: 2}]
faults: [{do: drop, direction: responses, per_million: 1000}, {do: corrupt-fcs, direction: responses, per_million: 5000}]`},
		{"a NAK is acted on when newer answers have come", "", `name: random
set: {hca.credits: true}
traffic:
  - {from: 0, to: 1, messages: 200, window: 16, payload: 16KiB, mtu: 1024, rd_atomic: 4, min_rnr_timer: 1, ack_timeout: 12, recv_depth: 4, mix: [{verb: read, weight: 2}, {verb: write_imm}], qps_per_thread: 3}
  - {from: 0, to: 1, messages: 200, window: 4, transport: uc, verb: write_imm, payload: 3000}
faults: [{do: corrupt-fcs, per_million: 20000}]`},
		{"a message is sent again from memory in which the answer of an atomic has landed", "", two + `traffic: [{window: 64, messages: 300, ack_timeout: 10, payload: 8, mix: [{verb: faa}, {verb: send}]}]
faults: [{do: drop, per_million: 20000}]`},
		{"nothing is cut from a frame that is short enough", "", two + `profile: connect-ib
traffic: [{from: 1, to: 0, messages: 200, window: 4, payload: 8, mtu: 256, mix: [{verb: send, weight: 3}, {verb: read}]}]
faults: [{do: truncate, keep: 40, packet: 15, iteration: 1, count: 1}]`},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			code, out, errs := judgeFile(t, append(strings.Fields(c.flags), captureOf(t, c.text))...)
			if code != exitOK || !strings.Contains(out, " 0 violations") {
				t.Errorf("exit %d\n%.1500s%s", code, violations(out), errs)
			}
		})
	}
}

// violations is what a judgement says of them, and its last line.
func violations(out string) string {
	var keep []string
	for l := range strings.Lines(out) {
		if strings.Contains(l, "violation") {
			keep = append(keep, l)
		}
	}
	return strings.Join(keep, "")
}

// draw draws scenarios.
type draw struct {
	*rand.Rand
	text  strings.Builder
	flags []string // by which the capture is to be judged
	roce  bool     // on Ethernet
	pages bool     // the device pages on demand
	wide  bool     // three hosts at a switch instead of two at a cable
}

func (d *draw) of(s ...string) string { return s[d.IntN(len(s))] }

// one is true once in n.
func (d *draw) one(n int) bool { return d.IntN(n) == 0 }

func (d *draw) line(format string, a ...any) { fmt.Fprintf(&d.text, format+"\n", a...) }

// drawScenario draws a scenario, and the flags by which its capture is to be judged.
func drawScenario(r *rand.Rand) (text string, flags []string) {
	d := &draw{Rand: r}
	profile := d.of("connectx-5", "connectx-5", "connectx-5", "connectx-5-ib", "connectx-6", "connectx-4", "connect-ib", "generic-roce")
	d.roce = profile != "connectx-5-ib" && profile != "connectx-6" && profile != "connect-ib"
	d.pages = profile != "generic-roce" && profile != "connect-ib" && d.one(2)
	d.line("name: random\nprofile: %s", profile)
	if d.wide = d.one(2); d.wide {
		d.line("hosts: 3\nlink: switch")
	}
	d.values()
	d.line("traffic:")
	for range 1 + d.IntN(2) {
		d.load()
	}
	if n := d.IntN(3); n > 0 {
		d.line("faults:")
		for range n {
			d.fault()
		}
	}
	return d.text.String(), d.flags
}

// values draws values of the profile.
func (d *draw) values() {
	var set []string
	if d.one(2) {
		set = append(set, "hca.selective_repeat: true")
		d.flags = append(d.flags, "--sender", "selective-repeat")
	}
	if d.one(3) && d.roce {
		set = append(set, "congestion.dcqcn: true", "switch.ecn_min: 20KiB", "switch.ecn_max: 100KiB")
	}
	if d.one(4) && d.roce {
		set = append(set, "link.pfc: true")
	}
	if d.one(4) {
		set = append(set, "hca.credits: true")
	}
	if d.one(4) {
		set = append(set, "hca.adaptive_schedule: lumina, hca.ack_timeout_min: 0")
	}
	if len(set) > 0 {
		d.line("set: {%s}", strings.Join(set, ", "))
	}
}

// load draws a load.
func (d *draw) load() {
	window := d.of("1", "4", "16", "64")
	ends := fmt.Sprintf("from: %d, to: 2", d.IntN(2))
	if !d.wide {
		ends = d.of("from: 0, to: 1", "from: 1, to: 0")
	}
	load := []string{ends, "messages: " + d.of("50", "100", "200"), "window: " + window}
	add := func(s ...string) { load = append(load, s...) }
	switch transport := d.of("rc", "rc", "rc", "rc", "rc", "uc", "ud"); transport {
	case "uc":
		add("transport: uc", "verb: "+d.of("write", "write_imm", "send"), "payload: "+d.of("2", "3000", "16KiB"))
	case "ud":
		add("transport: ud", "payload: "+d.of("8", "512"))
	default:
		add(d.reliable(window)...)
	}
	d.line("  - {%s}", strings.Join(load, ", "))
}

// reliable draws what belongs to reliable connections.
func (d *draw) reliable(window string) []string {
	verbs := []string{d.of("write", "write_imm", "send", "read", "faa", "cas"), d.of("write", "write_imm", "send", "read", "faa")}
	atomic := verbs[0] == "faa" || verbs[0] == "cas" || verbs[1] == "faa"
	if atomic && d.one(2) {
		verbs[0], verbs[1] = d.of("faa", "cas"), d.of("faa", "cas", "read")
	}
	payload := d.of("8", "64", "2KiB", "3000", "16KiB", "16KiB")
	if atomic {
		payload = "8"
	}
	load := []string{"payload: " + payload, "mtu: " + d.of("256", "1024", "4096"), "rd_atomic: " + d.of("1", "4", "16"),
		"min_rnr_timer: " + d.of("1", "5", "12"), "ack_timeout: " + d.of("8", "12", "14"), "recv_depth: " + d.of("4", "128")}
	load = append(load, fmt.Sprintf("mix: [{verb: %s, weight: %d}, {verb: %s}]", verbs[0], 1+d.IntN(3), verbs[1]))
	if d.pages && !atomic {
		d.flags = append(d.flags, "--odp")
		load = append(load, "on_demand: "+d.of("explicit", "implicit"), "on_demand_at: "+d.of("from", "to", "both"),
			"mr_size: "+d.of("64KiB", "1MiB", "4MiB"), "access: "+d.of("fixed", "random"))
	}
	both := true // both ways
	for _, v := range verbs {
		both = both && (v == "write" || v == "read" || v == "faa" || v == "cas")
	}
	switch {
	case both && d.one(3):
		load = append(load, "both_ways: true")
	case d.one(3) && window != "1":
		load = append(load, "signal_every: "+d.of("2", "4"))
	case d.one(3):
		load = append(load, "qps_per_thread: 3")
	}
	return load
}

// fault draws a fault. Edits are left out: a frame that somebody edits may break a rule.
func (d *draw) fault() {
	do := d.of("drop", "drop", "drop", "drop", "corrupt", "corrupt-fcs", "delay", "duplicate", "reorder", "mark", "truncate")
	f := "do: " + do
	switch do {
	case "delay":
		f += ", delay: " + d.of("1us", "20us", "200us")
	case "truncate":
		f += ", keep: 40"
	}
	direction := d.of("", "requests", "responses")
	if direction != "" {
		f += ", direction: " + direction
	}
	if d.one(3) && direction != "responses" {
		f += fmt.Sprintf(", packet: %d, iteration: %d, count: 1", 1+d.IntN(60), 1+d.IntN(2))
	} else {
		f += ", per_million: " + d.of("1000", "5000", "20000")
	}
	d.line("  - {%s}", f)
}
