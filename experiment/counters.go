package experiment

import (
	"strings"

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

// Counter is the sum of the counters of a short name, with or without its host.
func (o *Outcome) Counter(name string) (float64, bool) {
	sum, found := 0.0, false
	for i := range o.counters {
		r := &o.counters[i]
		if r.short(false) == name || r.short(true) == name {
			sum += float64(r.grown())
			found = true
		}
	}
	return sum, found
}
