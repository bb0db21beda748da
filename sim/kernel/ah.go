package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// ah is an address handle. The device knows nothing of it: what is in it goes into each
// request.
type ah struct{ pd *pd }

// CreateAH is CREATE_AH. It returns the Ethernet address of the destination, as
// mlx5_ib_create_ah_resp does. EINVAL: a port that does not exist, no global route, a
// GID index outside the table. ENODATA: an empty slot of it. ETIMEDOUT: no host answers
// for the address.
func (u *Ucontext) CreateAH(c Caller, pdh Handle, a verbs.AHAttr) (h Handle, dmac MAC, err error) {
	err = u.do(c, func(k *call) error {
		if a.Port < 1 || int(a.Port) > k.d.caps.ports {
			return fmt.Errorf("create AH: port %d: %w", a.Port, syscall.EINVAL)
		}
		p, err := lookup[*pd](&u.objs, pdh, "PD")
		if err != nil {
			return err
		}
		src, err := k.d.checkAH(&a)
		if err != nil {
			return fmt.Errorf("create AH: %w", err)
		}
		var mac MAC
		if !k.d.caps.ib {
			if mac, _, err = k.resolve(src, a.GRH.DGID); err != nil {
				return fmt.Errorf("create AH: %w", err)
			}
		}
		if _, err := k.d.statRate(a.StaticRate); err != nil {
			return fmt.Errorf("create AH: %w", err)
		}
		p.refs++
		h, dmac = u.objs.add(&ah{p}), mac
		return nil
	})
	return h, dmac, err
}

// DestroyAH is DESTROY_AH.
func (u *Ucontext) DestroyAH(c Caller, h Handle) error { return destroyByHandle[*ah](u, c, h, "AH") }

func (a *ah) destroy(*call) error {
	a.pd.refs--
	return nil
}
