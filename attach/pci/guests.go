//go:build linux && amd64

package pci

import (
	"fmt"

	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/attach/pace"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
)

// Host is a simulation of somebody else that has functions for guests too, such as that of rdmasim
// exec.
type Host struct {
	Clock   *pace.Clock
	Network *network.Network // of these functions and the host's own devices
	// Enter takes what is simulated from whoever else uses it. Leave gives it back; then the host
	// carries out what is due.
	Enter func() (leave func())
}

// NewGuests makes functions in a host's simulation. The first is called mlx5_<first> on the host's
// side. They are off until Serve, and until a guest connects. A *UsageError is a mistake of the
// caller.
func NewGuests(e *sim.Engine, cfg *Config, first int) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	m := &machine{
		eng: e, prof: cfg.Profile.Resolved(), verbose: cfg.Verbose, blueFlame: cfg.BlueFlame, tell: cfg.Logf, identity: netdevIdentity,
		failed: make(chan struct{}),
	}
	for k := range cfg.Functions {
		m.fns = append(m.fns, newFunction(m, fmt.Sprintf("mlx5_%d", first+k), first+k))
	}
	s := &Server{m: m, cfg: *cfg}
	var err error
	s.sockets, err = cfg.Sockets()
	return s, err
}

// Devices are the functions' devices, which the host joins to its own.
func (s *Server) Devices() []*hca.Device {
	var all []*hca.Device
	for _, f := range s.m.fns {
		all = append(all, f.hca)
	}
	return all
}

// Serve makes the sockets and lets guests connect. Close ends it, while the host still runs.
func (s *Server) Serve(h Host) error {
	s.m.host, s.m.clock, s.m.net = &h, h.Clock, h.Network
	if err := s.listen(); err != nil {
		return err
	}
	s.serve()
	return nil
}

// take is enter in a host's simulation.
func (m *machine) take() (leave func()) {
	leave = m.host.Enter()
	m.clock.Pass(max(m.eng.Now(), m.clock.Real()))
	return leave
}
