package network

import (
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/remotewire"
)

// Remote is the network in the hands of a tester in another process (remotewire.Wire): a program of
// the session, or one of a guest.
type Remote struct {
	Tester *Tester
	// Enter keeps everybody else from the simulation until leave is called.
	Enter func() (leave func())
	// Settle has the devices do what they do at once.
	Settle func()
	// Quiet is how long no frame comes before a recording is taken for whole, where software sends
	// them that is not part of the simulation; 0: there is none.
	Quiet time.Duration
}

var _ remotewire.Wire = (*Remote)(nil)

// GuestQuiet is Quiet where guests send: their kernel may say that a packet is sent before it is.
const GuestQuiet = 20 * time.Millisecond

// maxQuiet is how many times a recording waits at most for Quiet.
const maxQuiet = 50

// Talk serves a client of a wire until it has gone. It closes the connection.
func Talk(c *net.UnixConn, w remotewire.Wire) error {
	defer c.Close()
	err := remotewire.Serve(c, w)
	if errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// Reset implements remotewire.Wire.
func (r *Remote) Reset() ([]uint64, bool) {
	defer r.Enter()()
	return r.Tester.Reset()
}

// StartTap implements remotewire.Wire.
func (r *Remote) StartTap() error {
	defer r.Enter()()
	r.Tester.StartTap()
	return nil
}

// StopTap waits before for frames that are on their way when the completion is there that they
// caused: what devices do at once, and what software has yet to send.
func (r *Remote) StopTap() ([]verbs.WireFrame, error) {
	r.Settle()
	if r.Quiet > 0 {
		r.awaitQuiet()
	}
	defer r.Enter()()
	return r.Tester.StopTap()
}

func (r *Remote) awaitQuiet() {
	for n, turn := r.recorded(), 0; turn < maxQuiet; turn++ {
		time.Sleep(r.Quiet)
		now := r.recorded()
		if now == n {
			return
		}
		n = now
	}
}

func (r *Remote) recorded() int {
	defer r.Enter()()
	return r.Tester.Recorded()
}

// Inject implements remotewire.Wire.
func (r *Remote) Inject(rule verbs.WireRule) error {
	defer r.Enter()()
	return r.Tester.Inject(rule)
}

// ClearRules implements remotewire.Wire.
func (r *Remote) ClearRules() []int {
	defer r.Enter()()
	return r.Tester.ClearRules()
}

// SetLink implements remotewire.Wire.
func (r *Remote) SetLink(guid uint64, up bool) error {
	defer r.Enter()()
	return r.Tester.SetLink(guid, up)
}

// ConfigureSubnet implements remotewire.Wire.
func (r *Remote) ConfigureSubnet(c verbs.SubnetConfig) error {
	defer r.Enter()()
	return r.Tester.ConfigureSubnet(c)
}
