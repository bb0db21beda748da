// Package experiment answers what-if questions: named experiments, scenarios that
// are data, and sweeps.
//
// ParseScenario or OpenScenario reads a scenario, and studies.Find returns a named experiment.
// Experiment.Execute runs either once, Prepare and Prepared.Run run the points of a sweep.
// Result.Rows, Write and WriteFolder give the answer.
package experiment

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdmasim/rdmasim/experiment/chart"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// Result is the result of a run or a sweep.
type Result struct {
	Name        string      `json:"name"`
	Version     string      `json:"version"`
	Profile     string      `json:"profile"`
	ProfileHash string      `json:"profile_hash"`
	Seed        uint64      `json:"seed"`
	Hypotheses  []string    `json:"hypotheses"`
	Complete    bool        `json:"complete"`
	Rows        []table.Row `json:"rows"`
	Notes       []string    `json:"notes"`
	// PointNotes are those of each point of a sweep that has some. Notes has each of them once.
	PointNotes []PointNotes `json:"point_notes,omitempty"`
	// Faults are what rules of faults did, of which a note tells too.
	Faults []FaultCount `json:"-"`
	// Sensitivity is there if it was asked for.
	Sensitivity *Sensitivity `json:"sensitivity,omitempty"`
	// Validity is what published figures say of loads like those of the result, if there are such
	// loads.
	Validity *Validity `json:"validity,omitempty"`
	// Against is there if the result was compared with that of an earlier run.
	Against *Comparison `json:"against,omitempty"`
	// Required says how the result stands to requirements, of which Notes tell too.
	Required []Required `json:"-"`
	// Seeds is how many seeds the numbers are means of, from Seed up; 0: one.
	Seeds int `json:"-"`
	// Plots are drawn when an output folder is asked for.
	Plots []chart.Plot `json:"-"`
	// Inside are plots of what happened within a single run; its answer is in no point of theirs.
	Inside []chart.Plot `json:"-"`
	// Drawings are pictures that are no plots of rows; they too need a folder.
	Drawings []Drawing `json:"-"`
	// Columns are those of the table for people; all when empty.
	Columns []string `json:"-"`
	// More are columns of a second table.
	More More `json:"-"`
	// Hidden are kinds of rows that the table for people leaves out.
	Hidden []string `json:"-"`
	// Aside are kinds of rows that it never has: there are too many.
	Aside []string `json:"-"`

	changes map[int]*table.Row // of rows, against those of an earlier run
	depends string             // what tables say of what would change the result
	ran     []Placed           // the runs of an experiment
}

// PointNotes are the notes of a point of a sweep.
type PointNotes struct {
	Point string   `json:"point"`
	Notes []string `json:"notes"`
}

// Required says whether a result meets a requirement.
type Required struct {
	Says string
	Met  bool
}

// Drawing is a picture. File has no extension; Draw draws it as SVG, with a caption.
type Drawing struct {
	File string
	Draw func(caption string) ([]byte, error)
}

// More describes a second table, of rows of some kinds: Lead are the columns that identify a row,
// Columns the others.
type More struct {
	Kinds, Lead, Columns []string
}

// Note adds a line that every format carries, unless the result has it already.
func (r *Result) Note(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	if !slices.Contains(r.Notes, n) {
		r.Notes = append(r.Notes, n)
	}
}

// Caption returns the caption of pictures: where their numbers come from.
func (r *Result) Caption() string {
	release, _, _ := strings.Cut(r.Version, "+") // pictures do not change with every commit
	s := fmt.Sprintf("rdmasim %s, profile %s (%s), %s", release, r.Profile, r.ProfileHash, r.seeds())
	if slices.Contains(r.Hypotheses, profile.TimingNotCalibrated) {
		s += ", " + profile.TimingNotCalibrated
	}
	if !r.Complete {
		s += ", INCOMPLETE"
	}
	return s
}

// seeds says which seeds the numbers are of.
func (r *Result) seeds() string {
	if r.Seeds > 1 {
		return fmt.Sprintf("seeds %d to %d", r.Seed, r.Seed+uint64(r.Seeds)-1)
	}
	return fmt.Sprintf("seed %d", r.Seed)
}

// AddHypotheses adds the hypotheses that are on in a profile with which the experiment ran.
func (r *Result) AddHypotheses(p *profile.Profile) {
	r.Hypotheses = union(r.Hypotheses, p.Hypotheses())
}

// Formats are the values of --format that every command has.
var Formats = []string{"table", "json", "csv"}

// Write prints the result in one of Formats, or as jsonl.
func (r *Result) Write(w io.Writer, format string) error {
	switch format {
	case "json":
		return table.WriteJSON(w, r)
	case "csv":
		return r.writeCSV(w)
	case "jsonl":
		return r.writeJSONL(w)
	}
	return r.writeTable(w)
}

func (r *Result) allKeys() []string {
	var keys []string
	seen := map[string]bool{}
	for i := range r.Rows {
		for _, k := range r.Rows[i].Keys() {
			if !seen[k] {
				seen[k] = true
				keys = append(keys, k)
			}
		}
	}
	return keys
}

func (r *Result) writeCSV(w io.Writer) error {
	keys := r.allKeys()
	c := csv.NewWriter(w)
	rec := make([]string, len(keys))
	for i, k := range keys {
		rec[i] = plain.Cell(k)
	}
	if err := c.Write(rec); err != nil {
		return err
	}
	for i := range r.Rows {
		for j, k := range keys {
			rec[j] = plain.Cell(table.Text(r.Rows[i].Get(k)))
		}
		if err := c.Write(rec); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// Tables calls f with the columns and rows of each table that Write prints. It returns how many
// rows are in no table.
func (r *Result) Tables(f func(columns []string, rows []table.Row) error) (hidden int, err error) {
	keys := r.Columns
	if len(keys) == 0 {
		keys = r.allKeys()
	}
	for _, rows := range table.Kinds(r.Rows) {
		kind, _ := table.KindOf(rows).(string)
		if slices.Contains(r.Aside, kind) {
			continue
		}
		if slices.Contains(r.Hidden, kind) {
			hidden += len(rows)
			continue
		}
		shown := make([]table.Row, len(rows))
		for i := range rows {
			shown[i] = rows[i].Shown()
		}
		if err := f(keys, shown); err != nil {
			return hidden, err
		}
		if slices.Contains(r.More.Kinds, kind) {
			if err := f(slices.Concat(r.More.Lead, r.More.Columns), shown); err != nil {
				return hidden, err
			}
		}
	}
	return hidden, nil
}

// aside is how many rows the table never has.
func (r *Result) aside() (n int) {
	for i := range r.Rows {
		if kind, _ := r.Rows[i].Get("row").(string); slices.Contains(r.Aside, kind) {
			n++
		}
	}
	return n
}

func (r *Result) writeTable(w io.Writer) error {
	hidden, err := r.Tables(func(columns []string, rows []table.Row) error {
		defer fmt.Fprintln(w)
		return table.WriteRows(w, columns, rows)
	})
	if err != nil {
		return err
	}
	if hidden > 1 { // one row of one thread says what the load's does
		fmt.Fprintf(w, "--threads shows %d more rows, of clients and threads.\n", hidden)
	}
	if aside := r.aside(); aside > 0 {
		fmt.Fprintf(w, "%d more rows, of times and bins, are in the files of --output, and in --format json or csv.\n", aside)
	}
	for _, n := range append(slices.Clip(r.Notes), r.defined()...) {
		fmt.Fprintln(w, table.Wrap(n, 100))
	}
	if r.Against != nil {
		if len(r.Notes) > 0 {
			fmt.Fprintln(w)
		}
		if err := r.Against.write(w); err != nil {
			return err
		}
	}
	if r.Sensitivity != nil {
		if err := r.Sensitivity.Write(w); err != nil {
			return err
		}
	}
	if r.depends != "" {
		fmt.Fprintln(w, table.Wrap(r.depends, 100))
	}
	if r.Validity != nil {
		fmt.Fprintln(w, table.Wrap(r.Validity.String(), 100))
	}
	state := ""
	if !r.Complete {
		state = ", INCOMPLETE"
	}
	_, err = fmt.Fprintf(w, "rdmasim %s, profile %s (%s), %s%s; %s\n", r.Version, r.Profile, r.ProfileHash, r.seeds(), state, Trust(r.Hypotheses))
	return err
}

// defined says what a column of the tables means whose name does not.
func (r *Result) defined() (lines []string) {
	_, _ = r.Tables(func(columns []string, rows []table.Row) error {
		if slices.Contains(columns, spreadColumn) && slices.ContainsFunc(rows, func(row table.Row) bool { v, ok := row.Float(spreadColumn); return ok && v > 0 }) {
			lines = once(lines, "spread %: the rate of the fastest thread less that of the slowest, in percent of their mean.")
		}
		if r.Seeds <= 1 && slices.ContainsFunc(rows, func(row table.Row) bool { return row.Uncertain(columns) }) {
			lines = once(lines, "±: half the width of the 95 % confidence interval, over the quarters of the measured time, or of the messages; left out below 0.01 %.")
		}
		return nil
	})
	return lines
}

// spreadColumn is how much the rates of threads differ.
const spreadColumn = "spread_percent"

// Trust returns the caveats that each result states: that timing is not calibrated, if so, and the
// hypotheses.
func Trust(hypotheses []string) string {
	rest := slices.DeleteFunc(slices.Clone(hypotheses), func(h string) bool { return h == profile.TimingNotCalibrated })
	s := "hypotheses on: " + cmp.Or(strings.Join(rest, ", "), "none")
	if len(rest) < len(hypotheses) {
		s = profile.TimingNotCalibrated + "; " + s
	}
	return s
}
