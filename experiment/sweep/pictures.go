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
	return append(all, a.maps()...)
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

// plots are the line plots of the answer: those of the experiment with a line for each point, or
// those of a scenario against the first key that has several values.
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
		plots = experiment.ScenarioPlots(a.Result.Name, axes[i].Keys, values(&axes[i]), others, len(a.loads()))
		for k := range plots {
			plots[k].Scattered, plots[k].Across = sampled, strings.Join(across, ", ")
		}
	}
	for i := range plots {
		if len(plots[i].YWords) > 0 {
			plots[i].YWords = a.words(&plots[i])
		}
		if a.r.Seeds > 1 && plots[i].Low == "" {
			plots[i].Band = plots[i].Y + spreadSuffix
		}
	}
	return plots
}

// words are those that a picture of words has, with the lists of them that seeds have found.
func (a *Answer) words(p *chart.Plot) []string {
	words := p.YWords
	for i := range a.Result.Rows {
		if w, ok := a.Result.Rows[i].Get(p.Y).(string); ok && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return words
}

// mostSampledLines bounds the lines of a sample: each of its points would be one if all keys told
// lines apart.
const mostSampledLines = 16

// lines are the keys besides an axis whose values tell lines apart, and what the points of each
// line differ in besides.
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

// loads are the names of the loads.
func (a *Answer) loads() (names []string) {
	for i := range a.Result.Rows {
		row := &a.Result.Rows[i]
		if name, ok := row.Get("name").(string); ok && row.Get("row") == "traffic" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// maps are heat maps over the first two keys with several values, of a scenario.
func (a *Answer) maps() (pictures []picture) {
	var long []*grid.Axis
	for i := range a.r.Grid.Axes {
		if axisIsLong(a.r.Grid.Axes[i]) {
			long = append(long, &a.r.Grid.Axes[i])
		}
	}
	if a.r.x.OfScenario() == nil || len(long) < 2 || a.r.Grid.Sample != nil || len(long[0].Values) > mostAxisValues || len(long[1].Values) > mostAxisValues {
		return nil
	}
	loads := a.loads()
	kind := "traffic"
	if len(loads) > chart.MostLoads {
		kind = "total"
	}
	for _, m := range chart.MapKinds {
		var maps []*chart.HeatMap
		seen := map[string]bool{}
		for i := range a.Result.Rows {
			row := &a.Result.Rows[i]
			if v, ok := row.Float(m.Column); !ok || v != v || row.Get("row") != kind {
				continue
			}
			only := map[string]any{"row": kind, "name": row.Get("name")}
			panel := ""
			if len(loads) > 1 && kind == "traffic" {
				panel = fmt.Sprint(row.Get("name"), ", ")
			}
			for _, b := range long[2:] {
				for _, k := range b.Keys {
					only[k] = row.Get(k)
					panel += fmt.Sprintf("%s=%v, ", k, row.Get(k))
				}
			}
			if seen[panel] || len(seen) == chart.MostMaps {
				continue
			}
			seen[panel] = true
			maps = append(maps, &chart.HeatMap{Title: strings.TrimSuffix(panel, ", "), X: long[0].Keys, Y: long[1].Keys,
				XValues: values(long[0]), YValues: values(long[1]), Value: m.Column, ValueLabel: m.Label, Only: only})
		}
		of := fmt.Sprintf("%s: %s", a.Result.Name, m.Name)
		switch {
		case kind == "total":
			of += " of all loads together"
		case len(loads) == 1:
			of += " of " + loads[0]
		}
		for n, p := range chart.Panels(of, maps) {
			pictures = append(pictures, picture{chart.MapFile(a.Result.Name, m.Name, n+1), p.Heading(), p.Draw, p.SVG})
		}
	}
	return pictures
}
