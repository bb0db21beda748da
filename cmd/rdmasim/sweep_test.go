package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A flag that means nothing beside the others, or a value that is none, is refused before the first run.
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

// A sweep over a value of the profile that is recorded names the profile of each point, as a sweep by workers does.
func TestRecordedSweepNamesItsProfiles(t *testing.T) {
	hashes := func(args ...string) string {
		code, out := rdmasim(t, slices.Concat(short, args)...)
		_, rest, ok := strings.Cut(out, "profile connectx-5 (")
		if code != 0 || !ok {
			t.Fatalf("%v: exit %d\n%s", args, code, out)
		}
		h, _, _ := strings.Cut(rest, ")")
		return h
	}
	pcap := filepath.Join(t.TempDir(), "x.pcapng")
	want := hashes("--set", "hca.pu_service=50ns") + ", " + hashes("--set", "hca.pu_service=60ns")
	if got := hashes("--sweep", "hca.pu_service=50ns,60ns", "--pcap", pcap); got != want {
		t.Errorf("profiles %s, want %s", got, want)
	}
}

// An interrupt before anything was written is not said to have left results; a wrong environment is wrong usage.
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
