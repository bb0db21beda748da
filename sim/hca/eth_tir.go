package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce/ether"
)

// tir is where packets go from a flow table: to one RQ, or to one of a table by a hash.
type tir struct {
	ctx    [prm.TIRCSize]byte
	td     uint32
	rq     *packetRQ // nil: it has a table
	table  *rqt
	fn     uint32
	fields ether.Fields
	users  int // destinations of flow table entries
}

// rqt is a table of RQs.
type rqt struct {
	ctx   [prm.RQTCSize]byte
	max   int
	list  []*packetRQ
	users int // TIRs
}

// hears says whether packets from a transport domain of the function itself come to the TIR.
func (t *tir) hears(td uint32, group bool) bool {
	asked := uint32(prm.TIRSelfLBUnicast)
	if group {
		asked = prm.TIRSelfLBMulticast
	}
	return t.td != td || prm.TIRC(t.ctx[:]).SelfLBBlock()&asked != 0
}

// setHash takes over what the hash is of.
func (t *tir) setHash(c prm.TIRC) {
	sel := c.OuterSelectedFields()
	t.fn = c.RxHashFn()
	t.fields = ether.Fields{
		SrcIP: sel&prm.RxHashSrcIP != 0, DstIP: sel&prm.RxHashDstIP != 0, SrcPort: sel&prm.RxHashSport != 0, DstPort: sel&prm.RxHashDport != 0,
		Symmetric: c.RxHashSymmetric(),
	}
}

// steer is the RQ of a packet, which gets the hash that has chosen it.
func (t *tir) steer(p *received) *packetRQ {
	if t.rq != nil {
		return t.rq
	}
	var room [64]byte
	tuple := t.fields.Tuple(&p.h, p.f.B, room[:0])
	p.hash, p.hashType = 0, t.hashType(&p.h)
	switch t.fn {
	case prm.RxHashToeplitz:
		p.hash = ether.Toeplitz(prm.TIRC(t.ctx[:]).RxHashToeplitzKey(), tuple)
	case prm.RxHashInvertedXOR8:
		p.hash = ether.InvertedXOR(tuple)
	}
	// Sizes are powers of two.
	return t.table.list[p.hash&uint32(len(t.table.list)-1)]
}

// hashType is what the hash is of, as a CQE says it.
func (t *tir) hashType(h *ether.Headers) (v uint8) {
	if t.fields.SrcIP || t.fields.DstIP {
		switch h.Version {
		case 4:
			v = prm.CQERSSIPv4
		case 6:
			v = prm.CQERSSIPv6
		}
	}
	if (t.fields.SrcPort || t.fields.DstPort) && h.Transport > 0 && !h.Fragment {
		if h.Proto == ether.ProtoTCP {
			return v | prm.CQERSSTCP
		}
		return v | prm.CQERSSUDP
	}
	return v
}
