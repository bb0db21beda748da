package cm

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// joinTimeout is that of a query of core/multicast.c (send_join, send_leave).
const joinTimeout = 3 * sim.Second

// SetBroadcast says that the interface of an InfiniBand port is in IPoIB's broadcast group, as it
// is since the port came up.
func (m *Manager) SetBroadcast(d *kernel.Device, r mad.MCMemberRecord) {
	for _, p := range m.ports {
		if p.d == d {
			p.broadcast = slices.Clone(r)
		}
	}
}

// portGroup is a group that a port is in, for all who have joined it (struct mcast_group). One
// query is out at a time.
type portGroup struct {
	p       *port
	rec     mad.MCMemberRecord // as the subnet administrator has it; its join states are those of the port
	members []*portMember
	pending []*portMember
	busy    bool
}

// portMember is one who has joined a group (struct mcast_member).
type portMember struct {
	g     *portGroup
	state uint8
	ask   *saRequest
	done  func(status int32, r mad.MCMemberRecord) // nil: it has left
}

// join is ib_sa_join_multicast: done is called later.
func (p *port) join(r *saRequest, rec mad.MCMemberRecord, done func(int32, mad.MCMemberRecord)) *portMember {
	id := rec.MGID()
	g := p.groups[id]
	if g == nil {
		g = &portGroup{p: p, rec: slices.Clone(rec)}
		g.rec.SetJoinState(0)
		if p.groups == nil {
			p.groups = map[roce.GID]*portGroup{}
		}
		p.groups[id] = g
	}
	m := &portMember{g: g, state: rec.JoinState(), ask: r, done: done}
	g.pending = append(g.pending, m)
	g.next()
	return m
}

// leave is ib_sa_free_multicast.
func (m *portMember) leave() {
	if m == nil {
		return
	}
	m.done = nil
	m.g.members = slices.DeleteFunc(m.g.members, func(x *portMember) bool { return x == m })
	m.g.next()
}

// next is mcast_work_handler: it carries out what waits, as far as no query has to be answered
// first.
func (g *portGroup) next() {
	for !g.busy && len(g.pending) > 0 {
		m := g.pending[0]
		g.pending = g.pending[1:]
		switch {
		case m.done == nil:
		case g.rec.JoinState()&m.state == m.state:
			g.joined(m, 0)
		default:
			g.query(m.ask, func(status int32, record []byte) {
				if status == 0 {
					have := g.rec.JoinState() | m.state
					g.rec = slices.Clone(record[:mad.MCMemberRecordSize])
					g.rec.SetJoinState(have)
				}
				g.joined(m, status)
			})
		}
	}
	if !g.busy {
		g.leaveUnused()
	}
}

// joined tells a member how it went.
func (g *portGroup) joined(m *portMember, status int32) {
	if m.done == nil {
		return
	}
	if status == 0 {
		g.members = append(g.members, m)
	}
	rec := slices.Clone(g.rec)
	g.p.m.work.add(func() {
		if m.done != nil {
			m.done(status, rec)
		}
	})
}

// leaveUnused gives up what the port is in the group and no member is any more. Without any the
// group goes.
func (g *portGroup) leaveUnused() {
	unused := g.rec.JoinState()
	for _, m := range g.members {
		unused &^= m.state
	}
	switch {
	case unused != 0 && !g.p.m.breaks(rule.LastMembersLeaveTheirGroup):
		r := &saRequest{method: mad.Delete, attribute: mad.AttrMCMemberRecord, components: mad.MemberMGID | mad.MemberPortGID | mad.MemberJoinState,
			fill: func(b []byte) {
				copy(b, g.rec)
				mad.MCMemberRecord(b[:mad.MCMemberRecordSize]).SetJoinState(unused)
			}}
		g.query(r, func(int32, []byte) { g.rec.SetJoinState(g.rec.JoinState() &^ unused) })
	case g.rec.JoinState() == 0 && len(g.members) == 0:
		delete(g.p.groups, g.rec.MGID())
	}
}

// query asks the subnet administrator, and goes on with what waits when it has answered, or does
// not.
func (g *portGroup) query(r *saRequest, done func(status int32, record []byte)) {
	g.busy = true
	end := func(status int32, record []byte) {
		g.busy = false
		done(status, record)
		g.next()
	}
	if _, err := g.p.sa.ask(r, joinTimeout, end); err != nil {
		status := -int32(verbs.ErrnoOf(err))
		g.p.m.work.add(func() { end(status, nil) })
	}
}

// Signatures of multicast GIDs that are made of groups of IP.
const (
	signatureIPv4   = 0x401b
	signatureIPv6   = 0x601b
	signatureRDMACM = 0x01 // in place of the low byte, in the port space UDP (cma_set_mgid)
)

// mappedGroup is ip_ib_mc_map and ipv6_ib_mc_map: the multicast GID of a group of IP in the
// partition of an interface.
func mappedGroup(a netip.Addr, pkey uint16) (g roce.GID) {
	const linkLocal = 2 // scope, of the broadcast group
	signature := uint16(signatureIPv4)
	if b := a.As16(); !a.Is4() {
		signature = signatureIPv6
		copy(g[6:], b[6:])
	} else {
		copy(g[12:], b[12:])
		g[12] &= 0x0f
	}
	g[0], g[1], g[2], g[3] = 0xff, 0x10|linkLocal, byte(signature>>8), byte(signature)
	g[4], g[5] = byte(pkey>>8), byte(pkey)
	return g
}

// groupGID is cma_set_mgid.
func (x *rdmaID) groupGID(a netip.Addr) roce.GID {
	b := a.As16()
	if !a.Is4() && b[0] == 0xff && b[1]&0xf0 == 0x10 && b[2] == 0xa0 && b[3] == 0x1b { // the subnet administrator has given it
		return roce.GID(b)
	}
	g := mappedGroup(a, x.pkey)
	if x.ps == verbs.PortSpaceUDP {
		g[3] = signatureRDMACM
	}
	return g
}

// joinIB is cma_join_ib_multicast.
func (x *rdmaID) joinIB(g *membership) error {
	p := x.port
	if p.broadcast == nil {
		return fmt.Errorf("%s is not in the broadcast group: %w", p.d.Name(), syscall.EADDRNOTAVAIL)
	}
	if err := x.setQKey(0); err != nil {
		return err
	}
	rec := mad.MCMemberRecord(slices.Clone(p.broadcast))
	rec.SetMGID(x.groupGID(g.addr))
	rec.SetPortGID(roce.GID(x.sourceGID()))
	rec.SetQKey(x.qkey)
	rec.SetMLID(0)
	rec.SetPKey(x.pkey)
	rec.SetJoinState(mad.JoinFull)
	if g.flags&verbs.MulticastSendOnly != 0 {
		rec.SetJoinState(mad.JoinSendOnlyFull)
	}
	r := &saRequest{method: mad.Set, attribute: mad.AttrMCMemberRecord, fill: func(b []byte) { copy(b, rec) },
		components: mad.MemberMGID | mad.MemberPortGID | mad.MemberPKey | mad.MemberJoinState | mad.MemberQKey | mad.MemberSL | mad.MemberFlowLabel |
			mad.MemberTrafficClass}
	if x.ps == verbs.PortSpaceIPoIB {
		r.components |= mad.MemberRate | mad.MemberRateSelector | mad.MemberMTU | mad.MemberMTUSelector | mad.MemberHopLimit
	}
	g.member = p.join(r, rec, func(status int32, rec mad.MCMemberRecord) {
		e := &idEvent{typ: verbs.CMMulticastJoin, group: g}
		if status == 0 && x.setQKey(rec.QKey()) != nil {
			status = -int32(syscall.EINVAL)
		}
		if status != 0 {
			e.typ, e.status = verbs.CMMulticastError, status
		} else {
			e.ud = x.ibGroupParam(rec)
		}
		x.report(e)
	})
	return nil
}

// ibGroupParam is cma_make_mc_event of a member record (ib_init_ah_from_mcmember).
func (x *rdmaID) ibGroupParam(r mad.MCMemberRecord) verbs.UDParam {
	_, rate := r.Rate()
	return verbs.UDParam{QPN: multicastQPN, QKey: r.QKey(), AH: verbs.AHAttr{IsGlobal: true, Port: 1, DLID: r.MLID(), SL: r.SL(), StaticRate: rate,
		GRH: verbs.GRH{DGID: verbs.GID(r.MGID()), SGIDIndex: uint8(x.sgid), FlowLabel: r.FlowLabel(), HopLimit: r.HopLimit(), TrafficClass: r.TrafficClass()}}}
}
