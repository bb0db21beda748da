//go:build linux && amd64

package exec

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
	"github.com/rdmasim/rdmasim/attach/exec/tree"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
)

// session is one run: a machine, and the tree of processes that uses it.
type session struct {
	cfg      *Config
	m        *machine
	started  *started
	eng      *engine
	notes    *notifier
	files    *files
	channels *channels
	netlink  *netlinkServer
	procs    *processes
	ports    *portFiles
	outputs  outputs
	refusals refusals
	// faultsDone says what events of the plan of faults did.
	faultsDone []string
	counted    []countedFile                    // when the program had ended; nil: it was not started
	watchPorts bool                             // ports change by the plan of faults
	refused    func(format string, args ...any) // says why a call is refused; nil: nobody wants to know
	signals    chan os.Signal                   // to this process, since before the program was started
	asked      atomic.Bool                      // one of them that asks for the end has been passed on
}

// outputs are the files that a session writes.
type outputs struct {
	pcap, trace, uarlog, counters *outfile.File
}

// Run runs the program and returns its exit status, 128 and the number of a signal
// that ended it. The session ends with the program: what is left of its processes is
// killed. A *UsageError is a mistake of the caller; another error means that the
// program did not run, or that an output could not be written.
//
// Signals that ask for an end are passed on to the program. The end of the context ends what is
// done before the program is started, with outfile.ErrInterrupted, and nothing later.
func Run(ctx context.Context, cfg *Config) (status int, err error) {
	if len(cfg.Args) == 0 {
		return 0, &UsageError{errors.New("the program to run is missing: rdmasim exec [flags] -- PROGRAM [ARGUMENT...]")}
	}
	if cfg.Devices < 1 || cfg.Devices > MaxDevices {
		return 0, &UsageError{fmt.Errorf("--devices %d: a number from 1 to %d is needed", cfg.Devices, MaxDevices)}
	}
	if cfg.Guests < 0 || cfg.Devices+cfg.Guests > MaxDevices {
		return 0, &UsageError{fmt.Errorf("--guests %d: with %d devices of this machine a number up to %d is possible", cfg.Guests, cfg.Devices, MaxDevices-cfg.Devices)}
	}
	if err := cfg.checkWire(); err != nil {
		return 0, err
	}
	if err := checkFileSize(); err != nil {
		return 0, &UsageError{err}
	}
	path, err := findProgram(cfg.Args[0])
	if err != nil {
		return 0, err
	}
	if err := nested(path, cfg.Args); err != nil {
		return 0, err
	}
	// The child dies with the thread that starts it, and this one waits for its end.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own := *cfg
	own.Logf = sayLater(cfg.Logf)
	if len(own.Wire) > 0 { // peers remember what an earlier session has sent
		own.Seed ^= uint64(time.Now().UnixNano())
	}
	s := &session{cfg: &own, signals: make(chan os.Signal, 4)}
	s.refused = s.refusals.of(own.Logf)
	signal.Notify(s.signals, syscall.SIGTERM, syscall.SIGQUIT)
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if !signal.Ignored(sig) { // otherwise the program finds it ignored too
			signal.Notify(s.signals, sig)
		}
	}
	defer signal.Stop(s.signals)
	defer func() { stderr.finish(s.signals, s.asked.Load()) }()
	if err = s.prepare(ctx, path); err == nil && ctx.Err() != nil { // by a signal that came before those above were waited for, or since
		s.started.abandon()
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w before %s was started", outfile.ErrInterrupted, path)
	}
	if err != nil {
		s.outputs.abort()
		return 0, err
	}
	status, err = s.run()
	return status, errors.Join(err, s.close())
}

// prepare makes the machine, opens the outputs and starts the child, which waits.
func (s *session) prepare(ctx context.Context, path string) (err error) {
	if s.m, err = newMachine(s.cfg); err != nil {
		return err
	}
	if err := s.planFaults(); err != nil {
		return err
	}
	if err := s.openOutputs(ctx); err != nil {
		return err
	}
	var devices []tree.Device
	host := hostFiles()
	for _, d := range s.m.devs {
		t, err := s.m.describe(d, host)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		devices = append(devices, t)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("subreaper: %w", err)
	}
	interfaces, err := s.interfaces()
	if err != nil {
		return err
	}
	if s.started, err = start(ctx, s.cfg, path, devices, interfaces); err != nil {
		return err
	}
	if s.ports, err = newPortFiles(s.m, devices); err != nil {
		s.started.abandon()
		return err
	}
	s.started.watchFiles(s.m, devices)
	return nil
}

// interfaces are those of a network of the session's own, or none.
func (s *session) interfaces() ([]ownInterface, error) {
	if !s.cfg.OwnNetwork {
		return nil, nil
	}
	return s.m.ownInterfaces(), nil
}

func (s *session) openOutputs(ctx context.Context) error {
	for _, o := range []struct {
		name string
		f    **outfile.File
	}{{s.cfg.Pcap, &s.outputs.pcap}, {s.cfg.Trace, &s.outputs.trace}, {s.cfg.UARLog, &s.outputs.uarlog}, {s.cfg.Counters, &s.outputs.counters}} {
		if o.name == "" {
			continue
		}
		f, err := outfile.Create(ctx, o.name)
		if errors.Is(err, outfile.ErrInterrupted) {
			return err
		}
		if err != nil {
			return &UsageError{err}
		}
		*o.f = f
	}
	if s.outputs.pcap != nil {
		return s.m.net.Capture(s.outputs.pcap, s.cfg.PcapLimit)
	}
	return nil
}

// run lets the program start and serves it until it ends.
func (s *session) run() (status int, err error) {
	defer s.started.endJanitor()
	s.procs = newProcesses(s.m, s.cfg)
	s.m.flush = s.procs.streams.Flush
	if s.eng, err = newEngine(s.m, s.procs.streams, s.cfg.Throttle); err != nil {
		return 0, err
	}
	s.m.timers.eng = s.eng
	if s.outputs.uarlog != nil {
		s.eng.log = &uarLog{text: &uarText{w: bufio.NewWriter(s.outputs.uarlog)}}
	}
	if s.files, err = newFiles(s); err != nil {
		return 0, err
	}
	if s.channels, err = newChannels(s); err != nil {
		return 0, err
	}
	s.eng.reap, s.eng.showPorts = s.files.reap, s.ports.show
	if s.netlink, err = newNetlinkServer(s); err != nil {
		return 0, err
	}
	defer s.netlink.close()
	l := seccomp.NewListener(s.started.listener)
	l.Settle = l.Settle || s.cfg.settle
	s.notes = newNotifier(s, l)
	go s.eng.run()
	go s.files.watch()
	go s.channels.watch()
	go s.notes.run()
	defer s.stop()
	if s.m.guests != nil {
		if err := s.serveGuests(); err != nil {
			return 0, err
		}
		defer s.m.guests.Close()
	}
	closeWire, err := s.serveWire()
	if err != nil {
		return 0, err
	}
	defer closeWire()
	if s.watchPorts {
		s.eng.do(func() { err = s.ports.watch() })
		if err != nil {
			return 0, err
		}
	}
	if err := s.started.release(); err != nil {
		return 0, err
	}
	defer s.forward()() // the file of the program may be on a file system that takes its time
	if err := s.started.execError(); err != nil {
		_, _ = unix.Wait4(s.started.pid, nil, 0, nil)
		return 0, &UsageError{err}
	}
	status = s.wait()
	s.killRest()
	if !s.notes.askedForDevices.Load() && s.notes.ioctls.Load() == 0 && !s.started.filesWereRead() {
		say("%s made no RDMA call: it does not use libibverbs, or did not find it", plain.Line(s.cfg.Args[0]))
	}
	s.eng.do(s.sayFaults)
	s.eng.do(s.sayWires)
	s.eng.do(s.countAll)
	if s.cfg.Logf != nil {
		s.eng.do(func() {
			for _, d := range s.m.devs {
				s.cfg.Logf("%s: %s sent over the cable or switch, %d received", d.name, plain.Count(d.packets("port_xmit_packets"), "packet"), d.packets("port_rcv_packets"))
			}
			s.cfg.Logf("%v of virtual time, %d queues in shared memory, %d copied", s.m.eng.Now(), s.files.shared, s.files.copied)
		})
		s.cfg.Logf("%d calls were taken; %d were gone, by a signal or the end of their thread, before they could be", s.notes.taken.Load(), s.notes.untaken.Load())
		if l := s.leftover(); l != "" {
			s.cfg.Logf("not given back: %s", l)
		}
	}
	return status, s.eng.err()
}

// defaultGrace is how long a program may take to end after SIGTERM, by default: less than the 10 s
// after which container engines and batch systems kill the supervisor itself.
const defaultGrace = 5 * time.Second

// forward passes on what asks the program to end, and kills it with its children when it has not
// ended after the grace period. Signals of the terminal reach it by themselves.
func (s *session) forward() (stop func()) {
	grace := cmp.Or(s.cfg.Grace, defaultGrace)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var late <-chan time.Time
		for {
			select {
			case sig := <-s.signals:
				if sig == syscall.SIGTERM || sig == syscall.SIGHUP {
					s.asked.Store(true)
					_ = unix.Kill(s.started.pid, sig.(syscall.Signal))
					// A program that is stopped takes the signal now, as below timeout.
					_ = unix.Kill(s.started.pid, unix.SIGCONT)
					if late == nil { // timeout sends the same signal twice
						late = time.After(grace)
					}
				}
			case <-late:
				say("%s is killed with its children: it has not ended %v after it was asked to (--grace)", plain.Line(s.cfg.Args[0]), grace)
				_ = s.killAll()
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

// wait reaps children until the program has ended.
func (s *session) wait() int {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case err == unix.EINTR || err == nil && pid != s.started.pid:
			if pid == s.started.janitor {
				s.started.janitorSocket = -1 // it was killed
			}
		case err != nil:
			return 1
		case ws.Exited():
			return ws.ExitStatus()
		case ws.Signaled():
			return 128 + int(ws.Signal())
		}
	}
}

// stop ends the goroutines.
func (s *session) stop() {
	s.notes.stop()
	s.eng.do(func() {
		s.channels.closeAll()
		s.files.closeAll()
	})
	s.eng.stop()
	s.files.stop()
	s.channels.stop()
}

// close writes what is still to be written.
func (s *session) close() error {
	err := s.closeCapture()
	if c := s.m.net.Captured(); c.LeftOut > 0 {
		say("%s ends after %d frames, %d bytes; %d later frames are left out: --pcap-limit raises the limit, and 0 removes it",
			plain.Line(s.cfg.Pcap), c.Frames, c.Bytes, c.LeftOut)
	}
	if f := s.outputs.trace; f != nil {
		err = errors.Join(err, f.Commit(s.m.eng.Spans.WriteJSON))
	}
	if f := s.outputs.uarlog; f != nil {
		err = errors.Join(err, f.Commit(func(io.Writer) error {
			if s.eng == nil || s.eng.log == nil || s.eng.log.text == nil {
				return nil
			}
			return s.eng.log.text.w.Flush()
		}))
	}
	switch f := s.outputs.counters; {
	case f == nil:
	case s.counted == nil:
		f.Abort()
	default:
		err = errors.Join(err, f.Commit(s.writeCounters))
	}
	return err
}

// closeCapture ends the machine, which completes the capture.
func (s *session) closeCapture() error {
	if s.outputs.pcap == nil {
		return s.m.close()
	}
	return s.outputs.pcap.Commit(func(io.Writer) error { return s.m.close() })
}

// abort discards the outputs of a session that did not begin.
func (o *outputs) abort() {
	for _, f := range []*outfile.File{o.pcap, o.trace, o.uarlog, o.counters} {
		if f != nil {
			f.Abort()
		}
	}
}
