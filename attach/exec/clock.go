//go:build linux && amd64

package exec

import (
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
)

// clockPage is a page of a device file from which programs read the time of its device: the
// clock itself, or the factors that turn its cycles into nanoseconds. The engine brings it
// up to date between events.
type clockPage struct {
	f    *file
	n    uint64 // in the file
	mem  []byte
	info bool
	next sim.Time // when what turns cycles into nanoseconds has to be brought up to date
}

// MapClock implements uverbs.Pages.
func (f *file) MapClock(n uint64, info bool) error {
	b, err := f.mapPages(n, 1)
	if err != nil {
		return err
	}
	c := &clockPage{f: f, n: n, mem: b, info: info}
	f.s.eng.clocks = append(f.s.eng.clocks, c)
	c.show(f.s.eng)
	return nil
}

// UnmapClock implements uverbs.Pages.
func (f *file) UnmapClock(n uint64) {
	e := f.s.eng
	e.clocks = slices.DeleteFunc(e.clocks, func(c *clockPage) bool {
		if c.f == f && c.n == n {
			f.unmapPages(n, c.mem)
			return true
		}
		return false
	})
}

// show stores the present time.
func (c *clockPage) show(e *engine) {
	if c.info {
		if now := e.m.eng.Now(); now >= c.next {
			c.next = now + kernel.ClockInfoPeriod
			c.update(e)
		}
		return
	}
	c.showCycles(e.m.eng.Now())
}

// showCycles stores a time in cycles, both words at once, as the device's register has it.
func (c *clockPage) showCycles(t sim.Time) {
	hi, lo := bits.Mul64(uint64(t), c.f.dev.hca.Params().CoreClockKHz)
	q, _ := bits.Div64(hi, lo, uint64(sim.Millisecond))
	atomic.StoreUint64(c.word(prm.InitSegTimer%pageSize), bits.ReverseBytes64(q))
}

// showBefore shows the time of what the device is about to do: a program that finds a completion
// may read the clock at once, and must not find a time before the completion's.
func (e *engine) showBefore(t sim.Time) {
	if len(e.clocks) == 0 {
		return
	}
	defer e.loseGone()
	for _, c := range e.clocks {
		if !c.info {
			c.showCycles(t)
		}
	}
}

func (c *clockPage) word(off int) *uint64 { return (*uint64)(unsafe.Pointer(&c.mem[off])) }

// cycles is the register of the device's clock, in the order of its bytes.
func (d *device) cycles() uint64 {
	var b [prm.TimerSize]byte
	d.hca.MMIORead(prm.InitSegTimer, b[:])
	return *(*uint64)(unsafe.Pointer(&b[0]))
}

// update writes the page as mlx5_update_clock_info_page does. The time of day is that of
// the session's start and what has passed of virtual time.
func (c *clockPage) update(e *engine) {
	khz := c.f.dev.hca.Params().CoreClockKHz
	mult, shift := kernel.ClockRate(khz)
	sign := (*uint32)(unsafe.Pointer(&c.mem[0]))
	was := atomic.LoadUint32(sign)
	atomic.StoreUint32(sign, was|uapi.ClockInfoUpdating)
	i := uapi.ClockInfo(c.mem)
	cycles := bits.ReverseBytes64(c.f.dev.cycles())
	hi, lo := bits.Mul64(cycles, 1_000_000)
	ns, _ := bits.Div64(hi, lo, khz)
	i.SetNsec(uint64(e.epoch.UnixNano()) + ns)
	i.SetCycles(cycles & kernel.ClockMask)
	i.SetMult(mult)
	i.SetShift(shift)
	i.SetMask(kernel.ClockMask)
	i.SetOverflowPeriod(uint64(kernel.ClockInfoPeriod / sim.Nanosecond))
	atomic.StoreUint32(sign, was+2*uapi.ClockInfoUpdating)
}

// showClocks shows the time to programs that have mapped the clock. While the device is idle
// it goes on at the pace of real time: it may not stand still for a program that waits
// for it.
func (e *engine) showClocks() {
	if len(e.clocks) == 0 {
		return
	}
	defer e.loseGone()
	if e.m.wires != nil {
		e.passTime()
	} else if e.deviceIdle {
		if now := e.pace.Real(); now > e.m.eng.Now() {
			e.pace.Pass(now)
		}
	}
	if now := e.m.eng.Now(); now != e.shownTime {
		e.shownTime = now
		for _, c := range e.clocks {
			c.show(e)
		}
	}
}
