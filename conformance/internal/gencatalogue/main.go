// Command gencatalogue turns the tables of the case catalogue, written in Markdown,
// into catalogue.yaml:
//
//	go run ./conformance/internal/gencatalogue < TABLES.md > conformance/catalogue.yaml
//
// Input: sections "### C.n AREA - title", each with a table of ID, assertion, needs,
// expected, source, runs.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

func main() {
	if err := generate(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gencatalogue:", err)
		os.Exit(1)
	}
}

var (
	heading = regexp.MustCompile(`^### C\.\d+ ([A-Z]+) - (.+)$`)
	row     = regexp.MustCompile(`^\| ([A-Z]+)-(\d{3}) \|`)
)

func generate(r io.Reader, w io.Writer) error {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	var areas, cases strings.Builder
	area, line := "", 0
	for in.Scan() {
		line++
		s := in.Text()
		if m := heading.FindStringSubmatch(s); m != nil {
			area = m[1]
			fmt.Fprintf(&areas, "  - {area: %s, title: %s}\n", area, strconv.Quote(m[2]))
			continue
		}
		m := row.FindStringSubmatch(s)
		if m == nil {
			continue
		}
		if m[1] != area {
			return fmt.Errorf("line %d: %s-%s stands in the table of %q", line, m[1], m[2], area)
		}
		if err := writeCase(&cases, area, s); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	if err := in.Err(); err != nil {
		return err
	}
	fmt.Fprint(w, "# The cases of the suite. Made by conformance/internal/gencatalogue; IDs are never\n"+
		"# reused, and numbers from 900 are reserved in every area.\n"+
		"# strength: E exact, S one of a set (the member seen is recorded), H to be recorded on\n"+
		"# hardware first. runs: S simulator ((s): by a simulator extension), R rxe, r rxe with a\n"+
		"# known deviation, u rxe must prove it unsupported, M mlx5, - not run there.\n")
	_, err := fmt.Fprintf(w, "areas:\n%scases:\n%s", areas.String(), cases.String())
	return err
}

func writeCase(w *strings.Builder, area, row string) error {
	f := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
	if len(f) != 6 {
		return fmt.Errorf("%d columns, want 6", len(f))
	}
	for i := range f {
		f[i] = strings.TrimSpace(f[i])
	}
	if area == "SRQ" { // "resize" alone is that of CQs
		f[2] = strings.ReplaceAll(f[2], "no resize", "no srq.resize")
	}
	strength, expected := f[3], ""
	if i := strings.IndexAny(strength, " ;"); i >= 0 {
		strength, expected = f[3][:i], strings.TrimLeft(f[3][i:], " ;")
	}
	if strength != "E" && strength != "S" && strength != "H" {
		return fmt.Errorf("%s: strength %q", f[0], strength)
	}
	fmt.Fprintf(w, "  - id: %s\n    area: %s\n    text: %s\n", f[0], area, strconv.Quote(f[1]))
	fmt.Fprintf(w, "    needs: %s\n    strength: %s\n", list(f[2]), strength)
	if expected != "" {
		fmt.Fprintf(w, "    expected: %s\n", strconv.Quote(expected))
	}
	fmt.Fprintf(w, "    sources: %s\n    runs: %s\n", list(f[4]), strconv.Quote(f[5]))
	return nil
}

// list is a flow sequence of the comma-separated items of s; a comma inside brackets
// does not separate, and "-" is no item.
func list(s string) string {
	var items []string
	depth, start := 0, 0
	add := func(item string) {
		if item = strings.TrimSpace(item); item != "" && item != "-" {
			items = append(items, strconv.Quote(item))
		}
	}
	for i, r := range s {
		switch {
		case strings.ContainsRune("([{", r):
			depth++
		case strings.ContainsRune(")]}", r):
			depth--
		case r == ',' && depth == 0:
			add(s[start:i])
			start = i + 1
		}
	}
	add(s[start:])
	return "[" + strings.Join(items, ", ") + "]"
}
