package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// BindMW is ibv_bind_mw: libibverbs' checks, mlx5_bind_mw's, and a request with the
// next key.
func (q *QP) BindMW(vt verbs.Thread, w verbs.MW, b verbs.MWBind) (err error) {
	defer Of(vt).answers(&err)
	m, ok := w.(*MW)
	if !ok || m == nil || m.typ != verbs.MWType1 {
		return fmt.Errorf("bind_mw: not a window of type 1: %w", syscall.EINVAL)
	}
	r, _ := b.Info.MR.(*MR)
	switch {
	case r == nil && (b.Info.Addr != 0 || b.Info.Length != 0):
		return fmt.Errorf("bind_mw: a range of no region: %w", syscall.EINVAL)
	case r != nil && r.pd.real() != m.pd.real():
		return fmt.Errorf("bind_mw: the region belongs to another PD: %w", syscall.EPERM)
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
