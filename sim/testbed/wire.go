package testbed

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/fault"
	"github.com/rdmasim/rdmasim/roce/fault/wirerule"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/verbs"
)

// open is the far end of a cable to which nothing is plugged.
type open struct{}

// Receive swallows a frame.
func (open) Receive(f *roce.Frame) { f.Release() }

// wire is verbs.Wire over the ports of all devices: one tap and one script.
type wire struct {
	tb       *Testbed
	script   fault.Script
	scripted bool
	tapped   bool // the ports have our tap
	on       bool
	order    *link.Ordered
	frames   []verbs.WireFrame
}

func (w *wire) ports(f func(*link.Port)) {
	for _, h := range w.tb.hosts {
		for _, d := range h.devices {
			f(d.port)
		}
	}
}

// StartTap begins a recording of every port.
func (w *wire) StartTap(t verbs.Thread) error {
	provider.Of(t).P.Sync()
	if !w.tapped {
		w.tapped = true
		w.ports(func(p *link.Port) {
			p.Tap(func(s link.Sent) {
				if w.on {
					w.order.Tap(s)
				}
			})
		})
	}
	w.on, w.frames = true, nil
	w.order = link.NewOrdered(w.tb.eng, w.record)
	return nil
}

func (w *wire) record(s link.Sent) {
	w.frames = append(w.frames, verbs.WireFrame{At: provider.Duration(s.At), Data: s.Frame.AppendWhole(nil), InfiniBand: s.Frame.LRH, Acted: wirerule.Acted(s.Acted)})
}

// StopTap ends the recording.
func (w *wire) StopTap(t verbs.Thread) ([]verbs.WireFrame, error) {
	provider.Of(t).P.Sync()
	if !w.on {
		return nil, fmt.Errorf("no recording is under way: %w", syscall.EINVAL)
	}
	w.order.Close()
	f := w.frames
	w.on, w.order, w.frames = false, nil, nil
	return f, nil
}

// Inject adds a rule for every port.
func (w *wire) Inject(t verbs.Thread, r verbs.WireRule) error {
	provider.Of(t).P.Sync()
	rule, err := wirerule.Of(r)
	if err != nil {
		return err
	}
	if err := w.script.Add(rule); err != nil {
		return fmt.Errorf("%w: %w", err, syscall.EINVAL)
	}
	w.rule()
	return nil
}

// rule puts the script in charge of all ports.
func (w *wire) rule() {
	if !w.scripted {
		w.scripted = true
		w.ports(func(p *link.Port) { p.SetScript(&w.script) })
	}
}

// plan carries out what a file says of frames and links.
func (w *wire) plan(p *fault.Plan) error {
	ports := map[string]*link.Port{}
	w.ports(func(p *link.Port) { ports[p.Name()] = p })
	for _, r := range p.Rules {
		if err := w.script.Add(r); err != nil {
			return err
		}
	}
	if len(p.Rules) > 0 {
		w.rule()
	}
	for _, l := range p.Links {
		port := ports[l.Port]
		set := func(up uint64) { port.SetLink(up != 0) }
		up := uint64(0)
		if l.Up {
			up = 1
		}
		w.tb.eng.At(max(sim.Time(l.At), w.tb.eng.Now()), set, up)
	}
	return nil
}

// ClearRules removes all rules.
func (w *wire) ClearRules(t verbs.Thread) ([]int, error) {
	provider.Of(t).P.Sync()
	return w.script.Clear(), nil
}

// SetLink takes the link of port 1 of a host's device (devices count as ports of the
// host, from 1) down or up.
func (w *wire) SetLink(t verbs.Thread, host, port int, up bool) error {
	provider.Of(t).P.Sync()
	if host < 0 || host >= len(w.tb.hosts) || port < 1 || port > len(w.tb.hosts[host].devices) {
		return fmt.Errorf("link of host %d, port %d: %w", host, port, syscall.EINVAL)
	}
	w.tb.hosts[host].devices[port-1].port.SetLink(up)
	return nil
}

// ConfigureSubnet makes the subnet manager assign other LIDs, prefixes or P_Keys to the ports.
func (tb *Testbed) ConfigureSubnet(t verbs.Thread, c verbs.SubnetConfig) error {
	provider.Of(t).P.Sync()
	if tb.sm == nil {
		return fmt.Errorf("a subnet manager on Ethernet: %w", syscall.EOPNOTSUPP)
	}
	f := tb.sm.Fabric()
	if c.FirstLID != 0 {
		f.FirstLID, f.SMLID = c.FirstLID, c.FirstLID
	}
	if c.GIDPrefix != 0 {
		f.GIDPrefix = c.GIDPrefix
	}
	if c.PKeys != nil {
		f.PKeys = c.PKeys
	}
	tb.sm.Configure(f, c.Reregister)
	if tb.sa != nil {
		tb.sa.SetPKeys(f.PKeys)
	}
	return nil
}
