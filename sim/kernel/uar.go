package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/prm/bfreg"
	"github.com/rdmasim/rdmasim/sim/cpu"
)

// Commands of MmapUAR (Linux include/uapi/rdma/mlx5-abi.h and uar_mmap in
// drivers/infiniband/hw/mlx5/main.c).
const (
	MmapRegular = 0 // static UAR, write-combining
	MmapWC      = 2 // static UAR, write-combining or EPERM
	MmapNC      = 3 // static UAR, uncached
	MmapClock   = 5 // the page of the free-running clock
	MmapAllocWC = 6 // dynamic UAR of an index, write-combining
)

// mmapFirstEntry is the page offset of the first object that is mapped by an offset
// which the kernel hands out: command 9, argument 0.
const mmapFirstEntry = 9 << 8

func (k *call) allocUAR() (uint32, error) {
	out, err := k.simple(prm.OpAllocUAR, 0)
	if err != nil {
		return 0, err
	}
	return prm.AllocUAROut(out).UAR(), nil
}

func (k *call) freeUAR(uar uint32) error {
	in := prm.NewIn(prm.OpDeallocUAR, 0)
	prm.DeallocUARIn(in).SetUAR(uar)
	return k.destroy(in)
}

// mustDestroy is destroy for what nothing can refer to any more.
func (k *call) mustDestroy(in []byte) {
	if err := k.destroy(in); err != nil {
		panic(fmt.Sprintf("kernel: %v: %s: %v", k.d.eng.Now(), k.d.name, err))
	}
}

// mapUAR is a mapping of a UAR page.
func (d *Device) mapUAR(uar uint32, kind cpu.MapKind) *cpu.Mapping {
	return &cpu.Mapping{Dev: d.link, Off: uint64(uar) * prm.UARPageSize, Kind: kind}
}

// MmapUAR is mmap of command cmd with its argument. EINVAL: a library of the dynamic
// generation, an index outside the table, a dynamic page that is mapped already, an
// unknown command. EPERM: write-combining asked for and not available. ENOSYS for the
// contiguous pages of old (command 1).
func (u *Ucontext) MmapUAR(c Caller, cmd, arg uint32) (m *cpu.Mapping, err error) {
	err = u.do(c, func(k *call) error {
		m, err = u.mmapUAR(k, cmd, arg)
		if err != nil {
			return fmt.Errorf("mmap of UAR, command %d, index %d: %w", cmd, arg, err)
		}
		u.maps = append(u.maps, m)
		return nil
	})
	return m, err
}

func (u *Ucontext) mmapUAR(k *call, cmd, arg uint32) (*cpu.Mapping, error) {
	kind := cpu.WriteCombining
	switch cmd {
	case MmapWC, MmapAllocWC:
		if u.dev.caps.bfRegSize == 0 {
			return nil, fmt.Errorf("no write-combining: %w", syscall.EPERM)
		}
	case MmapRegular:
	case MmapNC, MmapClock:
		kind = cpu.Uncached
	case 1:
		return nil, syscall.ENOSYS
	default:
		return nil, fmt.Errorf("unknown command: %w", syscall.EINVAL)
	}
	if cmd == MmapClock {
		if arg != 0 {
			return nil, fmt.Errorf("the clock has one page: %w", syscall.EINVAL)
		}
		return &cpu.Mapping{Dev: u.dev.link, Off: prm.InitSegTimer, Kind: cpu.Uncached}, nil
	}
	if u.dynUAR {
		return nil, fmt.Errorf("the context has no bfreg table: %w", syscall.EINVAL)
	}
	if cmd == MmapAllocWC {
		return u.mmapDynamic(k, arg)
	}
	if arg >= u.bfregs.StaticSysPages {
		return nil, fmt.Errorf("%d static pages: %w", u.bfregs.StaticSysPages, syscall.EINVAL)
	}
	return u.dev.mapUAR(u.bfregs.Page(arg), kind), nil
}

// mmapDynamic allocates the UAR of a dynamic slot and maps it.
func (u *Ucontext) mmapDynamic(k *call, index uint32) (*cpu.Mapping, error) {
	slot, err := u.bfregs.ReserveDynPage(index)
	if err != nil {
		return nil, err
	}
	uar, err := k.allocUAR()
	if err != nil {
		u.bfregs.ReleaseDynPage(slot)
		return nil, err
	}
	u.bfregs.SetPage(slot, uar)
	u.dev.res.UAR++
	return u.dev.mapUAR(uar, cpu.WriteCombining), nil
}

// freeUARs gives back every UAR of the context's table and those that could not be
// freed while something used them.
func (u *Ucontext) freeUARs(k *call) {
	free := func(uar uint32) {
		u.dev.res.UAR--
		if err := k.freeUAR(uar); err != nil {
			// A queue of another context rings there: programs may name any UAR. The
			// driver warns and leaves it allocated.
			u.dev.count.LeakedUARs++
		}
	}
	if u.bfregs != nil {
		for i := range u.bfregs.SysPages {
			if uar := u.bfregs.Page(i); uar != bfreg.InvalidUAR {
				free(uar)
			}
		}
		u.bfregs = nil
	}
	for _, uar := range u.orphans {
		free(uar)
	}
	u.orphans = nil
}

// UARObject is a UAR of the dynamic generation.
type UARObject struct {
	PageID  uint32
	Map     *cpu.Mapping
	MmapOff uint64 // file offset that mmap takes
	MmapLen uint64

	u *Ucontext
	h Handle
}

// Handle names the object among those of its context.
func (o *UARObject) Handle() Handle { return o.h }

// Types of AllocUAR (MLX5_IB_UAPI_UAR_ALLOC_TYPE_*).
const (
	UARTypeBF = 0
	UARTypeNC = 1
)

// AllocUAR is MLX5_IB_METHOD_UAR_OBJ_ALLOC. EOPNOTSUPP: an unknown type, BlueFlame on a
// device without it, a kernel of the static generation.
func (u *Ucontext) AllocUAR(c Caller, typ uint32) (o *UARObject, err error) {
	err = u.do(c, func(k *call) error {
		if u.dev.p.Generation == Static {
			return fmt.Errorf("UAR objects are not known to this kernel: %w", syscall.EOPNOTSUPP)
		}
		if typ > UARTypeNC || typ == UARTypeBF && u.dev.caps.bfRegSize == 0 {
			return fmt.Errorf("UAR of type %d: %w", typ, syscall.EOPNOTSUPP)
		}
		uar, err := k.allocUAR()
		if err != nil {
			return err
		}
		kind := cpu.WriteCombining
		if typ == UARTypeNC {
			kind = cpu.Uncached
		}
		size := uint64(u.dev.p.PageSize)
		o = &UARObject{PageID: uar, Map: u.dev.mapUAR(uar, kind), MmapOff: u.mmapNext * size, MmapLen: size, u: u}
		u.mmapNext++
		o.h = u.objs.add(o)
		u.maps = append(u.maps, o.Map)
		u.dev.res.UAR++
		return nil
	})
	return o, err
}

// FreeUAR is the destroy method of a UAR object. As in the driver, a UAR that a queue
// still uses is not an error: it goes when the context does. EIO when the device was
// removed: this destroy is a method of the driver, which has gone with it.
func (u *Ucontext) FreeUAR(c Caller, o *UARObject) error {
	return u.do(c, func(k *call) error {
		if o == nil || o.u != u {
			return fmt.Errorf("UAR object of another context: %w", syscall.EINVAL)
		}
		_, err := destroyObject[*UARObject](u, k, o.h, "UAR object")
		return err
	})
}

func (o *UARObject) destroy(k *call) error {
	o.u.maps = slices.DeleteFunc(o.u.maps, func(m *cpu.Mapping) bool { return m == o.Map })
	if err := k.freeUAR(o.PageID); err != nil {
		o.u.orphans = append(o.u.orphans, o.PageID)
		return nil
	}
	o.u.dev.res.UAR--
	return nil
}
