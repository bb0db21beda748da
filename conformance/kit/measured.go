package kit

import (
	"math"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Simulated is the capability of a testbed whose device this project simulates.
const Simulated = "simulated"

// Measured records got under step, a value that nothing but measurements of cards fixes. On a simulated device it holds when got
// is want, the published value; on a card the value is recorded, and conform compares it with a record of published measurements
// (fixtures/recordings/published-*.yaml, --baseline).
func Measured(c *spec.C, step string, got, want any) {
	if c.Has(Simulated) {
		c.Equal(step, got, want)
		return
	}
	c.Observe(step, got)
}

// MeasuredCounter is Measured of a counter that has grown. One that a real device or its driver lacks is not recorded.
func MeasuredCounter(c *spec.C, step string, grown map[string]int, name string, want int) {
	if got, has := grown[name]; has || c.Has(Simulated) {
		Measured(c, step, got, want)
	}
}

// MeasuredTime records a time in milliseconds, to the microsecond. Where time is virtual it holds when the time is at most share
// of want away from want. Elsewhere the time is that of a busy machine, and not judged.
func MeasuredTime(c *spec.C, step string, got, want time.Duration, share float64) {
	c.Observe(step+report.TimeSuffix, math.Round(got.Seconds()*1e6)/1e3)
	if !c.Has(ExactTime) {
		return
	}
	off := math.Abs(got.Seconds() - want.Seconds())
	c.True(step+" as measured", off <= share*want.Seconds(), "it took %v, and cards took %v", got, want)
}

// MeasuredVendor is a completion in error whose status the specification fixes and whose vendor byte was measured on cards.
func MeasuredVendor(c *spec.C, step string, wc verbs.WC, status verbs.WCStatus, vendor uint32) {
	c.Status(step, wc, status)
	Measured(c, step+": vendor_err", wc.VendorErr, vendor)
}

// Moving is what counters of a host grow by while body runs.
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

// SumOf adds the counters of a map whose names have one of the prefixes.
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
