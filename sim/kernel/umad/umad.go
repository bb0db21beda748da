// Package umad is ib_mad and ib_umad of Linux: agents that programs register on a port's QP0 and
// QP1, the datagrams that they send and get, answers that are waited for, transfers in segments
// (RMPP), and the hops of directed-route SMPs at an end node. The port's own agents are the
// device's: what a program asks its own port goes there (mlx5_ib_process_mad). The facts are those
// of core/mad.c, mad_rmpp.c, smi.c and user_mad.c.
//
// Everything runs on the thread of the engine.
package umad

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// Timers run functions later. They are the host's.
type Timers interface {
	// After runs f in the engine's thread d after now, unless what it returns is called before.
	After(d sim.Time, f func()) (cancel func())
}

// Manager is ib_mad of one machine.
type Manager struct {
	eng    *sim.Engine
	timers Timers
	ports  []*port
	agents uint32 // registered so far
	loaded bool
	// Unclaimed answers, in place, a request that no program has registered for: what runs in the
	// model on this machine. It reports false for others. Classes that it serves in other ways are
	// Served.
	Unclaimed func(d *kernel.Device, m mad.MAD) bool
	Served    func(d *kernel.Device, class uint8) bool
}

// New makes the manager of a machine without devices.
func New(e *sim.Engine, t Timers) *Manager {
	return &Manager{
		eng: e, timers: t, Unclaimed: func(*kernel.Device, mad.MAD) bool { return false },
		Served: func(*kernel.Device, uint8) bool { return false },
	}
}

// AddDevice adds a device; what it is asked it answers once the manager is loaded.
func (m *Manager) AddDevice(d *kernel.Device) { m.ports = append(m.ports, &port{m: m, d: d}) }

// Load opens QP0 and QP1 of all devices.
func (m *Manager) Load() error {
	for _, p := range m.ports {
		if err := p.open(); err != nil {
			return err
		}
	}
	m.loaded = true
	return nil
}

// port is the one port of a device.
type port struct {
	m      *Manager
	d      *kernel.Device
	qps    [2]*kernel.GSI
	agents []*agent // in the order of their registration
}

func (p *port) open() (err error) {
	for n, open := range [...]func(func(*kernel.Datagram)) (*kernel.GSI, error){p.d.OpenSMI, p.d.OpenGSI} {
		if p.qps[n] != nil {
			continue
		}
		if p.qps[n], err = open(func(g *kernel.Datagram) { p.receive(n, g) }); err != nil {
			return err
		}
	}
	return nil
}

// number is that of the one port.
const number = 1

// receive takes a datagram of a QP (ib_mad_recv_done).
func (p *port) receive(qpn int, g *kernel.Datagram) {
	b, err := mad.Parse(g.Data)
	if err != nil || b.Subnet() != (qpn == 0) {
		return
	}
	b = append(mad.MAD(nil), b...)
	if b.Directed() {
		switch to, _ := b.Arrive(number, false, 0); to {
		case mad.Discard, mad.Onward, mad.ByLID:
			return
		case mad.Home, mad.Here:
		}
	}
	from := p.header(qpn, g)
	if b.Method()&mad.Response != 0 || b.Method() == mad.TrapRepress {
		p.answered(b, &from)
		return
	}
	if a := p.claims(qpn, b); a != nil {
		a.asked(&from, b)
		return
	}
	if !p.unclaimed(b) {
		return
	}
	p.reply(qpn, b, g)
}

// header is what a program learns of a datagram.
func (p *port) header(qpn int, g *kernel.Datagram) Header {
	h := Header{QPN: g.SrcQPN, LID: g.SLID, SL: g.SL, PathBits: g.Bits}
	if g.GRH != nil && qpn == 1 {
		grh := roce.GRH(g.GRH)
		h.GRH, h.GID, h.HopLimit, h.TrafficClass, h.FlowLabel = true, verbs.GID(grh.Src()), 0xff, grh.TrafficClass(), grh.FlowLabel()
	}
	return h
}

// process has the device's agent answer an SMP in place (mlx5_ib_process_mad). It reports false
// where it does not.
func (p *port) process(b mad.MAD) bool {
	if !processed(b) {
		return false
	}
	out, err := p.d.ProcessMAD(b)
	if err != nil {
		return false
	}
	hops := [2]byte{b[6], b[7]}
	copy(b, out)
	if b.Directed() {
		b[6], b[7] = hops[0], hops[1]
		b.SetReturning()
	}
	return true
}

// processed says whether an SMP is the device's.
func processed(b mad.MAD) bool {
	return b.Subnet() && b.Attribute() != mad.AttrSMInfo && (b.Method() == mad.Get || b.Method() == mad.Set)
}

// unclaimed answers a request that nobody has registered for (generate_unmatched_resp).
func (p *port) unclaimed(b mad.MAD) bool {
	switch {
	case p.m.Served(p.d, b.Class()):
		return false
	case p.m.Unclaimed(p.d, b):
		return true
	case b.Method() != mad.Get && b.Method() != mad.Set:
		return false
	}
	b.Answer(mad.StatusNoAttribute)
	return true
}

// reply sends an answer back to where its request came from (agent_send_response).
func (p *port) reply(qpn int, b mad.MAD, g *kernel.Datagram) {
	a := verbs.AHAttr{Port: number, DLID: g.SLID, SL: g.SL, SrcPathBits: g.Bits}
	if b.Directed() {
		switch to, _ := b.Begin(); to {
		case mad.Onward:
			a = verbs.AHAttr{Port: number, DLID: roce.PermissiveLID}
		case mad.ByLID:
			a = verbs.AHAttr{Port: number, DLID: b.DirectedSLID()}
		default:
			return
		}
	} else if g.GRH != nil && qpn == 1 {
		a.IsGlobal, a.GRH = true, verbs.GRH{DGID: verbs.GID(roce.GRH(g.GRH).Src()), HopLimit: 0xff}
	}
	_ = p.qps[qpn].Send(&a, b)
}

// claims is the agent that has registered for a request (find_mad_agent).
func (p *port) claims(qpn int, b mad.MAD) *agent {
	for _, a := range p.agents {
		if a.qpn == qpn && a.takes(b) {
			return a
		}
	}
	return nil
}

// answered gives an answer, or a segment of one, to the agent that asked.
func (p *port) answered(b mad.MAD, from *Header) {
	for _, a := range p.agents {
		if a.hiTID == uint32(b.TID()>>32) {
			a.answered(b, from)
			return
		}
	}
}

// send sends a datagram of an agent, or gives it to the node itself.
func (p *port) send(a *agent, h *Header, b mad.MAD) error {
	to := verbs.AHAttr{Port: number, DLID: h.LID, SL: h.SL, SrcPathBits: h.PathBits, IsGlobal: h.GRH}
	if h.GRH {
		to.GRH = verbs.GRH{DGID: h.GID, FlowLabel: h.FlowLabel, SGIDIndex: h.GIDIndex, HopLimit: h.HopLimit, TrafficClass: h.TrafficClass}
	}
	if b.Directed() {
		b = append(mad.MAD(nil), b...)
		switch hop, out := b.Begin(); {
		case hop == mad.Discard || hop == mad.Onward && out != number:
			return fmt.Errorf("a directed route that does not begin at port %d: %w", number, syscall.EINVAL)
		case hop == mad.ByLID:
			return p.qps[a.qpn].Send(&to, b)
		case hop != mad.Onward:
			p.m.eng.After(0, func(uint64) { p.local(a, b) }, 0)
			return nil
		}
		to = verbs.AHAttr{Port: number, DLID: roce.PermissiveLID}
	}
	return p.qps[a.qpn].Send(&to, b)
}

// local takes an SMP of the node to itself.
func (p *port) local(a *agent, b mad.MAD) {
	from := Header{LID: roce.PermissiveLID}
	if b.Method()&mad.Response != 0 {
		p.answered(b, &from)
		return
	}
	if !p.process(b) {
		if other := p.claims(a.qpn, b); other != nil {
			other.asked(&from, b)
			return
		}
		if !p.unclaimed(b) {
			return
		}
	}
	p.answered(b, &from)
}
