//go:build linux && amd64

package pci

import (
	"errors"
	"net"
	"syscall"

	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/attach/pci/vfiouser"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/remotewire"
)

// wire is the network in a guest's hands (remotewire.Wire).
type wire struct {
	m *machine
	t *network.Tester
}

var _ remotewire.Wire = (*wire)(nil)

func (w *wire) Reset() ([]uint64, bool) {
	defer w.m.enter()()
	return w.t.Reset()
}

func (w *wire) StartTap() error {
	defer w.m.enter()()
	w.t.StartTap()
	return nil
}

// settling is how many times a recording waits, at most, for what devices do at once.
const settling = 4096

// StopTap lets the devices do before what they do at once: a frame may be on its way when the completion is there that
// it caused.
func (w *wire) StopTap() ([]verbs.WireFrame, error) {
	for range settling {
		w.m.mu.Lock()
		more := w.m.clock.Advance(instants, false)
		w.m.mu.Unlock()
		if !more {
			break
		}
	}
	defer w.m.enter()()
	return w.t.StopTap()
}

func (w *wire) Inject(r verbs.WireRule) error {
	defer w.m.enter()()
	return w.t.Inject(r)
}

func (w *wire) ClearRules() []int {
	defer w.m.enter()()
	return w.t.ClearRules()
}

func (w *wire) SetLink(guid uint64, up bool) error {
	defer w.m.enter()()
	return w.t.SetLink(guid, up)
}

func (w *wire) ConfigureSubnet(c verbs.SubnetConfig) error {
	defer w.m.enter()()
	return w.t.ConfigureSubnet(c)
}

// talk serves a client of the socket of the wire.
func (w *wire) talk(c *net.UnixConn) error {
	defer c.Close()
	err := remotewire.Serve(c, w)
	if errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
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
	w := &wire{s.m, s.m.net.NewTester()}
	s.serving.Go(func() {
		s.wire.ServeStream(s.m.logf, w.talk, func(c *net.UnixConn) { _ = c.Close() })
	})
}
