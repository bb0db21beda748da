package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// standIn makes a program that takes the part of conform-hw: it runs the cases on the simulator,
// after a change of its job by sed.
func standIn(t *testing.T, change string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "conform-hw")
	script := fmt.Sprintf("#!/bin/sh\nsed -u -e 's/\"target\":\"hw\"/\"target\":\"sim\"/' -e '%s' | '%s' \"$@\"\n", change, self)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONFORM_HW", path)
}

// Both targets in one run: the records of both, and their comparison.
func TestBothTargets(t *testing.T) {
	for name, tt := range map[string]struct {
		change string
		code   int
		want   string
	}{
		"the same": {"", exitOK, "10 SAME"},
		"not":      {`s/"seed":1,/"seed":2,/`, exitFailed, "the records come from different versions of the case"},
	} {
		t.Run(name, func(t *testing.T) {
			standIn(t, tt.change)
			dir := t.TempDir()
			code, out, stderr := command(t, "--target=sim,hw", "--label-filter", "ATOM && !ATOM-010 && !ATOM-012 && !ATOM-014", "--report", filepath.Join(dir, "run.json"))
			if code != tt.code || !strings.Contains(out, tt.want) {
				t.Errorf("exit %d, want %d and %q:\n%s%s", code, tt.code, tt.want, out, stderr)
			}
			for _, target := range []string{"sim", "hw"} {
				if r, _ := readRun(t, filepath.Join(dir, "run-"+target+".json")); r.Target.Kind != target || len(r.Cases) != 10 {
					t.Errorf("record of %s: of %q, %d cases", target, r.Target.Kind, len(r.Cases))
				}
			}
		})
	}
}

// A side that cannot start ends the run before the other has begun, and leaves no file.
func TestBothTargetsOrNone(t *testing.T) {
	standIn(t, `s/"profile":"[a-z0-9-]*"/"profile":"none"/`)
	dir := t.TempDir()
	code, out, stderr := command(t, "--target=sim,hw", "--label-filter", "ATOM-001", "--report", filepath.Join(dir, "run.json"))
	left, err := os.ReadDir(dir)
	if code != exitUsage || out != "" || !strings.Contains(stderr, `"none"`) || err != nil || len(left) != 0 {
		t.Errorf("exit %d, %v left:\n%s%s", code, left, out, stderr)
	}
}

// A run of both that is interrupted in the first leaves nothing of the second.
func TestBothTargetsInterrupted(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(t.TempDir(), "conform-hw")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho '{\"hello\":{}}' >&3; echo '{\"started\":\"ATOM-001\"}' >&3; exec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONFORM_HW", path)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	code := program.Execute(ctx, []string{"--target=sim,hw", "--label-filter", "ATOM-001", "--report", filepath.Join(dir, "run.json")}, io.Discard, io.Discard)
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if code != exitInterrupted || err != nil || len(left) != 1 || filepath.Base(left[0]) != "run-hw.json" {
		t.Errorf("exit %d, %v left", code, left)
	}
}

func TestMinPass(t *testing.T) {
	for least, want := range map[string]int{"2": exitOK, "3": exitFailed} {
		code, out, stderr := command(t, "--label-filter", "ATOM-001 || ATOM-002", "--min-pass", least)
		if code != want || strings.Contains(out, "--min-pass asks for 3") != (want == exitFailed) {
			t.Errorf("--min-pass %s: exit %d\n%s%s", least, code, out, stderr)
		}
	}
}
