package testbed

import (
	"errors"
	"net/netip"
	"time"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/verbs"
)

// Outside joins a testbed of one host with one device to something whose time is not virtual, in
// place of other hosts.
type Outside struct {
	// Identity is the device's, and Address the only address of its interface.
	Identity hca.Identity
	Address  netip.Addr
	// Join puts the device on its cable and returns its end. Captures and faults of the cable are
	// the caller's.
	Join func(e *sim.Engine, d *hca.Device) *link.Port
	// Reach says whether there is a route to an IP address. Neighbour returns the Ethernet address
	// of frames to an IP address; false: nobody there answers.
	Reach     func(ip netip.Addr) bool
	Neighbour func(ip netip.Addr) (kernel.MAC, bool)
	// Now is the clock of programs, in place of virtual time.
	Now func() time.Duration
}

// checkOutside reports what does not go together with a cable to somewhere else.
func (c *Config) checkOutside() error {
	if c.Outside == nil {
		return nil
	}
	switch {
	case len(c.Hosts) != 1 || c.Hosts[0].Devices != 1 || c.Switched:
		return errors.New("testbed: one host with one device has a cable to somewhere else")
	case c.Profile.Resolved().Link.InfiniBand:
		return errors.New("testbed: a cable of InfiniBand leads nowhere else")
	case c.Pcap != nil || c.Capture != nil || c.Faults != nil:
		return errors.New("testbed: captures and faults of a cable to somewhere else are the caller's")
	}
	return nil
}

// Go starts a thread of the process that Start made, between runs of the engine, when somebody
// outside has work for it.
func (tb *Testbed) Go(name string, body func(verbs.Thread)) {
	tb.main.start(name, tb.hosts[0].core(), body)
}

// addressOutside gives a port its address alone.
func (tb *Testbed) addressOutside(d *device) error {
	o := tb.cfg.Outside
	own := netip.AddrFrom16(roce.GIDFromMAC(d.hca.Identity().MAC))
	d.kern.SetNeighbours(func(_ uint16, ip netip.Addr) (kernel.MAC, bool) { return o.Neighbour(ip) })
	d.host.cm.SetReach(o.Reach)
	return errors.Join(d.kern.RemoveIP(own), d.kern.AddIP(o.Address))
}
