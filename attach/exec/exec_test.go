//go:build linux && amd64

package exec

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/procmem"
	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// runArg makes the test binary run a program as `rdmasim exec` does.
const runArg = "exec-run"

func TestMain(m *testing.M) {
	Child()
	if len(os.Args) > 1 && os.Args[1] == runArg {
		os.Exit(command(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == outerArg {
		os.Exit(outer())
	}
	os.Exit(m.Run())
}

// outerArg makes the test binary a supervisor of system calls that runs a session.
const outerArg = "exec-outer"

func outer() int {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 1
	}
	fd, err := seccomp.Install(seccomp.Compile(nil))
	if err != nil {
		return 2
	}
	// It stays a supervisor while it has the listener.
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
		return 2
	}
	_ = syscall.Exec("/proc/self/exe", []string{"test", runArg, "--", "true"}, os.Environ())
	return 3
}

func command(args []string) int {
	p, err := profile.Load(profile.Default)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	cfg := &Config{Profile: p, Seed: 1}
	f := flag.NewFlagSet("exec", flag.ExitOnError)
	f.IntVar(&cfg.Devices, "devices", 1, "")
	f.StringVar(&cfg.Pcap, "pcap", "", "")
	f.StringVar(&cfg.UARLog, "uar-log", "", "")
	f.BoolVar(&cfg.Throttle, "throttle", false, "")
	f.BoolVar(&cfg.DynamicUARs, "dynamic", false, "")
	f.BoolVar(&cfg.PathCalls, "path-calls", false, "")
	f.BoolVar(&cfg.CopyQueues, "copy-queues", false, "")
	verbose := f.Bool("v", false, "")
	_ = f.Parse(args)
	cfg.Args = f.Args()
	if *verbose {
		cfg.Logf = func(format string, a ...any) { fmt.Fprintf(os.Stderr, format+"\n", a...) }
	}
	status, err := Run(context.Background(), cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	return status
}

// user is who runs a session.
type user struct {
	name string
	id   uint32
}

// users are root and an ordinary user for root, and the one who runs the test
// otherwise.
func users() []user {
	if os.Geteuid() != 0 {
		return []user{{"self", uint32(os.Geteuid())}}
	}
	return []user{{"root", 0}, {"nobody", 65534}}
}

// each runs a test as every user.
func each(t *testing.T, f func(t *testing.T, u user)) {
	for _, u := range users() {
		t.Run(u.name, func(t *testing.T) { f(t, u) })
	}
}

// limit bounds a session of a test, on a machine of any load.
const limit = 3 * time.Minute

// session runs a session to its end and returns its output.
func (u user) session(t *testing.T, args ...string) (out string, status int) {
	t.Helper()
	c, buf := u.start(t, args...)
	timer := time.AfterFunc(limit, func() { _ = c.Process.Kill() })
	err := c.Wait()
	if !timer.Stop() {
		t.Fatalf("%v: not over after %v:\n%s", args, limit, buf)
	}
	var exit *osexec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return buf.String(), c.ProcessState.ExitCode()
}

func (u user) start(t *testing.T, args ...string) (*osexec.Cmd, *bytes.Buffer) {
	t.Helper()
	// /proc/self/exe: an ordinary user may not walk to the folder of the test binary.
	c := osexec.Command("/proc/self/exe", append([]string{runArg}, args...)...)
	c.Dir = "/"
	if int(u.id) != os.Geteuid() {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.id, Gid: u.id}}
	}
	var buf bytes.Buffer
	c.Stdout, c.Stderr = &buf, &buf
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, &buf
}

// needEnv is set by `make test`, which has installed what the tests need.
const needEnv = "RDMASIM_NEED_RDMA"

// needs skips a test that runs an RDMA program, but for `make test`.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	if os.Getenv(needEnv) == "" {
		t.Skipf("runs %v of Debian's ibverbs-utils, ibverbs-providers or perftest: set %s=1, as make test does", programs, needEnv)
	}
	for _, p := range programs {
		if _, err := osexec.LookPath(p); err != nil {
			t.Fatalf("%s is set, and %s is not installed", needEnv, p)
		}
	}
}

// canListen skips a test where the machine lets nobody supervise system calls.
func canListen(t *testing.T) {
	t.Helper()
	out, status := users()[0].session(t, "--", "true")
	for _, e := range []error{seccomp.ErrNoNotification, seccomp.ErrOuterListener, procmem.ErrRights} {
		if status == 125 && strings.Contains(out, e.Error()) && os.Getenv(needEnv) == "" {
			t.Skip(strings.TrimSpace(out))
		}
	}
}

// port finds a TCP port that nobody uses.
func port(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// pair runs a server and a client of a program in one session and wants both to
// succeed. The flags go before the program's arguments.
func (u user) pair(t *testing.T, flags []string, server, client string) string {
	t.Helper()
	p := port(t)
	script := fmt.Sprintf(`
%s -p %d >/dev/null & s=$!
i=0
until grep -q ':%04X 0*:0000 0A' /proc/net/tcp /proc/net/tcp6; do
  i=$((i+1)); [ $i -gt 500 ] && echo no server && exit 9
  kill -0 $s || exit 8
  sleep 0.02
done
%s -p %d localhost; c=$?
wait $s; s=$?
echo "status $s $c"
exit $((s+c))`, server, p, p, client, p)
	out, status := u.session(t, append(flags, "--", "sh", "-c", script)...)
	if status != 0 || !strings.Contains(out, "status 0 0") {
		t.Fatalf("%s | %s: status %d\n%s", server, client, status, out)
	}
	return out
}

func TestDevices(t *testing.T) {
	needs(t, "ibv_devices")
	each(t, func(t *testing.T, u user) {
		for n, want := range map[string][]string{"1": {"mlx5_0"}, "3": {"mlx5_0", "mlx5_1", "mlx5_2"}} {
			out, status := u.session(t, "-devices", n, "--", "ibv_devices")
			if status != 0 || strings.Count(out, "mlx5_") != len(want) {
				t.Errorf("status %d, want %v:\n%s", status, want, out)
			}
			for _, d := range want {
				if !strings.Contains(out, d) {
					t.Errorf("%s is not listed:\n%s", d, out)
				}
			}
		}
	})
}

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

func TestOneSentenceSaysWhatIsMissing(t *testing.T) {
	canListen(t)
	c := osexec.Command("/proc/self/exe", outerArg)
	out, err := c.CombinedOutput()
	if err == nil || strings.TrimSpace(string(out)) != seccomp.ErrOuterListener.Error() {
		t.Errorf("below another supervisor: %v: %s", err, out)
	}
	foreign := filepath.Join(shared(t), "foreign")
	// An ELF header of i386, as far as it is looked at.
	header := append([]byte("\x7fELF\x01\x01\x01"), make([]byte, 9)...)
	if err := os.WriteFile(foreign, append(header, 2, 0, 3, 0), 0o755); err != nil {
		t.Fatal(err)
	}
	if text, status := users()[0].session(t, "--", foreign); status != 125 || !strings.Contains(text, "another architecture") {
		t.Errorf("i386: status %d: %s", status, text)
	}
	if text, status := users()[0].session(t, "--", "true"); status != 0 || !strings.Contains(text, "made no RDMA call") {
		t.Errorf("without libibverbs: status %d: %s", status, text)
	}
}

func TestDevinfo(t *testing.T) {
	needs(t, "ibv_devinfo")
	each(t, func(t *testing.T, u user) {
		out, status := u.session(t, "--", "ibv_devinfo", "-v")
		if status != 0 {
			t.Fatalf("status %d:\n%s", status, out)
		}
		for _, want := range []string{"PORT_ACTIVE", "Ethernet", "vendor_id:\t\t\t0x02c9", "RoCE v2"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in:\n%s", want, out)
			}
		}
	})
}

func TestPingpong(t *testing.T) {
	needs(t, "ibv_rc_pingpong")
	each(t, func(t *testing.T, u user) {
		for _, flags := range []string{"", "-e", "-c", "-s 65536 -n 50"} {
			t.Run("one device "+flags, func(t *testing.T) {
				cmd := "ibv_rc_pingpong -g 0 -n 200 " + flags
				u.pair(t, nil, cmd, cmd)
			})
			t.Run("two devices "+flags, func(t *testing.T) {
				cmd := "ibv_rc_pingpong -g 0 -n 200 " + flags
				u.pair(t, []string{"-devices", "2"}, cmd+" -d mlx5_0", cmd+" -d mlx5_1")
			})
			t.Run("copied queues "+flags, func(t *testing.T) {
				cmd := "ibv_rc_pingpong -g 0 -n 200 " + flags
				u.pair(t, []string{"-copy-queues"}, cmd, cmd)
			})
		}
	})
}

// TestOtherPingpongs runs the transports and queues that ibv_rc_pingpong does not have,
// polling and waiting for events, and completions with time stamps.
func TestOtherPingpongs(t *testing.T) {
	needs(t, "ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong", "ibv_rc_pingpong")
	each(t, func(t *testing.T, u user) {
		for _, cmd := range []string{
			"ibv_uc_pingpong -g 0 -n 100", "ibv_uc_pingpong -g 0 -n 100 -e", "ibv_ud_pingpong -g 0 -n 100", "ibv_ud_pingpong -g 0 -n 100 -e",
			"ibv_srq_pingpong -g 0 -n 100", "ibv_srq_pingpong -g 0 -n 100 -e", "ibv_rc_pingpong -g 0 -n 100 -t",
		} {
			t.Run(cmd, func(t *testing.T) { u.pair(t, nil, cmd, cmd) })
		}
		t.Run("two devices", func(t *testing.T) {
			cmd := "ibv_ud_pingpong -g 0 -n 100 -e -d mlx5_"
			u.pair(t, []string{"-devices", "2"}, cmd+"0", cmd+"1")
		})
	})
}

// TestRefusedProgram runs a program that cannot do without what is not there.
func TestRefusedProgram(t *testing.T) {
	needs(t, "ibv_xsrq_pingpong")
	each(t, func(t *testing.T, u user) {
		out, status := u.session(t, "--", "ibv_xsrq_pingpong", "-g", "0")
		if status != 1 || !strings.Contains(out, "Couldn't Open the XRC Domain 95") { // EOPNOTSUPP
			t.Errorf("status %d:\n%s", status, out)
		}
	})
}

// TestRegisters runs queue pairs that share registers, on both kinds of registers, and
// looks at what was stored there.
func TestRegisters(t *testing.T) {
	needs(t, "ib_write_bw", "ibv_rc_pingpong")
	each(t, func(t *testing.T, u user) {
		for _, flags := range [][]string{{}, {"-dynamic"}, {"-copy-queues"}, {"-dynamic", "-copy-queues"}} {
			t.Run(strings.Join(flags, " "), func(t *testing.T) {
				u.pair(t, flags, "ib_write_bw -F -q 8 -n 100", "ib_write_bw -F -q 8 -n 100")
				for _, c := range []struct {
					env, kind string
				}{{"", "blueflame"}, {"MLX5_SHUT_UP_BF=1 ", "doorbell"}} {
					log := filepath.Join(shared(t), "log")
					cmd := c.env + "ibv_rc_pingpong -g 0 -c -n 50"
					u.pair(t, append(flags, "-uar-log", log), cmd, cmd)
					b, err := os.ReadFile(log)
					if err != nil {
						t.Fatal(err)
					}
					// Each post of a ping-pong is answered before the next: none is overwritten.
					if n := strings.Count(string(b), " "+c.kind+" "); n != 100 {
						t.Errorf("%s: %d times %s, want 50 of each side:\n%s", cmd, n, c.kind, b)
					}
				}
			})
		}
	})
}

// TestQueueMemory looks at where queues are reached, with and without sharing, and
// where the user has said where they are.
func TestQueueMemory(t *testing.T) {
	needs(t, "ibv_rc_pingpong")
	each(t, func(t *testing.T, u user) {
		for _, c := range []struct {
			flags  []string
			env    string
			shared int
		}{
			{nil, "", 4}, {[]string{"-dynamic"}, "", 4}, {[]string{"-copy-queues"}, "", 0},
			{nil, "MLX_QP_ALLOC_TYPE=ANON MLX_CQ_ALLOC_TYPE=ANON ", 0}, {nil, "MLX_CQ_ALLOC_TYPE=ANON ", 2},
			{nil, "MLX_QP_ALLOC_TYPE=CONTIG ", 4}, {nil, "RDMAV_FORK_SAFE=1 ", 4},
			{[]string{"-copy-queues"}, "MLX_QP_ALLOC_TYPE=PREFER_CONTIG ", 0},
		} {
			cmd := c.env + "ibv_rc_pingpong -g 0 -c -n 50"
			out := u.pair(t, append([]string{"-v"}, c.flags...), cmd, cmd)
			if want := fmt.Sprintf("%d queues in shared memory, %d copied", c.shared, 4-c.shared); !strings.Contains(out, want) {
				t.Errorf("%v %s: want %s:\n%s", c.flags, cmd, want, out)
			}
		}
	})
}

// shared is a folder that every user may write to.
func shared(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rdmasim-test-")
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// TestPerftest runs each program with several queue pairs and, where it can, with all
// sizes, in both directions, and waiting for events.
func TestPerftest(t *testing.T) {
	each(t, func(t *testing.T, u user) {
		for _, c := range []struct {
			program string
			flags   []string
		}{
			{"ib_write_bw", []string{"-n 100", "-q 8 -n 50", "-b -n 100", "-a -n 5"}},
			{"ib_read_bw", []string{"-n 100", "-q 8 -n 50", "-b -n 100", "-a -n 5"}},
			{"ib_send_bw", []string{"-n 100", "-q 8 -n 50", "-b -n 100", "-a -n 5", "-e -n 100"}},
			{"ib_atomic_bw", []string{"-n 100", "-q 8 -n 50", "-b -n 100"}},
			{"ib_write_lat", []string{"-n 100", "-a -n 5"}},
			{"ib_read_lat", []string{"-n 100", "-a -n 5"}},
			{"ib_send_lat", []string{"-n 100", "-a -n 5", "-e -n 100"}},
			{"ib_atomic_lat", []string{"-n 100"}},
			{"ib_send_bw", []string{"-c UD -n 100", "-c UD -e -n 100", "-c UC -n 100", "--use-srq -n 100", "-c UD --use-srq -n 100", "-c UD -g -x 1 -n 100"}},
			{"ib_send_lat", []string{"-c UD -n 100", "-c UD -e -n 100", "-c UC -n 100", "--use-srq -e -n 100", "-c UD -g -x 1 -n 100"}},
			{"ib_write_bw", []string{"-c UC -n 100", "-c UC -q 8 -b -n 50"}},
			{"ib_write_lat", []string{"-c UC -n 100"}},
			{"ib_read_bw", []string{"-e -n 100"}},
		} {
			for _, flags := range c.flags {
				t.Run(c.program+" "+flags, func(t *testing.T) {
					needs(t, c.program)
					cmd := c.program + " -F -d mlx5_0 " + flags
					u.pair(t, nil, cmd, cmd)
				})
			}
		}
	})
}

// TestNothingIsLeft kills supervisor, program or all of a session at odd moments.
func TestNothingIsLeft(t *testing.T) {
	needs(t, "ib_write_bw")
	each(t, func(t *testing.T, u user) {
		tmp := shared(t)
		t.Setenv("TMPDIR", tmp)
		for i := range 6 {
			mark := fmt.Sprintf("rdmasim-test-%d-%d", os.Getpid(), i)
			script := fmt.Sprintf(`X=%s; export X; ib_write_bw -F -p %d >/dev/null & ib_write_bw -F -p %d >/dev/null & wait`, mark, port(t), port(t))
			c, _ := u.start(t, "--", "sh", "-c", script)
			time.Sleep(time.Duration(i*60) * time.Millisecond)
			_ = c.Process.Kill()
			_ = c.Wait()
			deadline := time.Now().Add(10 * time.Second)
			for {
				left, _ := filepath.Glob(tmp + "/*")
				alive := withEnv("X=" + mark)
				if len(left) == 0 && len(alive) == 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("round %d: folders %v, processes %v are left", i, left, alive)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
	})
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
