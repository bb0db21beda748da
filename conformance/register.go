package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
)

// Config says what Register registers, for those who have a Runner of their own; others use
// Describe.
type Config struct {
	Runner *Runner
	// Items to register; nil: every case that has code.
	Items []Item
	// Started and Finished are called for every case; they may be nil.
	Started  func(id string)
	Finished func(report.Case)
}

// Register adds cases to the Ginkgo suite that is being built: a container for each area and
// a spec for each case, with its ID and text, labelled by ID, area, strength and needs. A check
// that fails does so in Ginkgo, at its own line and in its own thread. A case that is
// unsupported, unrecorded or not run is skipped with the reason. What a case saw, the
// known deviations that it met and its record are report entries.
func Register(cfg Config) error {
	items := cfg.Items
	if items == nil {
		var err error
		if items, err = Items(Suite()); err != nil {
			return err
		}
	}
	cat, err := LoadCatalogue()
	if err != nil {
		return err
	}
	r := &registration{runner: func() (*Runner, error) { return cfg.Runner, nil }, started: cfg.Started, finished: cfg.Finished}
	r.add(cat, items)
	return nil
}

// registration is what the specs of one call share.
type registration struct {
	runner   func() (*Runner, error)
	started  func(id string)
	finished func(report.Case)
	// last is the last case that ran in this process, and unusable says that the target cannot run
	// another one in it.
	last     string
	unusable bool
}

func (r *registration) add(cat *Catalogue, items []Item) {
	for len(items) > 0 {
		area := items[0].Entry.Area
		n := slices.IndexFunc(items, func(i Item) bool { return i.Entry.Area != area })
		if n < 0 {
			n = len(items)
		}
		group := items[:n]
		items = items[n:]
		ginkgo.Describe(cat.heading(area), ginkgo.Label(area), func() {
			for _, i := range group {
				args := []any{ginkgo.Label(ginkgoLabels(i.Entry)...), func() { r.spec(i) }}
				if i.Case.File != "" {
					args = append(args, types.CodeLocation{FileName: i.Case.File, LineNumber: i.Case.Line})
				}
				ginkgo.It(i.Entry.ID+" "+i.Entry.Text, args...)
			}
		})
	}
}

// heading returns the text of an area's container. Areas of other suites have no title.
func (c *Catalogue) heading(area string) string {
	for _, a := range c.Areas {
		if a.Area == area {
			return area + ": " + a.Title
		}
	}
	return area
}

func ginkgoLabels(e Entry) []string {
	labels := e.Labels()
	slices.Sort(labels)
	return slices.Compact(labels)
}

// spec runs a case as the body of a Ginkgo spec.
func (r *registration) spec(i Item) {
	if r.unusable {
		ginkgo.Fail(fmt.Sprintf("%s: not run: case %s left the target unusable until this process ends; run the rest in another, or by conform",
			i.Entry.ID, r.last))
	}
	runner, err := r.runner()
	if err != nil {
		ginkgo.Fail("no testbed: " + err.Error())
	}
	if r.started != nil {
		r.started(i.Entry.ID)
	}
	reported := false
	own := *runner
	own.failed = func(v spec.Verdict, skip int) {
		reported = true
		failInGinkgo(complaint(i.Entry.ID, v.Outcome, v.Reason), skip+1)
	}
	rec := own.Run(i.Entry, i.Case)
	if r.finished != nil {
		r.finished(rec)
	}
	r.last = i.Entry.ID
	if t, ok := runner.Target.(spec.Restarter); ok {
		r.unusable = t.NeedsRestart()
	}
	attach(rec, runner.Ledger)
	switch {
	case reported:
	case rec.Outcome.Bad():
		ginkgo.Fail(complaint(i.Entry.ID, rec.Outcome, strings.TrimSpace(rec.Reason+" "+rec.Where)))
	case rec.Outcome != report.Pass && rec.Outcome != report.PassDeviation:
		ginkgo.Skip(fmt.Sprintf("%s: %s", rec.Outcome, rec.Reason))
	}
}

func complaint(id string, o report.Outcome, reason string) string {
	return fmt.Sprintf("%s: %s: %s", id, o, reason)
}

// failInGinkgo fails the spec, at the line of the caller that is skip calls up. It returns, because
// the caller's thread may not be that of the spec; the caller ends its thread itself.
func failInGinkgo(text string, skip int) {
	defer func() { _ = recover() }() // Fail panics after it has noted the failure
	ginkgo.Fail(text, skip)
}
