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

// offerWire makes the socket of the wire.
func (s *Server) offerWire() error {
	if s.cfg.Wire == "" {
		return nil
	}
	l, err := vfiouser.Listen(s.cfg.Wire)
	if err != nil {
		return &UsageError{err}
	}
	s.wire = l
	return nil
}

// serveWire serves it.
func (s *Server) serveWire() {
	if s.wire == nil {
		return
	}
	w := s.m.remote()
	s.serving.Go(func() {
		s.wire.ServeStream(s.m.logf, func(c *net.UnixConn) error { return network.Talk(c, w) }, func(c *net.UnixConn) { _ = c.Close() })
	})
}
