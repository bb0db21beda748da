package provider

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// MW is a memory window.
type MW struct {
	verbs.UnimplementedMW
	pd   *PD
	h    kernel.Handle
	typ  verbs.MWType
	rkey uint32
}

// AllocMW is ibv_alloc_mw.
func (p *PD) AllocMW(vt verbs.Thread, typ verbs.MWType) (_ verbs.MW, err error) {
	defer Of(vt).answers(&err)
	t := p.ctx.enter(vt)
	h, rkey, err := p.ctx.u.AllocMW(t.caller, p.h, typ)
	if err != nil {
		return nil, fmt.Errorf("alloc_mw: %w", err)
	}
	p.hold()
	return &MW{pd: p, h: h, typ: typ, rkey: rkey}, nil
}

// Type is the window's type.
func (m *MW) Type() verbs.MWType { return m.typ }

// RKey is the key that the library believes the window to have.
func (m *MW) RKey() uint32 { return m.rkey }

// SetRKey notes the key that a posted bind gave a window of type 2.
func (m *MW) SetRKey(k uint32) { m.rkey = k }

// Dealloc is ibv_dealloc_mw.
func (m *MW) Dealloc(vt verbs.Thread) error {
	t := m.pd.ctx.enter(vt)
	if err := m.pd.ctx.u.DeallocMW(t.caller, m.h); err != nil {
		return fmt.Errorf("dealloc_mw: %w", err)
	}
	m.pd.drop()
	return nil
}
