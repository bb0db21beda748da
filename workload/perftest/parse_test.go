package perftest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math"
	"os"
	"path"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"
)

// recorded are the runs of real programs, by their names: D12/wbw-q4.
var recorded = sync.OnceValues(func() (map[string]*txtar.Archive, error) {
	f, err := os.Open("../../fixtures/perftest/runs.tar.gz")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	all := map[string]*txtar.Archive{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		if name, ok := strings.CutSuffix(h.Name, ".txtar"); ok {
			all[name] = txtar.Parse(text)
		}
	}
})

func runs(t testing.TB) map[string]*txtar.Archive {
	t.Helper()
	all, err := recorded()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func part(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// A row of each table, found without the parser.
var plainRow = regexp.MustCompile(`(?m)^ \d+ +\d+ .*\d\.\d\d.*$`)

// unusable are runs that ended well and have numbers that say nothing, with what is said of them.
var unusable = map[string]string{
	"D12/wlat-C": "in cycles", "H/wlat-C": "in cycles",
	"D12/wbw-output-bw": "run the test without --output", "D12/wbw-output-mr": "run the test without --output", "D12/wlat-output": "run the test without --output",
	"H/wbw-output-bw": "run the test without --output", "H/wbw-output-mr": "run the test without --output",
}

// Each output of a client that ended well is read, with as many rows as it has; all others, and
// those of unusable, are errors with a file and a line.
func TestRecordedRuns(t *testing.T) {
	all := runs(t)
	if len(all) < 260 {
		t.Fatalf("%d runs", len(all))
	}
	read, refused := 0, 0
	for name, a := range all {
		for _, end := range []string{"client", "server", "solo"} {
			out := part(a, end+".out")
			if out == "" && part(a, end+".rc") == "" {
				continue
			}
			got, err := Parse(name, []byte(out))
			out, _, _ = strings.Cut(out, " Local results") // with --report-both those of each direction follow
			rows := len(plainRow.FindAllString(out, -1))
			if err != nil {
				refused++
				var at *Error
				if !errors.As(err, &at) || at.File != name || at.Line < 1 {
					t.Errorf("%s %s: %v", name, end, err)
				}
				if want := unusable[name]; end == "client" && strings.TrimSpace(part(a, "client.rc")) == "0" && (want == "" || !strings.Contains(err.Error(), want)) && rows > 0 && !strings.Contains(err.Error(), "measured nothing") {
					t.Errorf("%s %s ended well: %v", name, end, err)
				}
				continue
			}
			read++
			n := 0
			for _, r := range got {
				n += len(r.Rows)
				for _, row := range r.Rows {
					if v := row.Rate + row.Typical; !(v > 0) || math.IsInf(v, 0) {
						t.Errorf("%s %s: row %+v", name, end, row)
					}
				}
			}
			if n != rows {
				t.Errorf("%s %s: %d rows, and %d lines look like rows", name, end, n, rows)
			}
		}
	}
	if read < 150 || refused < 100 {
		t.Errorf("%d read, %d refused", read, refused)
	}
}

func TestHeader(t *testing.T) {
	a := runs(t)["H/wbw-q4"]
	got, err := Parse("x", []byte(part(a, "client.out")))
	if err != nil {
		t.Fatal(err)
	}
	r := got[0]
	if r.Op != Write || r.Latency || r.QPs != 4 || r.TxDepth != 128 || r.CQModeration != 100 || r.MTU != 4096 || r.Link != "Ethernet" || r.Connection != "RC" || r.Device != "rxe0" || !r.Sender {
		t.Errorf("%+v", r)
	}
	row := r.Rows[0]
	if row.Size != 4096 || row.Iterations != 2000 || math.Abs(row.Rate-18640) > 10 || row.RateError > 1e-4 {
		t.Errorf("%+v", row)
	}
	got, err = Parse("x", []byte(part(a, "server.out")))
	if err != nil || got[0].Sender {
		t.Errorf("the server's: %+v, %v", got, err)
	}
	got, err = Parse("x", []byte(part(runs(t)["H/wlat-default"], "client.out")))
	if err != nil || !got[0].Latency || got[0].Rows[0].Typical != 42530 {
		t.Errorf("%+v, %v", got, err)
	}
}

// What is cut off an output, or changed in it, is an error that says where.
func TestBadOutputs(t *testing.T) {
	whole := part(runs(t)["H/wbw-q4"], "client.out")
	table := strings.Index(whole, " #bytes")
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "x:1: this is no output of perftest"},
		{"header only", whole[:table], "x:3: the output of this test ends before its table"},
		{"titles only", whole[:strings.Index(whole, " 4096 ")], "the output ends in the table of the test in line 3"},
		{"no end", whole[:strings.LastIndex(whole, "------")-80], "x:39: a row of this table has 5 numbers, and here are 1: -"},
		{"other columns", strings.Replace(whole, "BW average[MiB/sec]", "BW average[furlongs]", 1), "x:37: no known version of perftest"},
		{"row cut", strings.Replace(whole, "0.018640", "", 1), "x:38: a row of this table has 5 numbers, and here are 4"},
		{"no number", strings.Replace(whole, "72.81", "7z.81", 1), `x:38: "7z.81" is not a number`},
		{"zeros", strings.Replace(strings.Replace(whole, "72.81", "0.00", 1), "0.018640", "0.000000", 1), "x:38: the test measured nothing"},
		{"negative", strings.Replace(strings.Replace(whole, "72.81", "-1.00", 1), "0.018640", "-0.100000", 1), "x:38: the test measured nothing"},
		{"depth", strings.Replace(whole, "TX depth        : 128", "TX depth        : lots", 1), `TX depth is "lots", not a whole number`},
		{"two headers", strings.Replace(whole, " Mtu ", " TX depth        : 64\n Mtu ", 1), "TX depth is 64 here and was 128 before"},
		{"other test", strings.Replace(whole, "RDMA_Write BW Test", "RDMA_Flush BW Test", 1), `test "RDMA_Flush BW" is not one of the known tests`},
		{"two tests, the first cut", whole[:table] + whole, "x:3: the output of this test ends before its table"},
		{"failed", "Couldn't connect to 10.0.0.1:18515\n", "x:1: the test did not run: Couldn't connect"},
	} {
		if _, err := Parse("x", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		} else if nothing := strings.Contains(c.want, "measured nothing"); errors.Is(err, ErrNothingMeasured) != nothing {
			t.Errorf("%s: ErrNothingMeasured: %v", c.name, !nothing)
		}
	}
	if got, err := Parse("x", []byte(whole+whole)); err != nil || len(got) != 2 {
		t.Errorf("two tests: %d, %v", len(got), err)
	}
}

func FuzzParse(f *testing.F) {
	for name, a := range runs(f) {
		if strings.HasPrefix(path.Base(name), "w") || strings.HasPrefix(path.Base(name), "sl") {
			f.Add([]byte(part(a, "client.out")))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		got, err := Parse("x", src)
		if (err == nil) != (len(got) > 0) {
			t.Errorf("%d tests, %v", len(got), err)
		}
		lines := 1 + bytes.Count(src, []byte("\n"))
		var at *Error
		if errors.As(err, &at) && (at.Line < 1 || at.Line > lines) {
			t.Errorf("line %d of %d", at.Line, lines)
		}
		for _, r := range got {
			for _, row := range r.Rows {
				if !(row.Rate+row.Typical > 0) {
					t.Errorf("%+v", row)
				}
			}
		}
	})
}
