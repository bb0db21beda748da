package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/sim/kernel/completion/oracle"
	"github.com/rdmasim/rdmasim/sim/mutant"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// WorkOnCounts runs probes on the mutant called name, or on the unchanged simulator if name is
// empty, and writes a JSON record for each to w. It is the worker for mutants that only counts
// notice, which conform runs as its command counts. The error is of an unknown mutant or of w.
func WorkOnCounts(w io.Writer, name string, probes []string) error {
	broken := rule.Broken{}
	if name != "" {
		m, err := mutant.Find(name)
		if err != nil {
			return err
		}
		broken = m.Rules()
	}
	enc := json.NewEncoder(w)
	for _, p := range oracle.Probes() {
		if !slices.Contains(probes, p.Name) {
			continue
		}
		if err := enc.Encode(counted(p, broken)); err != nil {
			return err
		}
	}
	return nil
}

// counted is a probe as a case of the report: what differs first is its assertion. A crash proves
// nothing.
func counted(p oracle.Probe, broken rule.Broken) (c report.Case) {
	c = report.Case{ID: p.Name, Outcome: report.Pass}
	defer func() {
		if r := recover(); r != nil {
			c.Outcome, c.Reason = report.Error, fmt.Sprint("panic: ", r)
		}
	}()
	if wrong := p.Check(broken); len(wrong) > 0 {
		c.Outcome, c.Where, c.Reason = report.Fail, wrong[0], wrong[0]
	}
	return c
}

// attackCounts runs probes on a mutant in a process of its own, and all others like next does.
func attackCounts(program string, stderr io.Writer, next attack) attack {
	return func(ctx context.Context, m mutant.Mutant, ids []string, finished func(report.Case)) error {
		if !m.Counted() {
			return next(ctx, m, ids, finished)
		}
		ctx, cancel := context.WithTimeout(ctx, DefaultWall)
		defer cancel()
		cmd := exec.CommandContext(ctx, program, append([]string{"counts", m.Name}, ids...)...)
		cmd.Stderr = stderr
		out, err := cmd.Output()
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("mutant %q: %w", m.Name, err)
		}
		for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
			var c report.Case
			if err := dec.Decode(&c); err != nil {
				return fmt.Errorf("mutant %q: %w", m.Name, err)
			}
			finished(c)
		}
		return nil
	}
}

// ofCases returns the mutants that cases can notice.
func ofCases(mutants []mutant.Mutant) []mutant.Mutant {
	return slices.DeleteFunc(slices.Clone(mutants), mutant.Mutant.Counted)
}

// countRounds are the probes to try: those that are likely to notice, then the others.
func countRounds(m mutant.Mutant) [][]string {
	var rest []string
	for _, p := range oracle.Probes() {
		if !slices.Contains(m.Killers, p.Name) {
			rest = append(rest, p.Name)
		}
	}
	return [][]string{m.Killers, rest}
}
