package experiment

import (
	"fmt"
	"slices"
)

// Part is a scenario of an experiment. Check, which may be nil, refuses what the scenario cannot
// do, before anything runs.
type Part struct {
	Name  string
	Runs  int // how often Run calls Next
	Check func() error
	Run   func() error
}

// Parts are the scenarios of an experiment among which its parameter scenario chooses, with their
// progress.
type Parts struct {
	*Env
	step, all int
}

// Next reports progress before each run; it returns the error of Env.Step.
func (p *Parts) Next(what string) error {
	p.step++
	return p.Step(p.step-1, p.all, what)
}

// Do runs the parts that the parameter selects. checked, which may be nil, is called after all
// checks.
func (p *Parts) Do(parts []Part, checked func()) error {
	name := p.String("scenario")
	parts = slices.DeleteFunc(parts, func(x Part) bool { return name != "all" && name != x.Name })
	for _, x := range parts {
		if p.all += x.Runs; x.Check == nil {
			continue
		}
		if err := x.Check(); err != nil {
			return err
		}
	}
	if checked != nil {
		checked()
	}
	for _, x := range parts {
		if err := x.Run(); err != nil {
			return fmt.Errorf("%s: %w", x.Name, err)
		}
	}
	return p.Step(p.all, p.all, "done")
}
