package experiment

import "github.com/rdmasim/rdmasim/experiment/chart"

// ScenarioPlots returns the pictures of a sweep over a scenario: those of LoadPlots, what limits
// each load, and how evenly threads and clients share. With more loads than a picture can tell
// apart, the first pictures show the total.
func ScenarioPlots(name string, keys, values, others []string, loads int) []chart.Plot {
	all := chart.LoadPlots(name, keys, values, others)
	limit := all[0]
	limit.File, limit.Title, limit.Y, limit.YLabel, limit.YWords = name+"-limit", name+": what limits each load", LimitedBy, "limited by", limitWords()
	threads := all[0]
	threads.File, threads.Title = name+"-threads", name+": rate of a thread, the mean and from the least to the largest"
	threads.Per, threads.Low, threads.High = "threads", "thread_rate_mps_min", "thread_rate_mps_max"
	clients := all[0]
	clients.File, clients.Title, clients.Y, clients.YLabel = name+"-clients", name+": goodput of a client, the mean and from the least to the largest", "gbps", "Gb/s"
	clients.Per, clients.Low, clients.High = "clients", "client_gbps_min", "client_gbps_max"
	if loads > 1 { // it is of the run
		limit.Title, limit.Only = name+": what limits the loads", map[string]any{"row": "total"}
	}
	all = append(all, limit)
	if loads > chart.MostLoads {
		for i, title := range []string{"rate of all loads together", "median latency of all loads together"} {
			all[i].Title, all[i].Only = name+": "+title, map[string]any{"row": "total"}
		}
	}
	return append(all, threads, clients)
}
