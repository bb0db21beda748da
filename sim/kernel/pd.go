package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
)

type pd struct {
	u    *Ucontext
	pdn  uint32
	refs int // MRs, QPs, SRQs and AHs (usecnt)
}

// AllocPD is ALLOC_PD; pdn is the PD number in mlx5_ib_alloc_pd_resp.
func (u *Ucontext) AllocPD(c Caller) (h Handle, pdn uint32, err error) {
	err = u.do(c, func(k *call) error {
		out, err := k.simple(prm.OpAllocPD, 0)
		if err != nil {
			return err
		}
		p := &pd{u: u, pdn: prm.AllocPDOut(out).PD()}
		h, pdn = u.objs.add(p), p.pdn
		u.dev.res.PD++
		return nil
	})
	return h, pdn, err
}

// DeallocPD is DEALLOC_PD. EBUSY: an MR, a QP or an AH still uses it.
func (u *Ucontext) DeallocPD(c Caller, h Handle) error { return destroyByHandle[*pd](u, c, h, "PD") }

func (p *pd) destroy(k *call) error {
	if p.refs > 0 && !k.d.breaks(rule.PDInUseIsBusy) {
		return fmt.Errorf("%d objects are on it: %w", p.refs, syscall.EBUSY)
	}
	in := prm.NewIn(prm.OpDeallocPD, 0)
	prm.DeallocPDIn(in).SetPD(p.pdn)
	if err := k.destroy(in); err != nil {
		return err
	}
	p.u.dev.res.PD--
	return nil
}
