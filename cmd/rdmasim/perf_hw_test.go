//go:build hw && linux && amd64

package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/workload/perftest"
)

// A real perftest and this program complete with each other in both roles, on simulated devices below exec.
func TestPerfTalksToPerftest(t *testing.T) {
	if _, err := exec.LookPath("ib_write_bw"); err != nil {
		if os.Getenv("RDMASIM_NEED_RDMA") == "1" {
			t.Fatal(err)
		}
		t.Skip("no perftest: apt-get install perftest")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ program, flags string }{{"ib_write_bw", "-n 50 -q 2"}, {"ib_write_bw", "-n 50 -b"}, {"ib_read_bw", "-n 50"}, {"ib_send_bw", "-n 50"}, {"ib_send_bw", "-n 50 -c UD -s 1024"}, {"ib_atomic_bw", "-n 50"},
		{"ib_write_lat", "-n 20"}, {"ib_send_lat", "-n 20"}, {"ib_read_lat", "-n 20"}, {"ib_atomic_lat", "-n 20"},
		{"ib_write_bw", "-R -n 50 -q 2"}, {"ib_read_bw", "-z -n 50"}, {"ib_send_lat", "-R -n 20 -c UD"}} {
		theirs := c.program + " -F " + c.flags
		ours := fmt.Sprintf("%s %s perf %s --target=hw %s", self, mainArg, strings.TrimPrefix(c.program, "ib_"), c.flags)
		for i, pair := range [][2]string{{theirs, ours}, {ours, theirs}} {
			t.Run(c.program+c.flags+[]string{"/client", "/server"}[i], func(t *testing.T) {
				server, client := pair[0], pair[1]
				if i == 0 {
					client += " --explain"
				}
				host := "127.0.0.1"
				if strings.Contains(c.flags, "-R") || strings.Contains(c.flags, "-z") {
					host = "10.1.0.1" // of mlx5_0
				}
				script := fmt.Sprintf(`p=%d; %s -d mlx5_0 -p $p >&2 & s=$!
n=0; until %s -d mlx5_1 -p $p %s; do n=$((n+1)); [ $n -lt 30 ] || exit 9; sleep 0.3; done
wait $s || exit 8`, freePort(t), server, client, host)
				cmd := exec.Command(self, mainArg, "exec", "--devices", "2", "--", "sh", "-c", script)
				var out, errs bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errs
				if err := cmd.Run(); err != nil {
					t.Fatalf("%v\n%s\n%s", err, out.String(), errs.String())
				}
				for _, text := range []string{out.String(), errs.String()} {
					if text == errs.String() && strings.HasSuffix(c.program, "_lat") && (strings.Contains(c.program, "read") || strings.Contains(c.program, "atomic")) {
						continue // a server that measures nothing
					}
					if _, err := perftest.Parse("out", []byte(text)); err != nil {
						t.Errorf("%v\n%s", err, text)
					}
				}
			})
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
