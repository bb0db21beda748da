package kit

import (
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Counters returns the hardware counters of a host's first device by name. A testbed that cannot
// read them ends the case without a verdict.
func Counters(c *spec.C, host int) map[string]uint64 {
	r, ok := c.TB.(verbs.CounterReader)
	if !ok {
		c.Errorf("the testbed reads no counters")
	}
	m, err := r.HardwareCounters(c.T, host)
	if err != nil {
		c.Errorf("read the counters of host %d: %v", host, err)
	}
	return m
}

// CounterDelta returns by how much a counter grew between two readings of Counters.
func CounterDelta(before, after map[string]uint64, name string) int {
	return int(after[name] - before[name])
}
