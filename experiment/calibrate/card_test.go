package calibrate

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/workload/perftest"
)

// planned is a test of scripts/measure-card.
type planned struct {
	file, title string
	setup
}

// halfAnHour are the tests of the script, in its order.
func halfAnHour(processes int) []planned {
	lat := func(file, title, op string, size uint64, inline bool) planned {
		return planned{file, title + " Latency", setup{op: op, latency: true, threads: 1, qps: 1, size: size, inline: inline, mtu: 4096, link: "Ethernet", reads: 16}}
	}
	bw := func(file, title, op string, size uint64, threads, qps, list int) planned {
		return planned{file, title + " BW", setup{op: op, threads: threads, qps: qps, window: 128, postlist: list, signal: max(1, min(list, 16)), size: size, inline: op == "write" && size <= 16, mtu: 4096, link: "Ethernet", reads: 16}}
	}
	all := []planned{
		lat("write-latency.txt", "RDMA_Write", "write", 2, true), lat("write-latency-fetched.txt", "RDMA_Write", "write", 2, false),
		lat("read-latency.txt", "RDMA_Read", "read", 2, false), lat("atomic-latency.txt", "Atomic FETCH_AND_ADD", "faa", 8, false),
		bw("bandwidth.txt", "RDMA_Write", "write", 65536, 1, 1, 1),
		bw("one-queue-pair.txt", "RDMA_Write", "write", 2, 1, 1, 16), bw("one-core-lists.txt", "RDMA_Write", "write", 2, 1, 8, 16), bw("one-core.txt", "RDMA_Write", "write", 2, 1, 8, 1),
		bw("all-cores-write", "RDMA_Write", "write", 2, processes, 4, 16), bw("all-cores-read", "RDMA_Read", "read", 8, processes, 4, 16),
	}
	all[4].signal = 1 // of messages over 8 KiB each is signalled
	all[7].signal = 100
	return all
}

// output is what perftest prints for a test that gave this value: messages/s, or ns.
func (p *planned) output(value float64) string {
	dashes := strings.Repeat("-", 87)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n                    %s Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n Number of qps   : %d\t\tTransport type : IB\n", dashes, p.title, p.qps)
	fmt.Fprintf(&b, " Connection type : RC\t\tUsing SRQ      : OFF\n PCIe relax order: ON\n ibv_wr* API     : ON\n TX depth        : %d\n", max(1, p.window))
	if p.postlist > 1 {
		fmt.Fprintf(&b, " Post List       : %d\n", p.postlist)
	}
	if !p.latency {
		fmt.Fprintf(&b, " CQ Moderation   : %d\n", p.signal)
	}
	fmt.Fprintf(&b, " Mtu             : %d[B]\n Link type       : %s\n GID index       : 3\n", p.mtu, p.link)
	switch {
	case p.op == "read" || p.op == "faa":
		fmt.Fprintf(&b, " Outstand reads  : %d\n", p.reads)
	case p.inline:
		b.WriteString(" Max inline data : 220[B]\n")
	default:
		b.WriteString(" Max inline data : 0[B]\n")
	}
	fmt.Fprintf(&b, " rdma_cm QPs\t : OFF\n Data ex. method : Ethernet\n%s\n local address: LID 0000 QPN 0x0047 PSN 0x59865e\n remote address: LID 0000 QPN 0x004b PSN 0x22cec0\n%s\n", dashes, dashes)
	if p.latency {
		us := value / 1000
		fmt.Fprintf(&b, " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99%% percentile[usec]   99.9%% percentile[usec] \n")
		fmt.Fprintf(&b, " %-7d %d          %-7.2f        %-7.2f      %-7.2f  \t       %-7.2f     \t%-7.2f\t\t%-7.2f \t\t%-7.2f\n", p.size, 1000, us, us, us, us, 0.0, us, us)
	} else {
		fmt.Fprintf(&b, " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n")
		mib := value * float64(p.size) / (1 << 20)
		fmt.Fprintf(&b, " %-7d    %-10d       %-7.2f            %-7.2f\t\t     %-7.6f\n", p.size, 100000, mib, mib, value/1e6)
	}
	return b.String() + dashes + "\n"
}

// measureSimulated writes what perftest would print on a simulated card, in all tests or those that
// are named.
func measureSimulated(t *testing.T, truth *profile.Profile, base string, processes int, only ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, p := range halfAnHour(processes) {
		if len(only) > 0 && !slices.Contains(only, p.file) {
			continue
		}
		guess := 1e6
		if p.size > 1024 {
			guess = 1.9e5
		}
		x := &measurement{setup: p.setup, value: guess}
		v, err := ParseValidation("truth", x.scenario("m1", base))
		if err != nil {
			t.Fatal(err)
		}
		s, err := v.run("run")
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.Run(t.Context(), uint64(100+i), truth)
		if err != nil {
			t.Fatal(err)
		}
		metric, scale := "rate_mps", 1e6
		if p.latency {
			metric, scale = "latency_ns_p50", 1
		}
		value, _, err := out.Metric(metric)
		if err != nil {
			t.Fatal(err)
		}
		value *= scale
		write := func(name, text string) {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if p.threads == 1 {
			write(p.file, p.output(value))
			continue
		}
		for k := range p.threads {
			write(filepath.Join(p.file, strconv.Itoa(k)+".txt"), p.output(value/float64(p.threads)))
		}
	}
	return dir
}

// different is a profile with other values.
func different(t *testing.T, base string, changes map[string]string) *profile.Profile {
	t.Helper()
	p, err := profile.Load(base)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range changes {
		if err := p.Set(k, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

// What a simulated card has is found again from the outputs of perftest on it, within 10 %.
func TestCalibrateCardFindsValues(t *testing.T) {
	if testing.Short() {
		t.Skip("fits values to some hundred runs")
	}
	changes := map[string]string{"pcie.memory_latency": "210ns", "pcie.read_latency": "540ns", "hca.read_handling": "430ns", "hca.atomic_service": "320ns", "hca.pu_service": "130ns",
		"provider.build_wqe": "31ns", "provider.post_call": "33ns", "hca.issue_interval": "14ns", "hca.rx_interval": "14ns", "hca.read_interval": "24ns"}
	dir := measureSimulated(t, different(t, "connectx-5", changes), "connectx-5", 8)
	rep, err := FromMeasurements(t.Context(), dir, "connectx-5", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	_ = rep.Write(&b, "table")
	t.Logf("%d runs\n%s", rep.Runs, &b)
	p, err := profile.Parse("own.yaml", rep.Profile("own"))
	if err != nil {
		t.Fatalf("%v\n%s", err, rep.Profile("own"))
	}
	missing := notDetermined(rep)
	for k, v := range changes {
		if k == "hca.atomic_service" && strings.Contains(missing[k], "something else limits") {
			continue // an atomic alone waits for its write, and not for the engine
		}
		got, _ := p.Lookup(k)
		a, _, _ := quantity(v)
		n, _, _ := quantity(got.Text)
		if math.Abs(float64(n)/float64(a)-1) > 0.1 || got.Source != "measured here" {
			t.Errorf("%s: found %s (%s), it is %s", k, got.Text, got.Source, v)
		}
	}
	if got := p.Get("link.bandwidth"); got != "100Gbps" {
		t.Errorf("link.bandwidth %s", got)
	}
	for _, f := range rep.Figures {
		if !f.Pass {
			t.Errorf("%s: %v measured, %v in the new profile", f.Name, f.Expected, f.Got)
		}
	}
}

// On a slow link the limit of the engines cannot be seen, and the report says so.
func TestCalibrateCardSaysWhatIsNotDetermined(t *testing.T) {
	if testing.Short() {
		t.Skip("fits values")
	}
	dir := measureSimulated(t, different(t, "connectx-5", map[string]string{"link.bandwidth": "25Gbps", "hca.wire_rate": "25Gbps"}), "connectx-5", 8, "bandwidth.txt", "all-cores-write")
	rep, err := FromMeasurements(t.Context(), dir, "connectx-5", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	missing := notDetermined(rep)
	for key, want := range map[string]string{"hca.issue_interval": "something else limits", "hca.rx_interval": "something else limits", "hca.atomic_service": "no measurement: ib_atomic_lat", "hca.read_handling": "no measurement: ib_read_lat"} {
		if !strings.Contains(missing[key], want) {
			t.Errorf("%s: %q, want %q", key, missing[key], want)
		}
	}
	text := string(rep.Profile("own"))
	p, err := profile.Parse("own.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	base, err := profile.Load("connectx-5")
	if err != nil {
		t.Fatal(err)
	}
	was := base.Get("hca.issue_interval")
	if p.Get("link.bandwidth") != "25Gbps" || p.Get("hca.issue_interval") != was || !strings.Contains(text, "#   hca.issue_interval stays "+was+".") {
		t.Errorf("link.bandwidth %s, hca.issue_interval %s\n%s", p.Get("link.bandwidth"), p.Get("hca.issue_interval"), text)
	}
}

// notDetermined are the reasons, by key.
func notDetermined(rep *CardReport) map[string]string {
	missing := map[string]string{}
	for _, m := range rep.NotDetermined {
		missing[m.Key] = m.Reason
	}
	return missing
}

// Bad folders are refused with the place and what to do, before any run.
func TestBadMeasurements(t *testing.T) {
	lat := halfAnHour(8)[0]
	bw := halfAnHour(8)[5]
	other := bw
	other.qps = 2
	many := bw
	many.qps = 1_000_000
	ib := bw
	ib.link, ib.qps = "IB", 3
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"none", map[string]string{}, "has no files"},
		{"half", map[string]string{"a.txt": lat.output(930)[:400]}, "a.txt:2: the output of this test ends before its table"},
		{"text", map[string]string{"a.txt": "hello\n"}, "a.txt:1: this is no output of perftest"},
		{"version", map[string]string{"a.txt": strings.Replace(lat.output(930), "t_typical", "t_common", 1)}, "no known version of perftest"},
		{"contradiction", map[string]string{"a.txt": lat.output(930), "b.txt": lat.output(1930)}, "WRITE latency, 2B inline is 1930 ns here, and 930 ns in"},
		{"two links", map[string]string{"a.txt": lat.output(930), "b.txt": ib.output(1e6)}, "the link is IB here, and Ethernet elsewhere"},
		{"together, different", map[string]string{"x/a.txt": bw.output(1e6), "x/b.txt": other.output(1e6)}, "the files of a subfolder come from programs that ran together with the same options"},
		{"latencies together", map[string]string{"x/a.txt": lat.output(930), "x/b.txt": lat.output(930)}, "latencies of programs that run together are not used"},
		{"one after the other in a folder", map[string]string{"x/a.txt": bw.output(1e6), "x/b.txt": bw.output(1e6) + bw.output(1e6)}, "has another result of the same file"},
		{"only servers in a folder", map[string]string{"x/a.txt": strings.Replace(bw.output(1e6), "TX depth", "RX depth", 1)}, "the end that serves says nothing"},
		{"too many queue pairs", map[string]string{"a.txt": many.output(1e6)}, "a.txt:22: it cannot be simulated: 1000000 is above 10000"},
		{"of the simulator", map[string]string{"r.json": recordOf(t, "sim")}, `the record has target "sim"`},
		{"record", map[string]string{"r.json": `{"schema": "rdmasim/conform/99"}`}, "r.json"},
		{"nothing of use", map[string]string{"a.txt": strings.Replace(lat.output(930), "Connection type : RC", "Connection type : UC", 1)}, "only reliable connections are used"},
	} {
		dir := t.TempDir()
		for name, text := range c.files {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, err := FromMeasurements(t.Context(), dir, "connectx-5", 1, nil)
		if bad, ok := err.(*experiment.UsageError); !ok || !strings.Contains(bad.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if _, err := FromMeasurements(t.Context(), "card.go", "connectx-5", 1, nil); err == nil || !strings.Contains(err.Error(), "is not a folder") {
		t.Errorf("a file: %v", err)
	}
}

// recordOf is a record with bandwidths of a kind of target.
func recordOf(t *testing.T, kind string) string {
	t.Helper()
	src, err := os.ReadFile("../../fixtures/recordings/sim-connectx-5.json")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(src), `"kind":"sim"`, fmt.Sprintf(`"kind":%q`, kind), 1)
}

// A record of conform gives bandwidths.
func TestCardFromRecord(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "r.json"), []byte(recordOf(t, "hw")), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := readMeasured(t.Context(), dir)
	if err != nil || m.records != 1 || len(m.all) < 10 {
		t.Fatalf("%+v, %v", m, err)
	}
	i := slices.IndexFunc(m.all, func(x *measurement) bool { return x.size == 4096 })
	if i < 0 || math.Abs(m.all[i].goodput()/93e9-1) > 0.02 {
		t.Errorf("4 KiB: %+v", m.all[max(i, 0)])
	}
	if m.largest() == nil || m.largest().goodput() < 90e9 {
		t.Errorf("bandwidth: %+v", m.largest())
	}
}

// The emitter of this test prints what the parser of real outputs reads.
func TestEmitter(t *testing.T) {
	for _, p := range halfAnHour(8) {
		value := 1234560.0
		if p.latency {
			value = 1230
		}
		runs, err := perftest.Parse("x", []byte(p.output(value)))
		if err != nil || len(runs) != 1 {
			t.Fatalf("%s: %v", p.file, err)
		}
		m := &measured{}
		got := m.take(runs[0])
		if len(got) != 1 || math.Abs(got[0].value/value-1) > 0.001 {
			t.Fatalf("%s: %+v, %v", p.file, got, m.unused)
		}
		want := p.setup
		want.threads = 1
		if p.latency {
			want.reads = got[0].reads // WRITEs print none
		} else if p.op == "write" {
			want.reads = 0
		}
		if got[0].setup != want {
			t.Errorf("%s: %+v, want %+v", p.file, got[0].setup, want)
		}
	}
}
