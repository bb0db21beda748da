package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/conformance/mutants"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/runs"
	"github.com/rdmasim/rdmasim/sim/mutant"
)

// The parts of a run, in any order and one of them twice, give the report of the whole run.
func TestPartsMakeTheWhole(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	const filter = "PD || ATOM-001"
	suite := func(args ...string) {
		t.Helper()
		if code, out, stderr := command(t, append([]string{"--label-filter", filter}, args...)...); code != 0 {
			t.Fatalf("%v: exit %d\n%s%s", args, code, out, stderr)
		}
	}
	suite("--report", at("whole.json"), "--repeat", "2")
	suite("--report", at("0.json"), "--repeat", "2", "--shard", "0/3")
	t.Setenv("JOB_COMPLETION_INDEX", "1")
	suite("--report", at("1.json"), "--repeat", "2", "--shard", "auto/3")
	suite("--report", at("2.json"), "--repeat", "2", "--shard", "2/3")
	suite("--report", at("other.json"), "--repeat", "2", "--shard", "2/3", "--seed", "2")
	suite("--report", at("once.json"), "--shard", "1/3")
	if code, out, stderr := command(t, "--label-filter", "TD", "--repeat", "2", "--report", at("filter.json"), "--shard", "1/3"); code != 0 {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	other, err := report.ReadFile(t.Context(), at("1.json"))
	if err != nil {
		t.Fatal(err)
	}
	other.Cases[0].Outcome, other.Cases[0].Reason = report.Fail, "on this day"
	other.Count()
	var b bytes.Buffer
	if err := errors.Join(other.WriteJSON(&b), os.WriteFile(at("fails.json"), b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(at("whole.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, order := range []string{"0 1 2", "2 0 1", "1 2 1 0"} {
		args := []string{"merge", "--report", at("merged.json")}
		for _, n := range strings.Fields(order) {
			args = append(args, at(n+".json"))
		}
		if code, out, stderr := command(t, args...); code != 0 || !strings.Contains(out, "ok: ") {
			t.Fatalf("%s: exit %d\n%s%s", order, code, out, stderr)
		}
		if merged, err := os.ReadFile(at("merged.json")); err != nil || !bytes.Equal(merged, whole) {
			t.Errorf("%s: the merged report is not that of the whole run (%v)", order, err)
		}
	}
	for _, c := range []struct{ files, want string }{
		{"0 1", "parts are missing: run --shard 2/3"},
		{"0 1 other", "their seeds are 1 and 2"},
		{"0 filter 2", "--label-filter, --repeat or --full differ"},
		{"0 once 2", "--label-filter, --repeat or --full differ"},
		{"0 fails 2 1", "fails.json and " + at("1.json") + " are both part 1/3, and differ"},
		{"whole", "is not a part of a run"},
		{"", "merge needs the reports"},
	} {
		args := []string{"merge"}
		for _, n := range strings.Fields(c.files) {
			args = append(args, at(n+".json"))
		}
		if code, _, stderr := command(t, args...); code != exitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("merge %s: exit %d, %s\nwant %s", c.files, code, stderr, c.want)
		}
	}
	// A report that cannot be written does not take the table with it.
	if code, out, stderr := command(t, "merge", at("0.json"), at("1.json"), at("2.json"), "--report", "/dev/full"); code != exitFailed || !strings.Contains(out, "ok: ") || !strings.Contains(stderr, "/dev/full cannot be written") {
		t.Errorf("lost report: exit %d\n%s%s", code, out, stderr)
	}
	// What is judged of a run as a whole is judged by merge.
	if code, out, _ := command(t, "merge", at("0.json"), at("1.json"), at("2.json"), "--min-pass", "1000"); code != exitFailed || !strings.Contains(out, "--min-pass asks for 1000") {
		t.Errorf("--min-pass: exit %d\n%s", code, out)
	}
	for _, c := range [][]string{{"--shard", "0/2"}, {"--shard", "2/2", "--report", at("x.json")}, {"--shard", "auto", "--report", at("x.json")}, {"--shard", "999/1000", "--report", at("x.json")}} {
		if code, _, stderr := command(t, c...); code != exitUsage || !strings.Contains(stderr, "--shard "+c[1]) {
			t.Errorf("%v: exit %d, %s", c, code, stderr)
		}
	}
}

// Reports of parts of conform mutants are merged too, and a report that cannot be written does not
// take the table with it.
func TestPartsOfMutantsAreMerged(t *testing.T) {
	dir := t.TempDir()
	args := []string{"merge"}
	for i := range 2 {
		p := runs.Part{Index: i, Parts: 2}
		r := mutants.Report{Schema: mutants.Schema, Profile: "connectx-5", Seed: 3, Part: &mutants.Part{Part: p.String()}}
		for _, m := range runs.Of(p, mutant.All()) {
			r.Mutants = append(r.Mutants, mutants.Result{Name: m.Name, Area: m.Area, Rule: m.Rule, Outcome: mutants.Killed, Case: "PD-001"})
		}
		var b bytes.Buffer
		if err := r.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		args = append(args, fileOf(t, strings.ReplaceAll(p.String(), "/", "-")+".json", b.Bytes()))
	}
	merged := filepath.Join(dir, "merged.json")
	code, out, stderr := command(t, append(slices.Clone(args), "--report", merged)...)
	if code != exitFailed || !strings.Contains(out, "fail: ") || !strings.Contains(out, "FAIL: ") { // survivors are killed
		t.Errorf("exit %d\n%.300s%s", code, out, stderr)
	}
	if text, err := os.ReadFile(merged); err != nil || bytes.Contains(text, []byte("shard")) {
		t.Errorf("%.300s, %v", text, err)
	}
	if code, some, stderr := command(t, append(slices.Clone(args), "--report", "/dev/full")...); code != exitFailed || some != out || !strings.Contains(stderr, "/dev/full cannot be written") {
		t.Errorf("lost report: exit %d, %s, and the table is %.300s", code, stderr, some)
	}
	for want, args := range map[string][]string{"run --shard 1/2": args[:2], "--today are for runs of the suite": append(slices.Clone(args), "--min-pass", "1")} {
		if code, _, stderr := command(t, args...); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
	}
}

// A record says by itself how many parts there are, and how long it is.
func TestPartsOfOddRecords(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, part := range []string{"0/2", "1/2"} {
		if code, out, stderr := command(t, "--label-filter", "PD-001 || PD-003", "--shard", part, "--report", at(part[:1])); code != 0 {
			t.Fatalf("exit %d\n%s%s", code, out, stderr)
		}
	}
	changed := func(name string, change func(*report.Run)) string {
		r, err := report.ReadFile(t.Context(), at(name))
		if err != nil {
			t.Fatal(err)
		}
		change(r)
		var b bytes.Buffer
		if err := errors.Join(r.WriteJSON(&b), os.WriteFile(at("x"+name), b.Bytes(), 0o600)); err != nil {
			t.Fatal(err)
		}
		return at("x" + name)
	}
	many := changed("0", func(r *report.Run) { r.Environment[runs.PartKey] = "0/1000000000" })
	if code, _, stderr := command(t, "merge", many); code != exitUsage || !strings.Contains(stderr, "20/1000000000 and 999999979 more") {
		t.Errorf("of a thousand million parts: exit %d, %.300s", code, stderr)
	}
	if code, _, stderr := command(t, "merge", changed("0", func(r *report.Run) { r.Environment[runs.PartKey] = "0/1x" })); code != exitUsage || !strings.Contains(stderr, "is not a part of a run") {
		t.Errorf("part 0/1x: exit %d, %.300s", code, stderr)
	}
	long := func(r *report.Run) { r.Environment["long"] = strings.Repeat("x", 2<<20) }
	if code, out, stderr := command(t, "merge", changed("0", long), changed("1", long)); code != 0 {
		t.Errorf("long records: exit %d, %.300s%.300s", code, out, stderr)
	}
	pipe := at("pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		text, _ := os.ReadFile(at("0"))
		_ = os.WriteFile(pipe, text, 0)
	}()
	if code, out, stderr := command(t, "merge", pipe, at("1")); code != 0 {
		t.Errorf("a pipe: exit %d, %.300s%.300s", code, out, stderr)
	}
	other, err := report.ReadFile(t.Context(), at("1"))
	if err != nil {
		t.Fatal(err)
	}
	both := changed("0", func(r *report.Run) { r.Cases = append(r.Cases, other.Cases...); r.Count() })
	if code, _, stderr := command(t, "merge", both, at("1")); code != exitUsage || !strings.Contains(stderr, "is in part 0/2 and in part 1/2") {
		t.Errorf("a case in two parts: exit %d, %.300s", code, stderr)
	}
}

// Commands that read many files, or a large one, end when they are asked to, with nothing printed.
func TestReadersAreInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r")
	if code, out, stderr := command(t, "--label-filter", "PD-001", "--shard", "0/1", "--report", file, "--pcap", file+".pcapng"); code != 0 {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"merge", file, file}, {"gaps", file, file}, {"diff", file, file}, {"wire", file + ".pcapng"}} {
		var out, stderr bytes.Buffer
		if code := program.Execute(ctx, args, &out, &stderr); code != exitInterrupted || out.Len() > 0 || stderr.Len() == 0 {
			t.Errorf("%v: exit %d, %s%s", args, code, &out, &stderr)
		}
	}
}
