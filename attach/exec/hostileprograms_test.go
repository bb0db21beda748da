//go:build linux && amd64

package exec

import (
	"flag"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	hostilePrograms = flag.Int("hostile.programs", 0, "how many generated programs TestHostilePrograms runs in each kind of session (0: a few)")
	hostileFirst    = flag.Uint64("hostile.first", 1, "seed of the first generated program")
	hostileLength   = flag.Int("hostile.length", 150, "operations of a generated program")
)

// hostileSessions are the flags of the sessions in which hostile programs run.
var hostileSessions = [][]string{{}, {"-static", "-devices", "2"}, {"-copy-queues"}, {"-path-calls"}}

// TestHostileCorpus runs the programs that once did harm. Those in testdata/hostile were generated,
// and shortened by hand.
func TestHostileCorpus(t *testing.T) {
	needs(t, "ibv_devices")
	bin := compile(t, "hostile")
	kept, err := filepath.Glob("testdata/hostile/*.txt")
	if err != nil || len(kept) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	dir := shared(t)
	args := []string{bin, "run"}
	for _, f := range kept {
		text, err := os.ReadFile(f)
		to := filepath.Join(dir, filepath.Base(f))
		if err == nil {
			err = os.WriteFile(to, text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, to)
	}
	each(t, func(t *testing.T, u user) {
		for _, flags := range u.sessions(hostileSessions...) {
			u.survives(t, flags, args...)
		}
	})
}

// TestHostilePrograms runs generated programs, and after each, in the same session, one that must
// not notice.
//
//	go test ./attach/exec -run TestHostilePrograms -hostile.programs 1000 -hostile.first 42
func TestHostilePrograms(t *testing.T) {
	needs(t, "ibv_devices")
	bin := compile(t, "hostile")
	n := *hostilePrograms
	if n == 0 {
		n = 4 * *times
	}
	each(t, func(t *testing.T, u user) {
		for i, flags := range u.sessions(hostileSessions...) {
			first := *hostileFirst + uint64(i*n)
			u.survives(t, flags, bin, "seeds", strconv.FormatUint(first, 10), strconv.Itoa(n), strconv.Itoa(*hostileLength))
		}
	})
}

// beside is what a session says about its end, and the names of the programs before it.
var beside = regexp.MustCompile(`(?m)^hostile: .*$`)

// survives runs hostile programs in a session, which must live to its end and hold nothing then.
func (u user) survives(t *testing.T, flags []string, args ...string) {
	t.Helper()
	out, status := u.session(t, append(append([]string{"-v"}, flags...), append([]string{"--"}, args...)...)...)
	if status == 0 && !strings.Contains(out, "not given back") && !strings.Contains(out, "goroutine ") {
		return
	}
	last := ""
	if names := beside.FindAllString(out, -1); len(names) > 0 {
		last = names[len(names)-1]
	}
	t.Errorf("%v: status %d, in or after %q:\n%s", flags, status, last, lastOf(out, 6000))
}

func lastOf(s string, n int) string { return s[max(0, len(s)-n):] }

// TestHostileProgramsAreKept holds the text of a generated program to what its seed gives: a
// program that is found by its seed can be written down.
func TestHostileProgramsAreKept(t *testing.T) {
	needs(t, "ibv_devices")
	out, err := osexec.Command(compile(t, "hostile"), "gen", "1", "3").Output()
	if want := "ring 209918902756750\nwait 120190742796659\nconnect 34488708640648\n"; err != nil || string(out) != want {
		t.Errorf("%v: %s, want %s", err, out, want)
	}
}
