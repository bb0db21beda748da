package table

import (
	"fmt"
	"math"
	"strings"
)

// SpreadSuffix ends the name of a column that has half the width of the 95 % confidence interval of another one.
const SpreadSuffix = "_ci95"

// Shown is the row as a table has it: a mean with its interval in one cell.
func (r *Row) Shown() Row {
	var out Row
	for _, k := range r.keys {
		if strings.HasSuffix(k, SpreadSuffix) {
			continue
		}
		v := r.vals[k]
		f, _ := v.(float64)
		if s, ok := r.vals[k+SpreadSuffix].(float64); ok && s > math.Abs(f)*tooSmall {
			out.Set(k, cell(k, v)+" ±"+twoDigits(s))
			continue
		}
		out.Set(k, v)
	}
	return out
}

// tooSmall is an interval, as a part of its mean, that the digits of a table do not show.
const tooSmall = 1e-4

// twoDigits is enough of an uncertainty.
func twoDigits(s float64) string {
	if s >= 100 {
		return fmt.Sprintf("%.0f", s)
	}
	return Short(mustRound(s))
}

func mustRound(s float64) float64 {
	var f float64
	_, _ = fmt.Sscanf(fmt.Sprintf("%.2g", s), "%g", &f)
	return f
}
