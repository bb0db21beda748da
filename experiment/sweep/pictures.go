package sweep

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/chart"
	"github.com/rdmasim/rdmasim/experiment/sweep/grid"
	"github.com/rdmasim/rdmasim/experiment/table"
)

// picture is a plot or a heat map.
type picture struct {
	file, title string
	draw        func(rows []table.Row, caption string) (png, svg []byte, err error)
	svg         func(rows []table.Row, caption string) ([]byte, error)
}

// Draw calls f for each picture of the answer, as SVG.
func (a *Answer) Draw(f func(title string, svg []byte)) {
	for _, p := range a.pictures() {
		if svg, err := p.svg(a.Result.Rows, a.Result.Caption()); err == nil { // else no row belongs to it
			f(p.title, svg)
		}
	}
}

func (a *Answer) pictures() []picture {
	if !a.Whole {
		return nil
	}
	var all []picture
	for i := range a.Result.Plots {
		p := &a.Result.Plots[i]
		all = append(all, picture{p.File, p.Title, p.Draw, p.SVG})
	}
	for _, m := range a.maps() {
		all = append(all, picture{m.File, m.Title, m.Draw, m.SVG})
	}
	return all
}

// mostAxisValues bounds the values of a key that pictures name.
const mostAxisValues = 1000

func axisIsLong(a grid.Axis) bool { return len(a.Values) > 1 || a.Between != nil }

// values are those of an axis, in order.
func values(a *grid.Axis) []string {
	var v []string
	for _, s := range a.Values {
		v = append(v, chart.Together(s))
	}
	return v
}

// plots are the line plots of the answer: those of the experiment with a line for each point, or those of a scenario against
// the first key that has several values.
func (a *Answer) plots() []chart.Plot {
	axes := a.r.Grid.Axes
	keys := a.r.Grid.Keys()
	var plots []chart.Plot
	if a.r.x.OfScenario() == nil {
		for _, p := range a.r.x.Plots {
			p.By = append(slices.Clone(p.By), keys...)
			plots = append(plots, p)
		}
	} else if i := slices.IndexFunc(axes, axisIsLong); i >= 0 {
		sampled := a.r.Grid.Sample != nil
		others, across := a.lines(i)
		plots = experiment.ScenarioPlots(a.Result.Name, axes[i].Keys, values(&axes[i]), others)
		for k := range plots {
			plots[k].Scattered, plots[k].Across = sampled, strings.Join(across, ", ")
		}
	}
	for i := range plots {
		if a.r.Seeds > 1 {
			plots[i].Band = plots[i].Y + spreadSuffix
		}
	}
	return plots
}

// mostSampledLines bounds the lines of a sample: each of its points would be one if all keys told lines apart.
const mostSampledLines = 16

// lines are the keys besides an axis whose values tell lines apart, and what the points of each line differ in besides.
func (a *Answer) lines(axis int) (keys, across []string) {
	lines := 1
	for k, b := range a.r.Grid.Axes {
		switch n := len(b.Values); {
		case k == axis:
		case a.r.Grid.Sample == nil:
			keys = append(keys, b.Keys...)
		case b.Between != nil:
			across = append(across, fmt.Sprintf("%s=%v", b.Name(), b.Between))
		case n*lines > mostSampledLines:
			across = append(across, fmt.Sprintf("%s=%s,…,%s", b.Name(), chart.Together(b.Values[0]), chart.Together(b.Values[n-1])))
		default:
			keys = append(keys, b.Keys...)
			lines *= n
		}
	}
	return keys, across
}

// maps are heat maps over the first two keys with several values, of a scenario.
func (a *Answer) maps() []*chart.HeatMap {
	var long []*grid.Axis
	for i := range a.r.Grid.Axes {
		if axisIsLong(a.r.Grid.Axes[i]) {
			long = append(long, &a.r.Grid.Axes[i])
		}
	}
	if a.r.x.OfScenario() == nil || len(long) < 2 || a.r.Grid.Sample != nil || len(long[0].Values) > mostAxisValues || len(long[1].Values) > mostAxisValues {
		return nil
	}
	var maps []*chart.HeatMap
	for _, m := range chart.MapKinds {
		seen := map[string]bool{}
		for i := range a.Result.Rows {
			row := &a.Result.Rows[i]
			if v, ok := row.Float(m.Column); !ok || v != v || row.Get("row") != "traffic" {
				continue
			}
			only := map[string]any{"row": "traffic", "name": row.Get("name")}
			title := fmt.Sprintf("%s: %s of %v", a.Result.Name, m.Name, row.Get("name"))
			for _, b := range long[2:] {
				for _, k := range b.Keys {
					only[k] = row.Get(k)
					title += fmt.Sprintf(", %s=%v", k, row.Get(k))
				}
			}
			if seen[title] || len(seen) == chart.MostMaps {
				continue
			}
			seen[title] = true
			maps = append(maps, &chart.HeatMap{File: chart.MapFile(a.Result.Name, m.Name, len(seen)), Title: title, X: long[0].Keys, Y: long[1].Keys,
				XValues: values(long[0]), YValues: values(long[1]), Value: m.Column, ValueLabel: m.Label, Only: only})
		}
	}
	return maps
}
