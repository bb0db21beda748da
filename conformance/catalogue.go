package conformance

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
)

//go:embed catalogue.yaml
var catalogueYAML []byte

// Catalogue is the text of every case, whether it has code yet or not.
type Catalogue struct {
	Areas []Area  `yaml:"areas"`
	Cases []Entry `yaml:"cases"`

	index map[string]int
}

// Area is a group of cases with one prefix.
type Area struct {
	Area  string `yaml:"area"`
	Title string `yaml:"title"`
}

// Strength says how firmly the expectation of a case is known.
type Strength string

// Strengths.
const (
	Exact  Strength = "E"
	Set    Strength = "S" // one of a set; the member seen is recorded
	Record Strength = "H" // to be recorded on hardware first
)

// Entry is one case of the catalogue.
type Entry struct {
	ID       string   `yaml:"id"`
	Area     string   `yaml:"area"`
	Text     string   `yaml:"text"`
	Needs    []string `yaml:"needs"` // capability tokens; "no X" needs X absent
	Strength Strength `yaml:"strength"`
	Expected string   `yaml:"expected"`
	Sources  []string `yaml:"sources"`
	// Runs says where the case runs: simulator, rxe, mlx5.
	Runs string `yaml:"runs"`
}

// Labels are what a label filter can name: ID, area, strength and needs.
func (e Entry) Labels() []string {
	return append([]string{e.ID, e.Area, string(e.Strength)}, e.Needs...)
}

var loadCatalogue = sync.OnceValues(func() (*Catalogue, error) { return parseCatalogue(catalogueYAML) })

// LoadCatalogue is the built-in catalogue. Callers do not change it.
func LoadCatalogue() (*Catalogue, error) { return loadCatalogue() }

func parseCatalogue(text []byte) (*Catalogue, error) {
	c := &Catalogue{index: map[string]int{}}
	if err := yaml.UnmarshalWithOptions(text, c, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	for i, e := range c.Cases {
		if _, dup := c.index[e.ID]; dup {
			return nil, fmt.Errorf("catalogue: %s is there twice", e.ID)
		}
		if !slices.ContainsFunc(c.Areas, func(a Area) bool { return a.Area == e.Area }) ||
			!strings.HasPrefix(e.ID, e.Area+"-") {
			return nil, fmt.Errorf("catalogue: %s is not of area %q", e.ID, e.Area)
		}
		switch e.Strength {
		case Exact, Set, Record:
		default:
			return nil, fmt.Errorf("catalogue: %s has strength %q", e.ID, e.Strength)
		}
		c.index[e.ID] = i
	}
	return c, nil
}

// Find returns the entry of an ID.
func (c *Catalogue) Find(id string) (Entry, bool) {
	i, ok := c.index[id]
	if !ok {
		return Entry{}, false
	}
	return c.Cases[i], true
}

// position orders IDs as the catalogue does.
func (c *Catalogue) position(id string) int { return c.index[id] }
