//go:build linux && amd64

package pci

import (
	"net"

	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/attach/pci/vfiouser"
)

// settling is how many times a recording waits, at most, for what devices do at once.
const settling = 4096

// remote is the network in a guest's hands.
func (m *machine) remote() *network.Remote {
	return &network.Remote{Tester: m.net.NewTester(), Enter: m.enter, Settle: m.settle, Quiet: network.GuestQuiet}
}

func (m *machine) settle() {
	for range settling {
		m.mu.Lock()
		more := m.clock.Advance(instants, false)
		m.mu.Unlock()
		if !more {
			break
		}
	}
}

// offerTester makes the socket of a tester of the wire.
func (s *Server) offerTester() error {
	if s.cfg.Tester == "" {
		return nil
	}
	l, err := vfiouser.Listen(s.cfg.Tester)
	if err != nil {
		return &UsageError{err}
	}
	s.tester = l
	return nil
}

// serveTester serves it.
func (s *Server) serveTester() {
	if s.tester == nil {
		return
	}
	w := s.m.remote()
	s.serving.Go(func() {
		s.tester.ServeStream(s.m.logf, func(c *net.UnixConn) error { return network.Talk(c, w) }, func(c *net.UnixConn) { _ = c.Close() })
	})
}
