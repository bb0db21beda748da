package hca

import (
	"slices"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
)

// steering is the flow tables of a function: what the driver has written there decides where an Ethernet packet that has
// arrived goes. A packet enters the root. The first entry that matches decides; where none does, the table's miss. It
// ends at TIRs, or is dropped. Levels rise from table to table, so that there is an end.
type steering struct {
	root     *flowTable // nil: packets are dropped
	tables   []*flowTable
	groups   []*flowGroup
	counters []*flowCounter

	tableNums, groupNums, counterNums numbers
	hits                              []flowHit // of the present packet
	lookups                           int       // that it may still make
}

// flowTable is a table of entries in groups.
type flowTable struct {
	id    uint32
	level uint32
	size  uint32
	miss  *flowTable   // nil: drop
	group []*flowGroup // in the order of their entries
	users int          // entries and tables that lead here
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
	tables   []*flowTable
	tirs     []*tir
	counters []*flowCounter
}

// flowKey is the headers of a packet, or a mask of them (prm.FlowHeaders).
type flowKey [prm.FlowHeadersSize]byte

// flowCounter counts packets for entries.
type flowCounter struct {
	traffic
	users int
}

// flowHit is a TIR that a packet has come to, with the tag of the entry that leads there.
type flowHit struct {
	tir *tir
	tag uint32
}

// Limits of flow tables, as the capabilities say.
const (
	logFlowTables       = 10
	logFlowTableSize    = 16
	logFlowDestinations = 4
	logFlowCounters     = 10
	maxFlowLevel        = 128 // Linux has 67
	maxFlowLookups      = 256 // of one packet, when entries lead to several tables each
)

// newSteering makes no tables. Numbers begin at 1: 0 is no table.
func newSteering() steering {
	return steering{
		tableNums: numbers{next: 1, limit: 1 << logFlowTables}, groupNums: numbers{next: 1, limit: 1 << (2 * logFlowTables)},
		counterNums: numbers{next: 1, limit: 1 << logFlowCounters},
	}
}

// find is the TIRs for a packet: good until the next call.
func (s *steering) find(h *ether.Headers, b []byte) []flowHit {
	s.hits = s.hits[:0]
	if s.root != nil {
		key := keyOf(h, b)
		s.lookups = maxFlowLookups
		s.walk(s.root, &key, len(b))
	}
	return s.hits
}

func (s *steering) walk(t *flowTable, key *flowKey, n int) {
	for t != nil && s.lookups > 0 {
		s.lookups--
		e := t.match(key)
		if e == nil {
			t = t.miss
			continue
		}
		for _, c := range e.counters {
			c.add(n)
		}
		for _, r := range e.tirs {
			s.hits = append(s.hits, flowHit{r, e.tag})
		}
		for _, next := range e.tables {
			s.walk(next, key, n)
		}
		return
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

func (k *flowKey) and(m *flowKey) (r flowKey) {
	for i := range k {
		r[i] = k[i] & m[i]
	}
	return r
}

// covers says whether m has all the bits of k.
func (k *flowKey) covers(m *flowKey) bool { return k.and(m) == *m }

// keyOf is the headers of a packet.
func keyOf(h *ether.Headers, b []byte) (key flowKey) {
	k := prm.FlowHeaders(key[:])
	k.SetMACs(b[:12])
	k.SetEtherType(uint32(h.Type))
	if h.Tagged || h.STagged {
		k.SetCVLANTag(h.Tagged)
		k.SetSVLANTag(h.STagged)
		k.SetFirstVID(uint32(h.TCI & roce.VLANMask))
		k.SetFirstCFI(h.TCI&0x1000 != 0)
		k.SetFirstPrio(uint32(h.TCI >> 13))
	}
	if h.Version == 0 {
		return key
	}
	k.SetIPVersion(uint32(h.Version))
	k.SetIPProtocol(uint32(h.Proto))
	k.SetIPDSCP(uint32(h.TOS >> 2))
	k.SetIPECN(uint32(h.TOS & 3))
	k.SetTTL(uint32(h.TTL))
	k.SetFrag(h.Fragment)
	src, dst := h.SrcIP(b), h.DstIP(b)
	copy(k.SrcIP()[16-len(src):], src)
	copy(k.DstIP()[16-len(dst):], dst)
	switch {
	case h.Transport == 0:
	case h.Proto == ether.ProtoTCP:
		k.SetTCPSport(uint32(h.SrcPort))
		k.SetTCPDport(uint32(h.DstPort))
		k.SetTCPFlags(uint32(h.TCPFlags))
	default:
		k.SetUDPSport(uint32(h.SrcPort))
		k.SetUDPDport(uint32(h.DstPort))
	}
	return key
}

// matchable is all that keyOf looks at.
var matchable = func() (key flowKey) {
	all := ^uint32(0)
	k := prm.FlowHeaders(key[:])
	k.SetMACs(slices.Repeat([]byte{0xff}, 12))
	for _, set := range []func(uint32){
		k.SetEtherType, k.SetFirstVID, k.SetFirstPrio, k.SetIPVersion, k.SetIPProtocol, k.SetIPDSCP, k.SetIPECN, k.SetTTL,
		k.SetTCPSport, k.SetTCPDport, k.SetTCPFlags, k.SetUDPSport, k.SetUDPDport,
	} {
		set(all)
	}
	k.SetCVLANTag(true)
	k.SetSVLANTag(true)
	k.SetFirstCFI(true)
	k.SetFrag(true)
	copy(k.SrcIP(), slices.Repeat([]byte{0xff}, 16))
	copy(k.DstIP(), slices.Repeat([]byte{0xff}, 16))
	return key
}()

// table is the table with a number, or nil; group and counter likewise.
func (s *steering) table(id uint32) *flowTable { return numbered(s.tables, id) }

func (s *steering) group(id uint32) *flowGroup { return numbered(s.groups, id) }

func (s *steering) counter(id uint32) *flowCounter { return numbered(s.counters, id) }

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
}
