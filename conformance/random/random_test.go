package random_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/conformance/random"
	"github.com/rdmasim/rdmasim/sim/mutant"
	"github.com/rdmasim/rdmasim/target/simulator"
)

var (
	programs = flag.Int("programs", 150, "how many programs TestTwoProfiles draws")
	first    = flag.Uint64("first", 1, "the seed of its draws")
)

func simulated(t *testing.T, cfg simulator.Config) *random.Local {
	t.Helper()
	target, err := simulator.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &random.Local{Target: target, Seed: 1}
}

// TestTwoProfiles: what the contract fixes does not depend on the generation of the device.
func TestTwoProfiles(t *testing.T) {
	for _, other := range []string{"connectx-4", "generic-roce"} {
		sides := [2]random.Side{simulated(t, simulator.Config{Profile: "connectx-5"}), simulated(t, simulator.Config{Profile: other})}
		f, err := random.Search(sides, true, *programs, *first, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if f != nil {
			t.Errorf("connectx-5 and %s: %s\n%s\n%s", other, &f.Difference, f.Program.Text(), f.Program.Source("random", &f.Difference))
		}
	}
}

// TestFindsAndShrinks: a device that gives a queue pair a right that it was not given is found, by a program of no more than what
// it takes.
func TestFindsAndShrinks(t *testing.T) {
	m, err := mutant.Find("remote-write-always")
	if err != nil {
		t.Fatal(err)
	}
	broken := simulated(t, simulator.Config{Adjust: m.Break})
	f, err := random.Search([2]random.Side{simulated(t, simulator.Config{}), broken}, true, 500, 1, time.Minute)
	if err != nil || f == nil {
		t.Fatalf("%v, found %v", err, f)
	}
	t.Logf("after %d programs: %s\n%s", f.Tried, &f.Difference, f.Program.Text())
	p := &f.Program
	if len(p.Steps) != 1 || len(p.Steps[0].List) != 1 || len(p.Regions) != 1 {
		t.Errorf("%d steps, %d regions: one write to one region shows it\n%s", len(p.Steps), len(p.Regions), p.Text())
	}
	if !strings.Contains(f.Difference.Sides[0], "REM_") || !strings.Contains(f.Difference.Sides[1], "SUCCESS") {
		t.Errorf("%s", &f.Difference)
	}
	again, err := random.Parse([]byte(p.Text()))
	if err != nil {
		t.Fatal(err)
	}
	if d, err := again.Compare([2]random.Side{simulated(t, simulator.Config{}), broken}); err != nil || d == nil || *d != f.Difference {
		t.Errorf("the program read from its text: %v, %v", d, err)
	}
}

// TestSource: programs are written as Go that compiles.
func TestSource(t *testing.T) {
	var b strings.Builder
	b.WriteString("package cases\n\nimport (\n\t\"fmt\"\n\n\t\"github.com/rdmasim/rdmasim/conformance/kit\"\n\t\"github.com/rdmasim/rdmasim/conformance/spec\"\n\t\"github.com/rdmasim/rdmasim/verbs\"\n)\n\nvar _ = fmt.Sprint\n\n")
	gen := random.Programs(true)
	for i := range 40 {
		p := gen.Example(i)
		if err := p.Valid(); err != nil {
			t.Fatalf("a program that was drawn: %v", err)
		}
		b.WriteString(p.Source("random"+string(rune('A'+i%26))+strings.Repeat("x", i/26), &random.Difference{Stream: "calls", Line: 1, Sides: [2]string{"a", "b"}}) + "\n")
	}
	dir, err := os.MkdirTemp(".", "testdata-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "cases.go"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "./"+dir).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestParse: what is no program is refused, and does not run.
func TestParse(t *testing.T) {
	for _, text := range []string{"", "{}", "7", `{"MTU":3,"Regions":[{"Size":64}],"Steps":[{"Kind":"fly"}]}`, `{"MTU":3,"Regions":[{"Size":64}],"Steps":[{"Kind":"recv","Pieces":[{"Region":1}]}]}`,
		`{"MTU":3,"Regions":[{"Size":-1}]}`, `{"MTU":9,"Regions":[{"Size":64}]}`, `{"MTU":3,"Regions":[{"Size":64}]} 7`, `{"MTU":3,"More":1}`} {
		if p, err := random.Parse([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, p)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		p := random.Programs(true).Draw(t, "program")
		if q, err := random.Parse([]byte(p.Text())); err != nil || q.Text() != p.Text() {
			t.Fatalf("%v: %s", err, p.Text())
		}
	})
}
