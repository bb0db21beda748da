package uar

import (
	"math/bits"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// Sink is what a page reports to: the device behind it. Slices are valid during the
// call only.
type Sink interface {
	// Doorbell is an 8-byte doorbell, or what is left of a push that was torn: the
	// first 8 bytes of a WQE, which name the queue and the WQE.
	Doorbell(page uint32, db []byte)
	// BlueFlame is a whole push of 64-byte blocks; the device may use it delay from now.
	BlueFlame(page uint32, wqe []byte, delay sim.Time)
	// Begun is a push of which the device takes these first lines only (Params.BFLines).
	Begun(page uint32, lines []byte)
	// ArmCQ is the 8-byte write at 0x20.
	ArmCQ(page uint32, b []byte)
	// EQ is the 4-byte write at 0x40 (arm) or 0x48.
	EQ(page uint32, b []byte, arm bool)
}

// Counters of a page.
type Counters struct {
	Doorbells     uint64 // 8-byte doorbells
	BlueFlame     uint64 // pushes that arrived whole
	BFCut         uint64 // pushes longer than the lines that the device takes
	Torn          uint64 // pushes that did not, and became doorbells
	Conflicts     uint64 // pushes that found the page busy with another register's
	ConflictDelay sim.Time
	CQArms        uint64
	EQDoorbells   uint64
	Dropped       uint64 // writes to nothing, or to the middle of a push that never began
}

// Add adds o to c.
func (c *Counters) Add(o *Counters) {
	c.Doorbells += o.Doorbells
	c.BlueFlame += o.BlueFlame
	c.BFCut += o.BFCut
	c.Torn += o.Torn
	c.Conflicts += o.Conflicts
	c.ConflictDelay += o.ConflictDelay
	c.CQArms += o.CQArms
	c.EQDoorbells += o.EQDoorbells
	c.Dropped += o.Dropped
}

const (
	block   = prm.WQEBBSize // bytes of one line of a push
	maxHalf = 256           // bytes of the largest half
	regs    = prm.BFRegsPerUAR
)

// push is a push whose lines are still arriving.
type push struct {
	have, want int
	deadline   sim.Time
	buf        [maxHalf]byte
}

// Page is one UAR page.
type Page struct {
	Index   uint32
	Watched bool // the owner has a timer on it
	Counters
	p       *Params
	m       prm.UARMap
	half    int
	bf      bool // the device takes BlueFlame
	open    int  // pushes still arriving
	busyTil sim.Time
	busyReg int
	regTil  [regs]sim.Time // an earlier delayed push of the register takes effect then
	halves  [regs][2]*push
}

// NewPage makes page index of a device whose bfregs have regSize bytes (0: the
// device has no BlueFlame; its registers take doorbells all the same).
func NewPage(index uint32, regSize int, p *Params) *Page {
	g := &Page{Index: index, p: p, bf: regSize > 0, busyReg: -1}
	if regSize == 0 {
		regSize = 2 * maxHalf
	}
	g.m.LogBFRegSize = uint32(bits.Len(uint(regSize)) - 1)
	g.half = int(g.m.HalfSize())
	return g
}

// Write is a posted write of b at off in the page. Assembling reports afterwards
// whether a push waits for more.
func (g *Page) Write(now sim.Time, off uint64, b []byte, s Sink) {
	a := g.m.Decode(off)
	switch {
	case a.Kind == prm.UARKindBF:
		g.writeReg(now, int(a.Reg), int(a.Half), int(a.Off), b, s)
	case a.Kind == prm.UARKindCQArm && len(b) == prm.CQArmDoorbellSize:
		g.CQArms++
		s.ArmCQ(g.Index, b)
	case (a.Kind == prm.UARKindEQArm || a.Kind == prm.UARKindEQUpdate) && len(b) == prm.EQDoorbellSize:
		g.EQDoorbells++
		s.EQ(g.Index, b, a.Kind == prm.UARKindEQArm)
	default:
		g.Dropped++
	}
}

// WriteAhead is Write of what will arrive at a later instant behind all earlier writes:
// what it causes, it says to s with that instant in mind. It reports false, and does
// nothing, unless the write is all of a doorbell or of a push, so that nothing which can
// happen before then changes what it means.
func (g *Page) WriteAhead(at sim.Time, off uint64, b []byte, s Sink) bool {
	a := g.m.Decode(off)
	if g.open > 0 || a.Kind != prm.UARKindBF || a.Off != 0 ||
		len(b) != prm.DoorbellSize && (len(b) < block || prm.CtrlSegment(b).DS()*prm.DSSize > len(b)) {
		return false
	}
	g.writeReg(at, int(a.Reg), int(a.Half), 0, b, s)
	return true
}

// writeReg is a write to half h of register k.
func (g *Page) writeReg(now sim.Time, k, h, at int, b []byte, s Sink) {
	if at%8 != 0 || len(b) < prm.DoorbellSize || at+len(b) > g.half {
		g.Dropped++
		return
	}
	if p := g.halves[k][h]; p != nil && p.have > 0 {
		if at == p.have && len(b)%block == 0 && p.have+len(b) <= p.want {
			p.have += copy(p.buf[at:], b)
			if p.have == p.want {
				p.have = 0
				g.open--
				g.whole(now, k, p.buf[:p.want], s)
			}
			return
		}
		g.tear(p, s)
	}
	switch {
	case at != 0:
		g.Dropped++
	case len(b) == prm.DoorbellSize:
		g.Doorbells++
		s.Doorbell(g.Index, b)
	default:
		g.begin(now, k, h, b, s)
	}
}

// begin is a write of more than a doorbell to the start of a half.
func (g *Page) begin(now sim.Time, k, h int, b []byte, s Sink) {
	want := max(1, (prm.CtrlSegment(b).DS()*prm.DSSize+block-1)/block) * block
	if !g.bf || len(b)%block != 0 || want > g.half {
		g.Torn++
		s.Doorbell(g.Index, b[:8])
		return
	}
	if most := g.p.BFLines * block; want > most && len(b) == most {
		g.BFCut++
		s.Begun(g.Index, b)
		return
	}
	if len(b) >= want {
		g.whole(now, k, b[:want], s)
		return
	}
	p := g.halves[k][h]
	if p == nil {
		p = new(push)
		g.halves[k][h] = p
	}
	p.have, p.want, p.deadline = copy(p.buf[:], b), want, now+g.p.BFTimeout
	g.open++
}

func (g *Page) tear(p *push, s Sink) {
	p.have = 0
	g.open--
	g.Torn++
	s.Doorbell(g.Index, p.buf[:8])
}

// whole is a push that has all its lines.
func (g *Page) whole(now sim.Time, k int, wqe []byte, s Sink) {
	g.BlueFlame++
	conflict := now < g.busyTil && g.busyReg != k
	delay := max(0, g.regTil[k]-now)
	if !conflict || g.p.BFConflict == ConflictNone {
		if conflict {
			g.Conflicts++
		}
		g.occupy(now+delay+g.p.BFBusy, k)
		s.BlueFlame(g.Index, wqe, delay)
		return
	}
	g.Conflicts++
	if g.p.BFConflict == ConflictRefetch {
		s.Doorbell(g.Index, wqe[:8])
		return
	}
	start := max(g.busyTil, now+delay) + g.p.BFConflictCost
	g.ConflictDelay += start - now
	g.regTil[k] = start
	g.occupy(start+g.p.BFBusy, k)
	s.BlueFlame(g.Index, wqe, start-now)
}

func (g *Page) occupy(til sim.Time, k int) { g.busyTil, g.busyReg = til, k }

// Assembling says whether a push waits for more lines.
func (g *Page) Assembling() bool { return g.open > 0 }

// Expire turns the pushes that have waited too long into doorbells.
func (g *Page) Expire(now sim.Time, s Sink) {
	for k := range g.halves {
		for _, p := range g.halves[k] {
			if p != nil && p.have > 0 && p.deadline <= now {
				g.tear(p, s)
			}
		}
	}
}
