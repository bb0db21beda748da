package hca

import (
	"cmp"
	"slices"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// defaultHopLimit stands in for an address without one.
const defaultHopLimit = 64

// setPath makes the packet template of the primary path. It reports false when the
// source address is not in the table or does not suit the destination.
func (q *connection) setPath() bool {
	if q.u.ib != nil {
		return q.setIBPath()
	}
	c := q.context()
	a := c.PrimaryPath()
	u := q.u
	i := int(a.SrcAddrIndex())
	forced := a.FL() && u.p.SWSteering
	if forced { // back to this port, whatever its addresses are
		i = slices.IndexFunc(u.gids, func(g gidEntry) bool { return g.valid })
	}
	if i < 0 || i >= len(u.gids) || !u.gids[i].valid {
		return false
	}
	g := &u.gids[i]
	copy(q.dstGID[:], a.RGID())
	if forced {
		q.dstGID = g.gid
	}
	q.srcGID, q.remote, q.pkey = g.gid, c.RemoteQPN(), roce.DefaultPKey
	q.vlan = 0
	if g.vlanValid {
		q.vlan = g.vlan & roce.VLANMask
	}
	q.framing, q.from4 = g.framing(), roce.IPv4SrcDst(q.dstGID.IPv4(), q.srcGID.IPv4())
	flow := cmp.Or(a.FlowLabel(), roce.FlowLabel(q.num, q.remote))
	port := cmp.Or(u.id.SourcePort, uint16(a.UDPSport()), roce.UDPSourcePort(flow))
	path := roce.Path{
		Framing: g.framing(), SrcMAC: g.mac, SrcGID: q.srcGID, DstGID: q.dstGID,
		TrafficClass: uint8(a.TClass()), HopLimit: uint8(a.HopLimit()), FlowLabel: a.FlowLabel(),
		SrcPort: port, PKey: q.pkey, DestQP: q.remote, MigReq: true,
		Tagged: g.vlanValid, VLANTCI: uint16(a.EthPrio())<<13 | g.vlan,
	}
	copy(path.DstMAC[:], a.RMAC())
	if forced {
		path.DstMAC = g.mac
	}
	path.TrafficClass = cmp.Or(path.TrafficClass, uint8(a.DSCP()<<2|a.ECN()))
	path.HopLimit = cmp.Or(path.HopLimit, defaultHopLimit)
	q.cnp = nil
	if u.p.Congestion.DCQCN && (g.framing() == roce.RoCEv2IPv4 || g.framing() == roce.RoCEv2IPv6) {
		path.TrafficClass = ectTrafficClass(path.TrafficClass)
		notice := path
		notice.MigReq, notice.PKey, notice.TrafficClass = false, roce.DefaultPKey, u.p.Congestion.CNPDSCP<<2
		t, err := roce.NewTemplate(notice)
		if err != nil {
			return false
		}
		q.cnp, q.cnpAt = &t, -sim.Second
	}
	t, err := roce.NewTemplate(path)
	if err != nil {
		return false
	}
	q.tmpl = t
	q.loop = u.gidIndex(q.dstGID) >= 0
	return true
}

// setIBPath is setPath on InfiniBand.
func (q *connection) setIBPath() bool {
	u, c := q.u, q.context()
	a := c.PrimaryPath()
	p, ok := u.ibPath(uint16(a.RLID()), uint8(a.MLID()), uint8(a.SL()), a.GRH(), int(a.SrcAddrIndex()))
	if !ok {
		return false
	}
	q.remote, q.pkey, q.framing = c.RemoteQPN(), u.pkeyAt(a), roce.InfiniBand
	p.PKey, p.DestQP = q.pkey, q.remote
	q.srcGID, q.dstGID = roce.GID{}, roce.GID{}
	if p.Global {
		copy(p.DstGID[:], a.RGID())
		p.TrafficClass, p.HopLimit, p.FlowLabel = uint8(a.TClass()), uint8(a.HopLimit()), a.FlowLabel()
		q.srcGID, q.dstGID = p.SrcGID, p.DstGID
	}
	t, err := roce.NewTemplate(p)
	if err != nil || roce.IsMulticastLID(p.DLID) {
		return false
	}
	q.tmpl, q.dlid = t, p.DLID
	q.loop = u.isOwnLID(p.DLID)
	return true
}
