package table

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// SpreadSuffix ends the name of a column that has half the width of the 95 % confidence interval of
// another one.
const SpreadSuffix = "_ci95"

// Columns with half the width of the 95 % confidence interval of a rate, in percent of it, over the
// quarters of its measured time.
const (
	RateInterval    = "rate_ci95_percent"
	GoodputInterval = "gbps_ci95_percent" // where messages differ in size: it is not that of their rate
)

// IsInterval reports whether a column says how exact another one is.
func IsInterval(key string) bool {
	return strings.HasSuffix(key, SpreadSuffix) || key == RateInterval || key == GoodputInterval
}

// Half is half the width of the 95 % confidence interval of a number: of a row of several seeds
// over these, else within the run. ok is false where none is known.
func (r *Row) Half(key string) (half float64, ok bool) {
	if _, there := r.vals[key+SpreadSuffix]; there {
		half, ok = r.Float(key + SpreadSuffix)
	} else if v, is := r.Float(key); is && !r.merged() && (key == "rate_mps" || key == "gbps") {
		var percent float64
		if percent, ok = r.Float(GoodputInterval); !ok || key != "gbps" {
			percent, ok = r.Float(RateInterval)
		}
		half = math.Abs(v) * percent / 100
	}
	return half, ok && !math.IsNaN(half) && !math.IsInf(half, 0)
}

// merged reports whether the row is of several seeds.
func (r *Row) merged() bool { return r.vals["seeds"] != nil }

// Shown is the row as a table has it: a number with its interval in one cell.
func (r *Row) Shown() Row {
	var out Row
	for _, k := range r.keys {
		if strings.HasSuffix(k, SpreadSuffix) {
			continue
		}
		v := r.vals[k]
		f, _ := v.(float64)
		if s, ok := r.Half(k); ok && s > math.Abs(f)*tooSmall {
			out.Set(k, cell(k, v)+within+twoDigits(s))
			continue
		}
		out.Set(k, v)
	}
	return out
}

// within stands between a number and half its interval.
const within = " ±"

// Uncertain reports whether a shown row has a number with an interval in one of the columns.
func (r *Row) Uncertain(columns []string) bool {
	return slices.ContainsFunc(columns, func(k string) bool {
		s, _ := r.vals[k].(string)
		return strings.Contains(s, within)
	})
}

// tooSmall is an interval, as a part of its mean, that the digits of a table do not show.
const tooSmall = 1e-4

// twoDigits is enough of an uncertainty.
func twoDigits(s float64) string {
	return Short(mustRound(s))
}

func mustRound(s float64) float64 {
	var f float64
	_, _ = fmt.Sscanf(fmt.Sprintf("%.2g", s), "%g", &f)
	return f
}
