//go:build linux && amd64

package exec

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestHiddenProcessesEnd kills a supervisor whose processes can no longer be found by their
// environment. Without paging one of them is started when the supervisor has ended and before the
// janitor looks again, since the janitor is stopped until then; with it none can be.
func TestHiddenProcessesEnd(t *testing.T) {
	canListen(t)
	bin := compile(t, "hidden")
	each(t, func(t *testing.T, u user) {
		u.hiddenProcessesEnd(t, 2, "--", bin)
		u.hiddenProcessesEnd(t, 3, "-no-odp", "--", bin)
	})
}

// hiddenProcessesEnd has a program start two processes before the supervisor's end, and all others
// after it.
func (u user) hiddenProcessesEnd(t *testing.T, all int, args ...string) {
	t.Helper()
	ready := filepath.Join(shared(t), "ready")
	t.Setenv("READY", ready)
	run, out := u.start(t, args...)
	run.WaitDelay = time.Second // whoever is left has the output open
	var pids []string
	wait := func(n int) {
		t.Helper()
		if !inTime(func() bool {
			text, _ := os.ReadFile(ready)
			pids = strings.Fields(string(text))
			return len(pids) == n
		}) {
			t.Errorf("%d of %d processes start within %v: %s", len(pids), n, soon, out)
		}
	}
	wait(2)
	janitor := waitForLook(t, run.Process.Pid)
	_ = unix.Kill(janitor, unix.SIGSTOP)
	if !inTime(func() bool { return stateLetter(janitor) == "T" }) {
		t.Errorf("the janitor does not stop within %v", soon)
	}
	_ = run.Process.Kill()
	_ = run.Wait()
	wait(all)
	_ = unix.Kill(janitor, unix.SIGCONT)
	for _, f := range pids {
		pid, _ := strconv.Atoi(f)
		if !inTime(func() bool { _, lives := processTree()[pid]; return !lives }) {
			t.Errorf("process %d is left", pid)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// waitForLook returns when the janitor of a supervisor has looked at all processes once at least:
// it reads a file of each, which the kernel counts. A look that began before reads each once more.
// It returns the janitor's number.
func waitForLook(t *testing.T, supervisor int) (janitor int) {
	t.Helper()
	for _, pid := range descendants(supervisor, supervisor) {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); !bytes.Contains(b, []byte(janitorArg)) {
			continue
		}
		reads := func() (n int) {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
			if err != nil {
				t.Skipf("needs the count of a process's reads (CONFIG_TASK_IO_ACCOUNTING): %v", err)
			}
			_, after, _ := strings.Cut(string(b), "syscr: ")
			_, _ = fmt.Sscan(after, &n)
			return n
		}
		const readsOfAFile = 2 // one finds its end
		want := reads() + 2*readsOfAFile*len(processTree()) + 100
		if !inTime(func() bool { return reads() >= want }) {
			t.Errorf("the janitor does not look at all processes within %v", soon)
		}
		return pid
	}
	t.Fatal("there is no janitor")
	return 0
}

// stateLetter is the state of a process, empty if there is none.
func stateLetter(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))[statState]
}

// TestFamily: what a known process has started since is known with it, and a process that only has
// a known one's number is not.
func TestFamily(t *testing.T) {
	self := os.Getpid()
	tree := map[int]procEntry{self: {1, "1"}, 1 << 24: {1, "7"}, 1<<24 + 1: {1 << 24, "8"}, 1<<24 + 2: {1, "9"}}
	f := family{1 << 24: "7", 1<<24 + 2: "5"}
	found := f.under(tree)
	if len(found) != 2 || f[1<<24+1] != "8" || f[1<<24+2] != "5" {
		t.Errorf("%v, then %v", found, f)
	}
	before := len(f)
	f.join(tree, 1<<24) // not the parent of this process
	if len(f) != before {
		t.Errorf("%v of a supervisor that has ended", f)
	}
}
