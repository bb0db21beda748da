package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/verbs"
)

// DMReq holds the arguments of DM_ALLOC.
type DMReq struct {
	Length   uint64
	LogAlign uint32
	Type     uint64 // enum mlx5_ib_uapi_dm_type: 0 is MEMIC
}

// DM is allocated device memory.
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
	ops    map[uint8]*dmOp
	freed  bool // by the program, which has operation addresses of it mapped, or exports

	exports []*dmExport
}

// MmapDeviceMem is the mmap command of device memory.
const MmapDeviceMem = 8

// Handle returns the object's handle in its context.
func (m *DM) Handle() Handle { return m.h }

// Pages returns the number of pages of BAR 0 that show the memory.
func (m *DM) Pages() int { return int((m.size + pageMask) / prm.PageSize) }

// BAR returns the offset of its first page in BAR 0.
func (m *DM) BAR() uint64 { return m.addr &^ pageMask }

// AllocDM is DM_ALLOC (mlx5_ib_alloc_dm). EOPNOTSUPP: a device without such memory, an unknown
// type; EPERM: memory for steering without CAP_NET_RAW; EINVAL: length 0, or an alignment that the
// device cannot provide; ENOMEM: no room.
func (u *Ucontext) AllocDM(c Caller, r DMReq) (m *DM, err error) {
	err = u.do(c, func(k *call) error {
		if m, err = u.allocDM(k, &r); err != nil {
			return fmt.Errorf("device memory of %d B: %w", r.Length, err)
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

// FreeDM is DM_FREE. EBUSY: a region still uses it.
func (u *Ucontext) FreeDM(c Caller, h Handle) error {
	return destroyByHandle[deviceMem](u, c, h, "device memory")
}

func (m *DM) destroy(k *call) error {
	if m.refs > 0 {
		return fmt.Errorf("%d regions are on it: %w", m.refs, syscall.EBUSY)
	}
	m.revoke(k)
	if m.freed = !k.closes && m.held(); m.freed {
		m.u.freedDMs = append(m.u.freedDMs, m)
		return nil
	}
	return m.release(k)
}

// held says whether something keeps the memory that the program has freed.
func (m *DM) held() bool { return m.mapped() || len(m.exports) > 0 }

// letGo gives memory back that was freed, and that nothing keeps any more.
func (m *DM) letGo(k *call) error {
	if !m.freed || m.held() {
		return nil
	}
	m.u.freedDMs = slices.DeleteFunc(m.u.freedDMs, func(f *DM) bool { return f == m })
	return m.release(k)
}

// release gives the memory back to the device.
func (m *DM) release(k *call) error {
	m.freed = false
	if err := m.releaseOps(k); err != nil {
		return err
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
