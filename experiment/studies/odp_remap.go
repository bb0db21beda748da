package studies

import (
	"bytes"
	"math"
	"time"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

// remapping is a series of remap: told says that whoever keeps regions is told of the munmap, as a
// cache is that listens to it.
type remapping struct {
	name   string
	source func() source
	told   bool
}

func remapSeries() []remapping {
	return []remapping{
		{"on demand", func() source { return &onDemand{} }, false},
		{"on demand, whole address space", func() source { return &onDemand{whole: true} }, false},
		{"pinned", func() source { return &pinned{} }, false},
		{"pin-down-cache", func() source { return &pinCache{most: math.MaxUint64} }, false},
		{"pin-down-cache, hears of munmap", func() source { return &pinCache{most: math.MaxUint64} }, true},
		{"bounce-buffer", func() source { return &bounce{} }, false},
	}
}

func (x *odpRun) remap() error {
	var rows []table.Row
	for _, r := range remapSeries() {
		if err := x.Next("remap: " + r.name); err != nil {
			return err
		}
		var row table.Row
		var sends []table.Row
		row.Set("row", "remap").Set("scenario", "remap").Set("series", r.name)
		err := on(x.Env, "remap, "+r.name, make([]testbed.HostConfig, 2), nil, func(t verbs.Thread, b *bed) error {
			s, err := x.newSending(t, b, x.message, workload.EndpointOptions{})
			if err != nil {
				return err
			}
			s.passes = 1
			sends, err = x.move(t, b, s, r, &row)
			return err
		})
		if err != nil {
			return err
		}
		rows = append(rows, row)
		x.Emit(row)
		for _, one := range sends {
			x.Emit(one)
		}
	}
	x.concludeRemap(rows)
	return nil
}

// sendsOfRemap are what is timed.
var sendsOfRemap = []string{"first", "again", "after mmap", "again then"}

// move sends twice, puts fresh memory under the same address, sends twice again, and looks at what
// has arrived.
func (x *odpRun) move(t verbs.Thread, b *bed, s *sending, r remapping, row *table.Row) (sends []table.Row, err error) {
	src := r.source()
	old, fresh := bytes.Repeat([]byte{1}, int(s.message)), bytes.Repeat([]byte{2}, int(s.message))
	err = s.from.Do(t, "sender", func(t verbs.Thread) error {
		if err := src.early(t, s); err != nil {
			return err
		}
		if _, err := s.buf.WriteAt(t, old, 0); err != nil {
			return err
		}
		if err := src.late(t, s); err != nil {
			return err
		}
		for i, name := range sendsOfRemap {
			if i == len(sendsOfRemap)/2 {
				if err := s.swapMemory(t, src, r, fresh, row); err != nil {
					return err
				}
			}
			sent, err := s.timed(t, b, src)
			if err != nil {
				return err
			}
			var one table.Row
			one.Set("row", "remap-send").Set("scenario", "remap").Set("series", r.name).Set("send", name)
			one.Set("goodput_gbps", gbps(sent.bytes, sent.at)).Set("page_faults", sent.counters["num_page_fault_pages"]).Set("send_us", microseconds(sent.at))
			for _, name := range pagingCounters() {
				if v, ok := sent.counters[name]; ok {
					one.Set(name, v)
				}
			}
			sends = append(sends, one)
		}
		t.Sleep(20 * time.Microsecond) // writes and acknowledgements that are still under way
		b.count(t, row, 0, src.regions())
		return nil
	})
	if err != nil {
		return nil, err
	}
	got := make([]byte, s.message)
	err = s.to.Do(t, "receiver", func(t verbs.Thread) error {
		_, err := s.target.ReadAt(t, got, 0)
		return err
	})
	after := sends[len(sends)/2]
	row.Set("goodput_gbps", after.Get("goodput_gbps")).Set("second_send_us", after.Get("send_us")).Set("right_bytes", bytes.Equal(got, fresh))
	row.Set("pinned_kib", int(s.pinned>>10)).Set("registrations", s.registrations)
	return sends, err
}

// timed sends, and says what it took and what the host has counted.
func (s *sending) timed(t verbs.Thread, b *bed, src source) (sample, error) {
	before, start := b.grown(0), t.Now()
	n, err := s.send(t, src, nil)
	if err != nil {
		return sample{}, err
	}
	x := sample{at: t.Now() - start, bytes: n, counters: b.grown(0)}
	for name, v := range before {
		x.counters[name] -= v
	}
	return x, nil
}

// swapMemory puts fresh memory under the buffer's address, and fills it.
func (s *sending) swapMemory(t verbs.Thread, src source, r remapping, fresh []byte, row *table.Row) error {
	start := t.Now()
	if c, ok := src.(*pinCache); ok && r.told {
		if err := c.drop(t, s, 0); err != nil {
			return err
		}
	}
	if err := s.remap(t); err != nil {
		return err
	}
	_, err := s.buf.WriteAt(t, fresh, 0)
	row.Set("setup_us", microseconds(t.Now()-start))
	return err
}

// remap is munmap of the buffer, and mmap at the same address.
func (s *sending) remap(t verbs.Thread) error {
	at, n := s.buf.Addr(), s.buf.Len()
	if err := s.buf.Unmap(t); err != nil {
		return err
	}
	m, err := s.from.Proc.Map(t, n, verbs.MapOptions{Lazy: true, At: at, NoReplace: true})
	if err == nil {
		s.buf = m.(verbs.PagedBuffer)
	}
	return err
}
