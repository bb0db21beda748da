package studies

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment/table"
)

// With packet damming the second message of a pair waits for the ACK timeout, whatever the RNR
// timer; a third request brings it without one, and where there is no page fault nothing is dammed.
// The same load without the hypothesis has the same faults.
func TestPairsAreDammed(t *testing.T) {
	res := odpRows(t, "scenario=incast", "senders=2", "messages=4", "read_qps=1")
	at := func(series string) []*table.Row { return rowsOf(res, "incast-pairs", series) }
	cold, dammed, third, pre := at("pairs, cold"), at("pairs, cold, damming"), at("pairs, cold, damming, third request"), at("pairs, prefetched, damming")
	for i, timer := range rnrTimers {
		if value(t, cold[i], "dammed") != 0 || value(t, cold[i], "timeouts") != 0 || cold[i].Get("hypotheses") != nil {
			t.Errorf("timer %d, as fitted: %v", timer, cold[i])
		}
		if value(t, pre[i], "dammed") != 0 || value(t, pre[i], "rnr_naks") != 0 || pre[i].Get("hypotheses") != damming {
			t.Errorf("timer %d, prefetched: %v", timer, pre[i])
		}
		if i == 0 {
			continue // whether a message is posted during one of many short waits is chance
		}
		if n := value(t, dammed[i], "dammed"); n != 4 || value(t, dammed[i], "timeouts") != n || dammed[i].Get("hypotheses") != damming {
			t.Errorf("timer %d: %v", timer, dammed[i])
		}
		if n := value(t, third[i], "dammed"); n != 4 || value(t, third[i], "timeouts") != 0 || value(t, third[i], "sequence_naks") != n {
			t.Errorf("timer %d, with a third request: %v", timer, third[i])
		}
		if a, b, c := value(t, cold[i], "goodput_gbps"), value(t, third[i], "goodput_gbps"), value(t, dammed[i], "goodput_gbps"); a <= b || b < 1.3*c {
			t.Errorf("timer %d: %v Gb/s, %v with a third request, %v with damming alone", timer, a, b, c)
		}
		if a, b := value(t, cold[i], "page_faults"), value(t, dammed[i], "page_faults"); a != b || a != 128 {
			t.Errorf("timer %d: %v page faults, %v with damming", timer, a, b)
		}
	}
	if !slices.Contains(res.Hypotheses, damming) || !noted(res, "21ms here") || slices.Contains(odpRows(t, "scenario=remap").Hypotheses, damming) {
		t.Errorf("%v, %v", res.Hypotheses, res.Notes)
	}
	for _, r := range rowsOf(odpRows(t, "scenario=incast", "senders=2", "messages=4", "read_qps=1", "gap_us=0"), "incast-pairs", "pairs, cold, damming") {
		if value(t, r, "dammed") != 0 {
			t.Errorf("posted together: %v", r)
		}
	}
}

// With packet flood READs into one page take as many times odp.learn as there are queue pairs,
// which ask again until each has learned; the RNR timer has no part in it, and a page that is there
// has none of it.
func TestReadsFlood(t *testing.T) {
	took := map[int]float64{}
	for _, queues := range []int{1, 8} {
		set := []string{"scenario=incast", "senders=2", "messages=1", map[int]string{1: "read_qps=1", 8: "read_qps=8"}[queues]}
		res := odpRows(t, set...)
		cold, flood, pre := rowsOf(res, "incast-reads", "reads, cold"), rowsOf(res, "incast-reads", "reads, cold, flood"), rowsOf(res, "incast-reads", "reads, prefetched, flood")
		for i, r := range flood {
			took[queues] = value(t, r, "time_us")
			// 10 ms for each, in which all that have not learned ask each 0.5 ms.
			asked := float64(20 * queues * (queues + 1) / 2)
			if d := took[queues] - 10000*float64(queues); d < 150 || d > 400 || value(t, r, "asked_again") != asked || value(t, r, "rnr_naks") != 0 {
				t.Errorf("%d queue pairs: %v", queues, r)
			}
			if value(t, r, "time_us") != value(t, flood[0], "time_us") {
				t.Errorf("the RNR timer changes %v", r)
			}
			if value(t, cold[i], "asked_again") != 0 || value(t, cold[i], "sent_again_percent") != 100 || value(t, cold[i], "time_us") > took[queues]/20 {
				t.Errorf("%d queue pairs, as fitted: %v", queues, cold[i])
			}
			if value(t, pre[i], "asked_again") != 0 || value(t, pre[i], "page_faults") != 0 || value(t, pre[i], "time_us") > 50 {
				t.Errorf("%d queue pairs, prefetched: %v", queues, pre[i])
			}
		}
		last := 0.0
		for _, r := range rowsOf(res, "incast-read", "reads, cold, flood") {
			if at := value(t, r, "time_us"); at <= last {
				t.Errorf("%v after %v us", r, last)
			} else {
				last = at
			}
		}
		if last != took[queues] || !slices.Contains(res.Hypotheses, "odp.ask_again=500us") || !slices.Contains(res.Hypotheses, "odp.learn=10ms") {
			t.Errorf("%d queue pairs: the last was done after %v us; %v", queues, last, res.Hypotheses)
		}
	}
}

// The times of a profile that has packet flood are used, and the series without it has none of it,
// nor has that without packet damming.
func TestPitfallsOfTheProfile(t *testing.T) {
	set := []string{"scenario=incast", "senders=1", "messages=2", "read_qps=2"}
	plain := odpRows(t, set...)
	res := odpRows(t, append(set, "odp.ask_again=100us", "odp.learn=1ms", damming)...)
	for _, r := range rowsOf(res, "incast-reads", "reads, cold, flood") {
		if us := value(t, r, "time_us"); us < 2000 || us > 2500 || value(t, r, "asked_again") < 30 || !strings.Contains(fmt.Sprint(r.Get("hypotheses")), "odp.ask_again=100us; odp.learn=1ms") {
			t.Errorf("with packet flood: %v", r)
		}
	}
	for _, r := range rowsOf(res, "incast-pairs", "pairs, cold, damming") {
		if r.Get("min_rnr_timer") != int(rnrTimers[0]) && value(t, r, "dammed") == 0 {
			t.Errorf("with packet damming: %v", r)
		}
	}
	for kind, series := range map[string]string{"incast-reads": "reads, cold", "incast-pairs": "pairs, cold"} {
		want := rowsOf(plain, kind, series)
		for i, r := range rowsOf(res, kind, series) {
			for _, key := range []string{"time_us", "goodput_gbps", "fault_us", "asked_again", "dammed", "timeouts"} {
				if r.Get(key) != want[i].Get(key) {
					t.Errorf("%s: %s is %v, and %v without hypotheses", series, key, r.Get(key), want[i].Get(key))
				}
			}
		}
	}
}
