package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/input/commands"
	"github.com/rdmasim/rdmasim/report"
)

// What is pasted from a record, which may be anybody's, runs conform and nothing else.
func TestAgainOfAHostileRecordIsHarmless(t *testing.T) {
	const evil = "sim; touch pwned # $(touch pwned) `touch pwned`\ntouch pwned\n'"
	dir := t.TempDir()
	t.Chdir(dir)
	for _, kind := range []string{evil, "sim", "hw"} {
		r := &report.Run{Target: report.Target{Kind: kind, Profile: evil, Device: evil}, Seed: 9, Cases: []report.Case{{ID: evil, Outcome: report.Fail}},
			Environment: map[string]string{report.KeyBelow: "rdmasim exec", report.KeySession: "rdmasim exec --; touch pwned; rdmasim exec --", report.KeyKernel: evil, report.KeyLibraryPath: evil,
				"env." + evil: evil, "env.LD_PRELOAD": "/tmp/x.so", "env.MLX5_SHUT_UP_BF": evil}}
		o := &runOptions{target: kind, profile: evil, gidIndex: -1}
		for _, line := range []string{againAs(r, filterOf([]string{evil})), o.again(r, evil)} {
			if strings.Contains(line, "LD_PRELOAD") {
				t.Errorf("kind %q: a variable of no driver: %s", kind, line)
			}
			// Neither program is there.
			if out, err := exec.Command("/bin/sh", "-c", "PATH=/bin:/usr/bin; rdmasim() { :; }; conform() { :; }\n"+line).CombinedOutput(); err != nil && !strings.Contains(string(out), "not found") && !strings.Contains(string(out), "No such file") {
				t.Errorf("kind %q: %v, %s", kind, err, out)
			}
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("pasted lines have made %v, %v", left, err)
	}
}

func TestAgainIsTheWholeCommand(t *testing.T) {
	t.Setenv("LAB_WIRE", "w0,w1")
	for want, tt := range map[string]struct {
		o   runOptions
		env map[string]string
	}{
		"conform --target=hw --device rxe0 --port 2 --gid-index 3 --peer tcp:there:7471 --peer-key 'my key' --full --seed 9 --label-filter RC-001 -v": {
			runOptions{target: "hw", device: "rxe0", port: 2, gidIndex: 3, peer: "tcp:there:7471", peerKey: "my key", full: true}, nil},
		"scripts/lab --kernel 6.1 -- env MLX5_SINGLE_THREADED=1 conform --target=hw --seed 9 --label-filter RC-001 -v": {
			runOptions{target: "hw", gidIndex: -1, wire: "w0,w1"}, map[string]string{report.KeyKernel: "6.1.0-56-amd64", "env.MLX5_SINGLE_THREADED": "1"}},
		"scripts/lab --kernel 6.12 -- conform --target=hw --wire w1,w0 --seed 9 --label-filter RC-001 -v": {
			runOptions{target: "hw", gidIndex: -1, wire: "w1,w0"}, map[string]string{report.KeyKernel: "6.12.117+deb12-amd64"}},
		"rdmasim exec -- conform --target=hw --repeat 3 --seed 9 --label-filter RC-001 -v": {
			runOptions{target: "hw", gidIndex: -1, repeat: 3}, map[string]string{report.KeyBelow: "rdmasim exec"}},
		"rdmasim exec -- env LD_LIBRARY_PATH=/opt/rdma/lib MLX5_SINGLE_THREADED=1 conform --target=hw --seed 9 --label-filter RC-001 -v": {
			runOptions{target: "hw", gidIndex: -1}, map[string]string{report.KeyBelow: "rdmasim exec", report.KeyLibraryPath: "/opt/rdma/lib", "env.MLX5_SINGLE_THREADED": "1"}},
		"conform --target=hw --device mlx5_0 --seed 9 --label-filter RC-001 -v": {
			runOptions{target: "hw", device: "mlx5_0", gidIndex: -1}, map[string]string{report.KeyBelow: "rdmasim pci"}},
	} {
		run := &report.Run{Target: report.Target{Kind: "hw"}, Environment: tt.env, Seed: 9, Cases: []report.Case{{ID: "RC-001", Outcome: report.Fail}}}
		var b bytes.Buffer
		printRun(&b, &tt.o, run)
		if !strings.Contains(b.String(), "again: "+want+"\n") {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	t.Setenv("CONFORM_HW", "/opt/my build/conform-hw")
	for target, want := range map[string]string{"hw": "env CONFORM_HW='/opt/my build/conform-hw' conform --target=hw", "sim": "conform --target=sim"} {
		if got := (&runOptions{target: target, gidIndex: -1}).again(&report.Run{}, "RC-001"); !strings.HasPrefix(got, want) {
			t.Errorf("another worker: %s", got)
		}
	}
	for arg0, want := range map[string]string{"conform": "conform", "bin/conform": "bin/conform", "/opt/rdma tools/conform": "/opt/rdma tools/conform",
		"/tmp/go-build1/b001/exe/conform": "conform", "/tmp/conform.test": "conform",
		"/opt/bin/conform-hw": "/opt/bin/conform-hw", "bin/conform-mutants": "bin/conform-mutants"} {
		if got := calledAs(arg0); got != want {
			t.Errorf("called as %s: %s, want %s", arg0, got, want)
		}
	}
	below := &report.Run{Target: report.Target{Kind: "hw"}, Seed: 9, Environment: map[string]string{report.KeyBelow: "rdmasim exec"}}
	for session, want := range map[string]string{"": "rdmasim exec --", "rdmasim exec --devices 2 --set 'a b' --": "rdmasim exec --devices 2 --set 'a b' --"} {
		below.Environment[report.KeySession] = session
		if got := againAs(below, "RC-001"); got != want+" conform --target=hw --seed 9 --label-filter RC-001 -v" {
			t.Errorf("after a session %q: %s", session, got)
		}
	}
	for _, session := range []string{"rdmasim exec --; touch /tmp/pwned; rdmasim exec --", "rdmasim exec $(touch /tmp/pwned) --", "rdmasim exec `touch /tmp/pwned` --",
		"rdmasim exec\ntouch /tmp/pwned\nrdmasim exec --", "rdmasim exec 'a' 'b --", "rdmasim exec a'b' --", "rdmasim exec  --", "rdmasim exec -- sh -c 'touch /tmp/pwned' --", "touch /tmp/pwned exec --", "rdmasim exec",
		"rdmasim exec --\\", "rdmasim exec 'a'\"'\"'; touch /tmp/pwned' --"} {
		below.Environment[report.KeySession] = session
		if got := againAs(below, "RC-001"); got != "rdmasim exec -- conform --target=hw --seed 9 --label-filter RC-001 -v" {
			t.Errorf("after a session %q: %s", session, got)
		}
	}
	t.Setenv(commands.GuestVariable, commands.Guest([]string{"bin/rdmasim", "vm", "--kernel", "6.1", "bin/conform", "--target=hw"}, 2))
	guest := &report.Run{Environment: map[string]string{report.KeyBelow: "rdmasim pci"}}
	if got, want := (&runOptions{target: "hw", gidIndex: -1}).again(guest, "RC-001"), "bin/rdmasim vm --kernel 6.1 -- env CONFORM_HW="; !strings.HasPrefix(got, want) {
		t.Errorf("in a guest of rdmasim vm: %s", got)
	}
	above := [][]string{{"sh", "-c", "conform"}, {"bin/rdmasim", "exec", "--uar", "dynamic", "--set", "a b", "--", "sh", "-c", "conform"}}
	if got := strings.Join(execPrefix(above), " "); got != "bin/rdmasim exec --uar dynamic --set 'a b' --" {
		t.Errorf("prefix %s", got)
	}
}
