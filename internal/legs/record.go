package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// record is what is known of a leg that has run.
type record struct {
	Leg     string    `json:"leg"`
	CPU     float64   `json:"cpu_s"`
	Wall    float64   `json:"wall_s"`
	Status  int       `json:"status"`
	Passed  int       `json:"passed"`
	Failed  int       `json:"failed"`
	Skipped int       `json:"skipped"`
	First   *failure  `json:"first_failure,omitempty"`
	Skips   []skip    `json:"skips,omitempty"`
	Ran     []testKey `json:"ran,omitempty"` // tests that passed or failed
}

// testKey names a test: its package without the module's path, and its name with those of the tests
// around it.
type testKey struct {
	Package string `json:"package"`
	Test    string `json:"test,omitempty"`
}

func (k testKey) String() string { return strings.TrimSpace(k.Package + " " + k.Test) }

// failure is a test that failed, or a package that could not be built, and the command that runs it
// alone.
type failure struct {
	testKey
	Alone string `json:"alone,omitempty"`
}

// skip is a skipped test with its reason.
type skip struct {
	testKey
	Reason string `json:"reason"`
}

func (r *record) path() string { return filepath.Join(legsDir, r.Leg+".json") }

// write stores the record, and in out/times.json the times of all that are stored, in the order in
// which they ended.
func (r *record) write() error {
	if err := os.MkdirAll(legsDir, 0o755); err != nil {
		return err
	}
	if err := writeJSON(r.path(), r); err != nil {
		return err
	}
	type ended struct {
		record
		at int64
	}
	var all []ended
	paths, _ := filepath.Glob(filepath.Join(legsDir, "*.json"))
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		other, err := readRecord(path)
		if err != nil {
			return err
		}
		other.First, other.Skips, other.Ran = nil, nil, nil
		all = append(all, ended{*other, info.ModTime().UnixNano()})
	}
	slices.SortStableFunc(all, func(a, b ended) int { return int(min(max(a.at-b.at, -1), 1)) })
	var times struct {
		Legs []record `json:"legs"`
	}
	for _, e := range all {
		times.Legs = append(times.Legs, e.record)
	}
	return writeJSON(timesFile, times)
}

func readRecord(path string) (*record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r record
	return &r, json.Unmarshal(text, &r)
}

// writeJSON puts a file in place as a whole.
func writeJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
