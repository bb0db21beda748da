//go:build hw && linux && amd64

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
	"github.com/rdmasim/rdmasim/workload/perftest"
)

// A real perftest and this program complete with each other in both roles, on simulated devices
// below exec.
func TestPerfTalksToPerftest(t *testing.T) {
	if _, err := exec.LookPath("ib_write_bw"); err != nil {
		if os.Getenv("RDMASIM_NEED_RDMA") == "1" {
			t.Fatal(err)
		}
		t.Skip("needs perftest, which scripts/tools installs")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ program, flags string }{{"ib_write_bw", "-n 50 -q 2"}, {"ib_write_bw", "-n 50 -b"}, {"ib_read_bw", "-n 50"}, {"ib_send_bw", "-n 50"}, {"ib_send_bw", "-n 50 -c UD -s 1024"}, {"ib_atomic_bw", "-n 50"},
		{"ib_write_lat", "-n 20"}, {"ib_send_lat", "-n 20"}, {"ib_read_lat", "-n 20"}, {"ib_atomic_lat", "-n 20"},
		{"ib_write_bw", "-R -n 50 -q 2"}, {"ib_read_bw", "-z -n 50"}, {"ib_send_lat", "-R -n 20 -c UD"}} {
		theirs := c.program + " -F " + c.flags
		ours := fmt.Sprintf("%s %s perf %s --target=hw %s", commands.Quoted(self), mainArg, strings.TrimPrefix(c.program, "ib_"), c.flags)
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
				script := fmt.Sprintf(`p=%d n=0; %s -d mlx5_0 -p $p >&2 & s=$!
until %s -d mlx5_1 -p $p %s; do
	kill -0 $s || exit 9
	[ $((n += 1)) -lt 200 ] || { kill $s; exit 7; }
	sleep 0.3
done
wait $s || exit 8`, freePort(t), server, client, host)
				cmd := exec.Command(self, mainArg, "exec", "--devices", "2", "--", "sh", "-c", script)
				var out, errs bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errs
				if err := cmd.Run(); err != nil {
					t.Fatalf("%v\n%s\n%s", err, out.String(), errs.String())
				}
				measures := map[string]bool{"client": true, "server": !strings.HasSuffix(c.program, "_lat") || !strings.Contains(c.program, "read") && !strings.Contains(c.program, "atomic")}
				var rows []string
				for side, text := range map[string]string{"client": out.String(), "server": errs.String()} {
					if !measures[side] {
						continue
					}
					_, err := perftest.Parse(side, []byte(text))
					if theirs := (side == "server") == (i == 0); theirs && errors.Is(err, perftest.ErrNothingMeasured) {
						t.Logf("perftest could not measure its clock: %v", err)
					} else if err != nil {
						t.Errorf("%v\n%s", err, text)
					}
					rows = append(rows, sizeAndCount(text))
				}
				if rows[0] == "" || rows[0] != rows[len(rows)-1] {
					t.Errorf("size and number of iterations: %q\n%s\n%s", rows, out.String(), errs.String())
				}
			})
		}
	}
}

// sizeAndCount are the columns of perftest's table that do not depend on a clock: the size and how
// many messages there were.
func sizeAndCount(text string) string {
	m := regexp.MustCompile(`(?m)^ *#bytes .*\n(?:\D.*\n)*? *([0-9]+) +([0-9]+) `).FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1] + " B, " + m[2]
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
