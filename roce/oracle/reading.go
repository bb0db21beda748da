package oracle

import (
	"cmp"
	"slices"

	"github.com/rdmasim/rdmasim/roce"
)

// Reading is what was done to the frames of a capture before they are judged.
type Reading struct {
	Sorted  int   // frames that stood behind later ones, and were put in the order of time
	Back    int64 // by how many nanoseconds at most
	Twice   int   // frames that another interface or direction has seen too, and that count once
	Unknown int   // packets of link types that are not read
}

// place is where a frame was seen.
type place struct {
	intf uint16
	out  bool
	host uint32 // number of the host's interface, in a capture of all
}

// mostDisorder bounds, in nanoseconds, how far a frame may stand behind later ones to be sorted,
// and how far apart two interfaces may see one frame. Taps with several receive queues, and hosts
// that forward, are far below it; clocks that are set back are above: ntpd sets a clock from 128 ms
// on, and slews it before.
const mostDisorder = 1_000_000

// mostRecent bounds how many packets are remembered that another interface may see: 200 Gb/s of the
// shortest take 0.3 million in that time.
const mostRecent = 1 << 20

// sort puts frames into the order of their times, if none stands behind others by more than
// mostDisorder.
func (c *Capture) sort() {
	latest, r := int64(0), Reading{}
	for i := range c.Frames {
		f := &c.Frames[i]
		if f.Untimed {
			return
		}
		if back := latest - f.Time; i > 0 && back > 0 {
			r.Sorted, r.Back = r.Sorted+1, max(r.Back, back)
		} else {
			latest = f.Time
		}
	}
	if r.Sorted == 0 || r.Back > mostDisorder {
		return
	}
	numbers := make([]int, len(c.Frames))
	for i := range c.Frames {
		numbers[i] = c.Frames[i].Number
	}
	slices.SortStableFunc(c.Frames, func(a, b Frame) int { return cmp.Compare(a.Time, b.Time) })
	for i := range c.Frames {
		c.Frames[i].Number = numbers[i]
	}
	c.Read.Sorted, c.Read.Back = r.Sorted, r.Back
}

// countOnce takes out frames that another interface, or the other direction of one, has seen
// before: of each packet as many count as one of them has seen, since a packet that is sent again
// passes all of them again.
func (c *Capture) countOnce() {
	if len(c.Frames) == 0 || !slices.ContainsFunc(c.Frames, func(f Frame) bool { return f.at != c.Frames[0].at }) {
		return
	}
	seen := map[string]*sightings{}
	var recent []*sightings // in the order of their first frames
	var d parser
	var key []byte
	keep := c.Frames[:0]
	for _, f := range c.Frames {
		for len(recent) > mostRecent || len(recent) > 0 && f.Time-recent[0].time > mostDisorder {
			delete(seen, recent[0].key)
			recent = recent[1:]
		}
		p, err := d.parse(&f)
		if err != nil {
			keep = append(keep, f)
			continue
		}
		key = identity(key[:0], &p)
		s := seen[string(key)]
		if s == nil {
			s = &sightings{time: f.Time, key: string(key)}
			seen[s.key], recent = s, append(recent, s)
		}
		if s.at(f.at) {
			keep = append(keep, f)
		} else {
			c.Read.Twice++
		}
	}
	clear(c.Frames[len(keep):])
	c.Frames = keep
}

// sightings are the places that have seen a packet, and how often.
type sightings struct {
	time   int64 // of the first
	key    string
	most   int
	places []placeCount
}

type placeCount struct {
	place
	n int
}

// at counts that a place has seen the packet, and says whether no other has seen it as often.
func (s *sightings) at(p place) bool {
	i := slices.IndexFunc(s.places, func(c placeCount) bool { return c.place == p })
	if i < 0 {
		i = len(s.places)
		s.places = append(s.places, placeCount{place: p})
	}
	s.places[i].n++
	if s.places[i].n <= s.most {
		return false
	}
	s.most = s.places[i].n
	return true
}

// identity appends what two sightings of one packet have in common: its headers from IP, the GRH or
// the LRH on, but for what changes on the way.
func identity(b []byte, p *roce.Packet) []byte {
	at := len(b)
	net := 0
	switch p.Framing {
	case roce.RoCEv2IPv4:
		net = p.BTHOffset() - roce.UDPSize - roce.IPv4Size
	case roce.RoCEv2IPv6:
		net = p.BTHOffset() - roce.UDPSize - roce.IPv6Size
	case roce.RoCEv1:
		net = p.BTHOffset() - roce.GRHSize
	}
	b = append(b, p.B[net:headerEnd(p)]...)
	switch h := b[at:]; p.Framing {
	case roce.RoCEv2IPv4:
		h[1], h[8], h[10], h[11] = 0, 0, 0, 0 // ToS, TTL, checksum
	case roce.RoCEv2IPv6, roce.RoCEv1:
		clear(h[:4]) // traffic class and flow label
		h[7] = 0     // hop limit
	}
	return b
}
