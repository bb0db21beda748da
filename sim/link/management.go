package link

import (
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/roce/mad/attr"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mgmt"
)

// management puts a packet of lane 15 on the line, which has no credits: who has no room drops it.
func (l *lanes) management(f *roce.Frame, earliest sim.Time) {
	p := l.p
	if !l.fits(f) {
		l.discard(&blocked{f: f})
		return
	}
	m := p.measure(len(f.B))
	start := max(earliest, p.free)
	p.free = start + m.line
	p.C.sent(m)
	p.peer.settle()
	twice, bad, head := false, false, start+p.p.Propagation
	if len(p.taps) > 0 || !p.script.Empty() {
		var extra sim.Time
		if f, extra, twice, bad = p.disturb(f, start, false); f == nil {
			return
		}
		head += extra
	}
	marks := marks(0).with(badFCS, bad)
	if twice {
		p.peer.expectOn(f.Retain(), head, head+m.bits, marks)
	}
	p.peer.expectOn(f, head, head+m.bits, marks)
	if p.held != nil {
		p.release(head + m.bits)
	}
}

// PerformanceCounters are the port's counters as PortCounters has them.
func (p *Port) PerformanceCounters() mgmt.Counters {
	p.settle()
	c := &p.C
	return mgmt.Counters{
		XmitData: (c.TxBytes - roce.VCRCSize*c.TxPackets) / 4, XmitPackets: c.TxPackets, MulticastXmit: c.TxMulticast,
		RcvData: (c.RxBytes - roce.VCRCSize*c.RxPackets) / 4, RcvPackets: c.RxPackets, MulticastRcv: c.RxMulticast,
		RcvErrors: c.RxCRCErrors, Discards: c.TxDiscards, Downed: c.LinkDownEvents,
	}
}

// Retrain takes the cable down, and up again, once the answer to who asked for it has left.
func (p *Port) Retrain(up bool) {
	const later = 10 * sim.Microsecond // assumed
	p.e.After(later, func(uint64) {
		p.cable.SetLink(false)
		p.cable.SetLink(up)
	}, 0)
}

// switchAgents are what makes an InfiniBand switch a node of its subnet: port 0 with its agents.
type switchAgents struct {
	s      *Switch
	sma    mgmt.SMA
	pma    mgmt.PMA
	ports  []*switchPort // by number
	top    [2]uint16     // of the linear forwarding table, and of the multicast one
	life   uint8
	frames roce.Pool
	psn    uint32
}

// switchPort is a port of a switch as its agent of subnet management sees it. Packets pass whatever
// its state, as long as the link is up: the ports of the end nodes look to that.
type switchPort struct {
	a     *switchAgents
	port  *Port // nil: port 0
	info  roce.PortInfo
	epoch uint32 // of the link when info was set
	pkeys []uint16
}

// What a switch can hold. Assumed: as many LIDs as there are, and groups as the subnet
// administrator gives.
const (
	linearTable    = roce.FirstMulticastLID
	multicastTable = 4096
	noPort         = 0xff // in a forwarding table
)

// Describe gives the switch of an InfiniBand subnet its identity. Without one it answers to nobody.
func (s *Switch) Describe(guid uint64, text string) {
	a := &switchAgents{s: s, top: [2]uint16{0, roce.FirstMulticastLID - 1}}
	a.ports = append(a.ports, &switchPort{a: a, info: roce.PortInfo{State: roce.PortActive, MTU: roce.MTU4096, VLs: 1}, pkeys: []uint16{roce.DefaultPKey}})
	a.sma = mgmt.SMA{Node: mgmt.Node{Type: mgmt.Switch, GUID: guid, Description: text, PKeys: 1, VLCap: 1}, Port: a.port, More: a.more}
	a.pma = mgmt.PMA{First: 1, Read: func(n int) mgmt.Counters { return s.ports[n-1].PerformanceCounters() }}
	s.agents = a
}

// SMA is the switch's agent of subnet management; nil before Describe.
func (s *Switch) SMA() *mgmt.SMA {
	if s.agents == nil {
		return nil
	}
	return &s.agents.sma
}

// plugged makes a port's place.
func (a *switchAgents) plugged(p *Port) {
	ib := &p.p.IB
	x := &switchPort{a: a, port: p, info: roce.PortInfo{State: roce.PortInit, MTU: roce.MTU4096, VLs: 1}}
	a.ports = append(a.ports, x)
	a.sma.Ports, a.pma.Last = len(a.ports)-1, len(a.ports)-1
	a.sma.Speed, a.sma.Width, a.sma.VLCap = ib.SpeedCode(), ib.WidthCode(), mgmt.VLCode(uint8(ib.VLs))
}

func (a *switchAgents) port(n int) mgmt.Port {
	if n < 0 || n >= len(a.ports) {
		return nil
	}
	return a.ports[n]
}

// PortInfo is what a subnet manager may read. A link that has trained again waits in INIT.
func (x *switchPort) PortInfo() roce.PortInfo {
	switch {
	case x.port == nil:
	case !x.port.Up():
		x.info.State = roce.PortDown
	case x.info.State < roce.PortInit || x.epoch != x.port.cable.epoch:
		x.info.State = roce.PortInit
	}
	return x.info
}

// SetPortInfo takes what a subnet manager has set.
func (x *switchPort) SetPortInfo(v roce.PortInfo) {
	v.Reregister = false
	x.info = v
	if x.port != nil {
		x.epoch = x.port.cable.epoch
	}
}

// PKeyTable is that of port 0: the others check nothing.
func (x *switchPort) PKeyTable() []uint16 { return x.pkeys }

// SetPKeys takes it.
func (x *switchPort) SetPKeys(k []uint16) { x.pkeys = k }

// CapMasks are empty: the switch's agent claims nothing.
func (x *switchPort) CapMasks() (mask, mask2 uint32) { return 0, 0 }

// Violations are none.
func (x *switchPort) Violations() (pkeys, qkeys uint16) { return 0, 0 }

// Retrain takes the cable down and up.
func (x *switchPort) Retrain(up bool) {
	if x.port != nil {
		x.port.Retrain(up)
	}
}

// lid is that of port 0; 0 before there is one.
func (a *switchAgents) lid() uint16 { return a.ports[0].info.LID }

// takes says whether a packet that came by a port is the agents' to pass on or to answer, and does
// so.
func (a *switchAgents) takes(in int, f *roce.Frame, tail sim.Time) bool {
	h := roce.LRH(f.B)
	dlid := h.DLID()
	mine := dlid == a.lid()
	if !mine && dlid != roce.PermissiveLID {
		return false
	}
	p, err := f.Decode()
	if err != nil || p.Op != roce.UDSendOnly || !f.ICRCOK() {
		return true
	}
	m, err := mad.Parse(p.Payload())
	if err != nil {
		return true
	}
	m = append(mad.MAD(nil), m...)
	number := uint8(in + 1)
	switch {
	case h.VL() != roce.ManagementVL:
		if mine && p.BTH().DestQP() == roce.GSIQPN && p.DETH().QKey() == mad.QKey && a.pma.Answer(m) {
			a.send(in, m, p, tail, roce.GSIQPN)
		}
	case m.Directed():
		to, out := m.Arrive(number, true, a.sma.Ports)
		if to == mad.Here && a.sma.Answer(m, number) {
			to, out = m.Begin()
		}
		if to == mad.ByLID {
			at, ok := a.s.lids[m.DirectedSLID()]
			if !ok {
				return true
			}
			to, out = mad.Onward, uint8(at+1)
		}
		if to == mad.Onward {
			a.send(int(out)-1, m, p, tail, 0)
		}
	case a.sma.Answer(m, number):
		a.send(in, m, p, tail, 0)
	}
	return true
}

// send makes a packet with a datagram, which p brought, and sends it by a port: an answer, or an
// SMP that goes on.
func (a *switchAgents) send(out int, m mad.MAD, p *roce.Packet, tail sim.Time, qpn uint32) {
	h := p.LRH()
	path := roce.Path{Framing: roce.InfiniBand, SLID: a.lid(), DLID: h.SLID(), SL: h.SL(), VL: h.VL(), MigReq: true, PKey: p.BTH().PKey(), DestQP: p.DETH().SrcQP()}
	if m.Directed() {
		path.SLID, path.DLID, path.DestQP = roce.PermissiveLID, roce.PermissiveLID, 0
		if m.Returning() && m.HopPointer() == 0 {
			path.SLID, path.DLID = a.lid(), m.DirectedSLID()
		}
	}
	t, err := roce.NewTemplate(path)
	if err != nil {
		return
	}
	f := t.New(&a.frames, roce.UDSendOnly, a.psn, mad.Size, 0)
	a.psn = (a.psn + 1) & roce.PSNMask
	f.DETH().SetQKey(p.DETH().QKey())
	f.DETH().SetSrcQP(qpn)
	copy(f.Payload(), m)
	at := tail + a.s.p.Latency
	if h.VL() == roce.ManagementVL {
		a.s.ports[out].lanes.management(f, at)
		return
	}
	a.s.ports[out].lanes.forward(blocked{f: f, earliest: at, tail: at})
}

// more answers what only a switch has.
func (a *switchAgents) more(m mad.MAD, set bool) (status uint16, ok bool) {
	b := m.SMPData()
	switch m.Attribute() {
	case mad.AttrSwitchInfo:
		if set {
			a.top[0], a.life = uint16(attr.SwitchLinearTop.Get(b)), uint8(attr.SwitchLifetime.Get(b))
			if v := uint16(attr.SwitchMulticastTop.Get(b)); v != 0 {
				a.top[1] = v
			}
		}
		clear(b)
		attr.SwitchLinearCap.Set(b, linearTable)
		attr.SwitchMulticastCap.Set(b, multicastTable)
		attr.SwitchLinearTop.Set(b, uint64(a.top[0]))
		attr.SwitchMulticastTop.Set(b, uint64(a.multicastTop()))
		attr.SwitchLifetime.Set(b, uint64(a.life))
		return mad.StatusOK, true
	case mad.AttrLinearTable:
		return a.linear(m, set), true
	case mad.AttrMulticastTable:
		return a.multicast(m, set), true
	}
	return 0, false
}

// multicastTop is the last multicast LID that is in the table: as a subnet manager has set it, or
// that of the model.
func (a *switchAgents) multicastTop() uint16 {
	top := a.top[1]
	for mlid := range a.s.groups {
		top = max(top, mlid)
	}
	return top
}

// linear is a block of 64 entries of the forwarding table.
func (a *switchAgents) linear(m mad.MAD, set bool) (status uint16) {
	first := int(m.Modifier()) * mad.SMPDataSize
	if first >= linearTable {
		return mad.StatusBadField
	}
	b := m.SMPData()
	for i := range b {
		lid := uint16(first + i)
		at, ok := a.s.lids[lid]
		switch {
		case set && int(b[i]) > 0 && int(b[i]) <= a.sma.Ports:
			a.s.lids[lid] = int(b[i]) - 1
		case set:
			delete(a.s.lids, lid)
		case lid == a.lid() && lid != 0:
			b[i] = 0
		case ok:
			b[i] = uint8(at + 1)
		default:
			b[i] = noPort
		}
	}
	return mad.StatusOK
}

// multicast is a block of 32 entries of the multicast forwarding table: those of 16 ports, a bit
// for each.
func (a *switchAgents) multicast(m mad.MAD, set bool) (status uint16) {
	const block, width = 32, 16
	first, position := int(m.Modifier()&0x1ff)*block, int(m.Modifier()>>28)
	if first >= multicastTable || position*width > a.sma.Ports {
		return mad.StatusBadField
	}
	b := m.SMPData()
	for i := range block {
		mlid := uint16(roce.FirstMulticastLID + first + i)
		f := attr.Field{Offset: uint16(width * i), Width: width}
		if set {
			a.s.setPart(mlid, position*width-1, width, uint16(f.Get(b)))
		}
		bits := uint64(0)
		for _, at := range a.s.outs(mlid) {
			if n := at + 1 - position*width; n >= 0 && n < width {
				bits |= 1 << n
			}
		}
		f.Set(b, bits)
	}
	return mad.StatusOK
}

// setPart sets which of n ports from first on are in a group.
func (s *Switch) setPart(mlid uint16, first, n int, bits uint16) {
	if s.groups == nil && bits == 0 {
		s.groups = map[uint16][]int{}
	}
	var ports []int
	for _, at := range s.groups[mlid] {
		if at < first || at >= first+n {
			ports = append(ports, at)
		}
	}
	for i := range n {
		if at := first + i; bits>>i&1 != 0 && at >= 0 && at < len(s.ports) {
			ports = append(ports, at)
		}
	}
	s.SetGroup(mlid, ports)
}
