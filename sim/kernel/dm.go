package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/verbs"
)

// memicCaps are what the device has of memory for programs (device_mem_cap); max 0: none.
type memicCaps struct {
	max, start uint64
	pages      int
	align      uint32 // log2 of the largest, counted from 64 bytes
}

func (c *caps) deviceMemory(k *call, g prm.HCACap) error {
	if !g.DeviceMemory() {
		return nil
	}
	page, err := k.queryCap(prm.CapDeviceMem, prm.CapModeCurrent)
	if err != nil {
		return err
	}
	if m := prm.DeviceMemCap(page); m.Memic() {
		c.memic = memicCaps{uint64(m.MaxMemicSize()), m.MemicBARStartAddr(), int(m.MemicBARSize() / prm.PageSize), m.LogMaxMemicAddrAlignment()}
	}
	return nil
}

// DMReq is what DM_ALLOC takes.
type DMReq struct {
	Length   uint64
	LogAlign uint32
	Type     uint64 // enum mlx5_ib_uapi_dm_type: 0 is MEMIC
}

// DM is memory on the device.
type DM struct {
	Map         *cpu.Mapping // from the first byte
	PageIndex   uint16       // argument of MmapDeviceMem
	StartOffset uint64       // of the first byte in its page

	u      *Ucontext
	h      Handle
	addr   uint64 // in BAR 0
	length uint64 // as asked for
	size   uint64 // as taken
	refs   int    // regions
}

// MmapDeviceMem is the mmap command of device memory.
const MmapDeviceMem = 8

// Handle names the object among those of its context.
func (m *DM) Handle() Handle { return m.h }

// Pages is how many pages of BAR 0 show it.
func (m *DM) Pages() int { return int((m.size + pageMask) / prm.PageSize) }

// BAR is where in BAR 0 the first of the pages lies.
func (m *DM) BAR() uint64 { return m.addr &^ pageMask }

// AllocDM is DM_ALLOC (mlx5_ib_alloc_dm). EOPNOTSUPP: a device without, a type that does
// not exist; EPERM: memory for steering without CAP_NET_RAW; EINVAL: length 0, or an
// alignment that the device cannot have; ENOMEM: no room.
func (u *Ucontext) AllocDM(c Caller, r DMReq) (m *DM, err error) {
	err = u.do(c, func(k *call) error {
		if m, err = u.allocDM(k, &r); err != nil {
			return fmt.Errorf("device memory of %d bytes: %w", r.Length, err)
		}
		m.h = u.objs.add(m)
		u.maps = append(u.maps, m.Map)
		return nil
	})
	return m, err
}

// Units of MEMIC (MLX5_MEMIC_BASE_SIZE, MLX5_MEMIC_BASE_ALIGN).
const (
	memicUnit     = 64
	logMemicAlign = 6
)

func (u *Ucontext) allocDM(k *call, r *DMReq) (*DM, error) {
	d := u.dev
	c := &d.caps.memic
	switch {
	case r.Type != 0:
		return nil, fmt.Errorf("type %d: memory for steering is not modelled: %w", r.Type, syscall.EOPNOTSUPP)
	case c.max == 0:
		return nil, fmt.Errorf("the device has none: %w", syscall.EOPNOTSUPP)
	}
	m := &DM{u: u, length: r.Length, size: (r.Length + memicUnit - 1) &^ (memicUnit - 1)}
	align := max(r.LogAlign, logMemicAlign) - logMemicAlign
	if m.size == 0 || align > c.align {
		return nil, fmt.Errorf("alignment to 2^%d: %w", r.LogAlign, syscall.EINVAL)
	}
	if d.memicPages == nil {
		d.memicPages = make([]bool, c.pages)
	}
	if m.size > uint64(c.pages)*prm.PageSize {
		return nil, fmt.Errorf("the device has %d: %w", c.max, syscall.ENOMEM)
	}
	for first := d.freeMemic(0, m.Pages()); first >= 0; first = d.freeMemic(first+1, m.Pages()) {
		in, out := prm.NewIn(prm.OpAllocMemic, 0), prm.NewOut(prm.OpAllocMemic, 0)
		req := prm.AllocMemicIn(in)
		req.SetRangeStartAddr(c.start + uint64(first)*prm.PageSize)
		req.SetRangeSize(uint32(m.Pages() * prm.PageSize))
		req.SetMemicSize(uint32(m.size))
		req.SetLogMemicAddrAlignment(align)
		switch err := k.exec(in, out); {
		case verbs.ErrnoOf(err) == syscall.EAGAIN: // not in this range
			continue
		case err != nil:
			return nil, err
		}
		m.addr = prm.AllocMemicOut(out).MemicStartAddr()
		m.PageIndex, m.StartOffset = uint16(first), m.addr&pageMask
		m.Map = &cpu.Mapping{Dev: d.link, Off: m.addr, Kind: cpu.WriteCombining}
		d.markMemic(first, m.Pages(), true)
		return m, nil
	}
	return nil, fmt.Errorf("no room: %w", syscall.ENOMEM)
}

// freeMemic finds n free pages in a row from page first on, -1 when there are none.
func (d *Device) freeMemic(first, n int) int {
	for ; first+n <= len(d.memicPages); first++ {
		free := true
		for _, used := range d.memicPages[first : first+n] {
			free = free && !used
		}
		if free {
			return first
		}
	}
	return -1
}

func (d *Device) markMemic(first, n int, used bool) {
	for i := range n {
		d.memicPages[first+i] = used
	}
}

// FreeDM is DM_FREE: EBUSY while a region is on it.
func (u *Ucontext) FreeDM(c Caller, h Handle) error {
	return u.doDestroy(c, func(k *call) error {
		_, err := destroyObject[*DM](u, k, h, "device memory")
		return err
	})
}

func (m *DM) destroy(k *call) error {
	if m.refs > 0 {
		return fmt.Errorf("%d regions are on it: %w", m.refs, syscall.EBUSY)
	}
	in := prm.NewIn(prm.OpDeallocMemic, 0)
	prm.DeallocMemicIn(in).SetMemicStartAddr(m.addr)
	prm.DeallocMemicIn(in).SetMemicSize(uint32(m.size))
	if err := k.destroy(in); err != nil {
		return err
	}
	m.u.dev.markMemic(int(m.PageIndex), m.Pages(), false)
	return nil
}

// DMMRReq is what DM_MR_REG takes.
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

func (u *Ucontext) regDMMR(k *call, r *DMMRReq) (*mr, error) {
	dm, err := lookup[*DM](u, r.DM, "device memory")
	if err != nil {
		return nil, err
	}
	p, err := lookup[*pd](u, r.PD, "PD")
	if err != nil {
		return nil, err
	}
	if r.Access&verbs.AccessZeroBased == 0 {
		return nil, fmt.Errorf("access %#x: addresses must begin at 0: %w", uint32(r.Access), syscall.EINVAL)
	}
	if err := checkMRAccess(r.Access); err != nil {
		return nil, err
	}
	if r.Offset > dm.length || r.Length > dm.length-r.Offset || r.Access&^dmAccess != 0 {
		return nil, fmt.Errorf("%d bytes at %d of %d, access %#x: %w", r.Length, r.Offset, dm.length, uint32(r.Access), syscall.EINVAL)
	}
	k.work += u.dev.p.RegMRBase
	m := &mr{u: u, pd: p, dm: dm, dmLength: r.Length, access: r.Access}
	in, out := prm.NewIn(prm.OpCreateMKey, 0), prm.NewOut(prm.OpCreateMKey, 0)
	d := u.dev
	d.mkeys++
	ctx := prm.CreateMKeyIn(in).MKC()
	m.fillRights(ctx, d, r.Access)
	ctx.SetAccessMode(prm.MKeyModeMemic)
	ctx.SetMKey70(uint32(d.mkeys))
	ctx.SetStartAddr(dm.addr + r.Offset)
	ctx.SetLen(r.Length)
	if err := k.exec(in, out); err != nil {
		return nil, err
	}
	m.mkey = prm.MKeyOf(prm.CreateMKeyOut(out).MKeyIndex(), uint32(d.mkeys))
	p.refs++
	dm.refs++
	d.res.MR++
	return m, nil
}
