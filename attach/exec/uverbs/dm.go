//go:build linux

package uverbs

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
)

// deviceMemory is what a program has of the device's.
type deviceMemory struct {
	*kernel.DM
	page uint64 // of the file
}

// allocDM is DM_ALLOC with mlx5's attributes.
func (f *File) allocDM(k *uapi.Call) error {
	if t := k.Value(uapi.DMAllocType); t != 0 {
		return f.allocSteering(k, t)
	}
	o, err := f.u.AllocDM(noCaller, kernel.DMReq{
		Length: k.Value(uapi.DMAllocLength), LogAlign: uint32(k.Value(uapi.DMAllocAlignment)), Type: k.Value(uapi.DMAllocType),
	})
	if err != nil {
		return err
	}
	x := &deviceMemory{o, uapi.MmapPage(uapi.MmapDeviceMem, uint32(o.PageIndex))}
	h := uint32(o.Handle())
	if err := f.pages.MapMemory(x.page, x.Pages(), x.BAR()); err != nil {
		return undo(fmt.Errorf("device memory: %w", errors.Join(err, syscall.ENOMEM)), func() error { return f.u.FreeDM(noCaller, o.Handle()) })
	}
	f.memory[h] = x
	err = errors.Join(k.Out64(uapi.DMAllocStartOffset, o.StartOffset), k.Out16(uapi.DMAllocPageIndex, o.PageIndex),
		k.SetNew(uapi.DMAllocHandle, uint64(h)))
	return undo(err, func() error { return f.releaseDM(h) })
}

// allocSteering is DM_ALLOC of memory for flow steering, which no program can map.
func (f *File) allocSteering(k *uapi.Call, typ uint64) error {
	h, addr, err := f.u.AllocSteeringMemory(noCaller, kernel.DMReq{
		Length: k.Value(uapi.DMAllocLength), LogAlign: uint32(k.Value(uapi.DMAllocAlignment)), Type: typ,
	})
	if err != nil {
		return err
	}
	err = errors.Join(k.Out64(uapi.DMAllocStartOffset, addr), k.SetNew(uapi.DMAllocHandle, uint64(h)))
	return undo(err, func() error { return f.u.FreeDM(noCaller, h) })
}

// freeDM is DM_FREE.
func (f *File) freeDM(k *uapi.Call) error {
	h, _ := k.Handle(uapi.DMFreeHandle)
	return f.releaseDM(h)
}

func (f *File) releaseDM(h uint32) error {
	if err := f.u.FreeDM(noCaller, kernelHandle(h)); err != nil {
		return err
	}
	if m, ok := f.memory[h]; ok {
		f.pages.UnmapMemory(m.page)
		delete(f.memory, h)
	}
	return nil
}

// regDM is DM_MR_REG.
func (f *File) regDM(k *uapi.Call) error {
	pd, _ := k.Handle(uapi.DMMRPD)
	dm, _ := k.Handle(uapi.DMMRDM)
	flags, err := k.Flags32(uapi.DMMRAccess, ^uint32(0))
	if err != nil {
		return err
	}
	h, lkey, rkey, err := f.u.RegDMMR(noCaller, kernel.DMMRReq{
		PD: kernelHandle(pd), DM: kernelHandle(dm), Offset: k.Value(uapi.DMMROffset), Length: k.Value(uapi.DMMRLength), Access: access(flags),
	})
	if err != nil {
		return err
	}
	err = errors.Join(k.Out32(uapi.DMMRLKey, lkey), k.Out32(uapi.DMMRRKey, rkey), k.SetNew(uapi.DMMRHandle, uint64(h)))
	return undo(err, func() error { return f.u.DeregMR(noCaller, h) })
}

// queryDM is DM_QUERY, by which a library imports device memory.
func (f *File) queryDM(k *uapi.Call) error {
	h, _ := k.Handle(uapi.DMQueryHandle)
	o, length, err := f.u.QueryDM(noCaller, kernelHandle(h))
	if err != nil {
		return err
	}
	return errors.Join(k.Out64(uapi.DMQueryStartOffset, o.StartOffset), k.Out16(uapi.DMQueryPageIndex, o.PageIndex), k.Out64(uapi.DMQueryLength, length))
}
