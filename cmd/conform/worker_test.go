package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A program that is built for hardware runs itself, whatever its name and whichever conform-hw is
// found. $CONFORM_HW comes first.
func TestWorkerOfHardware(t *testing.T) {
	dir := t.TempDir()
	found, named := filepath.Join(dir, "conform-hw"), filepath.Join(dir, "other")
	for _, path := range []string{found, named} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("CONFORM_HW", "")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := workerCommand("sim"); got != self || err != nil {
		t.Errorf("target sim: %s, %v", got, err)
	}
	for itself, want := range map[bool]string{false: found, true: self} {
		if got, err := hwWorker(itself); got != want || err != nil {
			t.Errorf("built for hardware %v: %s, %v; want %s", itself, got, err, want)
		}
	}
	t.Setenv("CONFORM_HW", named)
	for _, itself := range []bool{false, true} {
		if got, err := hwWorker(itself); got != named || err != nil {
			t.Errorf("$CONFORM_HW, built for hardware %v: %s, %v", itself, got, err)
		}
	}
}
