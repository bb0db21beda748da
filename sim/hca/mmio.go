package hca

import (
	"bytes"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/uar"
)

// doorbells are the registers of the device, and what UAR pages have under way.
type doorbells struct {
	*units
	objects *tables
	qps     *queuePairs
	cqs     *completionQueues
	nic     *nic
	bfTimer bool
	partial []*uar.Page // with pushes that still arrive
	late    sim.Slab[latePush]
	ahead   aheadWrite // the write that is being taken ahead of its place
	delayed sim.Lane   // pushes that a conflict delays
}

// latePush is a doorbell or a BlueFlame push that takes effect later.
type latePush struct {
	page uint32
	n    int32
	push bool
	wait bool // it takes effect later than it arrives
	void bool // its page was freed before it arrived
	aheadWrite
	buf [256]byte
}

// aheadWrite is a register write that was taken before it arrived.
type aheadWrite struct {
	on  bool
	at  sim.Place // it arrives
	off uint64
}

// MMIOWrite is a posted write to BAR 0. Writes to what is not an allocated UAR page
// are dropped and counted.
func (d *doorbells) MMIOWrite(off uint64, p []byte) {
	page := off / pageBytes
	if page >= uint64(len(d.objects.uars)) || d.objects.uars[page] == nil {
		if _, ok := d.memory.page(off); ok {
			d.memory.write(off, p)
			return
		}
		if op, at, ok := d.memory.operation(off); ok {
			d.memory.operate(&d.core, op, at, p, true)
			return
		}
		d.c.MMIODropped++
		return
	}
	g := d.objects.uars[page]
	g.Write(d.e.Now(), off%pageBytes, p, (*sink)(d))
	if g.Assembling() && !g.Watched {
		g.Watched = true
		d.partial = append(d.partial, g)
		d.watchPartial()
	}
}

// MMIOWriteAt is MMIOWrite in a later place, of a whole doorbell or push. The page
// takes it into account now; the queue is rung at that place.
func (d *doorbells) MMIOWriteAt(at sim.Place, off uint64, p []byte) bool {
	page := off / pageBytes
	if page >= uint64(len(d.objects.uars)) || d.objects.uars[page] == nil {
		return false
	}
	d.ahead = aheadWrite{true, at, off}
	ok := d.objects.uars[page].WriteAhead(d.e, at, off%pageBytes, p, (*sink)(d))
	d.ahead.on = false
	return ok
}

// returnAhead takes back what was taken ahead of its place when its page is freed: it
// arrives by MMIOWrite.
func (d *doorbells) returnAhead(page uint32) {
	for i := range uint32(d.late.Len()) {
		l := d.late.At(i)
		if l.on && l.page == page && !d.e.Passed(l.at) {
			l.on, l.void = false, true
			if l.wait {
				d.e.AtPlace(l.at, d.h.bfReturn, uint64(i))
			}
		}
	}
}

// onBFReturn is the arrival of such a write.
func (d *doorbells) onBFReturn(i uint64) {
	l := d.late.At(uint32(i))
	d.MMIOWrite(l.off, bytes.Clone(l.buf[:l.n]))
}

func (d *doorbells) watchPartial() {
	if !d.bfTimer && len(d.partial) > 0 {
		d.bfTimer = true
		d.e.After(d.p.UAR.BFTimeout, d.h.bfExpire, 0)
	}
}

// onBFExpire gives up pushes whose rest does not come.
func (d *doorbells) onBFExpire(uint64) {
	d.bfTimer = false
	keep := d.partial[:0]
	for _, g := range d.partial {
		g.Expire(d.e.Now(), (*sink)(d))
		if g.Assembling() {
			keep = append(keep, g)
		} else {
			g.Watched = false
		}
	}
	d.partial = keep
	d.watchPartial()
}

// MMIORead fills p from BAR 0. Registers read as 0 but for the revisions at the head
// of the init segment and the clock; the rest of it belongs to the seam below commands,
// which is not modelled yet.
func (d *doorbells) MMIORead(off uint64, p []byte) {
	clear(p)
	if off >= prm.InitSegTimer && off < prm.InitSegTimer+prm.TimerSize {
		var b [prm.TimerSize]byte
		prm.Timer(b[:]).Set(d.timestamp(d.e.Now()))
		copy(p, b[off-prm.InitSegTimer:])
		return
	}
	if _, ok := d.memory.page(off); ok {
		d.memory.read(off, p)
		return
	}
	if op, at, ok := d.memory.operation(off); ok {
		d.memory.operate(&d.core, op, at, p, false)
		return
	}
	if off >= prm.InitSegHeadSize {
		return
	}
	var head [prm.InitSegHeadSize]byte
	s := prm.InitSeg(head[:])
	s.SetFWRev(d.p.FirmwareMajor, d.p.FirmwareMinor)
	s.SetCmdIfRev(prm.CmdIfRevision)
	s.SetFWSub(d.p.FirmwareSub)
	copy(p, head[off:])
}

// sink is the doorbells as UAR pages see them (uar.Sink).
type sink doorbells

func (s *sink) Doorbell(page uint32, db []byte) {
	d := (*doorbells)(s)
	if d.ahead.on {
		d.later(page, db, 0, false)
		return
	}
	d.doorbell(page, db, nil)
}

func (s *sink) BlueFlame(page uint32, wqe []byte, delay sim.Time) {
	d := (*doorbells)(s)
	if d.ahead.on || delay > 0 {
		d.later(page, wqe, delay, true)
		return
	}
	d.doorbell(page, wqe, wqe)
}

// later is a doorbell or a push that takes effect a time after it has arrived. A push that
// a conflict delays is in a lane: its event is set earlier when it was taken ahead.
func (d *doorbells) later(page uint32, b []byte, delay sim.Time, push bool) {
	i := d.late.Get()
	l := d.late.At(i)
	l.page, l.push, l.n = page, push, int32(len(b))
	if len(b) == prm.WQEBBSize { // the rule
		*(*[prm.WQEBBSize]byte)(l.buf[:]) = [prm.WQEBBSize]byte(b)
	} else {
		copy(l.buf[:], b)
	}
	l.wait, l.void, l.aheadWrite = delay > 0, false, d.ahead
	at := d.e.Now()
	if l.on {
		at = l.at.Time()
	}
	if l.wait {
		d.delayed.At(at+delay, d.h.bfLate, uint64(i))
	} else {
		d.e.AtPlace(l.at, d.h.bfLate, uint64(i))
	}
}

// onBFLate is what later put off.
//
//go:noinline
func (d *doorbells) onBFLate() sim.Handler {
	return func(i uint64) {
		l := d.late.At(uint32(i))
		l.on = false
		if l.void {
			d.onVoid(l, i)
		} else {
			b := l.buf[:l.n]
			wqe := b
			if !l.push {
				wqe = nil
			}
			d.doorbell(l.page, b, wqe)
		}
		d.late.Put(uint32(i))
	}
}

// onVoid is what later put off for a page that was freed before.
//
//go:noinline
func (d *doorbells) onVoid(l *latePush, i uint64) {
	if !l.wait {
		d.onBFReturn(i)
	}
}

// doorbell is a doorbell, or with wqe a push, that names a queue and a WQE. A
// queue of another page is left alone.
func (d *doorbells) doorbell(page uint32, db, wqe []byte) {
	c := prm.CtrlSegment(db)
	q := d.qps.qpn(c.QPN())
	if q == nil || q.uar != page {
		if d.nic == nil || !d.nic.senders.doorbell(page, c, wqe) {
			d.c.DoorbellsForeign++
		}
		return
	}
	q.requester.posted(c.WQEIndex(), c.DS(), wqe)
}

// Begun is a push of which the device takes the first lines only: the rest of the
// WQE is fetched.
func (s *sink) Begun(page uint32, lines []byte) {
	d := (*doorbells)(s)
	c := prm.CtrlSegment(lines)
	q := d.qps.qpn(c.QPN())
	if q != nil && q.uar == page {
		q.requester.sq.begun(c.WQEIndex(), lines)
	}
	d.doorbell(page, lines, nil)
}

func (s *sink) ArmCQ(page uint32, b []byte) {
	d := (*doorbells)(s)
	db := prm.CQArmDoorbell(b)
	c := d.cqs.at(db.CQN())
	if c == nil || c.uar != page {
		d.c.DoorbellsForeign++
		return
	}
	c.arm(db.Arm())
}

func (s *sink) EQ(page uint32, b []byte, arm bool) {
	d := (*doorbells)(s)
	db := prm.EQDoorbell(b)
	q := d.events.at(uint32(db.EQN()))
	if q == nil || q.uar != page {
		d.c.DoorbellsForeign++
		return
	}
	q.consumed(db.CI(), arm)
}
