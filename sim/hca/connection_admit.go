package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// admits checks transport, state, addresses and partition of a received packet
// (IBTA Vol. 1, 9.6, packet header validation); a packet that is not admitted is
// dropped silently.
func (q *connection) admits(p *roce.Packet) bool {
	if q.st == prm.STUD {
		return q.admitsDatagram(p)
	}
	if p.Op.Transport() != q.transport {
		return false
	}
	kind := p.Info().Kind
	if q.st >= prm.STXRC && !q.takes(kind) {
		return false
	}
	if kind == roce.KindRequest && !q.takesRequests() || kind == roce.KindResponse && !q.takesResponses() {
		return false
	}
	if !q.fromPeer(p) && !q.breaks(rule.PacketsComeFromThePeer) {
		q.u.c.RxAddress++
		return false
	}
	if key := p.BTH().PKey(); !roce.PKeyMatch(key, q.pkey) && !q.breaks(rule.PKeysMatch) && !q.partMatches(key) {
		q.u.badPKey()
		return false
	}
	return true
}

// admitsDatagram checks a received packet that names this UD QP, or a group that it is
// in.
func (q *connection) admitsDatagram(p *roce.Packet) bool {
	u := q.u
	switch {
	case q.st != prm.STUD || p.Op.Transport() != roce.UD || !q.takesRequests():
		return false
	case p.BTH().DestQP() != q.wireQPN && p.BTH().DestQP() != multicastQPN:
		return false // QP0 and QP1 are known by these numbers only
	case p.BTH().DestQP() != multicastQPN && !u.isOwnAddress(p) && !q.breaks(rule.DatagramsAreForThePort):
		u.c.RxAddress++
		return false
	case q.manages(): // which looks at neither key
		return true
	case !roce.PKeyMatch(p.BTH().PKey(), q.pkey) && !q.partMatches(p.BTH().PKey()) && (!q.special() || u.pkeyIndexOf(p.BTH().PKey()) < 0):
		u.badPKey()
		return false
	case p.DETH().QKey() != q.context().QKey() && !q.breaks(rule.QKeysMatch) && !q.halfMatches(p.DETH().QKey()^q.context().QKey()):
		u.badQKey()
		return false
	}
	return true
}

// halfMatches is true for Q_Keys that differ in a half that a broken device does not compare.
func (q *connection) halfMatches(difference uint32) bool {
	return q.breaks(rule.QKeysMatchInTheirHighHalf) && uint16(difference) == 0 || q.breaks(rule.QKeysMatchInTheirLowHalf) && difference>>16 == 0
}

// partMatches is true for P_Keys that differ where a broken device does not look.
func (q *connection) partMatches(key uint16) bool {
	return q.breaks(rule.LimitedMembersDoNotTalk) && (key^q.pkey)&0x7fff == 0 || q.breaks(rule.PKeysMatchInTheirHighByte) && uint8(key^q.pkey) == 0
}

// fromPeer checks the addresses of a packet to a connected QP (of InfiniBand: IBTA Vol. 1,
// 9.6.1.5).
func (q *connection) fromPeer(p *roce.Packet) bool {
	if p.Framing != q.framing {
		return false
	}
	if p.Framing == roce.InfiniBand { // which has no VLANs
		// The peer's LID, and global or not as the QP's own path is.
		lmc := q.u.ib.info.LMC
		if (p.LRH().SLID()^q.dlid)>>(lmc&15) != 0 {
			return false
		}
		return !p.HasGRH() && q.dstGID.IsZero() || q.fromGlobalPeer(p)
	}
	if p.VLANID() != q.vlan {
		return false
	}
	if p.Framing == roce.RoCEv2IPv4 {
		from := p.IPv4().SrcDst()
		return from == q.from4 || q.breaks(rule.PacketsAreForThisAddress) && from>>32 == q.from4>>32
	}
	return p.SrcGID() == q.dstGID && p.DstGID() == q.srcGID
}

// fromGlobalPeer checks the GIDs of an InfiniBand packet.
//
//go:noinline
func (q *connection) fromGlobalPeer(p *roce.Packet) bool {
	return p.HasGRH() && !q.dstGID.IsZero() && p.SrcGID() == q.dstGID && p.DstGID() == q.srcGID
}
