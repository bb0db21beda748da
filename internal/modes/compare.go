package modes

import "fmt"

// Difference is the first place at which two runs of a program differ.
type Difference struct {
	A, B     Mode
	Artefact string
	Line     int // from 1
	Left     string
	Right    string
}

// Error returns the message.
func (d *Difference) Error() string {
	return fmt.Sprintf("%s, line %d differs:\n  %v: %.300s\n  %v: %.300s", d.Artefact, d.Line, d.A, d.Left, d.B, d.Right)
}

// compare finds the first difference of two records in what both have.
func compare(am, bm Mode, a, b *Record) *Difference {
	for i := range min(len(a.Artefacts), len(b.Artefacts)) {
		x, y := &a.Artefacts[i], &b.Artefacts[i]
		for k := range max(len(x.Lines), len(y.Lines)) {
			left, right := line(x.Lines, k), line(y.Lines, k)
			if left != right {
				return &Difference{am, bm, x.Name, k + 1, left, right}
			}
		}
	}
	return nil
}

func line(l []string, k int) string {
	if k < len(l) {
		return l[k]
	}
	return "(nothing)"
}

// Check runs a program in every mode. It returns a *Difference when two of them differ, and
// another error when the program cannot be run.
func (p *Program) Check() error {
	modes := []Mode{{Lockstep: true}, {}, {Lockstep: true, Watched: true}, {Watched: true}}
	c, err := p.config()
	if err != nil {
		return err
	}
	var records []*Record
	for _, m := range modes {
		r, err := p.run(c, m)
		if err != nil {
			return fmt.Errorf("%v: %w", m, err)
		}
		records = append(records, r)
	}
	// Each mode against lockstep, and what only watched runs have against each other.
	for _, pair := range [][2]int{{0, 1}, {2, 3}, {0, 2}} {
		if d := compare(modes[pair[0]], modes[pair[1]], records[pair[0]], records[pair[1]]); d != nil {
			return d
		}
	}
	return nil
}
