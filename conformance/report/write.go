package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// WriteJSON writes the run as one indented JSON object, without control characters.
func (r *Run) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(plain.NewWriter(w))
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(r)
}

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Name    string       `xml:"name,attr"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Time       string          `xml:"time,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`

	took int64
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Name      string        `xml:"name,attr"`
	Class     string        `xml:"classname,attr"`
	Time      string        `xml:"time,attr"`
	Failure   *junitMessage `xml:"failure,omitempty"`
	Error     *junitMessage `xml:"error,omitempty"`
	Skipped   *junitMessage `xml:"skipped,omitempty"`
	SystemOut string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the run for tools that read JUnit: a suite for each area. A case has what it
// saw as its output, and a failed one the line of its check and the command that runs it again,
// which again returns (nil: none). Times are those of the target's clock, which is virtual on a
// simulator.
func (r *Run) WriteJUnit(w io.Writer, again func(id string) string) error {
	out := junitSuites{Name: plain.Line("conform " + r.Target.Kind)}
	for i := 0; i < len(r.Cases); {
		area := r.Cases[i].Area
		s := junitSuite{Name: plain.Line(area), Properties: r.properties()}
		for ; i < len(r.Cases) && r.Cases[i].Area == area; i++ {
			command := ""
			if again != nil && r.Cases[i].Outcome.Bad() {
				command = again(r.Cases[i].ID)
			}
			s.add(&r.Cases[i], command)
		}
		s.Time = seconds(s.took)
		out.Suites = append(out.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", " ")
	if err := enc.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// seconds is a time in nanoseconds as JUnit has it.
func seconds(ns int64) string { return fmt.Sprintf("%.9f", float64(ns)/1e9) }

// saw is what a case saw and how it ended, in lines.
func saw(c *Case) string {
	var b strings.Builder
	for i := range c.Observations {
		o := &c.Observations[i]
		fmt.Fprintf(&b, "%s: %s", plain.Line(o.Step), plain.Line(text(o.Got)))
		if o.Want != nil {
			fmt.Fprintf(&b, " (want %s)", plain.Line(text(o.Want)))
		}
		if o.Deviation != "" {
			fmt.Fprintf(&b, " deviation %s", plain.Line(o.Deviation))
		}
		b.WriteByte('\n')
	}
	if !c.Outcome.Bad() {
		b.WriteString(c.Reason)
	}
	for _, f := range c.Frames {
		fmt.Fprintf(&b, "frame at %d ns, %s to %s: %s %s\n", f.AtNs, f.From, f.To, f.Text, f.Fate)
	}
	return strings.TrimSpace(b.String())
}

func (r *Run) properties() []junitProperty {
	clock := "real"
	if r.Target.Kind == "sim" {
		clock = "simulated"
	}
	p := []junitProperty{{"seed", fmt.Sprint(r.Seed)}, {"target", r.Target.Kind}, {"profile", r.Target.Profile},
		{"device", r.Target.Device}, {"clock", clock}}
	keys := make([]string, 0, len(r.Environment))
	for k := range r.Environment {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		p = append(p, junitProperty{k, r.Environment[k]})
	}
	for i := range p {
		p[i] = junitProperty{plain.Line(p[i].Name), plain.Line(p[i].Value)}
	}
	return p
}

func (s *junitSuite) add(c *Case, again string) {
	j := junitCase{Name: plain.Line(c.ID + " " + c.Text), Class: plain.Line(c.Area), Time: seconds(c.Took()), SystemOut: plain.Text(saw(c))}
	m := &junitMessage{Type: plain.Line(string(c.Outcome)), Message: plain.Text(c.Reason), Text: plain.Text(strings.TrimSpace(c.Where))}
	if again != "" {
		m.Text = strings.TrimSpace(m.Text + "\nagain: " + plain.Line(again))
	}
	s.Tests++
	s.took += c.Took()
	switch c.Outcome {
	case Pass, PassDeviation:
	case Fail, Flaky:
		s.Failures++
		j.Failure = m
	case Error, Integrity:
		s.Errors++
		j.Error = m
	default:
		s.Skipped++
		j.Skipped = m
	}
	s.Cases = append(s.Cases, j)
}
