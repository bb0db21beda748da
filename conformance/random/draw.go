package random

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/conformance/model"
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
	maxNumber  = 1024
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
var lengths = []int{8, 0, 1, 7, 16, 28, 31, 32, 33, 60, 63, 64, 65, 100, 255, 256, 257, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 8191, 8192}

// kinds are the kinds of steps, as often as they are drawn, and the operations of the model that they make.
var kinds = []struct {
	kind  string
	often int
	ops   []model.Op
	has   func(Has) bool
}{
	{StepSend, 14, []model.Op{model.OpSend, model.OpWrite, model.OpRead, model.OpAtomic}, nil},
	{StepRecv, 7, []model.Op{model.OpPostRecv}, nil},
	{StepPoll, 3, []model.Op{model.OpPoll}, nil},
	{StepArm, 2, []model.Op{model.OpArm}, func(h Has) bool { return h.Events }},
	{StepEvent, 2, []model.Op{model.OpEvent}, func(h Has) bool { return h.Events }},
	{StepResize, 2, []model.Op{model.OpResize}, func(h Has) bool { return h.Resize }},
	{StepLimit, 2, []model.Op{model.OpLimit}, func(h Has) bool { return h.SRQ }},
	{StepModify, 2, []model.Op{model.OpModify}, nil},
	{StepQuery, 1, []model.Op{model.OpQuery}, nil},
	{StepRereg, 1, []model.Op{model.OpRereg}, func(h Has) bool { return h.Rereg }},
	{StepDereg, 1, []model.Op{model.OpDereg}, nil},
	{StepError, 1, []model.Op{model.OpTransition}, nil},
	{StepRestart, 1, []model.Op{model.OpTransition}, nil},
	{StepRenew, 1, []model.Op{model.OpDestroy}, nil},
}

// Draw draws programs of what a target has.
type Draw struct {
	has   Has
	kinds []string // each as often as it is drawn
}

// NewDraw draws the kinds of steps that each make with the usual frequency.
func NewDraw(has Has) *Draw {
	d := &Draw{has: has}
	d.Prefer(nil)
	return d
}

// Prefer draws kinds of steps more often whose operations have met fewer of the model's states.
func (d *Draw) Prefer(c *model.Coverage) {
	d.kinds = d.kinds[:0]
	for _, k := range kinds {
		if k.has != nil && !k.has(d.has) {
			continue
		}
		often := k.often
		if c != nil && c.Missing(k.ops...) {
			often *= 2
		}
		for range often {
			d.kinds = append(d.kinds, k.kind)
		}
	}
}

// sizes of CQs and depths of queues, the usual first: small ones wrap.
var (
	sizes  = []int{0, 7, 8, 15, 16, 31, 63, 64, 3, 2, 127}
	depths = []int{0, 2, 3, 4, 7, 8, 16, 31}
)

// Programs draws programs of what a target has.
func Programs(has Has) *rapid.Generator[Program] { return NewDraw(has).Programs() }

// Programs draws programs.
func (d *Draw) Programs() *rapid.Generator[Program] {
	has := d.has
	return rapid.Custom(func(t *rapid.T) Program {
		p := Program{Atomic: has.Atomic, MTU: verbs.MTU(rapid.IntRange(int(verbs.MTU256), int(verbs.MTU4096)).Draw(t, "MTU")),
			RNRRetry: uint8(rapid.IntRange(0, 1).Draw(t, "RNR retries")), Retries: uint8(rapid.IntRange(0, 1).Draw(t, "retries")),
			SigAll: rapid.IntRange(0, 7).Draw(t, "SigAll") == 7}
		switch rapid.IntRange(0, 5).Draw(t, "receives and type") {
		case 4:
			p.SRQ = has.SRQ
		case 5:
			if has.UC {
				p.UC, p.Atomic = true, false
			}
		}
		p.CQE, p.Depth = sizes[mostly(t, "CQ size", len(sizes))], depths[mostly(t, "depth", len(depths))]
		p.Shared = rapid.IntRange(0, 3).Draw(t, "shared") == 3
		p.Extended = rapid.IntRange(0, 2).Draw(t, "extended") == 2
		for i := range p.Access {
			p.Access[i] = rights[mostly(t, "rights", len(rights))]
			if p.UC {
				p.Access[i] |= verbs.AccessRemoteWrite
			}
		}
		p.Regions = rapid.SliceOfN(rapid.Custom(region), 1, maxRegions).Draw(t, "regions")
		least := rapid.SampledFrom([]int{1, 1, 6, 14, maxSteps}).Draw(t, "fewest steps") // rapid prefers short lists
		p.Steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Step { return d.step(t, &p) }), least, maxSteps).Draw(t, "steps")
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

func (d *Draw) step(t *rapid.T, p *Program) Step {
	kind := rapid.SampledFrom(d.kinds).Draw(t, "kind")
	if kind == StepLimit && !p.SRQ {
		kind = StepRecv
	}
	s := Step{Kind: kind}
	if kind != StepRestart && kind != StepEvent && kind != StepLimit {
		s.Side = rapid.IntRange(0, 1).Draw(t, "side")
	}
	switch kind {
	case StepRecv:
		s.Pieces = pieces(t, p)
		if p.SRQ { // libmlx5 posts an empty piece to an SRQ with a byte count of 0, which the device takes for 2 GiB
			s.Pieces = slices.DeleteFunc(s.Pieces, func(x Piece) bool { return x.Len == 0 })
		}
	case StepDereg:
		s.Region, s.Side = rapid.IntRange(0, len(p.Regions)-1).Draw(t, "region"), 0
	case StepRereg:
		s.Region, s.Side = rapid.IntRange(0, len(p.Regions)-1).Draw(t, "region"), 0
		s.Access = accesses[mostly(t, "access", len(accesses))]
	case StepSend:
		s.List = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Request { return request(t, p) }), 1, maxList).Draw(t, "list")
		s.Leave = rapid.Bool().Draw(t, "leave")
	case StepPoll:
		s.Recv, s.N = rapid.Bool().Draw(t, "receives"), rapid.IntRange(1, 4).Draw(t, "count")
		if rapid.IntRange(0, 2).Draw(t, "all") == 2 { // what waits, one less or more
			s.N, s.Anchor = s.N-2, AnchorWaiting
		}
	case StepArm:
		s.Recv, s.Solicited = rapid.Bool().Draw(t, "receives"), rapid.Bool().Draw(t, "solicited")
	case StepResize:
		s.Recv, s.Anchor = rapid.Bool().Draw(t, "receives"), rapid.SampledFrom([]string{AnchorWaiting, AnchorCap, AnchorNone}).Draw(t, "anchor")
		s.N = rapid.SampledFrom([]int{0, 1, -1, 2, 8, 63, 64, 65, 128, 255, 256, 257}).Draw(t, "size")
	case StepLimit:
		s.Anchor = rapid.SampledFrom([]string{AnchorWaiting, AnchorNone, AnchorCap}).Draw(t, "anchor")
		s.N = rapid.IntRange(-1, 2).Draw(t, "limit")
	case StepRenew:
		s.N = mostly(t, "polled in between", maxList)
	case StepModify:
		if rapid.Bool().Draw(t, "timer") {
			s.N = rapid.IntRange(1, 31).Draw(t, "min_rnr_timer")
		} else if s.Access = rights[mostly(t, "rights", len(rights))]; p.UC {
			s.Access |= verbs.AccessRemoteWrite
		}
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
		r.CompareAdd, r.Swap = rapid.SampledFrom([]uint64{1, 0, 2, 1 << 31, 1 << 32, 1<<63 - 1, 1 << 63, 1<<64 - 1}).Draw(t, "compare or add"), rapid.Uint64().Draw(t, "swap")
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
