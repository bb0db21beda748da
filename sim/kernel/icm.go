package kernel

import (
	"fmt"
	"math/bits"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
)

// steeringCaps are what the device has for flow steering by programs.
type steeringCaps struct {
	sends                  bool // tables of packets that are sent
	reformat               bool
	maxChanges, maxHeaders uint32
	programs               bool // write entries by themselves
	areas                  [steeringAreas]icmCaps
	logUnit                uint32
}

// icmCaps is an area of the device's memory for entries or for header changes.
type icmCaps struct {
	start   uint64
	logSize uint32
}

// steeringAreas is how many areas there are: of types 1 and 2 of enum mlx5_ib_uapi_dm_type.
const steeringAreas = 2

// steers reads them.
func (c *caps) steers(t prm.NICFlowTableCap, m prm.DeviceMemCap) {
	r, s := t.Receive(), t.Transmit()
	c.steering = steeringCaps{
		sends: s.Support(), reformat: r.Reformat() && r.Decap() && s.Reformat() && t.EncapGeneralHeader(),
		maxChanges: min(r.MaxModifyHeaderActions(), s.MaxModifyHeaderActions()), maxHeaders: t.MaxEncapHeaderSize(), programs: r.SWOwner() || s.SWOwner(),
	}
	if m != nil {
		c.steering.areas = [...]icmCaps{{m.SteeringICMStart(), m.LogSteeringICMSize()}, {m.ModifyHeaderICMStart(), m.LogModifyHeaderICMSize()}}
		c.steering.logUnit = m.LogICMGranularity()
	}
}

// icmArea is which parts of an area are taken, in the order of their addresses (mlx5_dm).
type icmArea struct{ taken []*steeringMemory }

// steeringMemory is memory of the device that a program writes entries or header changes to
// (mlx5_ib_dm_icm).
type steeringMemory struct {
	area       int
	addr, size uint64
	length     uint64 // as asked for
	id         uint32 // of the device's object
	refs       int    // regions
}

// find is a free place, as the first of those that an alignment allows.
func (a *icmArea) find(start, end, size, align uint64) (addr uint64, at int, ok bool) {
	addr = (start + align - 1) &^ (align - 1)
	for i, m := range a.taken {
		if addr+size <= m.addr {
			return addr, i, true
		}
		addr = (m.addr + m.size + align - 1) &^ (align - 1)
	}
	return addr, len(a.taken), addr+size <= end
}

// AllocSteeringMemory is DM_ALLOC of types 1 and 2 (handle_alloc_dm_sw_icm). It returns the
// device's address of the memory. EPERM: without CAP_NET_RAW and CAP_SYS_RAWIO; EOPNOTSUPP: a
// device without software steering; EINVAL: length 0; ENOMEM: no room.
func (u *Ucontext) AllocSteeringMemory(c Caller, r DMReq) (h Handle, addr uint64, err error) {
	err = u.do(c, func(k *call) error {
		m, err := u.allocSteering(k, &r)
		if err != nil {
			return fmt.Errorf("memory for steering of %d B: %w", r.Length, err)
		}
		h, addr = u.objs.add(m), m.addr
		return nil
	})
	return h, addr, err
}

func (u *Ucontext) allocSteering(k *call, r *DMReq) (*steeringMemory, error) {
	s := &u.dev.caps.steering
	switch {
	case r.Type == 0 || r.Type > steeringAreas:
		return nil, fmt.Errorf("type %d: %w", r.Type, syscall.EOPNOTSUPP)
	case !u.proc.NetRaw || !u.proc.RawIO:
		return nil, fmt.Errorf("without CAP_NET_RAW and CAP_SYS_RAWIO: %w", syscall.EPERM)
	case !s.programs:
		return nil, fmt.Errorf("the device has none: %w", syscall.EOPNOTSUPP)
	}
	area := s.areas[r.Type-1]
	if r.Length == 0 || r.LogAlign > area.logSize {
		return nil, fmt.Errorf("alignment to 2^%d: %w", r.LogAlign, syscall.EINVAL)
	}
	log := max(uint32(bits.Len64(r.Length-1)), s.logUnit)
	if log > area.logSize {
		return nil, syscall.ENOMEM
	}
	m := &steeringMemory{area: int(r.Type - 1), size: 1 << log, length: r.Length}
	a := &u.dev.icm[m.area]
	addr, at, ok := a.find(area.start, area.start+1<<area.logSize, m.size, 1<<max(r.LogAlign, s.logUnit))
	if !ok {
		return nil, fmt.Errorf("no room: %w", syscall.ENOMEM)
	}
	m.addr = addr
	in, out := prm.NewIn(prm.OpCreateGeneralObject, prm.CreateGeneralObjectOutSize+prm.SWICMSize-prm.CreateGeneralObjectInSize), prm.NewOut(prm.OpCreateGeneralObject, 0)
	o := prm.CreateGeneralObjectIn(in)
	o.SetObjType(prm.ObjTypeSWICM)
	x := prm.SWICM(o.Object()[:prm.SWICMSize])
	x.SetLogSize(log)
	x.SetStartAddr(addr)
	if err := k.exec(in, out); err != nil {
		return nil, err
	}
	m.id = prm.CreateGeneralObjectOut(out).ObjID()
	a.taken = slices.Insert(a.taken, at, m)
	return m, nil
}

func (m *steeringMemory) destroy(k *call) error {
	if m.refs > 0 {
		return fmt.Errorf("%d regions are on it: %w", m.refs, syscall.EBUSY)
	}
	in := prm.NewIn(prm.OpDestroyGeneralObject, 0)
	prm.DestroyGeneralObjectIn(in).SetObjType(prm.ObjTypeSWICM)
	prm.DestroyGeneralObjectIn(in).SetObjID(m.id)
	if err := k.destroy(in); err != nil {
		return err
	}
	a := &k.d.icm[m.area]
	a.taken = slices.DeleteFunc(a.taken, func(x *steeringMemory) bool { return x == m })
	return nil
}
