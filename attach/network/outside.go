package network

import (
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// OutsidePort is the name, in captures and scripts of faults, of the port by which frames come to a device from outside.
func OutsidePort(device string) string { return "wire/" + device }

// NewOutside puts each device on a cable of its own, whose other end attach gives to what is outside the simulation. Devices reach each
// other only by what is there.
func NewOutside(e *sim.Engine, p *profile.Profile, devices []*hca.Device, attach func(k int, end *link.Port)) *Network {
	n := &Network{eng: e, prof: p}
	for k, d := range devices {
		c := link.NewCable(e, p.Link, d.Name(), OutsidePort(d.Name()))
		n.join(d, c.End(0), nil)
		attach(k, c.End(1))
		n.ports = append(n.ports, port{name: OutsidePort(d.Name()), link: c.End(1)})
	}
	return n
}
