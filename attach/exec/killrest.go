//go:build linux && amd64

package exec

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// killPatience is how long the last processes of a session may take to end, and killPause how long
// a look at them waits for what has been killed.
const (
	killPatience = time.Minute
	killPause    = 200 * time.Microsecond
)

// killAll kills the program and its children once, and says whom. wait reaps the program.
func (s *session) killAll() (killed []int) {
	killed = descendants(os.Getpid(), s.started.janitor)
	for _, pid := range killed {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return killed
}

// killRest kills what is left of the program's processes: children of this one, or of one of those,
// since it is their subreaper. It may be a chain of processes that each start another one and end,
// so that none is there any more when it has been found. So the ended ones stay children until the
// list has been read, no more are started where the filter sees it, and the list is read again and
// again.
func (s *session) killRest() {
	s.notes.ending.Store(true)
	for begin := time.Now(); ; {
		left, err := children(s.started.janitor)
		if err != nil { // a kernel without CONFIG_PROC_CHILDREN
			left = descendants(os.Getpid(), s.started.janitor)
		}
		if len(left) == 0 {
			return
		}
		if time.Since(begin) > killPatience {
			say("processes %v have not ended %v after they were killed", left, killPatience)
			return
		}
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if !reap() {
			time.Sleep(killPause)
		}
	}
}

// reap takes the children that have ended, and reports whether there were any.
func reap() (any bool) {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WALL, nil)
		if err != nil || pid <= 0 {
			return any
		}
		any = true
	}
}

// children lists the children of this process, also those that have ended and were not waited for,
// without except.
func children(except int) (l []int, err error) {
	threads, err := filepath.Glob("/proc/self/task/[0-9]*")
	if err != nil {
		return nil, err
	}
	for _, t := range threads {
		text, err := os.ReadFile(t + "/children")
		if err != nil {
			if _, gone := os.Stat(t); gone != nil {
				continue
			}
			return nil, err
		}
		for _, f := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(f); err == nil && pid != except {
				l = append(l, pid)
			}
		}
	}
	return l, nil
}
