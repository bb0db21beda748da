//go:build hw

package mlx5

/*
#include "verbs.h"
*/
import "C"

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/verbs"
)

// pd is a protection domain or a parent domain.
type pd struct {
	verbs.UnimplementedPD
	ctx *context
	p   *C.struct_ibv_pd

	attr verbs.ParentDomainAttr // of a parent domain
	mu   sync.Mutex
	mem  map[unsafe.Pointer]verbs.Buffer // that its allocator gave
}

// AllocPD is ibv_alloc_pd.
func (c *context) AllocPD(t verbs.Thread) (verbs.PD, error) {
	defer enterCall(t, "ibv_alloc_pd").leaveCall()
	p, err := C.ibv_alloc_pd(c.c)
	if p == nil {
		return nil, null("ibv_alloc_pd", err)
	}
	return &pd{ctx: c, p: p}, nil
}

func (p *pd) Context() verbs.Context { return p.ctx }

// Dealloc is ibv_dealloc_pd.
func (p *pd) Dealloc(t verbs.Thread) error {
	defer enterCall(t, "ibv_dealloc_pd").leaveCall()
	ret, err := C.ibv_dealloc_pd(p.p)
	if ret == 0 {
		domains.Delete(unsafe.Pointer(p.p))
	}
	return failed("ibv_dealloc_pd", ret, err)
}

// td is a thread domain.
type td struct {
	verbs.UnimplementedTD
	t *C.struct_ibv_td
}

// AllocTD is ibv_alloc_td. The independent attribute is in no released header: its comp_mask
// bit is passed on, its value cannot be.
func (c *context) AllocTD(t verbs.Thread, a verbs.TDInitAttr) (verbs.TD, error) {
	defer enterCall(t, "ibv_alloc_td").leaveCall()
	init := C.struct_ibv_td_init_attr{comp_mask: C.uint32_t(a.CompMask)}
	d, err := C.ibv_alloc_td(c.c, &init)
	if d == nil {
		return nil, null("ibv_alloc_td", err)
	}
	return &td{t: d}, nil
}

// Dealloc is ibv_dealloc_td.
func (d *td) Dealloc(t verbs.Thread) error {
	defer enterCall(t, "ibv_dealloc_td").leaveCall()
	ret, err := C.ibv_dealloc_td(d.t)
	return failed("ibv_dealloc_td", ret, err)
}

// domains are the parent domains with allocators: *C.struct_ibv_pd to *pd.
var domains sync.Map

// AllocParentDomain is ibv_alloc_parent_domain.
func (c *context) AllocParentDomain(t verbs.Thread, a verbs.ParentDomainAttr) (verbs.PD, error) {
	defer enterCall(t, "ibv_alloc_parent_domain").leaveCall()
	var base *C.struct_ibv_pd
	if b, ok := a.PD.(*pd); ok && b != nil {
		base = b.p
	}
	var thr *C.struct_ibv_td
	if d, ok := a.TD.(*td); ok && d != nil {
		thr = d.t
	}
	p, err := C.hw_parent_domain(c.c, base, thr, C.uint32_t(a.CompMask), truth(a.Alloc != nil), truth(a.Free != nil), truth(a.Context != nil))
	if p == nil {
		return nil, null("ibv_alloc_parent_domain", err)
	}
	d := &pd{ctx: c, p: p, attr: a, mem: map[unsafe.Pointer]verbs.Buffer{}}
	domains.Store(unsafe.Pointer(p), d)
	return d, nil
}

func truth(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// caller is the thread of the domain's process that makes the call under way.
func (p *pd) caller() *thread {
	tid := unix.Gettid()
	tb := p.ctx.dev.p.bed
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for _, t := range tb.threads {
		if t.tid == tid {
			return t
		}
	}
	return nil
}

// useDefault is IBV_ALLOCATOR_USE_DEFAULT.
var useDefault = unsafe.Pointer(C.IBV_ALLOCATOR_USE_DEFAULT)

// hwAlloc calls a domain's allocator from inside the library. A panic of it is raised
// when the library has returned.
//
//export hwAlloc
func hwAlloc(domain unsafe.Pointer, size, alignment C.size_t, resource C.uint64_t) (at unsafe.Pointer) {
	v, ok := domains.Load(domain)
	if !ok {
		return nil
	}
	d := v.(*pd)
	t := d.caller()
	if t == nil {
		return nil
	}
	defer t.holdPanic()
	b, answer := d.attr.Alloc(t, uint64(size), uint64(alignment), uint64(resource))
	switch {
	case answer == verbs.AllocUseDefault:
		return useDefault
	case answer != verbs.AllocOK || b == nil:
		return nil
	}
	at = b.(*buffer).start()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mem[at] = b
	return at
}

//export hwFree
func hwFree(domain, ptr unsafe.Pointer, resource C.uint64_t) {
	v, ok := domains.Load(domain)
	if !ok {
		return
	}
	d := v.(*pd)
	d.mu.Lock()
	b := d.mem[ptr]
	delete(d.mem, ptr)
	d.mu.Unlock()
	if t := d.caller(); t != nil {
		defer t.holdPanic()
		d.attr.Free(t, b, uint64(resource))
	}
}

// holdPanic keeps a panic until the C library, which called, has returned.
func (t *thread) holdPanic() {
	if v := recover(); v != nil && t.pending == nil {
		t.pending = v
	}
}

// mr is a memory region.
type mr struct {
	verbs.UnimplementedMR
	m *C.struct_ibv_mr
}

// RegMR is ibv_reg_mr.
func (p *pd) RegMR(t verbs.Thread, addr, length uint64, access verbs.AccessFlags) (verbs.MR, error) {
	defer enterCall(t, "ibv_reg_mr").leaveCall()
	m, err := C.hw_reg_mr(p.p, C.uint64_t(addr), C.uint64_t(length), C.uint(access))
	if m == nil {
		return nil, null("ibv_reg_mr", err)
	}
	callingThread(t).p.bed.regions.registered(addr, length)
	return &mr{m: m}, nil
}

// RegMRIova is ibv_reg_mr_iova.
func (p *pd) RegMRIova(t verbs.Thread, addr, length, iova uint64, access verbs.AccessFlags) (verbs.MR, error) {
	defer enterCall(t, "ibv_reg_mr_iova").leaveCall()
	m, err := C.hw_reg_mr_iova(p.p, C.uint64_t(addr), C.uint64_t(length), C.uint64_t(iova), C.uint(access))
	if m == nil {
		return nil, null("ibv_reg_mr_iova", err)
	}
	callingThread(t).p.bed.regions.registered(addr, length)
	return &mr{m: m}, nil
}

// AllocNullMR is ibv_alloc_null_mr.
func (p *pd) AllocNullMR(t verbs.Thread) (verbs.MR, error) {
	defer enterCall(t, "ibv_alloc_null_mr").leaveCall()
	m, err := C.ibv_alloc_null_mr(p.p)
	if m == nil {
		return nil, null("ibv_alloc_null_mr", err)
	}
	return &mr{m: m}, nil
}

// AdviseMR is ibv_advise_mr.
func (p *pd) AdviseMR(t verbs.Thread, advice verbs.AdviseMRAdvice, flags verbs.AdviseMRFlags, ranges []verbs.SGE) error {
	defer enterCall(t, "ibv_advise_mr").leaveCall()
	s := make([]C.struct_ibv_sge, len(ranges)+1) // never none, so that there is an address
	for i, r := range ranges {
		s[i] = C.struct_ibv_sge{addr: C.uint64_t(r.Addr), length: C.uint32_t(r.Length), lkey: C.uint32_t(r.LKey)}
	}
	ret, err := C.hw_advise_mr(p.p, C.uint32_t(advice), C.uint32_t(flags), &s[0], C.uint32_t(len(ranges)))
	return failed("ibv_advise_mr", ret, err)
}

func (m *mr) LKey() uint32   { return uint32(m.m.lkey) }
func (m *mr) RKey() uint32   { return uint32(m.m.rkey) }
func (m *mr) Addr() uint64   { return uint64(uintptr(m.m.addr)) }
func (m *mr) Length() uint64 { return uint64(m.m.length) }

// Rereg is ibv_rereg_mr.
func (m *mr) Rereg(t verbs.Thread, flags verbs.ReregFlags, domain verbs.PD, addr, length uint64, access verbs.AccessFlags) error {
	defer enterCall(t, "ibv_rereg_mr").leaveCall()
	var to *C.struct_ibv_pd
	if d, ok := domain.(*pd); ok && d != nil {
		to = d.p
	}
	ret, err := C.hw_rereg_mr(m.m, C.int(flags), to, C.uint64_t(addr), C.uint64_t(length), C.int(access))
	if ret == 0 {
		return nil
	}
	return &verbs.ReregError{Code: int(ret), Err: null("ibv_rereg_mr", err)}
}

// Dereg is ibv_dereg_mr.
func (m *mr) Dereg(t verbs.Thread) error {
	defer enterCall(t, "ibv_dereg_mr").leaveCall()
	ret, err := C.ibv_dereg_mr(m.m)
	return failed("ibv_dereg_mr", ret, err)
}

// mw is a memory window.
type mw struct {
	verbs.UnimplementedMW
	w *C.struct_ibv_mw
}

// AllocMW is ibv_alloc_mw.
func (p *pd) AllocMW(t verbs.Thread, typ verbs.MWType) (verbs.MW, error) {
	defer enterCall(t, "ibv_alloc_mw").leaveCall()
	w, err := C.ibv_alloc_mw(p.p, C.enum_ibv_mw_type(typ))
	if w == nil {
		return nil, null("ibv_alloc_mw", err)
	}
	return &mw{w: w}, nil
}

func (w *mw) Type() verbs.MWType  { return verbs.MWType(w.w._type) }
func (w *mw) RKey() uint32        { return uint32(w.w.rkey) }
func (w *mw) SetRKey(rkey uint32) { w.w.rkey = C.uint32_t(rkey) }

// Dealloc is ibv_dealloc_mw.
func (w *mw) Dealloc(t verbs.Thread) error {
	defer enterCall(t, "ibv_dealloc_mw").leaveCall()
	ret, err := C.ibv_dealloc_mw(w.w)
	return failed("ibv_dealloc_mw", ret, err)
}

// ah is an address handle.
type ah struct{ a *C.struct_ibv_ah }

// CreateAH is ibv_create_ah.
func (p *pd) CreateAH(t verbs.Thread, a verbs.AHAttr) (verbs.AH, error) {
	defer enterCall(t, "ibv_create_ah").leaveCall()
	attr := cAH(&a)
	h, err := C.ibv_create_ah(p.p, &attr)
	if h == nil {
		return nil, null("ibv_create_ah", err)
	}
	return &ah{h}, nil
}

// Destroy is ibv_destroy_ah.
func (h *ah) Destroy(t verbs.Thread) error {
	defer enterCall(t, "ibv_destroy_ah").leaveCall()
	ret, err := C.ibv_destroy_ah(h.a)
	return failed("ibv_destroy_ah", ret, err)
}

func cAH(a *verbs.AHAttr) C.struct_ibv_ah_attr {
	c := C.struct_ibv_ah_attr{dlid: C.uint16_t(a.DLID), sl: C.uint8_t(a.SL), src_path_bits: C.uint8_t(a.SrcPathBits),
		static_rate: C.uint8_t(a.StaticRate), port_num: C.uint8_t(a.Port)}
	if a.IsGlobal {
		c.is_global = 1
	}
	c.grh.dgid = a.GRH.DGID
	c.grh.flow_label, c.grh.sgid_index = C.uint32_t(a.GRH.FlowLabel), C.uint8_t(a.GRH.SGIDIndex)
	c.grh.hop_limit, c.grh.traffic_class = C.uint8_t(a.GRH.HopLimit), C.uint8_t(a.GRH.TrafficClass)
	return c
}

func goAH(c *C.struct_ibv_ah_attr) verbs.AHAttr {
	return verbs.AHAttr{DLID: uint16(c.dlid), SL: uint8(c.sl), SrcPathBits: uint8(c.src_path_bits), StaticRate: uint8(c.static_rate),
		Port: uint8(c.port_num), IsGlobal: c.is_global != 0,
		GRH: verbs.GRH{DGID: c.grh.dgid, FlowLabel: uint32(c.grh.flow_label), SGIDIndex: uint8(c.grh.sgid_index),
			HopLimit: uint8(c.grh.hop_limit), TrafficClass: uint8(c.grh.traffic_class)}}
}
