package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/cpu"
)

// UARObject is a dynamically allocated UAR.
type UARObject struct {
	PageID  uint32
	Map     *cpu.Mapping
	MmapOff uint64 // file offset that mmap takes
	MmapLen uint64

	u *Ucontext
	h Handle
}

// Handle returns the object's handle in its context.
func (o *UARObject) Handle() Handle { return o.h }

// Types of AllocUAR (MLX5_IB_UAPI_UAR_ALLOC_TYPE_*).
const (
	UARTypeBF = 0
	UARTypeNC = 1
)

// AllocUAR is MLX5_IB_METHOD_UAR_OBJ_ALLOC. EOPNOTSUPP: an unknown type, BlueFlame on a
// device without it, a kernel of the static generation; ENOMEM: no offset for mmap is free.
func (u *Ucontext) AllocUAR(c Caller, typ uint32) (o *UARObject, err error) {
	err = u.do(c, func(k *call) error {
		if u.dev.p.Generation == Static {
			return fmt.Errorf("UAR objects are not known to this kernel: %w", syscall.EOPNOTSUPP)
		}
		if typ > UARTypeNC || typ == UARTypeBF && u.dev.caps.bfRegSize == 0 {
			return fmt.Errorf("UAR of type %d: %w", typ, syscall.EOPNOTSUPP)
		}
		page, err := u.mmapPages.take()
		if err != nil {
			return err
		}
		uar, err := k.allocUAR()
		if err != nil {
			u.mmapPages.give(page)
			return err
		}
		kind := cpu.WriteCombining
		if typ == UARTypeNC {
			kind = cpu.Uncached
		}
		size := uint64(u.dev.p.PageSize)
		o = &UARObject{PageID: uar, Map: u.dev.mapUAR(uar, kind), MmapOff: page * size, MmapLen: size, u: u}
		o.h = u.objs.add(o)
		u.maps = append(u.maps, o.Map)
		u.dev.res.UAR++
		return nil
	})
	return o, err
}

// FreeUAR is the destroy method of a UAR object. As in the driver, freeing a UAR that a queue still
// uses is not an error: the UAR ends with the context. EIO: the device was removed; the method
// belongs to the driver, which is gone then.
func (u *Ucontext) FreeUAR(c Caller, o *UARObject) error {
	return u.do(c, func(k *call) error {
		if o == nil || o.u != u {
			return fmt.Errorf("UAR object of another context: %w", syscall.EINVAL)
		}
		_, err := destroyObject[*UARObject](&u.objs, k, o.h, "UAR object")
		return err
	})
}

func (o *UARObject) destroy(k *call) error {
	o.u.maps = slices.DeleteFunc(o.u.maps, func(m *cpu.Mapping) bool { return m == o.Map })
	o.u.mmapPages.give(o.MmapOff / uint64(o.u.dev.p.PageSize))
	if err := k.freeUAR(o.PageID); err != nil {
		o.u.orphans = append(o.u.orphans, o.PageID)
		return nil
	}
	o.u.dev.res.UAR--
	return nil
}
