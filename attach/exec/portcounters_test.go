//go:build linux && amd64

package exec

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPortCounters: the files in hw_counters say what `rdma statistic` says, and count. A device
// without the register ROCE_ACCL has no counters of it.
func TestPortCounters(t *testing.T) {
	canListen(t)
	needs(t, "ib_write_lat", "rdma")
	u := users()[0]
	for profile, accl := range map[string]bool{"connectx-5": true, "connectx-4": false} {
		p := port(t)
		script := fmt.Sprintf(`ib_write_lat -F -x 0 -n 20 -d mlx5_0 -p %d >/dev/null & s=$!; %s; ib_write_lat -F -x 0 -n 20 -d mlx5_1 -p %[1]d 127.0.0.1 >/dev/null; wait $s
			d=/sys/class/infiniband/mlx5_0/ports/1/hw_counters; echo lifespan: $(cat $d/lifespan); for f in $(ls $d); do [ $f = lifespan ] || echo "$f $(cat $d/$f)"; done | sort | tr '\n' ' '; echo; 
			rdma statistic show link mlx5_0/1 | sed 's/^link mlx5_0.1 //' | grep -o '[a-z_][a-z_]* [0-9]*' | sort | tr '\n' ' '`, p, listens(p))
		counters := filepath.Join(shared(t), "counters")
		if !accl {
			counters += ".JSON"
		}
		out, status := u.session(t, "-profile", profile, "-devices", "2", "-counters", counters, "--", "sh", "-c", script)
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
		checkCounters(t, counters, files)
	}
}

// checkCounters compares the file of -counters with what files in hw_counters of mlx5_0 said before
// the end, in order of their names.
func checkCounters(t *testing.T, name, files string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]uint64{}
	var order []string
	if strings.HasSuffix(name, ".JSON") {
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		for _, m := range regexp.MustCompile(`"(\S+)":`).FindAllSubmatch(text, -1) {
			order = append(order, string(m[1]))
		}
	} else {
		for line := range strings.Lines(string(text)) {
			var counter string
			var v uint64
			if _, err := fmt.Sscanf(line, "%s %d\n", &counter, &v); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			all[counter], order = v, append(order, counter)
		}
	}
	var of []string
	for counter, v := range all {
		if c, ok := strings.CutPrefix(counter, "infiniband/mlx5_0/ports/1/hw_counters/"); ok {
			of = append(of, fmt.Sprintf("%s %d ", c, v))
		}
	}
	slices.Sort(of)
	if got := strings.Join(of, ""); got != files {
		t.Errorf("%s has\n%s\nand hw_counters had\n%s", name, got, files)
	}
	for i, folder := range []string{"infiniband/mlx5_0/ports/1/counters/", "infiniband/mlx5_1/ports/1/counters/"} {
		first := slices.IndexFunc(order, func(c string) bool { return strings.HasPrefix(c, folder) })
		if all[folder+"port_xmit_packets"] == 0 || all[folder+"port_rcv_data"] == 0 || first < 0 || (first == 0) != (i == 0) || len(order) != len(all) {
			t.Errorf("%s: %s begins at %d:\n%s", name, folder, first, text)
		}
	}
}
