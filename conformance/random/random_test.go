package random_test

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/conformance/random"
)

// all is what a target may have.
var all = random.Has{Late: true, Atomic: true, SRQ: true, UC: true, Resize: true, Events: true, Rereg: true, Moderation: true, MW1: true, MW2: true, UD: true, IPv6: true, Inject: true, Mcast: true, XRC: true, ODP: true, Advise: true, TD: true, CQEx: true, Direct: true, Compress: true}

// TestProgramsAsGoCompile: programs are written as Go that compiles.
func TestProgramsAsGoCompile(t *testing.T) {
	var b strings.Builder
	b.WriteString("package cases\n\nimport (\n\t\"fmt\"\n\n\t\"github.com/rdmasim/rdmasim/conformance/kit\"\n\t\"github.com/rdmasim/rdmasim/conformance/spec\"\n\t\"github.com/rdmasim/rdmasim/verbs\"\n)\n\nvar _ = fmt.Sprint\n\n")
	draw := random.NewDraw(all)
	n := 40
	if testing.Short() {
		n = 10
	}
	for i := range n {
		p := draw.Program(1, uint64(i))
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

// TestDrawnKinds: queue pairs of both types, with an SRQ and without, that post either way.
func TestDrawnKinds(t *testing.T) {
	seen := map[[3]bool]int{}
	for i := range 200 {
		p := random.NewDraw(all).Program(1, uint64(i))
		if err := p.Valid(); err != nil {
			t.Fatal(err)
		}
		seen[[3]bool{p.UC, p.SRQ, p.Extended}]++
	}
	for _, kind := range [][3]bool{{}, {true, false, false}, {true, false, true}, {false, true, false}, {false, true, true}, {false, false, true}} {
		if seen[kind] == 0 {
			t.Errorf("of 200 programs none has UC, SRQ, Extended as %v: %v", kind, seen)
		}
	}
}

// TestParse: what is no program is refused, and does not run.
func TestParse(t *testing.T) {
	for _, text := range []string{"", "{}", "7", `{"MTU":3,"Regions":[{"Size":64}],"Steps":[{"Kind":"fly"}]}`, `{"MTU":3,"Regions":[{"Size":64}],"Steps":[{"Kind":"recv","Pieces":[{"Region":1}]}]}`,
		`{"MTU":3,"Regions":[{"Size":-1}]}`, `{"MTU":9,"Regions":[{"Size":64}]}`, `{"UC":true,"MTU":3,"Regions":[{"Size":64}]}`,
		`{"UC":true,"Access":[2,2],"MTU":3,"Regions":[{"Size":64}],"Steps":[{"Kind":"send","List":[{"Op":4}]}]}`, `{"MTU":3,"Regions":[{"Size":64}]} 7`, `{"MTU":3,"Regions":[{"Size":64}]} {}`, `{"MTU":3,"More":1}`} {
		if p, err := random.Parse([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, p)
		}
	}
	for i := range 300 {
		p, o := random.NewDraw(all).Program(1, uint64(i)), random.NewDraw(all).Program(2, uint64(i))
		if l, err := random.Parse([]byte(p.Text() + "\n" + o.Text())); err != nil || len(l) != 2 || l[0].Text() != p.Text() || l[1].Text() != o.Text() {
			t.Fatalf("%v: %s", err, p.Text())
		}
	}
}

// side is a target that does the same for each program, until it ends.
type side struct {
	saw  string
	left int
}

func (s *side) Run(list []random.Program) (l []*random.Outcome, err error) {
	for range list {
		if s.left--; s.left < 0 {
			return l, errors.New("the cable was pulled")
		}
		l = append(l, &random.Outcome{Streams: map[string][]string{"calls": {s.saw}}})
	}
	return l, nil
}

// TestFoundAndCutShort: what was found is told, although the search for a smaller program did not
// end.
func TestFoundAndCutShort(t *testing.T) {
	for left, found := range map[int]bool{0: false, 9: false, 10: true, 13: true} {
		f, err := random.Search([]random.Side{&side{"0", 1000}, &side{"EINVAL", left}}, all, 10, 1, time.Minute, nil)
		if err == nil || !strings.Contains(err.Error(), "the cable was pulled") || (f != nil) != found {
			t.Errorf("after %d programs: found %v, %v", left, f, err)
		}
		if f != nil && f.Difference.Sides != [2]string{"0", "EINVAL"} {
			t.Errorf("%+v", f.Difference)
		}
	}
}

// TestErrorEndsTheSearch: no more programs are drawn, however many there were to be.
func TestErrorEndsTheSearch(t *testing.T) {
	if f, err := random.Search([]random.Side{&side{"0", 0}, &side{"0", 0}}, all, math.MaxInt32, 1, time.Minute, nil); f != nil || err == nil {
		t.Errorf("found %v, %v", f, err)
	}
}
