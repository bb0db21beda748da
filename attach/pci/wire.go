//go:build linux && amd64

package pci

import (
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/attach/pci/vfiouser"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/remotewire"
)

// wire is the network in a guest's hands (remotewire.Wire).
type wire struct {
	m     *machine
	t     *network.Tester
	quiet time.Duration
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

// quiet is how long no frame comes before a recording is taken for whole; it is not waited for more than maxQuiet times.
const (
	quiet    = 20 * time.Millisecond
	maxQuiet = 50
)

// settling is how many times a recording waits, at most, for what devices do at once.
const settling = 4096

// StopTap waits before for frames that are on their way when the completion is there that they caused: what devices do at
// once, and what the guest's kernel has yet to send, where the device is software on a network interface.
func (w *wire) StopTap() ([]verbs.WireFrame, error) {
	w.settle()
	for n, turn := w.recorded(), 0; turn < maxQuiet; turn++ {
		time.Sleep(w.quiet)
		now := w.recorded()
		if now == n {
			break
		}
		n = now
	}
	defer w.m.enter()()
	return w.t.StopTap()
}

func (w *wire) recorded() int {
	defer w.m.enter()()
	return w.t.Recorded()
}

func (w *wire) settle() {
	for range settling {
		w.m.mu.Lock()
		more := w.m.clock.Advance(instants, false)
		w.m.mu.Unlock()
		if !more {
			break
		}
	}
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
	w := &wire{s.m, s.m.net.NewTester(), quiet}
	s.serving.Go(func() {
		s.wire.ServeStream(s.m.logf, w.talk, func(c *net.UnixConn) { _ = c.Close() })
	})
}
