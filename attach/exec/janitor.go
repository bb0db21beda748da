//go:build linux && amd64

package exec

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// sessionEnv marks the processes of a session.
const sessionEnv = "RDMASIM_EXEC_SESSION"

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
	for range 50 {
		if !killMarked(mark) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	_ = os.RemoveAll(dir)
}

// killMarked kills the processes that carry the mark in their environment, and reports
// whether there were any.
func killMarked(mark string) bool {
	want := []byte(sessionEnv + "=" + mark)
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	found := false
	for _, d := range dirs {
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil || pid == os.Getpid() {
			continue
		}
		env := environment(d)
		for _, v := range bytes.Split(env, []byte{0}) {
			if bytes.Equal(v, want) {
				found = true
				_ = unix.Kill(pid, unix.SIGKILL)
				break
			}
		}
	}
	return found
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
