package hca

import (
	"slices"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
)

// steering is the flow tables of a function: what the driver, and programs, have written there
// decides where an Ethernet packet that has arrived goes, and what becomes of one that is sent. A
// packet enters the root of its kind. The first entry that matches decides; where none does, the
// table's miss. It ends at TIRs or leaves, or is dropped.
type steering struct {
	roots    [flowKinds]*flowTable // nil: packets that arrive are dropped, those that are sent leave
	tables   []*flowTable
	groups   []*flowGroup
	counters []*flowCounter
	rewrites []*headerRewrite
	tunnels  []*packetReformat
	samplers []*flowSampler
	tirs     *[]*tir
	icm      *icm

	tableNums, groupNums, counterNums, rewriteNums, tunnelNums, samplerNums numbers

	hits    []flowHit     // of the present packet
	leaving []*roce.Frame // what is left of the one that is sent
	changes []headerChange
	lookups int // that it may still make
}

// flowKinds is how many kinds of tables there are: prm.FlowTableNICReceive and
// FlowTableNICTransmit.
const flowKinds = 2

// flowTable is a table of entries in groups, or one whose entries a program writes.
type flowTable struct {
	id        uint32
	kind      uint32
	level     uint32
	size      uint32
	sw        bool
	at        uint64       // where the entries of a program begin
	reformats bool         // its entries may make tunnels, or end them
	miss      *flowTable   // nil: drop, or leave
	group     []*flowGroup // in the order of their entries
	users     int          // entries and tables that lead here
}

// flowGroup is the entries start..end of a table, which match the same fields.
type flowGroup struct {
	table      *flowTable
	start, end uint32
	mask       flowKey
	entries    []*flowEntry // in the order of their indexes
}

// flowEntry matches packets and says what becomes of them.
type flowEntry struct {
	index    uint32
	value    flowKey
	tag      uint32
	drop     bool
	allow    bool // of packets that are sent: they leave
	decap    bool
	tables   []*flowTable
	tirs     []*tir
	counters []*flowCounter
	rewrite  *headerRewrite
	tunnel   *packetReformat
}

// headerRewrite is a context of header changes, packetReformat one of the headers of a tunnel.
type headerRewrite struct {
	kind    uint32
	changes []headerChange
	users   int
}

type packetReformat struct {
	headers []byte
	users   int
}

// flowSampler has one packet of several go to a table, and all to another one.
type flowSampler struct {
	ratio, seen uint32
	sample, all *flowTable
	ctx         [prm.FlowSamplerSize]byte
}

// flowCounter counts packets for entries.
type flowCounter struct {
	traffic
	users int
}

// flowHit is a TIR that a packet has come to, as it is there, with the tag of the entry that leads
// there and a reference to the frame.
type flowHit struct {
	tir *tir
	tag uint32
	f   *roce.Frame
	h   ether.Headers
}

// Limits of flow tables, as the capabilities say.
const (
	logFlowTables       = 10
	logFlowTableSize    = 16
	logFlowDestinations = 4
	logFlowCounters     = 10
	maxFlowLevel        = 128  // Linux has 67
	maxFlowLookups      = 1024 // of one packet, when entries lead to several tables each, or to one another
	logRewrites         = 10
	maxRewrite          = 16 // changes of one context
	logTunnels          = 10
	maxTunnelHeaders    = 128
)

// newSteering makes no tables. Numbers begin at 1: 0 is no table.
func newSteering(tirs *[]*tir, m *icm) steering {
	return steering{
		tableNums: numbers{next: 1, limit: 1 << logFlowTables}, groupNums: numbers{next: 1, limit: 1 << (2 * logFlowTables)},
		counterNums: numbers{next: 1, limit: 1 << logFlowCounters}, rewriteNums: numbers{next: 1, limit: 1 << logRewrites},
		tunnelNums: numbers{next: 1, limit: 1 << logTunnels}, samplerNums: numbers{next: 1, limit: 1 << logFlowTables}, tirs: tirs, icm: m,
	}
}

// match is the first entry that a packet matches, or nil.
func (t *flowTable) match(key *flowKey) *flowEntry {
	for _, g := range t.group {
		masked := g.mask.and(key)
		for _, e := range g.entries {
			if e.value == masked {
				return e
			}
		}
	}
	return nil
}

// table is the table with a number, or nil; group and counter likewise.
func (s *steering) table(id uint32) *flowTable { return numbered(s.tables, id) }

func (s *steering) group(id uint32) *flowGroup { return numbered(s.groups, id) }

func (s *steering) counter(id uint32) *flowCounter { return numbered(s.counters, id) }

func (s *steering) tir(id uint32) *tir { return numbered(*s.tirs, id) }

func (s *steering) sampler(id uint32) *flowSampler { return numbered(s.samplers, id) }

// numbered is the object with a number, or nil.
func numbered[T any](t []*T, n uint32) *T {
	if uint64(n) >= uint64(len(t)) {
		return nil
	}
	return t[n]
}

// entry is the entry at an index of a table with its group, or nil.
func (t *flowTable) entry(index uint32) (*flowGroup, *flowEntry) {
	for _, g := range t.group {
		if g.start <= index && index <= g.end {
			if i, ok := g.find(index); ok {
				return g, g.entries[i]
			}
			return g, nil
		}
	}
	return nil, nil
}

// find is the place of the entry with an index, and whether there is one.
func (g *flowGroup) find(index uint32) (int, bool) {
	return slices.BinarySearchFunc(g.entries, index, func(e *flowEntry, i uint32) int { return int(e.index) - int(i) })
}

// insert adds a group that overlaps no other of the table.
func (t *flowTable) insert(g *flowGroup) bool {
	i, _ := slices.BinarySearchFunc(t.group, g.start, func(x *flowGroup, start uint32) int { return int(x.start) - int(start) })
	if i > 0 && t.group[i-1].end >= g.start || i < len(t.group) && t.group[i].start <= g.end {
		return false
	}
	t.group = slices.Insert(t.group, i, g)
	return true
}

// use counts an entry among the users of what it leads to; by is 1 or -1.
func (e *flowEntry) use(by int) {
	for _, t := range e.tables {
		t.users += by
	}
	for _, r := range e.tirs {
		r.users += by
	}
	for _, c := range e.counters {
		c.users += by
	}
	if e.rewrite != nil {
		e.rewrite.users += by
	}
	if e.tunnel != nil {
		e.tunnel.users += by
	}
}
