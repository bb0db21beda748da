package link

import (
	"math/bits"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// Switch on Ethernet learns where source addresses are, floods what it does not know,
// and queues at each egress up to a limit; addresses are never forgotten. On InfiniBand
// it forwards by the table that the subnet manager wrote, drops what that does not hold,
// and never drops for want of room: a packet keeps its place in the ingress buffer, and
// its credits, until it has left. Every port is in every multicast group, until SetGroup
// says which are.
type Switch struct {
	name  string
	p     SwitchParams
	e     *sim.Engine
	ports []*Port
	where map[roce.MAC]int // looked up only

	lids   map[uint16]int   // where each LID is; looked up only
	groups map[uint16][]int // the ports of each multicast LID; looked up only; nil: all of every one
	all    []int            // every port
	agents *switchAgents    // nil: nobody can ask it
	// Flooded counts frames sent to all ports, Runts those too short for an Ethernet
	// header, Filtered those whose destination is where they came from.
	Flooded, Runts, Filtered uint64
	Marked                   uint64 // "congestion experienced"
	// NoRoute counts packets to LIDs that the forwarding table does not hold.
	NoRoute uint64
}

// NewSwitch makes a switch without ports. Params must pass Check.
func NewSwitch(e *sim.Engine, name string, p SwitchParams) *Switch {
	if err := p.Check(); err != nil {
		panic(name + ": " + err.Error())
	}
	return &Switch{name: name, p: p, e: e, where: map[roce.MAC]int{}, lids: map[uint16]int{}}
}

// Name is the switch's name.
func (s *Switch) Name() string { return s.name }

// Plug makes a cable's end a port of the switch.
func (s *Switch) Plug(p *Port) {
	in := &ingress{s, len(s.ports)}
	if s.p.CutThrough {
		p.headIn = p.p.bytesTime(p.p.Preamble + s.p.HeaderBytes)
	} else {
		p.headIn = sim.Second // never before the last bit
	}
	p.head = in
	p.limit = p.p.bytesTime(s.p.Buffer)
	s.all = append(s.all, len(s.ports))
	s.ports = append(s.ports, p)
	if s.agents != nil {
		s.agents.plugged(p)
	}
}

// Learn tells the switch that the port plugged last is the way to an address, as a frame from there
// would.
func (s *Switch) Learn(mac roce.MAC) { s.where[mac] = len(s.ports) - 1 }

// SetGroup has packets to a multicast LID leave by these ports; by none: they are dropped. After
// the first call the same holds for every multicast LID that was not given ports.
func (s *Switch) SetGroup(mlid uint16, ports []int) {
	if s.groups == nil {
		s.groups = map[uint16][]int{}
	}
	if len(ports) == 0 {
		delete(s.groups, mlid)
		return
	}
	s.groups[mlid] = ports
}

// outs are the ports by which a packet to a multicast LID leaves, if it did not come from there.
func (s *Switch) outs(mlid uint16) []int {
	if s.groups == nil {
		return s.all
	}
	return s.groups[mlid]
}

// Ports is how many ports have been plugged.
func (s *Switch) Ports() int { return len(s.ports) }

type ingress struct {
	s  *Switch
	no int
}

// receiveHead forwards a frame: at its header when cutting through, else at its
// last bit. A broken frame is dropped unless it is already on its way out.
func (in *ingress) receiveHead(f *roce.Frame, tail sim.Time, m marks) {
	s, badFCS := in.s, m.has(badFCS)
	if s.ports[in.no].lanes != nil {
		in.route(f, tail, m)
		return
	}
	if badFCS && !s.p.CutThrough {
		f.Release()
		return
	}
	if len(f.B) < roce.EthernetSize {
		s.Runts++
		f.Release()
		return
	}
	eth := roce.Ethernet(f.B)
	if src := eth.Src(); !src.IsGroup() {
		if at, ok := s.where[src]; !ok || at != in.no {
			s.where[src] = in.no
		}
	}
	earliest, tail := s.e.Now()+s.p.Latency, tail+s.p.Latency
	if dst := eth.Dst(); !dst.IsGroup() {
		if out, ok := s.where[dst]; ok {
			if out == in.no {
				s.Filtered++
				f.Release()
				return
			}
			s.forward(in.no, s.ports[out], f, earliest, tail, badFCS)
			return
		}
	}
	s.Flooded++
	for i, p := range s.ports {
		if i != in.no {
			s.forward(in.no, p, f.Retain(), earliest, tail, badFCS)
		}
	}
	f.Release()
}

// forward queues a frame at an egress port.
func (s *Switch) forward(in int, p *Port, f *roce.Frame, earliest, tail sim.Time, badFCS bool) {
	if s.p.ECNMax > 0 && s.congested(p, earliest) && markable(f) {
		f = p.writable(f)
		mark(f)
		s.Marked++
		p.C.Marked++
	}
	if p.pfc == nil {
		p.send(f, earliest, tail, badFCS)
		return
	}
	from := s.ports[in]
	from.Buffered(roce.ClassOf(f.B), len(f.B))
	p.enqueue(waiting{f: f, tail: tail, bad: badFCS, from: from}, earliest)
}

// congested decides by the length of a queue, between the thresholds by chance, whether a
// frame that joins it is marked.
func (s *Switch) congested(p *Port, now sim.Time) bool {
	const scale = 1_000_000
	queue := p.free - now
	if p.pfc != nil {
		queue = p.p.bytesTime(p.pfc.queued)
	}
	wait, low, high := queue, p.p.bytesTime(s.p.ECNMin), p.p.bytesTime(s.p.ECNMax)
	switch {
	case wait <= low:
		return false
	case wait >= high:
		return true
	}
	hi, lo := bits.Mul64(uint64(s.p.ECNChance)*(scale/100), uint64(wait-low))
	chance, _ := bits.Div64(hi, lo, uint64(high-low))
	return p.rand.Uint64()%scale < chance
}

// route forwards an InfiniBand packet.
func (in *ingress) route(f *roce.Frame, tail sim.Time, m marks) {
	s, bad := in.s, m.has(badFCS)
	from := s.ports[in.no].roomFor(f, m)
	drop := func(c *uint64) {
		*c++
		from.leave(s.e.Now())
		f.Release()
	}
	if bad && !s.p.CutThrough {
		drop(new(uint64)) // counted where it came in
		return
	}
	w := blocked{f: f, earliest: s.e.Now() + s.p.Latency, tail: tail + s.p.Latency, bad: bad, from: from}
	dlid := roce.LRH(f.B).DLID()
	if s.agents != nil && s.agents.takes(in.no, f, tail) {
		from.leave(tail)
		f.Release()
		return
	}
	if !roce.IsMulticastLID(dlid) {
		switch out, ok := s.lids[dlid]; {
		case !ok:
			drop(&s.NoRoute)
		case out == in.no:
			drop(&s.Filtered)
		default:
			s.ports[out].lanes.forward(w)
		}
		return
	}
	outs, last := s.outs(dlid), -1
	for _, i := range outs {
		if i != in.no {
			last = i
		}
	}
	if last < 0 {
		drop(&s.NoRoute)
		return
	}
	s.Flooded++
	for _, i := range outs {
		if i != in.no {
			c := w
			if f.Retain(); i != last { // the buffer is free when the last copy has left
				c.from = room{}
			}
			s.ports[i].lanes.forward(c)
		}
	}
	f.Release()
}
