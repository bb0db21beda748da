package page

import (
	"encoding/base64"
	"fmt"
	"html/template"
	"maps"
	"slices"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// Bounds of the captures that a page holds, in bytes before they are encoded.
const (
	mostCapture  = 128 << 10
	mostCaptures = 2 << 20
)

// mostOpen is how many cases are open at first: of a device that fails everywhere a few say enough.
const mostOpen = 12

// view is the page as its template wants it. All texts in it are harmless to a reader, and the
// template escapes them.
type view struct {
	Policy   string
	Style    template.CSS
	Script   template.JS
	Title    string
	Bad      bool
	Targets  []targetView
	Words    []wordView
	Areas    []areaView
	Findings []string
	Alike    []alikeView
	First    []*caseView // what to look at first: failures, and differences that nothing explains
	Rest     []*caseView
	Plots    []plot
	Compared bool
	Classes  []wordView
}

type targetView struct {
	Name  string
	Facts [][2]string
}

// wordView is an outcome or a class of differences, with what it means.
type wordView struct {
	Word, Meaning string
	Count         []int // by target
	Bad           bool
}

type areaView struct {
	Area, Title string
	Cells       []cellView // by target
}

type cellView struct {
	Pass, Cases int
	Others      []string // "2 fail"
	Bad         bool
}

type caseView struct {
	ID, Area, Text string
	Outcomes       []string // by target
	Bad            bool
	Open           bool
	Class          string // of its comparison
	ClassReason    string
	ClassBad       bool
	Look           bool // its class is one to look at
	Expected       string
	Sources        []string
	Sides          []*sideView
	All, Differing *tableView // the observations, and those of them to look at
}

// sideView is how a case ended on one target.
type sideView struct {
	Target, Outcome             string
	Reason, Where, Again, Took  string
	Bad, Many                   bool // Many: there are several targets
	Capture                     template.URL
	CaptureName, CaptureLeftOut string
	Ladder                      *ladderView
}

func (p *Page) view() *view {
	v := &view{Compared: p.Comparison != nil}
	room := mostCaptures
	for i := range p.Targets {
		t := &p.Targets[i]
		v.Targets = append(v.Targets, targetView{p.name(i), facts(t.Run)})
		for _, f := range t.Run.Findings {
			v.Findings = append(v.Findings, plain.Line(p.name(i)+": "+f))
		}
		if t.Run.Incomplete {
			v.Findings = append(v.Findings, plain.Line(p.name(i)+": the run was interrupted"))
		}
		v.Bad = v.Bad || !t.Run.OK()
	}
	if p.Comparison != nil {
		v.Bad = !p.Comparison.OK()
	}
	v.Title = p.title(v.Bad)
	v.Words, v.Areas = p.words(), p.areas()
	for _, c := range p.cases(&room) {
		if c.Bad && p.Comparison == nil || c.Look {
			c.Open = len(v.First) < mostOpen
			v.First = append(v.First, c)
		} else {
			v.Rest = append(v.Rest, c)
		}
	}
	v.Alike = alike(v.First)
	v.Plots, v.Classes = p.plots(), p.classes()
	return v
}

// name is that of a target, of which a page may have two alike.
func (p *Page) name(i int) string {
	t := &p.Targets[i]
	name := t.Name
	if name == "" {
		if name = t.Run.Target.Kind; t.Run.Target.Profile != "" {
			name += " " + t.Run.Target.Profile
		}
	}
	return plain.Line(name)
}

func (p *Page) title(bad bool) string {
	word := map[bool]string{false: "ok", true: "FAILED"}[bad]
	if p.Comparison != nil {
		return fmt.Sprintf("%s: %s against %s", map[bool]string{false: "ok", true: "DIFFERENT"}[bad], p.name(0), p.name(1))
	}
	r := p.Targets[0].Run
	if r.Incomplete {
		word = "INTERRUPTED"
	}
	return fmt.Sprintf("%s: %s on %s", word, plain.Count(len(r.Cases), "case"), p.name(0))
}

// facts are what is known of a run.
func facts(r *report.Run) [][2]string {
	out := [][2]string{{"target", plain.Line(r.Target.Kind)}, {"seed", fmt.Sprint(r.Seed)}}
	for _, f := range [][2]string{{"profile", r.Target.Profile}, {"device", r.Target.Device}} {
		if f[1] != "" {
			out = append(out, [2]string{f[0], plain.Line(f[1])})
		}
	}
	for _, k := range slices.Sorted(maps.Keys(r.Environment)) {
		out = append(out, [2]string{plain.Line(k), plain.Line(r.Environment[k])})
	}
	total := int64(0)
	for i := range r.Cases {
		total += r.Cases[i].Took()
	}
	if total > 0 {
		what := "time in cases"
		if r.Target.Kind == "sim" {
			what = "simulated time in cases"
		}
		out = append(out, [2]string{what, took(total)})
	}
	return out
}

// took is a time in nanoseconds, for people.
func took(ns int64) string {
	switch {
	case ns >= 1e9:
		return fmt.Sprintf("%.2f s", float64(ns)/1e9)
	case ns >= 1e6:
		return fmt.Sprintf("%.2f ms", float64(ns)/1e6)
	}
	return fmt.Sprintf("%.1f us", float64(ns)/1e3)
}

func (p *Page) words() []wordView {
	var out []wordView
	for _, o := range report.Outcomes() {
		w := wordView{Word: string(o), Meaning: o.Meaning(), Bad: o.Bad()}
		sum := 0
		for _, t := range p.Targets {
			n := count(t.Run, func(c *report.Case) bool { return c.Outcome == o })
			w.Count = append(w.Count, n)
			sum += n
		}
		if sum > 0 {
			out = append(out, w)
		}
	}
	return out
}

func count(r *report.Run, of func(*report.Case) bool) int {
	n := 0
	for i := range r.Cases {
		if of(&r.Cases[i]) {
			n++
		}
	}
	return n
}

func (p *Page) classes() []wordView {
	if p.Comparison == nil {
		return nil
	}
	var out []wordView
	for _, class := range report.Classes() {
		if n := p.Comparison.Summary[class]; n > 0 {
			out = append(out, wordView{Word: string(class), Meaning: class.About(), Count: []int{n}, Bad: class.Bad()})
		}
	}
	return out
}

// areas are the rows of the matrix, in the order in which the records have them.
func (p *Page) areas() []areaView {
	var out []areaView
	at := map[string]int{}
	for i, t := range p.Targets {
		for j := range t.Run.Cases {
			area := t.Run.Cases[j].Area
			if _, known := at[area]; !known {
				at[area] = len(out)
				out = append(out, areaView{Area: plain.Line(area), Title: plain.Line(p.Areas[area]), Cells: make([]cellView, len(p.Targets))})
			}
		}
		for area, n := range at {
			out[n].Cells[i] = cellOf(t.Run, area)
		}
	}
	return out
}

func cellOf(r *report.Run, area string) cellView {
	var cell cellView
	for _, o := range report.Outcomes() {
		n := count(r, func(c *report.Case) bool { return c.Area == area && c.Outcome == o })
		cell.Cases += n
		switch {
		case n == 0:
		case o == report.Pass:
			cell.Pass = n
		default:
			cell.Others = append(cell.Others, fmt.Sprintf("%d %s", n, o))
			cell.Bad = cell.Bad || o.Bad()
		}
	}
	return cell
}

// cases are those of all targets, each with what every target has of it.
func (p *Page) cases(room *int) []*caseView {
	var order []string
	of := map[string][]*report.Case{}
	for i, t := range p.Targets {
		for j := range t.Run.Cases {
			c := &t.Run.Cases[j]
			if of[c.ID] == nil {
				order = append(order, c.ID)
				of[c.ID] = make([]*report.Case, len(p.Targets))
			}
			of[c.ID][i] = c
		}
	}
	compared := map[string]*report.CaseDiff{}
	if p.Comparison != nil {
		for i := range p.Comparison.Cases {
			compared[p.Comparison.Cases[i].ID] = &p.Comparison.Cases[i]
		}
	}
	var out []*caseView
	for _, id := range order {
		out = append(out, p.caseOf(id, of[id], compared[id], room))
	}
	return out
}

func (p *Page) caseOf(id string, sides []*report.Case, d *report.CaseDiff, room *int) *caseView {
	v := &caseView{ID: plain.Line(id)}
	for i, c := range sides {
		if c == nil {
			v.Outcomes = append(v.Outcomes, "none")
			continue
		}
		v.Area, v.Text = plain.Line(c.Area), plain.Line(c.Text)
		v.Outcomes = append(v.Outcomes, plain.Line(string(c.Outcome)))
		v.Bad = v.Bad || c.Outcome.Bad()
		v.Sides = append(v.Sides, p.sideOf(i, c, room))
	}
	if p.Rule != nil {
		r := p.Rule(id)
		v.Expected = plain.Line(r.Expected)
		for _, s := range r.Sources {
			v.Sources = append(v.Sources, plain.Line(s))
		}
	}
	rows := rowsOf(sides)
	if d != nil {
		v.Class, v.ClassReason, v.ClassBad = string(d.Class), plain.Text(d.Reason), d.Class.Bad()
		v.Look = d.Class.Bad() || d.Class.Notable()
		classify(rows, d)
	}
	v.All, v.Differing = p.table(rows, func(*rowView) bool { return true }), p.table(rows, (*rowView).stands)
	return v
}

// table is the rows of a kind, or nil without any.
func (p *Page) table(rows []rowView, of func(*rowView) bool) *tableView {
	t := &tableView{Names: []string{"seen"}}
	if len(p.Targets) > 1 {
		t.Names = nil
		for i := range p.Targets {
			t.Names = append(t.Names, p.name(i))
		}
	}
	for i := range rows {
		if of(&rows[i]) {
			t.Rows = append(t.Rows, rows[i])
		}
	}
	if t.Rows == nil {
		return nil
	}
	return t
}

func (p *Page) sideOf(i int, c *report.Case, room *int) *sideView {
	t := &p.Targets[i]
	s := &sideView{Target: p.name(i), Outcome: plain.Line(string(c.Outcome)), Bad: c.Outcome.Bad(), Many: len(p.Targets) > 1,
		Reason: plain.Text(c.Reason), Where: plain.Line(c.Where), Ladder: ladderOf(c)}
	if c.Took() > 0 {
		s.Took = took(c.Took())
	}
	if !s.Bad {
		return s
	}
	if t.Again != nil {
		s.Again = plain.Line(t.Again(c.ID))
	}
	if t.Capture == nil {
		return s
	}
	switch text := t.Capture(c.ID); {
	case text == nil:
	case len(text) > mostCapture || len(text) > *room:
		s.CaptureLeftOut = fmt.Sprintf("the capture has %d KiB and is not in this page: conform --captures DIR writes it", len(text)>>10)
	default:
		*room -= len(text)
		s.CaptureName = plain.Line(c.ID) + ".pcapng"
		s.Capture = template.URL("data:application/octet-stream;base64," + base64.StdEncoding.EncodeToString(text))
	}
	return s
}
