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
		return p.BTH().DestQP() != multicastQPN
	}
	return d.acceptsElse(p)
}

// acceptsElse is accepts of packets to groups, and where the port has no LID that takes packets.
//
//go:noinline
func (d *addresses) acceptsElse(p *roce.Packet) bool {
	b := d.ib
	if b == nil || p.Framing != roce.InfiniBand || b.info.State < roce.PortArmed {
		return false
	}
	dlid, dest := p.LRH().DLID(), p.BTH().DestQP()
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
