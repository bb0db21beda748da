package experiment

import (
	"slices"

	"github.com/rdmasim/rdmasim/experiment/chart"
)

// sweepPlots are those of a sweep over a scenario: rates, and latencies, against the first key that
// has several values.
func sweepPlots(name string, points [][]Setting, axes [][]string) []chart.Plot {
	if axes == nil {
		for _, k := range sweepKeys(points[0]) {
			axes = append(axes, []string{k})
		}
	}
	var x, values, others []string
	at := 0 // of the axis among the settings of a point
	for _, keys := range axes {
		along := valuesOf(points, at, len(keys))
		if at += len(keys); x == nil && len(along) > 1 {
			x, values = keys, along
		} else {
			others = append(others, keys...)
		}
	}
	if x == nil {
		return nil
	}
	return ScenarioPlots(name, x, values, others)
}

// valuesOf are the values of the n settings from at on, in the order of the points.
func valuesOf(points [][]Setting, at, n int) (values []string) {
	seen := map[string]bool{}
	for _, pt := range points {
		var v []string
		for _, s := range pt[at : at+n] {
			v = append(v, s.Value)
		}
		if t := chart.Together(v); !seen[t] {
			seen[t], values = true, append(values, t)
		}
	}
	return values
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
