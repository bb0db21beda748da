//go:build linux

package uverbs

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
)

// pageSize is that of the host and of its UAR pages.
const pageSize = 4096

// inlineNone is MLX5_USER_INLINE_MODE_NONE: libraries need not put headers inline.
const inlineNone = 1

// getContext is GET_CONTEXT with mlx5's driver data.
func (f *File) getContext(k *uapi.Call) error {
	if f.u != nil {
		return fmt.Errorf("GET_CONTEXT twice: %w", syscall.EINVAL)
	}
	req, err := f.uctxReq(k)
	if err != nil {
		return err
	}
	u, resp, err := f.dev.AllocUcontext(noCaller, f.proc, req)
	if err != nil {
		return err
	}
	f.u, f.resp = u, resp
	err = f.mapStatic(resp.TotBFRegs)
	if err == nil {
		err = errors.Join(
			k.Out32(uapi.GetContextVec, uint32(u.NumCompVectors())),
			k.Out64(uapi.GetContextSup, uapi.CoreSupportOptionalAccess),
			k.Out(uapi.AttrUHWOut, uctxResp(&resp, k.Len(uapi.AttrUHWOut))))
	}
	if err != nil {
		u.Close(noCaller)
		f.u = nil
		f.unmapAll()
	}
	return err
}

// queryContext is QUERY_CONTEXT, by which a library opens the file once more: what GET_CONTEXT has
// answered.
func (f *File) queryContext(k *uapi.Call) error {
	return errors.Join(
		k.Out32(uapi.QueryContextVec, uint32(f.u.NumCompVectors())),
		k.Out64(uapi.QueryContextSup, uapi.CoreSupportOptionalAccess),
		k.Out(uapi.QueryContextResp, uctxResp(&f.resp, k.Len(uapi.QueryContextResp))))
}

// queryPD is PD_QUERY, by which a library imports a PD.
func (f *File) queryPD(k *uapi.Call) error {
	h, _ := k.Handle(uapi.PDQueryHandle)
	pdn, err := f.u.QueryPD(noCaller, kernelHandle(h))
	if err != nil {
		return err
	}
	return k.Out32(uapi.PDQueryPDN, pdn)
}

// queryMR is QUERY_MR, by which a library imports a region.
func (f *File) queryMR(k *uapi.Call) error {
	h, _ := k.Handle(uapi.MRQueryHandle)
	lkey, rkey, length, iova, err := f.u.QueryMR(noCaller, kernelHandle(h))
	if err != nil {
		return err
	}
	return errors.Join(k.Out32(uapi.MRQueryLKey, lkey), k.Out32(uapi.MRQueryRKey, rkey), k.Out64(uapi.MRQueryLength, length), k.Out64(uapi.MRQueryIOVA, iova))
}

// uctxReq reads the driver's request: the long one, or the first version, which ends
// after the numbers of bfregs (mlx5_ib_alloc_ucontext).
func (f *File) uctxReq(k *uapi.Call) (kernel.UcontextReq, error) {
	n := k.Len(uapi.AttrUHWIn)
	v1 := n == uapi.UctxReqV1Size
	if !v1 && n < 16 { // the least of the second version: up to comp_mask
		return kernel.UcontextReq{}, fmt.Errorf("GET_CONTEXT with %d bytes of driver data: %w", n, syscall.EINVAL)
	}
	b, err := k.InExact(uapi.AttrUHWIn, 0, uapi.AllocUcontextReqSize)
	if err != nil {
		return kernel.UcontextReq{}, err
	}
	r := uapi.AllocUcontextReq(b)
	req := kernel.UcontextReq{TotalBFRegs: r.TotalBFRegs(), LowLatBFRegs: r.LowLatBFRegs(), V1: v1}
	if !v1 {
		req.Flags, req.CompMask, req.MaxCQEVersion, req.LibCaps = r.Flags(), r.CompMask(), r.MaxCQEVersion(), r.LibCaps()
	}
	if !f.DynamicUARs {
		req.LibCaps &^= kernel.LibCapDynUAR
	}
	return req, nil
}

// uctxResp is set_ucontext_resp; room is what the library has for it.
func uctxResp(r *kernel.UcontextResp, room int) []byte {
	a := uapi.AllocUcontextResp(make([]byte, uapi.AllocUcontextRespSize))
	a.SetQPTabSize(r.QPTabSize)
	a.SetBFRegSize(r.BFRegSize)
	a.SetTotBFRegs(r.TotBFRegs)
	a.SetCacheLineSize(r.CacheLine)
	a.SetMaxSQDescSz(uint16(r.MaxSQDescSz))
	a.SetMaxRQDescSz(uint16(r.MaxRQDescSz))
	a.SetMaxSendWQEBB(r.MaxSendWQEBB)
	a.SetMaxRecvWR(r.MaxRecvWR)
	a.SetMaxSRQRecvWR(r.MaxSRQRecvWR)
	a.SetNumPorts(r.NumPorts)
	a.SetResponseLength(uint32(min(room, len(a))))
	a.SetCQEVersion(r.CQEVersion)
	a.SetCmdsSuppUHW(uapi.SuppUHWQueryDevice | uapi.SuppUHWCreateAH)
	a.SetCompMask(uapi.UctxRespCoreClock)
	if r.DumpFill {
		a.SetCompMask(uapi.UctxRespCoreClock | uapi.UctxRespDumpFill)
		a.SetDumpFillMKey(r.DumpFillMKey)
	}
	a.SetClockInfoVersions(1 << uapi.ClockInfoV1)
	a.SetHCACoreClockOffset(prm.InitSegTimer % pageSize)
	a.SetEthMinInline(inlineNone)
	a.SetLogUARSize(r.LogUARSize)
	a.SetNumUARsPerPage(r.NumUARsPerPage)
	a.SetNumDynBFRegs(r.NumDynBFRegs)
	return a
}

// mapStatic makes the pages of the static table appear in the file, by each of the
// three commands that map one.
func (f *File) mapStatic(bfregs uint32) error {
	for i := uint32(0); bfregs > 0; i++ {
		m, err := f.u.MmapUAR(noCaller, kernel.MmapRegular, i)
		if err != nil {
			return nil // past the end
		}
		f.static = append(f.static, m)
		for _, cmd := range [...]uint32{uapi.MmapRegular, uapi.MmapWC, uapi.MmapNC} {
			m, err := f.u.MmapUAR(noCaller, cmd, i)
			if err != nil {
				continue // write-combining that is not available
			}
			if err := f.pages.MapUAR(uapi.MmapPage(cmd, i), m); err != nil {
				return fmt.Errorf("UAR page %d: %w", i, errors.Join(err, syscall.ENOMEM))
			}
		}
	}
	return nil
}

// unmapAll takes every register page out of the file.
func (f *File) unmapAll() {
	for i := range f.static {
		for _, cmd := range [...]uint32{uapi.MmapRegular, uapi.MmapWC, uapi.MmapNC} {
			f.pages.UnmapUAR(uapi.MmapPage(cmd, uint32(i)))
		}
	}
	for i := range f.dyn {
		f.pages.UnmapUAR(uapi.MmapPage(uapi.MmapAllocWC, i))
	}
	for _, o := range f.objects {
		f.pages.UnmapUAR(o.page)
	}
	for page := range f.clocks {
		f.pages.UnmapClock(page)
	}
	for _, m := range f.memory {
		f.pages.UnmapMemory(m.page)
	}
	clear(f.memory)
	clear(f.clocks)
	f.static = nil
	clear(f.dyn)
	clear(f.objects)
}

// Mmap prepares a page of the file for being mapped, and says 0 or the errno of the
// program's mmap. A session that does not see mmap calls need not call it: dynamic
// pages are made, at the latest, for the queue that names one.
func (f *File) Mmap(page uint64) syscall.Errno {
	cmd, arg := uapi.MmapCommand(page)
	if f.u == nil || uapi.MmapPage(cmd, arg) != page {
		return syscall.EINVAL
	}
	switch cmd {
	case uapi.MmapRegular, uapi.MmapWC, uapi.MmapNC:
		if arg >= uint32(len(f.static)) {
			return syscall.EINVAL
		}
		return 0
	case uapi.MmapCoreClock:
		if arg != 0 {
			return syscall.EINVAL
		}
		return errnoOf(f.mapClock(page, false))
	case uapi.MmapClockInfo:
		if arg != uapi.ClockInfoV1 {
			return syscall.EOPNOTSUPP
		}
		return errnoOf(f.mapClock(page, true))
	case uapi.MmapAllocWC:
		if _, err := f.dynamic(arg); err != nil {
			return errnoOf(err)
		}
		return 0
	}
	for _, o := range f.objects {
		if o.page == page {
			return 0
		}
	}
	for _, m := range f.memory {
		if m.page == page {
			return 0
		}
	}
	return syscall.EINVAL
}

// mapClock makes a page about the device's clock appear.
func (f *File) mapClock(page uint64, info bool) error {
	if f.clocks[page] {
		return nil
	}
	if err := f.pages.MapClock(page, info); err != nil {
		return fmt.Errorf("clock page: %w", errors.Join(err, syscall.ENOMEM))
	}
	f.clocks[page] = true
	return nil
}

// dynamic is page i of the dynamic part of the table, allocated when it is first
// asked for.
func (f *File) dynamic(i uint32) (*cpu.Mapping, error) {
	if m := f.dyn[i]; m != nil {
		return m, nil
	}
	m, err := f.u.MmapUAR(noCaller, kernel.MmapAllocWC, i)
	if err != nil {
		return nil, err
	}
	if err := f.pages.MapUAR(uapi.MmapPage(uapi.MmapAllocWC, i), m); err != nil {
		return nil, fmt.Errorf("dynamic UAR page %d: %w", i, errors.Join(err, syscall.ENOMEM))
	}
	f.dyn[i] = m
	return m, nil
}

// uarObject is a UAR that the library has asked for.
type uarObject struct {
	*kernel.UARObject
	page uint64 // of the file
}

// allocUAR is UAR_OBJ_ALLOC.
func (f *File) allocUAR(k *uapi.Call) error {
	if !f.DynamicUARs {
		return fmt.Errorf("UAR objects are not offered: %w", syscall.EOPNOTSUPP)
	}
	typ := k.Value(uapi.UARAllocType)
	if typ > kernel.UARTypeNC {
		return fmt.Errorf("UAR of type %d: %w", typ, syscall.EOPNOTSUPP)
	}
	o, err := f.u.AllocUAR(noCaller, uint32(typ))
	if err != nil {
		return err
	}
	x := &uarObject{o, o.MmapOff / pageSize}
	h := uint32(o.Handle())
	if err := f.pages.MapUAR(x.page, o.Map); err != nil {
		return undo(fmt.Errorf("UAR object: %w", errors.Join(err, syscall.ENOMEM)), func() error { return f.u.FreeUAR(noCaller, o) })
	}
	f.objects[h] = x
	err = errors.Join(k.Out64(uapi.UARAllocOffset, o.MmapOff), k.Out32(uapi.UARAllocPageID, o.PageID),
		k.Out32(uapi.UARAllocLength, uint32(o.MmapLen)), k.SetNew(uapi.UARAllocHandle, uint64(h)))
	return undo(err, func() error { return f.freeUAR(h) })
}

// destroyUAR is UAR_OBJ_DESTROY.
func (f *File) destroyUAR(k *uapi.Call) error {
	h, _ := k.Handle(uapi.UARDestroyHandle)
	return f.freeUAR(h)
}

func (f *File) freeUAR(h uint32) error {
	o := f.objects[h]
	if o == nil {
		return fmt.Errorf("UAR object %d: %w", h, syscall.ENOENT)
	}
	if err := f.u.FreeUAR(noCaller, o.UARObject); err != nil {
		return err
	}
	f.pages.UnmapUAR(o.page)
	delete(f.objects, h)
	return nil
}
