package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/internal/cli/input"
)

// pick returns the cases that the label filter selects.
func (o *runOptions) pick(all []conformance.Item) ([]conformance.Item, error) {
	if err := checkLabels(o.filter); err != nil {
		return nil, err
	}
	match, err := types.ParseLabelFilter(o.filter)
	if err != nil {
		return nil, usagef("--label-filter %q: %s; a filter is labels joined by && and ||, with ! and parentheses, such as 'RC && !tap'", o.filter, filterComplaint(err))
	}
	var items []conformance.Item
	for _, i := range all {
		if match(i.Entry.Labels()) && o.concerns(&i.Entry) {
			items = append(items, i)
		}
	}
	if len(items) == 0 {
		return nil, usagef("--label-filter %q matches no case that has code; conform list shows them", o.filter)
	}
	return items, nil
}

// filterComplaint returns what Ginkgo says about a wrong filter: the last line of its message,
// which has no colours.
func filterComplaint(err error) string {
	var g types.GinkgoError
	if !errors.As(err, &g) {
		return err.Error()
	}
	text := g.Message[strings.LastIndexByte(g.Message, '\n')+1:]
	if text == "Unexpected EOF." {
		return "a label is missing at its end"
	}
	return strings.TrimSuffix(text, ".")
}

// checkLabels refuses a filter with labels that no case of the catalogue has.
func checkLabels(filter string) error {
	cat, err := conformance.LoadCatalogue()
	if err != nil {
		return err
	}
	known := map[string]bool{}
	var names []string
	for _, e := range cat.Cases {
		for _, l := range e.Labels() {
			if !known[strings.ToLower(l)] {
				known[strings.ToLower(l)] = true
				names = append(names, l)
			}
		}
	}
	for regexes := range strings.SplitSeq(dropRegexes(filter), "\x00") {
		for _, l := range strings.FieldsFunc(regexes, func(r rune) bool { return strings.ContainsRune("&|!,()", r) }) {
			l = strings.TrimSpace(l)
			if l != "" && !strings.Contains(l, ":") && !known[strings.ToLower(l)] {
				return usagef("--label-filter: unknown label %q%s; labels are areas (conform list), IDs of cases (conform list RC), strengths and needs (conform show RC-013), such as 'RC && !tap'", l, input.Suggest(l, names))
			}
		}
	}
	return nil
}

// dropRegexes replaces /.../ by a separator.
func dropRegexes(filter string) string {
	parts := strings.Split(filter, "/")
	var b strings.Builder
	for i := 0; i < len(parts); i += 2 {
		b.WriteString(parts[i] + "\x00")
	}
	return b.String()
}

// filterLabels completes the last label of a filter: every case has its ID, its area, its strength
// and what it needs.
func filterLabels(_ *cobra.Command, _ []string, typed string) (out []string, _ cobra.ShellCompDirective) {
	cat, err := conformance.LoadCatalogue()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	at := strings.LastIndexAny(typed, " (!&|,") + 1
	var labels []string
	for _, e := range cat.Cases {
		labels = append(labels, e.Labels()...)
	}
	slices.Sort(labels)
	for _, l := range slices.Compact(labels) {
		if strings.HasPrefix(l, typed[at:]) {
			out = append(out, typed[:at]+l)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
