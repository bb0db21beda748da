package oracle_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/oracle"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

var (
	conversions    = flag.Int("conversions", 4, "how often each recorded capture is converted at random")
	conversionSeed = flag.Uint64("conversion-seed", 1, "what draws them")
)

// recordings are the recorded captures.
func recordings(t testing.TB) map[string][]shot {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(captures, "*", "*.pcap"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	all := map[string][]shot{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(strings.TrimPrefix(name, captures+"/"), ".pcap")] = shotsOf(t, b)
	}
	return all
}

// judged is the judgement of a file that is one run.
func judged(t testing.TB, file []byte) *oracle.Result {
	t.Helper()
	r, packets, err := pcap.Read(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	runs, err := oracle.Runs(r, packets)
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	return oracle.Judge(runs[0], oracle.Options{})
}

var frameNumber = regexp.MustCompile(`frame \d+`)

// said is what a judgement says, by the numbers that number gives to its frames, without the rules
// that are left out.
func said(res *oracle.Result, number func(int) int, without ...string) []string {
	var out []string
	for _, f := range res.Flows {
		f.Retransmissions = slices.Clone(f.Retransmissions)
		for i := range f.Retransmissions {
			r := &f.Retransmissions[i]
			r.Frame = number(r.Frame)
			if r.NAK > 0 {
				r.NAK = number(r.NAK)
			}
		}
		out = append(out, fmt.Sprintf("%+v", f))
	}
	for _, v := range res.Verdicts {
		if slices.Contains(without, v.Rule) {
			continue
		}
		v.Frame = number(v.Frame)
		v.Text = frameNumber.ReplaceAllStringFunc(v.Text, func(s string) string {
			n, _ := strconv.Atoi(s[len("frame "):])
			return fmt.Sprint("frame ", number(n))
		})
		out = append(out, v.String(), fmt.Sprint(v.Count))
	}
	return out
}

func itself(n int) int { return n }

// left are the rules that headers do not suffice for.
var left = []string{"OR-010", "OR-011", "OR-018", "OR-026", "OR-036", "OR-097", "OR-098", "OR-099", "OR-100", "OR-101"}

// show puts all shots behind a link layer.
func show(shots []shot, l linkKind) []shot {
	out := slices.Clone(shots)
	for i := range out {
		out[i] = l.of(out[i])
	}
	return out
}

// Every recorded capture has the same verdicts in every format that is read, and in every link
// layer.
func TestFormats(t *testing.T) {
	for name, shots := range recordings(t) {
		want := said(judged(t, containers[0].of(shots)), itself)
		for k, c := range containers {
			for i, l := range links {
				file := c.of(show(shots, l))
				if (i+k)%8 == 0 {
					file = zipped(file)
				}
				if got := judged(t, file); !slices.Equal(said(got, itself), want) || !got.Whole || len(got.Reading) != 0 {
					t.Fatalf("%s as %s in %s: %q\n%q\nwant %q", name, l.name, c.name, got.Reading, said(got, itself), want)
				}
			}
		}
	}
}

// The same of files whose packets are shown in several ways, out of order, twice and without
// payload, at random.
func TestFormatsAtRandom(t *testing.T) {
	n := *conversions
	if testing.Short() {
		n = 1
	}
	sorted, twice, cut := 0, 0, 0
	recorded := recordings(t)
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		for i := range n {
			r := rand.New(rand.NewPCG(*conversionSeed+uint64(i), uint64(len(name))))
			shots := recorded[name]
			for k := range shots { // with nanoseconds, so that times differ
				shots[k].time += int64(k % 1000)
			}
			res, what, number := converted(t, r, shots)
			var without []string
			if strings.Contains(what, "cut") {
				without, cut = left, cut+1
			}
			want := said(judged(t, containers[2].of(shots)), itself, without...)
			if got := said(res, number, without...); !slices.Equal(got, want) || !res.Whole {
				t.Fatalf("%s, %s, -conversion-seed %d: %q %q\n%s\nwant\n%s", name, what, *conversionSeed+uint64(i), res.Reading, res.Broken, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			for _, line := range res.Reading {
				switch {
				case strings.Contains(line, "stand behind later ones"):
					sorted++
				case strings.Contains(line, "another interface"):
					twice++
				}
			}
		}
	}
	if sorted == 0 || twice == 0 || cut == 0 {
		t.Errorf("%d files were sorted, in %d packets were counted once, and %d were cut", sorted, twice, cut)
	}
}

// converted judges shots as another tap may show them, and says how, and which of them a number of
// the new file is.
func converted(t *testing.T, r *rand.Rand, shots []shot) (res *oracle.Result, what string, number func(int) int) {
	c := containers[r.IntN(len(containers))]
	for c.micro { // of swapped frames the times are to differ
		c = containers[r.IntN(len(containers))]
	}
	l := links[r.IntN(len(links))]
	what = c.name
	if (c.mixed || l.points) && r.IntN(2) == 0 {
		what += ", twice"
		shots = seenTwice(r, shots)
	}
	numbers := make([]int, len(shots)+1) // they count in the order of time
	for i, s := range shots {
		numbers[i+1] = s.number
	}
	if r.IntN(2) == 0 {
		what += ", swapped"
		shots = swapped(r, shots)
	}
	if c.mixed && r.IntN(2) == 0 {
		what += ", links at random"
		out := slices.Clone(shots)
		for i := range out {
			out[i] = links[r.IntN(len(links))].of(out[i])
		}
		shots = out
	} else {
		what += ", " + l.name
		shots = show(shots, l)
	}
	if r.IntN(2) == 0 {
		n := 116 + r.IntN(40)
		what += fmt.Sprint(", cut to ", n)
		shots = snapped(shots, n)
	}
	file := c.of(shots)
	if r.IntN(2) == 0 {
		what += ", gzip"
		file = zipped(file)
	}
	return judged(t, file), what, func(n int) int { return numbers[n] }
}

// A frame far behind later ones, and one without a time, end the judgement of what needs history;
// the message says what to do.
func TestDisorderThatIsNotMended(t *testing.T) {
	shots := recordings(t)["7.2/send_multi"]
	late := slices.Clone(shots)
	late[2].time -= 1_500_000
	res := judged(t, containers[5].of(late))
	if res.Whole || !strings.Contains(strings.Join(res.Broken, ""), "reordercap") {
		t.Errorf("%q", res.Broken)
	}
	if res := judged(t, simple(shots)); res.Whole || !strings.Contains(strings.Join(res.Broken, ""), "frame 3 has no time") {
		t.Errorf("%q", res.Broken)
	}
	late[2].time += 600_000
	if res := judged(t, containers[5].of(late)); !res.Whole || len(res.Reading) != 1 {
		t.Errorf("%q, %q", res.Broken, res.Reading)
	}
}

// simple is a file of pcapng whose third packet has no time.
func simple(shots []shot) []byte {
	file := pcapng(be)(shots)
	r, packets, err := pcap.Read(bytes.NewReader(file))
	if err != nil || len(r.Interfaces) != 1 {
		panic(err)
	}
	at, n := packets[2].Offset, len(packets[2].Data)
	length := be.Uint32(file[at+4:])
	b := be.AppendUint32(be.AppendUint32(be.AppendUint32(nil, 3), length-16), uint32(n))
	b = append(append(b, file[at+28:at+int64(length)-4]...), be.AppendUint32(nil, length-16)...)
	return slices.Concat(file[:at], b, file[at+int64(length):])
}

// stamped has frames that are less than a millisecond apart a microsecond apart, and exchanges two
// frames but not their times.
func stamped(shots []shot, swap int) []shot {
	out := slices.Clone(shots)
	for i := 1; i < len(out); i++ {
		gap := shots[i].time - shots[i-1].time
		if gap < 1_000_000 {
			gap = 1000
		}
		out[i].time = out[i-1].time + gap
	}
	if swap > 0 {
		out[swap-1], out[swap] = out[swap], out[swap-1]
		out[swap-1].time, out[swap].time = out[swap].time, out[swap-1].time
	}
	return out
}

// Neighbours whose time stamps are wrong too break no rule where nothing is sent again, and where
// the order shows it the message says what to do.
func TestDisorderThatStampsDoNotShow(t *testing.T) {
	told := 0
	for name, shots := range recordings(t) {
		ordered := stamped(shots, 0)
		before := judged(t, containers[2].of(ordered))
		again := slices.ContainsFunc(before.Flows, func(f oracle.Flow) bool { return f.Resent > 0 })
		for i := 1; i < len(shots); i++ {
			if ordered[i].time-ordered[i-1].time > 1000 {
				continue
			}
			res := judged(t, containers[2].of(stamped(shots, i)))
			for _, v := range res.Verdicts {
				if v.Rule == "OR-001" && strings.Contains(v.Text, "reordercap cannot mend it") {
					told++
				}
				if v.Kind == oracle.Violation && !again && v.Rule != "OR-098" && !slices.ContainsFunc(before.Verdicts, func(b oracle.Verdict) bool { return b.Rule == v.Rule }) {
					t.Errorf("%s, frames %d and %d: %v", name, i, i+1, v)
				}
			}
		}
	}
	if told == 0 {
		t.Error("nothing is said of frames that are out of order")
	}
}

// Frames that were cut within their headers are told from those of other protocols, and from those
// that suffice.
func TestFramesThatAreCut(t *testing.T) {
	shots := recordings(t)["7.2/atomic"]
	for n := 10; n < 120; n++ {
		res := judged(t, containers[5].of(snapped(shots, n)))
		whole := n >= roce.EthernetSize+roce.IPv4Size+roce.UDPSize+roce.BTHSize+roce.AtomicETHSize
		if res.Whole != whole || whole == strings.Contains(strings.Join(res.Broken, ""), "snap length of 128") {
			t.Errorf("cut to %d bytes: %q, %d of RDMA", n, res.Broken, res.RDMA)
		}
	}
}
