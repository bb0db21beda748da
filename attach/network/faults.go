package network

import (
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/hca"
)

// faults are the rules that act on frames.
type faults struct{ script fault.Script }

// Plan carries out what a file of faults says of frames and links. Events beside the wire have
// nothing here that they could name, and are refused.
func (n *Network) Plan(p *fault.Plan) error {
	return n.PlanFor(p, fault.Target{Cannot: func(fault.EventKind) string {
		return "programs and devices are not the simulator's own; only frames and links are"
	}})
}

// PlanFor is Plan where the target, whose ports are the network's, has what events name; they are
// the caller's.
func (n *Network) PlanFor(p *fault.Plan, t fault.Target) error {
	for _, x := range n.ports {
		t.Ports = append(t.Ports, x.link.Name())
	}
	if err := p.Check(t); err != nil {
		return err
	}
	for _, r := range p.Rules {
		if err := n.faults.script.Add(r); err != nil {
			return err
		}
	}
	for _, x := range n.ports {
		if len(p.Rules) > 0 {
			x.link.SetScript(&n.faults.script)
		}
		set := func(up uint64) { x.link.SetLink(up != 0) }
		for _, l := range p.Links {
			if l.Port != x.link.Name() {
				continue
			}
			up := uint64(0)
			if l.Up {
				up = 1
			}
			n.eng.At(max(sim.Time(l.At), n.eng.Now()), set, up)
		}
	}
	return nil
}

// Unplug takes the link of a device down.
func (n *Network) Unplug(d *hca.Device) {
	for i := range n.ports {
		if n.ports[i].guid == d.Identity().GUID {
			n.ports[i].link.SetLink(false)
		}
	}
}

// Rules counts, for each rule of the plan, the frames that matched it and those that it acted upon.
func (n *Network) Rules() (counts []RuleCount) {
	for i := range n.faults.script.Len() {
		counts = append(counts, RuleCount{n.faults.script.Matched(i), n.faults.script.Acted(i)})
	}
	return counts
}

// RuleCount is what a rule has done.
type RuleCount struct{ Matched, Acted int }
