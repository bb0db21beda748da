package experiment

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/roce/fault"
)

var (
	scanned     = flag.Int("rates.scenarios", 60, "how many random scenarios TestRatesOfRandomLoads runs")
	scanFirst   = flag.Uint64("rates.first", 1, "the seed of its first scenario")
	scanLongest = flag.Int("rates.longest", 3000, "the longest measured time in microseconds")
	scanLossy   = flag.Int("rates.lossy", 20, "of how many in a hundred frames are lost")
)

// draws makes random scenarios.
type draws struct{ *rand.Rand }

func (d draws) chance(percent int) bool   { return d.IntN(100) < percent }
func (d draws) of(words ...string) string { return words[d.IntN(len(words))] }
func (d draws) scale(low, high float64) int {
	return int(low * math.Exp(d.Float64()*math.Log(high/low)))
}

// scenario has one load to four, on two hosts to four, which all begin and end together, and loss
// in some.
func (d draws) scenario() (text string, duration time.Duration) {
	if d.chance(10) {
		return d.settling()
	}
	var b strings.Builder
	hosts, link := 2, d.of("cable", "switch")
	if d.chance(50) {
		hosts, link = 3+d.IntN(2), "switch"
	}
	profile := d.of("connectx-5", "connectx-5", "connectx-5-ib", "connectx-4", "connectx-4-ib", "connect-ib", "connectx-6", "connectx-6dx", "connectx-4lx", "generic-roce")
	fmt.Fprintf(&b, "name: x\nhosts: %d\ncores: 64\nlink: %s\nprofile: %s\n", hosts, link, profile)
	if ethernet := !slices.Contains([]string{"connectx-5-ib", "connectx-4-ib", "connect-ib", "connectx-6"}, profile); ethernet {
		fmt.Fprintf(&b, "set: {link.pfc: %v, congestion.dcqcn: %v}\n", d.chance(20), d.chance(20))
	}
	if d.chance(*scanLossy) {
		fmt.Fprintf(&b, "faults: [{do: drop, per_million: %d}]\n", d.scale(20, 50000))
	}
	us := d.scale(1, 600)
	if d.chance(10) {
		us = d.scale(600, float64(*scanLongest))
	}
	when := fmt.Sprintf("warmup: %dus, duration: %dus", d.of0(40, d.scale(1, 60)), us)
	b.WriteString("traffic:\n")
	loads, core := 1, 0
	if d.chance(60) {
		loads = 2 + d.IntN(3)
	}
	for i := range loads {
		threads := d.load(&b, i, hosts, core, when)
		core += threads
	}
	return b.String(), time.Duration(us) * time.Microsecond
}

// settling has one load with a steady rate that may depend on something which has not settled:
// pages, a mix, queue pairs that wait for a timer.
func (d draws) settling() (text string, duration time.Duration) {
	us, faults, load := 0, "", ""
	switch d.IntN(3) {
	case 0:
		us = d.scale(2000, 10000)
		load = fmt.Sprintf("verb: %s, payload: %dB, mrs: %d, window: %d, on_demand: explicit, on_demand_at: %s", d.of("write", "read", "send"), d.scale(1, 4096), d.scale(20, 100), d.scale(1, 32), d.of("from", "to", "both"))
	case 1:
		us = d.scale(50, 1000)
		load = fmt.Sprintf("mix: [{verb: %s, weight: %d}, {verb: %s, weight: %d}], payload: 8B, mr_size: 64B, window: %d", d.of("write", "read"), d.scale(1, 1000), d.of("faa", "cas", "send"), d.scale(1, 1000), d.scale(1, 32))
	case 2:
		us = d.scale(150, 1500)
		faults = fmt.Sprintf("set: {link.pfc: false, congestion.dcqcn: false}\nfaults: [{do: drop, direction: responses, per_million: %d}]\n", d.scale(2000, 50000))
		load = fmt.Sprintf("verb: read, payload: %dB, mtu: 256, threads: %d, qps_per_thread: %d, window: %d", d.scale(1, 64), 1+d.IntN(8), 1+d.IntN(8), d.scale(1, 16))
	}
	return fmt.Sprintf("name: settling\ncores: 64\n%straffic: [{name: l0, %s, warmup: %dus, duration: %dus}]\n", faults, load, d.scale(1, 60), us), time.Duration(us) * time.Microsecond
}

// verbs is the verb of a load, or a mix with it.
func (d draws) verbs(transport, verb string) string {
	others := map[string][]string{"rc": {"write", "send", "read", "write_imm"}, "uc": {"write", "send", "write_imm"}}[transport]
	if verb == "faa" || verb == "cas" {
		others = append(others, "faa", "cas")
	}
	if len(others) == 0 || d.chance(85) {
		return "verb: " + verb
	}
	text := fmt.Sprintf("mix: [{verb: %s, weight: %d}", verb, d.scale(1, 1000))
	for range 1 + d.IntN(2) {
		text += fmt.Sprintf(", {verb: %s, weight: %d}", d.of(others...), d.scale(1, 1000))
	}
	return text + "]"
}

// of0 is 0 with a chance, or else n.
func (d draws) of0(percent, n int) int {
	if d.chance(percent) {
		return 0
	}
	return n
}

// load writes load i, whose threads have the cores from a number on, and returns how many there
// are.
func (d draws) load(b *strings.Builder, i, hosts, core int, when string) int {
	from, to := d.IntN(hosts), 1
	if d.chance(40) {
		to = d.IntN(hosts)
	}
	if from == to {
		from = (to + 1) % hosts
	}
	transport, verb := d.of("rc", "rc", "rc", "rc", "uc", "ud"), d.of("write", "write", "send", "send", "read", "read", "write_imm", "faa", "cas")
	mtu, payload, threads, qps, window := d.of("256", "1024", "1024", "4096"), d.scale(1, 1e6), 1, 1, d.scale(1, 256)
	if d.chance(30) {
		payload = d.scale(1, 512)
	}
	switch {
	case transport == "uc":
		verb = d.of("write", "send", "write_imm")
	case transport == "ud":
		most, _ := strconv.Atoi(mtu)
		verb, payload = "send", 1+d.IntN(most)
	case verb == "faa" || verb == "cas":
		payload = 8
	}
	if d.chance(40) {
		threads = 1 + d.IntN(8)
	}
	if d.chance(30) {
		qps = d.scale(1, 32)
	}
	for window > 1 && window*threads*qps*payload > 16<<20 { // what is under way when the time is over is waited for
		window /= 2
	}
	fmt.Fprintf(b, "  - {name: l%d, from: %d, to: %d, transport: %s, %s, mtu: %s, payload: %dB, threads: %d, qps_per_thread: %d, window: %d, cores: [%d", i, from, to, transport, d.verbs(transport, verb), mtu, payload, threads, qps, window, core)
	for c := range threads - 1 {
		fmt.Fprintf(b, ", %d", core+1+c)
	}
	b.WriteString("]")
	option := func(percent int, format string, args ...any) bool {
		chosen := d.chance(percent)
		if chosen {
			fmt.Fprintf(b, ", "+format, args...)
		}
		return chosen
	}
	signal := 1
	if !option(15, "spread: %d", 1+d.IntN(window)) {
		if d.chance(40) {
			signal = 1 + d.IntN(window)
		}
		fmt.Fprintf(b, ", signal_every: %d", signal)
		option(20, "postlist: %d", 1+d.IntN(window))
		if threads*qps > 1 {
			option(15, "cq_sharing: %d", 1+d.IntN(threads*qps))
		}
	}
	option(10, "work: %dns", d.scale(10, 20000))
	if !option(10, "access: random, mr_size: 4MiB") && payload <= 4096 {
		option(15, "mrs: %d, mr_size: 4KiB", d.scale(2, 1000))
	}
	if !option(30, "ack_timeout: 5") {
		option(20, "ack_timeout: %d", 6+d.IntN(10))
	}
	option(30, "recv_depth: %d", d.scale(1, 512))
	if transport == "rc" {
		option(10, "on_demand: explicit, on_demand_at: %s", d.of("from", "to", "both"))
		option(30, "rd_atomic: %d", 1+d.IntN(16))
	}
	fmt.Fprintf(b, ", %s}\n", when)
	return threads
}

// quiet are the loads of which a run prints a rate without a note.
func (out *Outcome) quiet() (loads []int) {
	res := &Result{}
	if out.noteRare(&Env{Out: res}, ""); len(res.Notes) > 0 {
		return nil
	}
	still, _ := out.neighbours()
	for i, l := range out.loads {
		if r := out.Results[i]; r.Failed == nil && out.why(i) == "" && !slices.Contains(still, l.Name) && len(out.endedBefore(i)) == 0 {
			loads = append(loads, i)
		}
	}
	return loads
}

// TestRatesOfRandomLoads: of the rates that are printed without a note, those of a run of 1.5 to 4
// ms, or four times as long, are in the 95 % confidence interval, or within 5 %, for 95 of 100, and
// no one is off by more than 15 %.
func TestRatesOfRandomLoads(t *testing.T) {
	rates, missed, notes, warned, rightly := 0, 0, 0, 0, 0
	n := uint64(*scanned)
	if testing.Short() {
		n /= 4
	}
	for seed := *scanFirst; seed < *scanFirst+n; seed++ {
		text, duration := draws{rand.New(rand.NewPCG(seed, 11))}.scenario()
		s, err := ParseScenario("s.yaml", []byte(text))
		if err != nil {
			continue // such as threads that share a CQ, with spread
		}
		p, err := s.LoadProfile()
		if err != nil {
			t.Fatal(err)
		}
		rec := &recorder{}
		if len(s.Faults) > 0 {
			plan, err := fault.NewPlan(s.doc, s.Faults)
			if err != nil {
				t.Fatal(err)
			}
			rec.expect(plan)
		}
		const tail = 20 * time.Millisecond // a load that stalls is waited for no longer
		out, err := s.runUntil(t.Context(), 1, p, rec, "", tail)
		if err == nil {
			err = s.lookAhead(t.Context(), 1, p, rec, out)
		}
		if err != nil { // such as what a profile does not page
			continue
		}
		quiet := out.quiet()
		var ending []int // have a note that they do not last
		for i, a := range out.later {
			if a.unlike(out.Results[i]) != "" {
				ending = append(ending, i)
			}
		}
		if notes += len(out.loads) - len(quiet); len(quiet)+len(ending) == 0 {
			continue
		}
		long := max(1500*time.Microsecond, min(20*duration, 4*time.Millisecond), 4*duration)
		if s.Name == "settling" {
			long = max(long, 30*time.Millisecond)
		}
		again := *s
		again.Traffic = slices.Clone(s.Traffic)
		for i := range again.Traffic {
			again.Traffic[i].Duration = 1000 * int64(long)
		}
		next, err := again.runUntil(t.Context(), 1, p, rec.silent(), "", out.Results[0].Begin+long+out.grace())
		if err != nil && len(quiet) > 0 {
			t.Errorf("seed %d: %v in a longer time\n%s", seed, err, text)
		}
		for _, i := range ending {
			if warned++; err != nil || math.Abs(next.Results[i].Rate()/out.Results[i].Rate()-1) > 0.8*max(out.Results[i].Confidence, steady) {
				rightly++
			}
		}
		if err != nil {
			continue
		}
		for _, i := range quiet {
			rates++
			r := out.Results[i]
			off := math.Abs(next.Results[i].Rate()/r.Rate() - 1)
			if off <= max(r.Confidence, steady) {
				continue
			}
			missed++
			report := t.Logf
			if off > 0.15 {
				report = t.Errorf
			}
			report("seed %d: load l%d has %.4g messages/s, ±%.1f %%, and %.4g in a longer time, without a note\n%s", seed, i, r.Rate(), 100*r.Confidence, next.Results[i].Rate(), text)
		}
	}
	t.Logf("%d rates without a note, %d of which a longer time does not bear out; %d with one, %d of them that the rate does not last, which a longer time bears out for %d", rates, missed, notes, warned, rightly)
	if missed*20 > rates || rates*8 < *scanned {
		t.Errorf("%d of %d rates are not borne out by a longer time", missed, rates)
	}
}
