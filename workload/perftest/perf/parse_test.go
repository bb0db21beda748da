package perf

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"
)

// recorded are the runs of real programs, by their names: D12/wbw-q4.
var recorded = sync.OnceValues(func() (map[string]map[string]string, error) {
	f, err := os.Open("../../../fixtures/perftest/runs.tar.gz")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	all := map[string]map[string]string{}
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
		parts := map[string]string{}
		for _, p := range txtar.Parse(text).Files {
			parts[p.Name] = string(p.Data)
		}
		all[strings.TrimSuffix(h.Name, ".txtar")] = parts
	}
})

// commands are the command lines of a run: of the client or of a program that is alone, and of the
// server.
func commands(t *testing.T, name string) (client, server []string, run map[string]string) {
	t.Helper()
	all, err := recorded()
	if err != nil {
		t.Fatal(err)
	}
	run = all[name]
	if run == nil {
		t.Fatalf("no run %s", name)
	}
	for line := range strings.Lines(run["cmd"]) {
		who, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if who == "server" {
			server = strings.Fields(text)
		} else {
			client = strings.Fields(text)
		}
	}
	return client, server, run
}

func parse(t *testing.T, words []string) (*Options, error) {
	t.Helper()
	test, err := ParseTest(words[0])
	if err != nil {
		t.Fatal(err)
	}
	return Parse(test, words[0], words[1:])
}

// What perftest refuses before it opens a device is refused here, in the same words, on the same
// streams.
func TestRefusalsAreTheRecordedOnes(t *testing.T) {
	for _, name := range []string{"H/err-D-a", "H/err-D3-f2", "H/err-T-noR", "H/err-c-UD", "H/err-dup", "H/err-e-write", "H/err-extra", "H/err-l-n", "H/err-n-txt",
		"H/err-n4", "H/err-o-write", "H/err-output-lat", "D12/err-infinite-lat", "D12/err-l-Q", "D12/err-burst-norate"} {
		t.Run(name, func(t *testing.T) {
			words, _, run := commands(t, name)
			_, err := parse(t, words)
			var r *Refusal
			if !errors.As(err, &r) {
				t.Fatalf("%v is not refused: %v", words, err)
			}
			if want := run["solo.err"]; r.Err != want {
				t.Errorf("standard error %q, want %q", r.Err, want)
			}
			if want := run["solo.out"]; r.Out != want {
				t.Errorf("standard output %q, want %q", r.Out, want)
			}
		})
	}
}

// getopt's own lines come first, then perftest's, and the usage on standard output.
func TestUnknownFlagsAreTheRecordedOnes(t *testing.T) {
	for _, name := range []string{"H/err-badflag", "D12/err-badflag", "D12/err-badshort"} {
		words, _, run := commands(t, name)
		_, err := parse(t, words)
		var r *Refusal
		if !errors.As(err, &r) {
			t.Fatalf("%s: %v", name, err)
		}
		if r.Err != run["solo.err"] {
			t.Errorf("%s: %q, want %q", name, r.Err, run["solo.err"])
		}
		if !strings.HasPrefix(r.Out, "Usage:\n  ib_write_bw") {
			t.Errorf("%s: no usage: %q", name, r.Out)
		}
	}
}

// Refusals of D12 that the archive has without standard error, or that only the source says.
func TestRefusals(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"ib_write_lat -q 2", " Multiple QPs only available on bw tests\n Parser function exited with Error\n"},
		{"ib_write_lat -b", " Bidirectional is only available in BW test\n Parser function exited with Error\n"},
		{"ib_read_bw -c UC", " UC connection not possible in READ/ATOMIC verbs\n"},
		{"ib_write_bw -c FOO", " Invalid Connection type. Please choose from {RC,UC,UD,XRC,DC,SRD}\n"},
		{"ib_atomic_bw -A FOO", " Invalid Atomic type! please choose from {CMP_AND_SWAP,FETCH_AND_ADD}\n"},
		{"ib_write_bw -S 20", " Only 15 Service levels\n Parser function exited with Error\n"},
		{"ib_write_bw -I 5000", " Max inline should be between 0 and 1024\n Parser function exited with Error\n"},
		{"ib_write_bw -t 20000", " Tx depth should be between 1 and 15000\n Parser function exited with Error\n"},
		{"ib_write_bw -q 20000", " num of Qps should be between 1 and 16384\n Parser function exited with Error\n"},
		{"ib_write_bw -s 0", " Message Size should be between 1 and 2147483647\n Parser function exited with Error\n"},
		{"ib_write_bw -s -5", " Message Size should be between 1 and 2147483647\n Parser function exited with Error\n"},
		{"ib_write_bw --si 64 --s", "ib_write_bw: option '--s' is ambiguous; possibilities: '--size' '--sl' '--send_with_imm' '--source_mac' '--source_ip' '--source_port' '--server'\n Invalid Command or flag.\n Please check command line and run again.\n\n Parser function exited with Error\n"},
		{"ib_write_bw -s", "ib_write_bw: option requires an argument -- 's'\n Invalid Command or flag.\n Please check command line and run again.\n\n Parser function exited with Error\n"},
		{"ib_write_bw --all=3", "ib_write_bw: option '--all' doesn't allow an argument\n Invalid Command or flag.\n Please check command line and run again.\n\n Parser function exited with Error\n"},
		{"ib_write_bw --report_gbits --report_gb", " Duplicated argument: report_gbits \n Parser function exited with Error\n"},
		{"ib_write_bw --use_cuda_dmabuf", "CUDA DMA-BUF cannot be used without CUDA\n Parser function exited with Error\n"},
		{"ib_write_lat --use_cuda=0", "Perftest doesn't support device memory latency test with write (without immediate) verb; use --write_with_imm\n"},
	} {
		_, err := parse(t, strings.Fields(c.line))
		var r *Refusal
		if !errors.As(err, &r) || r.Err != c.want {
			t.Errorf("%s: %q, want %q", c.line, err, c.want)
		}
	}
}

// What cannot be done is refused, with what to do.
func TestAbsentFlagsSaySo(t *testing.T) {
	for _, line := range []string{"ib_write_bw -O", "ib_send_bw -g", "ib_write_bw -c XRC", "ib_write_lat -C", "ib_write_bw --rate_limit=10 --rate_limit_type=HW",
		"ib_write_bw -l 8 -t 4", "ib_write_bw --use_rocm=0", "ib_write_bw -D 3 --cpu_util", "ib_write_bw -u 40", "ib_send_bw --recv_post_list=600 -n 600"} {
		_, err := parse(t, strings.Fields(line))
		var r *Refusal
		if !errors.As(err, &r) || len(r.Err) < 20 {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestFormsOfFlags(t *testing.T) {
	for _, line := range []string{"-s64 -n100", "-s 64 -n 100", "--size=64 --iters=100", "--size 64 --iter 100", "-Fs64 -n 0x64 host", "host -s 64 -n100", "-n0144 -s64 -- host"} {
		o, err := parse(t, append([]string{"ib_write_bw"}, strings.Fields(line)...))
		if err != nil || o.Size != 64 || o.Iters != 100 {
			t.Errorf("%s: %+v %v", line, o, err)
			continue
		}
		if client := strings.Contains(line, "host"); o.Sender != client || (o.Host == "host") != client {
			t.Errorf("%s: sender %v, host %q", line, o.Sender, o.Host)
		}
	}
}

func TestDefaultsFollowFromFlags(t *testing.T) {
	for _, c := range []struct {
		line string
		ok   func(o *Options) bool
	}{
		{"ib_write_bw h", func(o *Options) bool {
			return o.Size == 65536 && o.Iters == 5000 && o.TxDepth == 128 && o.CQMod == 1 && o.Dynamic && !o.NoPeak
		}},
		{"ib_write_bw -s 4096 h", func(o *Options) bool { return o.CQMod == 100 }},
		{"ib_write_bw -s 4096 -t 16 h", func(o *Options) bool { return o.CQMod == 16 }},
		{"ib_write_bw -a h", func(o *Options) bool { return o.CQMod == 100 && o.Size == 1<<23 }},
		{"ib_write_bw -s4K h", func(o *Options) bool { return o.Size == 4096 && len(o.Notes) == 0 }},
		{"ib_write_bw -s4k h", func(o *Options) bool { return o.Size == 4 && len(o.Notes) == 1 }},
		{"ib_write_bw -a -s 64 h", func(o *Options) bool { return len(o.Notes) == 1 }},
		{"ib_write_bw -n 50 h", func(o *Options) bool { return o.TxDepth == 50 && !o.Dynamic && o.out == "Disabling dynamic polling\n" }},
		{"ib_write_bw -l 4 -n 100 -s 64 h", func(o *Options) bool { return o.CQMod == 4 }},
		{"ib_write_bw -D 5 h", func(o *Options) bool { return o.Margin == 1 && o.Iters == 0 && o.NoPeak && o.out == noPeak }},
		{"ib_write_bw -n 30000 h", func(o *Options) bool { return o.NoPeak && o.out == noPeak }},
		{"ib_send_bw -n 101", func(o *Options) bool { return o.RxDepth == 102 && o.NoPeak && !o.Sender }},
		{"ib_send_bw h", func(o *Options) bool { return o.RxDepth == 512 && o.Size == 65536 && o.Iters == 1000 }},
		{"ib_send_bw -c UD -n 700 h", func(o *Options) bool { return o.RxDepth == 700 }},
		{"ib_write_lat h", func(o *Options) bool { return o.Size == 2 && o.TxDepth == 1 && o.Iters == 1000 && o.RxDepth == 1 }},
		{"ib_atomic_bw h", func(o *Options) bool { return o.Size == 8 && o.Inline == 0 }},
		{"ib_write_bw --reversed h", func(o *Options) bool { return !o.Sender }},
		{"ib_write_bw --rate_limit=10 h", func(o *Options) bool { return o.RateType == "SW" && o.Burst == 128 && len(o.Notes) == 1 }},
	} {
		o, err := parse(t, strings.Fields(c.line))
		if err != nil || !c.ok(o) {
			t.Errorf("%s: %+v %v", c.line, o, err)
		}
	}
}

// The other end of a client has the flags of the same line, and completes them for itself.
func TestServerOfAClient(t *testing.T) {
	for _, line := range []string{"ib_send_bw -n 101", "ib_write_bw --reversed -n 100", "ib_write_bw -D 3", "ib_write_bw -a"} {
		c, err := parse(t, append(strings.Fields(line), "h"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := parse(t, strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		got := c.Server()
		got.given, s.given = nil, nil
		if got.out != s.out || got.Iters != s.Iters || got.RxDepth != s.RxDepth || got.Sender != s.Sender || got.NoPeak != s.NoPeak || got.Size != s.Size || got.CQMod != s.CQMod {
			t.Errorf("%s: %+v\nwant %+v", line, got, s)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"-s64 host", "--size=4k -a", "-D 5 -f 1 --report_gb", "-l 4 -t 8 -n 100", "-s9223372036854775807M", "--=", "-", "-- -s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, name := range programs {
			test, _ := ParseTest(name)
			o, err := Parse(test, name, strings.Fields(line))
			if (o == nil) == (err == nil) {
				t.Errorf("%s %s: %v, %v", name, line, o, err)
			}
			if o != nil {
				o.Server()
			}
		}
	})
}
