package experiment

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A run that is interrupted before its first event leaves the capture and the timeline of an
// earlier run as they are.
func TestRunThatNeverBeganLeavesOlderFiles(t *testing.T) {
	dir := t.TempDir()
	capture, timeline := filepath.Join(dir, "q.pcapng"), filepath.Join(dir, "q.json")
	for path, text := range map[string]string{capture: "older capture", timeline: "older timeline"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rec, err := (&Request{Pcap: capture, Trace: timeline}).recorder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.end(ErrInterrupted); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	for path, want := range map[string]string{capture: "older capture", timeline: "older timeline"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", filepath.Base(path), got, err)
		}
	}
}
