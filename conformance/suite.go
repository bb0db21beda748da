package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"

	"github.com/rdmasim/rdmasim/conformance/async"
	"github.com/rdmasim/rdmasim/conformance/atom"
	"github.com/rdmasim/rdmasim/conformance/bf"
	"github.com/rdmasim/rdmasim/conformance/comp"
	"github.com/rdmasim/rdmasim/conformance/cq"
	"github.com/rdmasim/rdmasim/conformance/dev"
	"github.com/rdmasim/rdmasim/conformance/errs"
	"github.com/rdmasim/rdmasim/conformance/ib"
	"github.com/rdmasim/rdmasim/conformance/mr"
	"github.com/rdmasim/rdmasim/conformance/mw"
	"github.com/rdmasim/rdmasim/conformance/odp"
	"github.com/rdmasim/rdmasim/conformance/pd"
	"github.com/rdmasim/rdmasim/conformance/perf"
	"github.com/rdmasim/rdmasim/conformance/post"
	"github.com/rdmasim/rdmasim/conformance/qps"
	"github.com/rdmasim/rdmasim/conformance/rc"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/conformance/srq"
	"github.com/rdmasim/rdmasim/conformance/td"
	"github.com/rdmasim/rdmasim/conformance/uar"
	"github.com/rdmasim/rdmasim/conformance/uc"
	"github.com/rdmasim/rdmasim/conformance/ud"
	"github.com/rdmasim/rdmasim/conformance/wire"
	"github.com/rdmasim/rdmasim/report"
)

// registrars of the areas that have code.
var registrars = []func(*spec.Suite){
	dev.Register, pd.Register, cq.Register, mr.Register,
	td.Register, uar.Register, bf.Register, qps.Register, post.Register, rc.Register, atom.Register, errs.Register,
	uc.Register, ud.Register,
	comp.Register, async.Register,
	srq.Register, mw.Register, wire.Register, perf.Register, ib.Register, odp.Register,
}

// Suite is every case that has code.
func Suite() *spec.Suite {
	s := &spec.Suite{}
	for _, r := range registrars {
		r(s)
	}
	return s
}

// Item is a catalogue entry with its code.
type Item struct {
	Entry Entry
	Case  spec.Case
}

// Items joins the suite with the catalogue, in the catalogue's order. Code for an
// unknown ID, or two for one, is an error.
func Items(s *spec.Suite) ([]Item, error) {
	cat, err := LoadCatalogue()
	if err != nil {
		return nil, err
	}
	errs := s.Errs()
	var out []Item
	for _, c := range s.Cases() {
		e, ok := cat.Find(c.ID)
		if !ok {
			errs = append(errs, fmt.Errorf("%s: case %s is not in the catalogue", c.Where, c.ID))
			continue
		}
		out = append(out, Item{e, c})
	}
	slices.SortFunc(out, func(a, b Item) int { return cat.position(a.Entry.ID) - cat.position(b.Entry.ID) })
	return out, errors.Join(errs...)
}

// Config says what Register registers.
type Config struct {
	Runner *Runner
	// Items to register; nil: every case that has code.
	Items []Item
	// Started and Finished, when set, are told of every case.
	Started  func(id string)
	Finished func(report.Case)
}

// Register adds the cases to the Ginkgo suite that is being built, one container for
// each area, labelled by ID, area, strength and needs. Each record is attached to its
// spec as a report entry.
func Register(cfg Config) error {
	items := cfg.Items
	if items == nil {
		var err error
		if items, err = Items(Suite()); err != nil {
			return err
		}
	}
	for len(items) > 0 {
		area := items[0].Entry.Area
		n := slices.IndexFunc(items, func(i Item) bool { return i.Entry.Area != area })
		if n < 0 {
			n = len(items)
		}
		group := items[:n]
		items = items[n:]
		ginkgo.Describe(area, func() {
			for _, i := range group {
				ginkgo.It(i.Entry.ID+" "+i.Entry.Text, ginkgo.Label(ginkgoLabels(i.Entry)...), func() { cfg.spec(i) })
			}
		})
	}
	return nil
}

func ginkgoLabels(e Entry) []string {
	labels := e.Labels()
	slices.Sort(labels)
	return slices.Compact(labels)
}

func (cfg Config) spec(i Item) {
	if cfg.Started != nil {
		cfg.Started(i.Entry.ID)
	}
	rec := cfg.Runner.Run(i.Entry, i.Case)
	if cfg.Finished != nil {
		cfg.Finished(rec)
	}
	ginkgo.AddReportEntry("record", rec, ginkgo.ReportEntryVisibilityNever)
	switch {
	case rec.Outcome.Bad():
		ginkgo.Fail(strings.TrimSpace(fmt.Sprintf("%s: %s %s", rec.Outcome, rec.Reason, rec.Where)))
	case rec.Outcome != report.Pass && rec.Outcome != report.PassDeviation:
		ginkgo.Skip(fmt.Sprintf("%s: %s", rec.Outcome, rec.Reason))
	}
}
