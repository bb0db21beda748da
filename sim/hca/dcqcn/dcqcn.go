// Package dcqcn is the arithmetic of DCQCN (Zhu et al., SIGCOMM 2015): its parameters, and the
// rate at which the reaction point of a QP lets it send. When events are, and what a packet
// is, the device says (sim/hca).
package dcqcn

import (
	"errors"
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
)

// Scope is what a notification point counts the time between two CNPs by.
type Scope uint8

// Scopes that Lumina (SIGCOMM 2023, section 6.3) distinguishes.
const (
	PerPort Scope = iota
	PerDestination
	PerQP
)

// Params are those of the notification point, which answers marked packets by CNPs, and of the
// reaction point, which slows a QP down. Names are those of mlx5's debugfs (cc_params), units too.
type Params struct {
	DCQCN                 bool     // both points; RoCEv2 packets of RC and UC carry ECT(0)
	MinTimeBetweenCNPs    sim.Time // of one scope
	CNPScope              Scope
	CNPDSCP               uint8
	ClampTgtRate          bool     // each cut makes the rate before it the target
	ClampAfterTimeInc     bool     // one after the timer has raised the rate does
	RPGTimeReset          sim.Time // between two raises by the timer
	RPGByteReset          uint64   // bytes between two raises by the byte counter
	RPGThreshold          uint32   // raises of a kind that only recover
	RPGMaxRate            uint64   // bit/s; 0: the port's
	RPGMinRate            uint64   // bit/s
	RPGAIRate, RPGHAIRate uint64   // bit/s that the target rises by
	RPGGd                 uint8    // a cut takes alpha / 2^gd of the rate; alpha has 10 bits
	RPGMinDecFac          uint8    // percent of the rate that a cut leaves at least
	RateOnFirstCNP        uint64   // bit/s after the first cut; 0: as any other
	DCETCPG               uint16   // 1024ths of alpha that stay in each period
	DCETCPRTT             sim.Time // that period
	RateReducePeriod      sim.Time // at most one cut in it
	InitialAlpha          uint16   // 1024ths
}

// Check says what is wrong with the parameters, or returns nil.
func (p *Params) Check() error {
	var errs []error
	pos := func(name string, v, lo, hi int64) {
		if v < lo || v > hi {
			errs = append(errs, fmt.Errorf("dcqcn: %s is %d, not in %d..%d", name, v, lo, hi))
		}
	}
	pos("MinTimeBetweenCNPs", int64(p.MinTimeBetweenCNPs), 0, int64(sim.Second))
	pos("CNPScope", int64(p.CNPScope), 0, int64(PerQP))
	pos("CNPDSCP", int64(p.CNPDSCP), 0, 63)
	pos("RPGTimeReset", int64(p.RPGTimeReset), int64(sim.Microsecond), int64(sim.Second))
	pos("RPGByteReset", int64(p.RPGByteReset), 1, 1<<40)
	pos("RPGThreshold", int64(p.RPGThreshold), 1, 31)
	pos("RPGMaxRate", int64(p.RPGMaxRate), 0, 1e13)
	pos("RPGMinRate", int64(p.RPGMinRate), 1e6, 1e12)
	pos("RPGAIRate", int64(p.RPGAIRate), 1e5, 1e12)
	pos("RPGHAIRate", int64(p.RPGHAIRate), 1e5, 1e12)
	pos("RPGGd", int64(p.RPGGd), 10, 30)
	pos("RPGMinDecFac", int64(p.RPGMinDecFac), 1, 100)
	pos("RateOnFirstCNP", int64(p.RateOnFirstCNP), 0, 1e13)
	pos("DCETCPG", int64(p.DCETCPG), 1, 1023)
	pos("DCETCPRTT", int64(p.DCETCPRTT), int64(sim.Microsecond), int64(sim.Second))
	pos("RateReducePeriod", int64(p.RateReducePeriod), 0, int64(sim.Second))
	pos("InitialAlpha", int64(p.InitialAlpha), 1, 1023)
	return errors.Join(errs...)
}

// Top is the rate where a QP of a port is not limited any more, in bit/s.
func (p *Params) Top(port uint64) uint64 {
	if p.RPGMaxRate > 0 {
		return min(p.RPGMaxRate, port)
	}
	return port
}
