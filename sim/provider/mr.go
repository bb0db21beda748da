package provider

import (
	"fmt"
	"math"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// MR is a memory region.
type MR struct {
	verbs.UnimplementedMR
	ctx          *Context
	pd           *PD
	h            kernel.Handle
	lkey, rkey   uint32
	addr, length uint64
	access       verbs.AccessFlags
	kind         mrKind
}

// mrKind is the library's mr_type.
type mrKind uint8

const (
	mrPlain    mrKind = iota
	mrNull            // the kernel does not know it
	mrImported        // of another context of the device file
	mrDmabuf
)

// RegMR is ibv_reg_mr.
func (p *PD) RegMR(vt verbs.Thread, addr, length uint64, access verbs.AccessFlags) (verbs.MR, error) {
	return p.RegMRIova(vt, addr, length, addr, access)
}

// RegMRIova is ibv_reg_mr_iova. libibverbs drops optional access bits that the
// kernel may not know; the kernel here knows which.
func (p *PD) RegMRIova(vt verbs.Thread, addr, length, iova uint64, access verbs.AccessFlags) (_ verbs.MR, err error) {
	defer Of(vt).answers(&err)
	t := p.ctx.enter(vt)
	h, lkey, rkey, err := p.ctx.u.RegMR(t.caller, p.h, addr, length, iova, access)
	if err != nil {
		return nil, fmt.Errorf("reg_mr %#x+%#x: %w", addr, length, err)
	}
	p.ctx.proc.dontFork()
	if p.ctx.proc.Registered != nil {
		p.ctx.proc.Registered(addr, length)
	}
	return &MR{ctx: p.ctx, pd: p, h: h, lkey: lkey, rkey: rkey, addr: addr, length: length, access: access}, nil
}

// AllocNullMR is ibv_alloc_null_mr: libmlx5 knows the one key of the device, and the
// kernel is not asked. It has no remote key.
func (p *PD) AllocNullMR(vt verbs.Thread) (_ verbs.MR, err error) {
	defer Of(vt).answers(&err)
	p.ctx.enter(vt)
	if !p.ctx.resp.DumpFill {
		return nil, fmt.Errorf("alloc_null_mr: the device has no such key: %w", syscall.ENOTSUP)
	}
	return &MR{ctx: p.ctx, pd: p, lkey: p.ctx.resp.DumpFillMKey, length: math.MaxUint64, kind: mrNull}, nil
}

// LKey is the local key.
func (m *MR) LKey() uint32 { return m.lkey }

// RKey is the remote key.
func (m *MR) RKey() uint32 { return m.rkey }

// Addr is the address that was registered.
func (m *MR) Addr() uint64 { return m.addr }

// Length is the length that was registered.
func (m *MR) Length() uint64 { return m.length }

// Translation is how the device translates the region.
func (m *MR) Translation() (pageSize uint64, entries int) { return m.ctx.u.MRTranslation(m.h) }

// Rereg is ibv_rereg_mr: libibverbs' checks of the input, then the kernel.
func (m *MR) Rereg(vt verbs.Thread, flags verbs.ReregFlags, pd verbs.PD, addr, length uint64, access verbs.AccessFlags) (err error) {
	defer Of(vt).answers(&err)
	t := m.ctx.enter(vt)
	const all = verbs.ReregTranslation | verbs.ReregPD | verbs.ReregAccess
	bad := func(format string, a ...any) error {
		return &verbs.ReregError{Code: verbs.ReregErrInput, Err: fmt.Errorf(format+": %w", append(a, syscall.EINVAL)...)}
	}
	p, _ := pd.(*PD)
	switch {
	case m.kind != mrPlain:
		return bad("a null region, one of a DMA-BUF, or one of another context")
	case flags&^all != 0:
		return bad("flags %#x", uint32(flags))
	case flags&verbs.ReregTranslation != 0 && (addr == 0 || length == 0):
		return bad("translation to %#x+%#x", addr, length)
	case access != 0 && flags&verbs.ReregAccess == 0:
		return bad("access bits without the flag")
	case flags&verbs.ReregPD != 0 && p == nil:
		return bad("no PD")
	}
	r := kernel.ReregReq{Flags: flags, Addr: addr, Length: length, Iova: addr, Access: access}
	if p != nil {
		r.PD = p.h
	}
	lkey, rkey, err := m.ctx.u.ReregMR(t.caller, m.h, r)
	if err != nil {
		return &verbs.ReregError{Code: verbs.ReregErrCmd, Err: err}
	}
	m.lkey, m.rkey = lkey, rkey
	if flags&verbs.ReregPD != 0 {
		m.pd = p
	}
	if flags&verbs.ReregTranslation != 0 {
		m.addr, m.length = addr, length
	}
	if flags&verbs.ReregAccess != 0 {
		m.access = access
	}
	return nil
}

// AdviseMR is ibv_advise_mr.
func (p *PD) AdviseMR(vt verbs.Thread, advice verbs.AdviseMRAdvice, flags verbs.AdviseMRFlags, ranges []verbs.SGE) (err error) {
	defer Of(vt).answers(&err)
	t := p.ctx.enter(vt)
	if err := p.ctx.u.AdviseMR(t.caller, p.h, advice, flags, ranges); err != nil {
		return fmt.Errorf("advise_mr: %w", err)
	}
	return nil
}

// Counters are the kernel's of the region.
func (m *MR) Counters(vt verbs.Thread) ([]verbs.NamedCounter, error) {
	t := m.ctx.enter(vt)
	if m.kind == mrNull {
		return nil, nil
	}
	return m.ctx.u.MRCounters(t.caller, m.h)
}

// Dereg is ibv_dereg_mr.
func (m *MR) Dereg(vt verbs.Thread) (err error) {
	defer Of(vt).answers(&err)
	t := m.ctx.enter(vt)
	if m.kind == mrNull {
		return nil
	}
	if err := m.ctx.u.DeregMR(t.caller, m.h); err != nil {
		return fmt.Errorf("dereg_mr: %w", err)
	}
	return nil
}
