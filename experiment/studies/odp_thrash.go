package studies

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

// ratios are working sets, as parts of memory in 100.
var ratios = []int{50, 75, 100, 125, 150, 200, 300, 400}

// thrashingFrom is which share of the pages that are sent has to come back from swap, in 100, for a
// run to be called thrashing.
const thrashingFrom = 10

func thrashSeries() []warming {
	return []warming{
		{"on demand", false, func(*odpRun) source { return &onDemand{} }},
		{bouncing, false, func(*odpRun) source { return &bounce{} }},
		{"pinned", false, func(*odpRun) source { return &pinned{} }},
	}
}

func (x *odpRun) thrash() error {
	memory, swap := uint64(x.Int("memory_mib"))<<20, uint64(x.Int("swap_mib"))<<20
	var rows []table.Row
	for _, w := range thrashSeries() {
		for _, ratio := range ratios {
			if err := x.Next(fmt.Sprintf("thrash: %s, %d %%", w.name, ratio)); err != nil {
				return err
			}
			row, err := x.press(w, ratio, memory, swap)
			if err != nil {
				return err
			}
			err = x.confirmed(&row, fmt.Sprintf("thrash, %s, %d %%", w.name, ratio), true, func(y *odpRun) (table.Row, error) { return y.press(w, ratio, memory, swap) })
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

// workingSet is ratio percent of memory: whole pages, since memory is whole MiB and ratios are
// quarters.
func workingSet(memory uint64, ratio int) uint64 { return memory * uint64(ratio) / 100 }

// ring is the size of the bounce buffers.
func (x *odpRun) ring() uint64 { return uint64(x.window) * x.message }

// checkThrash refuses a working set that is not even one message.
func (x *odpRun) checkThrash() error {
	if workingSet(uint64(x.Int("memory_mib"))<<20, ratios[0]) < x.message {
		return experiment.Usagef("memory_mib=%d: a working set of %d %% is less than one message of %d KiB: give more memory_mib or a smaller message_kib", x.Int("memory_mib"), ratios[0], x.message>>10)
	}
	return nil
}

// press is a working set of ratio percent of memory.
func (x *odpRun) press(w warming, ratio int, memory, swap uint64) (row table.Row, err error) {
	row.Set("row", "thrash").Set("scenario", "thrash").Set("series", w.name).Set("ratio", float64(ratio)/100)
	size := workingSet(memory, ratio)
	needs, what := size, ""
	if w.name == bouncing {
		needs, what = size+x.ring(), fmt.Sprintf(", %d KiB of bounce buffers", x.ring()>>10)
	}
	if needs > memory && needs+x.message > memory+swap { // what comes from swap takes memory before its place there is free
		row.Set("goodput_gbps", 0.0).Set("page_faults", 0).Set("error", "does not fit")
		x.Note("thrash: memory and swap, %d KiB together, have no room for a working set of %d KiB%s and a message more: give swap_mib.", (memory+swap)>>10, size>>10, what)
		return row, nil
	}
	hosts := []testbed.HostConfig{{Resident: memory, Swap: swap}, {}}
	err = on(x.Env, fmt.Sprintf("thrash, %s, %d %%", w.name, ratio), hosts, nil, func(t verbs.Thread, b *bed) error {
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
		s.drawn = append(s.drawn, rng.Intn(s.slots()))
	}
}

// squeeze fills the working set, sends each part of it once, and then measures random ones.
func (x *odpRun) squeeze(t verbs.Thread, b *bed, s *sending, w warming, row *table.Row) error {
	src := w.source(x)
	err := src.early(t, s)
	if err == nil {
		err = s.fill(t)
	}
	if err == nil {
		err = src.late(t, s)
	}
	if verbs.ErrnoOf(err) == syscall.ENOMEM { // what is pinned leaves too little
		row.Set("goodput_gbps", 0.0).Set("error", errno(err))
		b.count(t, row, 0, nil)
		return nil
	}
	if err != nil {
		return err
	}
	random := s.drawn
	s.drawn, s.passes = nil, 1
	if _, err := s.send(t, src, nil); err != nil {
		return err
	}
	s.drawn = random
	faults := s.from.Proc.(verbs.PageFaultCounter)
	before, err := faults.PageFaults(t)
	if err != nil {
		return err
	}
	b.mark(t, src.regions())
	b.Begin(t)
	start := t.Now()
	n, err := s.send(t, src, nil)
	if err != nil {
		return err
	}
	took := t.Now() - start
	b.Limit(t, row, start+took)
	after, err := faults.PageFaults(t)
	again := 100 * float64(after.Major-before.Major) * odpPage / float64(n)
	row.Set("goodput_gbps", gbps(n, took)).Set("refault_percent", again).Set("thrashing", again >= thrashingFrom).Set("majflt", after.Major-before.Major)
	b.count(t, row, 0, src.regions())
	efficiency(row, n)
	row.Set("pinned_kib", int(s.pinned>>10)).Set("registrations", s.registrations)
	return err
}
