package oracle

import (
	"fmt"
	"slices"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
)

// structural are the rules of frames that do not decode.
var structural = map[roce.DropReason]string{
	roce.DropShort: "OR-016", roce.DropLong: "OR-016", roce.DropIPVersion: "OR-025", roce.DropIPOptions: "OR-006",
	roce.DropIPChecksum: "OR-008", roce.DropIPFragment: "OR-006", roce.DropIPLength: "OR-009", roce.DropUDPLength: "OR-009",
	roce.DropUDPChecksum: "OR-010", roce.DropGRH: "OR-025", roce.DropLRH: "OR-026", roce.DropBTHVersion: "OR-013",
	roce.DropOpcode: "OR-015", roce.DropLength: "OR-016",
}

// rec is a decoded frame.
type rec struct {
	*Frame
	p    roce.Packet
	info *roce.OpInfo
	psn  uint32
	kind roce.Kind
}

// decode reads a frame and judges what it shows by itself. It is nil when the frame
// is not RDMA or no receiver can accept it.
func (j *judge) decode(f *Frame) *rec {
	p, err := j.parse(f)
	if err == roce.DropNotRDMA || err != nil && err != errHeadersCut && !f.InfiniBand && !isRoCE(f.Data) {
		return nil
	}
	j.res.RDMA++
	if f.cut() {
		j.wasCut(f, err == errHeadersCut)
	}
	switch {
	case err == errHeadersCut:
		return nil
	case err != nil:
		reason, _ := err.(roce.DropReason)
		j.verdict(Violation, structural[reason], f.Number, "", "%v", reason)
		return nil
	}
	if p.Info().Class == roce.ClassSelectiveNAK && j.o.Sender != SelectiveAck {
		j.verdict(Violation, structural[roce.DropOpcode], f.Number, flowName(&p), "%v: opcode %#02x, unless it is a NAK with SACK in the form that this project assumes", roce.DropOpcode, uint8(p.Op))
		return nil
	}
	r := &rec{Frame: f, p: p, info: p.Info(), psn: p.BTH().PSN(), kind: p.Info().Kind}
	flow := flowName(&p)
	if !f.cut() && !p.ICRCOK() {
		if f.Fate != Corrupted {
			j.verdict(Violation, "OR-011", f.Number, flow, "ICRC %#08x, the bytes have %#08x", p.StoredICRC(), p.ComputeICRC())
		}
		return nil
	}
	if f.InfiniBand {
		j.infiniBand(r, flow)
	}
	j.network(r, flow)
	j.transport(r, flow)
	return r
}

// isRoCE says whether an Ethernet frame that does not decode is of RoCE all the same: others may be
// fragments, have options or checksums that the adapter fills in.
func isRoCE(b []byte) bool {
	h := ether.Parse(b)
	return h.Type == roce.EtherTypeRoCE || h.Proto == roce.ProtoUDP && h.Transport > 0 && h.DstPort == roce.UDPPort
}

func (j *judge) network(r *rec, flow string) {
	p := &r.p
	if p.Framing == roce.RoCEv2IPv4 && p.IPv4().FlagsOffset()&roce.IPv4DontFragment == 0 {
		j.constant(Warning, "OR-007", r, flow, "DF is clear")
	}
	if p.Framing == roce.RoCEv2IPv4 || p.Framing == roce.RoCEv2IPv6 {
		if port := p.UDP().SrcPort(); port < 0xC000 {
			j.constant(Warning, "OR-003", r, flow, "UDP source port %d", port)
		}
		if p.UDP().Checksum() != 0 && !r.cut() {
			j.constant(Note, "OR-010", r, flow, "a UDP checksum, and a right one")
		}
	}
}

func (j *judge) transport(r *rec, flow string) {
	p, info, bth := &r.p, r.info, r.p.BTH()
	if bth.Reserved6() != 0 || bth.Reserved7() != 0 {
		j.constant(Warning, "OR-014", r, flow, "reserved bits of the BTH are %#02x and %#02x", bth.Reserved6(), bth.Reserved7())
	}
	if p.PadCount() != 0 && (p.PayloadLen() <= 0 || info.Payload == roce.PayloadFull || info.Payload == roce.PayloadAtomic8) {
		j.verdict(Violation, "OR-017", r.Number, flow, "%s with %d bytes of pad behind %d bytes", info.Name, p.PadCount(), p.PayloadLen())
	}
	if end := p.Len() - roce.ICRCSize; !r.cut() && slices.ContainsFunc(p.B[end-p.PadCount():end], func(b byte) bool { return b != 0 }) {
		j.constant(Note, "OR-018", r, flow, "pad bytes are not zero")
	}
	if pkey := bth.PKey(); j.o.PKey != 0 && pkey&0x7FFF != j.o.PKey&0x7FFF {
		j.verdict(Violation, "OR-019", r.Number, flow, "P_Key %#04x, configured is %#04x", pkey, j.o.PKey)
	}
	connected := info.Kind != roce.KindNotification && p.Op.Transport() != roce.UD
	if q := bth.DestQP(); q == 0 && p.Framing != roce.InfiniBand || q == roce.MulticastQPN && connected {
		j.verdict(Violation, "OR-020", r.Number, flow, "%s to QPN %#x", info.Name, q)
	}
	if bth.Solicited() && !(info.Last && (info.Class == roce.ClassSend || info.Completes)) {
		j.verdict(Violation, "OR-021", r.Number, flow, "the SE bit in %s", info.Name)
	}
	if t := p.Op.Transport(); bth.AckReq() && (r.kind == roce.KindResponse || t == roce.UC || t == roce.UD) {
		j.constant(Warning, "OR-022", r, flow, "AckReq in %s", info.Name)
	}
	if !bth.MigReq() && info.Class != roce.ClassCNP {
		j.constant(Warning, "OR-023", r, flow, "MigReq is 0, the path is in state MIGRATED")
	}
	if info.Class == roce.ClassCNP {
		j.cnp(r, flow)
	}
	if info.Headers.Has(roce.HasRETH) && p.RETH().Length() > roce.MaxMessage {
		j.verdict(Violation, "OR-033", r.Number, flow, "RETH with a length of %d", p.RETH().Length())
	}
	if n := p.PayloadLen(); info.Payload == roce.PayloadNone && n != 0 && info.Kind == roce.KindRequest {
		j.verdict(Violation, "OR-034", r.Number, flow, "%s with %d bytes of payload", info.Name, n)
	}
	if info.Class == roce.ClassAtomicWrite && (p.PayloadLen() != 8 || p.RETH().Length() != 8) {
		j.verdict(Violation, "OR-034", r.Number, flow, "%s of %d bytes with a length of %d", info.Name, p.PayloadLen(), p.RETH().Length())
	}
}

// cnp judges a congestion notification by itself.
func (j *judge) cnp(r *rec, flow string) {
	bth := r.p.BTH()
	zero := true
	for _, b := range r.p.Ext() {
		zero = zero && b == 0
	}
	if !bth.BECN() || bth.AckReq() || bth.PSN() != 0 || !zero {
		j.verdict(Violation, "OR-105", r.Number, flow, "CNP with BECN %t, AckReq %t, PSN %d, reserved bytes zero %t", bth.BECN(), bth.AckReq(), bth.PSN(), zero)
	}
}

// flowName is "source > destination QP number".
func flowName(p *roce.Packet) string {
	src, dst := ends(p)
	return fmt.Sprintf("%s > %s QP %#x", address(src), address(dst), p.BTH().DestQP())
}

// ends are the addresses that distinguish a packet's ports: GIDs, and on
// InfiniBand, where there may be none, LIDs in their place.
func ends(p *roce.Packet) (src, dst roce.GID) {
	if p.Framing != roce.InfiniBand {
		return p.SrcGID(), p.DstGID()
	}
	h := p.LRH()
	return lidAddress(h.SLID()), lidAddress(h.DLID())
}

func lidAddress(lid uint16) roce.GID { return roce.GID{14: byte(lid >> 8), 15: byte(lid)} }

// infiniBand judges what only packets of InfiniBand have.
func (j *judge) infiniBand(r *rec, flow string) {
	p := &r.p
	if got, want, ok := p.VCRC(); ok && got != want && r.Fate != Corrupted {
		j.verdict(Violation, "OR-026", r.Number, flow, "VCRC %#04x, the bytes have %#04x", got, want)
	}
	if h, q := p.LRH(), p.BTH().DestQP(); (h.VL() == roce.ManagementVL) != (q == 0) {
		j.verdict(Violation, "OR-026", r.Number, flow, "QPN %#x on VL %d", q, h.VL())
	}
}

func address(g roce.GID) string {
	if g.IsIPv4() {
		return fmt.Sprintf("%d.%d.%d.%d", g[12], g[13], g[14], g[15])
	}
	if g == lidAddress(uint16(g.InterfaceID())) {
		return fmt.Sprintf("LID %d", g.InterfaceID())
	}
	return g.String()
}
