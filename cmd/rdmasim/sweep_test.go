package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A flag that means nothing beside the others, or a value that is none, is refused before the first
// run.
func TestFlagsOfASweepThatMeanNothing(t *testing.T) {
	dir := t.TempDir()
	sweep := []string{"--store", filepath.Join(dir, "store"), "--sweep", "traffic.0.window=32,64"}
	pcap := []string{"--pcap", filepath.Join(dir, "x.pcapng")}
	for _, c := range []struct {
		args [][]string
		want string
	}{
		{[][]string{{"--seeds", "-1"}}, "--seeds -1: a number of seeds from 1"},
		{[][]string{sweep, {"--seeds", "0"}}, "--seeds 0: a number of seeds from 1"},
		{[][]string{{"--seed", "18446744073709551615", "--seeds", "2"}}, "the last seed is above 18446744073709551615"},
		{[][]string{sweep, {"--memory", "1B"}}, "--memory 1B: a worker needs 64MiB"},
		{[][]string{sweep, {"--sensitivity"}}, "--sensitivity works on one setting"},
		{[][]string{sweep, pcap}, "leave out --store"},
		{[][]string{sweep[2:], pcap, {"-j", "3"}}, "leave out --jobs"},
		{[][]string{pcap, {"--sweep", "traffic.0.duration=1us,1000ns"}}, "1us and 1000ns are one value"},
	} {
		args := slices.Clone(short)
		if c.args[0][0] == "--pcap" { // which sets the duration itself
			args = slices.Clone(short[:2])
		}
		for _, a := range c.args {
			args = append(args, a...)
		}
		if code, out := rdmasim(t, args...); code != exitUsage || !strings.Contains(out, c.want) {
			t.Errorf("%v: exit %d\n%s\nwant exit 2 with %s", c.args, code, out, c.want)
		}
	}
}

// A sweep that is recorded has the points of one by workers, also of keys that change together and
// of ranges, with the same numbers; its file has the frames.
func TestRecordedSweepIsAnySweep(t *testing.T) {
	dir := t.TempDir()
	comma := filepath.Join(dir, "mine,second.yaml")
	if err := os.WriteFile(comma, []byte("name: mine\ntitle: mine\nextends: connectx-4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, sweeps := range [][]string{
		{"--sweep", "traffic.0.payload,traffic.0.window=8:16,64:32"},
		{"--sweep", "uar.bf_busy=10ns,20ns", "--sweep", "traffic.0.payload=8,16"},
		{"--sweep", "traffic.0.window=16..64*2"},
		{"--sweep", `profile="` + comma + `",connectx-5`, "--seeds", "2"},
	} {
		if testing.Short() && i > 0 {
			break
		}
		args := slices.Concat(short, []string{"--format", "csv"}, sweeps)
		code, want := rdmasim(t, slices.Concat(args, []string{"--store", "none"})...)
		if code != 0 {
			t.Fatalf("%v: exit %d\n%s", args, code, want)
		}
		pcap := filepath.Join(dir, "x.pcapng")
		code, got := rdmasim(t, slices.Concat(args, []string{"--pcap", pcap})...)
		if code != 0 || got != want || strings.Count(got, "\n") < 3 {
			t.Errorf("%v: exit %d\n%s\nwant\n%s", sweeps, code, got, want)
		}
		if st, err := os.Stat(pcap); err != nil || st.Size() < 1000 {
			t.Errorf("%v: %v, %v", sweeps, st, err)
		}
	}
}

// An interrupt before anything was written is not said to have left results; a wrong environment is
// wrong usage.
func TestWordsOfTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, stderr strings.Builder
	args := slices.Concat(short, []string{"--seeds", "2", "--store", filepath.Join(t.TempDir(), "store")})
	if code := program.Execute(ctx, args, &out, &stderr); code != exitInterrupted || out.Len() > 0 || strings.Contains(stderr.String(), "written") {
		t.Errorf("exit %d\n%s%s", code, &out, &stderr)
	}
	if code, out := rdmasim(t, "run", "bfreg-map", "--set", "low_lat_uuars=99"); code != exitUsage || !strings.Contains(out, "low_lat_uuars=99") {
		t.Errorf("exit %d\n%s", code, out)
	}
}
