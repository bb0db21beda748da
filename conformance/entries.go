package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"

	"github.com/rdmasim/rdmasim/conformance/report"
)

// Names of the report entries of a spec.
const (
	EntryRecord       = "record"       // report.Case
	EntryObservations = "observations" // Observations
	EntryDeviation    = "deviation"    // Deviation, one for each that the case met
	EntryTestbed      = "testbed"      // []string: what the case's needs changed of it
)

// Observations are what a case saw, in order.
type Observations []report.Observation

// String has a line for each observation.
func (o Observations) String() string {
	var b strings.Builder
	for i, x := range o {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s: %s", x.Step, compact(x.Got))
		if x.Want != nil {
			fmt.Fprintf(&b, "  (want %s)", compact(x.Want))
		}
		if x.Deviation != "" {
			fmt.Fprintf(&b, "  deviation %s", x.Deviation)
		}
	}
	return b.String()
}

func compact(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// Deviation is a known deviation that a case met.
type Deviation struct {
	ID    string   `json:"id"`
	Title string   `json:"title,omitempty"`
	Steps []string `json:"steps"`
}

// String returns the text form.
func (d Deviation) String() string {
	return fmt.Sprintf("%s: %s (%s)", d.ID, d.Title, strings.Join(d.Steps, ", "))
}

// attach adds the report entries of a case to the running spec.
func attach(rec report.Case, ledger *report.Ledger) {
	ginkgo.AddReportEntry(EntryRecord, rec, ginkgo.ReportEntryVisibilityNever)
	if len(rec.Observations) > 0 {
		ginkgo.AddReportEntry(EntryObservations, Observations(rec.Observations), ginkgo.ReportEntryVisibilityFailureOrVerbose)
	}
	if len(rec.Testbed) > 0 {
		ginkgo.AddReportEntry(EntryTestbed, rec.Testbed, ginkgo.ReportEntryVisibilityFailureOrVerbose)
	}
	for _, d := range deviations(rec.Observations, ledger) {
		ginkgo.AddReportEntry(EntryDeviation, d, ginkgo.ReportEntryVisibilityAlways)
	}
}

// deviations lists those that the observations show, in the order of the observations.
func deviations(observations []report.Observation, ledger *report.Ledger) []Deviation {
	var out []Deviation
	for _, o := range observations {
		if o.Deviation == "" {
			continue
		}
		i := slices.IndexFunc(out, func(d Deviation) bool { return d.ID == o.Deviation })
		if i < 0 {
			i = len(out)
			out = append(out, Deviation{ID: o.Deviation, Title: title(ledger, o.Deviation)})
		}
		out[i].Steps = append(out[i].Steps, o.Step)
	}
	return out
}

func title(l *report.Ledger, id string) string {
	if l == nil {
		return ""
	}
	for _, d := range l.Entries {
		if d.ID == id {
			return d.Title
		}
	}
	return ""
}
