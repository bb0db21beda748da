package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

// brief is a scenario that runs in milliseconds.
const brief = `name: brief
title: how fast are small writes?
traffic:
  - {name: w, payload: 64B, window: 16, warmup: 5us, duration: 20us}
`

func written(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A run is compared with records of an earlier one in any form that a run writes them, and bounds
// hold for changes.
func TestAgainstAnEarlierRun(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Setenv(storeVariable, t.TempDir())
	dir := t.TempDir()
	file := written(t, filepath.Join(dir, "brief.yaml"), brief)
	if code, out := rdmasim(t, "run", file, "-o", filepath.Join(dir, "o")); code != 0 {
		t.Fatal(out)
	}
	_, lines := rdmasim(t, "run", file, "--format", "jsonl")
	run := func(args ...string) (int, string) { // lines may break anywhere, since the paths are long
		code, out := rdmasim(t, append([]string{"run", file}, args...)...)
		return code, strings.Join(strings.Fields(out), " ")
	}
	for _, old := range []string{filepath.Join(dir, "o", "brief.json"), written(t, filepath.Join(dir, "old.jsonl"), lines[:strings.LastIndex(lines, "}\n")+2])} {
		if code, out := run("--against", old, "--require", "w.rate_change >= -1%"); code != 0 || !strings.Contains(out, old+": nothing has changed in ") || !strings.Contains(out, "met, for rate_mps_change_percent is 0") {
			t.Errorf("the same run against %s: exit %d\n%s", old, code, out)
		}
		code, out := run("--set", "traffic.0.window=1", "--set", "traffic.0.duration=60us", "--seed", "2", "--against", old, "--require", "w.rate_change >= -5%")
		for _, want := range []string{"traffic w", "rate_mps", "yes", "is not of the same: seed: 1 then, 2 now", "Required w.rate_change >= -5%: not met, for rate_mps_change_percent is -"} {
			if code != exitFailure || !strings.Contains(out, want) {
				t.Errorf("a smaller window against %s: exit %d, want 1 and %q\n%s", old, code, want, out)
			}
		}
		if _, out := run("--set", "link.bandwidth=50Gbps", "--against", old); !strings.Contains(out, "values of the profile: ") {
			t.Errorf("two profiles are not named\n%s", out)
		}
	}
	sweep := []string{"run", file, "--sweep", "traffic.0.payload=8B,64B", "--sweep", "profile=connectx-5,connectx-6"}
	_, lines = rdmasim(t, append(sweep, "--format", "jsonl")...)
	old := written(t, filepath.Join(dir, "sweep.jsonl"), lines[:strings.LastIndex(lines, "}\n")+2])
	if code, out := rdmasim(t, append(sweep, "--against", old)...); code != 0 || !strings.Contains(out, "nothing has changed") || strings.Contains(out, "not of the same") {
		t.Errorf("the same sweep: exit %d\n%s", code, out)
	}
	if code, out := rdmasim(t, "run", file, "--sweep", "traffic.0.payload=64B,128B", "--sweep", "profile=connectx-5,connectx-6", "--against", old); code != 0 || !strings.Contains(out, "Only the earlier run has traffic traffic.0.payload_bytes=8 profile=connectx-5 w") {
		t.Errorf("another sweep: exit %d\n%s", code, out)
	}
}

// What is no record, or not of this run, is named with its place before the run, and what is
// allowed.
func TestBadRecordsAreNamed(t *testing.T) {
	dir := t.TempDir()
	file := written(t, filepath.Join(dir, "brief.yaml"), brief)
	old := filepath.Join(dir, "old")
	one := `{"experiment":"brief","version":"0.1.0","profile":"connectx-5","profile_hash":"a","seed":1,"row":"traffic","name":"w","rate_mps":1}` + "\n"
	for text, want := range map[string]string{
		"":                        ":1:1: it has no records: an earlier run writes them with -o DIR (NAME.json) or --format jsonl",
		"row,name\ntraffic,w\n":   ":1:1: it has no records",
		"[]":                      ":1:1: it has no records",
		one + "\n{\"row\": x}\n":  ":3:1: it is not JSON",
		one + `{"row": {"a": 1}}`: ":2:1: it is no record: a row is an object of texts, numbers and truth values",
		one + "{}\n":              ":2:1: it is no record: it has no columns",
		one + strings.ReplaceAll(one, "0.1.0", "0.2.0"):          ":2:1: this record has version 0.2.0, and the first has 0.1.0: compare with records that share one version",
		one + strings.ReplaceAll(one, `"a"`, `"b"`):              ":2:1: this record has profile values b, and the first has a",
		strings.ReplaceAll(one, "brief", "other"):                "has results of other, and this run is one of brief",
		`{"name":"brief","rows":[]}` + "\n" + `{"name":"brief"}`: ":2:1: a second result begins here",
		`{"name":"brief","rows":[3]}`:                            ":1:25: it is no record",
		strings.ReplaceAll(one, `"w"`, `"v"`):                    "has no row in common with this run: it has traffic v, and this run has traffic w",
	} {
		written(t, old, text)
		if code, out := rdmasim(t, "run", file, "--against", old); code != exitUsage || !strings.Contains(out, "--against: "+old) || !strings.Contains(out, want) {
			t.Errorf("%q: exit %d, want 2 and %q\n%s", text, code, want, out)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--against", filepath.Join(dir, "none")}, "no such file"},
		{[]string{"--against", dir}, "is a directory"},
		{[]string{"--require", "total.p99_change < 5%"}, `--require "total.p99_change < 5%": a change needs --against`},
		{[]string{"--html", file}, "the scenario and --html are one file"},
		{[]string{"--html", filepath.Join(dir, "r"), "--markdown", filepath.Join(dir, "r")}, "--html and --markdown are one file"},
		{[]string{"--against", old, "--html", old}, "--against and --html are one file"},
		{[]string{"--html", "-"}, "--html -: this output cannot go to standard output"},
		{[]string{"--html", ""}, "--html"},
		{[]string{"--html", filepath.Join(dir, "no", "r.html")}, "no such file or directory"},
		{[]string{"--shard", "0/2", "--sweep", "traffic.0.payload=8B,64B", "--html", filepath.Join(dir, "r")}, "the command without it writes the answer"},
	} {
		if code, out := rdmasim(t, append([]string{"run", file}, c.args...)...); code != exitUsage || !strings.Contains(out, c.want) || strings.Contains(out, "rate_mps ") {
			t.Errorf("%v: exit %d, want 2 and %q\n%s", c.args, code, c.want, out)
		}
	}
	written(t, old, one)
	code, out := rdmasim(t, "run", file, "--against", old, "--require", "w.gbsp_change < 5%")
	if code != exitUsage || !strings.Contains(out, "the row w has no column gbsp_change_percent") || !strings.Contains(out, "rate_mps_change_percent") {
		t.Errorf("a column that is not there: exit %d\n%s", code, out)
	}
}

// A report of a run and of a sweep has the scenario, the pictures, and a command that gives the
// same answer.
func TestReportsOfRuns(t *testing.T) {
	t.Setenv(storeVariable, t.TempDir())
	dir := t.TempDir()
	file := written(t, filepath.Join(dir, "a 'brief'.yaml"), brief)
	html, md := filepath.Join(dir, "r.html"), filepath.Join(dir, "r.md")
	code, out := rdmasim(t, "run", file, "--set", "traffic.0.payload=128", "--confirm", "--html", html, "--markdown", md, "--require", "total.rate > 1000")
	if code != exitFailure || !strings.Contains(out, "wrote "+html) || !strings.Contains(out, "wrote "+md) {
		t.Errorf("exit %d\n%s", code, out)
	}
	page := content(t, html)
	for _, want := range []string{`<header class="bad"><h1>how fast are small writes?</h1>`, "not met, for rate_mps is", "limited by", "payload: 64B", "--confirm --set traffic.0.payload=128</pre>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if text := content(t, md); !strings.Contains(text, "- ❌ Required total.rate &gt; 1000: not met") {
		t.Errorf("the summary is\n%s", text)
	}
	code, out = rdmasim(t, "run", file, "--sweep", "traffic.0.payload=8B,4KiB", "--sweep", "traffic.0.verb=write,read", "--seeds", "2", "--html", html)
	page = content(t, html)
	if pictures := strings.Count(page, "<img "); code != 0 || pictures < 3 || !strings.Contains(page, "--seeds 2 --sweep traffic.0.payload=8B,4KiB --sweep traffic.0.verb=write,read</pre>") {
		t.Errorf("exit %d, %d pictures\n%s", code, pictures, out)
	}
	if code, out := rdmasim(t, "run", "bfreg-map", "--set", "qps=2", "--html", html); code != 0 || !strings.Contains(content(t, html), "rdmasim run bfreg-map --set qps=2</pre>") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// A run that was interrupted leaves a report that says so, and one that cannot be written takes
// nothing else with it.
func TestReportOfABadEnd(t *testing.T) {
	dir := t.TempDir()
	file := written(t, filepath.Join(dir, "brief.yaml"), brief)
	html, md := filepath.Join(dir, "r.html"), filepath.Join(dir, "r.md")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, stderr bytes.Buffer
	code := program.Execute(ctx, []string{"run", "uar-sharing", "--html", html}, &out, &stderr)
	if page, err := os.ReadFile(html); code != exitInterrupted || err != nil || !strings.Contains(string(page), "<h1>INCOMPLETE: ") {
		t.Errorf("interrupted: exit %d, %v\n%s", code, err, &stderr)
	}
	ctx = outfile.WithFail(t.Context(), func(op outfile.Operation, path string) error {
		if op == outfile.OpWrite && path == html {
			return syscall.ENOSPC
		}
		return nil
	})
	written(t, html, "older")
	code = program.Execute(ctx, []string{"run", file, "--html", html, "--markdown", md}, &out, &stderr)
	if code != exitFailure || content(t, html) != "older" || !strings.Contains(content(t, md), "### how fast") || !strings.Contains(out.String(), "rate_mps") || !strings.Contains(stderr.String(), html+" cannot be written") {
		t.Errorf("a full disk: exit %d\n%s%s", code, &out, &stderr)
	}
}

// TestResultsSayHowFarToTrustThem: tables, JSON and reports of scenarios, sweeps and experiments
// have what published figures say of their loads.
func TestResultsSayHowFarToTrustThem(t *testing.T) {
	t.Setenv(storeVariable, t.TempDir())
	dir := t.TempDir()
	file := written(t, filepath.Join(dir, "brief.yaml"), brief)
	run := func(args ...string) string {
		t.Helper()
		code, out := rdmasim(t, append([]string{"run"}, args...)...)
		if code != 0 {
			t.Fatalf("%v: exit %d\n%s", args, code, out)
		}
		return strings.Join(strings.Fields(out), " ")
	}
	const near = "How far to trust it: 80 % of the published figures near "
	experimentOf := []string{"uar-sharing", "--set", "graph=1", "--set", "threads=2", "--set", "ablate=false", "--set", "duration_us=10"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{file}, near + "this load were predicted, without their own check, within a factor of 1."},
		{[]string{file, "--sweep", "traffic.0.on_demand=none,explicit"}, "How far to trust it: not far, for traffic.0.on_demand=explicit (of 2 points the least like them) lies beyond all published figures in on_demand (explicit, in none); 80 % of"},
		{experimentOf, "How far to trust it: not far, for graph 1, "},
		{[]string{file, "--profile", "connectx-7"}, "How far to trust it: not known, for the timing of the profile is not calibrated."},
		{[]string{file, "--format", "json"}, `"validity": { "points": 1, "factor": 1.`},
	} {
		if out := run(c.args...); !strings.Contains(out, c.want) {
			t.Errorf("%v: want %q\n%s", c.args, c.want, out)
		}
	}
	html, md := filepath.Join(dir, "r.html"), filepath.Join(dir, "r.md")
	run(file, "--html", html, "--markdown", md)
	for _, name := range []string{html, md} {
		if !strings.Contains(content(t, name), near+"this load were") {
			t.Errorf("%s lacks it", name)
		}
	}
}
