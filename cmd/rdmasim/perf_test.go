package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/roce/pcap"
	"github.com/rdmasim/rdmasim/sim/profile"
	"github.com/rdmasim/rdmasim/sim/testbed"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload/perftest"
	"github.com/rdmasim/rdmasim/workload/perftest/perf"
)

// measure runs a command line of rdmasim perf.
func measure(t *testing.T, line string) (out, errs string, status int) {
	t.Helper()
	var o, e bytes.Buffer
	status = program.Execute(t.Context(), append([]string{"perf"}, strings.Fields(line)...), &o, &e)
	return o.String(), e.String(), status
}

// Every test with the flags that change its table is read by the parser that reads real perftest.
func TestPerfPrintsWhatPerftestPrints(t *testing.T) {
	for _, c := range []struct {
		line          string
		op            string
		rows, qps     int
		size, iters   uint64
		latency, both bool
		least, most   float64 // Gb/s of payload, or t_typical in us
	}{
		{"ib_write_bw -n 300", "write", 1, 1, 65536, 300, false, false, 97, 98.1},
		{"write_bw -a -n 20 -N", "write", 23, 1, 2, 20, false, false, 0.01, 1},
		{"write_bw -s 4096 -q 4 -n 100 --report_gbits", "write", 1, 4, 4096, 400, false, false, 90, 98.1},
		{"write_bw -b -n 300", "write", 1, 1, 65536, 300, false, true, 190, 196.1},
		{"write_bw -s 65536 -D 1 -f 0 --set link.bandwidth=1Gbps", "write", 1, 1, 65536, 0, false, false, 0.9, 1},
		{"write_bw --write_with_imm -n 100", "write_imm", 1, 1, 65536, 100, false, false, 90, 98.1},
		{"read_bw -n 300", "read", 1, 1, 65536, 300, false, false, 95, 98.1},
		{"send_bw -n 300 -q 2", "send", 1, 2, 65536, 600, false, false, 90, 98.1},
		{"send_bw -b -n 300", "send", 1, 1, 65536, 300, false, true, 180, 196.1},
		{"send_bw -c UD -s 1024", "send", 1, 1, 1024, 1000, false, false, 10, 98.1},
		{"send_bw -a -c UC -n 20", "send", 23, 1, 2, 20, false, false, 0.01, 1},
		{"send_bw --use-srq -q 2 --recv_post_list=4 -n 100", "send", 1, 2, 65536, 200, false, false, 80, 98.1},
		{"send_bw -b -e -n 100", "send", 1, 1, 65536, 100, false, true, 100, 196.1},
		{"atomic_bw -n 200 --report_gbits", "fetch_add", 1, 1, 8, 200, false, false, 0.01, 2},
		{"atomic_bw -A CMP_AND_SWAP -n 200", "cmp_swap", 1, 1, 8, 200, false, false, 0.01, 2},
		{"write_bw -l 4 -s 2 -n 400 --perform_warm_up", "write", 1, 1, 2, 400, false, false, 0.01, 1},
		{"write_bw --use_cuda=0 --use_cuda_dmabuf -n 100", "write", 1, 1, 65536, 100, false, false, 90, 98.1},
		{"write_bw -R -n 100 -q 2", "write", 1, 2, 65536, 200, false, false, 90, 98.1},
		{"read_bw -z -n 100", "read", 1, 1, 65536, 100, false, false, 90, 98.1},
		{"send_bw -R -c UD -s 1024 -b -n 200", "send", 1, 1, 1024, 200, false, true, 10, 196.1},
		{"send_lat -R -c UD -n 50", "send", 1, 1, 2, 50, true, false, 0.5, 2},
		{"write_lat -n 100", "write", 1, 1, 2, 100, true, false, 0.5, 2},
		{"write_lat --write_with_imm -n 100", "write_imm", 1, 1, 2, 100, true, false, 0.5, 2},
		{"read_lat -n 100", "read", 1, 1, 2, 100, true, false, 1, 4},
		{"read_lat -D 1 -f 0 --set link.propagation=200us", "read", 1, 1, 2, 0, true, false, 400, 410},
		{"send_lat -n 100", "send", 1, 1, 2, 100, true, false, 0.5, 2},
		{"send_lat -e -n 50", "send", 1, 1, 2, 50, true, false, 2, 20},
		{"atomic_lat -n 100", "fetch_add", 1, 1, 8, 100, true, false, 1, 4},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			out, errs, status := measure(t, c.line)
			if status != 0 || withoutNotes(errs) != "" {
				t.Fatalf("status %d:\n%s", status, errs)
			}
			runs, err := perftest.Parse("out", []byte(out))
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			r := runs[0]
			if r.Op != c.op || r.Latency != c.latency || r.Bidirectional != c.both || r.QPs != c.qps || len(r.Rows) != c.rows || r.Device != "mlx5_0" || r.Link != "Ethernet" || r.MTU != 4096 {
				t.Errorf("%+v\n%s", r, out)
			}
			row := r.Rows[0]
			if row.Size != c.size || c.iters != 0 && row.Iterations != c.iters {
				t.Errorf("row %+v", row)
			}
			got := row.Rate * float64(row.Size) * 8 / 1e9
			if c.latency {
				got = row.Typical / 1e3
			}
			if got < c.least || got > c.most {
				t.Errorf("measured %g, want from %g to %g", got, c.least, c.most)
			}
		})
	}
}

// withoutNotes is standard error without the notes.
func withoutNotes(errs string) (out string) {
	for line := range strings.Lines(errs) {
		if !strings.HasPrefix(line, "rdmasim perf: note:") {
			out += line
		}
	}
	return out
}

// On InfiniBand the connection manager finds the server by the address of its interface of IPoIB.
func TestPerfConnectsOnInfiniBand(t *testing.T) {
	for _, line := range []string{"write_bw -R -n 100", "send_lat -R -c UD -n 50", "read_bw -z -n 100"} {
		out, errs, status := measure(t, line+" --profile connectx-5-ib")
		runs, err := perftest.Parse("out", []byte(out))
		if status != 0 || withoutNotes(errs) != "" || err != nil || runs[0].Link != "IB" {
			t.Errorf("%s: status %d, %v\n%s%s", line, status, err, errs, out)
		}
	}
}

// The same seed gives the same bytes, of all outputs; another seed draws other sequence numbers.
func TestPerfIsDeterministic(t *testing.T) {
	const line = "send_bw -n 200 -q 2 --both --explain"
	first, _, status := measure(t, line)
	again, _, _ := measure(t, line)
	other, _, _ := measure(t, line+" --seed 2")
	if status != 0 || first != again {
		t.Errorf("status %d; two runs differ:\n%s\n%s", status, first, again)
	}
	if first == other {
		t.Error("another seed changes nothing")
	}
	if !strings.Contains(first, "\nThe server:\n") || !strings.Contains(first, "Steps of the server") || !strings.Contains(first, "modify_qp x2") {
		t.Errorf("no output of the server, or no steps:\n%s", first)
	}
}

// For equal settings rdmasim run measures the same.
func TestPerfAgreesWithRun(t *testing.T) {
	for _, c := range []struct{ perf, run string }{
		{"write_bw -s 4096 -n 4000 -Q 1 -N --use_old_post_send", "verb: write\n    payload: 4KiB\n    window: 128\n    messages: 4000\n"},
		{"read_bw -s 8192 -n 2000 -Q 1 -N --use_old_post_send", "verb: read\n    payload: 8KiB\n    window: 128\n    messages: 2000\n"},
	} {
		out, errs, status := measure(t, c.perf)
		runs, err := perftest.Parse("perf", []byte(out))
		if status != 0 || err != nil {
			t.Fatalf("%d %v\n%s", status, err, errs)
		}
		file := filepath.Join(t.TempDir(), "load.yaml")
		if err := os.WriteFile(file, []byte("name: load\ntraffic:\n  - name: a\n    signal_every: 1\n    mtu: 4096\n    "+c.run), 0o600); err != nil {
			t.Fatal(err)
		}
		var o, e bytes.Buffer
		if status := program.Execute(t.Context(), []string{"run", file, "--format", "json"}, &o, &e); status != 0 {
			t.Fatalf("%d\n%s", status, e.String())
		}
		var res struct {
			Rows []struct {
				Rate float64 `json:"rate_mps"`
			}
		}
		if err := json.Unmarshal(o.Bytes(), &res); err != nil || len(res.Rows) == 0 {
			t.Fatalf("%v\n%s", err, o.String())
		}
		if a, b := runs[0].Rows[0].Rate/1e6, res.Rows[0].Rate; math.Abs(a/b-1) > 0.005 {
			t.Errorf("%s: perf has %g Mpps, run %g", c.perf, a, b)
		}
	}
}

func TestPerfJSON(t *testing.T) {
	t.Chdir(t.TempDir()) // lines are split at spaces, and the folder's name may have some
	const file = "out.json"
	for _, line := range []string{"write_bw -a -n 5", "read_lat -n 10", "send_lat -n 10 --output=latency", "write_bw -n 5 --output=message_rate", "write_bw -n 5 -s 2 --report_gbits"} {
		out, errs, status := measure(t, line+" --out_json --out_json_file="+file)
		if status != 0 {
			t.Fatalf("%s: %d %s", line, status, errs)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Info    map[string]any   `json:"test_info"`
			Results map[string]any   `json:"results"`
			All     []map[string]any `json:"all_results"`
			Partly  bool             `json:"incomplete"`
		}
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, b)
		}
		if doc.Partly || doc.Info["Device"] != "mlx5_0" || len(doc.Results) == 0 || strings.Contains(line, "-a") != (len(doc.All) == 23) {
			t.Errorf("%s: %s", line, b)
		}
		if strings.Contains(line, "--output") {
			if _, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimPrefix(out, "Disabling dynamic polling\n")), 64); err != nil {
				t.Errorf("%s: %q is not one number", line, out)
			}
		}
		if st, _ := os.Stat(file); st.Size() == 0 {
			t.Error("empty")
		}
	}
	if _, errs, status := measure(t, "write_bw -n 5 --out_json --out_json_file=/no/such/folder/x.json"); status != 1 || !strings.Contains(errs, "failed to open /no/such/folder/x.json") {
		t.Errorf("%d %s", status, errs)
	}
	if out, _, _ := measure(t, "write_bw -n 5 --out_json --out_json_file=/no/such/folder/x.json"); strings.Contains(out, "BW average") {
		t.Errorf("a file that cannot be written is noticed after the run:\n%s", out)
	}
	// What is lost later is said when the sizes have been printed.
	ctx := outfile.WithFail(t.Context(), func(op outfile.Operation, path string) error {
		if op == outfile.OpSync && strings.HasSuffix(path, "late.json") {
			return syscall.EIO
		}
		return nil
	})
	var late, lateErrs bytes.Buffer
	status := program.Execute(ctx, []string{"perf", "write_bw", "-n", "5", "-a", "--out_json", "--out_json_file=" + filepath.Join(t.TempDir(), "late.json")}, &late, &lateErrs)
	if status != exitFailure || !strings.Contains(lateErrs.String(), "late.json cannot be written: input/output error") || !strings.Contains(late.String(), "8388608") {
		t.Errorf("%d %s\n%s", status, &lateErrs, &late)
	}
	if out, errs, status := measure(t, "write_bw -n 5 --pcap=/no/such/folder/x"); status != exitUsage || !strings.Contains(errs, "--pcap: /no/such/folder/x cannot be written") || out != "" {
		t.Errorf("%d %s\n%s", status, errs, out)
	}
	if out, errs, status := measure(t, "write_bw -n 5 --pcap=/dev/full"); status != exitFailure || !strings.Contains(errs, "/dev/full cannot be written: capture: no space left") || !strings.Contains(out, "BW average") {
		t.Errorf("%d %s\n%s", status, errs, out)
	}
	// A pipe has one reader, who takes what comes until the end as the report.
	const fifo = "fifo"
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan []byte)
	go func() {
		b, _ := os.ReadFile(fifo)
		got <- b
	}()
	_, errs, status := measure(t, "send_bw -c UD -a -n 5 --out_json --out_json_file="+fifo)
	var doc struct {
		All []any `json:"all_results"`
	}
	if err := json.Unmarshal(<-got, &doc); err != nil || status != 0 || len(doc.All) != 12 {
		t.Errorf("status %d, %d results: %v %s", status, len(doc.All), err, errs)
	}
}

// A result stands beside a stored one: an output of perftest, or its JSON.
func TestPerfCompares(t *testing.T) {
	t.Chdir(t.TempDir())
	const text, doc = "a.txt", "a.json"
	out, _, _ := measure(t, "write_bw -n 50 --out_json --out_json_file="+doc)
	if err := os.WriteFile(text, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{text, doc} {
		out, errs, status := measure(t, "write_bw -n 50 --compare="+f)
		if status != 0 || !strings.Contains(out, "Side by side, message rate, Mpps:") || !strings.HasSuffix(out, "1.000\n") {
			t.Errorf("%d %s\n%s", status, errs, out)
		}
		if _, errs, status := measure(t, "write_lat -n 50 --compare="+f); status != 2 || !strings.Contains(errs, "has rates, and this test measures latencies") {
			t.Errorf("%d %s", status, errs)
		}
	}
	if _, _, status := measure(t, "write_bw --compare=none"); status != 2 {
		t.Errorf("status %d", status)
	}
	for content, want := range map[string]string{
		`{"results":{"MsgSize":65536,"MsgRate":1e308}}`:                                            "where a number above 0 is needed",
		`{"results":{"MsgSize":65536,"MsgRate":-1}}`:                                               "where a number above 0 is needed",
		`{"results":{},"all_results":[{"MsgSize":2,"MsgRate":1},{"MsgSize":65536,"t_typical":1}]}`: "some of its results are latencies",
	} {
		if err := os.WriteFile(doc, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, errs, status := measure(t, "write_bw -n 50 --compare="+doc); status != 2 || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", content, status, errs)
		}
	}
	if _, errs, status := measure(t, "write_bw -n 50 --output=bandwidth --compare="+text); status != 2 || !strings.Contains(errs, "leave --output out") {
		t.Errorf("%d %s", status, errs)
	}
}

// What goes wrong names the step, the reason and what to try, behind perftest's words; flags end
// with status 2.
func TestPerfFailures(t *testing.T) {
	for _, c := range []struct {
		line   string
		status int
		say    []string
	}{
		{"write_bw -d mlx5_9", 1, []string{"IB device mlx5_9 not found\n", `step "device"`, "the devices are mlx5_0"}},
		{"write_bw -i 2", 1, []string{"Unable to query port 2 attributes", `step "link"`}},
		{"write_bw -x 60", 1, []string{`step "link"`, "no GID with index 60"}},
		{"send_bw -c UD -s 65536", 1, []string{" Max message size in UD cannot be greater than MTU \n", `step "MTU"`}},
		{"send_bw -c UD -b -s 512 -r 16 -n 500", 1, []string{"Did not get Message for 120 Seconds", `step "run"`, "messages are lost"}},
		{"write_bw -n 20 -w 500", 0, nil},
		{"write_bw -n 20 -w 50000", 1, []string{"Error: BW result is below bw limit\n"}},
		{"write_bw --use_cuda=0 --set gpu.peermem=false", 1, []string{"Couldn't allocate MR with error=14\n", "nvidia-peermem", "--use_cuda_dmabuf"}},
		{"write_bw --use_cuda=5 --use_cuda_dmabuf", 1, []string{"cuDeviceGet() returned 101", `step "allocate"`, "choose a GPU that is there"}},
		{"write_bw --use_cuda=0 --use_cuda_dmabuf --set gpu.dmabuf=false", 1, []string{"DMA-BUF is not supported on this GPU"}},
		{"atomic_bw --set hca.atomics=false", 1, []string{"the device has no atomics"}},
		{"write_bw -n 20 --rate_limit nan", 2, []string{"Rate limit must be"}},
		{"write_bw -n 20 --rate_limit inf", 2, []string{"Rate limit must be"}},
		{"write_bw -n 20 --rate_limit 1e-12", 2, []string{"would begin every 1.05e+10 s"}},
		{"write_bw -n 20 --out_json --out_json_file=", 2, []string{"give the name of a file"}},
		{"write_bw -n 5 --wait_destroy 4294967295", 2, []string{"the simulator's clock reaches 2400h"}},
		{"write_bw -D 1000000000", 2, []string{"the simulator's clock reaches 2400h"}},
		{"write_bw --no_such_flag", 2, []string{"write_bw: unrecognized option '--no_such_flag'\n Invalid Command or flag.\n"}},
		{"write_bw -D 5 -a", 2, []string{"Duration mode currently doesn't support running on all sizes."}},
		{"write_bw -R -c UC", 2, []string{"UC is not supported in librdmacm"}},
		{"write_bw -T 8", 2, []string{"TOS only valid for rdma_cm based QP"}},
		{"write_bw -R --bind_source_ip=10.1.0.9", 1, []string{" rdma_bind_addr failed\n", `server: step "connect"`, "cannot assign requested address", "--bind_source_ip is an address of an RDMA interface"}},
		{"write_bw -z --bind_source_ip=moon", 1, []string{`step "connect"`, `"moon" is not an address`}},
		{"write_bw -R -p 0", 1, []string{`step "connect"`, "-p 0 is not a port"}},
		{"write_bw -R --use_cuda=0 --set gpu.peermem=false", 1, []string{`step "PD and MR"`, "nvidia-peermem"}},
		{"send_bw -R -c UD -s 65536", 1, []string{`step "MTU"`}},
		{"no_bw", 2, []string{`"no_bw" is not one of the tests`}},
		{"write_bw --profile=none", 2, []string{"none"}},
		{"write_bw --set link.nothing=1", 2, []string{"link.nothing"}},
		{"write_bw --target=moon", 2, []string{`--target "moon"`}},
		{"write_bw --help", 0, nil},
		{"write_bw --version", 0, nil},
	} {
		out, errs, status := measure(t, c.line)
		if status != c.status {
			t.Errorf("%s: status %d, want %d\n%s", c.line, status, c.status, errs)
		}
		for _, s := range c.say {
			if !strings.Contains(errs+out, s) {
				t.Errorf("%s: %q is missing in\n%s%s", c.line, s, out, errs)
			}
		}
	}
}

// Both ends take back what they have made, also after a failure in the middle.
func TestPerfLeavesNothing(t *testing.T) {
	p, err := profile.Load(profile.Default)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"-n 50", "-n 50 -q 4 --mr_per_qp --no_lock", "-n 50 --use_cuda=0 --use_cuda_dmabuf", "-n 50 --use_cuda=0", "-n 50 -w 90000",
		"-n 50 -R -q 2", "-n 50 -R -w 90000", "-n 50 -R -c UD -s 512 -b", "-n 50 -z", "-R --bind_source_ip=10.1.0.9", "-R --use_cuda=0"} {
		test, _ := perf.ParseTest("send_bw")
		o, err := perf.Parse(test, "send_bw", append(strings.Fields(line), "server"))
		if err != nil {
			t.Fatal(err)
		}
		tb, err := testbed.New(testbed.Default(p))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		env := func() *perf.Env { return &perf.Env{Out: &out, Err: &out, Random: random(1, 1)} }
		err = tb.Run(time.Hour, func(t2 verbs.Thread) {
			_ = perf.Both(t2, tb, o, env(), env())
			for host := range 2 {
				counts, err := tb.ResourceCounts(t2, host)
				for what, n := range counts {
					if o.SideCM && (what == "ctx" && n == 1 || what == "pd" && n == 1 || what == "uar") {
						continue // librdmacm keeps a context of the device
					}
					if n != 0 || err != nil {
						t.Errorf("%s: host %d has %d %s left (%v)\n%s", line, host, n, what, err, out.String())
					}
				}
			}
		})
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		_ = tb.Close()
	}
}

// A test of messages that come faster than the server takes them says so, while the receives posted
// before it hide that. So do tests with few measurements, and whose messages may be lost.
func TestPerfNotesWhatAShortTestHides(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ line, want string }{
		{"send_bw -s 2", "the 512 receives that it had posted"},
		{"send_bw -s 2 --explain --out_json --out_json_file=out.json", "the server fell behind at -s 2:"},
		{"send_bw -s 256 -q 2 -n 2000", "the 1024 receives"},
		{"write_bw --write_with_imm -s 8 -n 1500", "512 of the 1500 messages"},
		{"write_bw --write_with_imm -s 8 -n 11000", ""}, // this server keeps up
		{"send_bw -s 2 -n 20000 -N --profile=connectx-4", "the server fell behind at -s 2:"},
		{"send_bw -s 2 -n 1000 -r 1024", "1000 of the 1000 messages that the server took found receives that were posted before"},
		{"send_bw -s 2 -b -n 520", "512 of the 520 messages"},
		{"send_bw -s 2 -e", "512 of the 1000 messages"},
		{"send_bw -s 2 -b", "the sender waited for the RNR timer"},
		{"send_bw -s 8192", ""},
		{"send_bw -s 64 --set link.bandwidth=1Gbps -n 700", ""},
		{"write_bw -s 2 -n 1000", ""},
		{"write_bw -s 2 -n 100 -c UC", "whether they arrived or not"},
		{"send_lat -n 99", "need 100 measurements"},
		{"send_lat -n 100", ""},
	} {
		_, errs, status := measure(t, c.line)
		if status != 0 || c.want == "" && errs != "" || strings.Count(errs, "\n") > 2 || !strings.Contains(errs, c.want) {
			t.Errorf("%s: status %d, %q, want %q", c.line, status, errs, c.want)
		}
	}
	rate := func(line string) float64 {
		out, _, _ := measure(t, line)
		runs, err := perftest.Parse("out", []byte(out))
		if err != nil {
			t.Fatal(err)
		}
		return runs[0].Rows[0].Rate
	}
	if short, long := rate("send_bw -s 2"), rate("send_bw -s 2 -n 50000"); long > 0.8*short {
		t.Errorf("%g M/s in a short test, and %g in a long one: what does the note say?", short, long)
	}
}

// With several sizes --explain also plots their limits: so few small messages are limited by
// nothing, and large ones by the wire.
func TestPerfPlotsTheLimit(t *testing.T) {
	out, errs, status := measure(t, "write_bw -a -n 60 -N --explain")
	_, plot, found := strings.Cut(out, "\nLimited by, over the size of messages:\n")
	lines := strings.Split(strings.TrimRight(plot, "\n"), "\n")
	if status != 0 || !found || len(lines) < 3 {
		t.Fatalf("status %d, %s\n%s", status, errs, out)
	}
	if last := strings.Fields(lines[len(lines)-1]); len(last) != 24 || last[1] != "2" || last[23] != "8Mi" {
		t.Errorf("sizes %q", last)
	}
	marks := map[string][]string{}
	for _, l := range lines[:len(lines)-1] {
		name, rest, _ := strings.Cut(l, "|")
		marks[strings.TrimSpace(name)] = strings.Fields(rest)
	}
	if none, wire := marks["window"], marks["wire"]; len(none) != 23 || len(wire) != 23 || none[0] != "#" || wire[0] != "." || wire[22] != "#" || none[22] != "." {
		t.Errorf("%s", plot)
	}
}

// --explain says what each size was limited by: what is planted here.
func TestPerfExplainsTheLimit(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"write_bw -s 2 -n 2000", "2      CPU "},
		{"write_bw -n 1000", "65536  wire "},
		{"write_bw -n 1000 --set pcie.bandwidth=40Gbps", "65536  PCIe read "},
		{"read_bw -n 1000 --use_cuda=0 --use_cuda_dmabuf --set gpu.path=root", "65536  peer path "},
		{"write_bw -n 1000 --use_cuda=0 --use_cuda_dmabuf --set gpu.path=root --set gpu.root_write=20Gbps", "65536  peer path "},
		{"write_bw -n 1000 --use_cuda=0", "65536  wire "},
		{"write_bw -n 1000 -t 1", "65536  window "},
		{"write_lat", "2 window "},
	} {
		out, errs, status := measure(t, c.line+" --explain")
		_, table, found := strings.Cut(out, "limited by ")
		if status != 0 || !found || !strings.Contains(strings.Join(strings.Fields(table), " "), strings.Join(strings.Fields(c.want), " ")) {
			t.Errorf("%s: status %d, %s\n%s", c.line, status, errs, table)
		}
	}
}

// hostilePeer is a peer that answers each message with its own bytes, but for those of a step.
type hostilePeer struct {
	perf.Channel
	answers map[int][]byte // by the number of the message
	n       int
	sent    [][]byte
}

func (p *hostilePeer) Send(_ verbs.Thread, b []byte) error {
	p.sent = append(p.sent, bytes.Clone(b))
	return nil
}

func (p *hostilePeer) Receive(_ verbs.Thread, b []byte) error {
	copy(b, p.sent[len(p.sent)-1])
	if a, ok := p.answers[p.n]; ok {
		copy(b, a)
	}
	p.n++
	return nil
}

func (p *hostilePeer) Close() error { return nil }

// A peer whose page or cache line no machine has decides neither how much memory is taken, nor by
// what is divided.
func TestPerfWithAHostilePeer(t *testing.T) {
	p, err := profile.Load(profile.Default)
	if err != nil {
		t.Fatal(err)
	}
	test, _ := perf.ParseTest("write_bw")
	for what, answers := range map[string]map[int][]byte{"page size": {1: {0x40, 0, 0, 0}}, "cache line size": {2: {0x40, 0, 0, 0}}} {
		o, err := perf.Parse(test, "write_bw", []string{"-n", "5", "-s", "64", "server"})
		if err != nil {
			t.Fatal(err)
		}
		tb, err := testbed.New(testbed.Default(p))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		var failure error
		if err := tb.Run(time.Hour, func(t2 verbs.Thread) {
			peer := &hostilePeer{answers: answers}
			failure = perf.New(o, &perf.Env{Out: &out, Err: &out, Random: random(1, 1), Connect: func() (perf.Channel, error) { return peer, nil }}).Run(t2)
		}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if failure == nil || !strings.Contains(failure.Error(), "the peer's "+what+" is 1073741824") {
			t.Errorf("%s: %v", what, failure)
		}
		_ = tb.Close()
	}
}

// Who interrupts a test is told so by the exit status, and one without an end ends when nobody
// reads its output.
func TestPerfInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(300*time.Millisecond, cancel).Stop()
	var o, e bytes.Buffer
	if status := program.Execute(ctx, strings.Fields("perf write_bw -s 2 -n 5000000 -N --explain"), &o, &e); status != exitInterrupted || !strings.Contains(e.String(), "interrupted") {
		t.Errorf("status %d, %s", status, e.String())
	}
	e.Reset()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("needs /dev/full: %v", err)
	}
	defer full.Close()
	ended := make(chan int, 1)
	go func() {
		ended <- program.Execute(t.Context(), strings.Fields("perf write_bw --run_infinitely -D 1"), full, &e)
	}()
	select {
	case status := <-ended:
		if status != exitFailure {
			t.Errorf("status %d", status)
		}
	case <-time.After(10 * time.Minute):
		t.Error("a test without an end goes on for nobody")
	}
}

// The report of an interrupted -a has the sizes so far, and says that some are missing. Its capture
// is kept.
func TestPerfReportOfAnInterruptedTest(t *testing.T) {
	t.Chdir(t.TempDir())
	const file, frames = "out.json", "frames.pcapng"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
			if st, err := os.Stat(file); err == nil && st.Size() > 0 {
				cancel()
			}
		}
	}()
	var o, e bytes.Buffer
	if status := program.Execute(ctx, strings.Fields("perf write_bw -a -n 5000 --pcap="+frames+" --out_json --out_json_file="+file), &o, &e); status != exitInterrupted {
		t.Errorf("exit %d, %s", status, e.String())
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Incomplete bool `json:"incomplete"`
	}
	if err := json.Unmarshal(b, &doc); err != nil || !doc.Incomplete {
		t.Errorf("%v: the report does not say that it is incomplete:\n%s", err, b)
	}
	f, err := os.Open(frames)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, packets, err := pcap.Read(f); err != nil || len(packets) < 5000 {
		t.Errorf("the capture has %d packets: %v", len(packets), err)
	}
}
