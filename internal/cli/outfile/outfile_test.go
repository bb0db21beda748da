package outfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary is the program that is killed.
func TestMain(m *testing.M) {
	if path := os.Getenv("OUTFILE_TEST_KILLED"); path != "" {
		leave(path)
	}
	os.Exit(m.Run())
}

// leave makes one output with a temporary name, one without, and a folder, and waits for its end.
func leave(path string) {
	f := &File{path: path, place: path}
	err := f.openNamed()
	if err == nil {
		_, err = Create(context.Background(), path+".unnamed")
	}
	var d *Dir
	if err == nil {
		d, err = TempDir("outfile-test")
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(d.Path, "x"), nil, 0o600)
	}
	fmt.Println(err)
	time.Sleep(time.Hour)
	runtime.KeepAlive([]any{f, d})
}

func fill(text string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// creators make outputs without and with a temporary name.
var creators = map[string]func(context.Context, string) (*File, error){
	"unnamed": Create,
	"named": func(ctx context.Context, path string) (*File, error) {
		f, err := Create(ctx, path)
		if err == nil {
			err = errors.Join(f.f.Close(), f.openNamed())
		}
		return f, err
	},
}

func TestFileIsWholeOrAbsent(t *testing.T) {
	for name, create := range creators {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "run.json")
			f, err := create(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); err == nil {
				t.Error("the file is there before it is whole")
			}
			if err := f.Commit(fill("one")); err != nil {
				t.Fatal(err)
			}
			if f, err = create(t.Context(), path); err != nil {
				t.Fatal(err)
			}
			broken := errors.New("broken")
			if err := f.Commit(func(w io.Writer) error { return errors.Join(fill("tw")(w), broken) }); !errors.Is(err, broken) {
				t.Errorf("Commit: %v", err)
			}
			if got, left := content(t, path), names(t, dir); got != "one" || left != "run.json" {
				t.Errorf("after a failed commit: %q, files %s", got, left)
			}
			if _, err := Create(t.Context(), filepath.Join(dir, "none", "x")); err == nil || !strings.Contains(err.Error(), "x cannot be written: no such file") {
				t.Errorf("Create in a folder that does not exist: %v", err)
			}
		})
	}
}

// Whatever operation fails, the error names the path, the old file or the new one is there as a
// whole, and nothing else is.
func TestEachOperationMayFail(t *testing.T) {
	for name, create := range creators {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				dir := t.TempDir()
				path := filepath.Join(dir, "run.json")
				if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
					t.Fatal(err)
				}
				calls, failed := 0, Operation("")
				ctx := WithFail(t.Context(), func(op Operation, _ string) error {
					if calls++; calls != n {
						return nil
					}
					failed = op
					return syscall.EIO
				})
				f, err := create(ctx, path)
				if err == nil {
					err = errors.Join(second(f.Write([]byte("new, "))), f.Commit(fill("whole")))
				}
				got := content(t, path)
				switch {
				case failed == "":
					if err != nil || got != "new, whole" {
						t.Errorf("without a failure: %v, %q", err, got)
					}
					if n < 6 {
						t.Errorf("only %d operations", n-1)
					}
					return
				case failed == OpClose || failed == OpSyncDir: // it is in place
					if got != "new, whole" {
						t.Errorf("%s fails: %q", failed, got)
					}
				case got != "old": // of a failed Write too, though the caller went on
					t.Errorf("%s fails: %q", failed, got)
				}
				if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), path) || names(t, dir) != "run.json" {
					t.Errorf("%s fails: %v, files %s", failed, err, names(t, dir))
				}
			}
		})
	}
}

func second(_ int, err error) error { return err }

// What a killed program leaves has no name, or the next one removes it; what a living one uses
// stays.
func TestLeftoversOfTheDeadAreRemoved(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	dir, tmp := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, "run.json")
	t.Setenv("TMPDIR", tmp)
	t.Setenv("OUTFILE_TEST_KILLED", path)
	cmd := exec.Command(os.Args[0])
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 100)
	if n, err := out.Read(line); err != nil || string(line[:n]) != "<nil>\n" {
		t.Fatalf("the program says %q, %v", line[:n], err)
	}
	stays := filepath.Join(dir, ".run.json.notes.part")
	if err := os.WriteFile(stays, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	use := func() (files, folders string) {
		f, err := Create(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		f.Abort()
		d, err := TempDir("outfile-test")
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Remove(); err != nil {
			t.Error(err)
		}
		return names(t, dir), names(t, tmp)
	}
	files, folders := use()
	if strings.Count(files, suffix) != 2 || folders == "" {
		t.Errorf("of a living program: %q and %q", files, folders)
	}
	looks := orphanLooks
	orphanLooks = 5
	RemoveOrphan(filepath.Join(tmp, folders))
	orphanLooks = looks
	if names(t, tmp) != folders {
		t.Errorf("the folder of a living program is no orphan")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if files, folders := use(); files != filepath.Base(stays) || folders != "" {
		t.Errorf("of a dead program: %q and %q", files, folders)
	}
}

func TestOrphanIsRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d, err := TempDir("outfile-test")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.Path, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_ = d.lock.Close() // as the end of the process does
	RemoveOrphan(d.Path)
	if left := names(t, os.TempDir()); left != "" {
		t.Errorf("left: %s", left)
	}
}

// A link is followed: the file behind it is replaced, and the link stays.
func TestLinkIsFollowed(t *testing.T) {
	dir := t.TempDir()
	path, behind := filepath.Join(dir, "link"), filepath.Join(dir, "file")
	if err := errors.Join(os.WriteFile(behind, nil, 0o600), os.Symlink("file", path)); err != nil {
		t.Fatal(err)
	}
	f, err := Create(t.Context(), path)
	if err == nil {
		err = f.Commit(fill("x"))
	}
	if st, lerr := os.Lstat(path); err != nil || lerr != nil || st.Mode().Type() != os.ModeSymlink || content(t, behind) != "x" {
		t.Errorf("%v, %v", err, lerr)
	}
}

// An open file of the process is written behind what it has, and not replaced.
func TestOpenFileOfTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.WriteString("before "); err != nil {
		t.Fatal(err)
	}
	f, err := Create(t.Context(), fmt.Sprintf("/dev/fd/%d", file.Fd()))
	if err == nil {
		err = f.Commit(fill("report"))
	}
	if _, werr := file.WriteString(" after"); err != nil || werr != nil || content(t, path) != "before report after" {
		t.Errorf("%v, %v, %q", err, werr, content(t, path))
	}
}

// Only who asks for it by its path gets standard output.
func TestStandardOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := Create(t.Context(), Standard)
	for what, err := range map[string]error{"Create": err, "Check": Check(t.Context(), Standard), "Distinct": Distinct([]Named{{"--pcap", Standard}}, nil)} {
		if !errors.Is(err, ErrStandard) || !strings.Contains(err.Error(), "write ./- for a file of that name") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for path, want := range map[string]bool{StandardPath: true, "/dev/fd/1": true, "/proc/self/fd/1": true, "/dev/fd/2": false, "./-": false, "": false} {
		if IsStandard(path) != want {
			t.Errorf("IsStandard(%q) is %t", path, !want)
		}
	}
	f, err := Create(t.Context(), "./-")
	if err == nil {
		err = f.Commit(fill("x"))
	}
	if err != nil || content(t, "./-") != "x" {
		t.Errorf("./-: %v", err)
	}
}

func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPipeWithoutAReader(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Create(ctx, fifo(t)); !errors.Is(err, ErrInterrupted) || !strings.Contains(err.Error(), "nobody reads it") {
		t.Errorf("Create: %v", err)
	}
}

// A reader that comes late gets everything, and a check before does not disturb it.
func TestPipeWithALateReader(t *testing.T) {
	path := fifo(t)
	if err := Check(t.Context(), path); err != nil {
		t.Error(err)
	}
	read := make(chan int)
	go func() {
		text, _ := os.ReadFile(path)
		read <- len(text)
	}()
	f, err := Create(t.Context(), path)
	if err == nil {
		err = f.Commit(fill(strings.Repeat("x", 1<<20)))
	}
	select {
	case n := <-read:
		if err != nil || n != 1<<20 {
			t.Errorf("%d bytes, %v", n, err)
		}
	case <-time.After(time.Minute):
		t.Fatalf("waited a minute for the reader to see the end of the pipe: %v", err)
	}
}

// A reader that stops reading holds the writer until the context ends, whether that is before or in
// a write.
func TestPipeWhoseReaderStops(t *testing.T) {
	for _, first := range []bool{true, false} {
		path := fifo(t)
		ctx, cancel := context.WithCancel(t.Context())
		reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Create(ctx, path)
		if err != nil {
			t.Fatal(err)
		}
		if first {
			cancel()
		} else {
			time.AfterFunc(50*time.Millisecond, cancel)
		}
		if err := f.Commit(fill(strings.Repeat("x", 1<<20))); err == nil || !strings.Contains(err.Error(), path+" cannot be written: its reader has stopped reading") {
			t.Errorf("Commit: %v", err)
		}
		_ = reader.Close()
		cancel()
	}
}

func TestLogOfALivingProcessIsLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := OpenLog(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLog(t.Context(), path); !errors.Is(err, ErrLocked) {
		t.Errorf("a second time: %v", err)
	}
	if err := errors.Join(l.Append([]byte("one\n"), true), l.SyncName()); err != nil {
		t.Error(err)
	}
	l.Close()
	if l, err = OpenLog(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if err := l.Append([]byte("two\n"), false); err != nil || content(t, path) != "one\ntwo\n" {
		t.Errorf("%v, %q", err, content(t, path))
	}
	if err := errors.Join(l.Reset(), l.Append([]byte("three\n"), true)); err != nil || content(t, path) != "three\n" {
		t.Errorf("%v, %q", err, content(t, path))
	}
	if err := l.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the log is still there")
	}
}

// A file system that sends a page again, from its beginning, writes it where it was: the log names
// the place of each line.
func TestLogNamesThePlaceOfItsLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := OpenLog(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 2 {
		if _, err := l.f.WriteAt([]byte("one\n"), 0); err != nil { // refused of a file that appends
			t.Error(err)
		}
		if err := l.Append([]byte("two\n"), true); err != nil {
			t.Error(err)
		}
	}
	if got := content(t, path); got != "one\ntwo\ntwo\n" {
		t.Errorf("%q", got)
	}
}

// A line that cannot be written leaves the lines before it, and the log takes no more.
func TestLogThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	room := 2
	ctx := WithFail(t.Context(), func(op Operation, _ string) error {
		if op == OpWrite {
			room--
		}
		if room < 0 {
			return syscall.ENOSPC
		}
		return nil
	})
	l, err := OpenLog(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	var errs []error
	for range 4 {
		errs = append(errs, l.Append([]byte("line\n"), false))
	}
	if errs[0] != nil || errs[1] != nil || !errors.Is(errs[2], syscall.ENOSPC) || !strings.Contains(errs[2].Error(), path) || errs[3] != nil {
		t.Errorf("errors %v", errs)
	}
	if got := content(t, path); got != "line\nline\nli" {
		t.Errorf("%q", got)
	}
}

// The name of a file is any bytes.
func TestNameThatIsNotUTF8(t *testing.T) {
	for _, name := range []string{"a\x9bb.json", "a(b*.json", "a\nb.json"} {
		path := filepath.Join(t.TempDir(), name)
		f, err := Create(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		f.Abort()
	}
}

// A name of the greatest length is written, in whatever way the file is made, and a longer one is
// refused before the run.
func TestLongNames(t *testing.T) {
	for n, ok := range map[int]bool{230: true, 234: true, 255: true, 256: false, 5000: false} {
		path := filepath.Join(t.TempDir(), strings.Repeat("n", n))
		f, err := Create(t.Context(), path)
		if (err == nil) != ok {
			t.Errorf("a name of %d bytes: %v", n, err)
		}
		if err != nil {
			continue
		}
		if err := f.Commit(func(w io.Writer) error { _, err := w.Write([]byte("x")); return err }); err != nil {
			t.Errorf("a name of %d bytes: %v", n, err)
		}
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(path) {
			t.Errorf("a name of %d bytes: %d entries, %v", n, len(entries), err)
		}
	}
}

// A link to what is not there yet is followed as well, also through another link.
func TestLinkToWhatIsNotThereYetIsFollowed(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{os.Mkdir(at("d"), 0o700), os.Symlink("d/target", at("first")), os.Symlink("first", at("second")), os.Symlink("nowhere/x", at("lost")), os.Symlink("loop", at("loop"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	f, err := Create(context.Background(), at("second"))
	if err == nil {
		err = f.Commit(fill("text"))
	}
	if text, rerr := os.ReadFile(at("d/target")); err != nil || rerr != nil || string(text) != "text" || f.Path() != at("d/target") {
		t.Errorf("%v; the target is %q, %v", err, text, rerr)
	}
	if to, err := os.Readlink(at("second")); err != nil || to != "first" {
		t.Errorf("the link is gone: %q, %v", to, err)
	}
	for _, name := range []string{"lost", "loop"} {
		if err := Check(context.Background(), at(name)); err == nil || !strings.Contains(err.Error(), name+" cannot be written") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Many paths below a link that leads to itself take no more look-ups than others.
func TestDistinctBelowALoopIsCheap(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	cost := func(folder string) float64 {
		var outputs []Named
		for i := range 100 {
			outputs = append(outputs, Named{"-o", filepath.Join(dir, folder, fmt.Sprint(i))})
		}
		return testing.AllocsPerRun(1, func() {
			if err := Distinct(outputs, nil); err != nil {
				t.Error(err)
			}
		})
	}
	if loop, other := cost("loop"), cost("none"); loop > 100*other || loop > 500_000 {
		t.Errorf("%.0f allocations, and %.0f without the loop", loop, other)
	}
}

// What Write could not write is missing in the middle, and keeps the output from its place.
func TestOutputWithAGapIsNotPutInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	fails := true
	ctx := WithFail(context.Background(), func(op Operation, _ string) error {
		if op == OpWrite && fails {
			return syscall.ENOSPC
		}
		return nil
	})
	f, err := Create(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("first")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	fails = false
	if err := f.Commit(fill("second")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("committed: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the output is there")
	}
}
