package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/mkey"
	"github.com/rdmasim/rdmasim/sim/odp"
)

// pagedParams are those of a device that pages on demand.
func pagedParams() Params {
	p := testParams()
	all := uint32(prm.ODPSend | prm.ODPReceive | prm.ODPWrite | prm.ODPRead | prm.ODPAtomic | prm.ODPSRQReceive)
	p.ODP = odp.Params{RC: all, UD: prm.ODPSend | prm.ODPSRQReceive, Implicit: true, MemoryScheme: true,
		Report: 20 * sim.Microsecond, Resume: 10 * sim.Microsecond}
	return p
}

// pager is a driver that pages one region in and out: it knows the bytes of the region's pages, and
// which of them lie in memory that the device may use.
type pager struct {
	*host
	t      testing.TB
	eq     *hostEQ
	eqn    uint32
	qps    map[uint32]*tQP
	srqs   map[uint32]*tSRQ
	region *mr
	pages  [][]byte // contents of those that are not in memory
	frames []mem.PA // 0: not in memory
	umr    mkey.Queue

	faults, failed int
	memory         bool // the scheme
	skip           bool // the fault is answered, and no page brought in
	refuse         func(page int) bool
}

func newPager(t testing.TB, h *host, pages int, qps ...*tQP) *pager {
	p := &pager{host: h, t: t, qps: map[uint32]*tQP{}, pages: make([][]byte, pages), frames: make([]mem.PA, pages)}
	p.eq, p.eqn = h.newEQ(2, 1<<prm.EventPageFault)
	for _, q := range qps {
		p.qps[q.n] = q
	}
	in := prm.NewIn(prm.OpCreateMKey, 0)
	m := prm.CreateMKeyIn(in)
	c := m.MKC()
	c.SetAccessMode(prm.MKeyModeMTT)
	for _, set := range []func(bool){c.SetA, c.SetRR, c.SetRW, c.SetLW, c.SetLR, c.SetUMREn} {
		set(true)
	}
	c.SetQPN(prm.MKeyQPNAny)
	c.SetMKey70(0x5a)
	c.SetPD(h.pd)
	const va = 0x7f0000000000
	c.SetStartAddr(va)
	c.SetLen(uint64(pages) * 4096)
	c.SetLogPageSize(12)
	c.SetTranslationsOctwordSize(uint32(pages+7) / 8 * 4)
	r := &mr{h: h, va: va, n: uint64(pages) * 4096, index: prm.CreateMKeyOut(h.cmd(in)).MKeyIndex()}
	r.lkey = prm.MKeyOf(r.index, 0x5a)
	r.rkey = r.lkey
	p.region = r
	p.umr = mkey.Queue{User: mkey.User{PD: h.pd}, FastRegister: true, Driver: true}
	for i := range p.pages {
		p.pages[i] = make([]byte, 4096)
	}
	return p
}

// entries writes the eight entries around that of a page, as the driver does.
func (p *pager) entries(page int) {
	first := page &^ 7
	list := make(prm.MTT, 64)
	for i := range 8 {
		if first+i < len(p.frames) && p.frames[first+i] != 0 {
			list.Set(i, uint64(p.frames[first+i]), prm.MTTRead|prm.MTTWrite)
		}
	}
	umr := make(prm.UMRCtrlSegment, prm.UMRCtrlSegmentSize)
	umr.SetFlags(prm.UMRTranslationOffset)
	umr.SetXLTOffset(uint64(first) / 2)
	p.d.settle()
	if r := p.d.keys.Update(p.umr, p.region.lkey, umr, make(prm.MKC, prm.MKCSize), list); r != mkey.OK {
		p.t.Fatal(r)
	}
}

// in brings a page into memory, with garbage before its bytes are there.
func (p *pager) in(page int) {
	if p.frames[page] != 0 {
		return
	}
	p.frames[page] = p.alloc(4096)
	p.m.Write(p.frames[page], p.pages[page])
	p.entries(page)
}

// out takes a page away: no DMA may reach its frame afterwards.
func (p *pager) out(page int) {
	f := p.frames[page]
	if f == 0 {
		return
	}
	p.frames[page] = 0
	p.entries(page)
	p.l.Drain()
	p.m.Read(f, p.pages[page])
	p.m.Write(f, garbage)
	p.m.Free(f, 4096)
}

var garbage = func() []byte {
	b := make([]byte, 4096)
	for i := range b {
		b[i] = 0xdd
	}
	return b
}()

// bytes are those of the region.
func (p *pager) bytes(off, n int) []byte {
	b := make([]byte, 0, n)
	for n > 0 {
		page, in := off/4096, off%4096
		k := min(n, 4096-in)
		part := make([]byte, 4096)
		if p.frames[page] != 0 {
			p.m.Read(p.frames[page], part)
		} else {
			copy(part, p.pages[page])
		}
		b = append(b, part[in:in+k]...)
		off, n = off+k, n-k
	}
	return b
}

// fill writes pages that are not in memory.
func (p *pager) fill(f func(i int) byte) {
	for i := range p.pages {
		for k := range p.pages[i] {
			p.pages[i][k] = f(i*4096 + k)
		}
	}
}

// serve answers the faults that are out; drop says for which no page is brought in, so that the
// device finds none again.
func (p *pager) serve(drop func() bool) {
	for e := p.nextEQE(p.eq); e != nil; e = p.nextEQE(p.eq) {
		if e.Type() != prm.EventPageFault {
			p.t.Fatalf("event %#x", e.Type())
		}
		p.faults++
		in := prm.NewIn(prm.OpPageFaultResume, 0)
		p.skip = drop()
		ok := p.page(e, in)
		if !ok {
			p.failed++
		}
		prm.PageFaultResumeIn(in).SetError(!ok)
		p.cmd(in)
	}
	p.armEQ(p.eq, p.eqn)
}

// page brings in what an event asks for, and begins the answer. False: there is no such memory.
func (p *pager) page(e prm.EQE, in []byte) bool {
	m := prm.PageFaultResumeIn(in)
	switch e.SubType() {
	case prm.PageFaultSubRDMA:
		f := prm.PageFaultRDMA(e.Data())
		m.SetFaultType(f.FaultType())
		m.SetWQNumber(f.Token())
		m.SetToken(f.Token())
		if f.RKey() != p.region.rkey || f.RDMAOpLen() < f.BytesCommitted() {
			p.t.Fatalf("fault of key %#x, %d of %d bytes", f.RKey(), f.BytesCommitted(), f.RDMAOpLen())
		}
		return p.bring(f.RDMAVA()+uint64(f.BytesCommitted()), uint64(f.RDMAOpLen()-f.BytesCommitted()))
	case prm.PageFaultSubMemory:
		f := prm.PageFaultMemory(e.Data())
		prm.PageFaultResumeMemoryIn(in).PutToken48(f.Token48())
		if f.MKey() != p.region.lkey || f.Flags() != prm.PageFaultMemoryLast {
			p.t.Fatalf("fault of key %#x, flags %#x", f.MKey(), f.Flags())
		}
		return p.bring(f.VA()&^4095, uint64(f.DemandPages())*4096)
	}
	f := prm.PageFaultWQE(e.Data())
	m.SetFaultType(f.FaultType())
	m.SetWQNumber(f.WQNumber())
	m.SetToken(f.Token())
	return p.pageWQE(f)
}

// pageWQE reads the work request of a fault, as a driver does, and brings in what is left of its
// buffers.
func (p *pager) pageWQE(f prm.PageFaultWQE) bool {
	skip := uint64(f.BytesCommitted())
	bring := func(va, n uint64) bool {
		k := min(skip, n)
		skip -= k
		return k == n || p.bring(va+k, n-k)
	}
	q, s := p.qps[f.WQNumber()], p.srqs[f.WQNumber()]
	if f.FaultType() == prm.FaultRMP {
		q = nil
	} else {
		s = nil
	}
	if q == nil && s == nil {
		p.t.Fatalf("fault of type %d of queue %#x", f.FaultType(), f.WQNumber())
	}
	if f.FaultType() == prm.FaultReceive || s != nil {
		b := make([]byte, 64)
		if s != nil {
			p.m.Read(s.pa+mem.PA(64*int(f.WQEIndex())), b)
			b = b[prm.SRQNextSegmentSize:]
		} else {
			p.m.Read(q.rq+mem.PA(int(f.WQEIndex())%tRecvs*64), b)
		}
		for s, at, ok := prm.RecvSGE(b, 0); ok; s, at, ok = prm.RecvSGE(b, at) {
			if s.LKey == p.region.lkey && !bring(s.Addr, uint64(s.Len)) {
				return false
			}
		}
		return true
	}
	b := make([]byte, 8*64)
	for i := range 8 {
		p.m.Read(q.sq+mem.PA((int(f.WQEIndex())+i)%tBlocks*64), b[i*64:(i+1)*64])
	}
	var w prm.SendWQE
	st := uint32(prm.STRC)
	if q.xrc {
		st = prm.STXRC
	}
	if err := prm.ParseSendWQE(b[:prm.CtrlSegment(b).DS()*16], st, &w); err != nil {
		p.t.Fatal(err)
	}
	read := w.Ctrl.Opcode() == prm.WQEOpRDMARead || w.Ctrl.Opcode() == prm.WQEOpAtomicFA
	if read != (f.FaultType() == prm.FaultReadOrAtomic) {
		p.t.Fatalf("fault type %d of opcode %#x", f.FaultType(), w.Ctrl.Opcode())
	}
	for s, at, ok := w.Data(0); ok; s, at, ok = w.Data(at) {
		if s.LKey == p.region.lkey && !bring(s.Addr, uint64(s.Len)) {
			return false
		}
	}
	return true
}

// bring has the pages of a range in memory.
func (p *pager) bring(va, n uint64) bool {
	off := va - p.region.va
	if va < p.region.va || off+n > p.region.n {
		p.t.Fatalf("fault at %#x, %d bytes: outside the region", va, n)
	}
	for page := off / 4096; page*4096 < off+n; page++ {
		if p.skip {
			return true
		}
		if p.refuse != nil && p.refuse(int(page)) {
			return false
		}
		p.in(int(page))
	}
	return true
}

func never() bool { return false }
