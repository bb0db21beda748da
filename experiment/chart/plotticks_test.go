package chart

import (
	"fmt"
	"image/color"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment/table"
)

// at are rows with a place on the axis and a rate each.
func at(places ...any) (rows []table.Row) {
	for i, x := range places {
		var r table.Row
		rows = append(rows, *r.Set("row", "traffic").Set("name", "a").Set("x", x).Set("rate_mps", float64(i+1)))
	}
	return rows
}

// labelsOf are the texts of a picture of rows.
func labelsOf(t *testing.T, p *Plot, rows []table.Row) []string {
	t.Helper()
	_, svg, err := p.Draw(rows, "")
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, m := range lettersOf.FindAllSubmatch(svg, -1) {
		texts = append(texts, string(m[2]))
	}
	return texts
}

// A sample of an interval has round ticks with units, whatever values it took.
func TestTicksOfASample(t *testing.T) {
	for _, c := range []struct {
		places []any
		want   string
	}{
		{[]any{"199B", "3.5419921875KiB", "7.677734375KiB"}, "2KiB 4KiB 6KiB"},
		{[]any{"2B", "1048575B"}, "500KiB 1000KiB"},
		{[]any{"13ns", "4.718281us", "2.5us"}, "1us 2us 3us 4us"},
		{[]any{"11.86600712Gbps", "57.867052407Gbps"}, "20Gbps 30Gbps 40Gbps 50Gbps"},
		{[]any{"3", "64", "17"}, "20 40 60"},
		{[]any{"14", "12", "11"}, "11 12 14"},
	} {
		plots := LoadPlots("s", []string{"x"}, nil, nil)
		got := labelsOf(t, &plots[0], at(c.places...))
		for _, w := range strings.Fields(c.want) {
			if !slices.Contains(got, w) {
				t.Errorf("%v: no %s among %q", c.places, w, got)
			}
		}
		if i := slices.IndexFunc(got, func(l string) bool { return strings.Contains(l, "…") }); i >= 0 {
			t.Errorf("%v: a tick %s", c.places, got[i])
		}
	}
}

// A number on an axis loses digits at its end, not in its middle.
func TestLongNumbersAreRounded(t *testing.T) {
	values := []string{"3.5419921875KiB", "70.677734375KiB"}
	plots := LoadPlots("s", []string{"x"}, values, nil)
	got := labelsOf(t, &plots[0], at(values[0], values[1]))
	for _, w := range []string{"3.542KiB", "70.678KiB"} {
		if !slices.Contains(got, w) {
			t.Errorf("no %s among %q", w, got)
		}
	}
}

// Each step of keys that change together has a place of its own, which names all of their values.
func TestPlacesOfKeysThatChangeTogether(t *testing.T) {
	rows := at("4", "4", "8")
	for i, payload := range []string{"8B", "16B", "8B"} {
		rows[i].Set("payload", payload).Set("y", "1")
	}
	values := []string{"4:8B", "4:16B", "8:8B"}
	plots := LoadPlots("s", []string{"x", "payload"}, values, nil)
	got := labelsOf(t, &plots[0], rows)
	for _, w := range append(values, "x, payload") {
		if !slices.Contains(got, w) {
			t.Errorf("no %s among %q", w, got)
		}
	}
	if c := plots[0].Collect(rows); len(c.Ticks) != len(rows) {
		t.Errorf("%d places", len(c.Ticks))
	}
	h := &HeatMap{X: []string{"x", "payload"}, Y: []string{"y"}, XValues: values, YValues: []string{"1"}, Value: "rate_mps"}
	if err := h.find(rows); err != nil || len(h.lookup) != len(rows) {
		t.Errorf("%v, %d cells", err, len(h.lookup))
	}
}

// The points of a sample have intervals of their own, and the line that they are not on has no part
// in the legend.
func TestIntervalsOfASample(t *testing.T) {
	rows := at("8", "2", "5")
	for i := range rows {
		rows[i].Set("half", 0.5)
	}
	plots := LoadPlots("s", []string{"x"}, nil, nil)
	p := plots[0]
	p.Band, p.Across = "half", "window=1..64"
	for _, p.Scattered = range []bool{false, true} {
		_, svg, err := p.Draw(rows, "")
		if err != nil {
			t.Fatal(err)
		}
		if band := strings.Contains(string(svg), "fill-opacity:0.2"); band == p.Scattered {
			t.Errorf("scattered %v: an area around the line: %v", p.Scattered, band)
		}
		if !strings.Contains(string(svg), ">a, window=1..64<") {
			t.Error("the legend does not say what the points differ in")
		}
	}
}

// Lines that the legend names lie over those that it does not name.
func TestNamedLinesLieAbove(t *testing.T) {
	p := Plot{File: "f", X: "x", Y: "rate_mps", Series: "s"}
	var rows []table.Row
	for i := range mostNames + 3 {
		for _, r := range at(1, 2) {
			rows = append(rows, *r.Set("s", fmt.Sprint("load ", i)))
		}
	}
	_, svg, err := p.Draw(rows, "")
	if err != nil {
		t.Fatal(err)
	}
	grey, named := strings.LastIndex(string(svg), "stroke:#C8C8C8"), strings.Index(string(svg), "stroke:#0072B2")
	if grey < 0 || named < grey {
		t.Errorf("the last grey line is at %d, the first other at %d", grey, named)
	}
}

// No cell is as light as the page, not that of the highest value either.
func TestHighestCellIsNotWhite(t *testing.T) {
	h, rows := hardMaps()["usual"]()
	if err := h.find(rows); err != nil {
		t.Fatal(err)
	}
	colours := h.colours()
	all := colours.Palette(255).Colors()
	top, err := colours.At(h.highest)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []color.Color{all[len(all)-1], top} {
		if r, g, b, _ := c.RGBA(); min(r, g, b) > 0xd800 {
			t.Errorf("%x %x %x", r, g, b)
		}
	}
	a, b := color.RGBAModel.Convert(all[len(all)-1]).(color.RGBA), color.RGBAModel.Convert(top).(color.RGBA)
	if off := int(a.B) - int(b.B); off < -2 || off > 2 || len(all) != 255 {
		t.Errorf("the bar has %v where the map has %v", b, a)
	}
}
