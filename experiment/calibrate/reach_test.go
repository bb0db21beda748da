package calibrate

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/experiment/table"
	"github.com/rdmasim/rdmasim/sim/profile"
)

var update = flag.Bool("update", false, "write the golden files")

func reachOf(t *testing.T) *Reach {
	t.Helper()
	all, err := loadValidations(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	errors, err := StoredLeaveOneOut()
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReach(all, errors)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestGoldenReach: what comes with the program is what the checks and the errors of their left-out
// figures give; its intervals hold as many of these figures as they say, and most are narrow:
// figures that go beyond those of other checks are predicted worse than the others.
func TestGoldenReach(t *testing.T) {
	r := reachOf(t)
	var b bytes.Buffer
	if err := table.WriteJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	const file = "../../fixtures/" + reachFile
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(stored, b.Bytes()) {
		t.Errorf("%s is not what checks and leave-one-out.json give: run make golden", file)
	}
	if share := float64(r.Held) / float64(len(r.Figures)); share < holds-0.05 || share > holds+0.1 || len(r.Figures) < 230 {
		t.Errorf("%d of %d figures are in their intervals", r.Held, len(r.Figures))
	}
	if width := r.Factor * r.Factor; width >= 1.6 {
		t.Errorf("the median interval is %.2f times as high at its end as at its beginning", width)
	}
	errors := map[bool][]float64{}
	for _, f := range r.Figures {
		errors[f.Beyond] = append(errors[f.Beyond], f.Error)
	}
	if far, others := quantile(errors[true]), quantile(errors[false]); far < 1.2*others || len(errors[true]) != r.Beyond || r.Beyond < 20 {
		t.Errorf("%d figures beyond the others have errors of up to %.2f, the others up to %.2f", len(errors[true]), far, others)
	}
}

// TestReachBeyond: loads of published curves that no check has (Storm, SYSTOR 2019, figure 1;
// SMART, ASPLOS 2024, figure 4a), where the simulator is off by more than its intervals, go beyond
// all checks, and so does the first load of a verb on a profile; half of that does not.
func TestReachBeyond(t *testing.T) {
	r, err := StoredReach()
	if err != nil {
		t.Fatal(err)
	}
	const (
		pages = "profile: connectx-5\ntraffic: [{verb: read, payload: 64B, threads: 16, qps_per_thread: 10, spread: 16, mr_size: 20GiB, page_size: %s, access: random}]\n"
		chain = "profile: connectx-6\ncores: 96\ntraffic: [{verb: read, payload: 8B, threads: 96, window: %s, postlist: 8}]\n"
		first = "profile: connectx-6\ntraffic: [{verb: %s, payload: 8B}]\n"
	)
	for _, c := range []struct{ load, with, beyond string }{
		{pages, "2MiB", ""}, {pages, "4KiB", "pages (5242880, at most 10240)"},
		{chain, "16", ""}, {chain, "32", "outstanding (3072, at most 768)"},
		{first, "write", ""}, {first, "cas", "profile (connectx-6, none with cas)"},
	} {
		s, err := experiment.ParseScenario("s.yaml", []byte("name: s\n"+strings.Replace(c.load, "%s", c.with, 1)))
		if err != nil {
			t.Fatal(err)
		}
		v := r.Says("", s.Places())
		if got := strings.Join(v.Beyond, ", "); got != c.beyond {
			t.Errorf("%s: %q, want %q", c.load, got, c.beyond)
		}
		if c.beyond != "" && !strings.Contains(v.String(), "not far, for this load lies beyond all published figures in "+c.beyond+"; 80 % of figures beyond the others were predicted") {
			t.Errorf("%s: %s", c.load, v)
		}
	}
}

// TestReachOfALoad: a load of a check is at no distance from it; what it changes is named, the
// farthest first; the farther a load is, the less is said of it, until nothing is.
func TestReachOfALoad(t *testing.T) {
	r, err := StoredReach()
	if err != nil {
		t.Fatal(err)
	}
	says := func(text string) *experiment.Validity {
		t.Helper()
		s, err := experiment.ParseScenario("s.yaml", []byte("name: s\n"+text))
		if err != nil {
			t.Fatal(err)
		}
		return r.Says("", s.Places())
	}
	const own = "profile: connect-ib\nset: {hca.read_interval: 19531ps}\ntraffic:\n  - {verb: read, payload: 32B, threads: 14, spread: 16, window: 16, access: random, mr_size: 64KiB, qps_per_thread: 33, duration: 1ms%s}\n"
	for _, c := range []struct {
		change  string
		differs []string
	}{
		{"", nil},
		{", page_size: 2MiB", []string{"page_size (2MiB, there 4KiB)"}},
		{", td: per-thread, mtu: 4096", []string{"td (per-thread, there none)", "mtu (4KiB, there 1KiB)"}},
	} {
		v := says(strings.Replace(own, "%s", c.change, 1))
		if v.Check != 8 || strings.Join(v.Differs, " ") != strings.Join(c.differs, " ") || v.Factor < 1 || v.Factor > 2.5 {
			t.Errorf("%s: %+v", c.change, v)
		}
	}
	last := 0.0
	for _, more := range []string{"", ", on_demand: explicit", ", on_demand: explicit, threads: 16, postlist: 16"} {
		v := says("traffic: [{payload: 64B, window: 64, duration: 1ms" + more + "}]")
		if v.Distance <= last || v.Factor < 1 || !strings.Contains(v.String(), "were predicted, without their own check, within a factor of ") {
			t.Errorf("%s: %+v, %s", more, v, v)
		}
		last = v.Distance
	}
	far := says("profile: connectx-7\nset: {hca.pus: 4, uar.bf_conflict: none}\nlink: switch\n" +
		"traffic: [{pattern: incast, clients: 40, verb: send, transport: ud, payload: 4KiB, mtu: 4096, memory: gpu, threads: 8}]")
	if far.Factor != 0 || !strings.HasPrefix(far.String(), "How far to trust it: not known, for no published figure is near this load; the nearest, check ") {
		t.Errorf("%+v, %s", far, far)
	}
}

// TestReachOfSeveralPoints: the point that is least like what was validated decides; a profile
// whose timing nobody has calibrated is near to nothing.
func TestReachOfSeveralPoints(t *testing.T) {
	r, err := StoredReach()
	if err != nil {
		t.Fatal(err)
	}
	var points []experiment.Placed
	for i, text := range []string{"{payload: 64B, duration: 1ms}", "{payload: 64B, duration: 1ms, verb: faa}", "{payload: 64B, duration: 1ms, threads: 2}"} {
		s, err := experiment.ParseScenario("s.yaml", []byte("name: s\ntraffic: ["+strings.Replace(text, "payload: 64B, duration: 1ms, verb", "duration: 1ms, verb", 1)+"]\n"))
		if err != nil {
			t.Fatal(err)
		}
		points = append(points, experiment.Placed{Name: "abc"[i : i+1], Places: s.Places()})
	}
	res := &experiment.Result{}
	r.Judge(res, points)
	if v := res.Validity; v == nil || v.Point != "b" || v.Points != 3 || !strings.Contains(v.String(), "figures near b (of 3 points the least like them) were") {
		t.Errorf("%+v", res.Validity)
	}
	res.Hypotheses = []string{profile.TimingNotCalibrated}
	if r.Judge(res, points[:1]); res.Validity.Factor != 0 || !strings.Contains(res.Validity.String(), "not known, for the timing of the profile is not calibrated") {
		t.Errorf("%s", res.Validity)
	}
	if r.Judge(res, []experiment.Placed{{Name: "a"}}); res.Validity != nil {
		t.Errorf("no loads: %s", res.Validity)
	}
}
