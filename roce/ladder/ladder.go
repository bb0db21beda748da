// Package ladder says in words what frames of RDMA are, and draws them as a ladder: the nodes side
// by side, time downwards, an arrow for each frame.
package ladder

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/rdmasim/rdmasim/roce"
)

// Row is a frame of a ladder.
type Row struct {
	AtNs     int64  // when its first bit left
	From, To string // the nodes
	Text     string // opcode, PSN and what else its headers say
	Fate     string // what was done to it on its way; empty: nothing
}

// Nodes gives the ports of a capture their names. The zero value knows none, and names them by
// address.
type Nodes struct{ names map[string]string }

// Name says that frames from an address come from a port of this name. The first name of an address
// stays.
func (n *Nodes) Name(address, name string) {
	if n.names == nil {
		n.names = map[string]string{}
	}
	if _, known := n.names[address]; !known {
		n.names[address] = name
	}
}

func (n *Nodes) of(address string) string {
	if name, ok := n.names[address]; ok {
		return name
	}
	return address
}

// Addresses are those of a frame's sender and receiver: their GIDs, or on InfiniBand without a
// global header their LIDs. ok is false for what is no frame of RDMA.
func Addresses(frame []byte, infiniBand bool) (from, to string, ok bool) {
	p, err := parse(frame, infiniBand)
	if err != nil && !readable(err) {
		return "", "", false
	}
	from, to = addresses(&p)
	return from, to, true
}

func parse(frame []byte, infiniBand bool) (roce.Packet, error) {
	if infiniBand {
		return roce.ParseInfiniBand(frame)
	}
	return roce.Parse(frame)
}

// readable reports whether the base transport header of a frame that was refused may be read.
func readable(err error) bool {
	return err == roce.DropOpcode || err == roce.DropLength || err == roce.DropBTHVersion
}

func addresses(p *roce.Packet) (from, to string) {
	if p.Framing == roce.InfiniBand {
		return fmt.Sprintf("LID %d", p.LRH().SLID()), fmt.Sprintf("LID %d", p.LRH().DLID())
	}
	return address(p.SrcGID()), address(p.DstGID())
}

// address is a GID as a person reads it: that of an IPv4 address as that address.
func address(g roce.GID) string { return netip.AddrFrom16(g).Unmap().String() }

// RowOf is the row of a frame. ok is false for what is no frame of RDMA. Where a port sends to
// itself, its two sides are the requester and the responder.
func RowOf(n *Nodes, atNs int64, frame []byte, infiniBand bool, fate string) (row Row, ok bool) {
	p, err := parse(frame, infiniBand)
	if err != nil && !readable(err) {
		return Row{}, false
	}
	from, to := addresses(&p)
	row = Row{AtNs: atNs, From: n.of(from), To: n.of(to), Text: describe(&p, err), Fate: fate}
	if from == to { // two QPs of one port
		row.From, row.To = row.From+" requester", row.To+" responder"
		if p.Info().Kind == roce.KindResponse {
			row.From, row.To = row.To, row.From
		}
	}
	return row, true
}

// describe says what the headers of a packet say. err is what is wrong with it, if anything.
func describe(p *roce.Packet, err error) string {
	h := p.BTH()
	text := fmt.Sprintf("%v, PSN %d, to QP %#x", p.Op, h.PSN(), h.DestQP())
	if err != nil {
		return text + ", " + strings.TrimPrefix(err.Error(), "roce: ")
	}
	parts := []string{text}
	add := func(has bool, format string, a ...any) {
		if has {
			parts = append(parts, fmt.Sprintf(format, a...))
		}
	}
	info := p.Info()
	if p.Has(roce.HasDCETH) {
		add(true, "of DCI %#x, access key %#x, connection %d", p.DCETH().SrcQP(), p.DCETH().AccessKey(), p.DCETH().Connection())
	}
	if p.Has(roce.HasXRCETH) {
		add(true, "SRQ %#x", p.XRCETH().SRQN())
	}
	if p.Has(roce.HasDETH) {
		add(true, "from QP %#x, Q_Key %#x", p.DETH().SrcQP(), p.DETH().QKey())
	}
	if p.Has(roce.HasRETH) {
		r := p.RETH()
		add(true, "VA %#x, R_Key %#x, %d bytes", r.VA(), r.RKey(), r.Length())
	}
	if p.Has(roce.HasAtomicETH) {
		a := p.AtomicETH()
		add(true, "VA %#x, R_Key %#x, swap or add %#x, compare %#x", a.VA(), a.RKey(), a.SwapAdd(), a.Compare())
	}
	if p.Has(roce.HasAETH) {
		add(true, "%v, MSN %d", p.AETH().Syndrome(), p.AETH().MSN())
	}
	if p.Has(roce.HasSACKETH) {
		add(true, "SACK of PSN %#06x", p.SACKETH().PSN())
	}
	if p.Has(roce.HasAtomicAckETH) {
		add(true, "original %#x", p.AtomicAckETH().Original())
	}
	if p.Has(roce.HasImmDt) {
		add(true, "immediate %#x", p.ImmDt().Value())
	}
	if p.Has(roce.HasIETH) {
		add(true, "invalidates R_Key %#x", p.IETH().RKey())
	}
	add(p.PayloadLen() > 0 || info.Kind == roce.KindRequest && info.Payload != roce.PayloadNone, "payload of %d", p.PayloadLen())
	add(h.Solicited(), "solicited")
	add(h.PKey() != roce.DefaultPKey, "P_Key %#x", h.PKey())
	add(h.AckReq(), "asks for an ACK")
	add(!h.AckReq() && info.Last && info.Kind == roce.KindRequest && p.Op.Transport() != roce.UC && p.Op.Transport() != roce.UD, "asks for no ACK")
	add(!p.ICRCOK(), "wrong ICRC")
	return strings.Join(parts, ", ")
}
