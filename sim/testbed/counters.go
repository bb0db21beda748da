package testbed

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"syscall"
	"unicode"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/verbs"
)

// Reading is the value of one counter of one unit: "host0/mlx5_0/hca", "wqes".
type Reading struct {
	Unit, Name string
	Value      uint64
}

// register enters what units count by themselves in the engine's registry, and makes
// the lines of the timeline.
func (tb *Testbed) register() {
	for _, h := range tb.hosts {
		h.cpu.Register(h.name)
		for _, d := range h.devices {
			d.link.Register(d.path())
		}
	}
}

// Counters returns every counter of the testbed, in a fixed order. Times are in picoseconds, as
// their names say.
func (tb *Testbed) Counters() []Reading {
	var all []Reading
	for _, c := range tb.eng.Counters.Sorted() {
		all = append(all, Reading{c.Unit, c.Name, c.Value()})
	}
	for _, h := range tb.hosts {
		for _, d := range h.devices {
			all = fields(all, d.path()+"/hca", reflect.ValueOf(*d.hca.Counters()))
			for _, q := range prm.QCounterNames {
				all = append(all, Reading{d.path() + "/hw_counters", q.Name, d.hca.QCounter(q.Counter)})
			}
			all = fields(all, d.path()+"/uar", reflect.ValueOf(d.hca.UARTotals()))
			all = fields(all, d.path()+"/kernel", reflect.ValueOf(d.kern.Counters()))
			all = d.paging(all)
			all = fields(all, d.path()+"/resources", reflect.ValueOf(d.kern.Resources()))
			d.port.Each(func(name string, v uint64) { all = append(all, Reading{d.path() + "/port", name, v}) })
		}
	}
	if tb.cfg.Switched {
		all = append(all, Reading{"switch", "tx_discards_phy", tb.switchDiscards()})
	}
	return all
}

// switchDiscards is how many packets the switch has dropped, on all of its ports.
func (tb *Testbed) switchDiscards() uint64 {
	n := uint64(0)
	for _, h := range tb.hosts {
		for _, d := range h.devices {
			n += d.port.Peer().C.TxDiscards
		}
	}
	return n
}

// paging appends the counters of on-demand paging: of the driver, under the names of 2014, and of
// the device.
func (d *device) paging(all []Reading) []Reading {
	k := d.kern.Counters()
	k.Paging.Fields(func(name string, v *uint64) { all = append(all, Reading{d.path() + "/kernel", name, *v}) })
	k.PagingTimes.Fields(func(name string, v uint64) { all = append(all, Reading{d.path() + "/kernel", name, v}) })
	pages := d.hca.PageFaults()
	pages.Fields(func(name string, v uint64) { all = append(all, Reading{d.path() + "/odp", name, v}) })
	return all
}

// HardwareCounters returns the counters of a host's first device under the names that they have on
// hardware.
func (tb *Testbed) HardwareCounters(t verbs.Thread, host int) (map[string]uint64, error) {
	provider.Of(t).P.Sync()
	if host < 0 || host >= len(tb.hosts) || len(tb.hosts[host].devices) == 0 {
		return nil, fmt.Errorf("counters of host %d: %w", host, syscall.ENODEV)
	}
	return tb.hosts[host].hardwareCounters(), nil
}

// HardwareCountersOutside returns the counters of the device of Config.Outside. The engine must not
// be running.
func (tb *Testbed) HardwareCountersOutside() map[string]uint64 { return tb.hosts[0].hardwareCounters() }

func (h *host) hardwareCounters() map[string]uint64 {
	d := h.devices[0]
	all := d.hca.HardwareCounters()
	d.kern.AddPaging(all)
	d.port.HardwareCounters(all)
	h.cm.Counters(d.kern, func(group, message string, n uint64) { all[group+"/"+message] = n })
	return all
}

// fields appends the integer fields of a struct of counters.
func fields(all []Reading, unit string, v reflect.Value) []Reading {
	for i := range v.NumField() {
		f, name := v.Field(i), snake(v.Type().Field(i).Name)
		switch {
		case f.Type() == reflect.TypeFor[sim.Time]():
			all = append(all, Reading{unit, name + "_ps", uint64(f.Int())})
		case f.CanUint():
			all = append(all, Reading{unit, name, f.Uint()})
		case f.CanInt():
			all = append(all, Reading{unit, name, uint64(f.Int())})
		case f.Kind() == reflect.Array && f.Type().Elem().Kind() == reflect.Uint64:
			sum := uint64(0)
			for k := range f.Len() {
				sum += f.Index(k).Uint()
			}
			all = append(all, Reading{unit, name, sum})
		}
	}
	return all
}

// snake turns a Go name into a counter's: WQEFetches is wqe_fetches.
func snake(s string) string {
	var b strings.Builder
	r := []rune(s)
	for i, c := range r {
		if unicode.IsUpper(c) && i > 0 && (!unicode.IsUpper(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1]) && r[i+1] != 's') {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// Events returns how many events have run.
func (tb *Testbed) Events() uint64 { return tb.eng.Events() }

// WriteTrace writes the timeline of a testbed made with Config.Trace, as Trace Event
// JSON.
func (tb *Testbed) WriteTrace(w io.Writer) error { return tb.eng.Spans.WriteJSON(w) }
