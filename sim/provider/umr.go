package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
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
		return 0, fmt.Errorf("a window of %d B: %w", info.Length, syscall.EOPNOTSUPP)
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

// bindUnits is the length of a UMR request in 16-byte units: control, UMR control and
// context, and with an entry one more block.
const (
	unbindUnits = 8
	bindUnits   = 12
)

// maxKLM is what the byte count of a KLM can say.
const maxKLM = 1 << 31

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
	q.sq.requests[ctrl>>q.sq.shift].driver = op
}
