package oracle

import (
	"github.com/rdmasim/rdmasim/roce"
)

// pairing finds which two streams of InfiniBand are the directions of one connection. Their packets name no sender, and
// connections often begin with one PSN; but what a stream answers, its other direction has requested before. If that leaves
// several choices, none is made. It needs captures that have every frame.
type pairing struct {
	could map[*stream][]*stream // the other directions that a stream may have
}

// pairInfiniBand pairs the streams whose other direction is certain, and marks those for which several are possible.
func (j *judge) pairInfiniBand() {
	p := pairing{map[*stream][]*stream{}}
	for i, a := range j.streams {
		for _, b := range j.streams[i:] {
			if a.mayAnswer(b) && a.fits(b, max(j.o.MTU, 256)) {
				p.could[a] = append(p.could[a], b)
				if a != b {
					p.could[b] = append(p.could[b], a)
				}
			}
		}
	}
	for more := true; more; {
		more = false
		for _, s := range j.streams {
			if c := p.could[s]; len(c) == 1 {
				s.peer, c[0].peer = c[0], s
				p.drop(s)
				p.drop(c[0])
				more = true
			}
		}
	}
	for _, s := range j.streams {
		s.unclear = len(p.could[s]) > 1
	}
}

// drop takes a stream that is paired out of the choices of the others.
func (p *pairing) drop(s *stream) {
	delete(p.could, s)
	for other, c := range p.could {
		kept := c[:0]
		for _, x := range c {
			if x != s {
				kept = append(kept, x)
			}
		}
		p.could[other] = kept
	}
}

// mayAnswer says whether the ends of two streams are those of one connection.
func (s *stream) mayAnswer(b *stream) bool {
	return (s.transport == roce.RC || s.transport == roce.XRC) && s.transport == b.transport && s.src == b.dst && s.dst == b.src &&
		s.infiniBand() && b.infiniBand() && s.responses+b.responses > 0 && (s != b || s.requests > 0)
}

// fits says whether each response of both streams is for a PSN that the other one has requested before.
func (s *stream) fits(b *stream, mtu int) bool {
	return s.answered(b, mtu) && (s == b || b.answered(s, mtu))
}

// answered says whether s has requested, when they came, the PSNs of all responses of b.
func (s *stream) answered(b *stream, mtu int) bool {
	i, asked := 0, false
	var first, next uint32
	for _, r := range b.recs {
		if r.kind != roce.KindResponse {
			continue
		}
		for ; i < len(s.recs) && s.recs[i].Number < r.Number; i++ {
			q := s.recs[i]
			if q.kind != roce.KindRequest {
				continue
			}
			n := int32(1)
			if q.info.Class == roce.ClassReadRequest {
				n = max(1, int32(roce.PacketsOf(q.p.RETH().Length(), mtu)))
			}
			if !asked {
				asked, first = true, q.psn
				next = first
			}
			if end := roce.AddPSN(q.psn, n); roce.CmpPSN(end, next) > 0 {
				next = end
			}
			if roce.CmpPSN(q.psn, first) < 0 {
				first = q.psn
			}
		}
		if !asked || roce.CmpPSN(r.psn, next) >= 0 || roce.CmpPSN(r.psn, first) < 0 && roce.CmpPSN(next, first) < 1<<22 {
			return false
		}
	}
	return true
}
