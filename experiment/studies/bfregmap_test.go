package studies

import (
	"errors"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
)

// Generations that the user gives are not those of mode: libmlx5 of rdma-core 44 on a static table
// gives the first QP a register of it.
func TestBFRegMapOfTwoGenerations(t *testing.T) {
	x, err := Find("bfreg-map")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range [][]string{
		{"kernel.generation=static"}, {"provider.generation=static"}, {"mode=dynamic", "kernel.generation=static"},
		{"mode=static", "provider.generation=dynamic"},
	} {
		res, err := x.Execute(t.Context(), experiment.Request{Seed: 1, Set: append(set, "qps=14", "low_lat_uuars=7")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r := &res.Rows[0]; r.Get("bfreg") != 9 || r.Get("uar_page") != 4 || r.Get("class") != "high" {
			t.Errorf("%v: bfreg %v on page %v, %v", set, r.Get("bfreg"), r.Get("uar_page"), r.Get("class"))
		}
	}
}

// More thread domains than queue pairs are refused: the table would have another number of them
// than was asked for.
func TestBFRegMapOfTooManyThreadDomains(t *testing.T) {
	x, err := Find("bfreg-map")
	if err != nil {
		t.Fatal(err)
	}
	var wrong *experiment.UsageError
	if _, err := x.Execute(t.Context(), experiment.Request{Set: []string{"qps=20", "tds=21"}, Seed: 1}, nil); !errors.As(err, &wrong) {
		t.Errorf("21 thread domains of 20 queue pairs: %v", err)
	}
}
