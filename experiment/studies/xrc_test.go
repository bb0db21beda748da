package studies

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
)

// xrcResult runs the experiment with settings.
func xrcResult(t *testing.T, set ...string) *experiment.Result {
	t.Helper()
	x, err := Find("xrc")
	if err != nil {
		t.Fatal(err)
	}
	res, err := x.Execute(t.Context(), experiment.Request{Set: set, Seed: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// kind are the rows of a kind.
func kind(r *experiment.Result, kind string) (all []table.Row) {
	for i := range r.Rows {
		if r.Rows[i].Get("row") == kind {
			all = append(all, r.Rows[i])
		}
	}
	return all
}

// What each design promises, case by case: how the sender's second message ends, whether it
// arrives, the QPs and domains that live then and those that are left, and what a third process has
// from opening again.
func TestLifetimes(t *testing.T) {
	rows := kind(xrcResult(t, "scenario=lifetime"), "lifetime")
	gone, there, mute := "RETRY_EXC_ERR false 0", "SUCCESS true 1", "REM_ACCESS_ERR false 1"
	want := map[string][5]string{ // of a to e
		caseAlone:   {gone + " 0: 0 0 -", gone + " 0: 0 0 -", gone + " 0: 0 0 -", mute + " 1: 1 1 -", gone + " 0: 0 0 -"},
		caseOpens:   {gone + " 1: 0 0 -", there + " 1: 0 0 -", gone + " 1: 0 0 -", there + " 1: 1 1 -", gone + " 1: 0 0 -"},
		caseJoins:   {gone + " 1: 0 0 -", there + " 1: 0 0 -", there + " 1: 0 0 -", there + " 1: 1 1 -", there + " 1: 0 0 -"},
		caseDestroy: {gone + " 1: 0 0 -", there + " 1: 0 0 -", gone + " 1: 0 0 -", gone + " 1: 0 0 -", gone + " 1: 0 0 -"},
		caseReopens: {gone + " 1: 0 0 EAGAIN", there + " 1: 0 0 EAGAIN", there + " 1: 0 0 EAGAIN", there + " 1: 0 0 ok", there + " 1: 0 0 EAGAIN"},
		caseUnnamed: {gone + " 0: 0 0 ENOSYS", gone + " 0: 0 0 ENOSYS", gone + " 0: 0 0 EINVAL", mute + " 1: 1 1 EINVAL", gone + " 0: 0 0 EINVAL"},
	}
	if len(rows) != 5*len(want) {
		t.Fatalf("%d rows", len(rows))
	}
	for name, designs := range want {
		for i, w := range designs {
			letter := string("abcde"[i])
			r := lifeOf(rows, name, letter)
			again := r.Get("reopen")
			if again == nil {
				again = "-"
			}
			got := fmt.Sprint(r.Get("sender_status"), " ", r.Get("received"), " ", r.Get("qps_alive"), " ", r.Get("domains_alive"), ": ", r.Get("qps_left"), " ", r.Get("domains_left"), " ", again)
			if got != w || r.Get("sender_before") != "SUCCESS" {
				t.Errorf("%s, design %s: %v, then %s, want %s", name, letter, r.Get("sender_before"), got, w)
			}
			joined := map[string]any{"a": "ENOSYS", "b": "ENOSYS", "c": "ok", "d": "ok", "e": "ok"}[letter]
			if slices.Contains([]string{caseJoins, caseDestroy, caseReopens}, name) && r.Get("joined") != joined {
				t.Errorf("%s, design %s: joining ends with %v", name, letter, r.Get("joined"))
			}
			if left := value(t, r, "qps_left"); value(t, r, "bytes") != left*(512+2048) {
				t.Errorf("%s, design %s: %v bytes for %v QPs", name, letter, r.Get("bytes"), left)
			}
		}
	}
}

// What the server is not told of piles up in every design, and with the proposal everything; only
// with Linux 3.2 it outlives the server, and with it what clients left that were killed.
func TestLongServer(t *testing.T) {
	res := xrcResult(t, "scenario=long-server", "clients=20", "days=30", "both_percent=50", "one_side_percent=30")
	rows := kind(res, "long-server")
	for i := range rows {
		r := &rows[i]
		letter, told := r.Get("design").(string), value(t, r, "not_told")
		if told < 200 || told > 400 || value(t, r, "connects") != 600 || r.Get("full_how") != "computed" || value(t, r, "commands") < 600*8 {
			t.Errorf("%v", r)
		}
		alive := map[bool]float64{true: 600, false: told}[letter == "b"]
		if value(t, r, "qps_alive") != alive || value(t, r, "bytes") != 2560*alive || value(t, r, "full_day") != math.Floor(30*(1<<18-reservedQPs-20)/alive)+2 {
			t.Errorf("design %s: %v", letter, r)
		}
		left, killed := 0.0, 0.0
		if letter == "d" {
			left, killed = alive, value(t, r, "after_client_qps")
			if killed < 60 || killed > 180 {
				t.Errorf("%v QPs of killed clients", killed)
			}
		}
		if value(t, r, "after_qps") != left || value(t, r, "after_domains") != min(left, 1) || value(t, r, "after_client_qps") != killed || value(t, r, "after_client_domains") != killed {
			t.Errorf("design %s: %v", letter, r)
		}
		days := slices.DeleteFunc(kind(res, "long-server-day"), func(d table.Row) bool { return d.Get("design") != letter })
		if len(days) != 32 || value(t, &days[0], "qps_alive") != 0 || days[30].Get("qps_alive") != r.Get("qps_alive") || days[30].Get("day") != 30 ||
			days[31].Get("qps_alive") != r.Get("after_qps") || days[31].Get("day") != 31 {
			t.Errorf("design %s: %d rows, the last %v", letter, len(days), days[len(days)-1])
		}
	}
	if len(rows) != 5 || rows[0].Get("not_told") != rows[4].Get("not_told") {
		t.Error("designs have different clients")
	}
}

// A server that starts again has what its clients left since, and with Linux 3.2 all that they ever
// left.
func TestLongServerThatStartsAgain(t *testing.T) {
	res := xrcResult(t, "scenario=long-server", "clients=10", "days=24", "restart_days=10", "both_percent=0")
	for letter, want := range map[string][2]float64{"a": {100, 40}, "b": {100, 40}, "c": {100, 40}, "d": {200, 240}, "e": {100, 40}} {
		days := slices.DeleteFunc(kind(res, "long-server-day"), func(d table.Row) bool { return d.Get("design") != letter })
		if a, b := value(t, &days[20], "qps_alive"), value(t, &days[24], "qps_alive"); a != want[0] || b != want[1] || days[24].Get("domains_alive") != uint64(1) {
			t.Errorf("design %s: %v QPs on day 20, %v on day 24, want %v", letter, a, b, want)
		}
	}
}

// A server whose clients all say good-bye piles up nothing, except with the proposal.
func TestLongServerOfPoliteClients(t *testing.T) {
	rows := kind(xrcResult(t, "scenario=long-server", "clients=7", "days=9", "both_percent=100", "one_side_percent=0"), "long-server")
	for i := range rows {
		want := 0.0
		if rows[i].Get("design") == "b" {
			want = 63
		}
		if got := value(t, &rows[i], "qps_alive"); got != want || (rows[i].Get("full_day") != nil) != (want > 0) || value(t, &rows[i], "after_client_qps") != 0 {
			t.Errorf("%v", rows[i])
		}
	}
}

// A device that has no more QPs refuses clients from the day on which it had the last one.
func TestLongServerRunsOut(t *testing.T) {
	r := kind(xrcResult(t, "scenario=long-server", "design=b", "clients=30", "days=12", "hca.log_max_qp=8"), "long-server")[0]
	most := 256.0 - reservedQPs // QPs of 30 a day: the seventh day has the last one
	if value(t, &r, "qps_alive") != most || value(t, &r, "full_day") != 7 || r.Get("full_how") != "run" || value(t, &r, "refused") != 360-most || r.Get("refused_errno") != "ENOMEM" || value(t, &r, "after_qps") != 0 {
		t.Errorf("%v", r)
	}
}

// The day on which the device has no more is foreseen as the one on which a longer run finds it.
func TestDayOfTheLastQP(t *testing.T) {
	for _, clients := range []string{"clients=30", "clients=96", "clients=27"} {
		day := func(days, how string) float64 {
			r := kind(xrcResult(t, "scenario=long-server", "design=b", clients, days, "hca.log_max_qp=8"), "long-server")[0]
			if r.Get("full_how") != how {
				t.Errorf("%s, %s: %v", clients, days, r)
			}
			return value(t, &r, "full_day")
		}
		if foreseen, found := day("days=1", "computed"), day("days=12", "run"); foreseen != found {
			t.Errorf("%s: foreseen is day %v, found %v", clients, foreseen, found)
		}
	}
}

// A device that has few QPs gets them back, those of killed servers too, except with Linux 3.2:
// else it would refuse clients.
func TestDeviceGetsItsQPsBack(t *testing.T) {
	res := xrcResult(t, "scenario=long-server", "clients=30", "days=90", "restart_days=3", "both_percent=20", "hca.log_max_qp=8")
	rows := kind(res, "long-server")
	for i := range rows {
		r := &rows[i]
		server, client := value(t, r, "refused"), value(t, r, "client_refused")
		if full := r.Get("design") == "d"; server > 0 != full || client > 0 != full || noted(res, "cannot come, since their own device has no more") != true {
			t.Errorf("design %s: of 2,700 clients the server refuses %v, and their own device %v", r.Get("design"), server, client)
		}
	}
}

// What is simulated has the QPs of the formula, memory in a line, and the misses that random use of
// the cache has.
func TestFootprint(t *testing.T) {
	res := xrcResult(t, "scenario=footprint", "nodes=32", "processes=3", "simulate_qps=70", "hca.qpc_cache=64")
	rows := kind(res, "footprint")
	if len(rows) != 5*5 {
		t.Fatalf("%d rows", len(rows))
	}
	for i := range rows {
		r := &rows[i]
		n := r.Get("nodes").(int)
		qps := map[string]int{"RC": 9 * (n - 1), "RC, SRQ": 9 * (n - 1), "XRC": 6 * (n - 1), "UD": 3, "DC": 15}[r.Get("transport").(string)]
		how := "run"
		if r.Get("transport") == "DC" || qps > 70 || 3*(n-1) > 70 {
			how = "computed"
		}
		if r.Get("qps") != qps || r.Get("how") != how || value(t, r, "kib") == 0 {
			t.Errorf("%v, %d nodes: %v", r.Get("transport"), n, r)
		}
		if got, want := value(t, r, "miss_percent"), value(t, r, "expected_percent"); math.Abs(got-want) > 7 || how == "computed" && got != want {
			t.Errorf("%v, %d nodes, %d QPs: %v %% misses, want %v", r.Get("transport"), n, qps, got, want)
		}
	}
	big := kind(xrcResult(t, "scenario=footprint", "nodes=32", "processes=3", "simulate_qps=300", "hca.qpc_cache=64"), "footprint")
	for i := range rows {
		if got, want := value(t, &rows[i], "bytes"), value(t, &big[i], "bytes"); math.Abs(got/want-1) > 0.06 {
			t.Errorf("%v, %v nodes: %v bytes computed, %v counted", rows[i].Get("transport"), rows[i].Get("nodes"), got, want)
		}
	}
	if last := big[14]; last.Get("transport") != "XRC" || last.Get("how") != "run" {
		t.Errorf("%v", last)
	}
}

// More QPs than the device has are named.
func TestFootprintBeyondTheDevice(t *testing.T) {
	res := xrcResult(t, "scenario=footprint", "processes=16", "simulate_qps=1")
	if !noted(res, "RC from 2048 nodes on; RC, SRQ from 2048 nodes on") || noted(res, "XRC from") {
		t.Error(res.Notes)
	}
	small := xrcResult(t, "scenario=footprint", "nodes=16", "hca.log_max_qp=8") // a mesh of 8 x 8 x 3 QPs needs one more, the driver's
	for _, r := range kind(small, "footprint") {
		if how, qps := r.Get("how"), r.Get("qps").(int); r.Get("transport") != "DC" && (how == "run") != (qps < 256-reservedQPs) {
			t.Errorf("%d QPs: %v", qps, how)
		}
	}
	if !noted(small, "RC from 4 nodes on; RC, SRQ from 4 nodes on; XRC from 16 nodes on") {
		t.Error(small.Notes)
	}
}

// Settings that make no sense are refused as usage, before anything runs, and the message says
// which.
func TestXRCUsage(t *testing.T) {
	x, err := Find("xrc")
	if err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]string{
		"clients=0":           `"0" is not a whole number from 1 to 10000`,
		"scenario=lifetimes":  "lifetime",
		"design=f":            `"f" is not one of a, b, c, d, e, all`,
		"days=-1":             "not a whole number",
		"processes=x":         "not a whole number",
		"kernel.xrc=3.2":      "give --set design=",
		"both_percent=80":     "add up to 100 or less",
		"client=5":            "clients",
		"kernel.xrc=sometime": "sometime",
	} {
		runs := 0
		_, err := x.Execute(t.Context(), experiment.Request{Set: strings.Fields(set), Seed: 1}, func(int, int, string) { runs++ })
		if bad := (*experiment.UsageError)(nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), want) || runs > 0 {
			t.Errorf("%s: %d runs, then %v", set, runs, err)
		}
	}
}

// The same seed prints the same bytes, and another one has other clients.
func TestXRCIsDeterministic(t *testing.T) {
	print := func(seed uint64) string {
		x, err := Find("xrc")
		if err != nil {
			t.Fatal(err)
		}
		res, err := x.Execute(t.Context(), experiment.Request{Set: []string{"clients=10", "days=10", "nodes=8", "design=d"}, Seed: seed}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		for _, format := range experiment.Formats {
			if err := res.Write(&b, format); err != nil {
				t.Fatal(err)
			}
		}
		return b.String()
	}
	if a := print(1); a != print(1) || a == print(2) {
		t.Error("runs with one seed differ, or runs with two do not")
	}
}

// fading is a context that is cancelled after it was asked so many times whether it is.
type fading struct {
	context.Context
	left int
}

func (f *fading) Err() error {
	if f.left--; f.left < 0 {
		return context.Canceled
	}
	return nil
}

// An interrupted run keeps the days that it has done.
func TestLongServerInterrupted(t *testing.T) {
	x, err := Find("xrc")
	if err != nil {
		t.Fatal(err)
	}
	res, err := x.Execute(&fading{t.Context(), 200}, experiment.Request{Set: []string{"scenario=long-server", "clients=2", "days=240"}, Seed: 1}, nil)
	if !errors.Is(err, experiment.ErrInterrupted) || res.Complete || len(kind(res, "long-server")) != 0 {
		t.Fatalf("%v, %d rows", err, len(res.Rows))
	}
	days := kind(res, "long-server-day")
	if n := len(days); n < 2 || n > 24 || days[n-1].Get("design") != "a" || days[n-1].Get("day") != 10*(n-1) || days[n-1].Get("connects") != 20*(n-1) {
		t.Errorf("%d rows of days", n)
	}
}
