package experiment

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/oracle"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

// faulty runs the stored scenario stream.yaml with faults.
func faulty(t *testing.T, text, capture string, set ...string) (*Result, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "faults.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := OpenScenario(t.Context(), "stream.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return x.Execute(t.Context(), Request{Seed: 1, Counters: true, Fault: name, Pcap: capture, Set: set}, nil)
}

// TestFaults: the faults of the file happen, the transport recovers, and the frames on the wire
// obey the rules.
func TestFaults(t *testing.T) {
	capture := filepath.Join(t.TempDir(), "out.pcapng")
	res, err := faulty(t, `faults:
  - {do: drop, direction: requests, flow: 1, packet: 50, iteration: 1}
  - {do: duplicate, direction: requests, packet: 100, iteration: 1}
  - {do: reorder, direction: requests, packet: 200, iteration: 1}
`, capture)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"fault 1 (drop): frames matched: 1, acted on: 1", "fault 2 (duplicate): frames matched: 1, acted on: 1", "fault 3 (reorder): frames matched: 1, acted on: 1"} {
		if !slices.Contains(res.Notes, want) {
			t.Errorf("no note %q in %q", want, res.Notes)
		}
	}
	v := judge(t, capture, oracle.Options{Complete: true, Delivered: true})
	if !v.Whole || v.Count(oracle.Violation) > 0 || v.Flows[0].Resent == 0 {
		t.Errorf("%+v", v)
	}
}

// judge lets the oracle judge a capture with one run.
func judge(t *testing.T, capture string, o oracle.Options) *oracle.Result {
	t.Helper()
	return oracle.Judge(captured(t, capture), o)
}

func captured(t *testing.T, capture string) oracle.Capture {
	t.Helper()
	f, err := os.Open(capture)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, packets, err := pcap.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := oracle.Runs(r, packets)
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	return runs[0]
}

// TestCredits: a sender obeys the credits that the other end announces, also when packets are
// lost; the rules of the oracle detect one that does not.
func TestCredits(t *testing.T) {
	const lost = "faults: [{do: drop, direction: requests, flow: 1, packet: 50, iteration: 1}, {do: drop, direction: responses, flow: 1, skip: 20, count: 1}]"
	known := oracle.Options{Complete: true, Delivered: true}
	run := func(credits string) (string, *Result) {
		capture := filepath.Join(t.TempDir(), "out.pcapng")
		res, err := faulty(t, lost, capture, "traffic.0.verb=send", "traffic.0.payload=64B", "traffic.0.recv_depth=8", "traffic.0.messages=500", "hca.credits="+credits)
		if err != nil {
			t.Fatal(err)
		}
		return capture, res
	}
	with, res := run("true")
	if v := judge(t, with, known); !v.Whole || v.Count(oracle.Violation) > 0 || v.Flows[0].Resent == 0 {
		t.Errorf("with credits: %v", v)
	}
	if n := counted(res, "host0/mlx5_0/hca/credit_waits"); n == 0 {
		t.Error("no message waited for a credit")
	}
	if n := counted(res, "host1/mlx5_0/hca/rnr_stalls") + counted(res, "host1/mlx5_0/hca/naks_sent"); n > 3 {
		t.Errorf("%v NAKs, though no message should come without a receive", n)
	}
	without, _ := run("false")
	c := captured(t, without)
	for i := range c.Frames {
		p, err := roce.Parse(c.Frames[i].Data)
		if err != nil || p.Op != roce.RCAcknowledge || p.AETH().Syndrome() != roce.SyndromeAck {
			continue
		}
		p.AETH().SetSyndrome(roce.AckSyndrome(roce.CreditCode(1)))
		roce.PutICRC(p.B[p.Len()-roce.ICRCSize:], p.ComputeICRC())
	}
	broken := func(v oracle.Verdict) bool { return v.Rule == "OR-056" && v.Kind == oracle.Violation }
	if v := oracle.Judge(c, known); !slices.ContainsFunc(v.Verdicts, broken) {
		t.Errorf("a sender that ignores credits passes: %v", v.Verdicts)
	}
}

// counted is the value of a counter in a result.
func counted(res *Result, name string) float64 {
	for i := range res.Rows {
		if res.Rows[i].Get("counter") == name {
			v, _ := res.Rows[i].Float("value")
			return v
		}
	}
	return 0
}

// TestSelectiveRepeat: with the switch on, only the lost packets are sent again, which the
// rules of a go-back-N sender forbid and those of a selective sender allow.
func TestSelectiveRepeat(t *testing.T) {
	capture := filepath.Join(t.TempDir(), "out.pcapng")
	_, err := faulty(t, "faults: [{do: drop, direction: requests, flow: 1, packet: 50, iteration: 1}]", capture, "hca.selective_repeat=true")
	if err != nil {
		t.Fatal(err)
	}
	v := judge(t, capture, oracle.Options{Complete: true, Delivered: true, Sender: oracle.SelectiveRepeat})
	if !v.Whole || v.Count(oracle.Violation) > 0 || v.Flows[0].Resent != 1 {
		t.Errorf("%+v", v)
	}
	if v := judge(t, capture, oracle.Options{Complete: true, Delivered: true}); v.Count(oracle.Violation) == 0 {
		t.Error("a go-back-N sender may not do this")
	}
}

func TestFaultFileErrors(t *testing.T) {
	for text, want := range map[string]string{
		"faults: [{do: dorp}]":                                         "faults.yaml:1:15",
		"faults: [{do: drop, from: host9/mlx5_0}]":                     `did you mean "host0/mlx5_0"`,
		"links: [{port: host0/mlx5_0, at: 1us, to: down}, {at: 1}]":    "faults.yaml:1:",
		"events: [{at: 1us, do: kill, process: host9/p1}]":             "faults.yaml:1:39",
		"events: [{at: 1us, do: kill, process: host0/p9}]":             `faults.yaml:1:39: there is no process "host0/p9" (did you mean "host0/p1"?); this run has host0/p1, host0/p2, host1/p3`,
		"events: [{at: 99s, do: remap, process: host1/p4, region: 1}]": "this run has host0/p1, host0/p2, host1/p3",
		"events: [{at: 107d, do: kill, process: host0/p2}]":            `unit "d"`,
		"events: [{at: 300000000s, do: kill, process: host0/p2}]":      "beyond 106 days",
		"events: [{at: 9223373s, do: kill, process: host0/p2}]":        "beyond 106 days",
	} {
		_, err := faulty(t, text, "")
		var u *UsageError
		if !errors.As(err, &u) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a usage error with %q", text, err, want)
		}
	}
}

// A load that loses what it needs by an event ends, others continue, and the notes say what
// happened.
func TestEvents(t *testing.T) {
	res, err := faulty(t, `events:
  - {at: 800us, do: remap, process: host0/p2, region: 1}
  - {at: 810us, do: kill, process: host1/p3}
  - {at: 100s, do: remove, device: host1/mlx5_0}
`, "", "traffic.0.duration=2ms")
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(res.Notes, "\n")
	for _, want := range []string{"RETRY_EXC_ERR", "load stream ended at 3662 ms: RETRY_EXC_ERR, 12 transmissions (request ", "vendor error 0x81)", "event 1 (remap region 1 of host0/p2): done at 800us",
		"event 2 (kill host1/p3): done at 810us", "event 3 (remove host1/mlx5_0): the run has ended before 100s"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, notes)
		}
	}
	if rate, _ := res.Rows[0].Float("rate_mps"); !(rate > 0.2 && rate < 0.4) {
		t.Errorf("%v M messages/s in a time of which nearly all came after the load's end", rate)
	}
	if _, err := faulty(t, "events: [{at: 1us, do: kill, process: host0/p2}]", ""); err == nil || !strings.Contains(err.Error(), "the process has ended") {
		t.Errorf("a process that dies before its load begins: %v", err)
	}
}
