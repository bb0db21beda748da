// Package page writes the record of a run, or two records and their comparison, as one HTML page
// that needs nothing but itself: it opens from a file, on a phone too, and works without its script
// but for the filter. Whatever text a record has stays text: the templates escape it, and the
// page's policy lets no script run but its own.
package page

import (
	"bufio"
	_ "embed"
	"html/template"
	"io"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/webpage"
)

// Target is a run on a page.
type Target struct {
	Run *report.Run
	// Name is a short one, such as that of its file; empty: its kind and profile.
	Name string
	// Again is the command that runs a case again; nil: none is known.
	Again func(id string) string
	// Capture is the capture of a case that failed (pcapng), or nil.
	Capture func(id string) []byte
}

// Rule is what the catalogue says of a case.
type Rule struct {
	Expected string
	Sources  []string
}

// Page is what a page shows: one run, or two and how the second differs from the first.
type Page struct {
	Targets    []Target
	Comparison *report.Comparison // of two
	// Areas are the titles of areas; Rule is that of a case. Both may be nil.
	Areas map[string]string
	Rule  func(id string) Rule
}

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

var layout = template.Must(template.New("page").Parse(pageHTML))

// Write writes the page. Equal pages are equal bytes.
func (p *Page) Write(w io.Writer) error {
	v := p.view()
	v.Policy, v.Style, v.Script = webpage.Policy(pageJS), webpage.Style(pageCSS), template.JS(pageJS)
	b := bufio.NewWriterSize(w, 1<<16)
	if err := layout.Execute(b, v); err != nil {
		return err
	}
	return b.Flush()
}
