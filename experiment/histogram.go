package experiment

import (
	"math"
	"slices"

	"github.com/rdmasim/rdmasim/experiment/chart"
	"github.com/rdmasim/rdmasim/experiment/table"
)

// mostBins is into how many bins a histogram sorts values at most.
const mostBins = 64

// bins sorts values into at most mostBins of the same width or, where the largest is more than
// twice the least, of the same ratio. Edges are the upper ones, which belong to their bins; the
// last is the largest value.
func bins(values []float64) (edges []float64, counts []int) {
	if len(values) == 0 {
		return nil, nil
	}
	least, most := slices.Min(values), slices.Max(values)
	if least == most {
		return []float64{most}, []int{len(values)}
	}
	edges, counts = make([]float64, mostBins), make([]int, mostBins)
	for i := range edges {
		part := float64(i+1) / mostBins
		if least > 0 && most > 2*least {
			edges[i] = least * math.Pow(most/least, part)
		} else {
			edges[i] = least + (most-least)*part
		}
	}
	edges[mostBins-1] = most
	for _, v := range values {
		i, _ := slices.BinarySearch(edges, v)
		counts[min(i, mostBins-1)]++
	}
	return edges, counts
}

// emitHistograms adds rows of kind histogram for each load of the file, and for all: how many
// messages took how long, and which part took at most as long; of threads with a number of messages
// the same of their flows.
func (out *Outcome) emitHistograms(env *Env, sets []set) {
	if len(sets) > 1 {
		sets = append(slices.Clone(sets), set{"all", 0, len(out.Results)})
	}
	for _, g := range sets {
		values := map[string][]float64{}
		for i := g.first; i < g.end; i++ {
			values["latency"] = append(values["latency"], nanoseconds(out.Results[i])...)
			for _, us := range flows(out.loads[i], out.Results[i]) {
				values["flow"] = append(values["flow"], us*1e3)
			}
		}
		for _, of := range []string{"latency", "flow"} {
			edges, counts := bins(values[of])
			below := 0
			for k, n := range counts {
				below += n
				var row table.Row
				env.Emit(*row.Set("row", "histogram").Set("name", g.name).Set("of", of).Set("at_most_ns", edges[k]).Set("count", n).Set("fraction", float64(below)/float64(len(values[of]))))
			}
		}
		if len(values["latency"])+len(values["flow"]) == 0 {
			env.Note("--histogram: load %s times no messages: measure: latency or both does, and messages makes each thread a flow with an end.", g.name)
		}
	}
}

// histogramPlots are the pictures of --histogram: cumulative distributions.
func histogramPlots(name string) (all []chart.Plot) {
	for _, of := range []string{"latency", "flow"} {
		all = append(all, chart.Plot{File: name + "-" + of + "-cdf", Title: name + ": which part of the " + map[string]string{"latency": "messages", "flow": "flows"}[of] + " took at most that long",
			X: "at_most_ns", Y: "fraction", XLabel: of + ", ns", YLabel: "fraction", Series: "name", Only: map[string]any{"row": "histogram", "of": of}, LogX: true})
	}
	return all
}
