package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/plain"
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
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Name      string        `xml:"name,attr"`
	Class     string        `xml:"classname,attr"`
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

// WriteJUnit writes the run for tools that read JUnit: a suite for each area.
func (r *Run) WriteJUnit(w io.Writer) error {
	out := junitSuites{Name: plain.Line("conform " + r.Target.Kind)}
	for i := 0; i < len(r.Cases); {
		area := r.Cases[i].Area
		s := junitSuite{Name: plain.Line(area), Properties: r.properties()}
		for ; i < len(r.Cases) && r.Cases[i].Area == area; i++ {
			s.add(r.Cases[i])
		}
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

func (r *Run) properties() []junitProperty {
	p := []junitProperty{{"seed", fmt.Sprint(r.Seed)}, {"target", r.Target.Kind}, {"profile", r.Target.Profile},
		{"device", r.Target.Device}}
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

func (s *junitSuite) add(c Case) {
	j := junitCase{Name: plain.Line(c.ID + " " + c.Text), Class: plain.Line(c.Area)}
	m := &junitMessage{Type: plain.Line(string(c.Outcome)), Message: plain.Text(c.Reason), Text: plain.Text(strings.TrimSpace(c.Where))}
	s.Tests++
	switch c.Outcome {
	case Pass, PassDeviation:
		j.SystemOut = plain.Text(c.Reason)
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
