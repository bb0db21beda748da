package sweep

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
)

// Each kind of note stands there once, with the points that say so; figures that differ are told
// from those that do not.
func TestNotesOfASweep(t *testing.T) {
	const steady, every = "Load a: its rate is not steady: the interval is ±%d %%; give it 20us.", "Source of the scenario: a paper"
	n := newNotes()
	for _, a := range []string{"1", "2", "4"} {
		for _, b := range []string{"x", "y"} {
			pt := []experiment.Setting{{Key: "a", Value: a}, {Key: "b", Value: b}}
			for seed := range 2 {
				run := &result{Notes: []string{every}}
				if b == "y" {
					run.Notes = append(run.Notes, "the switch drops")
				}
				if a == "1" || a == "2" && b == "x" {
					run.Notes = append(run.Notes, "three points")
				}
				if a == "4" || b == "x" {
					run.Notes = append(run.Notes, "four points, no rectangle")
				}
				if a == "2" {
					run.Notes = append(run.Notes, fmt.Sprintf(steady, 5+len(b+a)*int(b[0])), "Fault 1 (drop) acted on 3 frames", "Fault 2 (drop) acted on 3 frames")
				}
				if a == "4" && b == "x" {
					run.Notes = append(run.Notes, "Fault 2 (drop) acted on 3 frames", "Fault 3 (drop) acted on 3 frames")
				}
				if a == "4" && b == "y" {
					run.Notes = append(run.Notes, fmt.Sprintf("waits of %dms", seed))
				}
				run.Notes = append(run.Notes, fmt.Sprintf("%s percent of load0", a), "Load load1: said", "Load load2: said")
				n.add(pt, run)
			}
			n.cells++
		}
	}
	want := []string{
		every,
		"a=1 b=x; a=1 b=y; a=2 b=x: three points",
		"a=1 b=x; a=2 b=x; a=4 b=x and 1 more of 6 points: four points, no rectangle",
		"all 6 points: 1 percent of load0 (Figures differ from point to point; these come from a=1 b=x.)",
		"Load load1: said",
		"Load load2: said",
		"b=y: the switch drops",
		"a=2: Load a: its rate is not steady: the interval is ±245 %; give it 20us. (Figures differ from point to point; these come from a=2 b=x.)",
		"a=2: Fault 1 (drop) acted on 3 frames",
		"a=2 b=x; a=2 b=y; a=4 b=x: Fault 2 (drop) acted on 3 frames",
		"a=4 b=x: Fault 3 (drop) acted on 3 frames",
		"a=4 b=y: waits of 0ms (With other seeds its figures differ.)",
	}
	if got := n.texts([]string{"a", "b"}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %d\n", len(got))
		for i, g := range got {
			if i >= len(want) || g != want[i] {
				t.Errorf("%d: %s", i, g)
			}
		}
	}
	seeds := newNotes()
	for i := range 3 {
		seeds.add(nil, &result{Notes: []string{every, fmt.Sprintf("interval %d", i)}})
	}
	seeds.cells = 1
	if got := seeds.texts(nil); !reflect.DeepEqual(got, []string{every, "interval 0 (With other seeds its figures differ.)"}) {
		t.Errorf("%q", got)
	}
}

// JSON has the notes of each point beside them.
func TestPointNotes(t *testing.T) {
	c := &cell{runs: []*result{{Notes: []string{"one", "two"}}, {Notes: []string{"two", "three"}}}}
	if got := notesOf(c); !reflect.DeepEqual(got, []string{"one", "two", "three"}) {
		t.Errorf("%q", got)
	}
}

// Names of points that fill lines are left out, but for the first.
func TestNotesNameFewLongPoints(t *testing.T) {
	n := &notes{cells: 4, values: map[string]*distinct{"a": {order: []string{"1", "2", "3", "4"}}}}
	v := &noted{count: 3, values: map[string]*distinct{"a": {order: make([]string, mostValues+1)}}}
	for _, p := range []string{"1", "2", "3"} {
		v.points = append(v.points, strings.Repeat(p, 60))
	}
	if got, want := n.where(v, []string{"a"}), strings.Repeat("1", 60)+" and 2 more of 4 points"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
