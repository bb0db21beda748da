package hca

import (
	"cmp"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
)

// A target of the dynamically connected transport (DCT) has no queue: of each initiator that has
// connected it has a responder context (DCR), a reliable responder with the rights, the SRQ and the
// CQ of the target. DCRs are QPs whose numbers no driver learns, and which no packet names; the
// initiator knows the number of the target. That there are such contexts, and that a connection
// lasts until the initiator names another target, is measured (the DCT notes beside Kalia et al.,
// FaSST, OSDI 2016).

// dct is a target.
type dct struct {
	num      uint32
	ctx      [prm.DCTCSize]byte
	with     partners
	pkey     uint16
	byPeer   map[dcPeer]dcLink // looked up, never walked
	all      []*qp             // DCRs that were made, in that order
	idle     []*qp             // those of them without a connection
	draining bool
}

// dcLink is what a target knows of an initiator that has ever connected: its connection, nil when
// it has left, and the number of the last one, by which packets of earlier ones are known that come
// late.
type dcLink struct {
	dcr  *qp
	last uint32
}

// dcPeer is an initiator by its address.
type dcPeer struct {
	gid roce.GID
	lid uint16
	qpn uint32
}

func (t *dct) context() prm.DCTC { return prm.DCTC(t.ctx[:]) }

// peerOf is the initiator that a packet comes from.
func peerOf(p *roce.Packet) dcPeer {
	peer := dcPeer{gid: p.SrcGID(), qpn: p.DCETH().SrcQP()}
	if p.Framing == roce.InfiniBand {
		peer.lid = p.LRH().SLID()
	}
	return peer
}

// answerTo makes the headers of a DCR's answers of those of a packet. It reports false when they
// make none.
func (q *qp) answerTo(p *roce.Packet, t *dct) bool {
	u, c := q.u, t.context()
	path := roce.Path{
		Framing: p.Framing, SrcGID: p.DstGID(), DstGID: p.SrcGID(), TrafficClass: uint8(c.TClass()), HopLimit: uint8(c.HopLimit()),
		FlowLabel: c.FlowLabel(), PKey: t.pkey, DestQP: p.DCETH().SrcQP(), MigReq: true, Global: p.HasGRH(),
	}
	if path.HopLimit == 0 {
		path.HopLimit = defaultHopLimit
	}
	if p.Framing == roce.InfiniBand {
		h := p.LRH()
		path.SLID, path.DLID, path.SL, path.VL = h.DLID(), h.SLID(), h.SL(), u.ib.vl(h.SL())
		q.loop = u.isOwnLID(path.DLID)
	} else {
		e := p.Ethernet()
		path.SrcMAC, path.DstMAC = e.Dst(), e.Src()
		if tag := p.VLAN(); tag != nil {
			path.Tagged, path.VLANTCI = true, uint16(c.EthPrio())<<13|tag.TCI()&roce.VLANMask
		}
		flow := path.FlowLabel
		if flow == 0 {
			flow = roce.FlowLabel(t.num, path.DestQP)
		}
		path.SrcPort = cmp.Or(u.id.SourcePort, roce.UDPSourcePort(flow))
		q.loop = u.gidIndex(path.DstGID) >= 0
	}
	tmpl, err := roce.NewTemplate(path)
	q.tmpl, q.framing = tmpl, p.Framing
	return err == nil
}
