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

// TestHiddenProcessesEnd kills a supervisor whose processes can no longer be found by their environment.
func TestHiddenProcessesEnd(t *testing.T) {
	canListen(t)
	bin := compile(t, "hidden")
	each(t, func(t *testing.T, u user) {
		ready := filepath.Join(shared(t), "ready")
		t.Setenv("READY", ready)
		run, out := u.start(t, "--", bin)
		run.WaitDelay = time.Second // whoever is left has the output open
		var pids []string
		if !inTime(func() bool {
			text, _ := os.ReadFile(ready)
			pids = strings.Fields(string(text))
			return len(pids) == 2
		}) {
			t.Errorf("the program does not start within %v: %s", soon, out)
		}
		waitForLook(t, run.Process.Pid)
		_ = run.Process.Kill()
		_ = run.Wait()
		for _, f := range pids {
			pid, _ := strconv.Atoi(f)
			if !inTime(func() bool { _, lives := processTree()[pid]; return !lives }) {
				t.Errorf("process %d is left", pid)
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	})
}

// waitForLook returns when the janitor of a supervisor has looked at all processes once at least: it reads a file of each, which the kernel
// counts. A look that began before reads each once more.
func waitForLook(t *testing.T, supervisor int) {
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
		return
	}
	t.Error("there is no janitor")
}

// TestFamily: what a known process has started since is known with it, and a process that only has a known one's number is not.
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
