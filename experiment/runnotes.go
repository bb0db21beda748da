package experiment

import (
	"fmt"
	"strings"
)

// Unnumbered returns a note without its figures, so that notes of one kind are equal. It keeps the
// number of a fault, which identifies the fault.
func Unnumbered(text string) string {
	words := strings.Split(text, " ")
	for i, w := range words {
		bare := strings.Trim(w, "±().,;:%")
		if bare == "" || bare[0] < '0' || bare[0] > '9' || i > 0 && strings.EqualFold(words[i-1], "fault") {
			continue
		}
		if strings.Trim(bare, "0123456789.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ") == "" {
			words[i] = "#"
		}
	}
	return strings.Join(words, " ")
}

// runNote is a note that several runs of an experiment have.
type runNote struct {
	at     int // in the notes
	text   string
	varies bool // its figures are others in other runs
	runs   []string
}

// mostRunNames is how many bytes the names of a note's runs take.
const mostRunNames = 100

func (n *runNote) String() string {
	runs := n.runs
	for len(runs) > 1 && len(strings.Join(runs, "; ")) > mostRunNames {
		runs = runs[:len(runs)-1]
	}
	where := strings.Join(runs, "; ")
	if more := len(n.runs) - len(runs); more > 0 {
		where = fmt.Sprintf("%s and %d more", where, more)
	}
	if n.varies {
		return fmt.Sprintf("%s: %s (Figures differ from run to run; these come from %s.)", where, n.text, n.runs[0])
	}
	return where + ": " + n.text
}

// NoteOf adds a note about one of several runs. Notes that differ only in their figures are printed
// once, with their runs.
func (e *Env) NoteOf(run, text string) {
	if e.ofRuns == nil {
		e.ofRuns = map[string]*runNote{}
	}
	k := Unnumbered(text)
	n := e.ofRuns[k]
	if n == nil {
		n = &runNote{at: len(e.Out.Notes), text: text}
		e.ofRuns[k] = n
		e.Out.Notes = append(e.Out.Notes, "")
	}
	n.varies = n.varies || text != n.text
	n.runs = append(n.runs, run)
	e.Out.Notes[n.at] = n.String()
}
