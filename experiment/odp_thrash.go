package experiment

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

// ratios are working sets, as parts of memory in 100.
var ratios = []int{50, 75, 100, 125, 150, 200, 300, 400}

// thrashingFrom is which share of the pages that are sent has to come back from swap, in 100, for a run to be called thrashing.
const thrashingFrom = 10

func thrashSeries() []warming {
	return []warming{
		{"on demand", false, func(*odpRun) source { return &onDemand{} }},
		{"bounce-buffer", false, func(*odpRun) source { return &bounce{} }},
		{"pinned", false, func(*odpRun) source { return &pinned{} }},
	}
}

func (x *odpRun) thrash() error {
	memory, swap := uint64(x.Int("memory_mib"))<<20, uint64(x.Int("swap_mib"))<<20
	var rows []Row
	for _, w := range thrashSeries() {
		for _, ratio := range ratios {
			if err := x.next(fmt.Sprintf("thrash: %s, %d %%", w.name, ratio)); err != nil {
				return err
			}
			row, err := x.press(w, ratio, memory, swap)
			if err != nil {
				return err
			}
			rows = append(rows, row)
			x.Emit(row)
		}
	}
	x.concludeThrash(rows)
	return nil
}

// press is a working set of ratio percent of memory.
func (x *odpRun) press(w warming, ratio int, memory, swap uint64) (row Row, err error) {
	row.Set("row", "thrash").Set("scenario", "thrash").Set("series", w.name).Set("ratio", float64(ratio)/100)
	size := memory * uint64(ratio) / 100 / x.message * x.message
	if size == 0 {
		return row, usage("memory_mib=%d: a working set of %d %% is less than one message of %d KiB", x.Int("memory_mib"), ratio, x.message>>10)
	}
	if size+x.message > memory+swap { // what comes from swap takes memory before its place there is free
		row.Set("goodput_gbps", 0.0).Set("page_faults", 0).Set("error", "does not fit")
		x.Note("thrash: a working set of %d KiB does not fit into memory and swap, %d KiB together, with room for a message more: give swap_mib.", size>>10, (memory+swap)>>10)
		return row, nil
	}
	hosts := []testbed.HostConfig{{Resident: memory, Swap: swap}, {}}
	err = x.on(fmt.Sprintf("thrash, %s, %d %%", w.name, ratio), hosts, nil, func(t verbs.Thread, b *bed) error {
		s, err := x.newSending(t, b, size, workload.EndpointOptions{})
		if err != nil {
			return err
		}
		s.choose(x.Seed)
		return s.from.Do(t, "sender", func(t verbs.Thread) error { return x.squeeze(t, b, s, w, &row) })
	})
	return row, err
}

// choose draws as many slots as the buffer has.
func (s *sending) choose(seed uint64) {
	rng := sim.NewRand(seed, "odp thrash")
	for range s.slots() {
		s.order = append(s.order, rng.Intn(s.slots()))
	}
}

// squeeze fills the working set, sends each part of it once, and then measures random ones.
func (x *odpRun) squeeze(t verbs.Thread, b *bed, s *sending, w warming, row *Row) error {
	src := w.source(x)
	if err := src.early(t, s); err != nil {
		return err
	}
	if err := s.fill(t); err != nil {
		return err
	}
	if err := src.late(t, s); err != nil {
		if w.name != "pinned" {
			return err
		}
		row.Set("goodput_gbps", 0.0).Set("error", errno(err))
		b.count(t, row, 0, nil)
		return nil
	}
	random := s.order
	s.order = nil
	for i := range s.slots() {
		s.order = append(s.order, i)
	}
	if err := s.send(t, src, nil); err != nil {
		return err
	}
	s.order = random
	faults := s.from.Proc.(verbs.PageFaultCounter)
	before, err := faults.PageFaults(t)
	if err != nil {
		return err
	}
	b.mark(t, src.regions())
	start := t.Now()
	if err := s.send(t, src, nil); err != nil {
		return err
	}
	took := t.Now() - start
	t.Sleep(settle)
	after, err := faults.PageFaults(t)
	n := uint64(len(s.order)) * s.message
	again := 100 * float64(after.Major-before.Major) * odpPage / float64(n)
	row.Set("goodput_gbps", gbps(n, took)).Set("refault_percent", again).Set("thrashing", again >= thrashingFrom).Set("majflt", after.Major-before.Major)
	b.count(t, row, 0, src.regions())
	efficiency(row, n)
	row.Set("pinned_kib", int(s.pinned>>10)).Set("registrations", s.registrations)
	return err
}
