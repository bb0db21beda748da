//go:build linux && amd64

package exec

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	osexec "os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/attach/exec/procmem"
	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/roce/fault"
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
		os.Exit(outer(os.Args[2]))
	}
	if len(os.Args) > 1 && os.Args[1] == wireArg {
		os.Exit(testWire(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == benchArg {
		os.Exit(testBench(os.Args[2:]))
	}
	if len(os.Args) > 5 && os.Args[1] == networkArg {
		os.Exit(testNetwork(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == fstatArg {
		os.Exit(testFstat(nil))
	}
	if len(os.Args) > 1 && os.Args[1] == walkArg {
		os.Exit(walk())
	}
	if len(os.Args) > 1 && os.Args[1] == idleArg {
		os.Exit(0)
	}
	status := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(status)
}

func command(args []string) int {
	cfg := &Config{Seed: 1}
	f := flag.NewFlagSet("exec", flag.ExitOnError)
	f.IntVar(&cfg.Devices, "devices", 1, "")
	f.StringVar(&cfg.Pcap, "pcap", "", "")
	f.Uint64Var(&cfg.PcapLimit, "pcap-limit", 0, "")
	f.StringVar(&cfg.Trace, "trace", "", "")
	f.StringVar(&cfg.UARLog, "uar-log", "", "")
	f.StringVar(&cfg.Counters, "counters", "", "")
	f.BoolVar(&cfg.Throttle, "throttle", false, "")
	f.BoolVar(&cfg.StaticUARs, "static", false, "")
	f.BoolVar(&cfg.PathCalls, "path-calls", false, "")
	f.BoolVar(&cfg.settle, "settle", false, "")
	f.BoolVar(&cfg.NoODP, "no-odp", false, "")
	f.BoolVar(&cfg.NoSubnetManager, "no-sm", false, "")
	f.BoolVar(&cfg.OwnNetwork, "own-network", false, "")
	f.BoolVar(&cfg.CopyQueues, "copy-queues", false, "")
	f.DurationVar(&cfg.Grace, "grace", 0, "")
	interrupted := f.Bool("interrupted", false, "as if a signal had come before the program is started")
	fail := f.Int("fail", 0, "which operation on an output fails")
	f.IntVar(&cfg.LimitObjects, "limit-objects", 0, "")
	f.IntVar(&cfg.LimitFiles, "limit-files", 0, "")
	f.Uint64Var(&cfg.LimitMemory, "limit-memory", 0, "")
	memory := f.Bool("memory-scheme", false, "page faults name memory and not queues")
	verbose := f.Bool("v", false, "")
	bandwidth := f.Uint64("bandwidth", 0, "of the link in bit/s")
	name := f.String("profile", profile.Default, "")
	faults := f.String("fault", "", "")
	loss := f.Uint("loss", 0, "in a million")
	f.Func("wire", "places, or addresses of this machine", func(s string) error { return parseAll(s, parsePlace, &cfg.Wire) })
	f.IntVar(&cfg.WireMTU, "mtu", 0, "")
	f.Func("allow", "networks", func(s string) error { return parseAll(s, wire.ParseAllow, &cfg.Allow) })
	_ = f.Parse(args)
	var err error
	if *faults != "" {
		if cfg.Faults, err = fault.Parse("faults.yaml", []byte(*faults)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 125
		}
	}
	if *loss != 0 {
		cfg.Faults = Loss(cfg.Faults, uint32(*loss))
	}
	if cfg.Profile, err = profile.Load(*name); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	cfg.Args = f.Args()
	cfg.Profile.HCA.ODP.MemoryScheme = cfg.Profile.HCA.ODP.MemoryScheme || *memory
	if *bandwidth != 0 {
		cfg.Profile.Link.Bandwidth = *bandwidth
	}
	if *verbose {
		cfg.Logf = func(format string, a ...any) { fmt.Fprintf(os.Stderr, format+"\n", a...) }
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if *interrupted {
		stop()
	}
	calls := 0
	ctx = outfile.WithFail(ctx, func(_ outfile.Operation, path string) error {
		if calls++; calls != *fail {
			return nil
		}
		fmt.Println("failed:", path)
		return syscall.EIO
	})
	status, err := Run(ctx, cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	return status
}

// parseAll appends the values of a list to another.
func parsePlace(s string) (wire.Place, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return wire.At(a), nil
	}
	return wire.ParsePlace(s)
}

func parseAll[T any](s string, parse func(string) (T, error), to *[]T) error {
	for _, word := range strings.Split(s, ",") {
		v, err := parse(word)
		if err != nil {
			return err
		}
		*to = append(*to, v)
	}
	return nil
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
	if testing.Short() {
		return []user{{"root", 0}}
	}
	return []user{{"root", 0}, {"nobody", 65534}}
}

// each runs a test as every user.
func each(t *testing.T, f func(t *testing.T, u user)) {
	for _, u := range users() {
		t.Run(u.name, func(t *testing.T) { f(t, u) })
	}
}

var times = flag.Int("exec.times", 1, "how many times as often tests repeat what they try")

var perftestAll = flag.Bool("perftest.all", false, "all ping-pongs and runs of perftest for each user and way to reach queues")

// runs tells whether a user runs the i-th of programs that differ in their verbs, sizes and
// numbers. The first ones, kept of them, differ in what the supervisor does for them; the others
// only in what libmlx5 and the device do, of which the suite has cases, and run with -perftest.all.
// How bytes are reached depends on the user and not on the program: beside root an ordinary user
// runs the first.
func (u user) runs(i, kept int) bool {
	if int(u.id) != os.Geteuid() {
		kept = min(kept, 1)
	}
	return i < kept || *perftestAll
}

// sessions are those of some sessions' flags that make a difference to a user: nobody but root has
// the device files by a mount, and so for all others -path-calls changes nothing. What other flags
// do does not depend on the user: beside root an ordinary user has the first of them, or all with
// -exec.times.
func (u user) sessions(flags ...[]string) [][]string {
	if u.id == 0 {
		return flags
	}
	if int(u.id) != os.Geteuid() && *times == 1 {
		return flags[:1]
	}
	return slices.DeleteFunc(slices.Clone(flags), func(f []string) bool { return slices.Contains(f, "-path-calls") })
}

// limit ends a session that hangs. It is so long that no session reaches it only because the
// machine is slow or busy.
const limit = 20 * time.Minute

// soon ends the wait for a session that has nothing to compute: it starts a shell, or ends what it
// started. A machine on which dozens of others want the CPUs needs seconds for that.
const soon = 5 * time.Minute

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
	c := u.command(args...)
	var buf bytes.Buffer
	c.Stdout, c.Stderr = &buf, &buf
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, &buf
}

// command is a session that is not started yet.
func (u user) command(args ...string) *osexec.Cmd {
	mustForce(args)
	// /proc/self/exe: an ordinary user may not walk to the folder of the test binary.
	c := osexec.Command("/proc/self/exe", append([]string{runArg}, args...)...)
	c.Dir = "/"
	if int(u.id) != os.Geteuid() {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: u.id, Gid: u.id}}
	}
	return c
}

// perftestCall is a program of perftest with its flags.
var perftestCall = regexp.MustCompile(`\bib_(?:write|read|send|atomic)_(?:bw|lat)( [^;&|\n]*)`)

// mustForce wants -F of each program of perftest. Without it, one that cannot measure the frequency
// of its clock, as on a busy machine, ends with status 1 after its test.
func mustForce(args []string) {
	for _, call := range perftestCall.FindAllStringSubmatch(strings.Join(args, " "), -1) {
		if !slices.Contains(strings.Fields(call[1]), "-F") {
			panic("add -F to" + call[1] + ", or a busy machine fails it")
		}
	}
}

// needEnv is set by `make test`, which has installed what the tests need.
const needEnv = "RDMASIM_NEED_RDMA"

// needs skips a test that runs an RDMA program, but for `make test`.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	if os.Getenv(needEnv) == "" {
		t.Skipf("needs %v of Debian's ibverbs-utils, ibverbs-providers, perftest or gcc, and %s=1, as make test sets it", programs, needEnv)
	}
	for _, p := range programs {
		if _, err := osexec.LookPath(p); err != nil {
			t.Fatalf("%s is set, and %s is not installed", needEnv, p)
		}
	}
}

// needsLibrary skips a test that compiles a program of libibverbs and libmlx5 where these are
// missing, but for `make test`.
func needsLibrary(t *testing.T) {
	t.Helper()
	_, noGCC := osexec.LookPath("gcc")
	_, noHeader := os.Stat("/usr/include/infiniband/mlx5dv.h")
	_, noDriver := os.Stat("/etc/libibverbs.d/mlx5.driver")
	if os.Getenv(needEnv) == "" && (noGCC != nil || noHeader != nil || noDriver != nil) {
		t.Skipf("needs gcc, libibverbs-dev and ibverbs-providers; with %s=1, as make test sets it, they must be there", needEnv)
	}
}

// canListen skips a test where the machine does not allow system calls to be supervised.
func canListen(t *testing.T) {
	t.Helper()
	out, status := users()[0].session(t, "--", "true")
	for _, e := range []error{seccomp.ErrNoNotification, seccomp.ErrOuterListener, procmem.ErrRights} {
		if status == 125 && strings.Contains(out, e.Error()) && os.Getenv(needEnv) == "" {
			t.Skip("needs a machine that lets programs be supervised: " + strings.TrimSpace(out))
		}
	}
}

// port finds a TCP port that is free.
func port(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// listens is a shell command that waits until the process of the variable s, or one of its
// children, listens on a TCP port, and fails when that process has ended, or has not begun to after
// five minutes.
func listens(port int) string {
	return fmt.Sprintf(`(i=0; until grep -q ':%04X 0*:0000 0A' /proc/net/tcp /proc/net/tcp6; do
  i=$((i+1)); [ $i -lt 15000 ] || { echo no server; exit 1; }
  kill -0 $s || exit 1
  sleep 0.02
done)`, port)
}

// pair runs a server and a client of a program in one session and wants both to
// succeed. The flags go before the program's arguments.
func (u user) pair(t *testing.T, flags []string, server, client string) string {
	t.Helper()
	p := port(t)
	script := fmt.Sprintf(`
%s -p %d >/dev/null & s=$!
%s || exit 9
%s -p %d 127.0.0.1; c=$?
[ $c -eq 0 ] || kill $s # it would wait for another client
wait $s; s=$?
echo "status $s $c"
exit $((s+c))`, server, p, listens(p), client, p)
	out, status := u.session(t, append(flags, "--", "sh", "-c", script)...)
	if status != 0 || !strings.Contains(out, "status 0 0") {
		t.Fatalf("%s | %s: status %d\n%s", server, client, status, out)
	}
	return out
}

// quote is a word as the shell needs it.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// shared is a folder that every user may write to.
func shared(t *testing.T) string {
	t.Helper()
	dir, err := openFolder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func openFolder() (string, error) {
	dir, err := os.MkdirTemp("", "rdmasim-test-")
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	return dir, err
}
