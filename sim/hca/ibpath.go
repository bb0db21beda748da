package hca

import (
	"github.com/rdmasim/rdmasim/roce"
)

// vl is the lane of a service level: the table that the subnet manager would set is the
// level modulo the number of lanes.
func (b *ibPort) vl(sl uint8) uint8 { return sl % max(b.info.VLs, 1) }

// accepts says whether a packet that came from the link is for this port (IBTA Vol. 1,
// 7.7.4 and 9.6.1.1): its LID, or that of a group, in a state that takes packets.
func (d *addresses) accepts(p *roce.Packet) bool {
	b := d.ib
	if b != nil && p.Framing == roce.InfiniBand && b.lids.has(p.LRH().DLID()) { // as nearly all
		if q := p.BTH().DestQP(); q == 0 || q == multicastQPN {
			return d.acceptsElse(p)
		}
		return true
	}
	return d.acceptsElse(p)
}

// managementPath is the way of packets from QP0, whatever the state of the port: on the lane of
// their own. A port without a LID, and a packet to the next node, have the permissive one.
func (d *addresses) managementPath(rlid uint16) roce.Path {
	p := roce.Path{Framing: roce.InfiniBand, SLID: d.ib.info.LID, DLID: rlid, VL: roce.ManagementVL, MigReq: true}
	if p.SLID == 0 || rlid == roce.PermissiveLID {
		p.SLID = roce.PermissiveLID
	}
	return p
}

// acceptsElse is accepts of packets to groups, and where the port has no LID that takes packets.
//
//go:noinline
func (d *addresses) acceptsElse(p *roce.Packet) bool {
	b := d.ib
	if b == nil || p.Framing != roce.InfiniBand {
		return false
	}
	dlid, dest := p.LRH().DLID(), p.BTH().DestQP()
	if p.LRH().VL() == roce.ManagementVL {
		return dest == 0 && b.info.State >= roce.PortInit && (dlid == roce.PermissiveLID || dlid == b.info.LID)
	}
	if b.info.State < roce.PortArmed || dest == 0 {
		return false
	}
	if roce.IsMulticastLID(dlid) {
		return p.HasGRH() && dest == multicastQPN
	}
	return (dlid^b.info.LID)>>(b.info.LMC&15) == 0 && dest != multicastQPN
}

// ibPath is the way from this port that an address path or an address vector describes.
// ok is false when it cannot be put into a packet: no LID yet, no entry in the table.
func (d *addresses) ibPath(rlid uint16, srcBits, sl uint8, global bool, sgid int) (p roce.Path, ok bool) {
	b := d.ib
	p = roce.Path{
		Framing: roce.InfiniBand, SLID: b.info.LID | uint16(srcBits)&(1<<b.info.LMC-1), DLID: rlid,
		SL: sl & 15, VL: b.vl(sl & 15), Global: global, MigReq: true,
	}
	if !global {
		return p, true
	}
	if sgid >= len(d.gids) || !d.gids[sgid].valid {
		return p, false
	}
	p.SrcGID = d.gids[sgid].gid
	return p, true
}

func (d *addresses) isOwnLID(lid uint16) bool {
	i := &d.ib.info
	return lid>>i.LMC == i.LID>>i.LMC
}

// badPKey counts a packet of a partition that the QP is not in.
func (d *addresses) badPKey() {
	d.c.RxPKey++
	if d.ib != nil && d.ib.badPKeys != 1<<16-1 {
		d.ib.badPKeys++
	}
}

// badQKey likewise for a datagram's Q_Key.
func (d *addresses) badQKey() {
	d.c.RxQKey++
	if d.ib != nil && d.ib.badQKeys != 1<<16-1 {
		d.ib.badQKeys++
	}
}

// fillGIDs makes the one entry of the port's table.
func (d *addresses) fillGIDs() {
	g := roce.GIDFromGUID(d.ib.info.GIDPrefix, d.id.GUID)
	d.gids[0] = gidEntry{valid: d.ib.info.GIDPrefix != 0, gid: g, ib: true}
}
