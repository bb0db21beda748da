package random

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/verbs"
)

// Bounds of a program.
const (
	maxRegions = 4
	maxSteps   = 24
	maxList    = 6
	maxPieces  = 4
	maxLen     = 1 << 13
	regionSize = 1 << 13
	maxInline  = 64
	queueDepth = 32
)

// accesses are what regions are registered with, the usual first.
var accesses = []verbs.AccessFlags{
	verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic,
	verbs.AccessLocalWrite, 0, verbs.AccessLocalWrite | verbs.AccessRemoteWrite, verbs.AccessRemoteRead,
	verbs.AccessLocalWrite | verbs.AccessRemoteRead, verbs.AccessRemoteWrite, verbs.AccessLocalWrite | verbs.AccessRemoteAtomic, verbs.AccessRemoteAtomic,
}

// rights are those of queue pairs, the usual first.
var rights = []verbs.AccessFlags{verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic, 0, verbs.AccessRemoteWrite, verbs.AccessRemoteRead, verbs.AccessRemoteAtomic,
	verbs.AccessRemoteWrite | verbs.AccessRemoteRead}

// lengths are those near which something changes.
var lengths = []int{8, 0, 1, 7, 16, 28, 60, 64, 65, 100, 255, 256, 257, 1023, 1024, 1025, 2048, 4095, 4096, 4097}

// Programs draws programs, with atomics or without.
func Programs(atomic bool) *rapid.Generator[Program] {
	return rapid.Custom(func(t *rapid.T) Program {
		p := Program{Atomic: atomic, MTU: verbs.MTU(rapid.IntRange(int(verbs.MTU256), int(verbs.MTU4096)).Draw(t, "MTU")),
			RNRRetry: uint8(rapid.IntRange(0, 1).Draw(t, "RNR retries")), Retries: uint8(rapid.IntRange(0, 1).Draw(t, "retries")),
			SigAll: rapid.IntRange(0, 7).Draw(t, "SigAll") == 7}
		switch rapid.IntRange(0, 5).Draw(t, "receives and type") {
		case 4:
			p.SRQ = true
		case 5:
			p.UC, p.Atomic = true, false
		}
		p.Extended = rapid.IntRange(0, 2).Draw(t, "extended") == 2
		for i := range p.Access {
			p.Access[i] = rights[mostly(t, "rights", len(rights))]
			if p.UC {
				p.Access[i] |= verbs.AccessRemoteWrite
			}
		}
		p.Regions = rapid.SliceOfN(rapid.Custom(region), 1, maxRegions).Draw(t, "regions")
		p.Steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Step { return step(t, &p) }), 1, maxSteps).Draw(t, "steps")
		return p
	})
}

func region(t *rapid.T) Region {
	return Region{regionSize, accesses[mostly(t, "access", len(accesses))]}
}

// mostly is 0 in half of all cases.
func mostly(t *rapid.T, what string, n int) int {
	return max(0, rapid.IntRange(-n, n-1).Draw(t, what))
}

func step(t *rapid.T, p *Program) Step {
	kind := rapid.SampledFrom([]string{StepSend, StepSend, StepSend, StepSend, StepRecv, StepRecv, StepRecv, StepSend, StepDereg, StepError, StepRestart}).Draw(t, "kind")
	s := Step{Kind: kind}
	if kind != StepRestart {
		s.Side = rapid.IntRange(0, 1).Draw(t, "side")
	}
	switch kind {
	case StepRecv:
		s.Pieces = pieces(t, p)
	case StepDereg:
		s.Region, s.Side = rapid.IntRange(0, len(p.Regions)-1).Draw(t, "region"), 0
	case StepSend:
		s.List = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Request { return request(t, p) }), 1, maxList).Draw(t, "list")
	}
	return s
}

func pieces(t *rapid.T, p *Program) []Piece {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Piece { return piece(t, p) }), 0, maxPieces).Draw(t, "pieces")
}

// piece is inside its region but for one in eight.
func piece(t *rapid.T, p *Program) Piece {
	x := Piece{Region: rapid.IntRange(0, len(p.Regions)-1).Draw(t, "region"), Len: rapid.SampledFrom(lengths).Draw(t, "length")}
	x.Off = 8 * rapid.IntRange(0, (regionSize-x.Len)/8).Draw(t, "offset")
	switch mostly(t, "flaw", 16) {
	case 15:
		x.Off = regionSize - x.Len + 1 // one byte too far
	case 14:
		x.WrongKey = true
	case 13:
		x.Off = max(0, min(x.Off+1, regionSize-x.Len))
	}
	return x
}

func request(t *rapid.T, p *Program) Request {
	ops := []verbs.WROpcode{verbs.WRRDMAWrite, verbs.WRSend, verbs.WRRDMARead, verbs.WRSendImm, verbs.WRRDMAWriteImm}
	if p.UC {
		ops = slices.DeleteFunc(ops, func(op verbs.WROpcode) bool { return !ofUC(op) })
	}
	if p.Atomic {
		ops = append(ops, verbs.WRAtomicFetchAdd, verbs.WRAtomicCmpSwp)
	}
	r := Request{Op: rapid.SampledFrom(ops).Draw(t, "opcode")}
	for _, f := range []verbs.SendFlags{verbs.SendSignaled, verbs.SendFence, verbs.SendSolicited} {
		if rapid.Bool().Draw(t, "flag") {
			r.Flags |= f
		}
	}
	if r.Op == verbs.WRSendImm || r.Op == verbs.WRRDMAWriteImm {
		r.Imm = rapid.Uint32().Draw(t, "immediate")
	}
	if r.atomic() {
		r.CompareAdd, r.Swap = rapid.Uint64Range(0, 3).Draw(t, "compare or add"), rapid.Uint64().Draw(t, "swap")
		l := piece(t, p)
		l.Len = 8
		r.Local, r.Remote = []Piece{l}, piece(t, p)
		r.Remote.Len = 0
		return r
	}
	r.Local = pieces(t, p)
	if names, _ := r.remote(); names {
		r.Remote = piece(t, p)
		if n := length(r.Local); !r.Remote.WrongKey && r.Remote.Off+n > regionSize && r.Remote.Off+r.Remote.Len <= regionSize && n <= regionSize {
			r.Remote.Off = (regionSize - n) / 8 * 8
		}
		r.Remote.Len = 0
	}
	if r.Op != verbs.WRRDMARead && rapid.IntRange(0, 3).Draw(t, "inline") == 3 {
		r.Flags |= verbs.SendInline
	}
	return r
}
