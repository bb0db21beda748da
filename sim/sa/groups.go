package sa

import (
	"cmp"
	"slices"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim/link"
)

// maxGroups is how many groups there can be: what forwarding tables of switches commonly hold.
const maxGroups = 4096

// group is a multicast group.
type group struct {
	mgid      roce.GID
	mlid      uint16
	qkey      uint32
	pkey      uint16
	mtu       roce.MTU
	rate      uint8
	lifetime  uint8
	tclass    uint8
	sl        uint8
	flow      uint32
	hops      uint8
	permanent bool // it is there without members, too
	members   []joined
}

// joined is a member: a port, and in which ways it is one.
type joined struct {
	m      *Member
	states uint8
}

// multicast are the groups of the subnet, in the order of their multicast LIDs.
type multicast struct {
	node   *Node
	groups []*group
	made   uint32 // multicast GIDs
}

// broadcastQKey is that of IPoIB's broadcast group as OpenSM makes it, likewise its MTU and its
// rate of 10 Gb/s.
const (
	broadcastQKey = 0x0B1B
	broadcastMTU  = roce.MTU2048
	broadcastRate = 3
)

// broadcastGID is the group of 255.255.255.255.
var broadcastGID = roce.GID{0xFF, 0x12, 0x40, 0x1B, 0xFF, 0xFF, 12: 0xFF, 13: 0xFF, 14: 0xFF, 15: 0xFF}

// makeBroadcast makes the group that IPoIB's interfaces of the default partition join first (RFC
// 4391, 4).
func (c *multicast) makeBroadcast() {
	c.add(&group{
		mgid: broadcastGID, qkey: broadcastQKey,
		pkey: roce.DefaultPKey, mtu: broadcastMTU, rate: broadcastRate, lifetime: lifetime, permanent: true,
	})
}

// add gives a group the lowest free multicast LID and enters it. ok is false when there is no room.
func (c *multicast) add(g *group) (ok bool) {
	if len(c.groups) >= maxGroups {
		return false
	}
	at := 0
	for at < len(c.groups) && c.groups[at].mlid == roce.FirstMulticastLID+uint16(at) {
		at++
	}
	g.mlid = roce.FirstMulticastLID + uint16(at)
	c.groups = slices.Insert(c.groups, at, g)
	c.forward(g)
	return true
}

func (c *multicast) find(mgid roce.GID) *group {
	for _, g := range c.groups {
		if g.mgid == mgid {
			return g
		}
	}
	return nil
}

// forward writes a group into the switch: its packets go to the ports whose members receive.
func (c *multicast) forward(g *group) {
	const receives = mad.JoinFull | mad.JoinNonMember
	var ports []int
	for _, j := range g.members {
		if j.states&receives != 0 {
			ports = append(ports, j.m.At)
		}
	}
	c.node.groups.SetGroup(g.mlid, ports)
}

// member finds the port that a request is about.
func (c *multicast) member(gid roce.GID) *Member {
	for _, m := range c.node.members {
		if m.active() && m.gid() == gid {
			return m
		}
	}
	return nil
}

// JoinBroadcast makes a port a full member of IPoIB's broadcast group, as the interface of a host
// that came up before anybody looked has done. ok is false for a port that is not active, or none
// of the subnet's.
func (n *Node) JoinBroadcast(m link.Managed) (rec mad.MCMemberRecord, ok bool) {
	g := n.mcast.find(broadcastGID)
	for _, x := range n.members {
		if g == nil || x.Managed != m || !x.active() {
			continue
		}
		i := g.enter(x)
		g.members[i].states |= mad.JoinFull
		n.mcast.forward(g)
		return g.record(x.gid(), g.members[i].states), true
	}
	return nil, false
}

// enter finds the place of a member, which is made if there is none.
func (g *group) enter(m *Member) int {
	i := slices.IndexFunc(g.members, func(j joined) bool { return j.m == m })
	if i < 0 {
		i = len(g.members)
		g.members = append(g.members, joined{m: m})
	}
	return i
}

// Components without which nobody joins, and without which a join makes no group.
const (
	joinNeeds   = mad.MemberMGID | mad.MemberPortGID | mad.MemberJoinState
	createNeeds = joinNeeds | mad.MemberQKey | mad.MemberTrafficClass | mad.MemberPKey | mad.MemberFlowLabel | mad.MemberSL
)

// join makes a port a member of a group, and the group where there is none yet.
func (c *multicast) join(mask uint64, b []byte) (rec []byte, status uint16) {
	q := mad.MCMemberRecord(b)
	if mask&joinNeeds != joinNeeds {
		return nil, mad.StatusTooFewComponents
	}
	states := q.JoinState()
	m, g := c.member(q.PortGID()), c.find(q.MGID())
	switch {
	case m == nil || states == 0:
		return nil, mad.StatusRequestInvalid
	case g == nil:
		if g, status = c.create(mask, q); status != mad.StatusOK {
			return nil, status
		}
	case !c.suits(mask, q, g):
		return nil, mad.StatusRequestInvalid
	}
	i := g.enter(m)
	g.members[i].states |= states
	c.forward(g)
	return g.record(m.gid(), g.members[i].states), mad.StatusOK
}

// create makes the group of a request; who makes it is a full member, or one that only sends.
func (c *multicast) create(mask uint64, q mad.MCMemberRecord) (g *group, status uint16) {
	if mask&createNeeds != createNeeds {
		return nil, mad.StatusTooFewComponents
	}
	s, v := q.MTU()
	mtu, ok1 := chooseMTU(mask&mad.MemberMTU != 0, s, v, c.node.port().MTU)
	s, v = q.Rate()
	rate, ok2 := chooseRate(mask&mad.MemberRate != 0, s, v, c.node.rate)
	mgid := q.MGID()
	if mgid == (roce.GID{}) {
		mgid = c.free(q.Scope())
	}
	const makes = mad.JoinFull | mad.JoinSendOnlyFull
	if !ok1 || !ok2 || !mgid.IsMulticast() || q.JoinState()&makes == 0 || !c.node.hasPKey(q.PKey()) {
		return nil, mad.StatusRequestInvalid
	}
	g = &group{
		mgid: mgid, qkey: q.QKey(), pkey: q.PKey(), mtu: mtu, rate: rate, lifetime: lifetime, tclass: q.TrafficClass(), sl: q.SL(), flow: q.FlowLabel(),
	}
	if mask&mad.MemberHopLimit != 0 {
		g.hops = q.HopLimit()
	}
	if !c.add(g) {
		return nil, mad.StatusNoResources
	}
	return g, mad.StatusOK
}

// free is a multicast GID that no group has: those that OpenSM gives have 0xA01B as signature.
func (c *multicast) free(scope uint8) roce.GID {
	const linkLocal = 2
	scope = cmp.Or(scope, linkLocal)
	g := roce.GID{0xFF, 0x10 | scope, 0xA0, 0x1B}
	for {
		n := c.made
		c.made++
		g[12], g[13], g[14], g[15] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
		if c.find(g) == nil {
			return g
		}
	}
}

// suits says whether a group is as a request wants it.
func (c *multicast) suits(mask uint64, q mad.MCMemberRecord, g *group) bool {
	s, v := q.MTU()
	mtu, ok1 := chooseMTU(mask&mad.MemberMTU != 0 && mask&mad.MemberMTUSelector != 0, s, v, g.mtu)
	s, v = q.Rate()
	rate, ok2 := chooseRate(mask&mad.MemberRate != 0 && mask&mad.MemberRateSelector != 0, s, v, g.rate)
	given := func(component uint64, same bool) bool { return mask&component == 0 || same }
	return ok1 && ok2 && mtu == g.mtu && rate == g.rate &&
		given(mad.MemberMLID, q.MLID() == g.mlid) &&
		given(mad.MemberQKey, q.QKey() == g.qkey) && given(mad.MemberPKey, q.PKey()|0x8000 == g.pkey|0x8000) &&
		given(mad.MemberTrafficClass, q.TrafficClass() == g.tclass) && given(mad.MemberSL, q.SL() == g.sl) &&
		given(mad.MemberFlowLabel, q.FlowLabel() == g.flow) && given(mad.MemberHopLimit, q.HopLimit() == g.hops)
}

// leave ends a membership, or some ways of it; a group without members that make one goes.
func (c *multicast) leave(mask uint64, b []byte) (rec []byte, status uint16) {
	q := mad.MCMemberRecord(b)
	if mask&joinNeeds != joinNeeds {
		return nil, mad.StatusTooFewComponents
	}
	g, m := c.find(q.MGID()), c.member(q.PortGID())
	if g == nil || m == nil {
		return nil, mad.StatusRequestInvalid
	}
	i := slices.IndexFunc(g.members, func(j joined) bool { return j.m == m })
	if i < 0 || g.members[i].states&q.JoinState() == 0 {
		return nil, mad.StatusRequestInvalid
	}
	rec = g.record(m.gid(), g.members[i].states&q.JoinState())
	c.end(g, i, q.JoinState())
	return rec, mad.StatusOK
}

// end takes states from a member.
func (c *multicast) end(g *group, i int, states uint8) {
	if g.members[i].states &^= states; g.members[i].states == 0 {
		g.members = slices.Delete(g.members, i, i+1)
	}
	const keeps = mad.JoinFull | mad.JoinSendOnlyFull
	if g.permanent || slices.ContainsFunc(g.members, func(j joined) bool { return j.states&keeps != 0 }) {
		c.forward(g)
		return
	}
	g.members = nil
	c.forward(g)
	c.groups = slices.DeleteFunc(c.groups, func(x *group) bool { return x == g })
}

// forget ends all memberships of a port.
func (c *multicast) forget(m *Member) {
	for _, g := range slices.Clone(c.groups) {
		if i := slices.IndexFunc(g.members, func(j joined) bool { return j.m == m }); i >= 0 {
			c.end(g, i, g.members[i].states)
		}
	}
}

// records are those of groups that suit a request. Without trust, which nobody has here, a group
// has one, which names no member.
func (c *multicast) records(mask uint64, b []byte) (all [][]byte) {
	q := mad.MCMemberRecord(b)
	for _, g := range c.groups {
		if mask&mad.MemberMGID != 0 && q.MGID() != g.mgid || !c.suits(mask, q, g) {
			continue
		}
		states := uint8(0)
		for _, j := range g.members {
			states |= j.states
		}
		all = append(all, g.record(roce.GID{}, states))
	}
	return all
}

// paths is the way to a group.
func (c *multicast) paths(mask uint64, q mad.PathRecord) (all [][]byte, status uint16) {
	g := c.find(q.DGID())
	if g == nil {
		return nil, mad.StatusOK
	}
	for _, from := range c.node.members {
		if !from.active() || !named(mask, mad.PathSGID, mad.PathSLID, q.SGID(), q.SLID(), from) {
			continue
		}
		rec := make([]byte, mad.PathRecordSize)
		r := mad.PathRecord(rec)
		r.SetDGID(g.mgid)
		r.SetSGID(from.gid())
		r.SetDLID(g.mlid)
		r.SetSLID(from.PortInfo().LID)
		r.SetFlowLabel(g.flow)
		r.SetTrafficClass(g.tclass)
		r.SetPKey(g.pkey)
		r.SetSL(g.sl)
		r.SetMTU(mad.Exactly, uint8(g.mtu))
		r.SetRate(mad.Exactly, g.rate)
		r.SetLifetime(mad.Exactly, g.lifetime)
		all = append(all, rec)
	}
	return all, mad.StatusOK
}

// record is a group with a member of it.
func (g *group) record(port roce.GID, states uint8) []byte {
	rec := make([]byte, mad.MCMemberRecordSize)
	r := mad.MCMemberRecord(rec)
	r.SetMGID(g.mgid)
	r.SetPortGID(port)
	r.SetQKey(g.qkey)
	r.SetMLID(g.mlid)
	r.SetMTU(mad.Exactly, uint8(g.mtu))
	r.SetTrafficClass(g.tclass)
	r.SetPKey(g.pkey)
	r.SetRate(mad.Exactly, g.rate)
	r.SetLifetime(mad.Exactly, g.lifetime)
	r.SetSL(g.sl)
	r.SetFlowLabel(g.flow)
	r.SetHopLimit(g.hops)
	r.SetScope(g.mgid[1] & 0xF)
	r.SetJoinState(states)
	return rec
}
