//go:build linux && amd64

package pci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/rdmasim/rdmasim/attach/pci/vfiouser"
	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/verbs/remotewire"
)

// Server offers functions on their sockets.
type Server struct {
	m         *machine
	cfg       Config
	sockets   []string
	listeners []*vfiouser.Listener
	tester    *vfiouser.Listener // nil: a guest has no access to the wire
	serving   sync.WaitGroup
	pcap      *outfile.File
}

// Start makes the functions and their sockets. A *UsageError is a mistake of the caller. The end of
// the context ends only the wait for the reader of a capture that is a pipe.
func Start(ctx context.Context, cfg *Config) (s *Server, err error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s = &Server{cfg: *cfg}
	if s.sockets, err = cfg.Sockets(); err != nil {
		return nil, err
	}
	lan, err := openLAN(cfg)
	if err != nil {
		return nil, &UsageError{err}
	}
	defer func() {
		if err != nil && lan != nil {
			_ = lan.Close()
		}
	}()
	s.m = newMachine(cfg, lan)
	if cfg.Faults != nil {
		if err := s.m.net.Plan(cfg.Faults); err != nil {
			return nil, &UsageError{err}
		}
	}
	if err := s.listen(); err != nil {
		return nil, err
	}
	if err := s.offerTester(); err != nil {
		s.closeListeners()
		return nil, err
	}
	if err := s.capture(ctx); err != nil {
		s.closeListeners()
		return nil, err
	}
	s.serveTester()
	s.m.listenToLAN()
	go s.m.run()
	s.serve()
	return s, nil
}

// check refuses what cannot be offered.
func (cfg *Config) check() error {
	if cfg.Functions < 1 || cfg.Functions > MaxFunctions {
		return &UsageError{fmt.Errorf("--functions %d: a number from 1 to %d is needed", cfg.Functions, MaxFunctions)}
	}
	if cfg.Socket == "" {
		return &UsageError{errors.New("--socket is needed: the path of the socket to which QEMU connects, such as --socket /tmp/mlx5.sock")}
	}
	if cfg.BlueFlame < 0 || cfg.BlueFlame > time.Second {
		return &UsageError{fmt.Errorf("--blueflame %v: a time up to 1s is needed, such as 1ms", cfg.BlueFlame)}
	}
	if cfg.BlueFlame > 0 && cfg.Profile.Resolved().HCA.BFRegSize == 0 {
		return &UsageError{fmt.Errorf("--blueflame: profile %s is a device without BlueFlame", cfg.Profile.Name)}
	}
	if cfg.Wire != nil && cfg.Profile.Resolved().Link.InfiniBand {
		return &UsageError{fmt.Errorf("--wire %v is an Ethernet: choose a profile without -ib", cfg.Wire)}
	}
	return nil
}

func (s *Server) listen() error {
	for _, path := range s.sockets {
		l, err := vfiouser.Listen(path)
		if err != nil {
			s.closeListeners()
			return &UsageError{err}
		}
		s.listeners = append(s.listeners, l)
	}
	return nil
}

func (s *Server) serve() {
	for i, l := range s.listeners {
		f := s.m.fns[i]
		s.serving.Go(func() { l.Serve(f, f.layout()) })
	}
}

func (s *Server) capture(ctx context.Context) error {
	if s.cfg.Pcap == "" {
		return nil
	}
	f, err := outfile.Create(ctx, s.cfg.Pcap)
	if errors.Is(err, outfile.ErrInterrupted) {
		return err
	}
	if err != nil {
		return &UsageError{err}
	}
	if err := s.m.net.Capture(f, s.cfg.PcapLimit); err != nil {
		f.Abort()
		return err
	}
	s.pcap = f
	return nil
}

// Sockets are the paths of the sockets, one for each function.
func (s *Server) Sockets() []string { return s.sockets }

// Failed is closed when the simulator cannot go on; Close returns the reason.
func (s *Server) Failed() <-chan struct{} { return s.m.failed }

// QEMUOptions are the options by which QEMU gets the functions, a line each.
func (s *Server) QEMUOptions() []string {
	lines := []string{"-machine q35,memory-backend=ram", "-object memory-backend-memfd,id=ram,size=2G,share=on"}
	for k, path := range s.sockets {
		device, err := json.Marshal(struct {
			Driver string            `json:"driver"`
			Bus    string            `json:"bus"`
			Socket map[string]string `json:"socket"`
		}{"vfio-user-pci", fmt.Sprintf("rp%d", k), map[string]string{"type": "unix", "path": path}})
		if err != nil {
			panic(err) // strings can be written
		}
		lines = append(lines,
			fmt.Sprintf("-device pcie-root-port,id=rp%d,chassis=%d,slot=%d,bus=pcie.0", k, k+1, k+1),
			"-device '"+quoted(string(device))+"'")
	}
	if w := s.cfg.Wire; w != nil && w.Kind == wire.KindDgram {
		lines = append(lines, fmt.Sprintf("and another guest is on the Ethernet with -netdev dgram,id=wire,local.type=inet,local.host=%v,local.port=%d,remote.type=inet,remote.host=%v,remote.port=%d",
			w.Remote.Addr(), w.Remote.Port(), w.Local.Addr(), w.Local.Port()))
	}
	if s.tester != nil {
		path := strings.ReplaceAll(s.cfg.Tester, ",", ",,") // as QEMU has it
		lines = append(lines, "-device virtio-serial-pci", "-chardev 'socket,id=wire,path="+quoted(path)+"'",
			"-device virtserialport,chardev=wire,name="+remotewire.PortName)
	}
	return lines
}

// quoted is a text between apostrophes of a shell.
func quoted(s string) string { return strings.ReplaceAll(s, "'", `'\''`) }

// Close disconnects the guests, removes the sockets, and completes the capture.
func (s *Server) Close() error {
	s.closeListeners()
	s.serving.Wait()
	if s.m.host != nil {
		defer s.m.enter()()
		s.describe()
		return nil
	}
	s.m.mu.Lock()
	s.describe()
	for i, c := range s.m.net.Rules() {
		s.m.logf("rule %d of the faults has acted upon %s of %d that it matches", i+1, plain.Count(c.Acted, "frame"), c.Matched)
	}
	err := s.m.clock.Err()
	s.m.mu.Unlock()
	if s.pcap == nil {
		return errors.Join(err, s.m.close())
	}
	err = errors.Join(err, s.pcap.Commit(func(io.Writer) error { return s.m.close() }))
	if c := s.m.net.Captured(); c.LeftOut > 0 {
		s.m.logf("%s ends after %d frames, %d bytes; %d later frames are left out: --pcap-limit raises the limit, and 0 removes it", s.cfg.Pcap, c.Frames, c.Bytes, c.LeftOut)
	}
	return err
}

func (s *Server) describe() {
	s.m.describeLAN()
	for _, f := range s.m.fns {
		s.m.logf("%s: %s", f.name, f.describe())
	}
}

func (s *Server) closeListeners() {
	all := s.listeners
	if s.tester != nil {
		all = append(all[:len(all):len(all)], s.tester)
	}
	for _, l := range all {
		if err := l.Close(); err != nil {
			s.m.logf("%v", err)
		}
	}
}

// Run serves until the context ends. That is how a session ends, and no error. When the sockets are
// there it calls ready with the options for QEMU.
func Run(ctx context.Context, cfg *Config, ready func(options []string)) error {
	s, err := Start(ctx, cfg)
	if err != nil {
		return err
	}
	ready(s.QEMUOptions())
	select {
	case <-ctx.Done():
	case <-s.Failed():
	}
	return s.Close()
}
