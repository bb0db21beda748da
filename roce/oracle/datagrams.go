package oracle

import (
	"github.com/rdmasim/rdmasim/roce"
)

// unreliable judges what is sent on an unreliable connection. There are no responses,
// and so only a requester.
func (j *judge) unreliable(s *stream) {
	h := newHalf(j, s)
	s.half = h
	if j.mixedUp(s, s.recs) {
		return
	}
	for _, r := range s.recs {
		h.watch(r, true)
		if !h.begun {
			h.beginConnection(r)
		}
		pos := h.position(r.psn)
		if pos < h.next {
			if r.info.First && r.Time-h.seen >= j.o.flight()/2 && (j.o.Reconnects && pos == h.pk[0].pos || pos < h.pk[0].pos) {
				h.restart(r)
				h.beginConnection(r)
				pos = h.position(r.psn)
			} else {
				h.resent++
				h.contradict(h.newest(), "OR-088", r, "PSN %#06x is sent again", r.psn)
				continue
			}
		}
		if pos > h.next {
			if h.disprove(r, "PSN %#06x to %#06x are missing before it", psn(h.next), psn(pos-1)) {
				h.report(Inconclusive, "OR-002", r, "PSN %#06x, the next is %#06x", r.psn, psn(h.next))
			} else {
				h.report(Violation, "OR-028", r, "PSN %#06x, the next is %#06x", r.psn, psn(h.next))
			}
			h.lenient, h.open = true, 0
		}
		h.checkSequence(r)
		h.pk = append(h.pk, &packet{pos: pos, end: pos + 1, r: r, last: r.Time, sent: 1})
		h.next = pos + 1
		h.seen = r.Time
	}
}

// gsiQKey is the Q_Key of QP1.
const gsiQKey = 0x80010000

// datagrams judges what is sent to a UD QP.
func (j *judge) datagrams(s *stream) {
	for _, r := range s.recs {
		p := &r.p
		if n := p.PayloadLen(); j.o.MTU > 0 && n > j.o.MTU || n > 4096 {
			j.verdict(Violation, "OR-091", r.Number, s.name, "a datagram of %d bytes", n)
		}
		if s.qpn == roce.GSIQPN && p.DETH().QKey() != gsiQKey {
			j.verdict(Violation, "OR-092", r.Number, s.name, "Q_Key %#08x to QP1", p.DETH().QKey())
		}
		if s.qpn == roce.MulticastQPN && !group(p) {
			j.verdict(Violation, "OR-094", r.Number, s.name, "QPN 0xffffff, which is no group's address: %s", flowName(p))
		}
	}
}

// group says whether the addresses of a frame are those of one multicast group.
func group(p *roce.Packet) bool {
	g := p.DstGID()
	multicast := g[0] == 0xFF || g.IsIPv4() && g[12]>>4 == 0xE
	if p.Framing == roce.InfiniBand {
		return multicast && roce.IsMulticastLID(p.LRH().DLID())
	}
	mac := p.Ethernet().Dst()
	return multicast && (mac == g.MulticastMAC() || mac == roce.MAC{}) // some captures do not have it
}
