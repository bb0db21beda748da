package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
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
func (p *PD) AllocMW(vt verbs.Thread, typ verbs.MWType) (verbs.MW, error) {
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

// BindMW is ibv_bind_mw: libibverbs' checks, mlx5_bind_mw's, and a request with the
// next key.
func (q *QP) BindMW(vt verbs.Thread, w verbs.MW, b verbs.MWBind) error {
	m, ok := w.(*MW)
	if !ok || m == nil || m.typ != verbs.MWType1 {
		return fmt.Errorf("bind_mw: not a window of type 1: %w", syscall.EINVAL)
	}
	r, _ := b.Info.MR.(*MR)
	switch {
	case r == nil && (b.Info.Addr != 0 || b.Info.Length != 0):
		return fmt.Errorf("bind_mw: a range of no region: %w", syscall.EINVAL)
	case r != nil && r.pd.real() != m.pd.real():
		return fmt.Errorf("bind_mw: the region is of another PD: %w", syscall.EPERM)
	case r != nil && r.kind != mrPlain && b.Info.Access&verbs.AccessZeroBased == 0:
		return fmt.Errorf("bind_mw: a null region, or one of another context: %w", syscall.ENOTSUP)
	case b.Info.Access&verbs.AccessZeroBased != 0 || r != nil && r.access&verbs.AccessZeroBased != 0:
		return fmt.Errorf("bind_mw: zero-based: %w", syscall.EINVAL)
	}
	key := verbs.IncRKey(m.rkey)
	wr := [1]verbs.SendWR{{ID: b.ID, Opcode: verbs.WRBindMW, Flags: b.Flags,
		Bind: &verbs.MWBindWR{MW: m, RKey: key, Info: b.Info}}}
	if _, err := q.PostSend(vt, wr[:]); err != nil {
		return fmt.Errorf("bind_mw: %w", err)
	}
	m.rkey = key
	return nil
}

// maxKLM is what the byte count of a KLM can say.
const maxKLM = 1 << 31

// bindUnits is the length of a UMR request in 16-byte units: control, UMR control and
// context, and with an entry one more block.
const (
	unbindUnits = 8
	bindUnits   = 12
)

// umr writes the segments of a bind or a local invalidate behind the control segment
// (set_bind_wr) and returns the key that the control segment names.
func (q *QP) umr(s *posting, w *verbs.SendWR) (key uint32, err error) {
	if q.typ == verbs.QPTUD || q.sq.maxPost*bindUnits*segSize > q.sq.mask+1 {
		return 0, fmt.Errorf("a QP that has no memory windows: %w", syscall.EOPNOTSUPP)
	}
	typ, rkey, info, key := verbs.MWType2, uint32(0), verbs.MWBindInfo{}, w.Imm
	done := verbs.WCOpLocalInv
	if w.Opcode == verbs.WRBindMW {
		m, ok := (*MW)(nil), false
		if w.Bind != nil {
			m, ok = w.Bind.MW.(*MW)
		}
		if !ok || m == nil {
			return 0, fmt.Errorf("a bind without a window: %w", syscall.EINVAL)
		}
		typ, rkey, info, key = m.typ, w.Bind.RKey, w.Bind.Info, m.rkey
		done = verbs.WCOpBindMW
	}
	r, _ := info.MR.(*MR)
	switch {
	case info.Length > maxKLM:
		return 0, fmt.Errorf("a window of %d bytes: %w", info.Length, syscall.EOPNOTSUPP)
	case info.Length > 0 && r == nil:
		return 0, fmt.Errorf("a bind to no region: %w", syscall.EINVAL)
	}
	q.noteUMR(s.ctrl, done)
	q.umrControl(s, typ, info.Length > 0)
	c := prm.MKC(q.block(s.ctrl + wqebb))
	clear(c)
	c.SetQPN(prm.MKeyQPNAny)
	c.SetMKey70(rkey & 0xff)
	s.ds = unbindUnits
	if info.Length == 0 {
		c.SetFree(true)
		return key, nil
	}
	if typ == verbs.MWType2 {
		c.SetQPN(q.qpn)
	}
	c.SetA(info.Access&verbs.AccessRemoteAtomic != 0)
	c.SetRW(info.Access&verbs.AccessRemoteWrite != 0)
	c.SetRR(info.Access&verbs.AccessRemoteRead != 0)
	if info.Access&verbs.AccessZeroBased == 0 {
		c.SetStartAddr(info.Addr)
	}
	c.SetLen(info.Length)
	b := q.block(s.ctrl + 2*wqebb)
	clear(b)
	e := prm.KLM(b)
	e.SetByteCount(uint32(info.Length))
	e.SetMKey(r.lkey)
	e.SetVA(info.Addr)
	s.ds = bindUnits
	return key, nil
}

// block is the basic block of the send queue at a running offset.
func (q *QP) block(off int) []byte {
	return q.ring.at(q.sq.off + off&q.sq.mask)[:wqebb:wqebb]
}

// umrControl is set_umr_control_seg.
func (q *QP) umrControl(s *posting, typ verbs.MWType, bind bool) {
	u := prm.UMRCtrlSegment(q.block(s.ctrl)[prm.CtrlSegmentSize:])
	clear(u)
	flags := uint8(prm.UMRTranslationOffset | prm.UMRInline)
	mask := uint64(prm.MKeyMaskFree | prm.MKeyMaskKey)
	if typ == verbs.MWType2 {
		mask |= prm.MKeyMaskQPN
	}
	switch {
	case bind:
		u.SetXLTOctowords(wqebb / prm.KLMSize)
		mask |= prm.MKeyMaskLen | prm.MKeyMaskStartAddr | prm.MKeyMaskLW | prm.MKeyMaskRR | prm.MKeyMaskRW | prm.MKeyMaskA
		if typ == verbs.MWType2 {
			flags |= prm.UMRCheckFree
		}
	case typ == verbs.MWType2:
		flags |= prm.UMRCheckQPN
	}
	u.SetFlags(flags)
	u.SetMKeyMask(mask)
}

// noteUMR remembers what a UMR at a place of the ring was asked for (wr_data): its
// completion does not say.
func (q *QP) noteUMR(ctrl int, op verbs.WCOpcode) {
	if q.sq.umr == nil {
		q.sq.umr = make([]verbs.WCOpcode, q.sq.cnt)
	}
	q.sq.umr[ctrl>>q.sq.shift] = op
}
