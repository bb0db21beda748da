package conformance

import (
	_ "embed"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/rdmasim/rdmasim/conformance/spec"
)

//go:embed deviations.yaml
var deviationsYAML []byte

// Ledger is the known deviations: what targets do differently from the catalogue,
// each with its evidence.
type Ledger struct {
	Deviations []Deviation `yaml:"deviations"`
}

// Deviation is one entry of the ledger.
type Deviation struct {
	ID    string `yaml:"id"`
	Title string `yaml:"title"`
	// Profiles that it holds for.
	Profiles []string `yaml:"profiles"`
	Evidence string   `yaml:"evidence"`
	// Steps and what they show.
	Predicts []Prediction `yaml:"predicts"`
}

// Prediction is what one step of a case shows.
type Prediction struct {
	Case string `yaml:"case"`
	Step string `yaml:"step"`
	Got  string `yaml:"got"`
}

// LoadLedger is the built-in ledger, checked: cases exist, no two entries predict one
// step of one profile.
func LoadLedger() (*Ledger, error) { return parseLedger(deviationsYAML) }

func parseLedger(text []byte) (*Ledger, error) {
	l := &Ledger{}
	if err := yaml.UnmarshalWithOptions(text, l, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("deviations: %w", err)
	}
	cat, err := LoadCatalogue()
	if err != nil {
		return nil, err
	}
	seen := map[[3]string]string{}
	for _, d := range l.Deviations {
		if d.ID == "" || d.Evidence == "" || len(d.Profiles) == 0 || len(d.Predicts) == 0 {
			return nil, fmt.Errorf("deviation %q needs an ID, evidence, profiles and predictions", d.ID)
		}
		for _, p := range d.Predicts {
			if _, ok := cat.Find(p.Case); !ok || p.Step == "" || p.Got == "" {
				return nil, fmt.Errorf("deviation %s: case %q is unknown, or a prediction is incomplete", d.ID, p.Case)
			}
			for _, profile := range d.Profiles {
				key := [3]string{profile, p.Case, p.Step}
				if other, twice := seen[key]; twice {
					return nil, fmt.Errorf("deviations %s and %s both predict %s: %s", other, d.ID, p.Case, p.Step)
				}
				seen[key] = d.ID
			}
		}
	}
	return l, nil
}

// of is what the ledger predicts of a case on a profile.
func (l *Ledger) of(profile, id string) []spec.Deviation {
	if l == nil {
		return nil
	}
	var out []spec.Deviation
	for _, d := range l.Deviations {
		if !slices.Contains(d.Profiles, profile) {
			continue
		}
		for _, p := range d.Predicts {
			if p.Case == id {
				out = append(out, spec.Deviation{ID: d.ID, Step: p.Step, Got: p.Got})
			}
		}
	}
	return out
}
