//go:build linux && amd64

package exec

import (
	"errors"

	"github.com/rdmasim/rdmasim/attach/pci"
)

// guests is what pci.NewGuests gets.
func (cfg *Config) guests() pci.Config {
	return pci.Config{
		Socket: cfg.Socket, Functions: cfg.Guests, Profile: cfg.Profile, Seed: cfg.Seed,
		Logf: say,
	}
}

// serveGuests lets virtual machines connect.
func (s *session) serveGuests() error {
	err := s.m.guests.Serve(pci.Host{Clock: s.eng.pace, Network: s.m.net, Enter: s.eng.enter})
	if err != nil {
		return guestsError(err)
	}
	for _, path := range s.m.guests.Sockets() {
		say("a guest can join the network: rdmasim vm --connect %s", path)
	}
	return nil
}

func guestsError(err error) error {
	var bad *pci.UsageError
	if errors.As(err, &bad) {
		return &UsageError{bad.Err}
	}
	return err
}

// enter has the engine's thread wait while the caller uses what is simulated.
func (e *engine) enter() (leave func()) { return e.enterAfter(func() {}) }

// enterAfter is enter after a function, which the engine's thread runs.
func (e *engine) enterAfter(first func()) (leave func()) {
	taken, left := make(chan struct{}), make(chan struct{})
	go e.do(func() {
		first()
		close(taken)
		<-left
	})
	<-taken
	return func() { close(left) }
}
