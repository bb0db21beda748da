package report

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

// planned is a run of three cases before the first has run, and finished are two of them as a
// worker sends them.
func planned() *Run {
	r := &Run{Schema: Schema, Seed: 3, Target: Target{Kind: "hw", Device: "mlx5_0"}, Environment: map[string]string{KeyProvider: "mlx5", KeyPart: "0x1017"}}
	for _, id := range []string{"RC-001", "RC-002", "RC-003"} {
		r.Cases = append(r.Cases, Case{ID: id, Area: "RC", Text: "a < b", Strength: "E", Outcome: NotRun, Reason: "the run was interrupted", Observations: []Observation{}})
	}
	r.Count()
	return r
}

func finished() []Case {
	return []Case{
		{ID: "RC-003", Outcome: Pass, Seed: 7, Observations: []Observation{{Step: "big", Kind: "value", Got: uint64(1)<<63 + 1}}},
		{ID: "RC-001", Outcome: Error, Reason: "the worker crashed"},
	}
}

// journal writes a journal and returns its text.
func journal(t *testing.T, cases ...Case) (path string, text []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "run.json"+JournalSuffix)
	j, err := OpenJournal(t.Context(), path, 0)
	if err == nil {
		err = j.Begin(planned())
	}
	for _, c := range cases {
		err = errors.Join(err, j.Add(c))
	}
	if err != nil {
		t.Fatal(err)
	}
	j.Close() // as a kill does
	if text, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return path, text
}

func TestJournalBecomesTheRecord(t *testing.T) {
	_, text := journal(t, finished()...)
	back, err := ReadJournal("j", bytes.NewReader(text))
	got := back.Run
	if err != nil || back.Torn != "" || back.Finished != 2 {
		t.Fatal(back, err)
	}
	want := planned()
	want.Incomplete = true
	for _, c := range finished() {
		i := map[string]int{"RC-001": 0, "RC-003": 2}[c.ID]
		want.Cases[i] = c.as(want.Cases[i])
	}
	want.Count()
	var a, b bytes.Buffer
	if err := errors.Join(want.WriteJSON(&a), got.WriteJSON(&b)); err != nil || a.String() != b.String() {
		t.Errorf("%v\n%s\nwant\n%s", err, b.String(), a.String())
	}
	if err := got.Acceptable(); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("as a baseline: %v", err)
	}
	if got.OK() {
		t.Error("an incomplete run is ok")
	}
}

// Wherever a loss of power ends the journal, the whole lines before are recovered, and a part of a
// line is reported.
func TestJournalCutAnywhere(t *testing.T) {
	_, text := journal(t, finished()...)
	for n := range text {
		whole := bytes.Count(text[:n], []byte("\n"))
		for _, tail := range []string{"", "\x00\x00\x00"} {
			back, err := ReadJournal("j", strings.NewReader(string(text[:n])+tail))
			part := tail != "" || n > 0 && text[n-1] != '\n'
			switch {
			case (back.Torn != "") != part:
				t.Fatalf("%d bytes: %q", n, back.Torn)
			case whole < 2 && (err == nil || !strings.Contains(err.Error(), "no finished case")):
				t.Fatalf("%d bytes: %v", n, err)
			case whole >= 2 && (err != nil || back.Finished != whole-1):
				t.Fatalf("%d bytes: %v", n, err)
			}
		}
	}
}

// Any other damage is found, with its line.
func TestDamagedJournal(t *testing.T) {
	_, text := journal(t, finished()...)
	for i := range text {
		for _, bit := range []byte{1, 4, 0x20} {
			bad := bytes.Clone(text)
			bad[i] ^= bit
			back, err := ReadJournal("j", bytes.NewReader(bad))
			switch {
			case i == len(text)-1: // the last newline
				if back.Torn == "" {
					t.Fatalf("byte %d: %v", i, err)
				}
			case err == nil && bytes.EqualFold(text, bad): // the name of a field in other letters
			case err == nil:
				t.Fatalf("byte %d of %q becomes %q: %+v, %q", i, text[max(0, i-20):min(len(text), i+5)], bad[i], back.Run.Summary, back.Torn)
			case !strings.HasPrefix(err.Error(), "j:"):
				t.Fatalf("byte %d: %v", i, err)
			}
		}
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	for want, order := range map[string][]int{"j:1: the run belongs on the first line": {1, 0, 2}, "j:3: RC-003 is in line 2": {0, 1, 1}, "j:2: the run belongs on the first line": {0, 0}} {
		var mixed []byte
		for _, i := range order {
			mixed = append(mixed, lines[i]...)
		}
		if _, err := ReadJournal("j", bytes.NewReader(mixed)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("lines %v: %v", order, err)
		}
	}
}

func TestJournalOfAKilledRunIsKept(t *testing.T) {
	path, text := journal(t, finished()...)
	_, err := OpenJournal(t.Context(), path, 0)
	var left *UnrecoveredError
	if !errors.As(err, &left) || left.Cases != 2 || !strings.Contains(err.Error(), "conform recover "+path) {
		t.Errorf("OpenJournal: %v", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, text) {
		t.Errorf("the journal has changed: %v", err)
	}
	empty, _ := journal(t)
	j, err := OpenJournal(t.Context(), empty, 0)
	if err != nil {
		t.Fatalf("without a case: %v", err)
	}
	if _, err := OpenJournal(t.Context(), empty, 0); !errors.Is(err, outfile.ErrLocked) {
		t.Errorf("of a run that goes on: %v", err)
	}
	if err := j.Remove(); err != nil {
		t.Error(err)
	}
}

// When the n-th operation on a journal fails, the error has its path, and the cases before are
// recovered.
func TestJournalThatCannotBeWritten(t *testing.T) {
	for n := 1; ; n++ {
		path := filepath.Join(t.TempDir(), "run.json"+JournalSuffix)
		calls, failed := 0, false
		ctx := outfile.WithFail(context.Background(), func(outfile.Operation, string) error {
			if calls++; calls != n {
				return nil
			}
			failed = true
			return syscall.EIO
		})
		var errs []error
		j, err := OpenJournal(ctx, path, 0)
		added, said := 0, 0
		if err == nil {
			errs = append(errs, j.Begin(planned()))
			for _, c := range finished() {
				if err := j.Add(c); err == nil && errors.Join(errs...) == nil {
					added++
				} else {
					errs = append(errs, err)
				}
			}
			j.Close()
			said = j.Cases()
		}
		err = errors.Join(err, errors.Join(errs...))
		if !failed {
			if err != nil || n < 6 {
				t.Errorf("after %d operations: %v", n-1, err)
			}
			return
		}
		if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), path) {
			t.Errorf("operation %d: %v", n, err)
		}
		if added == 0 && said > 0 {
			f, err := os.ReadFile(path)
			if back, rerr := ReadJournal(path, bytes.NewReader(f)); err != nil || rerr != nil || said > back.Finished {
				t.Errorf("operation %d: the journal says that it has %d cases: %v, %v", n, said, err, rerr)
			}
		}
		if added > 0 {
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			back, err := ReadJournal(path, f)
			_ = f.Close()
			if err != nil || back.Finished < added || said < added || said > back.Finished {
				t.Errorf("operation %d: %d cases were written, the journal says %d and has %d: %v", n, added, said, back.Finished, err)
			}
		}
	}
}

// What is in the place of a journal and does not begin as one is nobody's to erase, and may hold
// anything.
func TestForeignFileInPlaceOfAJournal(t *testing.T) {
	for what, text := range map[string]string{"a line": "precious", "lines": "a\nb"} {
		path := filepath.Join(t.TempDir(), "run.json"+JournalSuffix)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if j, err := OpenJournal(t.Context(), path, 0); err == nil {
			j.Close()
			t.Errorf("%s: a run writes its journal over it", what)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != text {
			t.Errorf("%s: it is %q now (%v)", what, now, err)
		}
		if _, err := ReadJournal(path, strings.NewReader(text)); err == nil || strings.Contains(err.Error(), "nothing to recover") {
			t.Errorf("%s: recover says %v", what, err)
		}
	}
}
