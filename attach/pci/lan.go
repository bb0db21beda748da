//go:build linux && amd64

package pci

import (
	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/attach/sharedmem"
	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// openLAN opens the Ethernet of the functions; nil: they are on none.
func openLAN(cfg *Config) (*wire.LAN, error) {
	if cfg.Wire == nil {
		return nil, nil
	}
	return wire.OpenLAN(wire.Config{Place: *cfg.Wire, Say: func(format string, a ...any) {
		if cfg.Logf != nil {
			cfg.Logf(format, a...)
		}
	}})
}

// lanIdentity is the identity of function k on an Ethernet, on which other sessions may have
// functions too.
func (m *machine) lanIdentity(k int) hca.Identity {
	id := m.lan.GuestIdentity(k)
	id.Netdev = true
	return id
}

// joinLAN joins devices with each other and the Ethernet.
func (m *machine) joinLAN(p *profile.Profile, devices []*hca.Device) {
	m.net = network.NewJoined(m.eng, p, devices, func(end *link.Port) {
		end.Attach(m.lan)
		m.lan.Attach(end, devices[0].Frames())
	})
}

// listenToLAN gives the functions the frames of the Ethernet until closeLAN.
func (m *machine) listenToLAN() {
	if m.lan == nil {
		return
	}
	m.listening = make(chan struct{})
	go func() {
		defer close(m.listening)
		sharedmem.SurviveFaults() // it runs the device
		for m.lan.Wait() {
			leave := m.enter()
			if m.lan.Fetch() {
				m.lan.Deliver()
			}
			leave()
		}
	}()
}

func (m *machine) closeLAN() {
	if m.lan == nil {
		return
	}
	m.lan.Stop()
	if m.listening != nil {
		<-m.listening
	}
	if err := m.lan.Close(); err != nil {
		m.logf("%v", err)
	}
}

// describeLAN says what passed, and what did not.
func (m *machine) describeLAN() {
	if m.lan == nil {
		return
	}
	c := m.lan.Counts()
	m.logf("%s: %s sent, %d received", m.lan.Name(), plain.Count(int(c.Sent), "frame"), c.Received)
	if d := c.Dropped(); d != "" {
		m.logf("%s dropped frames: %s", m.lan.Name(), d)
	}
}
