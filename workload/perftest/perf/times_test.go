package perf

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/workload/perftest/exchange"
)

// The best window is that of all pairs of a post and a completion, as perftest tries them.
func TestBestWindowIsTheBestOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step, mod := rapid.IntRange(1, 3).Draw(t, "step"), rapid.IntRange(1, 4).Draw(t, "mod")
		gaps := rapid.SliceOfN(rapid.IntRange(0, 50), 1, 60).Draw(t, "gaps")
		var m times
		at := time.Duration(0)
		for i, g := range gaps {
			at += time.Duration(g)
			m.posted = append(m.posted, at)
			if (i+1)%mod == 0 || i == len(gaps)-1 {
				at += time.Duration(rapid.IntRange(1, 80).Draw(t, "wait"))
				m.done = append(m.done, done{uint64(i + 1), at})
			}
		}
		want := math.Inf(1)
		for i := 0; i < len(m.posted); i += step {
			for _, d := range m.done {
				if d.n > uint64(i) {
					want = min(want, float64(d.at-m.posted[i])/float64(d.n-uint64(i)))
				}
			}
		}
		if got := m.bestWindow(step); math.Abs(got-want) > 1e-9*want {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// The columns of a recorded latency test follow from the times that it lists, but for the
// deviation, which perftest cuts.
func TestSummaryIsTheRecordedOne(t *testing.T) {
	for _, name := range []string{"D12/wlat-U", "H/wlat-U"} {
		_, _, run := commands(t, name)
		posted := []time.Duration{0}
		var row []string
		for line := range strings.Lines(run["client.out"]) {
			line = strings.TrimSpace(line)
			if n, value, ok := strings.Cut(line, ", "); ok {
				if _, err := strconv.Atoi(n); err == nil {
					v, err := strconv.ParseFloat(value, 64)
					if err != nil {
						t.Fatal(err)
					}
					posted = append(posted, posted[len(posted)-1]+time.Duration(math.Round(v*2000)))
				}
			}
			if strings.HasPrefix(line, "2 ") {
				row = strings.Fields(line)
			}
		}
		if len(posted) < 10 || len(row) != 9 {
			t.Fatalf("%s: %d times, row %v", name, len(posted)-1, row)
		}
		s, all := summarize(posted, false)
		if len(all) != len(posted)-1 {
			t.Errorf("%d times", len(all))
		}
		for i, v := range map[int]float64{2: s.least, 3: s.most, 4: s.typical, 5: s.average, 7: s.p99, 8: s.p999} {
			want, _ := strconv.ParseFloat(row[i], 64)
			if math.Abs(v-want) > 0.011+want*1e-5 {
				t.Errorf("%s: column %d is %.3f, recorded %s", name, i, v, row[i])
			}
		}
	}
}

func TestHex(t *testing.T) {
	for _, c := range []struct {
		v     uint64
		width int
		want  string
	}{{0, 4, "0000"}, {0x4e642, 6, "0x4e642"}, {0x28, 6, "0x0028"}, {0x18d8, 8, "0x0018d8"}, {0x5598098e9000, 16, "0x005598098e9000"}} {
		if got := hex(c.v, c.width); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	for v, want := range map[float64]string{1.8: "1.8", 3889.94: "3889.94", 1e-7: "1e-07", 1234567: "1.23457e+06"} {
		if got := general(v); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A peer that ends, that speaks another protocol or another version, is an error that says so.
func TestDecodersSayWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ message, want string }{{"SSH-2.0-OpenSSH_9", "another program answers"}, {"5.31\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "before 5.70"}} {
		if _, _, err := exchange.DecodeVersion([]byte(c.message)[:16]); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.message, err)
		}
	}
	if s := fmt.Sprint(&StepError{Step: "x", Err: errQuiet, Hint: "y"}); s != `step "x" failed: nothing has come for 120 s; y` {
		t.Error(s)
	}
}
