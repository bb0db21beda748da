package uar

import (
	"cmp"
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

// Busy is how long pushes have kept the page, by now; the owner has settled it.
func (g *Page) Busy(now sim.Time) sim.Time { return g.busy - max(0, g.busyEnd-now) }

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
	tally        *tally  // of the write that is being taken ahead; nil: it counts at once
	ahead        []ahead // writes that were taken ahead, oldest first
	settled      int     // of them have been counted
	p            *Params
	m            prm.UARMap
	half         int
	bf           bool // the device takes BlueFlame
	open         int  // pushes still arriving
	busyUntil    sim.Time
	busyReg      int
	busy         sim.Time       // in all, of what counts
	busyEnd      sim.Time       // busyUntil, of what counts
	delayedUntil [regs]sim.Time // an earlier delayed push of the register takes effect then
	halves       [regs][2]*push
}

// ahead is a write that counts once its place has passed.
type ahead struct {
	at sim.Place
	tally
}

// tally is what one write counts.
type tally struct {
	delay    sim.Time // of a push by a conflict
	busy     sim.Time // that a push adds
	until    sim.Time // and when it ends
	what     outcome
	conflict bool
}

// outcome is what becomes of a write.
type outcome uint8

const (
	doorbell outcome = iota
	blueFlame
	cut
	torn
	dropped
)

// count counts what became of a write.
func (g *Page) count(what outcome) {
	if g.tally != nil {
		g.tally.what = what
		return
	}
	g.Counters.count(what)
}

// conflict counts a push that found the page busy, and was delayed.
func (g *Page) conflict(delay sim.Time) {
	if g.tally != nil {
		g.tally.conflict, g.tally.delay = true, delay
		return
	}
	g.Conflicts++
	g.ConflictDelay += delay
}

func (c *Counters) count(what outcome) {
	if what == blueFlame { // the rule
		c.BlueFlame++
		return
	}
	c.countElse(what)
}

//go:noinline
func (c *Counters) countElse(what outcome) {
	switch what {
	case doorbell:
		c.Doorbells++
	case cut:
		c.BFCut++
	case torn:
		c.Torn++
	case dropped:
		c.Dropped++
	}
}

// NewPage makes page index of a device whose bfregs have regSize bytes (0: the
// device has no BlueFlame; its registers take doorbells all the same).
func NewPage(index uint32, regSize int, p *Params) *Page {
	g := &Page{Index: index, p: p, bf: regSize > 0, busyReg: -1}
	regSize = cmp.Or(regSize, 2*maxHalf)
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
		g.count(dropped)
	}
}

// WriteAhead is Write of what will arrive in a later place, behind all earlier writes: what
// it causes, it says to sink with that instant in mind. It reports false, and does nothing,
// unless the write is all of a doorbell or of a push. Nothing but earlier writes decides
// what becomes of such a write, and so the page may reckon with it now; what everybody can
// see, the counters, Settle changes when the place has passed.
func (g *Page) WriteAhead(e *sim.Engine, at sim.Place, off uint64, b []byte, s Sink) bool {
	a := g.m.Decode(off)
	if g.open > 0 || a.Kind != prm.UARKindBF || a.Off != 0 ||
		len(b) != prm.DoorbellSize && (len(b) < block || prm.CtrlSegment(b).DS()*prm.DSSize > len(b)) {
		return false
	}
	switch {
	case g.ahead == nil:
		g.ahead = make([]ahead, 0, 64)
	case len(g.ahead) == cap(g.ahead):
		g.Settle(e)
	}
	g.ahead = append(g.ahead, ahead{at: at})
	g.tally = &g.ahead[len(g.ahead)-1].tally
	if len(b) == block && g.bf && g.half >= block { // a whole push, as nearly all are; no other waits for more lines
		g.whole(at.Time(), int(a.Reg), b, s)
	} else {
		g.writeReg(at.Time(), int(a.Reg), int(a.Half), 0, b, s)
	}
	g.tally = nil
	return true
}

// Settle counts the writes that were taken ahead of places that have passed.
func (g *Page) Settle(e *sim.Engine) {
	n := g.settled
	for ; n < len(g.ahead) && e.Passed(g.ahead[n].at); n++ {
		w := &g.ahead[n]
		g.Counters.count(w.what)
		if w.busy > 0 {
			g.busy, g.busyEnd = g.busy+w.busy, max(g.busyEnd, w.until)
		}
		if w.conflict {
			g.conflict(w.delay)
		}
	}
	switch {
	case n == len(g.ahead):
		g.ahead, n = g.ahead[:0], 0
	case n >= 32 && 2*n >= len(g.ahead):
		g.ahead, n = g.ahead[:copy(g.ahead, g.ahead[n:])], 0
	}
	g.settled = n
}

// writeReg is a write to half h of register k.
func (g *Page) writeReg(now sim.Time, k, h, at int, b []byte, s Sink) {
	if at%8 != 0 || len(b) < prm.DoorbellSize || at+len(b) > g.half {
		g.count(dropped)
		return
	}
	if p := g.halves[k][h]; p != nil && p.have > 0 && g.goOn(now, k, p, at, b, s) {
		return
	}
	if at == 0 && len(b) > prm.DoorbellSize {
		g.begin(now, k, h, b, s)
		return
	}
	g.small(at, b, s)
}

// goOn is a write to a half in which a push waits for more lines. It reports whether the
// write is one of them; otherwise the push is torn.
//
//go:noinline
func (g *Page) goOn(now sim.Time, k int, p *push, at int, b []byte, s Sink) bool {
	if at != p.have || len(b)%block != 0 || p.have+len(b) > p.want {
		g.tear(p, s)
		return false
	}
	p.have += copy(p.buf[at:], b)
	if p.have == p.want {
		p.have = 0
		g.open--
		g.whole(now, k, p.buf[:p.want], s)
	}
	return true
}

// small is a doorbell, or a write that is neither one nor the start of a push.
//
//go:noinline
func (g *Page) small(at int, b []byte, s Sink) {
	if at != 0 {
		g.count(dropped)
		return
	}
	g.count(doorbell)
	s.Doorbell(g.Index, b)
}

// begin is a write of more than a doorbell to the start of a half.
func (g *Page) begin(now sim.Time, k, h int, b []byte, s Sink) {
	want := int(max(1, (uint(prm.CtrlSegment(b).DS())*prm.DSSize+block-1)/block)) * block
	if g.bf && len(b)%block == 0 && want <= g.half && len(b) >= want {
		g.whole(now, k, b[:want], s)
		return
	}
	g.beginPart(now, k, h, b, want, s)
}

// beginPart is begin of a push whose other lines are still to come, or that is none.
//
//go:noinline
func (g *Page) beginPart(now sim.Time, k, h int, b []byte, want int, s Sink) {
	if !g.bf || len(b)%block != 0 || want > g.half {
		g.count(torn)
		s.Doorbell(g.Index, b[:8])
		return
	}
	if most := g.p.BFLines * block; want > most && len(b) == most {
		g.count(cut)
		s.Begun(g.Index, b)
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
	g.count(torn)
	s.Doorbell(g.Index, p.buf[:8])
}

// whole is a push that has all its lines.
func (g *Page) whole(now sim.Time, k int, wqe []byte, s Sink) {
	g.count(blueFlame)
	delay := max(0, g.delayedUntil[k]-now)
	if now < g.busyUntil && g.busyReg != k {
		g.conflicting(now, delay, k, wqe, s)
		return
	}
	g.occupy(now+delay, k)
	s.BlueFlame(g.Index, wqe, delay)
}

// conflicting is a push that finds the page busy with another register.
func (g *Page) conflicting(now, delay sim.Time, k int, wqe []byte, s Sink) {
	if g.p.BFConflict == ConflictNone {
		g.conflict(0)
		g.occupy(now+delay, k)
		s.BlueFlame(g.Index, wqe, delay)
		return
	}
	if g.p.BFConflict == ConflictRefetch {
		g.conflict(0)
		s.Doorbell(g.Index, wqe[:8])
		return
	}
	start := max(g.busyUntil, now+delay) + g.p.BFConflictCost
	g.conflict(start - now)
	g.delayedUntil[k] = start
	g.occupy(start, k)
	s.BlueFlame(g.Index, wqe, start-now)
}

// occupy has a push keep the page from a time; what it waited for the page, and paid for that,
// counts as the page's work.
func (g *Page) occupy(from sim.Time, k int) {
	until := from + g.p.BFBusy
	if g.busyReg == k || g.p.BFConflict != ConflictSerialize {
		from = max(from, g.busyUntil)
	} else if from > g.busyUntil {
		from = max(g.busyUntil, from-g.p.BFConflictCost)
	}
	busy := max(0, until-from)
	g.busyUntil, g.busyReg = until, k
	if g.tally != nil {
		g.tally.busy, g.tally.until = busy, until
		return
	}
	g.busy, g.busyEnd = g.busy+busy, max(g.busyEnd, until)
}

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
