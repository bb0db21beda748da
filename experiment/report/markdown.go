package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// Bounds of a summary: more belongs into the page.
const (
	mostSummary = 60  // lines of each table
	mostChanges = 12  // values
	mostSource  = 100 // characters
)

// WriteMarkdown writes the report as a summary for a pull request (GitHub Flavored Markdown, as
// GitLab and Gitea read it). No text in it can mention somebody, refer to an issue, or be a link or
// HTML.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b bytes.Buffer
	res := r.Result
	fmt.Fprintf(&b, "### %s\n\n", words(r.title()))
	for _, a := range r.answers() {
		if a.Main {
			fmt.Fprintf(&b, "- **%s**\n", words(a.Text))
		} else {
			fmt.Fprintf(&b, "  - %s\n", words(a.Text))
		}
	}
	for _, q := range res.Required {
		mark := "❌"
		if q.Met {
			mark = "✅"
		}
		fmt.Fprintf(&b, "- %s %s\n", mark, words(q.Says))
	}
	for _, s := range r.intervals() {
		fmt.Fprintf(&b, "- %s\n", words(s))
	}
	for _, l := range r.limited() {
		fmt.Fprintf(&b, "- Limited by %s\n", words(l))
	}
	if c := res.Against; c != nil {
		fmt.Fprintf(&b, "\n#### Against the earlier run\n\n")
		for _, l := range c.Summary() {
			fmt.Fprintf(&b, "- %s\n", words(l))
		}
		var lines [][]string
		for _, ch := range c.Shown() {
			lines = append(lines, ch.Cells())
		}
		grid(&b, table.Headings(c.Columns()), lines, mostSummary)
	}
	fmt.Fprintf(&b, "\n#### Figures\n")
	tables, hidden, left := r.tables(mostLines)
	for _, t := range tables {
		grid(&b, t.Head, t.Lines, mostSummary)
	}
	if hidden+left > 0 {
		fmt.Fprintf(&b, "\nJSON and CSV have %s more.\n", plain.Count(hidden+left, "row"))
	}
	intro, changes := r.changes()
	fmt.Fprintf(&b, "\n<details><summary>What would change it</summary>\n\n")
	for _, l := range intro {
		fmt.Fprintf(&b, "- %s\n", words(l))
	}
	var lines [][]string
	for _, c := range changes {
		lines = append(lines, []string{c.Key, c.Value, c.Tried, c.Effect, short(c.Holds), short(c.Source)})
	}
	grid(&b, []string{"value", "is", "tried", "effect", "holds", "source"}, lines, mostChanges)
	b.WriteString("\n</details>\n")
	if notes := r.notes(); len(notes) > 0 {
		fmt.Fprintf(&b, "\n<details><summary>Notes</summary>\n\n")
		for _, n := range notes {
			fmt.Fprintf(&b, "- %s\n", words(n))
		}
		b.WriteString("\n</details>\n")
	}
	b.WriteString("\n<details><summary>Inputs, and how to run it again</summary>\n\n")
	for _, f := range r.facts() {
		fmt.Fprintf(&b, "- %s: %s\n", words(f[0]), words(f[1]))
	}
	for _, in := range r.Inputs {
		fmt.Fprintf(&b, "\n%s:\n", words(in.Name))
		fenced(&b, in.Text)
	}
	b.WriteString("\n")
	fenced(&b, plain.Line(r.Again))
	b.WriteString("\n</details>\n")
	_, err := w.Write(b.Bytes())
	return err
}

func short(s string) string {
	if r := []rune(s); len(r) > mostSource {
		return strings.TrimSpace(string(r[:mostSource-1])) + "…"
	}
	return s
}

// grid writes a table, of which columns without a text are left out.
func grid(b *bytes.Buffer, head []string, lines [][]string, most int) {
	if len(lines) == 0 {
		return
	}
	var columns []int
	for k := range head {
		for _, l := range lines {
			if l[k] != "" {
				columns = append(columns, k)
				break
			}
		}
	}
	line := func(cell func(k int) string) {
		b.WriteString("|")
		for _, k := range columns {
			b.WriteString(" " + cell(k) + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	line(func(k int) string { return words(head[k]) })
	line(func(int) string { return "---" })
	for _, l := range lines[:min(most, len(lines))] {
		line(func(k int) string { return words(l[k]) })
	}
	if n := len(lines) - most; n > 0 {
		fmt.Fprintf(b, "\nand %s more\n", plain.Count(n, "line"))
	}
}

// active are characters that mean something in Markdown: marks, HTML, and what makes mentions,
// references and links of words.
var active = strings.NewReplacer("\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "|", "\\|", "~", "\\~", "$", "\\$", "!", "\\!",
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "@", "&#64;", "#", "&#35;", "://", "&#58;//", "www.", "www&#46;")

// words is a text as Markdown that reads as the text.
func words(s string) string { return active.Replace(plain.Line(s)) }

// fenced writes a text as code, between fences that do not occur in it.
func fenced(b *bytes.Buffer, text string) {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	fmt.Fprintf(b, "%s\n%s\n%s\n", fence, strings.TrimRight(plain.Text(text), "\n"), fence)
}
