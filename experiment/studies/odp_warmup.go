package studies

import (
	"math"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

// memlockDefault is the RLIMIT_MEMLOCK of an ordinary user: the default of Linux until 5.15.
const memlockDefault = 64 << 10

// warming is a series of warmup.
type warming struct {
	name         string
	unprivileged bool
	source       func(x *odpRun) source
}

// warmupSeries are the series, those without privileges first.
func warmupSeries() []warming {
	pin := func(*odpRun) source { return &pinned{} }
	cold := func(*odpRun) source { return &onDemand{} }
	return []warming{
		{"pinned, unprivileged", true, pin},
		{"cold, unprivileged", true, cold},
		{"cold", false, cold},
		{"cold, whole address space", false, func(*odpRun) source { return &onDemand{whole: true} }},
		{"prefetched", false, func(*odpRun) source { return &onDemand{how: flushPrefetch} }},
		{"prefetched ahead", false, func(*odpRun) source { return &onDemand{how: streamPrefetch} }},
		{"pinned", false, pin},
		{bouncing, false, func(*odpRun) source { return &bounce{} }},
		{"pin-down-cache", false, func(x *odpRun) source { return x.cache() }},
	}
}

// bouncing is the series of the bounce buffer.
const bouncing = "bounce-buffer"

func (x *odpRun) cache() *pinCache { return &pinCache{most: uint64(x.Int("cache_mib")) << 20} }

// checkWarmup refuses a buffer and a cache that are not even one message.
func (x *odpRun) checkWarmup() error {
	if uint64(x.Int("buffer_mib"))<<20 < x.message {
		return experiment.Usagef("buffer_mib=%d is less than one message of %d KiB: give more buffer_mib or a smaller message_kib", x.Int("buffer_mib"), x.message>>10)
	}
	if x.cache().holds(x.message) == 0 {
		return experiment.Usagef("cache_mib=%d is less than one message of %d KiB, which stays pinned while it is sent: give more cache_mib or a smaller message_kib", x.Int("cache_mib"), x.message>>10)
	}
	return nil
}

func (x *odpRun) warmup() error {
	var rows []table.Row
	for _, w := range warmupSeries() {
		if err := x.Next("warmup: " + w.name); err != nil {
			return err
		}
		row, times, err := x.warm(w)
		if err != nil {
			return err
		}
		err = x.confirmed(&row, "warmup, "+w.name, true, func(y *odpRun) (table.Row, error) {
			second, _, err := y.warm(w)
			return second, err
		})
		if err != nil {
			return err
		}
		rows = append(rows, row)
		x.Emit(row)
		for _, r := range times {
			if !w.unprivileged { // which runs as with privileges
				x.Emit(r)
			}
		}
	}
	x.concludeWarmup(rows)
	return nil
}

// warm is one series.
func (x *odpRun) warm(w warming) (row table.Row, times []table.Row, err error) {
	row.Set("row", "warmup").Set("scenario", "warmup").Set("series", w.name)
	size := uint64(x.Int("buffer_mib")) << 20
	err = on(x.Env, "warmup, "+w.name, make([]testbed.HostConfig, 2), nil, func(t verbs.Thread, b *bed) error {
		s, err := x.newSending(t, b, size, workload.EndpointOptions{Unprivileged: w.unprivileged, LockedMemoryMost: memlockDefault})
		if err != nil && w.unprivileged && verbs.ErrnoOf(err) == syscall.ENOMEM { // the queues alone are more than may be locked
			row.Set("goodput_gbps", 0.0).Set("pinned_kib", 0).Set("error", errno(err))
			b.count(t, &row, 0, nil)
			return nil
		}
		if err != nil {
			return err
		}
		s.passes = x.Int("passes")
		return s.from.Do(t, "sender", func(t verbs.Thread) (err error) {
			times, err = x.pass(t, b, s, w, &row)
			return err
		})
	})
	return row, times, err
}

// pass sends the buffer as often as is asked for.
func (x *odpRun) pass(t verbs.Thread, b *bed, s *sending, w warming, row *table.Row) ([]table.Row, error) {
	src := w.source(x)
	begin := t.Now()
	if err := src.early(t, s); err != nil {
		return nil, err
	}
	row.Set("register_us", microseconds(t.Now()-begin))
	if err := s.fill(t); err != nil {
		return nil, err
	}
	start := t.Now()
	if err := src.late(t, s); err != nil {
		if verbs.ErrnoOf(err) == ^verbs.ErrnoOf(nil) {
			return nil, err
		}
		row.Set("goodput_gbps", 0.0).Set("pinned_kib", 0).Set("error", errno(err))
		b.count(t, row, 0, src.regions())
		return nil, nil
	}
	row.Set("setup_us", microseconds(t.Now()-start))
	b.Begin(t)
	samples := []sample{{counters: map[string]uint64{}}}
	taken, slots, messages := 0, s.slots(), s.messages()
	_, err := s.send(t, src, func(n int, bytes uint64) {
		if n < messages && n-taken < messages/mostSamples && (n < slots || taken >= slots) {
			return
		}
		taken = n
		samples = append(samples, sample{at: s.delivered - start, bytes: bytes, counters: b.grown(0)})
	})
	if err != nil {
		return nil, err
	}
	b.Limit(t, row, s.delivered)
	first, last := samples[0], samples[len(samples)-1]
	for _, p := range samples {
		if first = p; p.bytes >= s.buf.Len() {
			break
		}
	}
	row.Set("first_pass_gbps", gbps(first.bytes, first.at)).Set("goodput_gbps", gbps(last.bytes, last.at))
	if first.at > 0 {
		row.Set("faults_per_s", float64(first.counters["num_page_faults"])/first.at.Seconds())
	}
	b.count(t, row, 0, src.regions())
	efficiency(row, last.bytes)
	row.Set("pinned_kib", int(s.pinned>>10)).Set("registrations", s.registrations)
	return timeline(w.name, samples), nil
}

// mostSamples is some number of times at which the counters of a run are read: after each message
// of a short one.
const mostSamples = 512

// perDecade is how many points of time there are in ten times as long a time.
const perDecade = 8

// timeline are rows of what came between points of time that lie closer at the beginning.
func timeline(series string, samples []sample) (rows []table.Row) {
	before, at := samples[0], 0
	last := samples[len(samples)-1]
	for k := 0; before.at < last.at; k++ {
		end := time.Duration(50_000 * math.Pow(10, float64(k)/perDecade))
		for at+1 < len(samples) && samples[at+1].at <= end {
			at++
		}
		now := samples[at]
		if end < last.at && now.at == before.at { // nothing has completed
			continue
		}
		rows = append(rows, between(series, before, now))
		before = now
	}
	return rows
}

// between is a row of what came between two samples.
func between(series string, from, to sample) (row table.Row) {
	in, more := to.at-from.at, func(name string) uint64 { return to.counters[name] - from.counters[name] }
	row.Set("row", "warmup-time").Set("scenario", "warmup").Set("series", series).Set("time_us", microseconds(to.at))
	row.Set("goodput_gbps", gbps(to.bytes-from.bytes, in)).Set("page_faults", more("num_page_fault_pages"))
	row.Set("faults_per_s", float64(more("num_page_faults"))/in.Seconds())
	for _, name := range pagingCounters() {
		if _, ok := to.counters[name]; ok { // a region's are read at the end
			row.Set(name, more(name))
		}
	}
	return row
}
