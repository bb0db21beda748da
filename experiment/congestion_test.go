package experiment

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

// incast is two senders of one receiver, behind a switch.
const incast = `name: incast
hosts: 3
link: switch
traffic:
  - {name: a, from: 0, to: 2, verb: write, payload: 64KiB, mr_size: 256KiB, window: 16, duration: 100us}
  - {name: b, from: 1, to: 2, verb: write, payload: 64KiB, mr_size: 256KiB, window: 16, duration: 100us}
`

// runIncast runs incast with changes, and sums counters by their short names.
func runIncast(t *testing.T, capture string, set ...string) map[string]float64 {
	t.Helper()
	name := filepath.Join(t.TempDir(), "incast.yaml")
	if err := os.WriteFile(name, []byte(incast), 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := OpenScenario(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	res, err := x.Execute(t.Context(), Request{Seed: 1, Counters: true, Pcap: capture, Set: set}, nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := map[string]float64{}
	for _, row := range res.Rows {
		if s, ok := row.Get("counter").(string); ok {
			v, _ := row.Float("value")
			sum[s[strings.LastIndexByte(s, '/')+1:]] += v
		}
		if v, ok := row.Float("gbps"); ok && row.Get("row") == "traffic" {
			sum["gbps"] += v
		}
	}
	return sum
}

// TestDropsDespitePauses: a switch with less room than its senders may fill drops packets although
// it pauses them, and the result says so.
func TestDropsDespitePauses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "incast.yaml")
	if err := os.WriteFile(name, []byte(incast), 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := OpenScenario(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for pfc, want := range map[string]bool{"true": true, "false": false} {
		res, err := x.Execute(t.Context(), Request{Seed: 1, Set: []string{"link.pfc=" + pfc, "link.pfc_xoff=64KiB", "link.pfc_xon=8KiB", "switch.buffer=70kB"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(res.Notes, "\n"), "packets although link.pfc is on"); got != want {
			t.Errorf("link.pfc=%s: said: %v, want %v: %q", pfc, got, want, res.Notes)
		}
	}
}

// TestPauses: with priority flow control two senders share the port of a third, nothing is
// sent twice, and the pauses are in the capture.
func TestPauses(t *testing.T) {
	capture := filepath.Join(t.TempDir(), "out.pcapng")
	c := runIncast(t, capture, "link.pfc=true", "link.pfc_xoff=16KiB", "link.pfc_xon=8KiB", "switch.buffer=100kB")
	if c["rx_prio0_pause"] < 10 || c["gbps"] < 85 || c["tx_discards_phy"] != 0 {
		t.Errorf("%v pauses, %v Gb/s, %v discarded", c["rx_prio0_pause"], c["gbps"], c["tx_discards_phy"])
	}
	f, err := os.Open(capture)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, packets, err := pcap.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	pauses := 0
	for _, p := range packets {
		if _, ok := roce.ParsePFC(p.Data); ok {
			pauses++
		}
	}
	if pauses < int(c["rx_prio0_pause"]) {
		t.Errorf("%d pauses in the capture, %v received", pauses, c["rx_prio0_pause"])
	}
}

// TestMarkingSwitch: with marks and DCQCN the senders slow down, so that the queue does not
// overflow as it does without them.
func TestMarkingSwitch(t *testing.T) {
	c := runIncast(t, "", "congestion.dcqcn=true", "switch.ecn_min=50KiB", "switch.ecn_max=200KiB", "switch.ecn_chance=10")
	if c["np_cnp_sent"] < 4 || c["rp_cnp_handled"] != c["np_cnp_sent"] || c["np_ecn_marked_roce_packets"] < c["np_cnp_sent"] {
		t.Errorf("%v marked, %v CNPs sent, %v handled", c["np_ecn_marked_roce_packets"], c["np_cnp_sent"], c["rp_cnp_handled"])
	}
	if c := runIncast(t, ""); c["np_cnp_sent"]+c["rx_prio0_pause"] != 0 {
		t.Errorf("%v CNPs and %v pauses with both off", c["np_cnp_sent"], c["rx_prio0_pause"])
	}
}

// TestPointsOfASweepTellOfCongestion: rates alone do not show that congestion.dcqcn acts, nor why
// it does not.
func TestPointsOfASweepTellOfCongestion(t *testing.T) {
	name := filepath.Join(t.TempDir(), "incast.yaml")
	if err := os.WriteFile(name, []byte(incast), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ low, high, want string }{
		{"50KiB", "200KiB", "Congestion: "}, {"400MB", "1000MB", "congestion.dcqcn changes nothing here: no packet was marked"},
	} {
		x, err := OpenScenario(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		res, err := x.Execute(t.Context(), Request{Seed: 1, brief: true, Set: []string{"congestion.dcqcn=true", "switch.ecn_min=" + c.low, "switch.ecn_max=" + c.high}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(res.Notes, func(n string) bool { return strings.HasPrefix(n, c.want) }) {
			t.Errorf("no note that begins with %q: %q", c.want, res.Notes)
		}
	}
}
