package fault

import (
	"errors"
	"strconv"
	"strings"

	"github.com/rdmasim/rdmasim/input"
)

// LinkChange takes the link of a port down or up at a time of the run.
type LinkChange struct {
	Port string
	At   int64 // picoseconds
	Up   bool
}

// Plan is what a file says.
type Plan struct {
	Rules []Rule
	Links []LinkChange

	doc *input.Doc
}

// file is the YAML form.
type file struct {
	Faults []fileRule `yaml:"faults"`
	Links  []fileLink `yaml:"links"`
}

type fileRule struct {
	Do         string     `yaml:"do" required:"true" oneof:"pass,drop,corrupt,corrupt-fcs,edit,delay,duplicate,reorder,mark"`
	From       string     `yaml:"from"`
	Direction  string     `yaml:"direction" oneof:"requests,responses"`
	Flow       *int       `yaml:"flow" min:"1"`
	DestQP     *uint32    `yaml:"dest_qp" min:"0" max:"0xffffff"`
	Opcode     *uint8     `yaml:"opcode" min:"0" max:"255"`
	PSN        *uint32    `yaml:"psn" min:"0" max:"0xffffff"`
	Packet     *int       `yaml:"packet" min:"1" max:"0x7fffff"`
	Message    *int       `yaml:"message" min:"1"`
	Iteration  *int       `yaml:"iteration" min:"1"`
	Skip       int        `yaml:"skip" min:"0"`
	Count      int        `yaml:"count" min:"0"`
	PerMillion *uint32    `yaml:"per_million" min:"1" max:"1000000"`
	Delay      int64      `yaml:"delay" unit:"time"`
	Edits      []fileEdit `yaml:"edits"`
}

type fileEdit struct {
	Offset int   `yaml:"offset" required:"true" min:"0"`
	Value  uint8 `yaml:"value" required:"true" min:"0" max:"255"`
}

type fileLink struct {
	Port string `yaml:"port" required:"true"`
	At   int64  `yaml:"at" required:"true" unit:"time"`
	To   string `yaml:"to" required:"true" oneof:"down,up"`
}

// Parse reads a file of faults. Each complaint is an *input.Error with file, line and
// column; all are joined.
func Parse(name string, src []byte) (*Plan, error) {
	var f file
	doc, err := input.Decode(name, src, &f)
	if err != nil {
		return nil, err
	}
	p := &Plan{doc: doc}
	var errs []error
	for i, r := range f.Faults {
		path := "faults." + strconv.Itoa(i)
		rule := r.rule()
		if err := rule.Check(); err != nil {
			errs = append(errs, doc.Errorf(path, "%s", strings.TrimPrefix(err.Error(), "fault: ")))
		}
		p.Rules = append(p.Rules, rule)
	}
	for i, l := range f.Links {
		if l.At < 0 {
			errs = append(errs, doc.Errorf("links."+strconv.Itoa(i)+".at", "a time must not be negative"))
		}
		p.Links = append(p.Links, LinkChange{Port: l.Port, At: l.At, Up: l.To == "up"})
	}
	if len(f.Faults)+len(f.Links) == 0 && len(errs) == 0 {
		errs = append(errs, doc.Errorf("", "no faults and no links: the file does nothing"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return p, nil
}

func (r *fileRule) rule() Rule {
	out := Rule{Skip: r.Skip, Count: r.Count, Delay: r.Delay}
	for a, name := range actionNames {
		if name == r.Do {
			out.Action = Action(a)
		}
	}
	if r.From != "" {
		out.Match, out.Port = out.Match|MatchPort, r.From
	}
	if r.Direction != "" {
		out.Match, out.Response = out.Match|MatchDirection, r.Direction == "responses"
	}
	if r.DestQP != nil {
		out.Match, out.DestQP = out.Match|MatchDestQP, *r.DestQP
	}
	if r.Opcode != nil {
		out.Match, out.Opcode = out.Match|MatchOpcode, *r.Opcode
	}
	if r.PSN != nil {
		out.Match, out.PSN = out.Match|MatchPSN, *r.PSN
	}
	for _, n := range []struct {
		from  *int
		to    *int
		field Fields
	}{{r.Flow, &out.Flow, MatchFlow}, {r.Packet, &out.Packet, MatchPacket}, {r.Message, &out.Message, MatchMessage}, {r.Iteration, &out.Iteration, MatchIteration}} {
		if n.from != nil {
			*n.to = *n.from
			out.Match |= n.field
		}
	}
	if r.PerMillion != nil {
		out.Chance = *r.PerMillion
	}
	for _, e := range r.Edits {
		out.Edits = append(out.Edits, ByteEdit(e))
	}
	return out
}

// Check says where the plan names a port that is none of the given ones.
func (p *Plan) Check(ports []string) error {
	known := func(name string) bool {
		for _, q := range ports {
			if q == name {
				return true
			}
		}
		return false
	}
	complain := func(path, name string) error {
		return p.doc.Errorf(path, "no port %q%s; there are %s", name, input.Suggest(name, ports), strings.Join(ports, ", "))
	}
	var errs []error
	for i, r := range p.Rules {
		if r.Match&MatchPort != 0 && !known(r.Port) {
			errs = append(errs, complain("faults."+strconv.Itoa(i)+".from", r.Port))
		}
	}
	for i, l := range p.Links {
		if !known(l.Port) {
			errs = append(errs, complain("links."+strconv.Itoa(i)+".port", l.Port))
		}
	}
	return errors.Join(errs...)
}
