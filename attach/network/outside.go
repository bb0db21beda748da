package network

import (
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// OutsidePort is the name, in captures and scripts of faults, of the port by which frames come to a
// device from outside.
func OutsidePort(device string) string { return "wire/" + device }

// NewOutside puts each device on a cable of its own, whose other end attach gives to what is
// outside the simulation. Devices reach each other only by what is there.
func NewOutside(e *sim.Engine, p *profile.Profile, devices []*hca.Device, attach func(k int, end *link.Port)) *Network {
	n := &Network{eng: e, prof: p}
	for k, d := range devices {
		c := link.NewCable(e, p.Link, d.Name(), OutsidePort(d.Name()))
		n.join(d, c.End(0), nil)
		attach(k, c.End(1))
		n.ports = append(n.ports, port{name: OutsidePort(d.Name()), outside: true, link: c.End(1)})
	}
	return n
}

// WirePort is the name of the port by which frames come to devices of guests from outside.
const WirePort = "wire"

// NewJoined joins Ethernet devices by a switch, of which one port leads to what is outside the
// simulation: attach is given its end. A single device is at the other end of that cable.
func NewJoined(e *sim.Engine, p *profile.Profile, devices []*hca.Device, attach func(end *link.Port)) *Network {
	n := &Network{eng: e, prof: p}
	if len(devices) == 1 {
		c := link.NewCable(e, p.Link, devices[0].Name(), WirePort)
		n.join(devices[0], c.End(0), nil)
		attach(c.End(1))
		n.ports = append(n.ports, port{name: WirePort, outside: true, link: c.End(1)})
		return n
	}
	n.sw = newSwitch(e, p)
	for _, d := range devices {
		c := link.NewCable(e, p.Link, d.Name(), "switch/"+d.Name())
		n.sw.Plug(c.End(1))
		n.join(d, c.End(0), n.sw)
	}
	c := link.NewCable(e, p.Link, WirePort, "switch/"+WirePort)
	n.sw.Plug(c.End(1))
	attach(c.End(0))
	n.ports = append(n.ports, port{name: WirePort, outside: true, link: c.End(0)})
	return n
}
