package calibrate

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// Profile is the file of the new profile, which extends the base. What could not be determined
// stands in it as comments.
func (r *CardReport) Profile(name string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Made by rdmasim calibrate --from, rdmasim %s. Values without an entry here are those of %s.\n", plain.Line(r.Version), r.Base)
	if len(r.NotDetermined) > 0 {
		b.WriteString("# Not determined:\n")
		for _, m := range r.NotDetermined {
			fmt.Fprintf(&b, "#   %s stays %s. %s\n", m.Key, m.Base, plain.Line(m.Reason))
		}
	}
	fmt.Fprintf(&b, "name: %s\ntitle: %s\nextends: %s\n", strconv.Quote(name), strconv.Quote("measured here, on the base of "+r.Base), r.Base)
	sections := map[string][]CardValue{}
	for _, v := range r.Determined {
		sections[section(v.Key)] = append(sections[section(v.Key)], v)
	}
	for _, s := range keysOf(sections) {
		fmt.Fprintf(&b, "\n%s:\n", s)
		for _, v := range sections[s] {
			fmt.Fprintf(&b, "  %s: {value: %s, source: measured here, reason: %s}\n", strings.TrimPrefix(v.Key, s+"."), v.Value, strconv.Quote(plain.Line(v.Why)))
		}
	}
	return []byte(b.String())
}

// Write prints the report in one of Formats.
func (r *CardReport) Write(w io.Writer, format string) error {
	switch format {
	case "json":
		return table.WriteJSON(w, r)
	case "csv":
		rows := [][]string{{"key", "value", "base", "determined", "why"}}
		for _, v := range r.Determined {
			rows = append(rows, []string{v.Key, v.Value, v.Base, "true", v.Why})
		}
		for _, m := range r.NotDetermined {
			rows = append(rows, []string{m.Key, m.Base, m.Base, "false", m.Reason})
		}
		return writeCells(w, rows)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "value\tmeasured here\tin %s\n", r.Base)
	for _, v := range r.Determined {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", v.Key, v.Value, v.Base)
	}
	fmt.Fprintln(tw, "\nmeasurement\tmeasured\tnew profile\tunit\twithin 5 %\twhere")
	for _, f := range r.Figures {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", plain.Line(f.Name), table.Short(f.Expected), table.Short(f.Got), f.Unit, map[bool]string{true: "yes", false: "no"}[f.Pass], plain.Line(f.ID))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	var lines []string
	for _, m := range r.NotDetermined {
		lines = append(lines, fmt.Sprintf("not determined: %s, which stays %s. %s.", m.Key, m.Base, strings.TrimSuffix(m.Reason, ".")))
	}
	for _, u := range r.Unused {
		lines = append(lines, "not used: "+u)
	}
	lines = slices.Compact(lines)
	fmt.Fprintln(w)
	for _, l := range lines {
		fmt.Fprintln(w, table.Wrap(plain.Line(l), 100))
	}
	_, err := fmt.Fprintf(w, "%s determined, %d not, from %s. rdmasim %s\n", plain.Count(len(r.Determined), "value"), len(r.NotDetermined), plain.Count(r.Files, "file"), r.Version)
	return err
}
