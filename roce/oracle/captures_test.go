package oracle_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/roce/oracle"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

const captures = "../../fixtures/captures/rxe"

// load reads a file of one run.
func load(t testing.TB, name string) oracle.Capture {
	t.Helper()
	f, err := os.Open(name)
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

func ref(n int) *int { return &n }

// recorded is what is known of the scenarios (README.md beside the captures).
func recorded(name string) oracle.Options {
	start := uint32(0x100)
	o := oracle.Options{Complete: true, PKey: 0xFFFF, RetryCount: ref(7), RNRRetry: ref(7)}
	switch name {
	case "cm_rping", "rc_pingpong_n5", "ud_send":
		return o
	case "psn_wrap":
		start = 0xFFFFFE
	case "nak_recv_too_short":
		o.Receive = 16
	}
	o.MTU, o.Timeout, o.RNRTimer, o.StartPSN = 1024, 14, ref(14), &start
	return o
}

// deviations are the verdicts on the captures besides OR-023, which all have.
var deviations = map[string][]string{
	"6.1/drop_read_resp":     {"OR-081 violation"},
	"7.2/drop_read_resp":     {"OR-041 violation", "OR-081 violation"},
	"7.2/drop_ack":           {"OR-041 violation"},
	"6.1/nak_recv_too_short": {"OR-071 violation"},
	"7.2/nak_recv_too_short": {"OR-071 violation"},
	"6.1/cm_rping":           {"OR-022 warning"},
	"7.2/cm_rping":           {"OR-022 warning"},
}

// TestRecordedCaptures names what a real Soft-RoCE does against the rules.
func TestRecordedCaptures(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(captures, "*", "*.pcap"))
	if err != nil || len(names) != 38 {
		t.Fatalf("%d captures, %v", len(names), err)
	}
	for _, name := range names {
		short := strings.TrimSuffix(strings.TrimPrefix(name, captures+"/"), ".pcap")
		t.Run(short, func(t *testing.T) {
			res := oracle.Judge(load(t, name), recorded(filepath.Base(short)))
			if !res.Whole || res.RDMA != res.Frames {
				t.Fatalf("whole %t %v, %d of %d frames are RDMA", res.Whole, res.Broken, res.RDMA, res.Frames)
			}
			want := append([]string{"OR-023 warning"}, deviations[short]...)
			slices.Sort(want)
			if got := kinds(res); !slices.Equal(got, want) {
				t.Errorf("verdicts %v, want %v", got, want)
				for _, v := range res.Verdicts {
					t.Log(v)
				}
			}
		})
	}
}

// TestSoftRoCETimerIsAJiffyEarly: with a tolerance of one jiffy (250 Hz) the
// retransmissions are in time.
func TestSoftRoCETimerIsAJiffyEarly(t *testing.T) {
	for _, name := range []string{"7.2/drop_ack", "7.2/drop_read_resp"} {
		o := recorded(filepath.Base(name))
		o.Tolerance = 4_000_000
		if got := kinds(oracle.Judge(load(t, filepath.Join(captures, name+".pcap")), o)); slices.Contains(got, "OR-041 violation") {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// kinds are the different rules and kinds of a result.
func kinds(res *oracle.Result) []string {
	var out []string
	for _, v := range res.Verdicts {
		out = append(out, v.Rule+" "+v.Kind.String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}
