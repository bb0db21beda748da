package experiment

import "github.com/rdmasim/rdmasim/experiment/chart"

// ScenarioPlots are the pictures of a sweep over a scenario: those of LoadPlots, and what limits each load.
func ScenarioPlots(name string, keys, values, others []string) []chart.Plot {
	all := chart.LoadPlots(name, keys, values, others)
	limit := all[0]
	limit.File, limit.Title, limit.Y, limit.YLabel, limit.YWords = name+"-limit", name+": what limits each load", LimitedBy, "limited by", limitWords()
	return append(all, limit)
}
