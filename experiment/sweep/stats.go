package sweep

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
)

// confidence is the probability with which an interval has the mean.
const confidence = 0.95

// spreadSuffix ends the names of columns that have half the width of an interval.
const spreadSuffix = table.SpreadSuffix

// seedsSuffix ends the names of columns that say of how many seeds a mean is, where some seeds have
// no such figure.
const seedsSuffix = "_seeds"

// studentsT is how many standard errors an interval reaches to each side.
func studentsT(freedom float64) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile((1 + confidence) / 2)
}

// meanAndSpread is the mean of figures with half the width of its confidence interval (Student's
// t), and their standard deviation. One figure has no interval: NaN.
func meanAndSpread(v []float64) (mean, spread, deviation float64) {
	same := true
	for _, x := range v {
		same = same && x == v[0]
	}
	switch {
	case len(v) == 1:
		return v[0], math.NaN(), math.NaN()
	case same:
		return v[0], 0, 0
	}
	mean, deviation = stat.MeanStdDev(v, nil)
	return mean, studentsT(float64(len(v)-1)) * deviation / math.Sqrt(float64(len(v))), deviation
}

// group is one row of a point over its seeds.
type group struct {
	id   string
	rows []*table.Row
}

// groups are the rows of a point's runs that belong together: those with the same texts, in the
// order in which they come.
func groups(runs []*result) []*group {
	var all []*group
	known := map[string]*group{}
	for _, r := range runs {
		times := map[string]int{}
		for i := range r.rows {
			row := &r.rows[i]
			id := identity(row)
			times[id]++
			if n := times[id]; n > 1 {
				id += fmt.Sprintf(" (%d)", n)
			}
			g := known[id]
			if g == nil {
				g = &group{id: id}
				known[id] = g
				all = append(all, g)
			}
			g.rows = append(g.rows, row)
		}
	}
	return all
}

// identity is what a row says in words.
func identity(row *table.Row) string {
	var words []string
	for _, k := range row.Keys() {
		if experiment.IsFinding(k) {
			continue
		}
		switch v := row.Get(k).(type) {
		case string:
			words = append(words, k+"="+v)
		case bool:
			words = append(words, fmt.Sprintf("%s=%v", k, v))
		}
	}
	return strings.Join(words, " ")
}

// merged is the row of a group: words as they are, numbers that depend on the seed as their mean
// and half the width of its interval.
func (g *group) merged() table.Row {
	var row table.Row
	row.Set("seeds", len(g.rows))
	done := map[string]bool{}
	for _, r := range g.rows {
		for _, k := range r.Keys() {
			// The interval of a figure within each run is another thing than that over the runs.
			if !done[k] && !table.IsInterval(k) {
				done[k] = true
				g.column(&row, k)
			}
		}
	}
	return row
}

func (g *group) column(row *table.Row, k string) {
	v, whole := g.figures(k)
	if len(v) == 0 { // a word
		words := newList()
		for _, r := range g.rows {
			x := r.Get(k)
			if word, ok := x.(string); ok && experiment.IsFinding(k) {
				words.add(word)
			} else if x != nil {
				row.Set(k, x)
				return
			}
		}
		if len(words.words) > 0 {
			row.Set(k, words.String())
			return
		}
		row.Set(k, nil)
		return
	}
	mean, spread, _ := meanAndSpread(v)
	if whole && spread == 0 || whole && len(v) == 1 {
		row.Set(k, g.first(k))
	} else {
		row.Set(k, mean).Set(k+spreadSuffix, spread)
	}
	if len(v) < len(g.rows) {
		row.Set(k+seedsSuffix, len(v))
	}
}

// first is the first number of a column.
func (g *group) first(k string) any {
	for _, r := range g.rows {
		if f, ok := r.Float(k); ok && !math.IsNaN(f) {
			return r.Get(k)
		}
	}
	return nil
}

// lacking are the columns that have a number for some seeds only.
func (g *group) lacking() (columns []string) {
	done := map[string]bool{}
	for _, r := range g.rows {
		for _, k := range r.Keys() {
			if v, _ := g.figures(k); !done[k] && !table.IsInterval(k) && len(v) > 0 && len(v) < len(g.rows) {
				columns = append(columns, k)
			}
			done[k] = true
		}
	}
	return columns
}

// figures are the numbers of a column, and whether all of them are whole by their type.
func (g *group) figures(k string) (v []float64, whole bool) {
	whole = true
	for _, r := range g.rows {
		if f, ok := r.Float(k); ok && !math.IsNaN(f) {
			_, real := r.Get(k).(float64)
			v, whole = append(v, f), whole && !real
		}
	}
	return v, whole
}

// estimate is a mean with what a comparison needs.
type estimate struct {
	point           string
	mean, spread, s float64
	n               int
}

func (g *group) estimate(k, point string) (estimate, bool) {
	v, _ := g.figures(k)
	if len(v) < 2 {
		return estimate{}, false
	}
	e := estimate{point: point, n: len(v)}
	e.mean, e.spread, e.s = meanAndSpread(v)
	return e, true
}

// apart compares two means by Welch's t: hidden says that the interval of their difference, of half
// this width, has 0, and needed about how many seeds would be enough for it not to.
func apart(a, b estimate) (hidden bool, half, needed float64) {
	va, vb := a.s*a.s/float64(a.n), b.s*b.s/float64(b.n)
	if va+vb == 0 {
		return false, 0, 0
	}
	freedom := (va + vb) * (va + vb) / (va*va/float64(a.n-1) + vb*vb/float64(b.n-1))
	half = studentsT(freedom) * math.Sqrt(va+vb)
	d := math.Abs(a.mean - b.mean)
	return d <= half, half, math.Ceil(float64(min(a.n, b.n)) * (half / d) * (half / d))
}
