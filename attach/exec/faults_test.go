//go:build linux && amd64

package exec

import (
	"fmt"
	"regexp"
	"testing"
)

// TestLoss: a program loses frames, the transport sends them again, and stderr says both.
func TestLoss(t *testing.T) {
	canListen(t)
	needs(t, "ib_write_bw")
	p := port(t)
	out, status := users()[0].session(t, "-devices", "2", "-loss", "20000", "--", "sh", "-c", fmt.Sprintf(`ib_write_bw -F -x 0 -n 50 -d mlx5_0 -p %d >/dev/null & s=$!; %s
		ib_write_bw -F -x 0 -n 50 -d mlx5_1 -p %[1]d 127.0.0.1 >/dev/null && wait $s`, p, listens(p)))
	if status != 0 {
		t.Errorf("status %d", status)
	}
	for _, want := range []string{
		`(?m)^rdmasim exec: fault 1 \(drop\) has acted upon [1-9]\d* of \d{3,} frames that it matches$`,
		`(?m)^rdmasim exec: mlx5_1: requests sent again after (\d+ timeouts? \(\d+ adaptive\), [1-9]|[1-9]).* 0 connections lost$`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
}

// TestPlannedEvents: links go down and up, a process is killed and a device removed, when the file
// says so.
func TestPlannedEvents(t *testing.T) {
	canListen(t)
	needs(t, "ibv_asyncwatch")
	const plan = "links: [{port: mlx5_0, at: 500ms, to: down}, {port: mlx5_1, at: 0s, to: down}, {port: mlx5_1, at: 500ms, to: up}]\n" +
		"events: [{at: 500ms, do: kill, process: host0/p1}, {at: 1s, do: remove, device: mlx5_2}, {at: 0s, do: kill, process: host0/p9}]"
	dir := shared(t)
	out, status := users()[0].session(t, "-devices", "3", "-fault", plan, "--", "sh", "-c", `
		await() { i=0; until grep -q "$1" $2 2>/dev/null; do i=$((i+1)); [ $i -lt 6000 ] || { echo "no $1 in $2"; exit 1; }; sleep 0.02; done; }
		ports=/sys/class/infiniband/mlx5_
		ibv_asyncwatch -d mlx5_1 & wait $!; echo first $?
		ibv_asyncwatch -d mlx5_2 >`+dir+`/events & w=$!
		await DOWN ${ports}0/ports/1/state; await ACTIVE ${ports}1/ports/1/state; await 1 ${ports}1/ports/1/counters/link_downed
		i=0; while ibv_devinfo -d mlx5_2 >/dev/null 2>&1; do i=$((i+1)); [ $i -lt 600 ] || exit 2; sleep 0.1; done; kill -9 $w; echo removed`)
	if status != 0 {
		t.Errorf("status %d", status)
	}
	for _, want := range []string{
		`(?m)^first 137$`, `(?m)^removed$`, `(?m)^rdmasim exec: (killed host0/p1, pid \d+|host0/p1 was to be killed with its first RDMA call)$`,
		`(?m)^rdmasim exec: removed mlx5_2$`, `(?m)^rdmasim exec: the link of mlx5_0 was taken down at 500ms$`, `host0/p9 was to be killed`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
}
