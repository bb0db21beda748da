package oracle

import (
	"slices"

	"github.com/rdmasim/rdmasim/roce"
)

// endpoint is where a stream goes, and from which host.
type endpoint struct {
	src, dst  roce.GID
	qpn       uint32
	transport roce.Transport
}

// ported is an endpoint and a UDP source port, which distinguish streams.
type ported struct {
	endpoint
	sport uint16
}

// stream is what one QP sends to another. A frame names only the second; the first
// is found by pairing streams of the two directions.
type stream struct {
	endpoint
	name  string
	sport uint16 // 0 without UDP
	recs  []*rec

	requests, responses int
	next                uint32 // PSN after the last new request
	dscp, ttl           uint8
	pkey                uint16
	peer                *stream
	byPort              bool  // the UDP source port proves that the peer is the other direction
	unclear             bool  // several streams may be its other direction
	place               int   // in the judge's list
	half                *half // the machine of its requests
}

func (s *stream) flow() Flow {
	f := Flow{Name: s.name, Transport: s.transport.String(), Requests: s.requests, Responses: s.responses}
	if s.peer != nil {
		f.Peer = s.peer.name
	}
	if s.half != nil {
		f.Resent, f.MTU = s.half.resent, s.half.mtu
		f.Retransmissions, f.MoreRetransmissions, f.LostNS = s.half.resends.runs, s.half.resends.more, s.half.resends.lostNS
		f.Missing, f.Gaps, f.JudgedTo = s.half.partial.gaps, s.half.partial.count, s.half.partial.until
	}
	return f
}

// assignStream puts a frame into its stream.
func (j *judge) assignStream(r *rec) {
	p := &r.p
	src, dst := ends(p)
	e := endpoint{src, dst, p.BTH().DestQP(), p.Op.Transport()}
	if e.transport == roce.CNP {
		j.notice(r, e)
		return
	}
	j.congestion(r, e)
	var sport uint16
	if p.Framing == roce.RoCEv2IPv4 || p.Framing == roce.RoCEv2IPv6 {
		sport = p.UDP().SrcPort()
	}
	s := j.find(e, sport, r)
	if len(s.recs) == 0 {
		s.dscp, s.ttl, s.pkey = p.TrafficClass()>>2, hops(p), p.BTH().PKey()
	}
	if d, t := p.TrafficClass()>>2, hops(p); e.transport != roce.UD && (d != s.dscp || t != s.ttl) {
		j.constant(Warning, "OR-024", r, s.name, "DSCP %d and TTL %d, before %d and %d", d, t, s.dscp, s.ttl)
	}
	if k := p.BTH().PKey(); e.transport != roce.UD && k != s.pkey {
		j.constant(Violation, "OR-019", r, s.name, "P_Key %#04x, before %#04x", k, s.pkey)
	}
	s.recs = append(s.recs, r)
	j.lands(r, dst, s.name)
	if r.kind == roce.KindResponse {
		s.responses++
		return
	}
	s.requests++
	if s.requests == 1 || roce.CmpPSN(r.psn, s.next) >= 0 {
		s.next = roce.AddPSN(r.psn, 1)
		if r.info.Class == roce.ClassReadRequest {
			s.next = roce.AddPSN(r.psn, int32(roce.PacketsOf(p.RETH().Length(), max(j.o.MTU, 256))))
		}
	}
}

// infiniBand says whether the stream's packets have no source port.
func (s *stream) infiniBand() bool { return s.recs[0].InfiniBand }

func hops(p *roce.Packet) uint8 {
	if p.Framing == roce.RoCEv2IPv4 {
		return p.IPv4().TTL()
	}
	if !p.HasGRH() {
		return 0
	}
	return p.IPv6().HopLimit()
}

// find is the stream of a frame. A source port that changes while the PSNs go on is
// the same stream (OR-004); otherwise another connection uses the QPN now.
func (j *judge) find(e endpoint, sport uint16, r *rec) *stream {
	if s := j.ported[ported{e, sport}]; s != nil {
		return s
	}
	if s := j.newest[e]; s != nil && e.transport != roce.UD {
		goesOn := r.kind == roce.KindResponse && s.responses > 0 && len(s.recs) > 0 && r.Time-s.recs[len(s.recs)-1].Time < j.o.flight()
		if r.kind == roce.KindRequest {
			goesOn = s.requests > 0 && r.psn == s.next && r.psn != s.recs[0].psn &&
				(j.o.Complete || r.Time-s.recs[len(s.recs)-1].Time < j.o.flight()/2)
		}
		if goesOn {
			j.constant(Warning, "OR-004", r, s.name, "UDP source port %d, before %d", sport, s.sport)
			return s
		}
	}
	s := &stream{endpoint: e, name: flowName(&r.p), sport: sport}
	j.newest[e], j.ported[ported{e, sport}] = s, s
	j.streams = append(j.streams, s)
	return s
}

// span is a run of PSNs that a stream has requested, and since when.
type span struct {
	first uint32
	n     int32
	since int64
}

// spans lists what a stream requests, for pairing.
func (s *stream) spans(mtu int) []span {
	var out []span
	for _, r := range s.recs {
		if r.kind != roce.KindRequest {
			continue
		}
		n := int32(1)
		if r.info.Class == roce.ClassReadRequest {
			n = int32(roce.PacketsOf(r.p.RETH().Length(), mtu))
		}
		out = append(out, span{r.psn, n, r.Time})
	}
	return out
}

// answers counts the responses of s that fit the spans: the PSN was requested before.
func (s *stream) answers(spans []span) int {
	n, at := 0, 0
	for _, r := range s.recs {
		if r.kind != roce.KindResponse {
			continue
		}
		for at < len(spans) && spans[at].since <= r.Time {
			at++
		}
		for i := at - 1; i >= 0 && i >= at-lookBack; i-- {
			if d := roce.CmpPSN(r.psn, spans[i].first); d >= 0 && d < spans[i].n {
				n++
				break
			}
		}
	}
	return n
}

// nearest is, for each response of s, the stream whose request it answers by its PSN, the last one
// before it in the capture: where no source port distinguishes connections. left is how many frames
// may be looked at yet.
func (j *judge) nearest(s *stream, others []*stream, left *int) map[*stream]int {
	count := map[*stream]int{}
	for _, r := range s.recs {
		if r.kind != roce.KindResponse {
			continue
		}
		var best *stream
		last := 0
		for _, a := range others {
			if *left -= lookBack; *left < 0 {
				s.unclear = true
				return count
			}
			if n := a.lastRequest(r, max(j.o.MTU, 256)); n > last {
				best, last = a, n
			}
		}
		if best != nil {
			count[best]++
		}
	}
	return count
}

// lastRequest is the number of the last request of s that a later response may answer,
// or 0.
func (s *stream) lastRequest(r *rec, mtu int) int {
	i, _ := slices.BinarySearchFunc(s.recs, r.Number, func(x *rec, n int) int { return x.Number - n })
	for k := i - 1; k >= 0 && k >= i-lookBack; k-- {
		q := s.recs[k]
		n := int32(1)
		if q.info.Class == roce.ClassReadRequest {
			n = int32(roce.PacketsOf(q.p.RETH().Length(), mtu))
		}
		if d := roce.CmpPSN(r.psn, q.psn); q.kind == roce.KindRequest && d >= 0 && d < n {
			return q.Number
		}
	}
	return 0
}

// lookBack is how many frames before a response its request is looked for.
const lookBack = 256

// Bounds of the search for the other directions of streams, frames that are looked at and pairs
// that are compared: of a capture with more, which 4,096 connections between two hosts do not need,
// the rest is unclear.
const (
	mostPairing = 1 << 33
	mostPairs   = 1 << 24
)

// way is what the streams between two hosts have in common, in one direction.
type way struct {
	src, dst  roce.GID
	transport roce.Transport
}

func (s *stream) way() way  { return way{s.src, s.dst, s.transport} }
func (s *stream) back() way { return way{s.dst, s.src, s.transport} }

// settled says whether the other direction is known, or cannot be.
func (s *stream) settled() bool { return s.peer != nil || s.unclear }

// pairStreams finds for every stream the one of the other direction: by the source port,
// which both sides compute from the two QPNs, and by responses that fit requests.
func (j *judge) pairStreams() {
	if j.o.Complete {
		j.pairInfiniBand()
	}
	type match struct {
		a, b  *stream
		score int
	}
	var all []match
	left, pairs := mostPairing, mostPairs
	mtu := max(j.o.MTU, 256)
	ways := map[way][]*stream{}
	open := map[way][]*stream{} // those that may be paired yet
	for i, s := range j.streams {
		s.place = i
		ways[s.way()] = append(ways[s.way()], s)
		if !s.settled() {
			open[s.way()] = append(open[s.way()], s)
		}
	}
	spans := make([][]span, len(j.streams))
	for i, s := range j.streams {
		spans[i] = s.spans(mtu)
	}
	near := map[*stream]map[*stream]int{}
	for _, s := range j.streams {
		if s.infiniBand() && s.responses > 0 && !s.settled() {
			near[s] = j.nearest(s, ways[s.back()], &left)
		}
	}
	for _, a := range j.streams {
		if !a.connected() && a.transport != roce.UC || a.settled() {
			continue
		}
		for _, b := range open[a.back()] {
			if b.place < a.place || a == b && a.src != a.dst {
				continue
			}
			pairs--
			if left -= len(a.recs) + len(b.recs); left < 0 || pairs < 0 {
				a.unclear, b.unclear = true, true
				break
			}
			score := b.answers(spans[a.place]) + a.answers(spans[b.place])
			if a == b {
				score /= 2
			}
			if score > 0 && a.sport == b.sport {
				score += 1 << 20
			}
			score += (near[a][b] + near[b][a]) << 10
			if a != b && a.sport == b.sport && a.sport == roce.UDPSourcePort(roce.FlowLabel(a.qpn, b.qpn)) {
				score += 1 << 24
			}
			if score > 0 {
				all = append(all, match{a, b, score})
			}
		}
	}
	slices.SortStableFunc(all, func(x, y match) int { return y.score - x.score })
	for _, m := range all {
		if m.a.peer == nil && m.b.peer == nil && !m.a.unclear && !m.b.unclear {
			m.a.peer, m.b.peer = m.b, m.a
			m.a.byPort = m.a.sport != 0 && m.a.sport == m.b.sport && m.a.sport == roce.UDPSourcePort(roce.FlowLabel(m.a.qpn, m.b.qpn))
			m.b.byPort = m.a.byPort
		}
	}
}

// replay runs the state machines.
func (j *judge) replay() {
	j.pairStreams()
	for _, s := range j.streams {
		switch s.transport {
		case roce.RC, roce.XRC:
			if p := s.peer; p != nil && p.sport != s.sport && s.requests > 0 && s.sport != 0 {
				j.verdict(Note, "OR-005", s.recs[0].Number, s.name, "UDP source port %d, the other direction has %d", s.sport, p.sport)
			}
			if p := s.peer; p != nil && p.pkey&0x7FFF != s.pkey&0x7FFF && s.requests > 0 && (j.o.Complete || s.byPort) {
				j.verdict(Violation, "OR-019", s.recs[0].Number, s.name, "P_Key %#04x, the other direction has %#04x", s.pkey, p.pkey)
			}
			j.connection(s)
		case roce.UC:
			j.unreliable(s)
		case roce.UD:
			j.datagrams(s)
		}
	}
	j.management()
}

// connection replays the requests of a stream against the responses of its peer.
func (j *judge) connection(s *stream) {
	if s.unclear {
		j.constant(Inconclusive, "OR-002", s.recs[0], "", "several flows may be the other direction of %s, and their packets do not tell which: it is not judged", s.name)
		return
	}
	if s.peer == nil && s.responses > 0 {
		for _, r := range s.recs {
			if r.kind == roce.KindResponse {
				j.constant(Inconclusive, "OR-002", r, s.name, "a response to requests that are not in the capture")
			}
		}
	}
	if s.requests == 0 {
		return
	}
	h := newHalf(j, s)
	s.half = h
	if !j.o.Complete && (s.peer == nil || s.peer.responses == 0) {
		h.missing(s.recs[0], "no answer to any of its requests")
	}
	events := requestsOf(s)
	if s.peer != nil {
		for _, r := range s.peer.recs {
			if r.kind == roce.KindResponse {
				events = append(events, r)
			}
		}
		slices.SortStableFunc(events, func(a, b *rec) int { return a.Number - b.Number })
	}
	if j.mixedUp(s, events) {
		h.stop(events[0])
	}
	for _, r := range events {
		if r.kind == roce.KindRequest {
			h.request(r)
		} else {
			h.response(r)
		}
	}
	h.end()
}

func requestsOf(s *stream) []*rec {
	var out []*rec
	for _, r := range s.recs {
		if r.kind == roce.KindRequest {
			out = append(out, r)
		}
	}
	return out
}

func sortByNumber(rs []*rec) {
	slices.SortStableFunc(rs, func(a, b *rec) int { return a.Number - b.Number })
}
