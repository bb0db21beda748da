package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func open(t *testing.T, dir, model string) *Store {
	t.Helper()
	s, err := Open(dir, model)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestResultsByAddress(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "store")
	a, b := open(t, dir, "model 1"), open(t, dir, "model 2")
	at := AddressOf("model 1", []byte(`{"seed":1}`))
	for _, other := range []Address{AddressOf("model 2", []byte(`{"seed":1}`)), AddressOf("model 1", []byte(`{"seed":2}`))} {
		if other == at {
			t.Error("two things that decide a result have one address")
		}
	}
	if _, err := a.Get(at); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before it is there: %v", err)
	}
	const text = `{"note":"<a & b>","rows":[1.0]}`
	for range 2 { // a second time does no harm
		if err := a.Put(at, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := a.Get(at); err != nil || string(got) != text {
		t.Errorf("%s, %v", got, err)
	}
	if ok, err := b.Has(at); ok || err != nil {
		t.Errorf("another model has it: %v", err)
	}
	n := 0
	for e, err := range Entries(dir) {
		if err != nil || e.Model != "model 1" {
			t.Errorf("%+v, %v", e, err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d entries", n)
	}
	// What a killed process left goes, and what one writes now stays.
	old, now := filepath.Join(a.model, temporary+"old"), filepath.Join(a.model, temporary+"now")
	for _, f := range []string{old, now} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if n, _, err := Collect(dir, func(e *Entry) bool { return e.Model == "model 2" }); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("what was left is there")
	}
	if _, err := os.Stat(now); err != nil {
		t.Error(err)
	}
	if n, size, err := Collect(dir, func(*Entry) bool { return true }); n != 1 || size == 0 || err != nil {
		t.Errorf("%d, %d bytes, %v", n, size, err)
	}
	if ok, err := open(t, dir, "model 1").Has(at); ok || err != nil {
		t.Errorf("collected, and there: %v", err)
	}
}

// A folder of another version, and one of something else, are refused and left alone.
func TestWhatIsNoStore(t *testing.T) {
	newer := t.TempDir()
	if err := os.WriteFile(filepath.Join(newer, formatFile), []byte("rdmasim results 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, "thesis.tex")
	for dir, want := range map[string]string{newer: "has another version: its file says \"rdmasim results 2\"", home: "has other files, such as thesis.tex", file: "not a directory"} {
		if _, err := Open(dir, "m"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", dir, err, want)
		}
	}
	if entries, _ := os.ReadDir(home); len(entries) != 1 {
		t.Errorf("%v", entries)
	}
}

// What other users of a store have put in the place of a result is a result that is missing: nobody
// waits for it, nothing is taken for another one's, and the place can be used.
func TestWhatStandsInThePlaceOfAResult(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, "m")
	at, other := AddressOf("m", []byte(`1`)), AddressOf("m", []byte(`2`))
	for _, a := range []Address{at, other} {
		if err := s.Put(a, []byte(`{"of":"`+a.String()+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	copied, err := os.ReadFile(s.path(other))
	if err != nil {
		t.Fatal(err)
	}
	path := s.path(at)
	for what, make := range map[string]func() error{
		"the result of another run": func() error { return os.WriteFile(path, copied, 0o600) },
		"an empty folder":           func() error { return os.Mkdir(path, 0o700) },
		"a pipe":                    func() error { return syscall.Mkfifo(path, 0o600) },
		"a link to a device":        func() error { return os.Symlink("/dev/zero", path) },
		"a file without end": func() error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40))
		},
	} {
		if err := errors.Join(os.Remove(path), make()); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(at); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %.40s, %v", what, got, err)
		}
		n := 0
		for e, err := range Entries(dir) {
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Read(); err == nil {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s: %d results can be read", what, n)
		}
		if err := s.Put(at, []byte(`{}`)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if got, err := s.Get(at); err != nil || string(got) != `{}` {
			t.Errorf("%s: %s, %v", what, got, err)
		}
	}
	for _, name := range []string{filepath.Join(dir, formatFile), filepath.Join(s.model, modelFile)} {
		if err := errors.Join(os.Remove(name), syscall.Mkfifo(name, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Check(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("%v", err)
	}
	// A folder with something in it is not removed: it is somebody's.
	if err := errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "mine"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(at, []byte(`{}`)); err == nil || !strings.Contains(err.Error(), "is a folder with files in it, where a result belongs: move it away") {
		t.Errorf("a folder that is used: %v", err)
	}
}

// Who collects results while a sweep runs takes no more than results: the sweep goes on, and the
// folder stays a store.
func TestPutWhileResultsAreCollected(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, "m")
	for i := range 20 {
		if i%2 == 0 {
			if _, _, err := Collect(dir, func(*Entry) bool { return true }); err != nil {
				t.Fatal(err)
			}
		} else if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		at := AddressOf("m", []byte{byte('0' + i%10)})
		if err := s.Put(at, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		for e, err := range Entries(dir) {
			if err != nil || e.Model != "m" {
				t.Errorf("%+v, %v", e, err)
			}
		}
		if ok, err := open(t, dir, "m").Has(at); !ok || err != nil {
			t.Errorf("%v, %v", ok, err)
		}
	}
}

// The name of a model that a full disk or a loss of power has cut off does not make its results
// those of another model.
func TestResultsOfAModelWhoseNameIsLost(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, "m")
	if err := errors.Join(s.Put(AddressOf("m", nil), []byte(`{}`)), os.Truncate(filepath.Join(s.model, modelFile), 0)); err != nil {
		t.Fatal(err)
	}
	if n, _, err := Collect(dir, func(e *Entry) bool { return !e.Of("m") }); n != 0 || err != nil {
		t.Errorf("%d results of this model removed, %v", n, err)
	}
	open(t, dir, "m")
	for e := range Entries(dir) {
		if e.Model != "m" {
			t.Errorf("%+v", e)
		}
	}
}

// What jobs leave goes when nothing has changed in it for as long as is said.
func TestCollectJobs(t *testing.T) {
	dir := t.TempDir()
	old, now := filepath.Join(dir, Jobs, "old"), filepath.Join(dir, Jobs, "now")
	for _, d := range []string{old, now} {
		if err := errors.Join(os.MkdirAll(d, 0o700), os.WriteFile(filepath.Join(d, "plan"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{filepath.Join(old, "plan"), old} {
		if err := os.Chtimes(f, time.Time{}, time.Now().Add(-48*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := CollectJobs(dir, 24*time.Hour); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := os.Stat(now); err != nil {
		t.Error(err)
	}
	if n, err := CollectJobs(dir, 0); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("%v", entries)
	}
}
