package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
)

// gidEntry is an entry of the RoCE address table.
type gidEntry struct {
	valid     bool
	raw       [prm.RoCEAddrSize]byte
	gid       roce.GID
	mac       roce.MAC
	v1        bool
	ib        bool // of an InfiniBand port
	vlanValid bool
	vlan      uint16
}

func (g *gidEntry) framing() roce.Framing {
	switch {
	case g.ib:
		return roce.InfiniBand
	case g.v1:
		return roce.RoCEv1
	case g.gid.IsIPv4():
		return roce.RoCEv2IPv4
	}
	return roce.RoCEv2IPv6
}

// addresses are those of the port: its GIDs and, on InfiniBand, what the subnet manager has set.
type addresses struct {
	*core
	ib     *ibPort // nil: an Ethernet port
	gids   []gidEntry
	gidGen uint32 // counts changes of gids
	vport  [prm.NICVportContextSize]byte
}

// gidIndex finds an address of this port, or -1.
func (d *addresses) gidIndex(g roce.GID) int {
	for i := range d.gids {
		if d.gids[i].valid && d.gids[i].gid == g {
			return i
		}
	}
	return -1
}

// isOwnAddress says whether a packet is for an address of this port.
func (d *addresses) isOwnAddress(p *roce.Packet) bool {
	if p.Framing == roce.InfiniBand { // its LID is, or it would not be here
		return !p.HasGRH() || d.gidIndex(p.DstGID()) >= 0
	}
	gid, mac := p.DstGID(), p.Ethernet().Dst()
	for i := range d.gids {
		if g := &d.gids[i]; g.valid && g.gid == gid && g.mac == mac && g.framing() == p.Framing {
			return true
		}
	}
	return false
}

// udPayload is the most that a datagram carries: the largest MTU of the standard that
// the port's own has room for, and the QP's context allows.
func (d *addresses) udPayload(ctx roce.MTU) int {
	for ctx > roce.MTU256 && !d.carries(ctx) {
		ctx--
	}
	return ctx.Bytes()
}

// resetPort puts the context of an Ethernet port into the state after power-on.
func (d *addresses) resetPort() {
	clear(d.vport[:])
	v := prm.NICVportContext(d.vport[:])
	v.SetMTU(9216)
	v.SetSystemImageGUID(d.id.GUID)
	v.SetPortGUID(d.id.GUID)
	v.SetNodeGUID(d.id.GUID)
	copy(v.PermanentAddress(), d.id.MAC[:])
}

// pkeyAt is the key of a path's index; 0, which matches none, outside the table.
func (d *addresses) pkeyAt(a prm.ADS) uint16 {
	return d.pkey(int(a.PKeyIndex()))
}

func (d *addresses) pkey(index int) uint16 {
	if d.ib != nil && index < ibPKeys {
		return d.ib.pkeys[index]
	}
	return roce.DefaultPKey
}

// pkeyIndexOf finds the first P_Key of the port's table that matches one of a packet, or -1. Any of
// them is good for QP1 (IBTA Vol. 1, 10.9.8).
func (d *addresses) pkeyIndexOf(key uint16) int {
	for i := range int(d.pkeyIndexes()) {
		if roce.PKeyMatch(key, d.pkey(i)) {
			return i
		}
	}
	return -1
}

// pkeyIndexes is how many P_Key indexes there are.
func (d *addresses) pkeyIndexes() uint32 {
	if d.ib != nil {
		return ibPKeys
	}
	return 1
}

// carries says whether packets with an MTU of a code pass the port.
func (d *addresses) carries(m roce.MTU) bool {
	if d.ib != nil {
		return m <= d.ib.info.MTU
	}
	return m.Bytes()+frameOverhead <= int(prm.NICVportContext(d.vport[:]).MTU())
}

// frameOverhead is what a packet has besides its payload, at most: Ethernet header, VLAN
// tag, FCS, GRH or IP and UDP headers, BTH, XRCETH, AtomicETH and ICRC.
const frameOverhead = 14 + 4 + 4 + 40 + 8 + 12 + 4 + 28 + 4

// multicastQPN is the destination of packets to a group.
const multicastQPN = 0xffffff
