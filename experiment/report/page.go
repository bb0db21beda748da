package report

import (
	"bufio"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/internal/cli/webpage"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

var layout = template.Must(template.New("page").Parse(pageHTML))

// mostLines bounds the rows of the tables of a page; files of the run have all of them.
const mostLines = 2000

// view is the page as its template wants it.
type view struct {
	Policy, Title string
	Style         template.CSS
	Bad           bool
	Answers       []answer
	Intervals     []string
	Limits, Intro []string
	Changes       []change
	Searched      bool
	Required      []required
	Pictures      []pictureView
	Tables        []tableView
	Hidden, Left  int
	Against       []string
	AgainstHead   []string
	AgainstRows   []againstRow
	Notes         []string
	Facts         [][2]string
	Inputs        []Input
	Again         string
}

type required struct {
	Says string
	Met  bool
}

type pictureView struct {
	Title string
	URL   template.URL
}

type tableView struct {
	Head  []string
	Lines [][]string
}

type againstRow struct {
	Cells  []string
	Beyond bool
}

// WriteHTML writes the report as a page. Equal reports are equal bytes.
func (r *Report) WriteHTML(w io.Writer) error {
	res := r.Result
	v := view{Policy: webpage.Policy(""), Style: webpage.Style(pageCSS), Title: r.title(), Bad: r.bad(), Answers: r.answers(), Intervals: r.intervals(),
		Limits: r.limited(), Searched: r.sensitivity() != nil, Facts: r.facts(), Again: plain.Line(r.Again)}
	v.Intro, v.Changes = r.changes()
	for i := range v.Changes {
		v.Changes[i].plain()
	}
	for _, q := range res.Required {
		v.Required = append(v.Required, required{plain.Line(q.Says), q.Met})
	}
	for _, p := range r.Pictures {
		v.Pictures = append(v.Pictures, pictureView{plain.Line(p.Title), template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(p.SVG))})
	}
	v.Tables, v.Hidden, v.Left = r.tables(mostLines)
	if c := res.Against; c != nil {
		for _, l := range c.Summary() {
			v.Against = append(v.Against, plain.Line(l))
		}
		v.AgainstHead = table.Headings(c.Columns())
		for _, ch := range c.Shown() {
			v.AgainstRows = append(v.AgainstRows, againstRow{ch.Cells(), ch.Beyond == "yes"})
		}
		v.AgainstRows = v.AgainstRows[:min(len(v.AgainstRows), mostLines)]
	}
	v.Notes = r.notes()
	for _, in := range r.Inputs {
		v.Inputs = append(v.Inputs, Input{plain.Line(in.Name), plain.Text(in.Text)})
	}
	b := bufio.NewWriterSize(w, 1<<16)
	if err := layout.Execute(b, &v); err != nil {
		return err
	}
	return b.Flush()
}

func (c *change) plain() {
	for _, s := range []*string{&c.Key, &c.Value, &c.Source, &c.Tried, &c.Effect, &c.Holds} {
		*s = plain.Line(*s)
	}
}

// tables are the tables that people see, with so many lines together; it returns how many rows are
// in none, and how many were too many.
func (r *Report) tables(most int) (all []tableView, hidden, left int) {
	hidden, _ = r.Result.Tables(func(columns []string, rows []table.Row) error {
		shown := make([]table.Row, 0, len(rows))
		for i := range rows {
			if most == 0 {
				left++
				continue
			}
			most--
			shown = append(shown, rows[i])
		}
		head, lines := table.Cells(columns, shown)
		if len(lines) > 0 {
			all = append(all, tableView{table.Headings(head), lines})
		}
		return nil
	})
	return all, hidden, left
}
