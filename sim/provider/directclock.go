package provider

import (
	"fmt"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// ClockInfo is mlx5dv_get_clock_info, which reads a page that the driver keeps up to date.
func (c *Context) ClockInfo(vt verbs.Thread) (_ verbs.ClockInfo, err error) {
	t := Of(vt)
	defer t.answers(&err)
	if err := c.noDirect("get_clock_info"); err != nil {
		return verbs.ClockInfo{}, err
	}
	t.P.Sync()
	i, err := c.u.ClockInfo()
	if err != nil {
		return verbs.ClockInfo{}, fmt.Errorf("get_clock_info: %w", err)
	}
	convert := func(ticks uint64) uint64 { return nanoseconds(&i, ticks) }
	if t.breaks(rule.OldTimestampsAreBehind) {
		convert = func(ticks uint64) uint64 { return i.NSec + (ticks-i.Cycles)&i.Mask*uint64(i.Mult)>>i.Shift }
	}
	return verbs.ClockInfo{NSec: i.NSec, LastCycles: i.Cycles, Frac: i.Frac, Mult: i.Mult, Shift: i.Shift, Mask: i.Mask, TSToNS: convert}, nil
}

// nanoseconds is mlx5dv_ts_to_ns: what is more than half of the clock's range ahead of the page is
// taken for older than it.
func nanoseconds(i *kernel.ClockInfo, ticks uint64) uint64 {
	if since := (ticks - i.Cycles) & i.Mask; since <= i.Mask/2 {
		return i.NSec + (since*uint64(i.Mult)+i.Frac)>>i.Shift
	}
	before := (i.Cycles - ticks) & i.Mask
	return i.NSec - (before*uint64(i.Mult)-i.Frac)>>i.Shift
}
