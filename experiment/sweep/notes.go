package sweep

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/experiment"
)

// notes gathers what runs say beside their rows: each kind of note once, with the points that say
// so. What all points say in the same words names none.
type notes struct {
	cells  int
	order  []string
	of     map[string]*noted // by the note without its figures
	values map[string]*distinct
	faults []experiment.FaultCount
	more   int // that were too many
}

// noted is a note, and where it holds.
type noted struct {
	text   string // of the first point
	varies bool   // its figures are others at other points
	points []string
	count  int // of points
	last   string
	values map[string]*distinct // of each key, at these points
}

// distinct are the different values of a key, in the order in which they came.
type distinct struct {
	order []string
	has   map[string]bool
}

func (d *distinct) add(v string) {
	if !d.has[v] {
		d.has[v] = true
		d.order = append(d.order, v)
	}
}

// take adds the values of a point.
func take(values map[string]*distinct, pt []experiment.Setting) {
	for _, s := range pt {
		if values[s.Key] == nil {
			values[s.Key] = &distinct{has: map[string]bool{}}
		}
		values[s.Key].add(s.Value)
	}
}

const (
	mostNotes  = 200 // different ones
	mostPoints = 3   // that are named with a note
	mostPlaces = 100 // bytes of the names of several points
	mostValues = 8   // of a key that are
)

func newNotes() *notes { return &notes{of: map[string]*noted{}, values: map[string]*distinct{}} }

func (n *notes) add(pt []experiment.Setting, run *result) {
	name := experiment.PointName(pt)
	take(n.values, pt)
	for i, f := range run.Faults {
		if i == len(n.faults) {
			n.faults = append(n.faults, experiment.FaultCount{What: f.What})
		}
		n.faults[i].Matched += f.Matched
		n.faults[i].Acted += f.Acted
	}
	said := map[string]int{} // notes of one kind in this run are different ones
	for _, text := range run.Notes {
		k := experiment.Unnumbered(text)
		said[k]++
		k = fmt.Sprint(said[k], " ", k)
		v := n.of[k]
		if v == nil {
			if len(n.order) == mostNotes {
				n.more++
				continue
			}
			v = &noted{text: text, values: map[string]*distinct{}}
			n.of[k] = v
			n.order = append(n.order, k)
		}
		v.varies = v.varies || v.text != text
		if v.count > 0 && v.last == name {
			continue // another seed
		}
		v.last = name
		take(v.values, pt)
		if v.count++; len(v.points) < mostPoints {
			v.points = append(v.points, name)
		}
	}
}

// where says at which points a note holds: by the values of keys, if it holds for every combination
// of these, or else by name. keys are in the order of the sweep.
func (n *notes) where(v *noted, keys []string) string {
	if v.count == n.cells {
		return fmt.Sprintf("all %d points", n.cells)
	}
	every := 1
	var words []string
	for _, k := range keys {
		d := v.values[k]
		every *= len(d.order)
		if len(d.order) == len(n.values[k].order) {
			continue
		}
		if len(d.order) > mostValues {
			every = 0
			break
		}
		words = append(words, k+"="+strings.Join(d.order, ","))
	}
	if every == v.count && len(words) > 0 {
		return strings.Join(words, " ")
	}
	points := v.points
	for len(points) > 1 && len(strings.Join(points, "; ")) > mostPlaces {
		points = points[:len(points)-1]
	}
	if more := v.count - len(points); more > 0 {
		return fmt.Sprintf("%s and %d more of %d points", strings.Join(points, "; "), more, n.cells)
	}
	return strings.Join(points, "; ")
}

// texts are the notes; keys are those of the sweep.
func (n *notes) texts(keys []string) []string {
	var out []string
	for _, k := range n.order {
		v := n.of[k]
		text := v.text
		switch {
		case v.varies && v.count == 1:
			text += " (With other seeds its figures differ.)"
		case v.varies:
			text += fmt.Sprintf(" (Figures differ from point to point; these come from %s.)", v.points[0])
		}
		if v.points[0] != "" && (v.varies || v.count < n.cells) {
			text = n.where(v, keys) + ": " + text
		}
		out = append(out, text)
	}
	if n.more > 0 {
		out = append(out, fmt.Sprintf("%d more notes are left out.", n.more))
	}
	for i := range n.faults {
		out = append(out, n.faults[i].String())
	}
	return out
}

// notesOf are the notes of the runs of a point, each once.
func notesOf(c *cell) (all []string) {
	for _, run := range c.runs {
		for _, text := range run.Notes {
			if !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}
