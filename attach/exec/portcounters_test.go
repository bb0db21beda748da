//go:build linux && amd64

package exec

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestPortCounters: the files in hw_counters say what `rdma statistic` says, and count. A device without the register ROCE_ACCL has no
// counters of it.
func TestPortCounters(t *testing.T) {
	canListen(t)
	needs(t, "ib_write_lat", "rdma")
	u := users()[0]
	for profile, accl := range map[string]bool{"connectx-5": true, "connectx-4": false} {
		p := port(t)
		script := fmt.Sprintf(`ib_write_lat -F -x 0 -n 20 -d mlx5_0 -p %d >/dev/null & s=$!; %s; ib_write_lat -F -x 0 -n 20 -d mlx5_1 -p %[1]d 127.0.0.1 >/dev/null; wait $s
			d=/sys/class/infiniband/mlx5_0/ports/1/hw_counters; echo lifespan: $(cat $d/lifespan); for f in $(ls $d); do [ $f = lifespan ] || echo "$f $(cat $d/$f)"; done | sort | tr '\n' ' '; echo; 
			rdma statistic show link mlx5_0/1 | sed 's/^link mlx5_0.1 //' | grep -o '[a-z_][a-z_]* [0-9]*' | sort | tr '\n' ' '`, p, listens(p))
		out, status := u.session(t, "-profile", profile, "-devices", "2", "--", "sh", "-c", script)
		lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
		if status != 0 || len(lines) < 3 || lines[len(lines)-3] != "lifespan: 10" {
			t.Fatalf("%s: status %d:\n%s", profile, status, out)
		}
		files, listed := lines[len(lines)-2], lines[len(lines)-1]
		if files != listed || !regexp.MustCompile(`rx_write_requests [1-9]`).MatchString(files) || !strings.Contains(files, "req_transport_retries_exceeded 0 ") {
			t.Errorf("%s: files have\n%s\nand rdma statistic\n%s", profile, files, listed)
		}
		if strings.Contains(files, "roce_adp_retrans 0 ") != accl {
			t.Errorf("%s: counters of ROCE_ACCL: want %v: %s", profile, accl, files)
		}
	}
}
