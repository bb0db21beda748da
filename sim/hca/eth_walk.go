package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
)

// receive is the TIRs for a packet that has arrived, each with a reference to a frame: good until
// the next call.
func (s *steering) receive(f *roce.Frame, h *ether.Headers) []flowHit {
	s.hits = s.hits[:0]
	if root := s.roots[prm.FlowTableNICReceive]; root != nil {
		s.begin(root, flight{f: f.Retain(), h: *h})
	}
	return s.hits
}

// send is what leaves of a packet that is sent, whose reference it takes: good until the next call.
func (s *steering) send(f *roce.Frame) []*roce.Frame {
	s.leaving = s.leaving[:0]
	root := s.roots[prm.FlowTableNICTransmit]
	if root == nil {
		s.leaving = append(s.leaving, f)
		return s.leaving
	}
	s.begin(root, flight{f: f, h: ether.Parse(f.B)})
	return s.leaving
}

func (s *steering) begin(root *flowTable, p flight) {
	s.lookups = maxFlowLookups
	s.walk(root, &p)
	p.f.Release()
}

// walk sends a packet through a table and those that it leads to.
func (s *steering) walk(t *flowTable, p *flight) {
	for s.lookups > 0 {
		s.lookups--
		if t.sw {
			s.walkEntries(t.kind, t.at, p)
			return
		}
		e := t.match(p.headers())
		if e == nil {
			if t.miss == nil {
				s.end(t.kind, p)
				return
			}
			t = t.miss
			continue
		}
		s.act(t.kind, e, p)
		return
	}
}

// end is where nothing leads further: a packet that is sent leaves, one that has arrived is
// dropped.
func (s *steering) end(kind uint32, p *flight) {
	if kind == prm.FlowTableNICTransmit {
		s.leaving = append(s.leaving, p.f.Retain())
	}
}

// hit is the arrival at a TIR.
func (s *steering) hit(r *tir, p *flight) {
	s.hits = append(s.hits, flowHit{r, p.tag, p.f.Retain(), p.h})
}

// act is what an entry does with a packet.
func (s *steering) act(kind uint32, e *flowEntry, p *flight) {
	for _, c := range e.counters {
		c.add(len(p.f.B))
	}
	if e.decap && !p.decapsulate() {
		return
	}
	if e.rewrite != nil {
		p.apply(e.rewrite.changes)
	}
	if e.tunnel != nil && !p.encapsulate(e.tunnel.headers) {
		return
	}
	p.tag = e.tag
	for _, r := range e.tirs {
		s.hit(r, p)
	}
	for _, next := range e.tables {
		q := p.fork()
		s.walk(next, &q)
		q.f.Release()
	}
	if e.allow {
		s.end(kind, p)
	}
}

// sampled sends a packet where a sampler does.
func (s *steering) sampled(x *flowSampler, p *flight) {
	x.seen++
	if x.seen >= x.ratio {
		x.seen = 0
		q := p.fork()
		s.walk(x.sample, &q)
		q.f.Release()
	}
	s.walk(x.all, p)
}

// walkEntries sends a packet to what an entry of a program, or the miss of one, leads to, and on
// from there. An address of nothing, an entry that was never written and one that this device does
// not know drop the packet.
func (s *steering) walkEntries(kind uint32, at uint64, p *flight) {
	for s.lookups > 0 {
		s.lookups--
		if at < icmEntries {
			s.leaveEntries(kind, at, p)
			return
		}
		e := s.icm.entry(at)
		if e == nil || e.EntryType() == 0 {
			return
		}
		tag, ok := p.tagOf(e.LookupType())
		if !tag.matches(e) || !ok && steTag(e.Mask()) != (steTag{}) {
			at = e.MissAddress()
			continue
		}
		if !s.actEntry(kind, e, p) {
			return
		}
		next, n := e.Next()
		at = next
		if n > 1 && e.ByteMask() != 0 {
			tag, _ = p.tagOf(e.NextLookupType())
			at += tag.place(e.ByteMask(), n) * prm.STESize
		}
	}
}

// leaveEntries is an address that is none of an entry.
func (s *steering) leaveEntries(kind uint32, at uint64, p *flight) {
	n := uint32(at & icmNumber / prm.STESize)
	switch {
	case at == icmAllowTx:
		s.end(kind, p)
	case at < icmTables:
	case at < icmTIRs:
		if t := s.table(n); t != nil && t.kind == kind {
			s.walk(t, p)
		}
	case at < icmSamplers:
		if r := s.tir(n); r != nil && kind == prm.FlowTableNICReceive {
			s.hit(r, p)
		}
	case at < icmObjects:
		if x := s.sampler(n); x != nil && x.all.kind == kind {
			s.sampled(x, p)
		}
	}
}

// actEntry is what an entry of a program does with a packet that matches. It reports false where
// the packet ends.
func (s *steering) actEntry(kind uint32, e prm.STE, p *flight) bool {
	if c := s.counter(e.Counter()); c != nil {
		c.add(len(p.f.B))
	}
	typ := e.EntryType()
	switch {
	case typ == prm.STETransmit && kind == prm.FlowTableNICTransmit:
		return s.actSent(e, p)
	case typ == prm.STEReceive && kind == prm.FlowTableNICReceive, typ == prm.STEModify:
		if typ == prm.STEModify && !s.rewriteByEntry(e, p) {
			return false
		}
		if typ == prm.STEReceive && e.FlowTag()&prm.STEHasFlowTag != 0 {
			p.tag = e.FlowTag() & (1<<24 - 1)
		}
		switch e.TunnelAction() {
		case prm.STEDecap:
			return p.decapsulate() || !e.FailOnError()
		case prm.STEPopVLAN:
			p.popTag()
		case prm.STEDecapL3:
			return false // no such tunnel is parsed
		}
		return true
	}
	return false
}

// actSent is the part of actEntry of packets that are sent.
func (s *steering) actSent(e prm.STE, p *flight) bool {
	switch e.ActionType() {
	case prm.STEPushVLAN:
		return p.pushTag(e.ActionData())
	case prm.STEEncap:
		x := numbered(s.tunnels, e.ActionData())
		return x != nil && p.encapsulate(x.headers)
	}
	return e.ActionType() == 0
}

// rewriteByEntry makes the header changes that an entry points at.
func (s *steering) rewriteByEntry(e prm.STE, p *flight) bool {
	s.changes = s.changes[:0]
	var b [prm.STEHeaderChangeSize]byte
	at := uint64(icmChanges) + uint64(e.ChangesAt())*changesUnit
	for i := range min(uint64(e.Changes()), 1<<logICMGranularity) {
		s.icm.read(at+i*uint64(len(b)), b[:])
		c, ok := changeOfEntry(prm.STEHeaderChange(b[:]))
		if !ok {
			return false
		}
		s.changes = append(s.changes, c)
	}
	p.apply(s.changes)
	return true
}
