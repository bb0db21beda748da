package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/sim/testbed"
)

// reading is a counter's value, or its growth over a run.
type reading struct{ testbed.Reading }

// full is the counter's name as reports print it: "host0/pcie0/rx_bytes".
func (r *reading) full() string { return r.Unit + "/" + r.Name }

// short is the name that sums like counters: "pcie.rx_bytes" over all units, or
// with the host "host0.pcie.rx_bytes".
func (r *reading) short(withHost bool) string {
	parts := strings.Split(r.Unit, "/")
	unit := strings.TrimRight(parts[len(parts)-1], "0123456789 ")
	unit = strings.TrimSuffix(unit, "_")
	if withHost && len(parts) > 1 {
		return parts[0] + "." + unit + "." + r.Name
	}
	return unit + "." + r.Name
}

// grown is the growth of what may also shrink, such as how many regions there are.
func (r *reading) grown() int { return int(r.Value) }

// growth is after minus before; counters made in between count from zero.
func growth(before, after []testbed.Reading) []reading {
	old := map[string]uint64{}
	for _, b := range before {
		r := reading{b}
		old[r.full()] = b.Value
	}
	var g []reading
	for _, a := range after {
		r := reading{a}
		r.Value -= old[r.full()]
		g = append(g, r)
	}
	return g
}

// Counter returns the sum of all counters with a short name, or the counter of one host if the name
// has a host.
func (o *Outcome) Counter(name string) (float64, bool) {
	if o.sums == nil {
		o.sums = map[string]float64{}
		for i := range o.counters {
			r := &o.counters[i]
			short, hosts := r.short(false), r.short(true)
			o.sums[short] += float64(r.grown())
			if hosts != short {
				o.sums[hosts] += float64(r.grown())
			}
		}
	}
	sum, found := o.sums[name]
	return sum, found
}

// Metric returns a value of the first load's row (or, with a load's name before it, of that load's
// row), or the sum of a counter. note, unless empty, is why the value means little.
func (o *Outcome) Metric(name string) (v float64, note string, err error) {
	if o.row != nil {
		if v, ok := o.row.Float(name); ok {
			return v, "", nil
		}
		return 0, "", fmt.Errorf("there is no metric %q%s", name, input.Suggest(name, o.row.Keys()))
	}
	for i, l := range o.loads {
		own := name
		if i > 0 {
			var its bool
			if own, its = strings.CutPrefix(name, l.Name+"."); !its {
				continue
			}
		}
		row := trafficRow(l, o.Results[i])
		v, ok := row.Float(own)
		if !ok {
			continue
		}
		if strings.HasSuffix(own, "_mps") || own == "gbps" {
			note = o.unsteady(i)
		}
		return v, note, nil
	}
	if v, ok := o.Counter(name); ok {
		return v, "", nil
	}
	row := trafficRow(o.loads[0], o.Results[0])
	names := slices.Clone(row.Keys())
	for i := range o.counters {
		names = append(names, o.counters[i].short(false))
	}
	return 0, "", fmt.Errorf("there is no metric %q%s", name, input.Suggest(name, names))
}
