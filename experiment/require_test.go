package experiment

import (
	"errors"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment/table"
)

func TestRequirements(t *testing.T) {
	var a, b, total table.Row
	a.Set("row", "traffic").Set("name", "a.b").Set("gbps", 40.0).Set("latency_ns_p99", 19_000.0)
	b.Set("row", "traffic").Set("name", "b").Set("gbps", 50.0).Set("spread_percent", 3.0)
	total.Set("row", "total").Set("name", "all").Set("gbps", 90.0).Set("clients", 2)
	two := []table.Row{a, b, total}
	for _, c := range []struct {
		rows []table.Row
		text string
		met  bool
		says string
	}{
		{two, "total.gbps >= 90", true, "met, for gbps is 90"},
		{two, "total.gbps>90", false, "not met"},
		{two, "total.goodput > 89.9Gbps", true, "met"},
		{two, "all.gbps < 91", true, "met"},
		{two, "a.b.p99 < 20us", true, "latency_ns_p99 is 19000"},
		{two, "a.b.p99 <= 19000", true, "met"},
		{two, "a.b.p99 < 0.019ms", false, "not met"},
		{two, "traffic.gbps > 45", false, "gbps is 40"}, // of all loads the worst
		{two, "traffic.gbps < 45", false, "gbps is 50"},
		{two, "b.spread_percent < 5%", true, "met"},
		{two, "total.clients >= 2", true, "met"},
		{two[:1], "total.gbps > 30", true, "gbps is 40"}, // a single load is its own total
	} {
		r, err := ParseRequirement(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		res := &Result{Rows: c.rows}
		if err := res.Require([]*Requirement{r}); (err == nil) != c.met || err != nil && !errors.Is(err, ErrRequired) || !strings.Contains(res.Notes[0], c.says) {
			t.Errorf("%s: %v, %q; want met %v, %q", c.text, err, res.Notes, c.met, c.says)
		}
	}
	for text, want := range map[string]string{
		"total.gbps": "has no bound", "gbps > 1": "not a row and a column", ".gbps > 1": "not a row and a column", "total. > 1": "not a row and a column",
		"total.gbps > ": "has no unit", "total.gbps > x": "", "total.gbps > 3us": "unit", "total.jain > 1us": "not a number", "total.p99 < 20": "no column latency_ns_p99",
		"total.gbsp > 1": `did you mean "gbps"`, "c.gbps > 1": "no row is c", "total.gbps == 3": "has no bound", "total.gbps >> 3": "has no unit",
	} {
		r, err := ParseRequirement(text)
		if err == nil {
			err = (&Result{Rows: two}).Require([]*Requirement{r})
			if bad := (*UsageError)(nil); !errors.As(err, &bad) {
				t.Errorf("%s: %v is not wrong usage", text, err)
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzRequirement(f *testing.F) {
	f.Add("total.p99 < 20us")
	f.Add("a.b.gbps>=90Gbps")
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := ParseRequirement(text); err == nil && (r.row == "" || r.key == "" || r.op == "") {
			t.Errorf("%q is read as %+v", text, r)
		}
	})
}
