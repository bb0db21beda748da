package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	for dir, want := range map[string]string{newer: "of another version: it says \"rdmasim results 2\"", home: "has other files, such as thesis.tex", file: "not a directory"} {
		if _, err := Open(dir, "m"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", dir, err, want)
		}
	}
	if entries, _ := os.ReadDir(home); len(entries) != 1 {
		t.Errorf("%v", entries)
	}
}
