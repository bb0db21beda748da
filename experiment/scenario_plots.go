package experiment

import (
	"slices"

	"github.com/rdmasim/rdmasim/experiment/chart"
)

// sweepPlots are those of a sweep over a scenario: rates, and latencies, against the first key that
// has several values.
func sweepPlots(name string, points [][]Setting) []chart.Plot {
	values := map[string][]string{}
	for _, pt := range points {
		for _, v := range pt {
			if !slices.Contains(values[v.Key], v.Value) {
				values[v.Key] = append(values[v.Key], v.Value)
			}
		}
	}
	var x string
	var others []string
	for _, k := range sweepKeys(points[0]) {
		if x == "" && len(values[k]) > 1 {
			x = k
		} else {
			others = append(others, k)
		}
	}
	if x == "" {
		return nil
	}
	return ScenarioPlots(name, []string{x}, values[x], others)
}

// ScenarioPlots are the pictures of a sweep over a scenario: those of LoadPlots, and what limits each load.
func ScenarioPlots(name string, keys, values, others []string) []chart.Plot {
	all := chart.LoadPlots(name, keys, values, others)
	limit := all[0]
	limit.File, limit.Title, limit.Y, limit.YLabel, limit.YWords = name+"-limit", name+": what limits each load", LimitedBy, "limited by", limitWords()
	return append(all, limit)
}

// split draws a line of its own for each point of a sweep over an experiment.
func split(plots []chart.Plot, keys []string) []chart.Plot {
	all := slices.Clone(plots)
	for i := range all {
		all[i].By = append(slices.Clone(all[i].By), keys...)
	}
	return all
}
