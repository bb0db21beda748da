package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
)

// rebuildPaths makes the headers of connected QPs again, after a change of the port.
func (d *Device) rebuildPaths() {
	for _, q := range d.qps {
		if q != nil && q.state != prm.QPStateRST && q.state != prm.QPStateINIT {
			q.repath()
		}
	}
}

// ibPKey is the key of a path's index; 0, which matches none, outside the table.
func (d *addresses) pkeyAt(a prm.ADS) uint16 {
	if i := a.PKeyIndex(); d.ib != nil && i < ibPKeys {
		return d.ib.pkeys[i]
	}
	return roce.DefaultPKey
}

// pkeyIndexes is how many P_Key indexes there are.
func (d *addresses) pkeyIndexes() uint32 {
	if d.ib != nil {
		return ibPKeys
	}
	return 1
}

// vl is the lane of a service level: the table that the subnet manager would set is the
// level modulo the number of lanes.
func (b *ibPort) vl(sl uint8) uint8 { return sl % max(b.info.VLs, 1) }

// accepts says whether a packet that came from the link is for this port (IBTA Vol. 1,
// 7.7.4 and 9.6.1.1): its LID, or that of a group, in a state that takes packets.
func (d *addresses) accepts(p *roce.Packet) bool {
	if d.ib == nil || p.Framing != roce.InfiniBand || d.ib.info.State < roce.PortArmed {
		return false
	}
	dlid := p.LRH().DLID()
	if roce.IsMulticastLID(dlid) {
		return p.HasGRH() && p.BTH().DestQP() == multicastQPN
	}
	return dlid>>d.ib.info.LMC == d.ib.info.LID>>d.ib.info.LMC && p.BTH().DestQP() != multicastQPN
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

// setIBPath is setPath on InfiniBand.
func (q *connection) setIBPath() bool {
	d, c := q.d, q.context()
	a := c.PrimaryPath()
	p, ok := d.ibPath(uint16(a.RLID()), uint8(a.MLID()), uint8(a.SL()), a.GRH(), int(a.SrcAddrIndex()))
	if !ok {
		return false
	}
	q.remote, q.pkey, q.framing = c.RemoteQPN(), d.pkeyAt(a), roce.InfiniBand
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
	q.loop = d.isOwnLID(p.DLID)
	return true
}

func (d *addresses) isOwnLID(lid uint16) bool {
	i := &d.ib.info
	return lid>>i.LMC == i.LID>>i.LMC
}

// makeIBPath is makePath on InfiniBand.
func (q *requester) makeIBPath(e *avPath, av prm.AVSegment) {
	d := q.d
	p, ok := d.ibPath(av.RLID(), av.FLMLID()&0x7f, av.StatRateSL()&15, av.GRHPresent(), int(av.SGIDIndex()))
	if !ok {
		return
	}
	p.PKey = q.pkey
	if p.Global {
		copy(p.DstGID[:], av.RGID())
		p.TrafficClass, p.HopLimit, p.FlowLabel = av.TClass(), av.HopLimit(), av.FlowLabel()
	}
	e.group = roce.IsMulticastLID(p.DLID)
	if e.group && !p.DstGID.IsMulticast() {
		return
	}
	t, err := roce.NewTemplate(p)
	if err != nil {
		return
	}
	e.ok, e.tmpl = true, t
	e.loop = !e.group && d.isOwnLID(p.DLID)
}

// fromIBPeer checks the addresses of a packet to a connected QP (IBTA Vol. 1, 9.6.1.5):
// the peer's LID, and global or not as the QP's own path is.
func (q *connection) fromIBPeer(p *roce.Packet) bool {
	lmc := q.d.ib.info.LMC
	if p.LRH().SLID()>>lmc != q.dlid>>lmc || p.HasGRH() != (q.dstGID != roce.GID{}) {
		return false
	}
	return p.SrcGID() == q.dstGID && p.DstGID() == q.srcGID
}

// badPKey counts a packet of a partition that the QP is not in.
func (d *Device) badPKey() {
	d.c.RxPKey++
	if d.ib != nil && d.ib.badPKeys != 1<<16-1 {
		d.ib.badPKeys++
	}
}

// badQKey likewise for a datagram's Q_Key.
func (d *Device) badQKey() {
	d.c.RxQKey++
	if d.ib != nil && d.ib.badQKeys != 1<<16-1 {
		d.ib.badQKeys++
	}
}

// carries says whether packets with an MTU of a code pass the port.
func (d *Device) carries(m roce.MTU) bool {
	if d.ib != nil {
		return m <= d.ib.info.MTU
	}
	return m.Bytes()+frameOverhead <= int(prm.NICVportContext(d.fw.vport[:]).MTU())
}

// ibDatagramCQE is what a completion of a datagram says on InfiniBand.
func (q *responder) ibDatagramCQE(e prm.CQE64, p *roce.Packet) {
	h := p.LRH()
	e.SetSLID(h.SLID())
	e.SetSL(uint32(h.SL()))
	e.SetMLPath(uint8(h.DLID()) & (1<<q.d.ib.info.LMC - 1))
	if p.HasGRH() {
		e.SetGRH(1)
	}
	if !p.Has(roce.HasImmDt) {
		e.SetImmInvalPKey(q.context().PrimaryPath().PKeyIndex())
	}
}
