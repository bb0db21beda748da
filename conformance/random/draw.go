package random

import (
	"slices"

	"github.com/rdmasim/rdmasim/conformance/model"
	"github.com/rdmasim/rdmasim/conformance/spec"
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
	maxPeriod  = 1 << 12
	maxTimes   = 1<<16 + 1
	maxFaults  = 2
	maxDelay   = 1 << 12 // microseconds: less than a retransmission takes

	// Retries of a program with faults, and of one whose receives come late: more than it needs.
	faultRetries = 3
	lateRetries  = 6
)

// accesses are what regions are registered with, the usual first.
var accesses = []verbs.AccessFlags{
	verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic | verbs.AccessMWBind,
	verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic,
	verbs.AccessLocalWrite | verbs.AccessMWBind, verbs.AccessMWBind,
	verbs.AccessLocalWrite, 0, verbs.AccessLocalWrite | verbs.AccessRemoteWrite, verbs.AccessRemoteRead,
	verbs.AccessLocalWrite | verbs.AccessRemoteRead, verbs.AccessRemoteWrite, verbs.AccessLocalWrite | verbs.AccessRemoteAtomic, verbs.AccessRemoteAtomic,
}

// rights are those of queue pairs, the usual first.
var rights = []verbs.AccessFlags{verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic, 0, verbs.AccessRemoteWrite, verbs.AccessRemoteRead, verbs.AccessRemoteAtomic,
	verbs.AccessRemoteWrite | verbs.AccessRemoteRead}

// lengths are those near which something changes.
var lengths = []int{8, 0, 1, 7, 16, 28, 31, 32, 33, 60, 63, 64, 65, 100, 255, 256, 257, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 8191, 8192}

// kinds are the kinds of steps, as often as they are drawn, and the operations of the model that
// they make.
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
	{StepModify, 3, []model.Op{model.OpModify}, nil},
	{StepDrain, 2, []model.Op{model.OpTransition}, func(h Has) bool { return h.SQD }},
	{StepModer, 1, []model.Op{model.OpModerate}, func(h Has) bool { return h.Events && h.Moderation }},
	{StepQuery, 1, []model.Op{model.OpQuery}, nil},
	{StepRereg, 2, []model.Op{model.OpRereg}, func(h Has) bool { return h.Rereg }},
	{StepReg, 2, nil, nil},
	{StepEvict, 2, []model.Op{model.OpEvict}, func(h Has) bool { return h.ODP }},
	{StepAdvise, 1, []model.Op{model.OpAdvise}, func(h Has) bool { return h.ODP && h.Advise }},
	{StepGroup, 1, []model.Op{model.OpGroup}, func(h Has) bool { return h.Mcast }},
	{StepBind, 3, []model.Op{model.OpBind}, func(h Has) bool { return h.MW1 || h.MW2 }},
	{StepDereg, 1, []model.Op{model.OpDereg}, nil},
	{StepError, 1, []model.Op{model.OpTransition}, nil},
	{StepRestart, 1, []model.Op{model.OpTransition}, nil},
	{StepRenew, 1, []model.Op{model.OpDestroy}, nil},
}

// Draw draws random programs that use only what a target has.
type Draw struct {
	has   Has
	kinds []string // each as often as it is drawn
}

// NewDraw returns a Draw that draws the kinds of steps with their usual frequencies.
func NewDraw(has Has) *Draw {
	d := &Draw{has: has}
	d.Prefer(nil)
	return d
}

// Prefer makes kinds of steps more frequent whose operations have met few of the model's states.
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
	sizes  = []int{0, 7, 8, 15, 16, 31, 64, 255, 3, 2, 127}
	depths = []int{0, 2, 3, 4, 7, 8, 16, 31}
)

// inlines are the most bytes of inline data, the usual first: they decide how large a request is.
var inlines = []int{0, 1, 12, 28, 44, 60, 63, 65, 128, 188, 220, 512}

// changes are the attributes that ibv_modify_qp changes, each with the values that it is given.
// None makes a queue pair wait for ever: a timeout of 0 and 7 RNR retries do.
var changes = []struct {
	mask   verbs.QPAttrMask
	values []int
}{
	{verbs.QPMaskAccessFlags, nil}, {verbs.QPMaskMinRNRTimer, []int{1, 12, 0, 2, 15, 16, 30, 31}}, {verbs.QPMaskTimeout, []int{12, 1, 2, 7, 8, 13, 14}},
	{verbs.QPMaskRetryCnt, []int{1, 0, 2, 3}}, {verbs.QPMaskRNRRetry, []int{1, 0, 2, 3}}, {verbs.QPMaskMaxQPRdAtomic, []int{1, 2, 3, 4, 7, 8}},
	{verbs.QPMaskMaxDestRdAtomic, []int{1, 2, 3, 4, 7, 8}}, {verbs.QPMaskPort, []int{1}}, {verbs.QPMaskPKeyIndex, []int{0}}, {verbs.QPMaskPathMTU, []int{1, 3, 5}},
	{verbs.QPMaskQKey, []int{1, 0, 1023}},
}

// modified is all of them.
const modified = verbs.QPMaskAccessFlags | verbs.QPMaskMinRNRTimer | verbs.QPMaskTimeout | verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry | verbs.QPMaskMaxQPRdAtomic |
	verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskPort | verbs.QPMaskPKeyIndex | verbs.QPMaskPathMTU | verbs.QPMaskQKey

// modifiedUnderFaults are those that retries do not depend on.
const modifiedUnderFaults = verbs.QPMaskAccessFlags | verbs.QPMaskMinRNRTimer | verbs.QPMaskPort | verbs.QPMaskPKeyIndex | verbs.QPMaskPathMTU | verbs.QPMaskQKey

// source is where draws come from.
type source struct{ *spec.Rand }

func (r source) between(least, most int) int { return least + r.IntN(most-least+1) }

func (r source) oneIn(n int) bool { return r.IntN(n) == 0 }

// few is a number up to most, of which small ones are more frequent.
func (r source) few(least, most int) int {
	return min(r.between(least, most), r.between(least, most))
}

func pick[T any](r source, l []T) T { return l[r.IntN(len(l))] }

// mostly is the first in half of all draws.
func mostly[T any](r source, l []T) T { return l[max(0, r.between(-len(l), len(l)-1))] }

func list[T any](n int, draw func() T) []T {
	l := make([]T, n)
	for i := range l {
		l[i] = draw()
	}
	return l
}

// Program draws a program. The same seed and number give the same program as long as Prefer has
// seen the same coverage.
func (d *Draw) Program(seed, number uint64) Program {
	r, has := source{spec.NewRand(seed ^ number*0x9e3779b97f4a7c15)}, d.has
	p := Program{Atomic: has.Atomic, MTU: verbs.MTU(r.between(int(verbs.MTU256), int(verbs.MTU4096))),
		RNRRetry: uint8(r.IntN(2)), Retries: uint8(r.IntN(2)), SigAll: r.oneIn(8)}
	switch r.IntN(7) {
	case 3:
		if has.UD {
			p.UD, p.Atomic, p.SRQ = true, false, has.SRQ && r.oneIn(3)
		}
	case 4:
		p.SRQ = has.SRQ
	case 5:
		if has.UC {
			p.UC, p.Atomic = true, false
		}
	case 6:
		p.XRC = has.XRC
	}
	if w := verbs.MWType(r.IntN(6)); !p.UC && !p.UD && !p.XRC && (w == verbs.MWType1 && has.MW1 || w == verbs.MWType2 && has.MW2) {
		p.Window = w
	}
	p.CQE, p.Depth, p.Shared, p.Extended = mostly(r, sizes), mostly(r, depths), r.oneIn(4), r.oneIn(3)
	p.Inline, p.IPv6 = mostly(r, inlines), has.IPv6 && r.oneIn(3)
	p.RNRTimer, p.Timeout = mostly(r, []uint8{0, 1, 16, 20}), mostly(r, []uint8{0, 8, 10})
	p.Class, p.Hops = mostly(r, []uint8{0, 1, 3, 4, 128, 252, 255}), mostly(r, []uint8{0, 1, 2, 63, 65, 255})
	for i := range p.Access {
		p.Access[i] = mostly(r, rights)
		if p.UC {
			p.Access[i] |= verbs.AccessRemoteWrite
		}
	}
	if has.Inject && !p.UC && !p.UD && r.oneIn(8) {
		p.Retries = faultRetries
		p.Faults = list(r.between(1, maxFaults), func() Fault { return fault(r) })
	}
	if !p.UC && !p.UD && r.oneIn(8) && has.Late {
		p.RNRRetry = lateRetries
	}
	d.shape(r, &p)
	p.Steps = list(r.between(pick(r, []int{1, 1, 6, 14, maxSteps}), maxSteps), func() Step { return d.step(r, &p) })
	return p
}

// fault is one packet that is disturbed.
func fault(r source) Fault {
	f := Fault{Action: pick(r, []verbs.WireAction{verbs.WireDrop, verbs.WireCorrupt, verbs.WireDelay, verbs.WireDuplicate}), To: r.IntN(2), Skip: r.few(0, 16), Count: 1}
	if f.Action == verbs.WireDelay {
		f.Delay = pick(r, []int{1, 4, 20, 700, maxDelay / 2})
	}
	return f
}

// underWay are requests that a change of the state meets.
func underWay(r source, p *Program, side int) []Request {
	if p.UC || p.UD || p.XRC && side == 1 || r.oneIn(2) {
		return nil
	}
	return slices.DeleteFunc(list(r.between(1, 3), func() Request { return request(r, p) }), func(x Request) bool { return x.sends() })
}

func (d *Draw) step(r source, p *Program) Step {
	kind := pick(r, d.kinds)
	shared := p.SRQ || p.XRC
	if shared && r.oneIn(8) {
		kind = StepLimit
	}
	if kind == StepLimit && !shared || kind == StepDrain && p.XRC {
		kind = StepRecv
	}
	if kind == StepBind && p.Window == 0 {
		kind = StepSend
	}
	if kind == StepGroup && !p.Group {
		kind = StepSend
	}
	if p.Group && r.oneIn(12) {
		kind = StepGroup
	}
	if (kind == StepEvict || kind == StepAdvise) && !p.paged() {
		kind = StepRecv
	}
	s := Step{Kind: kind}
	if kind == StepGroup {
		s.N = min(1, r.IntN(3))
	}
	if kind != StepRestart && kind != StepEvent && (kind != StepLimit || p.XRC) && (kind != StepSend || !p.XRC) {
		s.Side = r.IntN(2)
	}
	switch kind {
	case StepRecv:
		s.Pieces = receive(r, p)
		if r.oneIn(3) {
			s.Times = pick(r, []int{2, 4, 9})
		}
	case StepBind:
		x := piece(r, p)
		x.Window, x.WrongKey = r.between(1, 2), false
		if r.oneIn(4) {
			x.Len = 0
		}
		s.Pieces, s.Access = []Piece{x}, mostly(r, rights)
	case StepDereg:
		s.Region, s.Side = r.IntN(len(p.Regions)), 0
	case StepRereg, StepReg, StepEvict, StepAdvise:
		ofRegion(r, p, &s)
	case StepSend:
		s.List = list(r.few(1, maxList), func() Request { return request(r, p) })
		s.Leave = r.oneIn(2)
		switch {
		case p.RNRRetry == lateRetries && !p.XRC && r.oneIn(4):
			x := request(r, p)
			for !x.sends() {
				x = request(r, p)
			}
			s.List, s.Late, s.Pieces = []Request{x}, pick(r, []int{1, 20, 100, 650, 1300, 3000}), receive(r, p)
		case r.oneIn(400):
			s.Times, s.List = pick(r, []int{255, 256, 257}), s.List[:1]
		case r.oneIn(long) && !p.UD:
			s.Times, s.List, s.Leave = pick(r, []int{maxTimes - 2, maxTimes - 1, maxTimes}), []Request{{Op: verbs.WRRDMAWrite, Flags: s.List[0].Flags &^ verbs.SendInline}}, false
		case r.oneIn(16):
			s.Times = pick(r, []int{2, 3, 5, 9})
		}
	case StepPoll:
		s.Recv, s.N = r.oneIn(2), r.between(1, 4)
		if r.oneIn(3) { // what waits, one less or more
			s.N, s.Anchor = s.N-2, AnchorWaiting
		}
	case StepArm:
		s.Recv, s.Solicited = r.oneIn(2), r.oneIn(2)
	case StepResize:
		s.Recv, s.Anchor = r.oneIn(2), pick(r, []string{AnchorWaiting, AnchorCap, AnchorNone})
		s.N = pick(r, []int{0, 1, -1, 2, 8, 63, 64, 65, 128, 255, 256, 257})
	case StepLimit:
		s.Anchor = pick(r, []string{AnchorWaiting, AnchorNone, AnchorCap})
		s.N = r.between(-1, 2)
	case StepRenew:
		s.N = max(0, r.between(-2, maxList))
		s.All, s.Leave = r.oneIn(3) && !p.XRC, r.oneIn(2)
		s.List = underWay(r, p, s.Side)
	case StepError:
		s.List = underWay(r, p, s.Side)
	case StepDrain:
		s.N = r.IntN(2)
		s.List = underWay(r, p, s.Side)
	case StepModer:
		s.Recv = r.oneIn(2)
		s.N, s.Period = pick(r, []int{0, 1, 2, 3, 4, 16}), pick(r, []int{0, 1, 16, 1000})
	case StepModify:
		x := changes[max(0, r.between(-2, len(changes)-1))]
		s.Mask = x.mask
		if s.Access = mostly(r, rights); p.UC {
			s.Access |= verbs.AccessRemoteWrite
		}
		if x.values != nil {
			s.Access, s.N = 0, pick(r, x.values)
		}
		if (p.Faults != nil || p.paged()) && s.Mask&^modifiedUnderFaults != 0 {
			s.Mask, s.Access, s.N = verbs.QPMaskMinRNRTimer, 0, 12
		}
		if p.paged() && s.Mask == verbs.QPMaskMinRNRTimer { // each absent page takes one
			s.N = min(12, max(1, s.N))
		}
	}
	return s
}

// long is of how many steps that send one is repeated so often that numbers of 16 bits wrap.
const long = 1 << 16

func pieces(r source, p *Program) []Piece {
	n := r.few(0, maxPieces)
	if p.SGEs == 0 || !r.oneIn(3) {
		return list(n, func() Piece { return piece(r, p) })
	}
	return list(max(0, p.SGEs+r.between(-1, 1)), func() Piece { // as many as there may be, or one more
		x := piece(r, p)
		x.Len = min(x.Len, maxInline)
		return x
	})
}

// landing are pieces that are written.
func landing(r source, p *Program, l []Piece) []Piece {
	for i := range l {
		for n := 0; p.Regions[l[i].Region].Place != PlaceOwn && n < maxRegions; n++ {
			l[i] = piece(r, p)
		}
	}
	return l
}

// receive is the pieces of a receive.
func receive(r source, p *Program) []Piece {
	l := landing(r, p, pieces(r, p))
	if p.SRQ || p.XRC { // libmlx5 posts an empty piece to an SRQ with a byte count of 0, which the device takes for 2 GiB
		l = slices.DeleteFunc(l, func(x Piece) bool { return x.Len == 0 })
	}
	return l
}

// piece is inside its region but for one in eight.
func piece(r source, p *Program) Piece {
	x := Piece{Region: r.IntN(len(p.Regions)), Len: pick(r, lengths)}
	if r.oneIn(8) {
		x.Len = max(0, int(p.options().Cap.MaxInline)+r.between(-1, 1))
	}
	m := &p.Regions[x.Region]
	if x.Len > m.Size && !r.oneIn(16) {
		x.Len = m.Size
	}
	room := max(0, m.Size-x.Len)
	x.Off = m.Off + 8*r.between(0, room/8)
	switch r.between(-16, 15) {
	case 15:
		x.Off = m.Off + room + 1 // one byte too far
	case 14:
		x.WrongKey = true
	case 13:
		x.Off = min(x.Off+1, m.Off+room)
	case 12:
		x.Off = m.Off + room // the last
	case 11:
		x.Off = max(0, m.Off-1) // one byte before
	}
	x.Off = max(0, min(x.Off, memorySize-x.Len))
	return x
}

// windowed gives a piece the key of a window, in half of a program with windows.
func windowed(r source, p *Program, x Piece) Piece {
	if p.Window != 0 && r.oneIn(2) {
		x.Window, x.Old = r.between(1, 2), r.oneIn(8)
	}
	return x
}

func request(r source, p *Program) Request {
	n := len(operations)
	switch {
	case p.UD:
		n = ofUDs
	case p.UC:
		n = ofUCs
	case !p.Atomic:
		n -= 2
	}
	x := Request{Op: operations[r.IntN(n)]}
	if p.XRC {
		if x.SRQ = r.IntN(2); r.oneIn(32) {
			x.SRQ = noSRQ
		}
	}
	for _, f := range []verbs.SendFlags{verbs.SendSignaled, verbs.SendFence, verbs.SendSolicited} {
		if r.oneIn(2) {
			x.Flags |= f
		}
	}
	if x.Op == verbs.WRSendImm || x.Op == verbs.WRRDMAWriteImm {
		x.Imm = r.Uint32()
	}
	if x.atomic() {
		x.CompareAdd, x.Swap = pick(r, []uint64{1, 0, 2, 1 << 31, 1 << 32, 1<<63 - 1, 1 << 63, 1<<64 - 1}), r.Uint64()
		x.Local, x.Remote = landing(r, p, []Piece{piece(r, p)}), windowed(r, p, piece(r, p))
		x.Local[0].Len, x.Remote.Len = 8, 0
		x.Local[0].Off = min(x.Local[0].Off, memorySize-8)
		if !r.oneIn(8) {
			x.Remote.Off = (x.Remote.Off + 7) / 8 * 8
		}
		x.Remote.Off = min(x.Remote.Off, memorySize-8)
		return x
	}
	if x.Local = pieces(r, p); x.Op == verbs.WRRDMARead {
		x.Local = landing(r, p, x.Local)
	}
	if p.UD {
		x.BadQKey, x.Group = r.oneIn(8), p.Group && r.oneIn(3)
		if len(x.Local) > 1 && r.oneIn(2) { // short enough for a packet
			x.Local = x.Local[:1]
		}
	}
	if names, _ := x.remote(); names {
		x.Remote = windowed(r, p, piece(r, p))
		m := &p.Regions[x.Remote.Region]
		if n, end := length(x.Local), m.Off+m.Size; !x.Remote.WrongKey && x.Remote.Off+n > end && x.Remote.Off+x.Remote.Len <= end && n <= m.Size {
			x.Remote.Off = m.Off + (m.Size-n)/8*8
		}
		x.Remote.Len = 0
	}
	if x.Op == verbs.WRSend && p.Window == verbs.MWType2 && r.oneIn(3) {
		x.Op, x.Remote.Window = verbs.WRSendInv, r.between(1, 2)
	}
	if x.Op != verbs.WRRDMARead && r.oneIn(4) {
		x.Flags |= verbs.SendInline
		if len(x.Local) > 0 && r.oneIn(8) {
			x.Most = r.between(1, 3)
		}
	}
	return x
}

// operations are what RC has; UC and UD have the first of them, and atomics come last.
var operations = []verbs.WROpcode{verbs.WRSend, verbs.WRSendImm, verbs.WRRDMAWrite, verbs.WRRDMAWriteImm, verbs.WRRDMARead,
	verbs.WRAtomicFetchAdd, verbs.WRAtomicCmpSwp}

const ofUDs, ofUCs = 2, 4
