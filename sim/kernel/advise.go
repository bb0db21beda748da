package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// prefetch is a range that is to be made present, under a region.
type prefetch struct {
	mr    *mr
	va, n uint64
}

// AdviseMR is ADVISE_MR. With AdviseFlush it returns when the pages of each range are present;
// ranges are handled in order, and the first error ends the call. Without the flag keys are checked
// at the call and nothing is done if one is refused; a thread of the kernel does the rest, and its
// errors are lost. EOPNOTSUPP: the device has no paging, or the kernel has no prefetch or does not
// know the advice. EINVAL: unknown flags, no ranges, a range without pages. EFAULT: outside the
// region, or not mapped. EPERM: read-only pages that are to be written. The errno of a refused key
// depends on the kernel.
func (u *Ucontext) AdviseMR(c Caller, h Handle, advice verbs.AdviseMRAdvice, flags verbs.AdviseMRFlags, ranges []verbs.SGE) error {
	return u.do(c, func(k *call) error {
		if err := k.adviseMR(u, h, advice, flags, ranges); err != nil {
			return fmt.Errorf("advise memory region: %w", err)
		}
		return nil
	})
}

func (k *call) adviseMR(u *Ucontext, h Handle, advice verbs.AdviseMRAdvice, flags verbs.AdviseMRFlags, ranges []verbs.SGE) error {
	p, err := lookup[*pd](&u.objs, h, "PD")
	era := k.d.p.Paging
	switch {
	case err != nil:
		return err
	case len(ranges) == 0:
		return fmt.Errorf("no ranges: %w", syscall.EINVAL)
	case !k.d.caps.odp.support || k.d.p.Generation == Static:
		return fmt.Errorf("there is no prefetch: %w", syscall.EOPNOTSUPP)
	case flags&^verbs.AdviseFlush != 0:
		return fmt.Errorf("flags %#x: %w", uint32(flags), syscall.EINVAL)
	case advice > verbs.AdvisePrefetchNoFault || advice == verbs.AdvisePrefetchNoFault && era == Paging5_0:
		return fmt.Errorf("advice %d: %w", advice, syscall.EOPNOTSUPP)
	}
	flush := flags&verbs.AdviseFlush != 0 || k.d.breaks(rule.PrefetchIsBestEffort)
	var all []prefetch
	for _, s := range ranges {
		m, err := k.prefetchable(p, advice, s.LKey)
		if err != nil {
			err = era.keyError(err, flush)
		}
		switch {
		case err != nil:
			return err
		case m == nil: // the first kernels said nothing of it
			continue
		case !flush:
			all = append(all, prefetch{m, s.Addr, uint64(s.Length)})
			continue
		}
		if err := k.flush(prefetch{m, s.Addr, uint64(s.Length)}, advice); err != nil {
			return err
		}
	}
	if flush {
		k.d.count.Paging.PrefetchesHandled++
		return nil
	}
	k.prefetchLater(all, advice)
	return nil
}

// flush makes a range present before the call goes on.
func (k *call) flush(x prefetch, advice verbs.AdviseMRAdvice) error {
	defer x.mr.paging.holds.take(k.d)()
	k.base = k.d.p.PageFault
	err := k.prefetch(x, advice)
	if err == errAgain || k.d.breaks(rule.AwaitedPrefetchReportsItsError) {
		return nil
	}
	return err
}

// prefetchLater hands ranges to a thread of the kernel.
func (k *call) prefetchLater(all []prefetch, advice verbs.AdviseMRAdvice) {
	release := make([]func(), len(all))
	for i, x := range all {
		release[i] = x.mr.paging.holds.take(k.d)
	}
	k.d.odp.later.add(func(k *call) {
		defer func() {
			for _, f := range release {
				f()
			}
		}()
		k.base = k.d.p.PageFault
		for _, x := range all {
			_ = k.prefetch(x, advice)
		}
		k.d.count.Paging.PrefetchesHandled++
	})
}

// prefetch makes a range present, as far as the advice asks for it.
func (k *call) prefetch(x prefetch, advice verbs.AdviseMRAdvice) error {
	var how pageFlags
	switch d := k.d; {
	case advice == verbs.AdvisePrefetch, d.breaks(rule.PrefetchForWritingNeedsWritableMemory):
		how = pagesReadOnly
	case advice == verbs.AdvisePrefetchNoFault && !d.breaks(rule.PrefetchMayBringNothing):
		how = pagesSnapshot
	}
	if k.d.breaks(rule.PrefetchBringsPages) {
		how = pagesSnapshot
	}
	n, err := k.faultRegion(x.mr, x.va, x.n, how, false)
	if err != nil {
		return err
	}
	if k.d.breaks(rule.PrefetchesCountTheirPages) {
		n++
	}
	x.mr.paging.stats.Prefetch += n
	k.d.count.Paging.PrefetchPages += n
	return nil
}

// keyRefusal is why a key cannot be prefetched.
type keyRefusal uint8

const (
	keyUnknown keyRefusal = iota
	keyPinned
	keyOfMW
	keyOfOtherPD
	keyNotWritable
)

var keyRefusals = [...]string{"no such key", "a region whose memory is pinned", "a memory window", "a region of another PD", "a region that is not writable"}

func (r keyRefusal) Error() string { return keyRefusals[r] }

// prefetchable finds the region of a key (get_prefetchable_mr). The error is a keyRefusal.
func (k *call) prefetchable(p *pd, advice verbs.AdviseMRAdvice, key uint32) (*mr, error) {
	x := k.d.odp.keys[key>>8]
	switch {
	case x == nil && k.d.isPinned(key):
		return nil, keyPinned
	case x == nil || x.key != key && !k.d.breaks(rule.PrefetchNamesItsKey):
		return nil, keyUnknown
	case x.kind != keyOfRegion:
		return nil, keyOfMW
	case x.mr.pd != p && !k.d.breaks(rule.PrefetchIsOfThePD):
		return nil, keyOfOtherPD
	case advice == verbs.AdvisePrefetchWrite && !x.mr.odp.writable && !k.d.breaks(rule.PrefetchForWritingNeedsTheRight):
		return nil, keyNotWritable
	}
	return x.mr, nil
}

// isPinned says whether a key is of a region whose memory is pinned.
func (d *Device) isPinned(key uint32) bool {
	for _, f := range d.files {
		if u, ok := f.(*Ucontext); ok && u.objs.any(func(x object) bool {
			m, ok := x.(*mr)
			return ok && m.odp == nil && m.mkey == key
		}) {
			return true
		}
	}
	return false
}

// keyError is what a kernel answers for a key that it refuses; nil where it says nothing and does
// nothing.
func (e PagingEra) keyError(err error, flush bool) error {
	r, ok := err.(keyRefusal)
	if !ok {
		return err
	}
	var errno syscall.Errno
	switch e {
	case Paging5_0:
		switch {
		case r == keyUnknown && flush:
			errno = syscall.EFAULT
		case (r == keyPinned || r == keyNotWritable) && !flush:
			return nil
		default:
			errno = syscall.EINVAL
		}
	case Paging5_5:
		if errno = syscall.EINVAL; flush {
			errno = syscall.ENOENT
		}
	default:
		errno = [...]syscall.Errno{syscall.ENOENT, syscall.ENOENT, syscall.EINVAL, syscall.EPERM, syscall.EPERM}[r]
	}
	return fmt.Errorf("%w: %w", r, errno)
}
