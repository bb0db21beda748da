package kit

import (
	"math"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Simulated is the capability of a testbed with a simulated device.
const Simulated = "simulated"

// Measured records got, a value that only measurements of cards determine. On a simulated device it
// fails the case unless got is want, the published value. On a card conform compares the record
// with published measurements (fixtures/recordings/published-*.yaml, --baseline).
func Measured(c *spec.C, step string, got, want any) {
	if c.Has(Simulated) {
		c.Equal(step, got, want)
		return
	}
	c.Observe(step, got)
}

// MeasuredCounter is Measured for the growth of a counter. It records nothing if a real device or
// its driver lacks the counter.
func MeasuredCounter(c *spec.C, step string, grown map[string]int, name string, want int) {
	if got, has := grown[name]; has || c.Has(Simulated) {
		Measured(c, step, got, want)
	}
}

// MeasuredTime records got in milliseconds, rounded to the microsecond. Where time is virtual it
// fails the case unless got is within share*want of want. Elsewhere it does not judge, because the
// machine may be busy.
func MeasuredTime(c *spec.C, step string, got, want time.Duration, share float64) {
	c.Observe(step+report.TimeSuffix, math.Round(got.Seconds()*1e6)/1e3)
	if !c.Has(ExactTime) {
		return
	}
	off := math.Abs(got.Seconds() - want.Seconds())
	c.True(step+" as measured", off <= share*want.Seconds(), "it took %v, and cards took %v", got, want)
}

// MeasuredVendor checks the status of a completion, which the specification fixes, and its vendor
// error as Measured does.
func MeasuredVendor(c *spec.C, step string, wc verbs.WC, status verbs.WCStatus, vendor uint32) {
	c.Status(step, wc, status)
	Measured(c, step+": vendor_err", wc.VendorErr, vendor)
}

// Moving runs body and returns, for each of hosts 0 to hosts-1, how much each counter grew, by
// counter name.
func Moving(c *spec.C, hosts int, body func()) []map[string]int {
	before := make([]map[string]uint64, hosts)
	for h := range before {
		before[h] = Counters(c, h)
	}
	body()
	out := make([]map[string]int, hosts)
	for h := range out {
		after := Counters(c, h)
		out[h] = map[string]int{}
		for name := range after {
			out[h][name] = CounterDelta(before[h], after, name)
		}
	}
	return out
}

// SumOf returns the sum of the counters whose names have one of the prefixes.
func SumOf(grown map[string]int, prefixes ...string) (n int) {
	for name, v := range grown {
		for _, p := range prefixes {
			if strings.HasPrefix(name, p) {
				n += v
			}
		}
	}
	return n
}
