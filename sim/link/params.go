package link

import (
	"errors"
	"fmt"

	"github.com/rdmasim/rdmasim/sim"
)

// Params of a cable with its two ports. All must be set; Propagation may be 0. A cable
// of InfiniBand takes Propagation and IB.
type Params struct {
	Bandwidth   uint64   `unit:"rate"` // bits per second, each direction
	Propagation sim.Time // one way: cable, SerDes and FEC, first bit to first bit
	Preamble    int      `unit:"size"` // bytes before a frame: 8 on Ethernet, with the start delimiter
	FCS         int      `unit:"size"` // bytes behind it: 4
	Gap         int      `unit:"size"` // bytes of silence before the next one: 12
	MinFrame    int      `unit:"size"` // a shorter frame is padded to this, FCS not counted: 60

	// Priority flow control of both ports. A receiver that buffers more than PFCXoff bytes
	// of a class pauses the other end for PFCTime quanta of 512 bits, again and again,
	// until PFCXon or fewer are left.
	PFC             bool
	PFCClasses      uint8 `unit:"hex"` // a bit for each lossless class
	PFCXoff, PFCXon int   `unit:"size"`
	PFCTime         int

	// InfiniBand: the cable is one, and IB holds instead of all but Propagation. The
	// device's link layer decides.
	InfiniBand bool `profile:"-"`
	IB         IBParams
}

// Check says what is wrong with the parameters, or returns nil.
func (p *Params) Check() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf("link: "+format, a...)) }
	if p.InfiniBand {
		errs = append(errs, p.IB.Check())
	}
	if p.Bandwidth < 1_000_000 || p.Bandwidth > 10_000_000_000_000 {
		bad("Bandwidth is %d bit/s, not in 1 Mb/s..10 Tb/s", p.Bandwidth)
	}
	if p.Propagation < 0 || p.Propagation > sim.Second {
		bad("Propagation is %v, not in 0..1s", p.Propagation)
	}
	for _, f := range []struct {
		name      string
		v, lo, hi int
	}{
		{"Preamble", p.Preamble, 0, 64}, {"FCS", p.FCS, 1, 16}, {"Gap", p.Gap, 0, 4096}, {"MinFrame", p.MinFrame, 1, 512},
	} {
		if f.v < f.lo || f.v > f.hi {
			bad("%s is %d, not in %d..%d bytes", f.name, f.v, f.lo, f.hi)
		}
	}
	const mostPFC, mostQuanta = 1 << 30, 0xffff // also where PFC is off
	if p.PFCXoff > mostPFC || p.PFCXon > mostPFC || p.PFCTime > mostQuanta {
		bad("PFCXoff %d, PFCXon %d, PFCTime %d: want at most 1 GiB, 1 GiB and 65535", p.PFCXoff, p.PFCXon, p.PFCTime)
	} else if p.PFC && (p.PFCXon < 0 || p.PFCXoff < p.PFCXon || p.PFCXoff > 1<<30 || p.PFCTime < 1 || p.PFCTime > 0xffff) {
		bad("PFCXoff %d, PFCXon %d, PFCTime %d: want the first not below the second, and a time of 1 to 65535", p.PFCXoff, p.PFCXon, p.PFCTime)
	}
	return errors.Join(errs...)
}

// bytesTime is how long n bytes take on the line, rounded up to a picosecond.
func (p *Params) bytesTime(n int) sim.Time {
	return sim.BytesTimeUp(uint64(n), p.Bandwidth)
}

// SwitchParams of a switch.
type SwitchParams struct {
	// Latency from ingress to egress of a frame that finds its way free: behind the
	// header with CutThrough, behind the last bit without.
	Latency    sim.Time
	CutThrough bool
	// HeaderBytes must have come in before a cut-through switch decides.
	HeaderBytes int `unit:"size"`
	// Buffer of an egress port in bytes; a frame that finds it full is dropped.
	Buffer int `unit:"size"`
	// ECNMin to ECNMax is where an egress queue, in bytes, marks frames of senders that
	// heed it (ECT) as "congestion experienced": with a chance that rises from 0 to
	// ECNChance percent, and above ECNMax always. ECNMax 0: never.
	ECNMin, ECNMax int `unit:"size"`
	ECNChance      int
}

// Check says what is wrong with the parameters, or returns nil.
func (p *SwitchParams) Check() error {
	var errs []error
	if p.Latency <= 0 || p.Latency > sim.Second {
		errs = append(errs, fmt.Errorf("link: switch Latency is %v, not in 1ps..1s", p.Latency))
	}
	if p.CutThrough && (p.HeaderBytes < 14 || p.HeaderBytes > 256) {
		errs = append(errs, fmt.Errorf("link: switch HeaderBytes is %d, not in 14..256", p.HeaderBytes))
	}
	if p.ECNMin < 0 || p.ECNMax < p.ECNMin || p.ECNMax > 1<<30 || p.ECNChance < 0 || p.ECNChance > 100 {
		errs = append(errs, fmt.Errorf("link: switch ECNMin %d, ECNMax %d, ECNChance %d: want rising sizes and a percentage", p.ECNMin, p.ECNMax, p.ECNChance))
	}
	if p.Buffer < 1 || p.Buffer > 1<<30 {
		errs = append(errs, fmt.Errorf("link: switch Buffer is %d, not in 1 B..1 GiB", p.Buffer))
	}
	return errors.Join(errs...)
}
