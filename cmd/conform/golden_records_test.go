package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/rdmasim/rdmasim/conformance/report"
)

var update = flag.Bool("update", false, "rewrite the records of the simulator")

// simRecord is the path of the committed record of the simulator with a profile.
func simRecord(profile string) string { return "../../fixtures/recordings/sim-" + profile + ".json" }

// What the simulator shows in every case is committed, so that a value that no case fixes does not
// change unseen.
func TestGoldenRecordsOfTheSimulator(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the whole suite; make check compares it too")
	}
	for _, profile := range []string{"connectx-5", "generic-roce"} {
		t.Run(profile, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sim.json")
			if code, out, stderr := command(t, "--target=sim", "--profile", profile, "--report", path); code != exitOK {
				t.Fatalf("exit %d\n%s%s", code, out, stderr)
			}
			run, err := report.ReadFile(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(simRecord(profile), inLines(t, run), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if code, out, stderr := command(t, "diff", "--exact", simRecord(profile), path); code != exitOK {
				t.Errorf("the simulator is not as recorded; if that is meant, make golden, and review the diff of fixtures/recordings: exit %d\n%s%s", code, out, stderr)
			}
		})
	}
}

// inLines is the record with a line for each observation, so that a diff of the file shows what has
// changed, and two changes merge. It leaves out how long the cases took.
func inLines(t *testing.T, r *report.Run) []byte {
	t.Helper()
	var b bytes.Buffer
	line := func(v any) []byte {
		var one bytes.Buffer
		enc := json.NewEncoder(&one)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
		return bytes.TrimSpace(one.Bytes())
	}
	head := *r
	head.Cases = []report.Case{}
	b.Write(bytes.TrimSuffix(line(head), []byte("]}")))
	for i, c := range r.Cases {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		all := c.Observations
		c.Observations, c.VirtualNs = []report.Observation{}, 0
		text := line(c)
		at := bytes.Index(text, []byte(`"observations":[`)) + len(`"observations":[`)
		b.Write(text[:at])
		for j, o := range all {
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteString("\n ")
			b.Write(line(o))
		}
		b.Write(text[at:])
	}
	b.WriteString("\n]}\n")
	if !json.Valid(b.Bytes()) {
		t.Fatal(errors.New("the record in lines is not JSON"))
	}
	return b.Bytes()
}
