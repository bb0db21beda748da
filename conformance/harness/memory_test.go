package harness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/internal/cli/rlimit"
)

// machine is a machine with so much free memory, of which each of these processes has taken some.
func machine(t *testing.T, free uint64, taken map[int]uint64) func() *Memory {
	dir := t.TempDir()
	return func() *Memory { // of another run
		return &Memory{dir: dir, wait: time.Millisecond, available: func() uint64 { return free }, rss: func(pid int) uint64 { return taken[pid] },
			lockWait: time.Hour}
	}
}

func TestWorkersWaitForMemory(t *testing.T) {
	run := machine(t, 2*WorkerMemory+WorkerMemory/2, map[int]uint64{7: WorkerMemory, 8: 2 * WorkerMemory})
	a, b := run(), run()
	first, err1 := a.reserve(t.Context(), nil)
	second, err2 := b.reserve(t.Context(), nil)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	ctx, cancel := context.WithCancel(t.Context())
	said := 0
	none, err := a.reserve(ctx, func(why string) {
		said++
		if !strings.Contains(why, "waiting for memory") || !strings.Contains(why, "2 workers of this user") {
			t.Error(why)
		}
		time.AfterFunc(5*a.wait, cancel)
	})
	if none != nil || !errors.Is(err, context.Canceled) || said != 1 {
		t.Errorf("a third worker: %v, %v, said %d times", none, err, said)
	}
	first.use(7) // what it has taken is no longer promised, nor free
	third, err := b.reserve(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, promised, _ := a.held(); promised != 2*WorkerMemory {
		t.Errorf("promised: %d", promised)
	}
	second.use(8)
	if _, promised, _ := a.held(); promised != WorkerMemory {
		t.Errorf("promised after one has taken more than it may: %d", promised)
	}
	first.release()
	second.release()
	_ = third.file.Close() // as a kill does
	if n, _, err := a.held(); n != 0 || err != nil {
		t.Errorf("%d reservations, %v", n, err)
	}
	if left, err := os.ReadDir(a.dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// However little memory there is, one worker of all runs goes on, and so all end.
func TestMemoryDoesNotDeadlock(t *testing.T) {
	run := machine(t, 0, nil)
	var running, most atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		m := run()
		for range 4 {
			wg.Go(func() {
				r, err := m.reserve(t.Context(), nil)
				if err != nil {
					t.Error(err)
					return
				}
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(time.Millisecond)
				running.Add(-1)
				r.release()
			})
		}
	}
	wg.Wait()
	if most.Load() != 1 {
		t.Errorf("%d workers at once", most.Load())
	}
}

// The lock of the folder is named when somebody keeps it, and not waited for without end.
func TestLockOfAStranger(t *testing.T) {
	m := machine(t, 0, nil)()
	left, err := m.add() // of a run that was killed
	if err != nil {
		t.Fatal(err)
	}
	_ = left.file.Close()
	stranger, err := os.Create(filepath.Join(m.dir, "lock"))
	if err == nil {
		err = unix.Flock(int(stranger.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	said := ""
	ctx, cancel := context.WithCancel(t.Context())
	if r, err := m.reserve(ctx, func(why string) { said = why; cancel() }); r != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("while others may hold it: %v, %v", r, err)
	}
	if !strings.Contains(said, stranger.Name()) || !strings.Contains(said, fmt.Sprintf("process %d ", os.Getpid())) {
		t.Errorf("said: %q", said)
	}
	m.lockWait = 0
	r, err := m.reserve(t.Context(), func(why string) { t.Error(why) })
	if r == nil || err != nil {
		t.Fatalf("without the lock: %v, %v", r, err)
	}
	if n, _, err := m.held(); n != 1 || err != nil {
		t.Errorf("%d reservations (%v), want that of this run: the one that was left is gone", n, err)
	}
	r.release()
}

// What others put into the folder is no reservation, and does not hold up or fail a run.
func TestFolderWithStrangeFiles(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"fifo":           func(dir string) error { return unix.Mkfifo(filepath.Join(dir, "worker-A"), 0o600) },
		"fifo as lock":   func(dir string) error { return unix.Mkfifo(filepath.Join(dir, "lock"), 0o600) },
		"folder":         func(dir string) error { return os.Mkdir(filepath.Join(dir, "worker-B"), 0o700) },
		"folder as lock": func(dir string) error { return os.Mkdir(filepath.Join(dir, "lock"), 0o700) },
		"link":           func(dir string) error { return os.Symlink("/dev/zero", filepath.Join(dir, "worker-C")) },
		"link as lock":   func(dir string) error { return os.Symlink("/dev/null", filepath.Join(dir, "lock")) },
		"unreadable":     func(dir string) error { return os.WriteFile(filepath.Join(dir, "worker-D"), nil, 0) },
		"gone":           os.Remove,
	} {
		m := machine(t, 0, nil)()
		if err := spoil(m.dir); err != nil {
			t.Fatal(err)
		}
		said := 0
		r, err := m.reserve(t.Context(), func(string) { said++ })
		if err != nil || (r == nil) != (said == 1) {
			t.Errorf("%s: %v, %v, said %d times", name, r, err, said)
		}
		r.release()
	}
}

// A reservation whose worker has ended does not count, although somebody keeps its file locked.
func TestReservationThatAStrangerKeeps(t *testing.T) {
	m := machine(t, 0, map[int]uint64{7: WorkerMemory})()
	for _, pid := range []int{7, 8} {
		r, err := m.add()
		if err != nil {
			t.Fatal(err)
		}
		r.use(pid)
		defer r.release()
	}
	old, err := m.add() // names no process
	if err != nil {
		t.Fatal(err)
	}
	defer old.release()
	if n, _, _ := m.held(); n != 2 {
		t.Errorf("%d reservations, want that of process 7 and a new one", n)
	}
	if err := os.Chtimes(old.file.Name(), time.Time{}, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	if n, _, _ := m.held(); n != 1 {
		t.Errorf("%d reservations, want that of process 7", n)
	}
}

func TestAvailable(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	info := file("MemTotal:       1000 kB\nMemFree:         1 kB\nMemAvailable:    900 kB\n")
	for name, c := range map[string]struct {
		root fstest.MapFS
		want uint64
	}{
		"no control group": {fstest.MapFS{"proc/meminfo": info}, 900 << 10},
		"version 2, a limit above": {fstest.MapFS{"proc/meminfo": info, "proc/self/cgroup": file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max": file("max\n"), "sys/fs/cgroup/a/b/memory.current": file("5000\n"),
			"sys/fs/cgroup/a/memory.max": file("20000\n"), "sys/fs/cgroup/a/memory.current": file("15000\n"),
			"sys/fs/cgroup/a/memory.stat": file("anon 1\ninactive_file 3000\n")}, 8000},
		"version 1": {fstest.MapFS{"proc/meminfo": info, "proc/self/cgroup": file("9:name=systemd:/\n4:cpu,memory:/x\n"),
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": file("7000\n"), "sys/fs/cgroup/memory/x/memory.usage_in_bytes": file("9000\n")}, 0},
		"more than its limit, in a container": {fstest.MapFS{"proc/meminfo": info, "proc/self/cgroup": file("0::/../..\n"),
			"sys/fs/cgroup/memory.max": file("10000\n"), "sys/fs/cgroup/memory.current": file("4000\n")}, 6000},
	} {
		if got := rlimit.Available(c.root); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := residentSize(fstest.MapFS{"proc/5/statm": file("100 3 1 1 0 1 0\n")}, 5); got != 3*uint64(os.Getpagesize()) {
		t.Errorf("resident: %d", got)
	}
	root := os.DirFS("/")
	if _, err := fs.Stat(root, "proc/meminfo"); err == nil && (rlimit.Available(root) == 0 || rlimit.Available(root) > 1<<50) {
		t.Errorf("this machine: %d", rlimit.Available(root))
	}
}
