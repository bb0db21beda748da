package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// DMMRReq holds the arguments of DM_MR_REG.
type DMMRReq struct {
	PD, DM         Handle
	Offset, Length uint64
	Access         verbs.AccessFlags
}

// dmAccess are the rights that a region of device memory may have
// (MLX5_IB_DM_MEMIC_ALLOWED_ACCESS).
const dmAccess = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic |
	verbs.AccessZeroBased | verbs.AccessOptionalRange

// RegDMMR is DM_MR_REG: a region whose addresses begin at 0. EINVAL: not zero-based, rights
// that device memory cannot have, a range beyond its end.
func (u *Ucontext) RegDMMR(c Caller, r DMMRReq) (mh Handle, lkey, rkey uint32, err error) {
	err = u.do(c, func(k *call) error {
		m, err := u.regDMMR(k, &r)
		if err != nil {
			return fmt.Errorf("register device memory: %w", err)
		}
		mh, lkey, rkey = u.objs.add(m), m.mkey, m.mkey
		return nil
	})
	return mh, lkey, rkey, err
}

// deviceMem is memory on the device that a region can be of.
type deviceMem interface {
	object
	// region is where it lies, its length, the mode of keys and the rights that regions can have.
	region() (addr, length uint64, mode uint32, rights verbs.AccessFlags)
	// refer counts regions.
	refer(by int)
}

func (m *DM) region() (addr, length uint64, mode uint32, rights verbs.AccessFlags) {
	return m.addr, m.length, prm.MKeyModeMemic, dmAccess
}

func (m *DM) refer(by int) { m.refs += by }

func (m *steeringMemory) region() (addr, length uint64, mode uint32, rights verbs.AccessFlags) {
	return m.addr, m.length, prm.MKeyModeSWICM, verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessZeroBased // MLX5_IB_DM_SW_ICM_ALLOWED_ACCESS
}

func (m *steeringMemory) refer(by int) { m.refs += by }

func (u *Ucontext) regDMMR(k *call, r *DMMRReq) (*mr, error) {
	dm, err := lookup[deviceMem](&u.objs, r.DM, "device memory")
	if err != nil {
		return nil, err
	}
	p, err := lookup[*pd](&u.objs, r.PD, "PD")
	if err != nil {
		return nil, err
	}
	if r.Access&verbs.AccessZeroBased == 0 {
		return nil, fmt.Errorf("access %#x: addresses must begin at 0: %w", uint32(r.Access), syscall.EINVAL)
	}
	if err := checkMRAccess(r.Access); err != nil {
		return nil, err
	}
	addr, length, mode, rights := dm.region()
	if r.Offset > length || r.Length > length-r.Offset || r.Access&^rights != 0 {
		return nil, fmt.Errorf("%d B at %d of %d, access %#x: %w", r.Length, r.Offset, length, uint32(r.Access), syscall.EINVAL)
	}
	k.work += u.dev.p.RegMRBase
	m := &mr{u: u, pd: p, dm: dm, dmLength: r.Length, access: r.Access}
	in, out := prm.NewIn(prm.OpCreateMKey, 0), prm.NewOut(prm.OpCreateMKey, 0)
	d := u.dev
	d.mkeys++
	ctx := prm.CreateMKeyIn(in).MKC()
	m.fillRights(ctx, d, r.Access)
	ctx.SetAccessMode(mode)
	ctx.SetMKey70(uint32(d.mkeys))
	ctx.SetStartAddr(addr + r.Offset)
	ctx.SetLen(r.Length)
	if err := k.exec(in, out); err != nil {
		return nil, err
	}
	m.mkey = prm.MKeyOf(prm.CreateMKeyOut(out).MKeyIndex(), uint32(d.mkeys))
	p.refs++
	dm.refer(1)
	d.res.MR++
	return m, nil
}
