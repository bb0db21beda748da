package oracle

import "github.com/rdmasim/rdmasim/roce"

// pathMTU is the path MTU; before a First packet shows it, the largest that there is.
func (h *half) pathMTU() int {
	if h.mtu > 0 {
		return h.mtu
	}
	if p := h.s.peer; p != nil && h.paired() && p.half != nil && p.half.mtu > 0 {
		return p.half.mtu
	}
	return h.learnMTU()
}

// learnMTU looks ahead for a packet that must be full.
func (h *half) learnMTU() int {
	for _, s := range []*stream{h.s, h.s.peer} {
		if s == nil || s != h.s && !h.paired() {
			continue
		}
		for _, r := range s.recs {
			if n := r.p.PayloadLen(); r.info.Payload == roce.PayloadFull && roce.MTUFromBytes(n) != 0 {
				h.mtu = n
				return n
			}
		}
	}
	if h.mtu = h.s.reservedMTU(); h.mtu == 0 {
		h.mtu = 4096 // nothing is longer than one packet
		h.guessed = true
	}
	h.guessed = h.guessed || !h.complete() // the next request may be missing
	return h.mtu
}

// reservedMTU is the path MTU by which a READ reserves as many PSNs as the next request leaves to
// it; 0: there is none, or no READ of more than a packet.
func (s *stream) reservedMTU() int {
	newest := s.recs[0].psn
	for i, r := range s.recs {
		again := r.kind != roce.KindRequest || roce.CmpPSN(r.psn, newest) < 0 // behind it not all requests may be sent again
		if !again {
			newest = r.psn
		}
		if again || r.info.Class != roce.ClassReadRequest || i+1 == len(s.recs) || s.recs[i+1].info.Kind != roce.KindRequest {
			continue
		}
		d := (s.recs[i+1].psn - r.psn) & (1<<24 - 1)
		for mtu := 256; d > 1 && mtu <= 4096; mtu *= 2 {
			if uint32(roce.PacketsOf(r.p.RETH().Length(), mtu)) == uint32(d) {
				return mtu
			}
		}
	}
	return 0
}
