package experiment

import (
	"fmt"
	"slices"
)

// Part is a scenario of an experiment, of so many runs. What it cannot do is refused by Check (nil: nothing), before anything runs.
type Part struct {
	Name  string
	Runs  int
	Check func() error
	Run   func() error
}

// Parts are the scenarios of an experiment that the parameter scenario chooses from, with their progress.
type Parts struct {
	*Env
	step, all int
}

// Next reports progress before each run; its error is that of Env.Step.
func (p *Parts) Next(what string) error {
	p.step++
	return p.Step(p.step-1, p.all, what)
}

// Do runs the parts that are asked for. checked is called, unless it is nil, once no part refuses to run.
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
