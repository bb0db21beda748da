//go:build linux

package uverbs

import (
	"fmt"
	"math"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
	"github.com/rdmasim/rdmasim/verbs"
)

// regMR is REG_MR.
func (f *File) regMR(w *uapi.Write) error {
	b, err := w.Request(uapi.RegMRSize)
	if err != nil {
		return err
	}
	r := uapi.RegMR(b)
	h, lkey, rkey, err := f.u.RegMR(noCaller, kernelHandle(r.PDHandle()), r.Start(), r.Length(), r.HCAVA(), access(r.AccessFlags()))
	if err != nil {
		if f.OnNoPaging != nil && access(r.AccessFlags())&verbs.AccessOnDemand != 0 {
			f.OnNoPaging()
		}
		return err
	}
	a := uapi.RegMRResp(make([]byte, uapi.RegMRRespSize))
	a.SetMRHandle(uint32(h))
	a.SetLKey(lkey)
	a.SetRKey(rkey)
	return undo(w.Respond(a), func() error { return f.u.DeregMR(noCaller, h) })
}

// reregMR is REREG_MR. An answer that cannot be delivered leaves the region changed, as
// in the kernel.
func (f *File) reregMR(w *uapi.Write) error {
	b, err := w.Request(uapi.ReregMRSize)
	if err != nil {
		return err
	}
	r := uapi.ReregMR(b)
	lkey, rkey, err := f.u.ReregMR(noCaller, kernelHandle(r.MRHandle()), kernel.ReregReq{
		Flags: verbs.ReregFlags(r.Flags()), PD: kernelHandle(r.PDHandle()), Addr: r.Start(), Length: r.Length(), Iova: r.HCAVA(),
		Access: access(r.AccessFlags()),
	})
	if err != nil {
		return err
	}
	a := uapi.ReregMRResp(make([]byte, uapi.ReregMRRespSize))
	a.SetLKey(lkey)
	a.SetRKey(rkey)
	return w.Respond(a)
}

// adviseMR is ADVISE_MR. EINVAL: the list of ranges is not a number of them.
func (f *File) adviseMR(k *uapi.Call) error {
	pd, _ := k.Handle(uapi.MRAdvisePD)
	flags, err := k.Flags32(uapi.MRAdviseFlags, uint32(verbs.AdviseFlush))
	if err != nil {
		return err
	}
	advice := k.Value(uapi.MRAdviseAdvice)
	if advice > math.MaxUint32 {
		return fmt.Errorf("ADVISE_MR: advice %#x: %w", advice, syscall.EOPNOTSUPP)
	}
	n := k.Len(uapi.MRAdviseRanges)
	if n%uapi.SGESize != 0 {
		return fmt.Errorf("ADVISE_MR: %d bytes of ranges, of %d each: %w", n, uapi.SGESize, syscall.EINVAL)
	}
	b, err := k.In(uapi.MRAdviseRanges, n)
	if err != nil {
		return err
	}
	ranges := make([]verbs.SGE, 0, n/uapi.SGESize)
	for ; len(b) > 0; b = b[uapi.SGESize:] {
		s := uapi.SGE(b[:uapi.SGESize])
		ranges = append(ranges, verbs.SGE{Addr: s.Addr(), Length: s.Length(), LKey: s.LKey()})
	}
	return f.u.AdviseMR(noCaller, kernelHandle(pd), verbs.AdviseMRAdvice(advice), verbs.AdviseMRFlags(flags), ranges)
}

// allocMW is ALLOC_MW with mlx5's driver data, which says how many regions a window of
// the kernel's own may lead to.
func (f *File) allocMW(k *uapi.Call, w *uapi.Write) error {
	b, err := w.Request(uapi.AllocMWSize)
	if err != nil {
		return err
	}
	r := uapi.AllocMW(b)
	if b, err = k.InExact(uapi.AttrUHWIn, 0, uapi.MLX5AllocMWSize); err != nil {
		return err
	}
	if d := uapi.MLX5AllocMW(b); d.CompMask() != 0 || d.Reserved1() != 0 || d.Reserved2() != 0 {
		return fmt.Errorf("%s: driver data %x: %w", w.Name, b, syscall.EOPNOTSUPP)
	}
	h, rkey, err := f.u.AllocMW(noCaller, kernelHandle(r.PDHandle()), verbs.MWType(r.MWType()))
	if err != nil {
		return err
	}
	a := uapi.AllocMWResp(make([]byte, uapi.AllocMWRespSize))
	a.SetMWHandle(uint32(h))
	a.SetRKey(rkey)
	return undo(w.Respond(a), func() error { return f.u.DeallocMW(noCaller, h) })
}
