package sweep

import (
	"fmt"

	"github.com/rdmasim/rdmasim/experiment"
)

// notes gathers what runs say beside their rows. What is true of all points is said once; otherwise the points are named.
type notes struct {
	cells  int
	order  []string
	of     map[string]*noted
	faults []experiment.FaultCount
	more   int // that were too many
}

type noted struct {
	points []string // the first ones that say so
	count  int      // of points
	last   string
}

const (
	mostNotes  = 200 // different ones
	mostPoints = 3   // that are named with a note
)

func newNotes() *notes { return &notes{of: map[string]*noted{}} }

func (n *notes) add(pt []experiment.Setting, run *result) {
	name := experiment.PointName(pt)
	for i, f := range run.Faults {
		if i == len(n.faults) {
			n.faults = append(n.faults, experiment.FaultCount{What: f.What})
		}
		n.faults[i].Matched += f.Matched
		n.faults[i].Acted += f.Acted
	}
	for _, text := range run.Notes {
		v := n.of[text]
		if v == nil {
			if len(n.order) == mostNotes {
				n.more++
				continue
			}
			v = &noted{}
			n.of[text] = v
			n.order = append(n.order, text)
		}
		if v.count > 0 && v.last == name {
			continue // another seed
		}
		v.last = name
		if v.count++; len(v.points) < mostPoints {
			v.points = append(v.points, name)
		}
	}
}

func (n *notes) texts() []string {
	var out []string
	for _, text := range n.order {
		v := n.of[text]
		switch {
		case v.count == n.cells || v.points[0] == "":
			out = append(out, text)
		case v.count > mostPoints:
			out = append(out, fmt.Sprintf("%s (and %d more points): %s", v.points[0], v.count-1, text))
		default:
			for _, p := range v.points {
				out = append(out, p+": "+text)
			}
		}
	}
	if n.more > 0 {
		out = append(out, fmt.Sprintf("%d more notes are left out.", n.more))
	}
	for i := range n.faults {
		out = append(out, n.faults[i].String())
	}
	return out
}
