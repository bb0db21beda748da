//go:build linux && amd64

package exec

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sessionEnv marks the processes of a session.
const sessionEnv = "RDMASIM_EXEC_SESSION"

// janitorPause lies between two looks that find nothing, quietLooks is how many of them there are at the end. newestLooks is how often the newest
// processes are looked at after a look at all of them that finds nothing, and newestPids how many: together some 50 ms.
const (
	janitorPause = 20 * time.Millisecond
	quietLooks   = 3
	newestLooks  = 500
	newestPids   = 3
)

// janitor outlives a supervisor that was killed: it ends the programs, whose calls
// are no longer answered, and removes the work folder. Its arguments are the session's mark
// and the folder; a supervisor that ends in order sends a byte first.
func janitor() {
	if len(os.Args) != 4 {
		return
	}
	mark, dir := os.Args[2], os.Args[3]
	var b [1]byte
	for {
		n, err := unix.Read(handshakeFD, b[:])
		if err == unix.EINTR {
			continue
		}
		if n == 1 {
			return
		}
		break
	}
	for begin, quiet := time.Now(), 0; quiet < quietLooks && time.Since(begin) < killPatience; {
		quiet++
		if killMarked(mark) || killNewest(mark) {
			quiet = 0
		}
		if quiet > 0 {
			time.Sleep(janitorPause)
		}
	}
	_ = os.RemoveAll(dir)
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

// killNewest kills those of the processes that were started last, and reports whether there were any. Links of a chain of processes that each
// start the next one and end are gone when killMarked has got to them, and the newest process is one.
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

// lastPid is the number that the kernel gave to a process or thread last, the fifth field of /proc/loadavg; 0: it does not say.
func lastPid() int {
	text, err := os.ReadFile("/proc/loadavg")
	f := strings.Fields(string(text))
	if err != nil || len(f) < 5 {
		return 0
	}
	pid, _ := strconv.Atoi(f[4])
	return pid
}

// killIfMarked kills a process that carries the mark in its environment, and reports whether it does.
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

// environment is that of the process of a folder of /proc. One that goes on without its main thread shows it with another thread.
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
