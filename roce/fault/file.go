package fault

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// LinkChange takes the link of a port down or up at a time of the run.
type LinkChange struct {
	Port string
	At   int64 // picoseconds
	Up   bool
}

// Plan is the content of a file of faults.
type Plan struct {
	Rules  []Rule
	Links  []LinkChange
	Events []Event

	doc *input.Doc
}

// file is the YAML form.
type file struct {
	Faults []FileRule  `yaml:"faults"`
	Links  []fileLink  `yaml:"links"`
	Events []fileEvent `yaml:"events"`
}

// FileRule is a rule as a file writes it. A key that is not given matches every frame.
type FileRule struct {
	Do         string     `yaml:"do" required:"true" oneof:"pass,drop,corrupt,corrupt-fcs,edit,delay,duplicate,reorder,mark,truncate,spoil" help:"what happens to the frame; corrupt flips a bit, so that the ICRC is wrong, corrupt-fcs spoils the FCS, so that the next port drops the frame, edit sets bytes and makes the ICRC right, spoil sets bytes and leaves it, mark is ECN, reorder puts the frame behind the next one, pass protects it from the rules below"`
	From       string     `yaml:"from" help:"the sending port, such as host0/mlx5_0"`
	Direction  string     `yaml:"direction" oneof:"requests,responses" help:"which way the frame goes"`
	Flow       *int       `yaml:"flow" min:"1" help:"number of the flow, which is what one port sends to one queue pair, in the order in which flows begin"`
	DestQP     *uint32    `yaml:"dest_qp" min:"0" max:"16777215" help:"queue pair that the frame is for"`
	Opcode     *uint8     `yaml:"opcode" min:"0" max:"255" help:"opcode in the base transport header"`
	PSN        *uint32    `yaml:"psn" min:"0" max:"16777215" help:"packet sequence number"`
	Packet     *int       `yaml:"packet" min:"1" max:"8388607" help:"packet of the flow: the PSN of a request, counted from 1 at the first"`
	Message    *int       `yaml:"message" min:"1" help:"message of the flow, counted from 1"`
	Iteration  *int       `yaml:"iteration" min:"1" help:"how many times the port has sent this PSN, this time included"`
	Skip       int        `yaml:"skip" min:"0" help:"how many matching frames pass first"`
	Count      int        `yaml:"count" min:"0" help:"how many matching frames are then acted upon; 0: all"`
	PerMillion *uint32    `yaml:"per_million" min:"1" max:"1000000" help:"chance, in a million, that a matching frame is acted upon, drawn from the seed of the run"`
	Delay      int64      `yaml:"delay" unit:"time" max:"100s" help:"with do: delay, how much later the frame arrives"`
	Keep       int        `yaml:"keep" min:"0" help:"with do: truncate, how many bytes of the frame arrive"`
	Edits      []FileEdit `yaml:"edits" help:"with do: edit or spoil, the bytes that change"`
}

// FileEdit is a ByteEdit as a file writes it.
type FileEdit struct {
	Offset int   `yaml:"offset" required:"true" min:"-48" help:"place of the byte, from the first one of the base transport header; negative: in the UDP header (-8 to -1), or the IP header before it, whose checksum is made right"`
	Value  uint8 `yaml:"value" required:"true" min:"0" max:"255" help:"what the byte becomes"`
}

type fileLink struct {
	Port string `yaml:"port" required:"true"`
	At   int64  `yaml:"at" required:"true" unit:"time"`
	To   string `yaml:"to" required:"true" oneof:"down,up"`
}

// Parse reads a file of faults. Each error is an *input.Error with file, line and column; they are
// joined.
func Parse(name string, src []byte) (*Plan, error) {
	var f file
	doc, err := input.Decode(name, src, &f)
	if err != nil {
		return nil, err
	}
	p := &Plan{doc: doc}
	var errs []error
	if err := p.add(f.Faults); err != nil {
		errs = append(errs, err)
	}
	for i, l := range f.Links {
		if l.At < 0 {
			errs = append(errs, doc.Errorf("links."+strconv.Itoa(i)+".at", "a time must not be negative"))
		}
		p.Links = append(p.Links, LinkChange{Port: l.Port, At: l.At, Up: l.To == "up"})
	}
	if err := p.addEvents(f.Events); err != nil {
		errs = append(errs, err)
	}
	if len(f.Faults)+len(f.Links)+len(f.Events) == 0 && len(errs) == 0 {
		errs = append(errs, doc.Errorf("", "the file has no faults, no links and no events"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return p, nil
}

// NewPlan makes a plan of the rules that another file has under the key faults. Errors name the
// place in that file; doc may be nil if the rules were checked before.
func NewPlan(doc *input.Doc, rules []FileRule) (*Plan, error) {
	p := &Plan{doc: doc}
	return p, p.add(rules)
}

func (p *Plan) add(rules []FileRule) error {
	var errs []error
	for i, r := range rules {
		rule := r.rule()
		if err := rule.Check(); err != nil {
			errs = append(errs, p.doc.Errorf("faults."+strconv.Itoa(i), "%s", strings.TrimPrefix(err.Error(), "fault: ")))
		}
		p.Rules = append(p.Rules, rule)
	}
	return errors.Join(errs...)
}

func (r *FileRule) rule() Rule {
	out := Rule{Skip: r.Skip, Count: r.Count, Delay: r.Delay, Keep: r.Keep}
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

// CheckProcesses returns an error for each event that names a process which the run does not have.
func (p *Plan) CheckProcesses(names []string) error {
	var errs []error
	for i, e := range p.Events {
		if e.Kind != Remove && !slices.Contains(names, e.Process) {
			errs = append(errs, p.doc.Errorf("events."+strconv.Itoa(i)+".process", "there is no process %q%s; this run has %s", e.Process, input.Suggest(e.Process, names), strings.Join(names, ", ")))
		}
	}
	return errors.Join(errs...)
}

// Target lists what exists in a run, which a plan can name.
type Target struct {
	Ports, Devices []string
	Hosts          []string // processes are counted over all hosts: host1/p2
	// Cannot is the reason why the target cannot carry out a kind of event, "" if it can; nil:
	// it can carry out all.
	Cannot func(EventKind) string
}

// Check returns an error for each name in the plan that the target does not have, and for each
// action that it cannot do.
func (p *Plan) Check(t Target) error {
	var errs []error
	known := func(path, what, name string, names []string) {
		if !slices.Contains(names, name) {
			errs = append(errs, p.doc.Errorf(path, "there is no %s %q%s; there are %s", what, name, input.Suggest(name, names), strings.Join(names, ", ")))
		}
	}
	for i, r := range p.Rules {
		if r.Match&MatchPort != 0 {
			known("faults."+strconv.Itoa(i)+".from", "port", r.Port, t.Ports)
		}
	}
	for i, l := range p.Links {
		known("links."+strconv.Itoa(i)+".port", "port", l.Port, t.Ports)
	}
	for i, e := range p.Events {
		path := "events." + strconv.Itoa(i)
		if e.Kind == Remove {
			known(path+".device", "device", e.Device, t.Devices)
		} else if host, _, _ := strings.Cut(e.Process, "/"); !slices.Contains(t.Hosts, host) {
			known(path+".process", "host", host, t.Hosts)
		}
		if t.Cannot == nil {
			continue
		}
		if why := t.Cannot(e.Kind); why != "" {
			errs = append(errs, p.doc.Errorf(path+".do", "%v cannot be injected here: %s", e.Kind, why))
		}
	}
	return errors.Join(errs...)
}
