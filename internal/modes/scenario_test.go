package modes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/studies"
)

// shipped is an experiment or a scenario with settings that make it short.
type shipped struct {
	name  string
	sets  [][]string // it is run with each
	trace bool       // it makes a single run, of which there is a timeline
	mute  bool       // it sends no frames, and refuses to capture any
}

// all lists every experiment and scenario that the program comes with: a new one is run with
// its defaults until it is given shorter ones here.
func all(t *testing.T) []shipped {
	short := []shipped{
		{name: "one-cq-or-many.yaml", trace: true, sets: [][]string{{"traffic.0.duration=30us"}, {"traffic.0.duration=30us", "traffic.0.cq_sharing=8"}}},
		{name: "request-response.yaml", trace: true, sets: [][]string{{"traffic.0.duration=20us", "traffic.1.duration=20us"}}},
		{name: "stream.yaml", trace: true, sets: [][]string{{"traffic.0.duration=20us"}}},
		{name: "gpu-memory.yaml", trace: true, sets: [][]string{{"traffic.0.duration=30us", "traffic.0.warmup=10us"}, {"traffic.0.duration=30us", "gpu.path=root"}}},
		{name: "incast.yaml", trace: true, sets: [][]string{{"traffic.0.clients=3", "traffic.0.threads=2", "traffic.0.messages=4", "link.pfc=true", "congestion.dcqcn=true"}}},
		{name: "loss.yaml", trace: true, sets: [][]string{{"traffic.0.duration=200us", "faults.0.per_million=20000"}}},
		{name: "loss-recovery.yaml", trace: true, sets: [][]string{{"traffic.0.duration=200us", "faults.0.per_million=20000", "hca.selective_repeat=true", "hca.repeat_scheme=sack"}}},
		{name: "uar-sharing", sets: [][]string{{"duration_us=10", "threads=2", "ablate=false"}, {"duration_us=10", "threads=3", "mode=dynamic", "ablate=false", "graph=2"}}},
		{name: "uar-factorial", sets: [][]string{{"duration_us=10", "threads=2"}}},
		{name: "odp", sets: [][]string{{"buffer_mib=1", "memory_mib=1", "swap_mib=16", "passes=1", "senders=2", "messages=2"}, {"scenario=thrash", "memory_mib=1", "message_kib=16"}}},
		{name: "xrc", sets: [][]string{{"clients=5", "days=10", "nodes=4", "processes=2"}, {"scenario=long-server", "design=d", "clients=50", "days=3", "both_percent=0"}}},
		{name: "completions", mute: true, sets: [][]string{{"duration_us=200", "scenario=load"}, {"scenario=burst", "handler_ns=700"}}},
		{name: "detection", sets: [][]string{{"timeout=17", "retry_cnt=2"}, {"cause=link-down", "payload=65536", "after_us=3"}}},
		{name: "bfreg-map", sets: [][]string{{}, {"mode=static", "tds=4"}}},
	}
	known := func(name string) bool {
		return slices.ContainsFunc(short, func(s shipped) bool { return s.name == name })
	}
	scenarios, err := experiment.Scenarios()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scenarios {
		if !known(s.File) {
			short = append(short, shipped{name: s.File, trace: true, sets: [][]string{{}}})
		}
	}
	for _, x := range studies.All() {
		if !known(x.Name) {
			short = append(short, shipped{name: x.Name, trace: !x.Many, sets: [][]string{{}}})
		}
	}
	return short
}

// artefacts runs an experiment and reads what it leaves.
func artefacts(t *testing.T, x shipped, set []string, seed uint64, lockstep, watched bool) map[string][]byte {
	dir := t.TempDir()
	req := experiment.Request{Set: set, Seed: seed, Lockstep: lockstep}
	if watched && !x.mute {
		req.Pcap = filepath.Join(dir, "capture")
		if x.trace {
			req.Trace = filepath.Join(dir, "timeline")
		}
	}
	e, err := studies.Open(t.Context(), x.name)
	if err != nil {
		t.Fatal(err)
	}
	res, err := e.Execute(context.Background(), req, func(int, int, string) {})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := res.Write(&b, "json"); err != nil {
		t.Fatal(err)
	}
	left := map[string][]byte{"result": b.Bytes()}
	for _, path := range []string{req.Pcap, req.Trace} {
		if path != "" {
			if left[filepath.Base(path)], err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	return left
}

// TestScenarios runs every shipped scenario and experiment in every mode, and with one OS
// thread.
func TestScenarios(t *testing.T) {
	for _, x := range all(t) {
		seeds := uint64(2)
		if testing.Short() || !x.trace {
			seeds = 1
		}
		for i, set := range x.sets {
			if testing.Short() && (i > 0 || !x.trace) {
				continue
			}
			t.Run(fmt.Sprint(x.name, set), func(t *testing.T) {
				for seed := uint64(1); seed <= seeds; seed++ {
					want := artefacts(t, x, set, seed, true, true)
					for _, m := range []struct {
						name              string
						lockstep, watched bool
						procs             int
					}{{"ahead, watched", false, true, 0}, {"ahead", false, false, 0}, {"lockstep", true, false, 0}, {"ahead, watched, GOMAXPROCS=1", false, true, 1}} {
						before := runtime.GOMAXPROCS(m.procs)
						got := artefacts(t, x, set, seed, m.lockstep, m.watched)
						runtime.GOMAXPROCS(before)
						for name, b := range got {
							if at := differ(b, want[name]); at >= 0 {
								t.Errorf("seed %d: the %s of %s differs from lockstep's at byte %d: %.200q, not %.200q", seed, name, m.name, at, b[at:], want[name][at:])
							}
						}
					}
				}
			})
		}
	}
}

// differ is the first byte at which a and b differ, -1 when they do not.
func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	return -1
}
