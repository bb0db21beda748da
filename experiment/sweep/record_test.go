package sweep

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/studies"
)

// A recorded sweep gives the bytes of one by workers, with seeds and samples too, and its capture
// names each run.
func TestRecordedSweep(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const faulty = "name: q\nfaults: [{do: drop, direction: requests, flow: 1, packet: 5, iteration: 1}]\n" +
		"traffic: [{name: writes, messages: 10}, {name: pings, cores: [0], measure: latency, messages: 10}]\n"
	for _, f := range []Flags{
		{Sweep: []string{"traffic.0.payload=2B,64B,4KiB", "uar.bf_conflict=none,serialize"}},
		{Sweep: []string{"profile=connectx-4,connectx-5", "faults.0.packet=5,6"}, Seeds: 2},
		{Sweep: []string{"traffic.0.window=1:64:1"}, Sample: "4"},
		{Sweep: []string{"traffic.0.inline=true", "traffic.0.payload=2B,4KiB,64B"}}, // 4 KiB cannot be inline
	} {
		p := planOf(t, faulty, f)
		a, _, err := runPlan(t, p, optionsOf(t, 2, t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		want := bytesOf(t, a)
		p.Request.Pcap = filepath.Join(t.TempDir(), "q.pcapng")
		a, out, err := runPlan(t, p, optionsOf(t, 2, t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range bytesOf(t, a) {
			if text != want[name] {
				t.Errorf("%v: %s:\n%s\nwant\n%s", f, name, text, want[name])
			}
		}
		frames, err := os.ReadFile(p.Request.Pcap)
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.prepare()
		if err != nil {
			t.Fatal(err)
		}
		for i, state := range out.state {
			if name := r.pointName(i); state == done && !strings.Contains(string(frames), name) {
				t.Errorf("%v: no frames of %s", f, name)
			}
		}
	}
}

// A capture that cannot be written is wrong usage.
func TestRecordedSweepWithoutAPlace(t *testing.T) {
	p := planOf(t, question, Flags{Seeds: 2})
	p.Request.Pcap = "/nonexistent/q.pcapng"
	_, _, err := runPlan(t, p, optionsOf(t, 1, t.TempDir()))
	if bad := (*experiment.UsageError)(nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), "--pcap") {
		t.Errorf("%v", err)
	}
}

// A sweep is drawn against its first key, with a line for each value of the others; one over an
// experiment has a line for each point.
func TestSweepIsDrawn(t *testing.T) {
	p := planOf(t, "name: mine\ntraffic: [{name: writes, messages: 100}, {name: pings, cores: [3], measure: latency, messages: 10}]\n",
		Flags{Sweep: []string{"traffic.0.payload=2B,64B,4KiB", "uar.bf_conflict=none,serialize"}})
	x, err := studies.Find("uar-factorial")
	if err != nil {
		t.Fatal(err)
	}
	own, err := NewPlan(t.Context(), x.Name, x, experiment.Request{Seed: 1, Set: []string{"duration_us=10"}}, Flags{Sweep: []string{"threads=2,4"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		plan  *Plan
		wants map[string]string
	}{
		{p, map[string]string{"mine-limit.svg": "what limits the loads|>CPU<|>uar.bf_conflict=none<",
			"mine-rate.svg":    "rate of each load (writes)|>uar.bf_conflict=none<|4KiB|profile connectx-5|seed 1|rdmasim 1.2.3",
			"mine-latency.svg": "median latency of each load (pings)|>uar.bf_conflict=serialize<"}},
		{own, map[string]string{"uar-factorial.svg": ">shared by 2, lock=none, threads=2<|>shared by all, lock=QP lock, threads=4<|>own<"}},
	} {
		a, _, err := runPlan(t, c.plan, optionsOf(t, 1, t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		files := bytesOf(t, a)
		for name, texts := range c.wants {
			for _, want := range strings.Split(texts, "|") {
				if !strings.Contains(files[name], want) {
					t.Errorf("%s has no %q", name, want)
				}
			}
		}
		if len(a.Result.Hypotheses) == 0 {
			t.Error("no hypotheses")
		}
	}
}
