package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/chart"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/browser"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// sample is a report of two loads; text is part of every name.
func sample(t *testing.T, text string) *Report {
	t.Helper()
	prof, err := profile.Load("connectx-5")
	if err != nil {
		t.Fatal(err)
	}
	res := &experiment.Result{Name: "two" + text, Version: "1.2.3", Profile: "connectx-5" + text, ProfileHash: "cafe", Seed: 7, Hypotheses: []string{"a=b" + text},
		Complete: true, Notes: []string{"A note" + text + "."}, Columns: []string{"row", "name", "rate_mps", "gbps", experiment.LimitedBy}}
	for i, name := range []string{"first", "second", "all"} {
		var row table.Row
		row.Set("row", map[bool]string{true: "total", false: "traffic"}[i == 2]).Set("name", name+text).Set("rate_mps", 10.0*float64(i+1)).Set("gbps", 1.5)
		if i < 2 {
			row.Set("rate_ci95_percent", 2.0)
		}
		row.Set(experiment.LimitedBy, "send engine").Set("limit_unit", "host0/mlx5_0"+text).Set("limit_percent", 99.5)
		res.Rows = append(res.Rows, row)
	}
	old := filepath.Join(t.TempDir(), "old.jsonl")
	var was table.Row
	was.Set("experiment", res.Name).Set("version", "1.0.0").Set("profile", res.Profile).Set("profile_hash", "cafe").Set("seed", 7).Set("row", "traffic").Set("name", "first"+text)
	line, err := was.Set("rate_mps", 20.0).Set("gbps", 1.5).Set("rate_ci95_percent", 2.0).Set(experiment.LimitedBy, "wire").MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, append(line, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	records, err := experiment.ReadRecords(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	records.File = "old.jsonl" + text
	q, err := experiment.ParseRequirement("total.rate > 20")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(res.Compare(records, nil, nil), res.Require([]*experiment.Requirement{q})); err != nil {
		t.Fatal(err)
	}
	return &Report{Result: res, Question: "which of two" + text + "?", Profile: prof, Again: "rdmasim run 'two" + text + ".yaml'",
		Pictures: []Picture{{"rates" + text, []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"></svg>`)}},
		Inputs:   []Input{{"scenario two" + text + ".yaml", "name: two" + text + "\n"}}}
}

func page(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func markdown(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Both forms say question, answer, interval, limit, what would change it, the comparison, inputs
// and command.
func TestReportSaysWhatAReviewNeeds(t *testing.T) {
	r := sample(t, "")
	text := page(t, r)
	for _, want := range []string{"<h1>which of two?</h1>", "all: 30 million messages/s, 1.5 Gb/s.", "first: 10 ±0.2 million messages/s", "steady to ±2 %", "send engine (host0/mlx5_0, 99.5 % busy).",
		"hca.issue_interval", "Required total.rate > 20: met, for rate_mps is 30.", "of 3 values 2 differ, 1 of them by more than both 95 % intervals together; 1 have no interval",
		"20 ±0.4", "10 ±0.2", "-50.0", "version: 1.0.0 then, 1.2.3 now", "Only this run has traffic second; total all.", "data:image/svg+xml;base64,", "cafe", "name: two", "rdmasim run 'two.yaml'"} {
		if !strings.Contains(html.UnescapeString(text), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Count(text, "Required total.rate") != 1 {
		t.Error("the page says a requirement twice")
	}
	if page(t, sample(t, "")) != text {
		t.Error("equal reports are not equal bytes")
	}
	got := markdown(t, r)
	for _, want := range []string{"### which of two?\n", "- **all: 30 million messages/s, 1.5 Gb/s.**", "- ✅ Required total.rate &gt; 20: met", "- Limited by send engine (host0/mlx5\\_0, 99.5 % busy).",
		"| traffic first | rate\\_mps | 20 ±0.4 | 10 ±0.2 | -50.0 | yes |", "| traffic | first | 10 ±0.2 | 1.5 ±0.03 | send engine |", "hca.issue\\_interval", "```\nrdmasim run 'two.yaml'\n```"} {
		if !strings.Contains(got, want) {
			t.Errorf("the summary lacks %q\n%s", want, got)
		}
	}
}

// A page of a run that was interrupted, or that misses a requirement, says so first.
func TestBadReportIsMarked(t *testing.T) {
	r := sample(t, "")
	if strings.Contains(page(t, r), `<header class="bad">`) {
		t.Error("a good page is marked as bad")
	}
	r.Result.Complete = false
	if text := page(t, r); !strings.Contains(text, `<header class="bad"><h1>INCOMPLETE: which of two?</h1>`) {
		t.Error("an incomplete page is not marked")
	}
	if text := markdown(t, r); !strings.HasPrefix(text, "### INCOMPLETE: ") {
		t.Error("an incomplete summary is not marked")
	}
	r = sample(t, "")
	r.Result.Required[0].Met = false
	if text := page(t, r); !strings.Contains(text, `<header class="bad">`) || !strings.Contains(text, `class="missed"`) {
		t.Error("a missed requirement is not marked")
	}
}

// hostile would like to be markup, a mention, a link, a fence, or a control sequence.
const hostile = "<script>alert(1)</script>\"><img src=x onerror=alert(1)>' @somebody #12 https://evil.example/ www.evil.example ```\n```\n</pre> |a|b| ![x](y) \x1b[2J\u202e&amp;<!--"

// The page is well-formed, and text stays text: no name becomes an element, and nothing is loaded
// from elsewhere.
func TestHostileTextStaysText(t *testing.T) {
	text := page(t, sample(t, hostile))
	allowed := map[string]bool{"html": true, "head": true, "meta": true, "title": true, "style": true, "body": true, "header": true, "h1": true, "h2": true, "main": true, "section": true,
		"p": true, "div": true, "table": true, "thead": true, "tbody": true, "tr": true, "th": true, "td": true, "figure": true, "img": true, "ul": true, "li": true, "dl": true, "dt": true, "dd": true, "details": true, "summary": true, "pre": true}
	d := xml.NewDecoder(strings.NewReader(text))
	d.Entity = map[string]string{}
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
		el, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		if !allowed[el.Name.Local] {
			t.Errorf("the page has an element %s", el.Name.Local)
		}
		for _, a := range el.Attr {
			if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" || a.Name.Local == "src" && !strings.HasPrefix(a.Value, "data:image/svg+xml;base64,") {
				t.Errorf("<%s> has %s=%q", el.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
	if strings.ContainsAny(text, "\x1b\u202e") || regexp.MustCompile(`url\(|@import`).MatchString(text) {
		t.Error("the page has control characters, or refers to something")
	}
	outside, fence := "", "" // code is shown as it is
	for line := range strings.Lines(markdown(t, sample(t, hostile))) {
		switch mark := strings.TrimSpace(line); {
		case fence == "" && strings.HasPrefix(mark, "```"):
			fence = mark
		case mark == fence:
			fence = ""
		case fence == "":
			outside += line
		}
	}
	if fence != "" || !strings.Contains(outside, "how to run it again") {
		t.Errorf("a fence is not closed\n%s", outside)
	}
	for _, no := range []string{"<script", "<img", " @somebody", " #12", "https://", " www.", "\x1b", "\u202e", "![x]", "<!--"} {
		if strings.Contains(outside, no) {
			t.Errorf("the summary has %q\n%s", no, outside)
		}
	}
}

// A reader sees the page without its tables running out of a phone, and nothing of it is loaded
// from elsewhere, whatever names say.
func TestPageInABrowser(t *testing.T) {
	for _, text := range []string{"", hostile} {
		file := filepath.Join(t.TempDir(), "page.html")
		if err := os.WriteFile(file, []byte(page(t, sample(t, text))), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, wide := range []int{1200, 390} {
			p := browser.Open(t, file, wide, 900)
			var over, shown int
			p.Eval("document.documentElement.scrollWidth - window.innerWidth", &over)
			p.Eval("Array.from(document.images).filter(i => i.complete && i.naturalWidth > 0).length", &shown)
			if over > 0 || shown != 1 {
				t.Errorf("at %d pixels: %d too wide, %d pictures", wide, over, shown)
			}
		}
	}
}

// The answer of a sweep says the extremes and how each line goes.
func TestAnswerOfASweep(t *testing.T) {
	r := sample(t, "")
	r.Result.Rows, r.Result.Against = nil, nil
	for i, x := range []string{"true", "false", "true", "false"} {
		var row table.Row
		r.Result.Rows = append(r.Result.Rows, *row.Set("link.pfc", x).Set("size", []string{"1KiB", "4KiB"}[i/2]).Set("row", "traffic").Set("name", "in").Set("rate_mps", []float64{4, 3, 2, 2}[i]))
	}
	r.Result.Plots = chart.LoadPlots("s", []string{"link.pfc"}, []string{"true", "false"}, []string{"size"})
	each := r.Result.Plots[0] // how evenly threads fare is no other answer
	each.Per = "threads"
	r.Result.Plots = append(r.Result.Plots, each)
	r.Result.Notes = []string{"Load in: its rate is not steady."}
	if says := strings.Join(r.intervals(), "\n"); !strings.HasPrefix(says, "WARNING: not every figure will last") {
		t.Errorf("a rate that is not steady: %s", says)
	}
	var got []string
	for _, a := range r.answers() {
		got = append(got, a.Text)
	}
	want := []string{"s: rate of each load: from 2 (link.pfc=true in size=4KiB) to 4 (link.pfc=true in size=1KiB) million messages/s.",
		"in, size=1KiB: 4 at true, 3 at false (link.pfc).", "in, size=4KiB: 2 at every link.pfc."}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the answer is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
