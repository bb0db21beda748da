package experiment

import (
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// A table says what would change it: the values without a source that act on the limits of its
// rows, and no others.
func TestTablesSayWhatWouldChangeThem(t *testing.T) {
	p, err := profile.Load("connectx-5")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		limits []string
		swept  bool
		want   string
	}{
		{nil, false, ""},
		{[]string{"wire"}, false, "What would change it: no assumed or fitted value acts on what limits it; --sensitivity tries all values, --confirm raises the limit."},
		{[]string{"ACK timer", "wire"}, true, "What would change it: hca.ack_timeout_floor acts on what limits it, and no source gives it; --sensitivity tries all values at one point."},
		{[]string{"wire, ACK timer"}, true, "hca.ack_timeout_floor acts"},
		{[]string{"send engine", "send engine", "ACK timer"}, false, "hca.issue_interval and hca.ack_timeout_floor act on what limits it, and no source gives them"},
		{[]string{"CPU"}, false, " others act on"},
	} {
		r := &Result{Complete: true}
		for _, l := range c.limits {
			var row table.Row
			row.Set("row", "traffic").Set(LimitedBy, l)
			r.Rows = append(r.Rows, row)
		}
		r.Depends(p, c.swept)
		if !strings.Contains(r.depends, c.want) || (c.want == "") != (r.depends == "") {
			t.Errorf("%q: %q, want %q", c.limits, r.depends, c.want)
		}
		var out strings.Builder
		if err := r.Write(&out, "table"); err != nil || !strings.Contains(strings.Join(strings.Fields(out.String()), " "), r.depends) {
			t.Errorf("%q: %v\n%s", c.limits, err, out.String())
		}
	}
}
