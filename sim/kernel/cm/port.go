package cm

import (
	"fmt"
	"math/bits"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// port is the one port of a device, with QP1 and what is sent by it (struct cm_port, and the agent
// of core/mad.c).
type port struct {
	m       *Manager
	d       *kernel.Device
	gsi     *kernel.GSI
	agent   uint64 // number of the MAD agent, the high half of TIDs
	removed bool
	sa      saClient
	serve   func(SAPeer, []byte) // requests to a subnet administrator that runs here; nil: none does

	broadcast mad.MCMemberRecord // of the interface of an InfiniBand port; nil: it is in no group
	groups    map[roce.GID]*portGroup

	c [len(counterGroups)][len(messageKinds)]uint64
}

// Counters of a port (cm_counter_groups).
const (
	countSent = iota
	countResent
	countReceived
	countDuplicate
)

var (
	counterGroups = [...]string{"cm_tx_msgs", "cm_tx_retries", "cm_rx_msgs", "cm_rx_duplicates"}
	messageKinds  = [...]string{"req", "mra", "rej", "rep", "rtu", "dreq", "drep", "sidr_req", "sidr_rep", "lap", "apr"}
)

func (p *port) count(group int, attribute uint16) { p.c[group][attribute-mad.AttrREQ]++ }

// countMessage counts a message of ib_cm; others have no such counters.
func (p *port) countMessage(group int, m mad.MAD) {
	if m.Class() == mad.ClassCM {
		p.count(group, m.Attribute())
	}
}

func (p *port) open() (err error) {
	p.gsi, err = p.d.OpenGSI(p.receive)
	return err
}

// ib says whether the link layer is InfiniBand.
func (p *port) ib() bool { return p.d.LinkLayer() == verbs.LinkInfiniBand }

// arrival is a message that came, and the way back to who sent it.
type arrival struct {
	p    *port
	b    [mad.Size]byte
	back verbs.AHAttr
}

func (a *arrival) mad() mad.MAD { return a.b[:] }

// receive takes a datagram of QP1. What it says is carried out by a worker.
func (p *port) receive(g *kernel.Datagram) {
	m, err := mad.Parse(g.Data)
	if err != nil || p.removed {
		return
	}
	if m.Class() == mad.ClassSubnAdm {
		p.receiveSA(g, m)
		return
	}
	a := &arrival{p: p}
	copy(a.b[:], m)
	known := m.Class() == mad.ClassCM && m.ClassVersion() == mad.CMVersion && m.Method() == mad.Send &&
		m.Attribute() >= mad.AttrREQ && m.Attribute() <= mad.AttrAPR
	if !known {
		return
	}
	back, ok := p.wayBack(g)
	if !ok {
		return
	}
	a.back = back
	p.count(countReceived, m.Attribute())
	p.m.work.add(func() {
		if !p.removed {
			p.m.conns.handle(a)
		}
	})
}

// wayBack is ib_init_ah_attr_from_wc.
func (p *port) wayBack(g *kernel.Datagram) (verbs.AHAttr, bool) {
	a := verbs.AHAttr{Port: 1, DLID: g.SLID, SL: g.SL}
	if g.GRH == nil {
		return a, true
	}
	own, typ := roce.GID{}, verbs.GIDTypeRoCEv2
	a.IsGlobal = true
	v4, v6 := roce.IPv4(g.GRH[roce.GRHSize-roce.IPv4Size:]), roce.GRH(g.GRH)
	switch {
	case !p.ib() && v4.Version() == 4 && v4.HeaderLen() == roce.IPv4Size && v4.ChecksumOK():
		own = roce.GIDFromIPv4(v4.Dst())
		a.GRH = verbs.GRH{DGID: verbs.GID(roce.GIDFromIPv4(v4.Src())), HopLimit: 0xff}
	case v6.Version() == 6:
		if p.ib() {
			typ = verbs.GIDTypeIB
		} else if v6.NextHeader() == roce.ProtoIBA {
			typ = verbs.GIDTypeRoCEv1
		}
		own = v6.Dst()
		a.GRH = verbs.GRH{DGID: verbs.GID(v6.Src()), HopLimit: 0xff, TrafficClass: v6.TrafficClass(), FlowLabel: v6.FlowLabel()}
	default:
		return a, false
	}
	i, ok := p.gidIndex(verbs.GID(own), typ)
	a.GRH.SGIDIndex = uint8(i)
	return a, ok
}

// gidIndex finds an entry of the port's table.
func (p *port) gidIndex(g verbs.GID, typ verbs.GIDType) (index int, ok bool) {
	p.d.GIDs(func(e verbs.GIDEntry, _ uint16) bool {
		index, ok = int(e.Index), e.GID == g && e.Type == typ
		return !ok
	})
	return index, ok
}

// gidType is the type of the port's GIDs that rdma_cm uses (default_roce_mode).
func (p *port) gidType() verbs.GIDType {
	if p.ib() {
		return verbs.GIDTypeIB
	}
	return verbs.GIDTypeRoCEv2
}

// newMAD is cm_format_mad_hdr.
func newMAD(attribute uint16, tid uint64) mad.MAD {
	m := mad.MAD(make([]byte, mad.Size))
	m.SetBaseVersion(mad.BaseVersion)
	m.SetClass(mad.ClassCM)
	m.SetClassVersion(mad.CMVersion)
	m.SetMethod(mad.Send)
	m.SetAttribute(attribute)
	m.SetTID(tid)
	return m
}

// tid is cm_form_tid: the number of the agent, and the communication ID as a little-endian machine
// has it.
func (p *port) tid(id uint32) uint64 { return p.agent<<32 | uint64(bits.ReverseBytes32(id)) }

// send sends a message once.
func (p *port) send(to *verbs.AHAttr, m mad.MAD) error {
	if p.removed || p.gsi == nil {
		return fmt.Errorf("a datagram of %s: %w", p.d.Name(), errNoDev)
	}
	if err := p.gsi.Send(to, m); err != nil {
		return err
	}
	p.countMessage(countSent, m)
	return nil
}

// answer sends a message that was made for an arrival; it counts as one that was sent again, but a
// REJ (cm_send_handler).
func (p *port) answer(a *arrival, m mad.MAD) {
	if err := p.send(&a.back, m); err == nil && m.Attribute() != mad.AttrREJ {
		p.count(countSent, m.Attribute())
		p.count(countResent, m.Attribute())
	}
}

// exchange is a message that waits for its answer (struct ib_mad_send_buf with a timeout).
type exchange struct {
	p       *port
	to      verbs.AHAttr
	m       mad.MAD
	timeout sim.Time
	left    int // times that it may be sent again
	state   connState
	failed  func(*exchange)
	cancel  func()
}

// start sends the message and waits for its answer: failed is called when there is none in time.
func (x *exchange) start() error {
	if err := x.p.send(&x.to, x.m); err != nil {
		return err
	}
	x.wait()
	return nil
}

func (x *exchange) wait() { x.cancel = x.p.m.timers.After(x.timeout, x.expired) }

// expired is retry_send.
func (x *exchange) expired() {
	if x.left == 0 {
		x.failed(x)
		return
	}
	x.left--
	if err := x.p.send(&x.to, x.m); err != nil {
		x.failed(x)
		return
	}
	x.p.countMessage(countResent, x.m)
	x.wait()
}

// stop is ib_cancel_mad.
func (x *exchange) stop() {
	if x != nil && x.cancel != nil {
		x.cancel()
	}
}

// extend is ib_modify_mad: the next timeouts are others, from now on.
func (x *exchange) extend(d sim.Time) {
	x.stop()
	x.timeout = d
	x.wait()
}
