package harness

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/internal/cli/rlimit"
)

// WorkerMemory is what a worker on the simulator is expected to take at most, in bytes: Go collects
// its garbage so that the heap stays below, and conformance/target/simulator bounds what a case may
// write. Measured: 50 to 81 MB for a worker that runs one case, 163 MB for one that runs the whole
// suite.
const WorkerMemory = 256 << 20

// Memory makes workers wait for each other, those of other runs of this user too, so that all
// together do not take more memory than the machine has. Each worker holds a reservation, which the
// kernel drops when the supervisor is killed. One is always granted when nobody holds another.
//
// It is a help and not a condition of a run: where its files cannot be used, workers start without
// it.
type Memory struct {
	dir       string // of the reservations: a file for each, locked by its supervisor
	available func() uint64
	rss       func(pid int) uint64
	wait      time.Duration // between two attempts
	quiet     time.Duration // of a wait before it is told
	lockWait  time.Duration // for the lock of the folder, which runs hold for milliseconds
}

// NewMemory is the memory of this machine.
func NewMemory() (*Memory, error) {
	dir := "/dev/shm" // of this machine only, and without what runs leave
	if st, err := os.Stat(dir); err != nil || !st.IsDir() || unix.Access(dir, unix.W_OK) != nil {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, fmt.Sprintf("conform-%d", os.Geteuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: dir, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("%s is not a folder of this user", dir)
	}
	root := os.DirFS("/")
	return &Memory{dir: dir, wait: 100 * time.Millisecond, quiet: 3 * time.Second, lockWait: 10 * time.Second,
		available: func() uint64 { return rlimit.Available(root) }, rss: func(pid int) uint64 { return residentSize(root, pid) }}, nil
}

// reservation is the memory of one worker; nil if nobody counts it.
type reservation struct{ file *os.File }

// reserve waits until there is memory for a worker. It calls waiting, once, if that takes long, or
// if nothing can be reserved: then it returns nil. Its only error is that of ctx, when ctx ends
// before.
func (m *Memory) reserve(ctx context.Context, waiting func(why string)) (*reservation, error) {
	if m == nil {
		return nil, nil
	}
	tell := func(why string) {
		if waiting != nil {
			waiting(why)
		}
		waiting = nil
	}
	for begin := time.Now(); ; {
		waited := time.Since(begin)
		r, why, err := m.try(waited >= m.lockWait)
		if err != nil {
			tell(fmt.Sprintf("workers do not wait for memory: %v", err))
			return nil, nil
		}
		if r != nil {
			return r, nil
		}
		if why != "" && waited >= m.quiet {
			tell(why)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(m.wait):
		}
	}
}

// try returns a reservation, or why there is none. The lock lets runs reserve one after another.
// Any process of the user can keep it, so with force it is not needed: then runs that begin at once
// may all find the same memory free.
func (m *Memory) try(force bool) (r *reservation, why string, err error) {
	lock, err := openRegular(filepath.Join(m.dir, "lock"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = lock.Close() }()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		if !force {
			return nil, fmt.Sprintf("waiting for the lock %s, which %s holds; after %v conform goes on without it", lock.Name(), lockHolder(lock), m.lockWait), nil
		}
	} else if err != nil {
		return nil, "", err
	}
	others, promised, err := m.held()
	if err != nil {
		return nil, "", err
	}
	if free := m.available(); others > 0 && free < promised+WorkerMemory {
		return nil, fmt.Sprintf("waiting for memory: a worker may take %d MiB, %d MiB are free, and %d workers of this user that run may take %d MiB of them",
			WorkerMemory>>20, free>>20, others, promised>>20), nil
	}
	r, err = m.add()
	return r, "", err
}

// add makes a reservation; nil if another run took its file for one that was left, which happens
// without the lock.
func (m *Memory) add() (*reservation, error) {
	f, err := openRegular(filepath.Join(m.dir, "worker-"+rand.Text()), os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, err
	}
	r := &reservation{f}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstat(int(f.Fd()), &st)
	}
	if err == nil && st.Nlink > 0 {
		return r, nil
	}
	r.release()
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = nil
	}
	return nil, err
}

// openRegular opens a file of the folder. Whatever else has that name is an error, and never waited
// for.
func openRegular(name string, flags int) (*os.File, error) {
	f, err := os.OpenFile(name, flags|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		_ = f.Close()
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", name))
	}
	return f, nil
}

// lockHolder names the process that took the lock (/proc/locks, proc_locks(5)).
func lockHolder(lock *os.File) string {
	const unknown = "another process"
	var st unix.Stat_t
	text, err := os.ReadFile("/proc/locks")
	if err != nil || unix.Fstat(int(lock.Fd()), &st) != nil {
		return unknown
	}
	inode := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for line := range strings.Lines(string(text)) {
		// "1: FLOCK ADVISORY WRITE 4711 00:19:12 0 EOF"
		if w := strings.Fields(line); len(w) > 5 && w[1] == "FLOCK" && w[5] == inode {
			name, _ := os.ReadFile("/proc/" + w[4] + "/comm")
			return strings.TrimSpace(fmt.Sprintf("process %s %s", w[4], name))
		}
	}
	return unknown
}

// startTime is how long a reservation counts that names no process: workers start in less.
const startTime = time.Minute

// held counts the reservations, and what their workers may still take. Those of ended supervisors
// are removed, and those of ended workers do not count, whoever has locked them.
func (m *Memory) held() (n int, promised uint64, err error) {
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return 0, 0, err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "worker-") {
			continue
		}
		f, err := openRegular(filepath.Join(m.dir, e.Name()), os.O_RDONLY)
		if err != nil {
			continue // it was released, or is no reservation
		}
		taken, counts := m.taken(f)
		_ = f.Close()
		if counts {
			n++
			promised += WorkerMemory - min(taken, WorkerMemory)
		}
	}
	return n, promised, nil
}

// taken is what the worker of a reservation has of memory, and whether the reservation counts. One
// that nobody holds is removed.
func (m *Memory) taken(f *os.File) (uint64, bool) {
	if unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil {
		_ = os.Remove(f.Name())
		return 0, false
	}
	var text [32]byte
	k, _ := f.Read(text[:])
	if k == 0 { // the worker has not started yet
		st, err := f.Stat()
		return 0, err == nil && time.Since(st.ModTime()) < startTime
	}
	pid, err := strconv.Atoi(string(text[:k]))
	if err != nil {
		return 0, false
	}
	size := m.rss(pid)
	return size, size > 0
}

// use says which process takes the memory.
func (r *reservation) use(pid int) {
	if r != nil {
		_, _ = r.file.WriteString(strconv.Itoa(pid)) // without it all of the memory counts as promised
	}
}

// release gives the memory back.
func (r *reservation) release() {
	if r != nil {
		_ = os.Remove(r.file.Name())
		_ = r.file.Close()
	}
}

// residentSize is what a process has of memory, in bytes; 0 if it has ended.
func residentSize(root fs.FS, pid int) uint64 {
	text, err := fs.ReadFile(root, fmt.Sprintf("proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	words := strings.Fields(string(text)) // size, resident, ... in pages (proc(5))
	if len(words) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(words[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}
