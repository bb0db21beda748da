package conformance

import (
	"context"
	_ "embed"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/fixtures"
)

// LedgerFile is a file of deviations that a user adds to those that come with the program.
type LedgerFile struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// LoadLedger returns the ledger of known deviations that comes with the program
// (fixtures/deviations) and what more adds to it, checked against the catalogue; more may speak of
// cases of other suites.
func LoadLedger(more ...LedgerFile) (*report.Ledger, error) {
	cat, err := LoadCatalogue()
	if err != nil {
		return nil, err
	}
	names, err := fixtures.List("deviations")
	if err != nil {
		return nil, err
	}
	l := &report.Ledger{}
	exists := func(id string) bool { _, ok := cat.Find(id); return ok }
	for _, name := range names {
		text, err := fixtures.Read("deviations/" + name)
		if err != nil {
			return nil, err
		}
		if err := l.Add("deviations/"+name, text, exists); err != nil {
			return nil, err
		}
	}
	for _, f := range more {
		if err := l.Add(f.Name, []byte(f.Text), cat.knows); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// predictions returns what the ledger predicts of a case on a platform.
func predictions(l *report.Ledger, p report.Platform, id string) []spec.Deviation {
	var out []spec.Deviation
	for _, d := range l.Of(p) {
		for _, x := range d.Predicts {
			if x.Of(id) {
				out = append(out, spec.Deviation{ID: d.ID, Step: x.Step, Got: x.Got, Sometimes: x.Sometimes || d.Inherited(p)})
			}
		}
	}
	return out
}

//go:embed compare.yaml
var compareRules []byte

// LoadRules returns how steps of two runs are compared (conformance/compare.yaml), checked against
// the catalogue.
func LoadRules() (*report.Rules, error) {
	cat, err := LoadCatalogue()
	if err != nil {
		return nil, err
	}
	return report.ParseRules("conformance/compare.yaml", compareRules, func(id string) bool { _, ok := cat.Find(id); return ok })
}

// ReadPublished reads a record of published measurements, whose cases must be in the catalogue.
func ReadPublished(ctx context.Context, name string) (*report.Published, error) {
	cat, err := LoadCatalogue()
	if err != nil {
		return nil, err
	}
	return report.ReadPublished(ctx, name, func(id string) bool { _, ok := cat.Find(id); return ok })
}
