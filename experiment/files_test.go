package experiment

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// Two runs into one folder that end at once leave the files of one of them.
func TestFilesOfTwoRunsDoNotMix(t *testing.T) {
	s, err := ParseScenario("s.yaml", []byte("name: mine\ntraffic: [{messages: 100}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	var results []*Result
	for seed := range uint64(2) {
		res, err := s.experiment().Execute(t.Context(), Request{Seed: seed + 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		res.Plots = ScenarioPlots(res.Name, []string{"name"}, []string{"load0"}, nil, 1)
		results = append(results, res)
	}
	seeds := regexp.MustCompile(`seed"?:? ([0-9]+)`)
	for range 10 {
		dir := t.TempDir()
		var both sync.WaitGroup
		for _, res := range results {
			both.Go(func() {
				if _, err := res.WriteFolder(t.Context(), dir); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		seen := map[string]bool{}
		for _, name := range []string{"mine.json", "mine-rate.svg"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			found := seeds.FindSubmatch(text)
			if err != nil || found == nil {
				t.Fatalf("%s has no seed: %v", name, err)
			}
			seen[string(found[1])] = true
		}
		if len(seen) != 1 {
			t.Errorf("the folder has files of the seeds %v", seen)
		}
	}
}

// A folder that is a link to nowhere is named as what it is.
func TestFolderBehindALink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	if err := os.Symlink("/nonexistent/gone", path); err != nil {
		t.Fatal(err)
	}
	if err := CheckWritable(t.Context(), path, true); err == nil || !strings.Contains(err.Error(), "is a link to /nonexistent/gone, which is not there") {
		t.Error(err)
	}
}
