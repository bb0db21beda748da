package ci

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// A tag of somebody else's action can be moved; a hash cannot.
func TestActionsArePinned(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("workflows %q, %v", paths, err)
	}
	paths = append(paths, filepath.Join(root, execAction, "action.yml"))
	pinned := regexp.MustCompile(`uses: [\w./-]+@[0-9a-f]{40} # v\d`)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "uses:") && !pinned.MatchString(line) {
				t.Errorf("%s: pin by the hash of a commit, with its version behind #:\n%s", filepath.Base(path), line)
			}
		}
	}
}

// unruled is the last commit before subjects had a form.
const unruled = "8ab1f53149216c3aaea080a0ff1e28ab47690e1f"

func TestCommitSubjects(t *testing.T) {
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", append([]string{"-C", root}, args...)...).Output()
		return string(out), err
	}
	if _, err := git("cat-file", "-e", unruled+"^{commit}"); err != nil {
		t.Skip("needs the project's history: this is a shallow clone or an archive")
	}
	out, err := git("log", "--no-merges", "--format=%h %s", unruled+"..HEAD")
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`^[a-z0-9][\w/.,+-]*( [\w/.,+-]+)?: \S`)
	for line := range strings.Lines(out) {
		hash, subject, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if n := utf8.RuneCountInString(subject); n > 72 {
			t.Errorf("%s: a subject of %d characters; at most 72, and the rest in the body: %s", hash, n, subject)
		}
		if !form.MatchString(subject) {
			t.Errorf("%s: a subject is \"area: imperative\": %s", hash, subject)
		}
	}
}
