package sweep

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// judge says whether the intervals hide what the sweep asks: whether neighbours on the first axis
// differ.
type judge struct {
	r        *prepared
	axis     int // the first with several values; -1: none
	measures []measure
	before   map[string]estimate // by measure, row and what stands on the other axes
	random   bool                // some figure depends on the seed
	several  bool                // a point has several seeds
	of       []verdict

	lacking      int    // rows with a figure that some seeds have not
	lackingFirst string // where
}

// measure is a column that a picture would show.
type measure struct {
	column string
	row    string // kind of row; "": any
}

type verdict struct {
	compared, hidden int
	first            [2]estimate
	id               string
	needed           float64
}

// negligible is an interval, as a part of the mean, within which nobody asks for a difference.
const negligible = 1e-3

// mostJudged bounds the points of a sweep whose neighbours are compared.
const mostJudged = 50_000

func newJudge(r *prepared) *judge {
	j := &judge{r: r, axis: -1, before: map[string]estimate{}}
	if r.Grid.Sample == nil && r.n/r.Seeds <= mostJudged {
		j.axis = slices.IndexFunc(r.Grid.Axes, axisIsLong)
	}
	j.measures = r.measures()
	j.of = make([]verdict, len(j.measures))
	return j
}

// measures are what pictures of the experiment show.
func (r *prepared) measures() []measure {
	if r.x.OfScenario() != nil {
		return []measure{{"rate_mps", "traffic"}, {"latency_ns_p50", "traffic"}}
	}
	var all []measure
	for _, p := range r.x.Plots {
		if m := (measure{column: p.Y}); !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return all
}

func (j *judge) add(c *cell) {
	j.several = j.several || len(c.runs) > 1
	var along, beside string
	for i, s := range c.settings {
		if j.axis >= 0 && slices.Contains(j.r.Grid.Axes[j.axis].Keys, s.Key) {
			along += c.settings[i].Key + "=" + s.Value + " "
		} else {
			beside += s.Key + "=" + s.Value + " "
		}
	}
	for _, g := range groups(c.runs) {
		if l := g.lacking(); len(l) > 0 {
			if j.lacking++; j.lacking == 1 {
				j.lackingFirst = strings.TrimSpace(fmt.Sprintf("%s of %s%s (%s)", strings.Join(l, ", "), along, beside, g.id))
			}
		}
		for k := range j.measures {
			j.compare(k, g, along, beside)
		}
		j.random = j.random || g.varies()
	}
}

func (g *group) varies() bool {
	for _, k := range g.rows[0].Keys() {
		if v, _ := g.figures(k); len(v) > 1 && slices.Min(v) != slices.Max(v) {
			return true
		}
	}
	return false
}

func (j *judge) compare(k int, g *group, along, beside string) {
	m := &j.measures[k]
	if m.row != "" && g.rows[0].Get("row") != m.row {
		return
	}
	e, ok := g.estimate(m.column, along)
	if !ok || j.axis < 0 {
		return
	}
	where := m.column + "\n" + g.id + "\n" + beside
	if prev, ok := j.before[where]; ok {
		v := &j.of[k]
		v.compared++
		if hidden, half, needed := apart(prev, e); hidden && half > math.Abs(e.mean)*negligible {
			if v.hidden++; v.hidden == 1 {
				v.first, v.needed, v.id = [2]estimate{prev, e}, needed, beside+g.id
			}
		}
	}
	j.before[where] = e
}

func (j *judge) notes() []string {
	if !j.several {
		return nil
	}
	if j.lacking > 0 {
		return append([]string{fmt.Sprintf("WARNING: in %s some seeds lack a figure: its mean is that of the other seeds, whose number is in a column that ends in %s. The first: %s.",
			plain.Count(j.lacking, "row"), seedsSuffix, j.lackingFirst)}, j.spreads()...)
	}
	return j.spreads()
}

// spreads says what the intervals are, and what they hide.
func (j *judge) spreads() []string {
	if !j.random {
		return []string{fmt.Sprintf("The %d seeds of each point give the same figures: nothing in these runs is random, and one seed is enough.", j.r.Seeds)}
	}
	out := []string{fmt.Sprintf("Figures that depend on the seed are means over seeds %d to %d; ± and columns that end in %s are half the width of the 95 %% confidence interval of the mean (Student's t).",
		j.r.Request.Seed, j.r.Request.Seed+uint64(j.r.Seeds)-1, spreadSuffix)}
	for k, v := range j.of {
		if v.hidden == 0 {
			continue
		}
		enough := "more than 1000 seeds, or none, would tell them apart"
		if v.needed <= 1000 {
			enough = fmt.Sprintf("about %.0f seeds would tell them apart", v.needed)
		}
		var a, b table.Row
		a.Set("v", v.first[0].mean).Set("v"+spreadSuffix, v.first[0].spread)
		b.Set("v", v.first[1].mean).Set("v"+spreadSuffix, v.first[1].spread)
		sa, sb := a.Shown(), b.Shown()
		out = append(out, fmt.Sprintf("WARNING: the intervals hide the answer in %d of %d comparisons of %s between neighbours on %s. The first: %sand %s(%s): %s and %s; %s.",
			v.hidden, v.compared, j.measures[k].column, j.r.Grid.Axes[j.axis].Name(), v.first[0].point, v.first[1].point, v.id, table.Text(sa.Get("v")), table.Text(sb.Get("v")), enough))
	}
	return out
}
