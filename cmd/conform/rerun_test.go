package main

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/conformance/harness"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
)

func TestAgainIsTheWholeCommand(t *testing.T) {
	t.Setenv("LAB_WIRE", "w0,w1")
	for want, tt := range map[string]struct {
		o   runOptions
		env map[string]string
	}{
		"conform --target=hw --device rxe0 --port=2 --gid-index=3 --peer=tcp:there:7471 --full --peer-key 'my key' --seed 9 --label-filter RC-001 -v": {
			runOptions{target: "hw", device: "rxe0", port: 2, gidIndex: 3, peer: "tcp:there:7471", peerKey: "my key", full: true}, nil},
		"scripts/lab --kernel 6.1 -- env MLX5_SINGLE_THREADED=1 conform --target=hw --seed 9 --label-filter RC-001 -v": {
			runOptions{target: "hw", gidIndex: -1, wire: "w0,w1"}, map[string]string{report.KeyKernel: "6.1.0-56-amd64", "env.MLX5_SINGLE_THREADED": "1"}},
		"scripts/lab --kernel 6.12 -- conform --target=hw --wire=w1,w0 --seed 9 --label-filter RC-001 -v": {
			runOptions{target: "hw", gidIndex: -1, wire: "w1,w0"}, map[string]string{report.KeyKernel: "6.12.117+deb12-amd64"}},
		"scripts/lab --kernel newest -- rdmasim exec -- conform --target=hw --repeat=3 --seed 9 --label-filter RC-001 -v": {
			runOptions{target: "hw", gidIndex: -1, repeat: 3}, map[string]string{report.KeyBelow: "rdmasim exec"}},
		"scripts/lab --kernel newest -- rdmasim exec -- env LD_LIBRARY_PATH=/opt/rdma/lib MLX5_SINGLE_THREADED=1 conform --target=hw --seed 9 --label-filter RC-001 -v": {
			runOptions{target: "hw", gidIndex: -1}, map[string]string{report.KeyBelow: "rdmasim exec", report.KeyLibraryPath: "/opt/rdma/lib", "env.MLX5_SINGLE_THREADED": "1"}},
		"conform --target=hw --device mlx5_0 --seed 9 --label-filter RC-001 -v": {
			runOptions{target: "hw", device: "mlx5_0", gidIndex: -1}, map[string]string{report.KeyBelow: "rdmasim pci"}},
	} {
		run := &report.Run{Target: report.Target{Kind: "hw", Device: tt.o.device}, Environment: map[string]string{flagsKey: tt.o.flagsOf()}, Seed: 9, Cases: []report.Case{{ID: "RC-001", Outcome: report.Fail}}}
		maps.Copy(run.Environment, tt.env)
		var b bytes.Buffer
		printRun(&b, &tt.o, run)
		if !strings.Contains(b.String(), "again: "+want+"\n") {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	t.Setenv("CONFORM_HW", "/opt/my build/conform-hw")
	for target, want := range map[string]string{"hw": "env CONFORM_HW='/opt/my build/conform-hw' conform --target=hw", "sim": "conform --target=sim"} {
		if got := (&runOptions{target: target, gidIndex: -1}).again(&report.Run{Target: report.Target{Kind: target}}, "RC-001"); !strings.HasPrefix(got, want) {
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
	t.Setenv(commands.GuestVariable, commands.UpTo([]string{"bin/rdmasim", "vm", "--kernel", "6.1", "bin/conform", "--target=hw"}, 2))
	guest := &report.Run{Target: report.Target{Kind: "hw"}, Environment: map[string]string{report.KeyBelow: "rdmasim pci"}}
	if got, want := (&runOptions{target: "hw", gidIndex: -1}).again(guest, "RC-001"), "bin/rdmasim vm --kernel 6.1 -- env CONFORM_HW="; !strings.HasPrefix(got, want) {
		t.Errorf("in a guest of rdmasim vm: %s", got)
	}
}

// The command of a record is that of its run, whoever prints it, and no word of it is more than a
// word.
func TestAgainOfARecord(t *testing.T) {
	t.Setenv(commands.SessionVariable, "somebody/rdmasim exec --devices 9 --")
	const none, end = "rdmasim exec --", " --seed 9 --label-filter RC-001 -v"
	for session, want := range map[string]string{"": none, "rdmasim exec --devices 2 --set 'a b' --": "rdmasim exec --devices 2 --set 'a b' --",
		"rdmasim exec; id --": none, "rdmasim exec\ntouch x\nrdmasim exec --": none, "rdmasim exec 'a' 'b --": none, "rdmasim exec -- sh -c 'touch x' --": none, "rdmasim exec 'a'\"'\"'; touch x' --": none, "rdmasim exec $(id) --": none, "id exec --": none, "rdmasim exec '$(id)' --": "rdmasim exec '$(id)' --"} {
		below := &report.Run{Target: report.Target{Kind: "hw"}, Seed: 9, Environment: map[string]string{report.KeyBelow: "rdmasim exec", report.KeySession: session}}
		if got := againAs(below, "RC-001"); got != want+" conform --target=hw"+end {
			t.Errorf("after a session %q: %s", session, got)
		}
	}
	run := &report.Run{Target: report.Target{Kind: "sim", Profile: "connectx-5"}, Seed: 9, Environment: map[string]string{
		mutantKey: "range-unchecked", faultsKey: "a, b.yaml, sha256:0", flagsKey: "--repeat=3 --full --report=/etc/passwd", "env.MLX5_X": "1", "env.-S id": "x"}}
	if got, want := againAs(run, "RC-001"), "env MLX5_X=1 conform --target=sim --profile connectx-5 --repeat=3 --full --mutant range-unchecked --fault 'a, b.yaml'"+end; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	hostile := &report.Run{Target: report.Target{Kind: "hw;id", Profile: "$(id)", Device: "`id`\n"}, Seed: 9, Environment: map[string]string{
		mutantKey: "a b", faultsKey: "&id, 0", flagsKey: "--peer=x|id", report.KeyLibraryPath: "$(id)", "env.MLX5_A": ";id", "env.LD_PRELOAD": "x.so"}}
	if got, want := againAs(hostile, "RC-001 || $(id)"), "env LD_LIBRARY_PATH='$(id)' MLX5_A=';id' conform --target='hw;id' --device '`id`\\u000a' --mutant 'a b' --fault '&id' --seed 9 --label-filter 'RC-001 || $(id)' -v"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// A run below rdmasim exec keeps the command of its session.
func TestRecordOfASession(t *testing.T) {
	t.Setenv(commands.SessionVariable, commands.UpTo([]string{"/my tools/rdmasim", "exec", "--devices", "2", "env", "X=1", "conform"}, 3))
	j := &job{runOptions: &runOptions{target: "hw", gidIndex: -1, repeat: 3}}
	var res harness.Result
	res.Hello.Target.Details = map[string]string{report.KeyBelow: "rdmasim exec"}
	run := j.record(res)
	if got := run.Environment[report.KeySession]; got != "rdmasim exec --devices 2 --" {
		t.Errorf("session %q", got)
	}
	const rest = " conform --target=hw --repeat=3 --seed 0 --label-filter RC-001 -v"
	if own, read := j.again(run, "RC-001"), againAs(run, "RC-001"); own != "'/my tools/rdmasim' exec --devices 2 --"+rest || read != "rdmasim exec --devices 2 --"+rest {
		t.Errorf("own %s\nread %s", own, read)
	}
}

// The command is whole also if the worker has ended before it could say what it runs on.
func TestRecordOfAWorkerThatCannotStart(t *testing.T) {
	t.Setenv(commands.SessionVariable, "rdmasim exec --devices 2 --")
	t.Setenv("LD_LIBRARY_PATH", "/my build")
	t.Setenv("MLX5_SINGLE_THREADED", "1")
	j := &job{runOptions: &runOptions{target: "hw", gidIndex: -1, device: "mlx5_1"}}
	run := j.record(harness.Result{})
	const want = "rdmasim exec --devices 2 -- env LD_LIBRARY_PATH='/my build' MLX5_SINGLE_THREADED=1 conform --target=hw --device mlx5_1 --seed 0 --label-filter RC-001 -v"
	if own, read := j.again(run, "RC-001"), againAs(run, "RC-001"); own != want || read != want {
		t.Errorf("own %s\nread %s", own, read)
	}
}

// In the lab, a run below rdmasim exec does not watch the interfaces of the lab's own devices.
func TestSessionInTheLab(t *testing.T) {
	t.Setenv("LAB_WIRE", "w0,w1")
	if labWire() != "w0,w1" {
		t.Errorf("wire %q", labWire())
	}
	t.Setenv(commands.SessionVariable, "rdmasim exec --devices 2 --")
	if labWire() != "" {
		t.Errorf("below rdmasim exec: wire %q", labWire())
	}
	run := &report.Run{Target: report.Target{Kind: "hw"}, Environment: map[string]string{report.KeyBelow: "rdmasim exec", report.KeyKernel: "6.12.1"}}
	const want = "scripts/lab --kernel 6.12 -- rdmasim exec --devices 2 -- conform --target=hw "
	if got := (&runOptions{target: "hw", gidIndex: -1}).again(run, "RC-018"); !strings.HasPrefix(got, want) {
		t.Errorf("%s", got)
	}
}

// conform merge prints the command that the run had, with what the record of a part says of it.
func TestMergePrintsTheCommandOfTheRun(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("fs.yaml"), []byte("faults:\n  - {do: drop, flow: 60}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, stderr := command(t, "--label-filter", "PD-001", "--repeat", "2", "--fault", at("fs.yaml"), "--shard", "0/1", "--report", at("p.json")); code != 0 {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	r, err := report.ReadFile(t.Context(), at("p.json"))
	if err != nil {
		t.Fatal(err)
	}
	r.Cases[0].Outcome, r.Environment[mutantKey] = report.Fail, "range-unchecked"
	r.Count()
	var b bytes.Buffer
	if err := errors.Join(r.WriteJSON(&b), os.WriteFile(at("p.json"), b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	const want = "again: conform --target=sim --profile connectx-5 --repeat=2 --mutant range-unchecked --fault fs.yaml --seed 1 --label-filter PD-001 -v\n"
	if _, out, stderr := command(t, "merge", at("p.json")); !strings.Contains(out, want) {
		t.Errorf("no %s in\n%s%s", want, out, stderr)
	}
}
