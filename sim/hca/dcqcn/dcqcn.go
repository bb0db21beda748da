// Package dcqcn is the arithmetic of DCQCN (Zhu et al., SIGCOMM 2015): its parameters, and
// the rate at which the reaction point of a QP lets it send. The device (sim/hca) says when
// events happen, and what a packet is.
package dcqcn

import (
	"errors"

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
	DCQCN              bool     // both points; RoCEv2 packets of RC and UC carry ECT(0)
	MinTimeBetweenCNPs sim.Time `key:"min_time_between_cnps" bounds:"0.."` // of one scope
	CNPScope           Scope    `words:"port destination qp"`
	CNPDSCP            uint8    `key:"cnp_dscp" bounds:"0..63"`
	ClampTgtRate       bool     // each cut makes the rate before it the target
	ClampAfterTimeInc  bool     `key:"clamp_tgt_rate_after_time_inc"`                         // one after the timer has raised the rate does
	RPGTimeReset       sim.Time `bounds:"1e6.."`                                              // between two raises by the timer
	RPGByteReset       uint64   `unit:"size" bounds:"1..2^40"`                                // bytes between two raises by the byte counter
	RPGThreshold       uint32   `bounds:"1..31"`                                              // raises of a kind that only recover
	RPGMaxRate         uint64   `unit:"rate" bounds:"0..1e13"`                                // bit/s; 0: the port's
	RPGMinRate         uint64   `unit:"rate" bounds:"1e6.."`                                  // bit/s
	RPGAIRate          uint64   `key:"rpg_ai_rate" unit:"rate" bounds:"1e5.."`                // bit/s that the target rises by
	RPGHAIRate         uint64   `key:"rpg_hai_rate" unit:"rate" bounds:"1e5.."`               // the same in the hyper increase
	RPGGd              uint8    `bounds:"10..30"`                                             // a cut takes alpha / 2^gd of the rate; alpha has 10 bits
	RPGMinDecFac       uint8    `bounds:"1..100"`                                             // percent of the rate that a cut leaves at least
	RateOnFirstCNP     uint64   `key:"rate_to_set_on_first_cnp" unit:"rate" bounds:"0..1e13"` // bit/s after the first cut; 0: as any other
	DCETCPG            uint16   `key:"dce_tcp_g" bounds:"1..1023"`                            // 1024ths of alpha that stay in each period
	DCETCPRTT          sim.Time `key:"dce_tcp_rtt" bounds:"1e6.."`                            // that period
	RateReducePeriod   sim.Time `key:"rate_reduce_monitor_period" bounds:"0.."`               // at most one cut in it
	InitialAlpha       uint16   `key:"initial_alpha_value" bounds:"1..1023"`                  // 1024ths
}

// Check says what is wrong with the parameters, or returns nil.
func (p *Params) Check() error {
	return errors.Join(sim.OutOfBounds("dcqcn", p)...)
}

// Top is the rate where a QP of a port is not limited any more, in bit/s.
func (p *Params) Top(port uint64) uint64 {
	if p.RPGMaxRate > 0 {
		return min(p.RPGMaxRate, port)
	}
	return port
}
