//go:build linux && amd64

package exec

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/procmem"
	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
)

func TestExitStatus(t *testing.T) {
	canListen(t)
	each(t, func(t *testing.T, u user) {
		for script, want := range map[string]int{"exit 7": 7, "kill -TERM $$": 128 + 15, "true": 0} {
			if out, status := u.session(t, "--", "sh", "-c", script); status != want {
				t.Errorf("%s: status %d, want %d:\n%s", script, status, want, out)
			}
		}
		out, status := u.session(t, "--", "no-such-program")
		if status != 125 || !strings.Contains(out, "no-such-program") {
			t.Errorf("status %d:\n%s", status, out)
		}
	})
}

func TestSessionInASessionIsTheSame(t *testing.T) {
	needs(t, "ibv_devices")
	out, status := users()[0].session(t, "--", "/proc/"+strconv.Itoa(os.Getpid())+"/exe", runArg, "--", "ibv_devices")
	if status != 0 || !strings.Contains(out, "mlx5_0") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

// outerArg makes the test binary run a session below a filter of its own: what the
// kernel does not give it here, old kernels and containers do not give either.
const outerArg = "exec-outer"

// Cases of outerArg.
const (
	outerListener = "listener" // supervises system calls itself
	outerOld      = "old"      // a kernel that does not know the listener
	outerAncient  = "ancient"  // or no filter at all
	outerRights   = "rights"   // memory of other processes is forbidden
)

func outer(kind string) int {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 1
	}
	var err error
	switch kind {
	case outerListener:
		prog := seccomp.Compile(nil)
		f := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
		fd, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&f)))
		if e != 0 {
			return 2
		}
		// It stays a supervisor while it has the listener.
		_, err = unix.FcntlInt(fd, unix.F_SETFD, 0)
	case outerOld:
		err = refuse(unix.SYS_SECCOMP, unix.EINVAL)
	case outerAncient:
		err = refuse(unix.SYS_SECCOMP, unix.ENOSYS)
	case outerRights:
		err = refuse(unix.SYS_PROCESS_VM_READV, unix.EPERM)
	}
	if err != nil {
		return 2
	}
	_ = syscall.Exec("/proc/self/exe", []string{"test", runArg, "--", "true"}, os.Environ())
	return 3
}

// refuse makes a system call of this thread and of what it becomes fail.
func refuse(nr uint32, e unix.Errno) error {
	prog := seccomp.Compile([]seccomp.Rule{{Nr: nr, Ret: seccomp.Errno(e)}})
	f := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&f)), 0, 0)
}

// idleArg makes the test binary a program that has no libraries and does nothing.
const idleArg = "exec-idle"

func TestOneSentenceSaysWhatIsMissing(t *testing.T) {
	canListen(t)
	for kind, want := range map[string]error{
		outerListener: seccomp.ErrOuterListener, outerOld: seccomp.ErrNoNotification, outerAncient: seccomp.ErrNoNotification,
		outerRights: procmem.ErrRights,
	} {
		out, err := osexec.Command("/proc/self/exe", outerArg, kind).CombinedOutput()
		if err == nil || strings.TrimSpace(string(out)) != want.Error() {
			t.Errorf("%s: %v: %s", kind, err, out)
		}
	}
	foreign := filepath.Join(shared(t), "foreign")
	// An ELF header of i386, as far as it is looked at.
	header := append([]byte("\x7fELF\x01\x01\x01"), make([]byte, 9)...)
	if err := os.WriteFile(foreign, append(header, 2, 0, 3, 0), 0o755); err != nil {
		t.Fatal(err)
	}
	if text, status := users()[0].session(t, "--", foreign); status != 125 || !strings.Contains(text, "not built for x86-64") {
		t.Errorf("i386: status %d: %s", status, text)
	}
	static := fmt.Sprintf("/proc/%d/exe", os.Getpid())
	for _, program := range [][]string{{"true"}, {static, idleArg}, {"sh", "-c", "cat /dev/null"}} {
		text, status := users()[0].session(t, append([]string{"--"}, program...)...)
		if status != 0 || strings.Count(text, "\n") != 1 || !strings.Contains(text, "made no RDMA call") {
			t.Errorf("%v, without libibverbs: status %d: %s", program, status, text)
		}
	}
}

// TestInterruptedBeforeTheStart: a signal that comes while the session is made is not lost, and
// nothing is left of the session.
func TestInterruptedBeforeTheStart(t *testing.T) {
	canListen(t)
	each(t, func(t *testing.T, u user) {
		out, status := u.session(t, "-interrupted", "-uar-log", filepath.Join(shared(t), "log"), "--", "sh", "-c", "echo it runs")
		if status != 125 || !strings.Contains(out, "interrupted before") || strings.Contains(out, "it runs") {
			t.Errorf("status %d:\n%s", status, out)
		}
	})
}

// TestStoppedBeforeTheStart asks a session to end whose child was stopped before it could become
// the program.
func TestStoppedBeforeTheStart(t *testing.T) {
	canListen(t)
	for range 200 { // how long the child is there depends on the machine
		run, out := users()[0].start(t, "-grace", "1h", "--", "true")
		over := make(chan error, 1)
		go func() { over <- run.Wait() }()
		if !stopChild(run.Process.Pid, over) {
			continue
		}
		timer := time.AfterFunc(soon, func() { _ = run.Process.Kill() })
		_ = run.Process.Signal(unix.SIGTERM)
		<-over
		if status := run.ProcessState.ExitCode(); !timer.Stop() || status != 125 && status != 128+15 {
			t.Errorf("status %d, within %v of SIGTERM:\n%s", status, soon, out)
		}
		return
	}
	t.Skip("needs a look at the child before it becomes the program, and none of 200 sessions left time for one")
}

// TestStoppedProgramEnds asks a session to end whose program is stopped: it takes the signal.
func TestStoppedProgramEnds(t *testing.T) {
	canListen(t)
	run, out := users()[0].start(t, "-grace", "1m", "--", "sh", "-c", "kill -STOP $$")
	timer := time.AfterFunc(soon, func() { _ = run.Process.Kill() })
	if !inTime(func() bool {
		return slices.ContainsFunc(descendants(run.Process.Pid, run.Process.Pid), func(pid int) bool { return stateLetter(pid) == "T" })
	}) {
		t.Errorf("the program does not stop for %v", soon)
	}
	_ = run.Process.Signal(unix.SIGTERM) // SIGHUP may be ignored here, as below nohup
	_ = run.Wait()
	if status := run.ProcessState.ExitCode(); !timer.Stop() || status != 128+int(unix.SIGTERM) {
		t.Errorf("status %d:\n%s", status, out)
	}
}

// stopChild stops the child of a supervisor before it becomes the program, and reports false when
// the session is over before.
func stopChild(supervisor int, over <-chan error) bool {
	isChild := func(pid int) bool {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return bytes.Contains(b, []byte(childArg))
	}
	for {
		for _, pid := range descendants(supervisor, supervisor) {
			if !isChild(pid) || unix.Kill(pid, unix.SIGSTOP) != nil {
				continue
			}
			for state := ""; state != "T"; { // or it has ended
				if state = stateLetter(pid); state == "" {
					break
				}
			}
			if isChild(pid) {
				return true
			}
			_ = unix.Kill(pid, unix.SIGCONT)
		}
		select {
		case <-over:
			return false
		default:
		}
	}
}

// TestIgnoredHangup: what nohup starts goes on after SIGHUP, and the program finds the signal
// ignored, as without a supervisor.
func TestIgnoredHangup(t *testing.T) {
	canListen(t)
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT) // a child of this process inherits it
	defer signal.Reset(syscall.SIGHUP, syscall.SIGINT)
	u := users()[0]
	if out, status := u.session(t, "--", "sh", "-c", "kill -INT $$; exit 6"); status != 6 {
		t.Errorf("SIGINT: status %d, want 6:\n%s", status, out)
	}
	const program = `kill -HUP $PPID; sleep 0.2; kill -HUP $$; exit 7`
	if out, status := u.session(t, "--", "sh", "-c", program); status != 7 {
		t.Errorf("status %d, want 7:\n%s", status, out)
	}
}

// TestSignalsToTheSupervisor opens folders while signals interrupt the system calls of the
// supervisor.
func TestSignalsToTheSupervisor(t *testing.T) {
	needs(t, "ibv_devices")
	bin := compile(t, "signals")
	each(t, func(t *testing.T, u user) {
		if out, status := u.session(t, "-path-calls", "--", bin, strconv.Itoa(1500**times)); status != 0 || !strings.Contains(out, "all opened") {
			t.Errorf("status %d:\n%s", status, out)
		}
	})
}

// TestQueuesOfThreads runs a program whose threads make queues at the same time on one
// context, with more thread domains than a page offset has numbers, and checks all that
// it moves, in memory that is shared and that is not.
func TestQueuesOfThreads(t *testing.T) {
	needs(t, "ibv_devices")
	bin := compile(t, "queues")
	threads, rounds := 8, 3**times
	if testing.Short() {
		threads, rounds = 4, 2
	}
	each(t, func(t *testing.T, u user) {
		for _, flags := range u.sessions([]string{}, []string{"-static"}, []string{"-copy-queues"}, []string{"-static", "-copy-queues"}) {
			args := append([]string{"-v"}, flags...)
			out, status := u.session(t, append(args, "--", bin, strconv.Itoa(threads), strconv.Itoa(rounds), "300")...)
			queues := 2 * (threads*rounds + 1)
			want := fmt.Sprintf("%d queues in shared memory, 0 copied", queues)
			if slices.Contains(flags, "-copy-queues") {
				want = fmt.Sprintf("0 queues in shared memory, %d copied", queues)
			}
			if status != 0 || !strings.Contains(out, "all moved") || !strings.Contains(out, want) {
				t.Errorf("%v: status %d, want %s:\n%s", flags, status, want, out)
			}
		}
	})
}

// TestThrottle runs on a line that is slower than the simulator. Virtual time must not
// outrun real time, and so bandwidth cannot exceed the line's, by whatever clock.
func TestThrottle(t *testing.T) {
	needs(t, "ib_write_bw")
	const (
		bandwidth = 1_000_000_000 // a frame takes less than what virtual time leaps over
		messages  = 1500
		size      = 65536
	)
	each(t, func(t *testing.T, u user) {
		cmd := fmt.Sprintf("ib_write_bw -F -s %d -n %d --report_gbits -d ", size, messages)
		begin := time.Now()
		out := u.pair(t, []string{"-v", "-throttle", "-devices", "2", "-bandwidth", strconv.Itoa(bandwidth)}, cmd+"mlx5_0", cmd+"mlx5_1")
		real := time.Since(begin)
		m := regexp.MustCompile(`(?m)^([0-9.]+)(m?s) of virtual time`).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("no virtual time:\n%s", out)
		}
		virtual, err := time.ParseDuration(m[1] + m[2])
		if err != nil {
			t.Fatal(err)
		}
		if least := time.Duration(messages*size*8) * time.Second / bandwidth; virtual < least {
			t.Errorf("%v of virtual time: less than the line needs, %v", virtual, least)
		}
		if real < virtual {
			t.Errorf("%v of virtual time passed in %v", virtual, real)
		}
		m = regexp.MustCompile(fmt.Sprintf(`(?m)^ *%d +%d +\S+ +(\S+)`, size, messages)).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("no result:\n%s", out)
		}
		// perftest counts cycles, and takes the CPU's nominal frequency for its clock.
		if gbits, err := strconv.ParseFloat(m[1], 64); err != nil || gbits*1e9 > 1.05*bandwidth {
			t.Errorf("%v Gb/s on a line of 1: %v", m[1], err)
		}
	})
}

// TestNothingIsLeft kills supervisor, program, or all of a session with one signal, at
// odd moments from the start of the session on.
func TestNothingIsLeft(t *testing.T) {
	needs(t, "ib_write_bw")
	rounds := 12 * *times // as often as there are ways to kill and moments, twice
	if testing.Short() {
		rounds = 6
	}
	each(t, func(t *testing.T, u user) {
		tmp := shared(t)
		t.Setenv("TMPDIR", tmp)
		before := leftovers()
		r := rand.New(rand.NewPCG(uint64(u.id), 1))
		for i := range rounds {
			mark := fmt.Sprintf("rdmasim-test-%d-%d", os.Getpid(), i)
			script := fmt.Sprintf(`X=%s; export X; ib_write_bw -F -p %d >/dev/null & ib_write_bw -F -p %d >/dev/null & wait`, mark, port(t), port(t))
			c, _ := u.start(t, "--", "sh", "-c", script)
			if i%2 == 0 { // in its own start, or later
				time.Sleep(time.Duration(r.IntN(30_000)) * time.Microsecond)
			} else {
				time.Sleep(time.Duration(r.IntN(600)) * time.Millisecond)
			}
			victims := []int{c.Process.Pid}
			switch i % 3 {
			case 1:
				victims = programs(c.Process.Pid)
			case 2:
				victims = append(programs(c.Process.Pid), c.Process.Pid)
			}
			for _, pid := range victims {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
			if len(victims) == 0 { // it had not started anything
				_ = c.Process.Kill()
			}
			timer := time.AfterFunc(limit, func() { _ = c.Process.Kill() })
			_ = c.Wait()
			if !timer.Stop() {
				t.Fatalf("round %d, killed %v: the session goes on", i, victims)
			}
			deadline := time.Now().Add(limit)
			for {
				left, _ := filepath.Glob(tmp + "/*")
				for _, x := range leftovers() {
					if !slices.Contains(before, x) {
						left = append(left, x)
					}
				}
				alive := withEnv("X=" + mark)
				if len(left) == 0 && len(alive) == 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("round %d, killed %v: %v, processes %v are left", i, victims, left, alive)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
	})
}

// programs lists the processes of a session's program.
func programs(supervisor int) (l []int) {
	for _, pid := range descendants(supervisor, supervisor) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && bytes.Contains(b, []byte(sessionEnv+"=")) {
			l = append(l, pid)
		}
	}
	return l
}

// leftovers lists the mounts of this namespace and the shared memory that look like
// a session's.
func leftovers() (l []string) {
	b, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "rdmasim-exec") || strings.Contains(line, "/dev/infiniband") {
			l = append(l, strings.TrimSpace(line))
		}
	}
	for _, dir := range []string{"/dev/shm", "/dev/infiniband", "/sys/class/infiniband"} {
		names, _ := os.ReadDir(dir)
		for _, n := range names {
			if strings.Contains(n.Name(), "uverbs") || strings.Contains(n.Name(), "rdmasim") {
				l = append(l, filepath.Join(dir, n.Name()))
			}
		}
	}
	return l
}

// withEnv lists the processes that have a variable.
func withEnv(v string) (l []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		if b, err := os.ReadFile(d + "/environ"); err == nil && bytes.Contains(b, append([]byte(v), 0)) {
			l = append(l, filepath.Base(d))
		}
	}
	return l
}

// TestProcessesWithoutTheirMainThreadEnd ends a session whose processes go on without their main
// thread, after SIGTERM, with the program, and after a supervisor that is killed.
func TestProcessesWithoutTheirMainThreadEnd(t *testing.T) {
	canListen(t)
	bin := compile(t, "mainless")
	each(t, func(t *testing.T, u user) {
		for _, c := range []struct {
			name   string
			args   []string
			signal unix.Signal
			status int
		}{
			{"asked", nil, unix.SIGTERM, 128 + 9},
			{"left behind", []string{"child"}, 0, 7},
			{"supervisor killed", []string{"child", "stay"}, unix.SIGKILL, -1},
			{"supervisor of the program killed", nil, unix.SIGKILL, -1},
		} {
			dir := shared(t)
			ready := filepath.Join(dir, "ready")
			t.Setenv("READY", ready)
			run, out := u.start(t, append([]string{"-grace", "50ms", "--", bin}, c.args...)...)
			run.WaitDelay = time.Second // whoever is left has the output open
			timer := time.AfterFunc(soon, func() { _ = run.Process.Kill() })
			for begin := time.Now(); c.signal != 0 && time.Since(begin) < soon; time.Sleep(time.Millisecond) {
				if _, err := os.Stat(ready); err == nil {
					_ = run.Process.Signal(c.signal)
					break
				}
			}
			_ = run.Wait()
			if !timer.Stop() || run.ProcessState.ExitCode() != c.status {
				t.Errorf("%s: status %d, want %d, within %v:\n%s", c.name, run.ProcessState.ExitCode(), c.status, soon, out)
			}
			if !inTime(func() bool { return len(withThreads("READY="+ready)) == 0 }) {
				left := withThreads("READY=" + ready)
				t.Errorf("%s: processes %v are left", c.name, left)
				for _, pid := range left {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			}
		}
	})
}

// TestChainsOfProcessesEnd ends a session in which no process lives for long, but for the chains
// that they make.
func TestChainsOfProcessesEnd(t *testing.T) {
	canListen(t)
	bin := compile(t, "hops")
	each(t, func(t *testing.T, u user) {
		for _, c := range []struct {
			flags  []string
			wait   string // how long the program does
			kill   bool   // the supervisor
			status int
		}{
			{nil, "20", false, 7}, {[]string{"-no-odp"}, "20", false, 7}, {[]string{"-no-odp"}, "60000", true, -1},
		} {
			flags := c.flags
			mark := fmt.Sprintf("CHAIN=%d-%d", os.Getpid(), u.id)
			t.Setenv("CHAIN", strings.TrimPrefix(mark, "CHAIN="))
			ready := filepath.Join(shared(t), "ready")
			t.Setenv("READY", ready)
			run, out := u.start(t, append(flags, "--", bin, "4", c.wait)...)
			run.WaitDelay = time.Second // whoever is left has the output open
			if c.kill {
				run.WaitDelay = soon // the janitor takes its time
			}
			timer := time.AfterFunc(soon, func() { _ = run.Process.Kill() })
			if c.kill {
				if !inTime(func() bool { _, err := os.Stat(ready); return err == nil }) {
					t.Errorf("the program does not start within %v", soon)
				}
				_ = run.Process.Kill()
			}
			began := time.Now()
			_ = run.Wait()
			if c.kill && time.Since(began) > run.WaitDelay {
				t.Errorf("%v: %v after the supervisor was killed processes are left", flags, run.WaitDelay)
			}
			if status := run.ProcessState.ExitCode(); !timer.Stop() || status != c.status {
				t.Errorf("%v: status %d, want %d:\n%s", flags, status, c.status, out)
			}
			for range 20 {
				left := withThreads(mark)
				for _, pid := range left {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
				if len(left) > 0 {
					t.Fatalf("%v: processes %v are left", flags, left)
				}
			}
		}
	})
}

// inTime waits for a condition.
func inTime(is func() bool) bool {
	for deadline := time.Now().Add(soon); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// withThreads lists the processes of which a thread has a variable.
func withThreads(v string) (l []int) {
	threads, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*/environ")
	for _, name := range threads {
		if b, err := os.ReadFile(name); err == nil && bytes.Contains(b, append([]byte(v), 0)) {
			pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
			l = append(l, pid)
		}
	}
	return l
}
