package testbed

import (
	cmdline "flag"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/odp"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

var (
	pagingPrograms = cmdline.Uint64("paging.programs", 0, "how many generated programs TestPagingPrograms runs (0: 200 with -short, else 2,000)")
	pagingFirst    = cmdline.Uint64("paging.first", 1, "seed of the first generated program of on-demand paging")
)

// programsOfABed is how many programs run one after the other in one testbed.
const programsOfABed = 100

// schemes of faults.
const (
	ofQueues = iota
	ofRemotes
	ofMemory
)

var (
	schemeNames = [...]string{"WQE", "RDMA", "MEMORY"}
	kindNames   = [odp.Kinds]string{"gather", "landing", "receive", "SRQ receive", "WRITE target", "READ source", "atomic target"}
)

// pagingStats is what has happened in programs.
type pagingStats struct {
	programs, requests, failed, races uint64
	ends                              uint64                  // of QPs with faults out
	losses                            uint64                  // programs of which the wire has lost frames
	faults                            [3][2][odp.Kinds]uint64 // by scheme, and on explicit and implicit regions
	upsets                            [upsetKinds]uint64
}

// add counts a program.
func (x *pagingStats) add(w *pagingWorld, p *pagingProgram, before, after [2]struct {
	kinds [odp.Kinds]uint64
	races uint64
}) {
	x.programs++
	for _, o := range w.out {
		x.requests++
		if !o.ok {
			x.failed++
		}
	}
	for s := range after {
		x.races += after[s].races - before[s].races
		region := 0
		if p.implicit[s] {
			region = 1
		}
		for k := range odp.Kinds {
			x.faults[scheme(odp.Kind(k), w.memory)][region][k] += after[s].kinds[k] - before[s].kinds[k]
		}
		for _, u := range p.upsets[s] {
			x.upsets[u.kind]++
		}
	}
}

func scheme(k odp.Kind, memory bool) int {
	switch {
	case memory:
		return ofMemory
	case k >= odp.WriteKind:
		return ofRemotes
	}
	return ofQueues
}

// String is a table for people.
func (x *pagingStats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d programs, %d requests, of which %d failed with their memory out of reach, %d races of a fault with an invalidation, "+
		"%d ends of a QP with faults out, %d losses of frames", x.programs, x.requests, x.failed, x.races, x.ends, x.losses)
	x.each(func(scheme, region string, kind string, n uint64) {
		fmt.Fprintf(&b, "\n%s, %s, %s: %d", scheme, region, kind, n)
	})
	for k, n := range x.upsets {
		fmt.Fprintf(&b, "\n%s: %d", upsetNames[k], n)
	}
	return b.String()
}

// each calls f with what each scheme has of faults.
func (x *pagingStats) each(f func(scheme, region, kind string, n uint64)) {
	for s := range schemeNames {
		for r, region := range []string{"explicit", "implicit"} {
			for k, kind := range kindNames {
				if s == scheme(odp.Kind(k), s == ofMemory) {
					f(schemeNames[s], region, kind, x.faults[s][r][k])
				}
			}
		}
	}
}

// bedOf is the testbed of a group of programs.
func bedOf(t testing.TB, first uint64, broken rule.Broken) Config {
	return config(t, onDemand, func(c *Config) {
		c.Seed, c.NoTap, c.Broken = first, true, broken
		c.Profile.HCA.ODP.MemoryScheme = first/programsOfABed%2 != 0
		c.Profile.Kernel.Paging = []kernel.PagingEra{kernel.Paging5_5, kernel.Paging6_2, kernel.Paging6_14}[first/programsOfABed%3]
		for i := range c.Hosts {
			c.Hosts[i].Cores, c.Hosts[i].Memory = 4, 1<<30
			c.Hosts[i].Resident, c.Hosts[i].Swap = residentMost*4096, 64<<20
		}
	})
}

// runPaging runs the programs [first, first+n), all of one testbed, and returns the first that
// fails with what it violates.
func runPaging(t testing.TB, first, n uint64, broken rule.Broken, stats *pagingStats) (p *pagingProgram, err error) {
	c := bedOf(t, first/programsOfABed*programsOfABed, broken)
	bed, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	w := &pagingWorld{TB: t, bed: bed, memory: c.Profile.HCA.ODP.MemoryScheme, whole: wholeSpaces(first), stats: stats}
	runErr := bed.Run(0, func(t verbs.Thread) {
		w.guarded(func(t verbs.Thread) {
			w.open(t)
			for seed := first; seed < first+n; seed++ {
				p = newPagingProgram(seed)
				w.poster.do(t, w.guarded(func(t verbs.Thread) { w.run(t, p) }))
				w.check()
			}
			w.poster.do(t, w.guarded(w.holes))
			w.check()
			// The last one once more, in the middle of which the processes end.
			w.stats = &pagingStats{}
			w.poster.start(t, w.guarded(func(t verbs.Thread) { w.run(t, p) }))
			t.Sleep(time.Duration((first+n)*7919%1500) * time.Microsecond)
			w.end(t)
		})(t)
	})
	if w.err == nil {
		w.err = runErr
	}
	if err := bed.Close(); err != nil {
		t.Fatal(err)
	}
	return p, w.err
}

// open makes both sides.
func (w *pagingWorld) open(t verbs.Thread) {
	for s, h := range w.bed.Hosts() {
		p, err := h.NewProcess(t, nil)
		w.must("process", err)
		x := &pagingSide{w: w, side: s, proc: p}
		w.sides[s], x.others = x, newWorker(t, p, "others")
	}
	w.poster = newWorker(t, w.sides[0].proc, "poster")
	w.poster.do(t, w.guarded(func(t verbs.Thread) {
		w.peer(t, w.sides[1].open)
		w.sides[0].open(t)
		for i := range w.sides[0].qps {
			w.connect(t, i, false)
		}
	}))
	w.check()
}

// end ends both processes, after which nothing of them is left.
func (w *pagingWorld) end(t verbs.Thread) {
	for _, s := range w.sides {
		s.proc.Kill(t)
	}
	for _, p := range w.bed.procs { // children, whose memory is theirs
		if p != w.bed.main {
			p.Kill(t)
		}
	}
	t.Sleep(10 * time.Millisecond)
	for i, h := range w.bed.hosts {
		d := h.devices[0]
		k := d.kern.Counters().Paging
		if f := d.hca.PageFaults(); f.Out != 0 || k.Regions != 0 || k.RegionPages != 0 {
			w.fail("when all has ended, host %d has %d faults out, %d regions of %d pages", i, f.Out, k.Regions, k.RegionPages)
		}
		if r := d.kern.Resources(); r != (kernel.Resources{}) {
			w.fail("when all has ended, host %d has %+v", i, r)
		}
		if h.mem.Resident() != 0 || h.mem.Swapped() != 0 {
			w.fail("when all has ended, host %d has %d bytes in memory, %d in swap", i, h.mem.Resident(), h.mem.Swapped())
		}
	}
}

// A byte that moves through a region of on-demand paging is the byte that the process sees at its
// address, whatever happens to memory, keys, queue pairs and frames meanwhile; each request ends,
// and nothing is left.
func TestPagingPrograms(t *testing.T) {
	n := *pagingPrograms
	if n == 0 {
		if n = 2000; testing.Short() {
			n = 200
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	var stats pagingStats
	start := time.Now()
	for first, end := *pagingFirst, *pagingFirst+n; first < end; {
		count := min(end-first, programsOfABed-first%programsOfABed)
		if p, err := runPaging(t, first, count, rule.Broken{}, &stats); err != nil {
			again := first
			if _, alone := runPaging(t, p.seed, 1, rule.Broken{}, &pagingStats{}); alone != nil {
				again = p.seed
			}
			t.Fatalf("%v\n%s\nagain: go test ./sim/testbed -run '^TestPagingPrograms$' -paging.first %d -paging.programs %d", err, p.Text(), again, p.seed-again+1)
		}
		first += count
	}
	t.Logf("%v\n%v", time.Since(start), &stats)
	if n < 2000 {
		return
	}
	stats.each(func(scheme, region, kind string, n uint64) {
		if n == 0 {
			t.Errorf("no fault of %s, %s, %s", scheme, region, kind)
		}
	})
	for k, n := range stats.upsets {
		if n == 0 {
			t.Errorf("never: %s", upsetNames[k])
		}
	}
	if stats.races == 0 || stats.ends == 0 || stats.losses == 0 {
		t.Error("no race of a fault with an invalidation, no end of a QP with faults out, or no loss of frames")
	}
}
