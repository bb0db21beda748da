//go:build linux && amd64

package exec

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sessionEnv marks the processes of a session.
const sessionEnv = "RDMASIM_EXEC_SESSION"

// janitorPause lies between two looks that find nothing, quietLooks is how many of them there are
// at the end, and janitorLooks how many there are at all, if processes do not end: they are counted
// since a busy machine may let the janitor wait for long. newestLooks is how often the newest
// processes are looked at after a look at all of them that finds nothing, and newestPids how many:
// together some 50 ms.
const (
	janitorPause = 20 * time.Millisecond
	quietLooks   = 3
	janitorLooks = 500
	newestLooks  = 500
	newestPids   = 3
	attendPause  = 50 * time.Millisecond // between two looks at a supervisor that lives, at least
)

// janitor outlives a supervisor that was killed: it ends the programs, whose calls
// are no longer answered, and removes the work folder. Its arguments are the session's mark
// and the folder; a supervisor that ends in order sends a byte first.
func janitor() {
	if len(os.Args) != 4 {
		return
	}
	mark, dir := os.Args[2], os.Args[3]
	known, orderly := attend()
	if orderly {
		return
	}
	for looks, quiet := 0, 0; quiet < quietLooks && looks < janitorLooks; looks++ {
		quiet++
		if known.kill() || killMarked(mark) || killNewest(mark) {
			quiet = 0
		}
		if quiet > 0 {
			time.Sleep(janitorPause)
		}
	}
	_ = os.RemoveAll(dir)
}

// attend waits for the end of the supervisor, which is orderly if it sends a byte first, and says
// which processes it had below it. It looks for them from time to time, for a hundredth of a
// processor's time.
func attend() (known family, orderly bool) {
	known = family{}
	supervisor := os.Getppid()
	look := []unix.PollFd{{Fd: handshakeFD, Events: unix.POLLIN}}
	for pause := attendPause; ; {
		n, err := unix.Poll(look, int(pause.Milliseconds()))
		switch {
		case err == unix.EINTR:
		case n == 0:
			begin := ownCPU()
			known.join(processTree(), supervisor)
			pause = max(attendPause, 100*(ownCPU()-begin))
		default:
			var b [1]byte
			if n, err = unix.Read(handshakeFD, b[:]); err != unix.EINTR {
				return known, n == 1
			}
		}
	}
}

// ownCPU is the time that this process has had of processors.
func ownCPU() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// family is the processes of the session that were seen, with their starts. Some of them may have
// no environment that tells: one that has cleared it, or one that this user may not look into.
type family map[int]string

// join has the processes below the supervisor replace those that were known.
func (f family) join(tree map[int]procEntry, supervisor int) {
	below := below(tree, os.Getpid(), func(pid int, _ procEntry) bool { return pid == supervisor })
	if os.Getppid() != supervisor {
		return // it has ended, and the tree may show what it had below itself without a parent
	}
	clear(f)
	for _, pid := range below {
		f[pid] = tree[pid].start
	}
}

// kill kills the known processes and those below them, and reports whether there were any.
func (f family) kill() (found bool) {
	for _, pid := range f.under(processTree()) {
		if unix.Kill(pid, unix.SIGKILL) == nil {
			found = true
		}
	}
	return found
}

// under lists the known processes of a tree and those that they have started since, which are known
// from then on.
func (f family) under(tree map[int]procEntry) []int {
	known := func(pid int, p procEntry) bool { return p.start != "" && f[pid] == p.start }
	l := below(tree, os.Getpid(), known)
	for pid, p := range tree {
		if known(pid, p) {
			l = append(l, pid)
		}
	}
	slices.Sort(l)
	l = slices.Compact(l)
	for _, pid := range l {
		f[pid] = tree[pid].start
	}
	return l
}

// killMarked kills the processes that carry the mark in their environment, and reports
// whether there were any.
func killMarked(mark string) (found bool) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(d)); err == nil && killIfMarked(pid, mark) {
			found = true
		}
	}
	return found
}

// killNewest kills those of the processes that were started last, and reports whether there were
// any. Links of a chain of processes that each start the next one and end are gone when killMarked
// has got to them, and the newest process is one.
func killNewest(mark string) (found bool) {
	for range newestLooks {
		last := lastPid()
		for pid := last; pid > 1 && pid > last-newestPids; pid-- {
			if killIfMarked(pid, mark) {
				found = true
			}
		}
	}
	return found
}

// lastPid is the number that the kernel gave to a process or thread last, the fifth field of
// /proc/loadavg; 0: it does not say.
func lastPid() int {
	text, err := os.ReadFile("/proc/loadavg")
	f := strings.Fields(string(text))
	if err != nil || len(f) < 5 {
		return 0
	}
	pid, _ := strconv.Atoi(f[4])
	return pid
}

// killIfMarked kills a process that carries the mark in its environment, and reports whether it
// does.
func killIfMarked(pid int, mark string) bool {
	if pid == os.Getpid() {
		return false
	}
	want := []byte(sessionEnv + "=" + mark)
	for _, v := range bytes.Split(environment("/proc/"+strconv.Itoa(pid)), []byte{0}) {
		if bytes.Equal(v, want) {
			return unix.Kill(pid, unix.SIGKILL) == nil
		}
	}
	return false
}

// environment is that of the process of a folder of /proc. One that goes on without its main thread
// shows it with another thread.
func environment(dir string) []byte {
	if env, err := os.ReadFile(dir + "/environ"); err == nil && len(env) > 0 {
		return env
	}
	threads, _ := filepath.Glob(dir + "/task/[0-9]*")
	for _, t := range threads {
		if env, err := os.ReadFile(t + "/environ"); err == nil && len(env) > 0 {
			return env
		}
	}
	return nil
}
