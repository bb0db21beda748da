package oracle

import (
	"slices"

	"github.com/rdmasim/rdmasim/roce"
)

// pairing finds which two streams of InfiniBand are the directions of one connection. Their packets
// name no sender, and connections often begin with one PSN; but what a stream answers, its other
// direction has requested before. If that leaves several choices, none is made. It needs captures
// that have every frame.
//
// Its work does not grow with the square of the streams: a stream with responses looks only at
// those that have requested the PSN of its first one before, and gives up when too many fit.
type pairing struct {
	mtu     int
	left    int               // choices that may be kept yet, of all streams
	looks   int               // frames that may be looked at yet
	could   [][]*stream       // by place: the other directions that a stream with responses may have
	of      [][]*stream       // by place: whose choice a stream is
	gaveUp  []bool            // by place: too many fit
	crowded map[way]bool      // where a stream gave up: others may be its choice that do not know
	asked   map[reach][]int32 // places of the streams whose requests reach into a part of the PSNs, in the order of their first request
	spread  map[way][]int32   // those that reach into many parts
}

// reach is a part of the PSNs, which streams between two hosts request.
type reach struct {
	way
	part uint32
}

// Bounds of pairing: of a stream with more choices none is made, nor of those that come when all
// are used up.
const (
	mostChoices    = 256
	mostAllChoices = 1 << 23
	mostLooks      = 1 << 30
	partBits       = 12 // PSNs of a part: 4,096
	mostParts      = 64
)

// pairInfiniBand pairs the streams whose other direction is certain, and marks those for which
// several are possible. It returns how many frames it has looked at.
func (j *judge) pairInfiniBand() int {
	n := len(j.streams)
	p := pairing{mtu: max(j.o.MTU, 256), left: mostAllChoices, looks: mostLooks, could: make([][]*stream, n), of: make([][]*stream, n), gaveUp: make([]bool, n),
		crowded: map[way]bool{}, asked: map[reach][]int32{}, spread: map[way][]int32{}}
	for i, s := range j.streams {
		s.place = i
		if s.connected() && s.infiniBand() && s.requests > 0 {
			p.index(s)
		}
	}
	for _, s := range j.streams {
		if s.connected() && s.infiniBand() && s.responses > 0 {
			p.choices(j.streams, s)
		}
	}
	p.settle(j.streams)
	return mostLooks - p.looks
}

// connected says whether responses may come back.
func (s *stream) connected() bool { return s.transport == roce.RC || s.transport == roce.XRC }

// index enters a stream where the PSNs of its requests are.
func (p *pairing) index(s *stream) {
	first, next := s.asks(p.mtu)
	from, parts := first>>partBits, (first&(1<<partBits-1)+(next-first-1)&roce.PSNMask)>>partBits+1
	if parts > mostParts {
		p.spread[s.way()] = append(p.spread[s.way()], int32(s.place))
		return
	}
	for i := range parts {
		at := reach{s.way(), (from + i) & (roce.PSNMask >> partBits)}
		p.asked[at] = append(p.asked[at], int32(s.place))
	}
}

// asks is which PSNs a stream requests, from first on, up to next.
func (s *stream) asks(mtu int) (first, next uint32) {
	asked := false
	for _, q := range s.recs {
		if q.kind == roce.KindRequest {
			first, next, asked = q.extends(first, next, asked, mtu)
		}
	}
	return first, next
}

// extends adds the PSNs of a request to those from first up to next, which are none if nothing was
// asked yet.
func (q *rec) extends(first, next uint32, asked bool, mtu int) (uint32, uint32, bool) {
	n := int32(1)
	if q.info.Class == roce.ClassReadRequest {
		n = max(1, int32(roce.PacketsOf(q.p.RETH().Length(), mtu)))
	}
	if !asked {
		first, next = q.psn, q.psn
	}
	if end := roce.AddPSN(q.psn, n); roce.CmpPSN(end, next) > 0 {
		next = end
	}
	if roce.CmpPSN(q.psn, first) < 0 {
		first = q.psn
	}
	return first, next, true
}

// choices finds the streams that a stream with responses may answer.
func (p *pairing) choices(all []*stream, s *stream) {
	first := slices.IndexFunc(s.recs, func(r *rec) bool { return r.kind == roce.KindResponse })
	response := s.recs[first]
	for _, places := range [][]int32{p.asked[reach{s.back(), response.psn >> partBits}], p.spread[s.back()]} {
		for _, place := range places {
			b := all[place]
			if b.recs[0].Number > response.Number { // and so have all that follow
				break
			}
			fits := p.fit(s, b)
			if p.looks < 0 || fits && !p.add(s, b) {
				p.gaveUp[s.place] = true
				p.crowded[s.way()], p.crowded[s.back()] = true, true
				return
			}
		}
	}
}

// add notes that a stream may answer another one. It reports false if that is too many.
func (p *pairing) add(s, b *stream) bool {
	if p.left--; p.left < 0 || len(p.could[s.place]) == mostChoices {
		return false
	}
	p.could[s.place] = append(p.could[s.place], b)
	p.of[b.place] = append(p.of[b.place], s)
	return true
}

// settle pairs streams with one choice, which takes both out of the choices of others, until none
// is left.
func (p *pairing) settle(all []*stream) {
	turn := slices.Clone(all)
	for len(turn) > 0 {
		s := turn[0]
		turn = turn[1:]
		if s.peer != nil || p.gaveUp[s.place] || s.responses == 0 && p.crowded[s.way()] {
			continue
		}
		if c := p.open(s); len(c) == 1 {
			s.peer, c[0].peer = c[0], s
			for _, x := range []*stream{s, c[0]} {
				turn = append(append(turn, p.of[x.place]...), p.could[x.place]...)
			}
		}
	}
	for _, s := range all {
		if s.peer == nil && s.connected() && s.infiniBand() {
			s.unclear = p.gaveUp[s.place] || s.responses == 0 && p.crowded[s.way()] || len(p.open(s)) > 1
		}
	}
}

// open are the choices of a stream that are not taken, two at most. Those of one that only requests
// are the streams whose choice it is. Choices that are taken are left out for good as they are met.
func (p *pairing) open(s *stream) []*stream {
	list := &p.could[s.place]
	if s.responses == 0 {
		list = &p.of[s.place]
	}
	var free [2]*stream
	n, i := 0, 0
	for ; i < len(*list) && n < len(free); i++ {
		if x := (*list)[i]; x.peer == nil {
			free[n] = x
			n++
		}
	}
	*list = (*list)[i-n:]
	return (*list)[:copy(*list, free[:n])]
}

// fit says whether each response of both streams is for a PSN that the other one has requested
// before.
func (p *pairing) fit(s, b *stream) bool {
	return (s != b || s.requests > 0) && p.answered(s, b) && (s == b || p.answered(b, s))
}

// answered says whether s has requested, when they came, the PSNs of all responses of b.
func (p *pairing) answered(s, b *stream) bool {
	i, asked := 0, false
	var first, next uint32
	for _, r := range b.recs {
		p.looks--
		if r.kind != roce.KindResponse {
			continue
		}
		for ; i < len(s.recs) && s.recs[i].Number < r.Number; i++ {
			p.looks--
			if q := s.recs[i]; q.kind == roce.KindRequest {
				first, next, asked = q.extends(first, next, asked, p.mtu)
			}
		}
		if p.looks < 0 || !asked || roce.CmpPSN(r.psn, next) >= 0 || roce.CmpPSN(r.psn, first) < 0 && roce.CmpPSN(next, first) < 1<<22 {
			return false
		}
	}
	return true
}
