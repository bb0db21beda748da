//go:build linux && amd64

package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/procmem"
	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
	"github.com/rdmasim/rdmasim/attach/exec/tree"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// started is the program's first process, which waits for permission to execute the program.
type started struct {
	pid           int
	sock          int
	listener      int
	tree          *tree.Tree   // answers path calls; nil when the files are mounted
	work          *outfile.Dir // folder that the janitor removes, with the socket of the wire
	janitor       int          // its pid
	janitorSocket int          // its socket
	reads         int          // a descriptor that says whether files of devices were opened where they are mounted; -1: none
}

// findProgram is the program's path. A program of another architecture would slip
// through the filter, and is refused.
func findProgram(name string) (string, error) {
	path, err := osexec.LookPath(name)
	if err != nil && !errors.Is(err, osexec.ErrDot) {
		return "", &UsageError{fmt.Errorf("program %s: %w", name, errors.Unwrap(err))}
	}
	f, err := os.Open(path)
	if err != nil {
		return path, nil // it may be executable and not readable
	}
	defer f.Close()
	var h [20]byte
	if _, err := f.ReadAt(h[:], 0); err != nil || string(h[:4]) != "\x7fELF" {
		return path, nil // a script
	}
	// e_ident[EI_CLASS] 2 is 64 bits; e_machine 62 is x86-64.
	if h[4] != 2 || h[18] != 62 || h[19] != 0 {
		return "", &UsageError{fmt.Errorf("program %s: it is not built for x86-64, and only the system calls of that architecture are intercepted", path)}
	}
	return path, nil
}

// start makes the child, its janitor and the files of the devices. The calling
// goroutine stays on its thread, since the child dies with the thread that made it.
func start(ctx context.Context, cfg *Config, path string, devices []tree.Device, interfaces []ownInterface) (s *started, err error) {
	s = &started{sock: -1, listener: -1, janitorSocket: -1, reads: -1}
	defer func() {
		if err != nil {
			s.abandon()
		}
	}()
	s.work = outfile.PlanDir("rdmasim-exec")
	mark := s.work.Path
	planPorts(devices, s.work.Path)
	// The janitor comes first, so that it removes all that is made from here on.
	if err := s.startJanitor(mark); err != nil {
		return s, err
	}
	if err := s.work.Make(); err != nil {
		return s, &UsageError{err}
	}
	o := order{Path: path, Args: cfg.Args, Mount: os.Geteuid() == 0 && !cfg.PathCalls, ODP: !cfg.NoODP, WorkDir: s.work.Path, Devices: devices, Interfaces: interfaces}
	if !cfg.CopyQueues {
		o.Env = shareEnv()
	}
	r, err := s.startChild(ctx, &o, mark)
	if err != nil {
		return s, err
	}
	if err := s.checkMemory(&r); err != nil {
		return s, err
	}
	if err := os.Chmod(s.work.Path, 0o755); err != nil { //nolint:gosec // programs of other users look into it
		return s, err
	}
	if r.Mounted {
		s.takeReads(r.Reads)
		return s, nil
	}
	s.tree, err = tree.Build(s.work.Path, devices)
	return s, err
}

// spawn starts this binary again in a hidden role, with a socket as descriptor 3.
func spawn(files []uintptr, env []string, attr *syscall.SysProcAttr, args ...string) (pid, sock int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, -1, err
	}
	defer unix.Close(pair[1])
	list := append([]uintptr{0, 1, 2, uintptr(pair[1])}, files...)
	pid, err = syscall.ForkExec("/proc/self/exe", append([]string{"rdmasim"}, args...), &syscall.ProcAttr{Env: env, Files: list, Sys: attr})
	if err != nil {
		_ = unix.Close(pair[0])
		return 0, -1, fmt.Errorf("start a process: %w", err)
	}
	return pid, pair[0], nil
}

// startJanitor starts it in a session of its own, so that what kills the supervisor's
// process group spares it.
func (s *started) startJanitor(mark string) (err error) {
	s.janitor, s.janitorSocket, err = spawn(nil, []string{}, &syscall.SysProcAttr{Setsid: true}, janitorArg, mark, s.work.Path)
	return err
}

func (s *started) startChild(ctx context.Context, o *order, mark string) (r report, err error) {
	b, err := json.Marshal(o)
	if err != nil {
		return r, err
	}
	fd, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC)
	if err != nil {
		return r, err
	}
	defer unix.Close(fd)
	if _, err := unix.Pwrite(fd, b, 0); err != nil {
		return r, err
	}
	env := append(os.Environ(), sessionEnv+"="+mark)
	env = append(append(env, o.Env...), s.wireEnv()...)
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if len(o.Interfaces) > 0 {
		ownNetworkAttr(attr)
	}
	if s.pid, s.sock, err = spawn([]uintptr{uintptr(fd)}, env, attr, childArg); err != nil {
		if len(o.Interfaces) > 0 && errors.Is(err, unix.EPERM) {
			err = fmt.Errorf("--own-network: this kernel lets only root make a network namespace: %w", err)
		}
		return r, err
	}
	// It may take its time, and be stopped: whoever asks for the end does not wait for it.
	stop := context.AfterFunc(ctx, func() { _ = unix.Kill(s.pid, unix.SIGKILL) })
	defer stop()
	return s.receive()
}

// receive takes a report, and the listener that comes with it.
func (s *started) receive() (r report, err error) {
	buf, oob := make([]byte, 1<<16), make([]byte, unix.CmsgSpace(4))
	var n, on int
	for {
		n, on, _, _, err = unix.Recvmsg(s.sock, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil || n == 0 {
		return r, errors.New("the child process ended before it could start the program")
	}
	if err := json.Unmarshal(buf[:n], &r); err != nil {
		return r, err
	}
	switch {
	case r.Outer:
		return r, seccomp.ErrOuterListener
	case r.Kernel:
		return r, seccomp.ErrNoNotification
	case r.Err != "":
		return r, errors.New(r.Err)
	}
	if msgs, err := unix.ParseSocketControlMessage(oob[:on]); err == nil && len(msgs) == 1 {
		if fds, err := unix.ParseUnixRights(&msgs[0]); err == nil && len(fds) == 1 {
			s.listener = fds[0]
			return r, nil
		}
	}
	return r, errors.New("the child process sent no listener")
}

// checkMemory reads a word of the child that is known.
func (s *started) checkMemory(r *report) error {
	p, err := procmem.Open(s.pid)
	if err != nil {
		return err
	}
	defer p.Close()
	b := make([]byte, 8)
	if err := p.ReadAt(mem.VA(r.Probe), b); err != nil {
		if errors.Is(err, procmem.ErrRights) {
			return procmem.ErrRights
		}
		return err
	}
	var word uint64
	for i, x := range b {
		word |= uint64(x) << (8 * i)
	}
	if word != probeWord {
		return errors.New("the memory of the child process does not hold the word that the child put there")
	}
	return nil
}

// release lets the child become the program. An error is that of execve.
func (s *started) release() error {
	if err := unix.Send(s.sock, []byte{1}, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("the child process is gone: %w", err)
	}
	return nil
}

// execError waits until the child has become the program, or says why it could not.
func (s *started) execError() error {
	buf := make([]byte, 1<<12)
	for {
		n, err := unix.Read(s.sock, buf)
		switch {
		case err == unix.EINTR:
		case err != nil || n == 0:
			return nil // closed by execve
		default:
			var r report
			if err := json.Unmarshal(buf[:n], &r); err != nil {
				return err
			}
			return errors.New(strings.TrimSpace(r.Err))
		}
	}
}

// abandon undoes what start did.
func (s *started) abandon() {
	if s.pid > 0 {
		_ = unix.Kill(s.pid, unix.SIGKILL)
		_, _ = unix.Wait4(s.pid, nil, 0, nil)
	}
	for _, fd := range []int{s.sock, s.listener, s.reads} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	s.endJanitor()
}

// takeReads takes a descriptor of the child.
func (s *started) takeReads(fd int) {
	p, err := unix.PidfdOpen(s.pid, 0)
	if err != nil || fd < 0 {
		return
	}
	defer unix.Close(p)
	if s.reads, err = unix.PidfdGetfd(p, fd, 0); err != nil {
		s.reads = -1
	}
}

// watchFiles adds to what filesWereRead knows of the files that lie elsewhere: those that change
// with a port, and counters that are still 0.
func (s *started) watchFiles(m *machine, devices []tree.Device) {
	if s.reads < 0 {
		return
	}
	watch := func(path string) { _, _ = unix.InotifyAddWatch(s.reads, path, unix.IN_OPEN|unix.IN_ONESHOT) }
	for k, d := range m.devs {
		for _, p := range devices[k].Ports {
			watch(p.Live)
		}
		for _, files := range d.counters.all() {
			for _, f := range files {
				watch(fmt.Sprintf("/proc/self/fd/%d", f.fd))
			}
		}
	}
}

// filesWereRead reports whether a program has opened files of devices where they are mounted.
func (s *started) filesWereRead() bool {
	if s.reads < 0 {
		return false
	}
	var b [16 * (unix.SizeofInotifyEvent + unix.NAME_MAX + 1)]byte
	for {
		n, err := unix.Read(s.reads, b[:])
		if err != nil || n == 0 {
			return false
		}
		for at := 0; at+unix.SizeofInotifyEvent <= n; { // others tell of the end of the mounts
			e := (*unix.InotifyEvent)(unsafe.Pointer(&b[at]))
			if e.Mask&unix.IN_OPEN != 0 {
				return true
			}
			at += unix.SizeofInotifyEvent + int(e.Len)
		}
	}
}

// endJanitor asks the janitor to end, and removes the work folder.
func (s *started) endJanitor() {
	if s.work != nil {
		_ = s.work.Remove()
	}
	if s.janitorSocket < 0 {
		return
	}
	_ = unix.Send(s.janitorSocket, []byte{1}, unix.MSG_NOSIGNAL)
	_ = unix.Close(s.janitorSocket)
	s.janitorSocket = -1
	_, _ = unix.Wait4(s.janitor, nil, 0, nil)
}

// Nested reports whether this process runs in a session already, whose program Run then becomes.
func Nested() bool { return os.Getenv(sessionEnv) != "" }

// nested executes the program in place of this process when this process runs in a session
// already, whose supervisor sees the system calls of the program as well.
func nested(path string, args []string) error {
	if !Nested() {
		return nil
	}
	runtime.LockOSThread()
	return syscall.Exec(path, args, os.Environ())
}

// shareEnv are the variables that put the memory of queues into the device file, but
// for those that the user has set.
func shareEnv() (l []string) {
	for _, v := range queueEnv {
		if _, set := os.LookupEnv(v); !set {
			l = append(l, v+"="+preferContig)
		}
	}
	return l
}
