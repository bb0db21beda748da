package pcie

import (
	"fmt"
	"math/bits"

	"github.com/rdmasim/rdmasim/sim"
)

// Params of a link. Sizes in bytes. The headers are what a TLP costs beside its
// payload; papers count them differently (26/22 with link framing in Kalia, ATC
// 2016; 24/20 in pcie-model; 20 for everything in Husky, NSDI 2023), so they are
// values of a profile.
type Params struct {
	Bandwidth     uint64   `unit:"rate"` // bits per second that TLPs can use, each direction
	PostedLatency sim.Time // core or root complex to device, and back, one way, for a TLP of up to 64 bytes
	ReadLatency   sim.Time // DMA read of up to 64 bytes on an idle link: request to completion
	MPS           int      `unit:"size"` // payload of a write TLP
	MRRS          int      `unit:"size"` // of a read request
	RCB           int      `unit:"size"` // of a completion, which ends at a multiple of it
	WriteHeader   int      `unit:"size"` // overhead of a posted write TLP
	ReadHeader    int      `unit:"size"` // of a read request
	CplHeader     int      `unit:"size"` // of a completion
	ReadsInFlight int      // tags: read requests that may be outstanding
	PostedCredits int      // posted TLPs that may be under way in each direction; 0: never the limit
	MemoryLatency sim.Time // root complex to memory visible to a core
}

// mostCredits is far above what a port grants, and each is kept.
const mostCredits = 65536

// mostHeader and mostReads are far above what TLPs and tags are.
const mostHeader, mostReads = 4096, 65536

// Validate says what is impossible in p.
func (p *Params) Validate() error {
	pow2 := func(n int) bool { return n > 0 && bits.OnesCount(uint(n)) == 1 }
	switch {
	case p.Bandwidth < 1_000_000 || p.Bandwidth > 10_000_000_000_000_000:
		return fmt.Errorf("pcie: Bandwidth is %d bit/s: want 1 Mb/s to 10 Pb/s", p.Bandwidth)
	case sim.TooLong(p, nil) != "":
		return fmt.Errorf("pcie: %s", sim.TooLong(p, nil))
	case p.PostedLatency <= 0 || p.MemoryLatency < 0:
		return fmt.Errorf("pcie: posted latency %v and memory latency %v must be positive", p.PostedLatency, p.MemoryLatency)
	case p.ReadLatency < p.PostedLatency:
		return fmt.Errorf("pcie: read latency %v is below the posted latency %v, which is part of it", p.ReadLatency, p.PostedLatency)
	case !pow2(p.MPS) || !pow2(p.MRRS) || p.MPS > 4096 || p.MRRS > 4096:
		return fmt.Errorf("pcie: MPS %d and MRRS %d must be powers of two up to 4096", p.MPS, p.MRRS)
	case !pow2(p.RCB) || p.RCB < 64 || p.RCB > p.MRRS:
		return fmt.Errorf("pcie: RCB %d must be a power of two from 64 to MRRS", p.RCB)
	case p.WriteHeader < 0 || p.ReadHeader < 0 || p.CplHeader < 0 || p.PostedCredits < 0:
		return fmt.Errorf("pcie: negative header or credits")
	case p.PostedCredits > mostCredits:
		return fmt.Errorf("pcie: PostedCredits is %d: want at most %d, or 0 for no limit", p.PostedCredits, mostCredits)
	case p.WriteHeader > mostHeader || p.ReadHeader > mostHeader || p.CplHeader > mostHeader:
		return fmt.Errorf("pcie: WriteHeader %d, ReadHeader %d, CplHeader %d: want at most %d bytes each", p.WriteHeader, p.ReadHeader, p.CplHeader, mostHeader)
	case p.ReadsInFlight < 1 || p.ReadsInFlight > mostReads:
		return fmt.Errorf("pcie: ReadsInFlight is %d: want 1 to %d", p.ReadsInFlight, mostReads)
	}
	return nil
}

// pageTLP is the boundary that no request crosses (PCI Express Base, 2.2.7).
const pageTLP = 4096

// sizes are the powers of two at which transactions split, as logarithms.
type sizes struct{ mps, mrrs, rcb uint }

func (p *Params) sizes() sizes {
	return sizes{mps: log2(p.MPS), mrrs: log2(p.MRRS), rcb: log2(p.RCB)}
}

func log2(n int) uint { return uint(bits.Len(uint(n)) - 1) }

// requests is how many TLPs of at most 1<<unit bytes carry a request for n bytes at
// a: they split at that from the start, and never cross 4 KiB. A request for 0
// bytes is one TLP.
func requests(a uint64, n int, unit uint) int {
	if in := a & (pageTLP - 1); in+uint64(n) <= pageTLP {
		if n>>unit == 0 { // fewer than one takes in
			return 1
		}
		return (n + 1<<unit - 1) >> unit
	}
	return requestsAcross(a, n, unit)
}

// requestsAcross is requests of a range that crosses a boundary.
//
//go:noinline
func requestsAcross(a uint64, n int, unit uint) (k int) {
	for n > 0 {
		piece := min(n, pageTLP-int(a&(pageTLP-1)))
		k += (piece + 1<<unit - 1) >> unit
		a, n = a+uint64(piece), n-piece
	}
	return k
}

// completions is how many completions answer the read requests for n bytes at a:
// each ends at a multiple of RCB or at the end of its request.
func (s *sizes) completions(a uint64, n int) int {
	k := 0
	for n > 0 {
		req := min(n, 1<<s.mrrs, pageTLP-int(a&(pageTLP-1)))
		first, last := a>>s.rcb, (a+uint64(req)-1)>>s.rcb
		k += int(last-first) + 1
		a, n = a+uint64(req), n-req
	}
	return max(k, 1)
}

// rate is picoseconds per byte in fixed point with 20 fractional bits.
func (p *Params) rate() uint64 { return (8e12 << 20) / p.Bandwidth }

func serialise(rate uint64, bytes int) sim.Time {
	hi, lo := bits.Mul64(rate, uint64(bytes))
	return sim.Time(hi<<44 | lo>>20)
}
