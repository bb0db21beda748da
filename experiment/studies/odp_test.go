package studies

import (
	"errors"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
)

// odpRows runs the experiment with settings.
func odpRows(t *testing.T, set ...string) *experiment.Result {
	t.Helper()
	x, err := Find("odp")
	if err != nil {
		t.Fatal(err)
	}
	res, err := x.Execute(t.Context(), experiment.Request{Set: set, Seed: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range res.Rows {
		for _, key := range []string{"scenario", "series", "goodput_gbps", "page_faults"} {
			if res.Rows[i].Get(key) == nil {
				t.Errorf("a row of %v has no %s", res.Rows[i].Get("scenario"), key)
			}
		}
	}
	return res
}

func rowsOf(r *experiment.Result, scenario, series string) (all []*table.Row) {
	for i := range r.Rows {
		if r.Rows[i].Get("row") == scenario && r.Rows[i].Get("series") == series {
			all = append(all, &r.Rows[i])
		}
	}
	return all
}

// noted says whether a note has a text.
func noted(r *experiment.Result, text string) bool {
	return strings.Contains(strings.Join(r.Notes, "\n"), text)
}

// value is a number of a row that has it.
func value(t *testing.T, r *table.Row, key string) float64 {
	t.Helper()
	v, ok := r.Float(key)
	if !ok {
		t.Errorf("%v, %v: no %s", r.Get("scenario"), r.Get("series"), key)
	}
	return v
}

// Rows say what limits them: page faults, the wire, the core that copies; and a second run with
// more of it says whether that is so.
func TestOnDemandLimits(t *testing.T) {
	x, err := Find("odp")
	if err != nil {
		t.Fatal(err)
	}
	res, err := x.Execute(t.Context(), experiment.Request{Set: []string{"scenario=warmup", "buffer_mib=2", "passes=2"}, Seed: 1, Confirm: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for series, want := range map[string]string{"cold": "page faults yes", "prefetched": "wire no", "bounce-buffer": "CPU yes", "pinned, unprivileged": " "} {
		row := rowsOf(res, "warmup", series)[0]
		limit, _ := row.Get(experiment.LimitedBy).(string)
		holds, _ := row.Get(experiment.Confirmed).(string)
		if got := limit + " " + holds; got != want {
			t.Errorf("%s: %q, want %q", series, got, want)
		}
	}
	if !noted(res, "warmup, cold: limited by page faults (host0/mlx5_0, page faults, ") || !noted(res, "Gb/s with the times of page faults halved") {
		t.Errorf("notes: %q", res.Notes)
	}
}

// A cold buffer faults once for each message, in its first pass only; who may not pin sends on
// demand all the same.
func TestWarmup(t *testing.T) {
	res := odpRows(t, "scenario=warmup", "buffer_mib=1", "passes=2")
	low, cold := rowsOf(res, "warmup", "pinned, unprivileged")[0], rowsOf(res, "warmup", "cold, unprivileged")[0]
	if low.Get("error") != "ENOMEM" || !noted(res, "fails with ENOMEM") {
		t.Errorf("unprivileged, pinning ends with %v", low.Get("error"))
	}
	if cold.Get("error") != nil || cold.Get("num_page_faults") != uint64(16) || cold.Get("page_faults") != uint64(256) || value(t, cold, "efficiency_percent") != 50 {
		t.Errorf("unprivileged, cold: %v", cold)
	}
	pinned, pre := rowsOf(res, "warmup", "pinned")[0], rowsOf(res, "warmup", "prefetched")[0]
	if pre.Get("num_page_faults") != uint64(0) || pre.Get("page_prefetch") != uint64(256) || pre.Get("num_prefetches_handled") != uint64(1) {
		t.Errorf("prefetched: %v", pre)
	}
	c, p, a := value(t, cold, "first_pass_gbps"), value(t, pinned, "first_pass_gbps"), value(t, pre, "first_pass_gbps")
	if c > p/5 || a < p/2 {
		t.Errorf("first pass: cold %v, pinned %v, prefetched %v Gb/s", c, p, a)
	}
	sum := 0.0
	for _, r := range rowsOf(res, "warmup-time", "cold") {
		sum += value(t, r, "page_faults")
	}
	if sum != 256 {
		t.Errorf("the rows in time have %v page faults", sum)
	}
	whole := value(t, cold, "fault_us")
	for _, key := range stageKeys {
		whole -= value(t, cold, key)
	}
	if whole < -0.01 || whole > 0.01 {
		t.Errorf("the parts of a fault lack %v us", whole)
	}
	if r := odpRows(t, "scenario=warmup", "buffer_mib=1", "window=1024", "passes=1", "message_kib=4"); rowsOf(r, "warmup", "cold, unprivileged")[0].Get("error") != "ENOMEM" || !noted(r, "give a smaller window") {
		t.Error("queues that are too large to be locked are not named")
	}
	if small := odpRows(t, "scenario=warmup", "buffer_mib=1", "cache_mib=1", "window=2", "passes=2", "message_kib=256"); rowsOf(small, "warmup", "pin-down-cache")[0].Get("registrations") != 4 {
		t.Error("a cache that holds the buffer registers it again")
	}
}

// Memory that was mapped anew is sent with its bytes by whoever follows the process's pages, and by
// nobody else.
func TestRemap(t *testing.T) {
	res := odpRows(t, "scenario=remap", "message_kib=8")
	for series, want := range map[string]bool{"on demand": true, "on demand, whole address space": true, "pinned": false, "pin-down-cache": false,
		"pin-down-cache, hears of munmap": true, "bounce-buffer": true} {
		if r := rowsOf(res, "remap", series); len(r) != 1 || r[0].Get("right_bytes") != want {
			t.Errorf("%s: %v", series, r)
		}
	}
	if r := rowsOf(res, "remap", "on demand")[0]; r.Get("num_invalidations") != uint64(1) || r.Get("page_invalidations") != uint64(2) {
		t.Errorf("on demand: %v", r)
	}
}

// Beyond the size of memory runs thrash and are called so; what does not fit is refused by name.
func TestThrash(t *testing.T) {
	res := odpRows(t, "scenario=thrash", "memory_mib=1", "swap_mib=2", "message_kib=16")
	for _, r := range rowsOf(res, "thrash", "on demand") {
		ratio := value(t, r, "ratio")
		switch {
		case ratio >= 3:
			if r.Get("error") != "does not fit" {
				t.Errorf("%v times memory: %v", ratio, r)
			}
		case r.Get("thrashing") != (ratio > 1) || r.Get("error") != nil:
			t.Errorf("%v times memory: %v", ratio, r)
		case ratio > 1 && r.Get("num_invalidation_pages") != r.Get("page_invalidations"):
			t.Errorf("%v times memory: %v", ratio, r)
		}
	}
	for _, r := range rowsOf(res, "thrash", "pinned") {
		if ratio := value(t, r, "ratio"); ratio > 1 && ratio < 3 && r.Get("error") != "ENOMEM" || ratio <= 1 && r.Get("error") != nil {
			t.Errorf("pinned, %v times memory: %v", ratio, r)
		}
	}
	if !noted(res, "THRASHING with on demand from a working set of 1.25") || !noted(res, "does not fit") {
		t.Error(res.Notes)
	}
}

// Cold receive buffers draw RNR NAKs, whose timer decides; prefetched ones draw none.
func TestIncast(t *testing.T) {
	res := odpRows(t, "scenario=incast", "senders=2", "messages=3")
	cold := rowsOf(res, "incast", "cold")
	if len(cold) != len(rnrTimers) || value(t, cold[0], "goodput_gbps") <= value(t, cold[2], "goodput_gbps") {
		t.Fatalf("%v", cold)
	}
	if value(t, cold[0], "rnr_naks") <= value(t, cold[2], "rnr_naks") || cold[1].Get("odp_remote_triggered_page_fault") != uint64(6) {
		t.Errorf("cold: %v, %v", cold[0], cold[1])
	}
	for _, r := range append(rowsOf(res, "incast", "prefetched"), rowsOf(res, "incast", "pinned")...) {
		if value(t, r, "rnr_naks") != 0 || value(t, r, "page_faults") != 0 || r.Get("error") != nil {
			t.Errorf("%v", r)
		}
	}
	if noted(res, "not modelled") {
		t.Error(res.Notes)
	}
}

// Settings that make no sense are refused as usage.
func TestOnDemandUsage(t *testing.T) {
	x, err := Find("odp")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range [][]string{{"odp.rc=0"}, {"message_kib=5"}, {"scenario=warmup", "message_kib=4096", "buffer_mib=1"}, {"scenario=thrash", "message_kib=4096", "memory_mib=1"}} {
		_, err := x.Execute(t.Context(), experiment.Request{Set: set, Seed: 1}, nil)
		if bad := (*experiment.UsageError)(nil); !errors.As(err, &bad) {
			t.Errorf("%v: %v", set, err)
		}
	}
}

// No goodput is above the link's, whenever a program polls.
func TestGoodputIsOfDeliveries(t *testing.T) {
	if testing.Short() {
		t.Skip("short tests have no 1,024 requests under way")
	}
	res := odpRows(t, "scenario=warmup", "message_kib=4", "window=1024", "buffer_mib=4", "passes=2")
	for i := range res.Rows {
		if v, ok := res.Rows[i].Float("goodput_gbps"); ok && v > 100 {
			t.Errorf("%v: %v Gb/s on a link of 100", res.Rows[i].Get("series"), v)
		}
	}
}

// More senders than the switch can hold, though it pauses them, lose packets: the result says so,
// and of a run that fails no share is told.
func TestIncastBeyondTheSwitch(t *testing.T) {
	if testing.Short() {
		t.Skip("short tests have no 32 senders")
	}
	res := odpRows(t, "scenario=incast", "senders=32", "messages=4", "read_qps=1")
	if !noted(res, "the switch has dropped packets") || noted(odpRows(t, "scenario=incast", "senders=2", "messages=3"), "dropped packets") {
		t.Error(res.Notes)
	}
	for i := range res.Rows {
		r := &res.Rows[i]
		if again, told := r.Float("sent_again_percent"); told && (again < 0 || r.Get("error") != nil) {
			t.Errorf("%v", r)
		}
		if r.Get("series") == "pinned" && value(t, r, "rnr_naks") != 0 {
			t.Errorf("pinned: %v", r)
		}
	}
}
