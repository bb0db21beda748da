package kernel

import (
	"math/bits"

	"github.com/rdmasim/rdmasim/sim"
)

// ClockInfoPeriod is the longest time between two updates of the page that converts cycles of a
// device's clock into nanoseconds: libraries multiply the cycles since the last update, and the
// product must fit into 64 bits.
const ClockInfoPeriod = sim.Second

// ClockMask is the driver's mask of the clock, CLOCKSOURCE_MASK(41) (mlx5_timecounter_init).
const ClockMask = 1<<41 - 1

// ClockRate returns the factors that convert cycles of a clock of khz kHz into nanoseconds: cycles
// * mult >> shift (mlx5_ptp_shift_constant, clocksource_khz2mult).
func ClockRate(khz uint64) (mult, shift uint32) {
	const million = 1_000_000
	shift = min(uint32(bits.Len64(khz))-1+16, uint32(bits.Len64((1<<32-1)/million*khz))-1)
	return uint32((million<<shift + khz/2) / khz), shift
}

// ClockInfo is the page of MLX5_IB_MMAP_CLOCK_INFO (struct mlx5_ib_clock_info) without its sign.
type ClockInfo struct {
	NSec, Cycles, Frac uint64
	Mult, Shift        uint32
	Mask               uint64
	OverflowPeriod     uint64 // ns
}

// ClockInfo returns the page as the driver last wrote it: every ClockInfoPeriod since the start.
// The time of day is that of the simulation, which begins at 0.
func (u *Ucontext) ClockInfo() (ClockInfo, error) {
	if err := u.usable(); err != nil {
		return ClockInfo{}, err
	}
	khz := u.dev.caps.clockKHz
	at := u.dev.eng.Now() / ClockInfoPeriod * ClockInfoPeriod
	i := ClockInfo{NSec: uint64(at / sim.Nanosecond), Mask: ClockMask, OverflowPeriod: uint64(ClockInfoPeriod / sim.Nanosecond)}
	hi, lo := bits.Mul64(uint64(at), khz)
	cycles, _ := bits.Div64(hi, lo, uint64(sim.Millisecond))
	i.Cycles = cycles & ClockMask
	i.Mult, i.Shift = ClockRate(khz)
	return i, nil
}
