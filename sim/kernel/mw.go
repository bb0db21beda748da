package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

type mw struct {
	u    *Ucontext
	pd   *pd
	mkey uint32
}

// AllocMW is ALLOC_MW: it creates a free indirect mkey, which work requests of the program bind.
// EINVAL: an unknown type; EOPNOTSUPP: the device has no windows.
func (u *Ucontext) AllocMW(c Caller, h Handle, typ verbs.MWType) (mh Handle, rkey uint32, err error) {
	err = u.do(c, func(k *call) error {
		m, err := u.allocMW(k, h, typ)
		if err != nil {
			return fmt.Errorf("allocate memory window: %w", err)
		}
		mh, rkey = u.objs.add(m), m.mkey
		return nil
	})
	return mh, rkey, err
}

// windowUnits is the room for entries: mlx5_ib_alloc_mw rounds one up to four.
const windowUnits = 4

func (u *Ucontext) allocMW(k *call, h Handle, typ verbs.MWType) (*mw, error) {
	d := u.dev
	if !d.caps.memoryWindows {
		return nil, fmt.Errorf("the device has none: %w", syscall.EOPNOTSUPP)
	}
	p, err := lookup[*pd](&u.objs, h, "PD")
	if err != nil {
		return nil, err
	}
	if typ != verbs.MWType1 && typ != verbs.MWType2 {
		return nil, fmt.Errorf("type %d: %w", typ, syscall.EINVAL)
	}
	in, out := prm.NewIn(prm.OpCreateMKey, 0), prm.NewOut(prm.OpCreateMKey, 0)
	d.mkeys++
	c := prm.CreateMKeyIn(in).MKC()
	c.SetFree(true)
	c.SetUMREn(true)
	c.SetLR(true)
	c.SetEnRInval(typ == verbs.MWType2)
	c.SetAccessMode(prm.MKeyModeKLM)
	c.SetTranslationsOctwordSize(windowUnits)
	c.SetPD(p.pdn)
	c.SetQPN(prm.MKeyQPNAny)
	c.SetMKey70(uint32(d.mkeys))
	if err := k.exec(in, out); err != nil {
		return nil, err
	}
	p.refs++
	m := &mw{u: u, pd: p, mkey: prm.MKeyOf(prm.CreateMKeyOut(out).MKeyIndex(), uint32(d.mkeys))}
	d.odp.keys[m.mkey>>8] = &odpKey{kind: keyOfWindow, key: m.mkey, entries: windowUnits}
	return m, nil
}

// DeallocMW is DEALLOC_MW; a window that is bound loses its access.
func (u *Ucontext) DeallocMW(c Caller, h Handle) error { return destroyByHandle[*mw](u, c, h, "MW") }

func (m *mw) destroy(k *call) error {
	in := prm.NewIn(prm.OpDestroyMKey, 0)
	prm.DestroyMKeyIn(in).SetMKeyIndex(m.mkey >> 8)
	if err := k.destroy(in); err != nil {
		return err
	}
	delete(k.d.odp.keys, m.mkey>>8)
	m.pd.refs--
	return nil
}
