package link

import (
	"errors"
	"fmt"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// Speed is the signalling of an InfiniBand lane (IBTA Vol. 2).
type Speed uint8

// Speeds, with the words of profiles in SpeedWords.
const (
	SDR Speed = iota
	DDR
	QDR
	FDR10
	FDR
	EDR
	HDR
)

// SpeedWords are the names of the speeds, by value.
var SpeedWords = []string{"sdr", "ddr", "qdr", "fdr10", "fdr", "edr", "hdr"}

// speeds: data bits per second of a lane as a fraction (8b/10b coding up to QDR, 64b/66b
// after it; HDR's lane of 53.125 Gb/s carries 50), the code of PortInfo and of
// ibv_port_attr.active_speed, and the Mb/s of a lane by which records of paths count.
var speeds = [...]struct {
	num, den uint64
	code     uint32
	counted  uint64
}{
	SDR: {2_000_000_000, 1, 1, 2500}, DDR: {4_000_000_000, 1, 2, 5000}, QDR: {8_000_000_000, 1, 4, 10_000}, FDR10: {10_000_000_000, 1, 8, 10_000},
	FDR: {14_062_500_000 * 64, 66, 16, 14_062}, EDR: {25_000_000_000, 1, 32, 25_000}, HDR: {50_000_000_000, 1, 64, 50_000},
}

// widths are the codes of ibv_port_attr.active_width, by lanes.
var widths = map[int]uint8{1: 1, 2: 16, 4: 2, 8: 4, 12: 8}

// IBParams are what an InfiniBand link has in place of a cable's Bandwidth, Preamble,
// FCS, Gap and MinFrame. All must be set.
type IBParams struct {
	Speed      Speed
	Width      int // lanes: 1, 2, 4, 8 or 12
	Delimiters int `unit:"size"` // bytes around a packet: start and end
	VLs        int `key:"vls"`   // data lanes that share the link: 1, 2, 4, 8 or 15
	// Credits is the receive buffer of a lane in blocks of 64 bytes: a sender that has
	// filled it waits until the receiver has taken something out.
	Credits int
	// Sweep is how long the subnet manager takes from a change of the fabric to ports
	// that are active.
	Sweep sim.Time
}

// creditBlock is the unit of flow control (IBTA Vol. 1, 7.9.4).
const creditBlock = 64

// Rate is the data rate of the link in bits per second.
func (p *IBParams) Rate() uint64 {
	s := speeds[p.Speed]
	return uint64(p.Width) * s.num / s.den
}

// SpeedCode and WidthCode are those of ibv_port_attr.
func (p *IBParams) SpeedCode() uint32 { return speeds[p.Speed].code }

// WidthCode returns the code of the width, as PortInfo has it.
func (p *IBParams) WidthCode() uint8 { return widths[p.Width] }

// CountedRate is the rate of the link in Mb/s as the rate codes of the subnet administrator count
// it, where the lanes of old speeds have the rate of their signals.
func (p *IBParams) CountedRate() uint64 { return uint64(p.Width) * speeds[p.Speed].counted }

// Overhead is what a packet has on the link beside the frame: delimiters and VCRC.
func (p *IBParams) Overhead() int { return p.Delimiters + roce.VCRCSize }

// Check says what is wrong with the parameters, or returns nil.
func (p *IBParams) Check() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf("link: "+format, a...)) }
	if int(p.Speed) >= len(speeds) {
		bad("Speed is %d", p.Speed)
	}
	if widths[p.Width] == 0 {
		bad("Width is %d lanes, not 1, 2, 4, 8 or 12", p.Width)
	}
	if p.Delimiters < 0 || p.Delimiters > 64 {
		bad("Delimiters is %d, not in 0..64 bytes", p.Delimiters)
	}
	switch p.VLs {
	case 1, 2, 4, 8, 15:
	default:
		bad("VLs is %d, not 1, 2, 4, 8 or 15", p.VLs)
	}
	if n := blocks(maxIBPacket); p.Credits < n || p.Credits > 2048 {
		bad("Credits is %d, not in %d..2048 blocks: the longest packet needs the least", p.Credits, n)
	}
	if p.Sweep < 0 || p.Sweep > 100*sim.Second {
		bad("Sweep is %v, not in 0..100s", p.Sweep)
	}
	return errors.Join(errs...)
}

// maxIBPacket is the longest packet: an MTU of 4096 with the longest headers.
const maxIBPacket = 4096 + 126

// blocks is how many credits a packet of n bytes takes.
func blocks(n int) int { return int((uint(n) + creditBlock - 1) / creditBlock) }

// framing is the cable that carries InfiniBand: its rate and its bytes around a packet.
func (p *IBParams) framing(propagation sim.Time) Params {
	return Params{
		Bandwidth: p.Rate(), Propagation: propagation, IB: *p,
		Preamble: (p.Delimiters + 1) / 2, FCS: roce.VCRCSize, Gap: p.Delimiters / 2,
	}
}
