// Package odp2014 is on-demand paging by the names, values and meanings that it had when it was
// proposed, for programs that were written to them: a thin layer over today's calls. Its only
// source is the slides "On Demand Paging update" (OpenFabrics workshop 2014); no public header has
// these names. Comments say what is assumed where the slides leave something open.
package odp2014

import (
	"fmt"
	"math"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// General is the bit of ODPCaps.General: the device pages on demand.
const General = 1

// Bits of the transports in ODPCaps.
const (
	Send uint32 = 1 << iota
	Receive
	Write
	Read
	Atomic

	operations = Send | Receive | Write | Read | Atomic
)

// ODPCaps is what ibv_query_odp_caps fills in: for which operations of a transport the device
// pages.
type ODPCaps struct {
	General    uint64
	RC, UC, UD uint32
}

// QueryODPCaps is ibv_query_odp_caps. Its sizes of structures are those of C and have no place
// here. Bits that came later are left out.
func QueryODPCaps(t verbs.Thread, ctx verbs.Context) (ODPCaps, error) {
	a, err := ctx.QueryDeviceEx(t, 0)
	if err != nil {
		return ODPCaps{}, fmt.Errorf("query_odp_caps: %w", err)
	}
	return ODPCaps{a.ODPGeneralCaps & General, a.ODPRC & operations, a.ODPUC & operations, a.ODPUD & operations}, nil
}

// AccessFlags are the rights of a region. Those up to RemoteAtomic are as today; the others are
// not.
type AccessFlags uint32

// Rights.
const (
	LocalWrite AccessFlags = 1 << iota
	RemoteWrite
	RemoteRead
	RemoteAtomic
	MWBind
	OnDemand
)

// today are the values that rights have now.
var today = []struct {
	then AccessFlags
	now  verbs.AccessFlags
}{
	{LocalWrite, verbs.AccessLocalWrite}, {RemoteWrite, verbs.AccessRemoteWrite}, {RemoteRead, verbs.AccessRemoteRead},
	{RemoteAtomic, verbs.AccessRemoteAtomic}, {MWBind, verbs.AccessMWBind}, {OnDemand, verbs.AccessOnDemand},
}

// Today is the value that the rights have now. EINVAL: bits that were none.
func (a AccessFlags) Today() (now verbs.AccessFlags, err error) {
	rest := a
	for _, x := range today {
		if a&x.then != 0 {
			now |= x.now
			rest &^= x.then
		}
	}
	if rest != 0 {
		return 0, fmt.Errorf("access flags %#x: %#x are not access flags: %w", uint32(a), uint32(rest), syscall.EINVAL)
	}
	return now, nil
}

// RegMR is ibv_reg_mr with the rights of the time.
func RegMR(t verbs.Thread, pd verbs.PD, addr, length uint64, access AccessFlags) (verbs.MR, error) {
	now, err := access.Today()
	if err != nil {
		return nil, fmt.Errorf("reg_mr: %w", err)
	}
	return pd.RegMR(t, addr, length, now)
}

// AddressSpace registers the whole address space for local access: its LKey names any memory of the
// process. EINVAL: the device cannot.
func AddressSpace(t verbs.Thread, pd verbs.PD) (verbs.MR, error) {
	return RegMR(t, pd, 0, math.MaxUint64, LocalWrite|OnDemand)
}

// PrefetchFlags of PrefetchMR.
type PrefetchFlags uint32

// PrefetchWrite brings pages that can be written. Its value is that of
// IBV_EXP_PREFETCH_WRITE_ACCESS of the OFED of the time, as the slides have none.
const PrefetchWrite PrefetchFlags = 1

// maxRange is how much one range of today's call names: its length has 32 bits.
const maxRange = 1 << 30

// PrefetchMR is ibv_prefetch_mr, of a region that was registered on pd: it returns when the pages
// are there. EFAULT: the range exceeds the region, or is not part of the address space. EINVAL:
// flags that there are not. Other errors are those of ibv_advise_mr. That nothing is done of 0
// bytes is assumed.
func PrefetchMR(t verbs.Thread, pd verbs.PD, mr verbs.MR, addr, length uint64, flags PrefetchFlags) error {
	if flags&^PrefetchWrite != 0 {
		return fmt.Errorf("prefetch_mr: flags %#x: %w", uint32(flags), syscall.EINVAL)
	}
	off := addr - mr.Addr()
	if addr < mr.Addr() || off > mr.Length() || length > mr.Length()-off {
		return fmt.Errorf("prefetch_mr: [%#x, +%#x) exceeds the region [%#x, +%#x): %w", addr, length, mr.Addr(), mr.Length(), syscall.EFAULT)
	}
	advice := verbs.AdvisePrefetch
	if flags&PrefetchWrite != 0 {
		advice = verbs.AdvisePrefetchWrite
	}
	for length > 0 {
		n := min(length, maxRange)
		if err := pd.AdviseMR(t, advice, verbs.AdviseFlush, []verbs.SGE{{Addr: addr, Length: uint32(n), LKey: mr.LKey()}}); err != nil {
			return fmt.Errorf("prefetch_mr: %w", err)
		}
		addr, length = addr+n, length-n
	}
	return nil
}
