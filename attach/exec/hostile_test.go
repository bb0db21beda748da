//go:build linux && amd64

package exec

import (
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/procmem"
	"github.com/rdmasim/rdmasim/attach/sharedmem"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

// built are the programs of testdata that have been compiled, in a folder where every user can run
// them; TestMain removes it.
var built struct {
	sync.Mutex
	dir   string
	paths map[string]string
}

// compile builds a program of testdata, once for all tests.
func compile(t *testing.T, name string) string {
	t.Helper()
	needsLibrary(t)
	built.Lock()
	defer built.Unlock()
	if built.paths[name] != "" {
		return built.paths[name]
	}
	if built.dir == "" {
		dir, err := openFolder()
		if err != nil {
			t.Fatal(err)
		}
		built.dir, built.paths = dir, map[string]string{}
	}
	bin := filepath.Join(built.dir, name)
	if out, err := osexec.Command("gcc", "-O1", "-Wall", "-Wno-unused-result", "-Werror", "-o", bin, "testdata/"+name+".c", "-libverbs", "-lmlx5", "-lpthread").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	built.paths[name] = bin
	return bin
}

// TestMemoryFilesKeepTheirSize changes the size of a memory file, by each description that a
// program can get of it.
func TestMemoryFilesKeepTheirSize(t *testing.T) {
	m, err := newMemfd(4 * pageSize)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	f, err := m.open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int64{0, pageSize, 5 * pageSize} {
		if err := f.Truncate(size); !errors.Is(err, unix.EPERM) {
			t.Errorf("to %d bytes: %v, want EPERM", size, err)
		}
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); !errors.Is(err, unix.EPERM) {
		t.Errorf("a program's own seal: %v, want EPERM", err)
	}
}

func TestProgramCannotTakeMemoryFromTheSupervisor(t *testing.T) {
	needs(t, "ibv_devices")
	bin := compile(t, "truncate")
	each(t, func(t *testing.T, u user) {
		for _, flags := range [][]string{{}, {"-copy-queues"}, {"-static"}} {
			out, status := u.session(t, append(flags, "--", bin)...)
			if status != 0 || !strings.Contains(out, "all kept") {
				t.Errorf("%v: status %d:\n%s", flags, status, out)
			}
		}
	})
}

// TestProcessWithoutItsMainThread goes on with another thread.
func TestProcessWithoutItsMainThread(t *testing.T) {
	needs(t, "ibv_devices")
	bin := compile(t, "leader")
	each(t, func(t *testing.T, u user) {
		for _, flags := range [][]string{{}, {"-copy-queues"}} {
			if out, status := u.session(t, append(flags, "--", bin)...); status != 0 || !strings.Contains(out, "moved") {
				t.Errorf("%v: status %d:\n%s", flags, status, out)
			}
		}
	})
}

// TestNobodyWaitsForAnothersMmap has rounds in which the calls on one file are answered while an
// mmap of another waits: all but those in which the machine takes a second for ten calls, so on a
// busy one maybe few.
func TestNobodyWaitsForAnothersMmap(t *testing.T) {
	needs(t, "ibv_devices")
	bin := compile(t, "stall")
	each(t, func(t *testing.T, u user) {
		const rounds = 60
		out, status := u.session(t, "--", bin, strconv.Itoa(rounds))
		var answered int
		if _, err := fmt.Sscanf(out, "answered in %d of", &answered); err != nil || status != 0 || answered == 0 {
			t.Errorf("status %d, in each of %d rounds the calls come after the mmap:\n%s", status, rounds, out)
		}
	})
}

// TestAskedToEnd sends SIGTERM, once or again and again, to the supervisor of a program that ends
// by it, and of one that like its child does not.
func TestAskedToEnd(t *testing.T) {
	canListen(t)
	each(t, func(t *testing.T, u user) {
		const pause = `: > "$READY"; while :; do sleep 0.01; done`
		const stubborn = `trap "" TERM; sh -c '` + pause + `' & while :; do sleep 0.01; done`
		for name, c := range map[string]struct {
			grace, script string
			again         bool
			status        int
			says          string
		}{
			"ends":     {"1h", `trap "exit 9" TERM; ` + pause, false, 9, ""},
			"stubborn": {"50ms", stubborn, false, 128 + 9, "is killed with its children: it has not ended 50ms after it was asked to"},
			"often":    {"50ms", stubborn, true, 128 + 9, "is killed with its children"},
		} {
			ready := filepath.Join(shared(t), "ready")
			run, out := u.start(t, "-grace", c.grace, "--", "sh", "-c", "READY="+quote(ready)+"; export READY; "+c.script)
			ended := make(chan error, 1)
			go func() { ended <- run.Wait() }()
			late := time.After(soon)
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for sent, over := false, false; !over; {
				select {
				case <-ended:
					over = true
				case <-late:
					_ = run.Process.Kill()
					what := "program to make " + ready
					if sent {
						what = "session to end after SIGTERM"
					}
					t.Fatalf("%s, --grace %s: waited %v for the %s", name, c.grace, soon, what)
				case <-tick.C:
					if _, err := os.Stat(ready); err == nil && (!sent || c.again) {
						sent = true
						_ = run.Process.Signal(unix.SIGTERM)
					}
				}
			}
			if s := run.ProcessState.ExitCode(); s != c.status || !strings.Contains(out.String(), c.says) {
				t.Errorf("%s: status %d, want %d, and %q:\n%s", name, s, c.status, c.says, out)
			}
			if left := withEnv("READY=" + ready); len(left) > 0 {
				t.Errorf("%s: processes %v are left", name, left)
			}
		}
	})
}

// TestCaptureLimit captures more than it may.
func TestCaptureLimit(t *testing.T) {
	needs(t, "ibv_rc_pingpong")
	file := filepath.Join(shared(t), "w.pcapng")
	cmd := "ibv_rc_pingpong -g 0 -n 200"
	out := users()[0].pair(t, []string{"-pcap", file, "-pcap-limit", "20000"}, cmd, cmd)
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, packets, err := pcap.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, p := range packets {
		size += len(p.Data)
	}
	says := fmt.Sprintf("ends after %d frames, %d bytes; %d later frames are left out", len(packets), size, r.Interfaces[0].Dropped)
	if len(packets) == 0 || size > 20000 || r.Interfaces[0].Dropped == 0 || !strings.Contains(out, says) {
		t.Errorf("want %q:\n%s", says, out)
	}
}

// TestLimits makes of each kind as many objects as one process may have, and a child makes its own.
func TestLimits(t *testing.T) {
	needs(t, "ibv_devices")
	bin := compile(t, "limits")
	each(t, func(t *testing.T, u user) {
		out, status := u.session(t, "-static", "-limit-objects", "200", "-limit-files", "60", "-limit-memory", strconv.Itoa(4<<30), "--", bin,
			"pd", "mr", "mw", "ah", "cq", "srq", "qp", "file", "channel", "memory")
		if status != 0 {
			t.Errorf("status %d:\n%s", status, out)
		}
		for _, kind := range []string{"pd", "mr", "mw", "ah", "cq", "srq", "qp"} {
			if !strings.Contains(out, "\n"+kind+" 198 ENOMEM\n") && !strings.HasPrefix(out, kind+" 198 ENOMEM\n") { // and a PD and a CQ
				t.Errorf("%s: not 198 and ENOMEM:\n%s", kind, out)
			}
		}
		for _, want := range []string{"channel 57 EMFILE\n", "file 19 EMFILE\n", "memory 3 ENOMEM\n",
			"has 200 objects, the most that one may have: --limit-objects", "asks for more than 60 descriptors", "--limit-files",
			"cannot register more than 4096 MiB together: --limit-memory"} {
			if strings.Count(out, want) != 1 {
				t.Errorf("%q is said %d times, and not once:\n%s", want, strings.Count(out, want), out)
			}
		}
	})
}

// TestManyQueues compares the CPU time for a queue among few with that among many, whose mappings
// are as many.
func TestManyQueues(t *testing.T) {
	needs(t, "ibv_devices")
	if m, err := procmem.Open(os.Getpid()); err != nil || !m.TellsOne() {
		t.Skipf("needs Linux 6.11: before, all mappings of a process are read for a new queue: %v", err)
	}
	bin := compile(t, "manyqueues")
	spent := func(n int) time.Duration {
		c, out := users()[0].start(t, "--", bin, strconv.Itoa(n))
		timer := time.AfterFunc(limit, func() { _ = c.Process.Kill() })
		err := c.Wait()
		if !timer.Stop() || err != nil || !strings.Contains(out.String(), fmt.Sprintf("made %d", n)) {
			t.Fatalf("%d queues: %v\n%s", n, err, out)
		}
		return c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	const few, many = 250, 2000
	var each [2]time.Duration
	for range 3 { // another load on the machine costs time, too
		none := spent(0)
		each = [2]time.Duration{(spent(few) - none) / few, (spent(many) - none) / many}
		if each[1] < 2*each[0] {
			return
		}
	}
	t.Errorf("a queue takes %v among %d, and %v among %d", each[0], few, each[1], many)
}

// TestFaultsThatNobodyAnswers lets the device read memory whose faults wait for the program.
func TestFaultsThatNobodyAnswers(t *testing.T) {
	needs(t, "ibv_devices")
	bin := compile(t, "faults")
	each(t, func(t *testing.T, u user) {
		if out, status := u.session(t, "--", bin); status != 0 || !strings.Contains(out, "went on") {
			t.Errorf("status %d:\n%s", status, out)
		}
	})
}

// TestRegisterPageThatIsGone looks at pages of registers of which the kernel has taken one away.
func TestRegisterPageThatIsGone(t *testing.T) {
	sharedmem.SurviveFaults()
	e := &engine{}
	var files []int
	for range 3 {
		fd, err := unix.MemfdCreate("registers", unix.MFD_CLOEXEC)
		if err == nil {
			err = unix.Ftruncate(fd, pageSize)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		p := &page{uar: &uarPage{}}
		if p.mem, err = unix.Mmap(fd, 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			t.Fatal(err)
		}
		p.findRegisters(2 * maxHalf)
		e.addPage(p)
		files = append(files, fd)
	}
	gone := e.pages[1]
	if err := unix.Ftruncate(files[1], 0); err != nil {
		t.Fatal(err)
	}
	if e.poll() || len(e.pages) != 2 || slices.Contains(e.pages, gone) || e.poll() {
		t.Errorf("%d pages are left", len(e.pages))
	}
}

// TestMemoryFilesAreBounded fills the memory files that a program has.
func TestMemoryFilesAreBounded(t *testing.T) {
	needs(t, "ibv_devices")
	bin := compile(t, "memfiles")
	each(t, func(t *testing.T, u user) {
		out, status := u.session(t, "-limit-memory", strconv.Itoa(8<<20), "--", bin)
		for _, want := range []string{"4 queues, then Cannot allocate memory", "cannot take more than 8 MiB of shared memory together", "taken back"} {
			if status != 0 || !strings.Contains(out, want) {
				t.Errorf("status %d, want %q:\n%s", status, want, out)
			}
		}
	})
}

// TestOpensAreAnswered: a program that has no descriptor left, or wants one of O_PATH, which the
// kernel hands to nobody, gets an answer.
func TestOpensAreAnswered(t *testing.T) {
	needs(t, "ibv_devices")
	bin := compile(t, "opens")
	each(t, func(t *testing.T, u user) {
		for _, flags := range u.sessions(nil, []string{"-path-calls"}) {
			if out, status := u.session(t, append(append([]string{}, flags...), "--", bin)...); status != 0 {
				t.Errorf("%v: status %d:\n%s", flags, status, out)
			}
		}
	})
}
