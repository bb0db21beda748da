package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// counts is how many tests passed, failed and were skipped.
func (r *record) counts() string {
	s := fmt.Sprintf("%d passed, %d failed", r.Passed, r.Failed)
	if r.Skipped > 0 {
		s += fmt.Sprintf(", %d skipped", r.Skipped)
	}
	return s
}

// printTable prints the legs, the skipped tests, and a last line with the tests of all legs.
func printTable(w io.Writer, legs []*planned) {
	rows := [][]string{{"leg", "CPU s", "wall s", "result", "passed", "failed", "first failure", "alone"}}
	var records []*record
	total := &record{}
	notRun := 0
	for _, l := range legs {
		r := l.record
		if r == nil {
			notRun++
			rows = append(rows, []string{l.name, "-", "-", "not run", "-", "-", "(" + l.notRun + ")", "make " + l.name})
			continue
		}
		records = append(records, r)
		total.CPU += r.CPU
		total.Wall += r.Wall
		total.Passed += r.Passed
		total.Failed += r.Failed
		result, first, command := "ok", "", "make "+l.name
		switch {
		case r.Status == interrupted:
			result = "interrupted"
		case r.Status != 0:
			result = "FAILED"
			first = fmt.Sprintf("exit status %d", r.Status)
		}
		if r.First != nil {
			first, command = r.First.String(), r.First.Alone
		}
		rows = append(rows, []string{l.name, fmt.Sprintf("%.1f", r.CPU), fmt.Sprintf("%.1f", r.Wall), result,
			fmt.Sprint(r.Passed), fmt.Sprint(r.Failed), first, command})
	}
	rows = append(rows, []string{"all", fmt.Sprintf("%.1f", total.CPU), fmt.Sprintf("%.1f", total.Wall), "", fmt.Sprint(total.Passed), fmt.Sprint(total.Failed), "", ""})
	fmt.Fprintln(w)
	printAligned(w, rows)
	if notRun > 0 {
		fmt.Fprintf(w, "%d of %d legs did not run.\n", notRun, len(legs))
	}
	total.Skipped = printSkips(w, records)
	fmt.Fprintf(w, "\n%s\n", total.counts())
}

// printAligned prints rows in columns; numbers, in columns 1, 2, 4 and 5, end at the same place.
func printAligned(w io.Writer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-len(cell))
			switch i {
			case 1, 2, 4, 5:
				line.WriteString(pad + cell)
			default:
				line.WriteString(cell + pad)
			}
			line.WriteString("  ")
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// printSkips prints the tests that were skipped and ran in no other leg, those with the same reason
// together, and returns how many.
func printSkips(w io.Writer, records []*record) int {
	ran := map[testKey]bool{}
	for _, r := range records {
		for _, k := range r.Ran {
			ran[k] = true
		}
	}
	tests := map[string][]testKey{}
	n := 0
	for _, r := range records {
		for _, s := range r.Skips {
			if ran[s.testKey] {
				continue
			}
			ran[s.testKey] = true // two legs may have skipped it
			tests[s.Reason] = append(tests[s.Reason], s.testKey)
			n++
		}
	}
	if n == 0 {
		return 0
	}
	fmt.Fprintf(w, "\nskipped:\n")
	reasons := make([]string, 0, len(tests))
	for reason := range tests {
		reasons = append(reasons, reason)
	}
	slices.SortFunc(reasons, func(a, b string) int {
		if d := len(tests[b]) - len(tests[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, reason := range reasons {
		fmt.Fprintf(w, "%5d  %s: %s\n", len(tests[reason]), reason, some(tests[reason]))
	}
	return n
}

// some names tests by package, three of each at most.
func some(keys []testKey) string {
	byPackage := map[string][]string{}
	var order []string
	for _, k := range keys {
		if byPackage[k.Package] == nil {
			order = append(order, k.Package)
		}
		byPackage[k.Package] = append(byPackage[k.Package], k.Test)
	}
	var parts []string
	for _, p := range order {
		names := byPackage[p]
		rest := ""
		if len(names) > 3 {
			names, rest = names[:3], fmt.Sprintf(" and %d more", len(names)-3)
		}
		parts = append(parts, strings.TrimSpace(p+" "+strings.Join(names, " "))+rest)
	}
	return strings.Join(parts, ", ")
}
