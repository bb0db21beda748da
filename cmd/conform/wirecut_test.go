package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/oracle"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

var (
	wireCuts    = flag.Int("wire-cuts", 4000, "cuts of captures that are judged (0: all of each capture)")
	wireCutSeed = flag.Uint64("wire-cut-seed", 0, "seed of the cuts, and of the random scenarios whose captures are cut")
)

// What a tap has not seen is no violation: a capture that begins late, ends early, shows one
// direction, one flow or some opcodes, or lacks frames anywhere breaks no rule that the whole
// capture keeps.
func TestWireOfCutCaptures(t *testing.T) {
	corpus := cutCorpus(t)
	n := *wireCuts
	if testing.Short() {
		n = min(n, 300)
	}
	share := n/len(corpus) + 1
	if n == 0 {
		share = 1 << 30
	}
	sum := 0
	for i, w := range corpus {
		r := rand.New(rand.NewPCG(*wireCutSeed, uint64(i)))
		cuts := cutsOf(w.capture, r)
		r.Shuffle(len(cuts), func(i, j int) { cuts[i], cuts[j] = cuts[j], cuts[i] })
		cuts = cuts[:min(share, len(cuts))]
		sum += len(cuts)
		t.Run(w.name, func(t *testing.T) { w.check(t, cuts) })
	}
	t.Logf("%d cuts of %d captures", sum, len(corpus))
}

// A part of a capture is told what shows that frames are missing, and counts what is sent again to
// its end; a proof in the file wins over the claim that it is complete.
func TestWireSaysWhatIsMissing(t *testing.T) {
	lossy := captureOf(t, "name: s\ntraffic: [{payload: 16KiB, window: 16, messages: 60, ack_timeout: 10}]\nfaults: [{do: drop, per_million: 5000}]\n")
	small := captureOf(t, "name: s\ntraffic: [{payload: 64, window: 16, messages: 40}]\n")
	for _, c := range []struct {
		capture  string
		from, to int
		flags    string
		want     string
	}{
		{small, 1, 1 << 20, "", "frames are missing, by frame"},
		{small, 1, 1 << 20, "--complete", "before the first request that was seen"},
		{lossy, 5, 1 << 20, "", "frames are missing, by frame"},
		{lossy, 5, 1 << 20, "--complete", "frames are missing, by frame"},
	} {
		code, out, errs := judgeFile(t, append(strings.Fields(c.flags), partOf(t, c.capture, c.from, c.to, true))...)
		if code != exitOK || !strings.Contains(out, c.want) || !strings.Contains(out, " 0 violations") {
			t.Errorf("from frame %d, %q: exit %d\n%s%s", c.from+1, c.flags, code, out, errs)
		}
	}
	if code, out, errs := judgeFile(t, "--complete", oneWay(t, lossy)); code != exitOK || !strings.Contains(out, "no answer was seen") {
		t.Errorf("requests alone: exit %d\n%s%s", code, out, errs)
	}
	whole := wholeCaptures(t, "lossy", lossy, oracle.Options{})[0].capture
	for name, change := range map[string]func(f []oracle.Frame) []oracle.Frame{
		"a frame is missing": func(f []oracle.Frame) []oracle.Frame { return slices.Delete(f, 4, 5) },
		"a frame was edited": func(f []oracle.Frame) []oracle.Frame { f[4].Fate = oracle.Edited; return f },
	} {
		frames := change(slices.Clone(whole.Frames))
		want, highest, sender := 0, -1, ""
		for _, f := range frames {
			p, err := roce.Parse(f.Data)
			if err != nil {
				t.Fatal(err)
			}
			if sender == "" {
				sender = fmt.Sprint(p.SrcGID())
			}
			if fmt.Sprint(p.SrcGID()) != sender {
				continue
			}
			if psn := int(p.BTH().PSN()); psn <= highest {
				want++
			} else {
				highest = psn
			}
		}
		res := oracle.Judge(oracle.Capture{Frames: frames}, oracle.Options{})
		if flow := res.Flows[0]; want < 20 || flow.Resent != want || flow.Gaps == 0 && flow.JudgedTo == 0 {
			t.Errorf("%s: %d packets are sent again: %+v", name, want, flow)
		}
	}
}

// oneWay is a copy of a capture of another program, with the packets that the sender of the first
// one sends.
func oneWay(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, packets, err := pcap.Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "way.pcapng")
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pcap.NewWriter(f, "another program", "a")
	for _, p := range packets {
		if bytes.Equal(p.Data[6:12], packets[0].Data[6:12]) {
			err = errors.Join(err, w.Write(0, p.Time, p.Data, ""))
		}
	}
	if err = errors.Join(err, w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return out
}

// wholeCapture is a capture that is to be cut, and how it is judged.
type wholeCapture struct {
	name    string
	capture oracle.Capture
	opts    oracle.Options // with those of the whole
}

// check judges cuts of a capture as parts of one of the simulator, whose frames carry what became
// of them, and as a file of others.
func (w *wholeCapture) check(t *testing.T, cuts []cut) {
	broken := map[string]bool{}
	for _, v := range oracle.Judge(w.capture, w.opts).Verdicts {
		broken[v.Rule+v.Flow] = broken[v.Rule+v.Flow] || v.Kind == oracle.Violation
	}
	needComplete := map[string]bool{}
	for _, r := range oracle.Rules() {
		needComplete[r.ID] = r.Complete
	}
	for i, c := range cuts {
		opts, frames := w.opts, c.of(w.capture.Frames)
		opts.Complete, opts.Delivered = false, false
		if i%2 == 1 { // another format has no comments
			opts.Reconnects = false
			for k := range frames {
				if f := &frames[k]; f.Fate != oracle.Edited && f.Fate != oracle.Corrupted {
					f.Fate = oracle.Sent
				}
			}
		}
		verdicts := oracle.Judge(oracle.Capture{Frames: frames}, opts).Verdicts
		if at := slices.IndexFunc(verdicts, func(v oracle.Verdict) bool {
			return v.Kind == oracle.Violation && (needComplete[v.Rule] || !broken[v.Rule+v.Flow])
		}); at >= 0 {
			t.Errorf("%s (comments %t): %v", c.name, i%2 == 0, verdicts[at])
		}
	}
}

// cut is a part of a capture.
type cut struct {
	name string
	keep func(i int) bool
}

func (c cut) of(frames []oracle.Frame) []oracle.Frame {
	var out []oracle.Frame
	for i, f := range frames {
		if c.keep(i) {
			out = append(out, f)
		}
	}
	return out
}

// cutsOf lists cuts of a capture.
func cutsOf(c oracle.Capture, r *rand.Rand) []cut {
	n := len(c.Frames)
	var cuts []cut
	add := func(keep func(i int) bool, format string, a ...any) {
		cuts = append(cuts, cut{fmt.Sprintf(format, a...), keep})
	}
	between := func(from, to int) func(i int) bool { return func(i int) bool { return i >= from && i < to } }
	without := func(from, to int) func(i int) bool { return func(i int) bool { return i < from || i >= to } }
	for k := 1; k <= 40 && k < n; k++ {
		add(between(k, n), "from frame %d", k+1)
		add(between(0, k), "up to frame %d", k)
	}
	for range 50 {
		from, to := r.IntN(n), r.IntN(n)+1
		add(between(from, n), "from frame %d", from+1)
		add(between(0, to), "up to frame %d", to)
		add(between(min(from, to-1), max(from+1, to)), "frames %d to %d", min(from, to-1)+1, max(from+1, to))
	}
	of := map[string][]bool{} // which frames have a property
	for i, f := range c.Frames {
		for _, p := range properties(f) {
			if of[p] == nil {
				of[p] = make([]bool, n)
			}
			of[p][i] = true
		}
	}
	var names []string
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		add(func(i int) bool { return of[name][i] }, "only %s", name)
		add(func(i int) bool { return !of[name][i] }, "without %s", name)
	}
	for i := range n {
		add(without(i, i+1), "without frame %d", i+1)
	}
	for range n / 2 {
		from, length := r.IntN(n), 2+r.IntN(19)
		add(without(from, from+length), "without frames %d to %d", from+1, from+length)
	}
	for _, loss := range []uint64{1, 10, 50, 90} {
		for range 40 {
			seed := r.Uint64()
			add(func(i int) bool { return rand.New(rand.NewPCG(seed, uint64(i))).Uint64N(100) >= loss }, "without %d %% (seed %d)", loss, seed)
		}
	}
	for range n / 2 {
		a, b := cuts[r.IntN(len(cuts))], cuts[r.IntN(len(cuts))]
		add(func(i int) bool { return a.keep(i) && b.keep(i) }, "%s, %s", a.name, b.name)
	}
	return cuts
}

// properties are what a filter may select a frame by: sender, flow, the two together with what
// comes back, and opcode.
func properties(f oracle.Frame) []string {
	parse := roce.Parse
	if f.InfiniBand {
		parse = roce.ParseInfiniBand
	}
	p, err := parse(f.Data)
	if err != nil {
		return nil
	}
	from, to, port := fmt.Sprint(p.SrcGID()), fmt.Sprint(p.DstGID()), "none"
	if f.InfiniBand {
		from, to = fmt.Sprint(p.LRH().SLID()), fmt.Sprint(p.LRH().DLID())
	} else {
		port = fmt.Sprint(p.UDP().SrcPort())
	}
	return []string{"from " + from, fmt.Sprintf("from %s to %s QP %#x", from, to, p.BTH().DestQP()), "port " + port, "opcode " + p.Info().Name}
}

// cutCorpus is the captures that are cut: all that are stored, and those of simulated runs.
func cutCorpus(t *testing.T) []*wholeCapture {
	var all []*wholeCapture
	stored, err := filepath.Glob("../../fixtures/captures/rxe/*/*.pcap")
	if err != nil || len(stored) < 38 {
		t.Fatalf("%d stored captures, %v", len(stored), err)
	}
	for _, name := range stored {
		all = append(all, wholeCaptures(t, strings.TrimPrefix(name, "../../fixtures/captures/"), name, oracle.Options{})...)
	}
	for _, s := range cutScenarios {
		opts := oracle.Options{Reconnects: true}
		if strings.Contains(s.text, "selective_repeat") {
			opts.Sender = oracle.SelectiveRepeat
		}
		all = append(all, wholeCaptures(t, s.name, captureOf(t, s.text), opts)...)
	}
	for i := range uint64(6) {
		text, flags := drawScenario(rand.New(rand.NewPCG(*wireCutSeed<<8|i, 2)))
		opts := oracle.Options{Reconnects: true, ODP: slices.Contains(flags, "--odp")}
		if slices.Contains(flags, "selective-repeat") {
			opts.Sender = oracle.SelectiveRepeat
		}
		if capture, err := captured(t, text); err == nil {
			all = append(all, wholeCaptures(t, fmt.Sprintf("scenario-%d", i), capture, opts)...)
		}
	}
	suite := filepath.Join(t.TempDir(), "suite.pcapng")
	if code, out, stderr := command(t, "--target=sim", "--label-filter", "(CM || XRC || /RC-00./) && !RAND", "--pcap", suite); code != exitOK {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	return append(all, wholeCaptures(t, "suite", suite, oracle.Options{Reconnects: true})...)
}

// wholeCaptures reads the runs of a file, those of more frames than a case needs left out.
func wholeCaptures(t *testing.T, name, file string, opts oracle.Options) []*wholeCapture {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, packets, err := pcap.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := oracle.Runs(r, packets)
	if err != nil {
		t.Fatal(err)
	}
	opts.Complete = true
	var all []*wholeCapture
	for _, c := range runs {
		edited := slices.ContainsFunc(c.Frames, func(f oracle.Frame) bool { return f.Fate == oracle.Edited })
		if n := len(c.Frames); n > 1 && n < 6000 && !edited { // what answers a frame that nobody sees was edited is nothing that a rule knows
			all = append(all, &wholeCapture{strings.TrimSpace(name + " " + c.Name), c, opts})
		}
	}
	return all
}

// cutScenarios are runs whose captures are cut.
var cutScenarios = []struct{ name, text string }{
	{"small-16", "name: s\ntraffic: [{payload: 64, window: 16, messages: 200}]\n"},
	{"small-128", "name: s\ntraffic: [{payload: 64, window: 128, messages: 300}]\n"},
	{"lossy", "name: s\ntraffic: [{payload: 16KiB, window: 16, messages: 60, ack_timeout: 10}]\nfaults: [{do: drop, per_million: 5000}]\n"},
	{"repeat", "name: s\nset: {hca.selective_repeat: true}\ntraffic: [{payload: 16KiB, window: 16, messages: 60, ack_timeout: 10}]\n" +
		"faults: [{do: drop, per_million: 5000}]\n"},
	{"reads", "name: s\ntraffic: [{verb: read, payload: 8KiB, window: 16, messages: 60, rd_atomic: 4, ack_timeout: 10}]\nfaults: [{do: drop, per_million: 5000}]\n"},
	{"atomics", "name: s\ntraffic: [{window: 16, messages: 200, ack_timeout: 10, payload: 8, mix: [{verb: faa}, {verb: send}]}]\n" +
		"faults: [{do: drop, per_million: 10000}]\n"},
	{"rnr", "name: s\ntraffic: [{verb: send, payload: 3000, window: 64, messages: 150, recv_depth: 4, min_rnr_timer: 5}]\nfaults: [{do: drop, per_million: 3000}]\n"},
	{"unreliable", "name: s\ntraffic: [{transport: uc, verb: send, payload: 8KiB, window: 16, messages: 60}, {transport: ud, payload: 512, messages: 60}]\n" +
		"faults: [{do: drop, per_million: 5000}]\n"},
	{"congestion", "name: s\nhosts: 3\nlink: switch\nset: {congestion.dcqcn: true, switch.ecn_min: 20KiB, switch.ecn_max: 100KiB}\n" +
		"traffic: [{from: 0, to: 2, payload: 16KiB, window: 16, messages: 60}, {from: 1, to: 2, payload: 16KiB, window: 16, messages: 60}]\n"},
	{"both-ways", "name: s\ntraffic: [{payload: 8KiB, window: 16, messages: 40, both_ways: true, ack_timeout: 10, mix: [{verb: read}, {verb: write}]}]\n" +
		"faults: [{do: drop, per_million: 5000}]\n"},
	{"infiniband", "name: s\nprofile: connectx-5-ib\ntraffic: [{payload: 16KiB, window: 16, messages: 40, ack_timeout: 10, qps_per_thread: 3}, " +
		"{from: 1, to: 0, verb: read, payload: 8KiB, window: 8, messages: 40}]\nfaults: [{do: drop, per_million: 5000}]\n"},
}
