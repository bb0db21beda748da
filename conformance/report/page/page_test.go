package page_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/report/page"
	"github.com/rdmasim/rdmasim/internal/browser"
)

// sample is a run with one failed case of two areas, frames, a shape, and texts that would like to
// be markup.
func sample(text string) *report.Run {
	r := &report.Run{Schema: report.Schema, Target: report.Target{Kind: "sim", Profile: "p" + text}, Seed: 3,
		Environment: map[string]string{"kernel" + text: "6.12" + text},
		Cases: []report.Case{
			{ID: "RC-001", Area: "RC", Text: "a pass" + text, Outcome: report.Pass, VirtualNs: 1200, Observations: []report.Observation{
				{Step: "call" + text, Kind: "errno", Got: "0", Want: "0"}}},
			{ID: "RC-002", Area: "RC", Text: "a failure" + text, Outcome: report.Fail, Reason: "flags: want REMOTE_READ, got 0x0" + text, Step: "flags" + text,
				Where: "rc/rc.go:5" + text, FailedNs: 2500, FramesBefore: 7, FramesAfter: 2, Frames: []report.Frame{
					{AtNs: 1000, From: "host0" + text, To: "host1", Text: "RC SEND Only, PSN 1" + text},
					{AtNs: 2000, From: "host1", To: "host0" + text, Text: "RC Acknowledge, PSN 1, ACK", Fate: "dropped by rule 1" + text},
					{AtNs: 3000, From: "host0" + text, To: "host1", Text: "RC SEND Only, PSN 1"}},
				Observations: []report.Observation{{Step: "completion", Kind: "wc", Want: "SUCCESS", Got: map[string]any{"wr_id": json.Number("4"), "status": "SUCCESS" + text,
					"opcode": json.Number("128"), "wc_flags": json.Number("3"), "byte_len": json.Number("1")}},
					{Step: "flags" + text, Kind: "value", Got: "x" + text, Want: "y" + text, Deviation: "D" + text}}},
			{ID: "PERF-004", Area: "PERF", Text: "a shape", Outcome: report.Pass, Observations: []report.Observation{
				{Step: "64 bytes, Gb/s", Kind: "value", Got: json.Number("4.5")}, {Step: "128 bytes, Gb/s", Kind: "value", Got: json.Number("9")},
				{Step: "4096 bytes, Gb/s", Kind: "value", Got: json.Number("93")}, {Step: "alone with 64 bytes, Gb/s", Kind: "value", Got: json.Number("5")}, {Step: "alone with 4096 bytes, Gb/s", Kind: "value", Got: json.Number("95")},
				{Step: "4096 bytes is more", Kind: "check", Got: true, Want: true}}},
		}}
	if text != "" {
		r.Findings = []string{text}
	}
	r.Count()
	return r
}

func target(text string) page.Target {
	return page.Target{Run: sample(text), Again: func(id string) string { return "conform --label-filter " + id + text },
		Capture: func(id string) []byte {
			if id == "RC-002" {
				return []byte("frames")
			}
			return nil
		}}
}

func written(t *testing.T, p *page.Page) (path, text string) {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, b.String()
}

func onePage(text string) *page.Page {
	return &page.Page{Targets: []page.Target{target(text)}, Areas: map[string]string{"RC": "reliable connection" + text},
		Rule: func(string) page.Rule {
			return page.Rule{Expected: "wc SUCCESS" + text, Sources: []string{"a source" + text}}
		}}
}

func TestPageSaysWhatTheRecordHas(t *testing.T) {
	_, text := written(t, onePage(""))
	for _, want := range []string{"FAILED: 3 cases on sim p", "want REMOTE_READ, got 0x0", "rc/rc.go:5", "Expects <b>wc SUCCESS</b>", "Source: a source", "7 frames before",
		"the check failed here", "conform --label-filter RC-002", "RECV, wr_id 4, 1 byte, GRH|WITH_IMM", "known deviation D", "1 of 2 pass, 1 fail",
		report.Fail.Meaning(), "RC-002.pcapng", "data:application/octet-stream;base64,ZnJhbWVz", "n bytes", "reliable connection"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if _, again := written(t, onePage("")); again != text {
		t.Error("equal pages are not equal bytes")
	}
}

// Of a device that fails everywhere, the page says what its failures have in common, and opens a
// few.
func TestPageOfManyFailures(t *testing.T) {
	r := sample("")
	for i := range 40 {
		c := r.Cases[1]
		c.ID, c.Reason = fmt.Sprintf("MR-%03d", i), "write: want SUCCESS, got RETRY_EXC_ERR (wr_id 1)"
		r.Cases = append(r.Cases, c)
	}
	_, text := written(t, &page.Page{Targets: []page.Target{{Run: r, Capture: func(string) []byte { return make([]byte, 100<<10) }}}})
	for what, want := range map[string]int{`<p class="alike">40 cases: <b>want SUCCESS, got RETRY_EXC_ERR</b>`: 1, `<a href="#MR-`: 12, "and 28 more": 1, " open><summary>": 12,
		"data:application/octet-stream": 20, "is not in this page: conform --captures DIR writes it": 21} {
		if n := strings.Count(text, what); n != want {
			t.Errorf("%q comes %d times, want %d", what, n, want)
		}
	}
}

// Two records and their comparison stand side by side.
func TestPageOfAComparison(t *testing.T) {
	a, b := sample(""), sample("")
	b.Cases[1].Outcome, b.Cases[1].Reason = report.Pass, ""
	b.Cases[1].Observations[1].Got = "y"
	b.Count()
	c, err := report.Diff(a, b, report.DiffOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := &page.Page{Targets: []page.Target{{Run: a, Name: "a.json"}, {Run: b, Name: "b.json"}}, Comparison: c}
	path, text := written(t, p)
	for _, want := range []string{"a.json against b.json", "<h3>a.json: fail</h3>", `<td data-of="a.json">x</td><td data-of="b.json">y</td>`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	w := browser.Open(t, path, 1200, 800)
	var lines, columns int
	w.Eval(`document.querySelectorAll("figure polyline").length`, &lines)
	w.Eval(`document.querySelectorAll("table.matrix thead th").length`, &columns)
	if lines != 4 || columns != 3 {
		t.Errorf("%d lines in the plot and %d columns in the matrix", lines, columns)
	}
}

// On a phone the page is as wide as the window, its filter works, and an address leads to a case.
func TestPageOnAPhone(t *testing.T) {
	path, _ := written(t, onePage(""))
	w := browser.Open(t, path, 360, 740)
	var wide, high int
	w.Eval(`document.documentElement.scrollWidth`, &wide)
	w.Eval(`document.querySelector(".ladder").clientHeight`, &high)
	if wide > 360 || high < 60 {
		t.Errorf("the page is %d pixels wide, its ladder %d high", wide, high)
	}
	shown := func() (ids []string) {
		w.Eval(`Array.from(document.querySelectorAll("details.case")).filter(c => !c.hidden).map(c => c.id)`, &ids)
		return ids
	}
	if got := shown(); len(got) != 3 || got[0] != "RC-002" {
		t.Errorf("the page shows %v, and the failure is to come first", got)
	}
	w.Eval(`(() => { const f = document.getElementById("find"); f.value = "rc fail"; f.dispatchEvent(new Event("input")); })()`, nil)
	if got := shown(); len(got) != 1 || got[0] != "RC-002" {
		t.Errorf("the filter leaves %v", got)
	}
	w.Eval(`document.querySelector('button[data-find="PERF-"]').click()`, nil)
	if got := shown(); len(got) != 1 || got[0] != "PERF-004" {
		t.Errorf("the area's button leaves %v", got)
	}
	var open bool
	w.Eval(`new Promise(done => { addEventListener("hashchange", () => setTimeout(() => done(document.getElementById("RC-001").open))); location.hash = "RC-001"; })`, &open)
	if !open {
		t.Error("the address of a case does not open it")
	}
	if png := w.Picture(); len(png) < 1000 {
		t.Errorf("a picture of %d bytes", len(png))
	}
}

// Whatever a record says is text and nothing else.
func TestHostileTextsStayText(t *testing.T) {
	for name, text := range map[string]string{
		"element":   `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`,
		"attribute": `" onmouseover="window.hacked=1" x="' onfocus='window.hacked=1`,
		"ends":      `</script></style></title></pre></table></details><script>window.hacked=1</script><!--`,
		"template":  "{{.}} ${window.hacked=1} javascript:window.hacked=1",
		"controls":  "\x1b[2J\u202e\x00\u2028\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			path, page := written(t, onePage(text))
			for _, c := range []string{"\x1b", "\u202e", "\x00"} {
				if strings.Contains(page, c) {
					t.Errorf("the page has %q", c)
				}
			}
			w := browser.Open(t, path, 800, 600)
			var hacked bool
			var scripts, images, shown, cases int
			w.Eval(`window.hacked === 1`, &hacked)
			w.Eval(`document.querySelectorAll("script").length`, &scripts)
			w.Eval(`document.querySelectorAll("img, iframe, object, [onmouseover], [onfocus], [onerror]").length`, &images)
			w.Eval(`document.querySelectorAll("details.case").length`, &cases)
			w.Eval(`Array.from(document.querySelectorAll("details.case")).filter(c => !c.hidden).length`, &shown)
			if hacked || scripts != 1 || images != 0 || cases != 3 || shown != 3 {
				t.Errorf("hacked %v, %d scripts, %d images, %d cases, %d shown", hacked, scripts, images, cases, shown)
			}
			if name == "element" {
				var line string
				w.Eval(`document.querySelector("#RC-001 summary").textContent`, &line)
				if !strings.Contains(line, text) {
					t.Errorf("the line of a case is %q", line)
				}
			}
		})
	}
}
