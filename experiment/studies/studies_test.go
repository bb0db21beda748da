package studies

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
)

// What a profile cannot be is bad input, also where only the device that is built from it knows.
func TestProfileThatCannotBeIsBadInput(t *testing.T) {
	for _, x := range All() {
		_, err := x.Execute(t.Context(), experiment.Request{Seed: 1, Set: []string{"hca.log_max_eq=1"}}, nil)
		if u := (*experiment.UsageError)(nil); !errors.As(err, &u) {
			t.Errorf("%s: %v is not a usage error", x.Name, err)
		}
	}
}

// In the static generation thread domains have registers of their own, whose numbers follow
// those of the table that QPs without a thread domain share.
func TestBFRegMapNumbers(t *testing.T) {
	x, err := Find("bfreg-map")
	if err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string][]string{
		"independent=false": {`1 1 16 8 0x800 td false`, `2 2 17 8 0xa00 td false`, `3 <nil> 12 6 0x800 high false`},
		"independent=true":  {`1 1 16 8 0x800 independent-td false`, `2 2 18 9 0x800 independent-td false`, `3 <nil> 12 6 0x800 high false`},
	} {
		res, err := x.Execute(t.Context(), experiment.Request{Seed: 1, Set: []string{"mode=static", "qps=3", "tds=2", set}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			r := &res.Rows[i]
			if got := fmt.Sprintln(r.Get("qp"), r.Get("td"), r.Get("bfreg"), r.Get("uar_page"), r.Get("offset"), r.Get("class"), r.Get("lock")); got != w+"\n" {
				t.Errorf("%s: got %swant %s", set, got, w)
			}
		}
	}
}

func TestUsageErrors(t *testing.T) {
	if _, err := Find("uar-sharin"); err == nil || !strings.Contains(err.Error(), `did you mean "uar-sharing"`) {
		t.Errorf("unknown experiment: %v", err)
	}
	x, err := Find("bfreg-map")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ set, want string }{
		{"qp=3", `did you mean "qps"`}, {"qps=many", "whole number"}, {"mode=statik", `did you mean "static"`}, {"qps", "key=value"},
		{"uar.bf_conflic=none", `did you mean "uar.bf_conflict"`}, {"qps=0", "from 1 to"},
	} {
		_, err := x.Execute(t.Context(), experiment.Request{Set: []string{c.set}, Seed: 1}, nil)
		var u *experiment.UsageError
		if err == nil || !errors.As(err, &u) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("--set %s: got %v, want usage error with %s", c.set, err, c.want)
		}
	}
}

// A value of the profile that an experiment sets itself is refused, and not replaced without a
// word.
func TestValuesThatExperimentsSet(t *testing.T) {
	for _, c := range []struct{ name, set, says string }{
		{"odp scenario=incast", "link.pfc=false", "give --set pfc="},
		{"odp scenario=warmup buffer_mib=1", "link.pfc=false", ""},
		{"bfreg-map", "provider.independent_td=true", "give --set independent="},
		{"uar-factorial", "provider.td_keeps_qp_lock=true", "columns"},
		{"uar-sharing graph=2", "provider.independent_td=true", "graph 2"},
	} {
		words := strings.Fields(c.name)
		x, err := Find(words[0])
		if err != nil {
			t.Fatal(err)
		}
		_, err = x.Execute(t.Context(), experiment.Request{Set: append(words[1:], c.set), Seed: 1}, nil)
		if bad := (*experiment.UsageError)(nil); c.says == "" && err != nil || c.says != "" && (!errors.As(err, &bad) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s, %s: %v", c.name, c.set, err)
		}
	}
}
