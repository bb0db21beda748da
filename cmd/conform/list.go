package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// suiteItems returns the catalogue and, by ID, the cases that have code.
func suiteItems() (*conformance.Catalogue, map[string]conformance.Item, error) {
	cat, err := conformance.LoadCatalogue()
	if err != nil {
		return nil, nil, err
	}
	items, err := conformance.Items(conformance.Suite())
	if err != nil {
		return nil, nil, err
	}
	done := map[string]conformance.Item{}
	for _, i := range items {
		done[i.Entry.ID] = i
	}
	return cat, done, nil
}

type listOptions struct {
	missing, done, capabilities bool
	format                      string
}

// caseIDs are the IDs of all cases, for the shell to complete.
func caseIDs() (ids []string) {
	if cat, err := conformance.LoadCatalogue(); err == nil {
		for _, r := range cat.Cases {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// areaNames are the names of all areas, with what each is about.
func areaNames() (names []string) {
	if cat, err := conformance.LoadCatalogue(); err == nil {
		for _, a := range cat.Areas {
			names = append(names, cobra.CompletionWithDesc(a.Area, a.Title))
		}
	}
	return names
}

func newList() *cobra.Command {
	o := &listOptions{}
	cmd := &cobra.Command{
		Use:   "list [AREA...]",
		Short: "Count the cases of each area, written and in the catalogue; or list the cases of the given areas",
		RunE: func(cmd *cobra.Command, areas []string) error {
			if formats := []string{"table", "json"}; !slices.Contains(formats, o.format) {
				return usagef("unknown format %q%s; formats are table and json", o.format, input.Suggest(o.format, formats))
			}
			if o.done && o.missing {
				return usagef("--done and --missing exclude each other: give one of them, or none for all cases")
			}
			if err := input.Alone(cmd.Flags(), "capabilities", "format"); err != nil {
				return usagef("%w", err)
			}
			if o.capabilities && len(areas) > 0 {
				return usagef("--capabilities lists the capabilities of all areas: leave out %s", strings.Join(areas, " "))
			}
			if o.capabilities {
				return listCapabilities(cmd.OutOrStdout(), o.format)
			}
			return list(cmd.OutOrStdout(), o, areas)
		},
	}
	cmd.Flags().BoolVar(&o.missing, "missing", false, "list the cases that are not written yet, and what each waits for")
	cmd.Flags().BoolVar(&o.done, "done", false, "list the cases that are written")
	cmd.Flags().BoolVar(&o.capabilities, "capabilities", false, "list the capabilities of a target that cases need, with the number of cases")
	cmd.Flags().StringVar(&o.format, "format", "table", "format of the output: table or json")
	return cmd
}

// listed is a case in the JSON output.
type listed struct {
	ID       string           `json:"id"`
	Area     string           `json:"area"`
	Text     string           `json:"text"`
	Needs    []string         `json:"needs"`
	Strength string           `json:"strength"`
	Expected string           `json:"expected,omitempty"`
	Sources  []string         `json:"sources"`
	Runs     conformance.Runs `json:"runs"`
	Done     bool             `json:"done"`
	Waits    string           `json:"waits,omitempty"` // for what, without code
}

func list(w io.Writer, o *listOptions, areas []string) error {
	cat, done, err := suiteItems()
	if err != nil {
		return err
	}
	known := map[string]bool{}
	var names []string
	for _, a := range cat.Areas {
		known[a.Area] = true
		names = append(names, a.Area)
	}
	want := map[string]bool{}
	for _, a := range areas {
		a = strings.ToUpper(a)
		if !known[a] {
			if err := meantCase(a); err != nil {
				return err
			}
			return usagef("unknown area %q%s; areas are %s", a, input.Suggest(a, names), strings.Join(names, ", "))
		}
		want[a] = true
	}
	var rows []listed
	for _, e := range cat.Cases {
		_, has := done[e.ID]
		if len(want) > 0 && !want[e.Area] || o.missing && has || o.done && !has {
			continue
		}
		r := listed{e.ID, e.Area, e.Text, e.Needs, string(e.Strength), e.Expected, e.Sources, e.Runs, has, ""}
		if !has {
			r.Waits = cat.Waits(e)
		}
		rows = append(rows, r)
	}
	switch {
	case o.format == "json":
		return writeRows(w, rows)
	case len(want) > 0 || o.missing || o.done:
		return listCases(w, rows)
	}
	return listAreas(w, cat, rows)
}

// listedCapability is a capability in the JSON output.
type listedCapability struct {
	Capability string `json:"capability"`
	About      string `json:"about"`
	Cases      int    `json:"cases"`
}

func listCapabilities(w io.Writer, format string) error {
	cat, err := conformance.LoadCatalogue()
	if err != nil {
		return err
	}
	var rows []listedCapability
	for _, k := range cat.Capabilities {
		row := listedCapability{Capability: k.Capability, About: k.About}
		for _, e := range cat.Cases {
			if slices.Contains(e.Needs, k.Capability) || slices.Contains(e.Needs, "no "+k.Capability) {
				row.Cases++
			}
		}
		rows = append(rows, row)
	}
	if format == "json" {
		return writeRows(w, rows)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "capability\tcases\tabout")
	for _, r := range rows {
		fmt.Fprintf(tw, "%s\t%d\t%s\n", r.Capability, r.Cases, r.About)
	}
	return tw.Flush()
}

func writeRows(w io.Writer, rows any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(rows)
}

func listCases(w io.Writer, rows []listed) error {
	for _, r := range rows {
		mark := "missing"
		if r.Done {
			mark = "done"
		}
		if _, err := fmt.Fprintf(w, "%-9s %-7s %s  %s\n", r.ID, mark, r.Strength, r.Text); err != nil {
			return err
		}
		if r.Waits != "" {
			if _, err := fmt.Fprintf(w, "%-9s %-7s    waits for %s\n", "", "", r.Waits); err != nil {
				return err
			}
		}
	}
	return nil
}

func listAreas(w io.Writer, cat *conformance.Catalogue, rows []listed) error {
	type count struct{ written, all int }
	counts := map[string]*count{"": {}}
	for _, r := range rows {
		if counts[r.Area] == nil {
			counts[r.Area] = &count{}
		}
		for _, c := range []*count{counts[r.Area], counts[""]} {
			c.all++
			if r.Done {
				c.written++
			}
		}
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "area\twritten\tcatalogue\tabout")
	for _, a := range cat.Areas {
		fmt.Fprintf(tw, "%s\t%d\t%d\t%s\n", a.Area, counts[a.Area].written, counts[a.Area].all, a.Title)
	}
	fmt.Fprintf(tw, "all\t%d\t%d\tareas together\n", counts[""].written, counts[""].all)
	return tw.Flush()
}

func orNone(s []string) string {
	if len(s) == 0 {
		return "-"
	}
	return strings.Join(s, ", ")
}

func allIDs(cat *conformance.Catalogue) []string {
	var ids []string
	for _, e := range cat.Cases {
		ids = append(ids, e.ID)
	}
	return ids
}
