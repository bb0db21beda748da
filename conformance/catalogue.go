package conformance

import (
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"github.com/rdmasim/rdmasim/internal/cli/input"
)

//go:embed catalogue.yaml
var catalogueYAML []byte

// Catalogue is the text of every case, whether it has code yet or not.
type Catalogue struct {
	Areas        []Area       `yaml:"areas"`
	Capabilities []Capability `yaml:"capabilities"`
	Cases        []Entry      `yaml:"cases"`

	index map[string]int
}

// Area is a group of cases with one prefix.
type Area struct {
	Area  string `yaml:"area"`
	Title string `yaml:"title"`
	Waits string `yaml:"waits"` // for rows without code that do not say it themselves
}

// Capability is something that a case can need and that a target can be asked for by its
// name, see verbs.Testbed.
type Capability struct {
	Capability string `yaml:"capability"`
	About      string `yaml:"about"`
}

// Strength says how firmly the expectation of a case is known.
type Strength string

// The strengths.
const (
	Exact  Strength = "E"
	Set    Strength = "S" // one of a set; the member seen is recorded
	Record Strength = "H" // to be recorded on hardware first
)

// End is an end of a connection.
type End string

// The ends, by what they do with requests.
const (
	Requester End = "requester"
	Responder End = "responder"
)

// Entry is one case of the catalogue.
type Entry struct {
	ID       string   `yaml:"id"`
	Area     string   `yaml:"area"`
	Text     string   `yaml:"text"`
	Needs    []string `yaml:"needs"` // names of capabilities; "no X" needs X absent
	Strength Strength `yaml:"strength"`
	Expected string   `yaml:"expected"`
	Sources  []string `yaml:"sources"`
	// Runs says where the case runs.
	Runs Runs `yaml:"runs"`
	// Judges says which end a row is about that says nothing of the other; empty: it is about both,
	// or has one end.
	Judges End `yaml:"judges"`
	// Waits says what a row that has no code waits for.
	Waits string `yaml:"waits"`
}

// Labels are what a label filter can name: ID, area, strength and needs.
func (e Entry) Labels() []string {
	l := append([]string{e.ID, e.Area, string(e.Strength)}, e.Needs...)
	if e.Area == "RAND" {
		l = append(l, "random")
	}
	return l
}

// TwoNodes reports whether the case is about a second node, or the wire between two.
func (e *Entry) TwoNodes() bool {
	return e.Judges != "" || slices.ContainsFunc([]string{"2p", "tap", "inj"}, func(need string) bool { return slices.Contains(e.Needs, need) })
}

// builtIn is the catalogue that comes with the program, once it is known.
var builtIn struct {
	once sync.Once
	c    *Catalogue
	err  error
}

// LoadCatalogue returns the built-in catalogue, which callers must not change.
func LoadCatalogue() (*Catalogue, error) {
	builtIn.once.Do(func() { builtIn.c, builtIn.err = parseCatalogue(catalogueYAML) })
	return builtIn.c, builtIn.err
}

// Packed is the built-in catalogue in a form that takes a tenth of the time to read, for other
// processes of the same program.
type Packed struct {
	Of      [sha256.Size]byte `json:"of"` // the hash of the text that it was read from
	Content *Catalogue        `json:"content"`
}

// Pack packs the built-in catalogue.
var Pack = sync.OnceValues(func() (json.RawMessage, error) {
	c, err := LoadCatalogue()
	if err != nil {
		return nil, err
	}
	return json.Marshal(Packed{sha256.Sum256(catalogueYAML), c})
})

// Adopt takes the built-in catalogue from another process, if it has the same and LoadCatalogue was
// not called yet.
func Adopt(packed json.RawMessage) error {
	var p Packed
	if err := json.Unmarshal(packed, &p); err != nil {
		return fmt.Errorf("a packed catalogue: %w", err)
	}
	if p.Content == nil || p.Of != sha256.Sum256(catalogueYAML) {
		return nil
	}
	builtIn.once.Do(func() {
		p.Content.number()
		builtIn.c = p.Content
	})
	return nil
}

// number makes the index of the cases.
func (c *Catalogue) number() {
	c.index = map[string]int{}
	for i, e := range c.Cases {
		c.index[e.ID] = i
	}
}

func parseCatalogue(text []byte) (*Catalogue, error) {
	c := &Catalogue{}
	if err := yaml.UnmarshalWithOptions(text, c, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	if err := c.checkCapabilities(); err != nil {
		return nil, err
	}
	last := map[string]int{} // number of the last case of an area
	for _, e := range c.Cases {
		last[e.Area]++
		if err := c.checkEntry(e, last[e.Area]); err != nil {
			return nil, err
		}
	}
	c.number()
	return c, nil
}

func (c *Catalogue) checkCapabilities() error {
	names := c.capabilityNames()
	for i, k := range c.Capabilities {
		if k.About == "" || strings.HasPrefix(k.Capability, "no ") || slices.Contains(names[:i], k.Capability) {
			return fmt.Errorf("catalogue: capability %q says nothing about itself, begins with \"no \", or is listed twice", k.Capability)
		}
	}
	return nil
}

// checkEntry checks a row. Its number must follow the last one of its area, so that no row can
// get lost and no ID can be used again.
func (c *Catalogue) checkEntry(e Entry, number int) error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("catalogue.yaml: %s: %s", e.ID, fmt.Sprintf(format, a...))
	}
	switch next := fmt.Sprintf("%s-%03d", e.Area, number); {
	case !slices.ContainsFunc(c.Areas, func(a Area) bool { return a.Area == e.Area }):
		return bad("there is no area %q; a new one gets a line under areas", e.Area)
	case e.ID != next:
		return bad("the next case of area %s must be %s: numbers count up without a gap, and a row is never removed", e.Area, next)
	case number >= reserved:
		return bad("numbers from %d are reserved", reserved)
	case e.Text == "":
		return bad("the text is missing")
	case e.Strength != Exact && e.Strength != Set && e.Strength != Record:
		return bad("strength is %q: want E, S or H", e.Strength)
	case e.Judges != "" && e.Judges != Requester && e.Judges != Responder:
		return bad("judges is %q: want requester or responder, or leave it out", e.Judges)
	case e.Runs.check() != nil:
		return bad("%v", e.Runs.check())
	}
	names := c.capabilityNames()
	for _, n := range e.Needs {
		if name := strings.TrimPrefix(n, "no "); !slices.Contains(names, name) {
			return bad("needs %q, which is not a capability%s; a new one gets a line under capabilities in catalogue.yaml",
				name, input.Suggest(name, names))
		}
	}
	return nil
}

// reserved is the first number of each area that the catalogue leaves to the cases of other suites.
const reserved = 900

// ownForm is the form of their IDs: three digits, as in the catalogue.
var ownForm = regexp.MustCompile(`^[A-Z][A-Z0-9]*-9[0-9]{2}$`)

// knows reports whether a file may speak of a case: one of the catalogue, or of another suite.
func (c *Catalogue) knows(id string) bool {
	_, ok := c.Find(id)
	return ok || ownForm.MatchString(id)
}

// checkOwn refuses items with an ID that a case of the catalogue has or may get, or that is there
// twice.
func (c *Catalogue) checkOwn(items []Item) error {
	seen := map[string]bool{}
	for _, i := range items {
		id, area := i.Entry.ID, i.Entry.Area
		if seen[id] {
			return fmt.Errorf("case %s is given twice", id)
		}
		seen[id] = true
		e, ok := c.Find(id)
		if ok && (e.Area != area || e.Text != i.Entry.Text) {
			return fmt.Errorf("%s is a case of the catalogue: numbers from %d are yours, such as %s-%d", id, reserved, e.Area, reserved)
		}
		if ours := slices.ContainsFunc(c.Areas, func(a Area) bool { return strings.HasPrefix(id, a.Area+"-") }); !ok && ours && !ownForm.MatchString(id) {
			return fmt.Errorf("%s may become a case of the catalogue: numbers from %d are yours, such as %s-%d", id, reserved, area, reserved)
		}
	}
	return nil
}

func (c *Catalogue) capabilityNames() []string {
	names := make([]string, len(c.Capabilities))
	for i, k := range c.Capabilities {
		names[i] = k.Capability
	}
	return names
}

// Find returns the entry of an ID.
func (c *Catalogue) Find(id string) (Entry, bool) {
	i, ok := c.index[id]
	if !ok {
		return Entry{}, false
	}
	return c.Cases[i], true
}

// Waits says what a row that has no code waits for.
func (c *Catalogue) Waits(e Entry) string {
	for _, a := range c.Areas {
		if a.Area == e.Area && e.Waits == "" {
			return a.Waits
		}
	}
	return e.Waits
}

// position returns the place of an ID in the catalogue's order.
func (c *Catalogue) position(id string) int { return c.index[id] }
