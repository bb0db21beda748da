package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/calibrate"
	"github.com/rdmasim/rdmasim/experiment/report"
	"github.com/rdmasim/rdmasim/experiment/sweep"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/input"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// reviews are the flags of run by which a result goes into a review: requirements, the comparison
// with an earlier run, and reports.
type reviews struct {
	html, markdown, against string
	bounds                  []string

	require []*experiment.Requirement
	old     *experiment.Records
	x       *experiment.Experiment
	req     *experiment.Request
	name    string // of the experiment or the file, as it is given
}

func (v *reviews) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&v.bounds, "require", nil, "end with status 1 unless this `BOUND` holds, such as 'total.p99 < 20us': a load or total, a column or p50, p99, p999, rate, goodput, with --against also p99_change in percent; of a sweep at every point; may be repeated")
	f.StringVar(&v.against, "against", "", "compare with an earlier run: `FILE` is its NAME.json of -o, or its lines of --format jsonl")
	f.StringVar(&v.html, "html", "", "write a report as one HTML page to `FILE`: answer, interval, limit, what would change it, pictures, inputs")
	f.StringVar(&v.markdown, "markdown", "", "write the report as Markdown to `FILE`, for a pull request or the summary of a job")
}

// outputs are the files of the reports.
func (v *reviews) outputs() []outfile.Named {
	return []outfile.Named{{Flag: "--html", Path: v.html}, {Flag: "--markdown", Path: v.markdown}}
}

// read reads the requirements.
func (v *reviews) read() error {
	for _, text := range v.bounds {
		r, err := experiment.ParseRequirement(text)
		if err != nil {
			return usagef("--require %w", err)
		}
		if r.NeedsAgainst() && v.against == "" {
			return usagef("--require %q: a change needs --against with the records of an earlier run", text)
		}
		v.require = append(v.require, r)
	}
	return nil
}

// prepare reads the earlier run, and keeps what reports say of this one.
func (v *reviews) prepare(ctx context.Context, name string, x *experiment.Experiment, req *experiment.Request) error {
	v.name, v.x, v.req = name, x, req
	if v.against == "" {
		return nil
	}
	old, err := experiment.ReadRecords(ctx, v.against)
	if err != nil {
		return usagef("--against: %w", err)
	}
	if old.Name != "" && old.Name != x.Name {
		return usagef("--against: %s has results of %s, and this run is one of %s", v.against, old.Name, x.Name)
	}
	v.old = old
	return nil
}

// judged compares a result with the earlier run, and notes how it stands to the requirements; it
// adds an error if one is not met. An incomplete result meets none and misses none. answer is that
// of a sweep, or nil.
func (v *reviews) judged(res *experiment.Result, answer *sweep.Answer, err error) error {
	if res == nil || v.old != nil && len(res.Rows) == 0 {
		return err
	}
	if v.old != nil {
		var rows []table.Row
		var swept []string
		if answer != nil {
			named, keys, rerr := answer.Records()
			if rerr != nil {
				return errors.Join(err, rerr)
			}
			if swept = keys; v.old.Lines {
				rows = named
			}
		}
		if cerr := res.Compare(v.old, rows, swept); cerr != nil {
			return errors.Join(err, cerr)
		}
	}
	if !res.Complete || len(v.require) == 0 {
		return err
	}
	return errors.Join(err, res.Require(v.require))
}

// profile is that of the run; nil if it has none.
func (v *reviews) profile() (*profile.Profile, error) {
	if v.x.NoProfile {
		return nil, nil
	}
	p, err := v.x.Prepare(*v.req)
	if err != nil {
		return nil, err
	}
	return p.Profile()
}

// depends lets a result, or that of a sweep, say what would change it, and how far published
// figures let one trust it.
func (v *reviews) depends(res *experiment.Result, answer *sweep.Answer) {
	prof, err := v.profile()
	if err != nil || prof == nil { // the run itself reports an error of the profile
		return
	}
	res.Depends(prof, answer != nil)
	if r, err := calibrate.StoredReach(); err == nil {
		r.Judge(res, v.points(res, answer))
	}
}

// points are the runs behind a result, as far as their loads are known: those of a sweep of an
// experiment are not.
func (v *reviews) points(res *experiment.Result, answer *sweep.Answer) []experiment.Placed {
	if answer != nil {
		return answer.Places()
	}
	p, err := v.x.Prepare(*v.req)
	if err != nil {
		return nil
	}
	if v.x.OfScenario() == nil {
		return p.Ran(res)
	}
	places, err := p.Places(nil)
	if err != nil {
		return nil
	}
	return []experiment.Placed{{Places: places}}
}

// write writes the reports. One that cannot be written does not keep the other from its place.
func (v *reviews) write(c *cobra.Command, res *experiment.Result, answer *sweep.Answer) error {
	if v.html == "" && v.markdown == "" {
		return nil
	}
	r := &report.Report{Result: res, Question: cmp.Or(v.x.Title, res.Name), Again: v.again(c.Flags())}
	var lost error
	r.Profile, lost = v.profile()
	if res.Sensitivity == nil && answer == nil && v.x.OfScenario() == nil && v.req.Profile == "" {
		if stored, err := calibrate.StoredSensitivity(res.Name, v.req.Set); err == nil && stored.Current() == nil {
			r.Stored = stored.Sensitivity
		}
	}
	if s := v.x.OfScenario(); s != nil {
		r.Inputs = append(r.Inputs, report.Input{Name: "scenario " + v.name, Text: s.Text()})
	}
	if v.req.Fault != "" {
		r.Inputs = append(r.Inputs, report.Input{Name: "faults " + v.req.Fault, Text: string(v.req.FaultText)})
	}
	if v.html != "" {
		draw := func(title string, svg []byte) {
			r.Pictures = append(r.Pictures, report.Picture{Title: title, SVG: svg})
		}
		if answer != nil {
			answer.Draw(draw)
		} else {
			lost = errors.Join(lost, res.Draw(draw))
		}
	}
	for _, out := range []struct {
		path string
		fill func(io.Writer) error
	}{{v.html, r.WriteHTML}, {v.markdown, r.WriteMarkdown}} {
		if out.path == "" {
			continue
		}
		f, err := outfile.Create(c.Context(), out.path)
		if err == nil {
			err = f.Commit(out.fill)
		}
		if lost = errors.Join(lost, err); err == nil {
			fmt.Fprintln(c.ErrOrStderr(), "wrote", plain.Line(out.path))
		}
	}
	return lost
}

// unlike are flags that change where a result goes, and not the result.
var unlike = []string{"html", "markdown", "output", "format", "against", "require", "jobs", "store", "memory", "worker-memory", "yes", "pcap", "trace", "threads", "wall-limit", "shard",
	"slurm", "partition", "time", "mem", "array-size", "program"}

// again is the command line that gives the result again, as a shell reads it.
func (v *reviews) again(f *pflag.FlagSet) string {
	words := []string{"rdmasim", "run", v.name}
	f.Visit(func(flag *pflag.Flag) {
		if slices.Contains(unlike, flag.Name) {
			return
		}
		name := "--" + flag.Name
		if values, err := f.GetStringArray(flag.Name); err == nil {
			for _, text := range values {
				words = append(words, name, text)
			}
			return
		}
		if on, err := f.GetBool(flag.Name); err == nil {
			words = append(words, map[bool]string{true: name, false: name + "=false"}[on])
			return
		}
		words = append(words, name, flag.Value.String())
	})
	return commands.Shell(words)
}

// check refuses reports that nothing could be written to.
func (v *reviews) check(f *pflag.FlagSet) error {
	if err := input.NamesGiven(f, "html", "markdown", "against"); err != nil {
		return &experiment.UsageError{Err: err}
	}
	return nil
}
