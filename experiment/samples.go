package experiment

import (
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/workload"
)

// samples are latencies in nanoseconds, by the quarter of its thread's messages in which each was
// taken.
type samples [workload.Quarters][]float64

// add takes the latencies of a thread, in the order of its messages.
func (s *samples) add(latency []time.Duration) {
	for k := range s {
		n := len(latency)
		for _, d := range latency[n*k/len(s) : n*(k+1)/len(s)] {
			s[k] = append(s[k], float64(d.Nanoseconds()))
		}
	}
}

// addAll takes the latencies of all threads of a load.
func (s *samples) addAll(r *workload.Result) {
	for i := range r.Threads {
		s.add(r.Threads[i].Latency)
	}
}

// percentileColumns are the percentiles of a row.
var percentileColumns = []struct {
	key string
	q   float64
}{{"latency_ns_p50", 0.5}, {"latency_ns_p90", 0.9}, {"latency_ns_p99", 0.99}, {"latency_ns_p999", 0.999}}

// enoughBeyond is how many samples of a quarter must be beyond a percentile for the quarters to say
// how far it is to be trusted.
const enoughBeyond = 5

// percentiles adds the percentiles of the samples to a row, with the 95 % intervals of batch means
// over the quarters, as for rates.
func percentiles(row *table.Row, s *samples) {
	for k := range s {
		slices.Sort(s[k])
	}
	ns := slices.Concat(s[:]...)
	slices.Sort(ns)
	row.Set("samples", len(ns))
	if len(ns) == 0 {
		row.Set("latency_ns_p50", math.NaN())
		return
	}
	for _, p := range percentileColumns {
		row.Set(p.key, stat.Quantile(p.q, stat.Empirical, ns, nil))
		if half, ok := s.half(p.q); ok {
			row.Set(p.key+table.SpreadSuffix, half)
		}
	}
	row.Set("latency_ns_min", ns[0]).Set("latency_ns_max", ns[len(ns)-1]).Set("latency_ns_mean", stat.Mean(ns, nil))
}

// half is half the width of the 95 % interval of a percentile, of sorted quarters that have enough
// samples beyond it.
func (s *samples) half(q float64) (float64, bool) {
	var each [workload.Quarters]float64
	for k := range s {
		if float64(len(s[k]))*(1-q) < enoughBeyond {
			return 0, false
		}
		each[k] = stat.Quantile(q, stat.Empirical, s[k], nil)
	}
	return workload.HalfOfQuarters(each), true
}
