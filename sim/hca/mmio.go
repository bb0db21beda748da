package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// latePush is a doorbell or a BlueFlame push that takes effect later.
type latePush struct {
	page uint32
	n    int32
	push bool
	buf  [256]byte
}

// MMIOWrite is a posted write to BAR 0. Writes to what is not an allocated UAR page
// are dropped and counted.
func (d *Device) MMIOWrite(off uint64, p []byte) {
	page := off / pageBytes
	if page >= uint64(len(d.uars)) || d.uars[page] == nil {
		if _, ok := d.memory.page(off); ok {
			d.memory.write(off, p)
			return
		}
		d.c.MMIODropped++
		return
	}
	g := d.uars[page]
	g.Write(d.e.Now(), off%pageBytes, p, (*sink)(d))
	if g.Assembling() && !g.Watched {
		g.Watched = true
		d.partial = append(d.partial, g)
		d.watchPartial()
	}
}

// MMIOWriteAt is MMIOWrite at a later instant, of a whole doorbell or push. The page
// reckons with it now; the queue hears of it then.
func (d *Device) MMIOWriteAt(at sim.Time, off uint64, p []byte) bool {
	page := off / pageBytes
	if page >= uint64(len(d.uars)) || d.uars[page] == nil {
		return false
	}
	d.ahead = at - d.e.Now()
	ok := d.uars[page].WriteAhead(at, off%pageBytes, p, (*sink)(d))
	d.ahead = 0
	return ok
}

func (d *Device) watchPartial() {
	if !d.bfTimer && len(d.partial) > 0 {
		d.bfTimer = true
		d.e.After(d.p.UAR.BFTimeout, d.h.bfExpire, 0)
	}
}

// onBFExpire gives up pushes whose rest does not come.
func (d *Device) onBFExpire(uint64) {
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
func (d *Device) MMIORead(off uint64, p []byte) {
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

// sink is the device as its UAR pages see it (uar.Sink).
type sink Device

func (s *sink) Doorbell(page uint32, db []byte) {
	d := (*Device)(s)
	if d.ahead > 0 {
		d.later(page, db, d.ahead, false)
		return
	}
	d.doorbell(page, db, nil)
}

func (s *sink) BlueFlame(page uint32, wqe []byte, delay sim.Time) {
	d := (*Device)(s)
	if delay += d.ahead; delay > 0 {
		d.later(page, wqe, delay, true)
		return
	}
	d.doorbell(page, wqe, wqe)
}

// later is a doorbell or a push that takes effect after a time.
func (d *Device) later(page uint32, b []byte, delay sim.Time, push bool) {
	var i uint32
	if n := len(d.lateFre); n > 0 {
		i = d.lateFre[n-1]
		d.lateFre = d.lateFre[:n-1]
	} else {
		i = uint32(len(d.late))
		d.late = append(d.late, latePush{})
	}
	l := &d.late[i]
	l.page, l.push, l.n = page, push, int32(copy(l.buf[:], b))
	d.e.After(delay, d.h.bfLate, uint64(i))
}

func (d *Device) onBFLate(i uint64) {
	l := &d.late[i]
	b := l.buf[:l.n]
	if l.push {
		d.doorbell(l.page, b, b)
	} else {
		d.doorbell(l.page, b, nil)
	}
	d.lateFre = append(d.lateFre, uint32(i))
}

// doorbell is a doorbell, or with wqe a push, that names a queue and a WQE. A
// queue of another page is left alone.
func (d *Device) doorbell(page uint32, db, wqe []byte) {
	c := prm.CtrlSegment(db)
	q := d.qpn(c.QPN())
	if q == nil || q.uar != page {
		d.c.DoorbellsForeign++
		return
	}
	q.posted(c.WQEIndex(), c.DS(), wqe)
}

// Begun is a push of which the device takes the first lines only: the rest of the
// WQE is fetched.
func (s *sink) Begun(page uint32, lines []byte) {
	d := (*Device)(s)
	c := prm.CtrlSegment(lines)
	q := d.qpn(c.QPN())
	if q != nil && q.uar == page && q.got == c.WQEIndex() && q.got == q.pi && !q.fetch {
		q.split = inlineParts(lines)
	}
	d.doorbell(page, lines, nil)
}

// inlineParts is the length of a SEND's or WRITE's header with the inline length
// word, and of the inline data behind it; zeros for any other WQE.
func inlineParts(lines []byte) (parts [2]int) {
	c := prm.CtrlSegment(lines)
	at := prm.CtrlSegmentSize
	switch c.Opcode() {
	case prm.WQEOpRDMAWrite, prm.WQEOpRDMAWriteImm:
		at += prm.RaddrSegmentSize
	case prm.WQEOpSend, prm.WQEOpSendImm, prm.WQEOpSendInv:
	default:
		return parts
	}
	seg := prm.InlineSegment(lines[at:])
	n := seg.Len()
	if !seg.Inline() || at+prm.InlineHeaderSize+n > c.DS()*prm.DSSize {
		return parts
	}
	return [2]int{at + prm.InlineHeaderSize, n}
}

func (s *sink) ArmCQ(page uint32, b []byte) {
	d := (*Device)(s)
	db := prm.CQArmDoorbell(b)
	c := d.cqn(db.CQN())
	if c == nil || c.uar != page {
		d.c.DoorbellsForeign++
		return
	}
	c.arm(db.Arm())
}

func (s *sink) EQ(page uint32, b []byte, arm bool) {
	d := (*Device)(s)
	db := prm.EQDoorbell(b)
	q := d.eqn(uint32(db.EQN()))
	if q == nil || q.uar != page {
		d.c.DoorbellsForeign++
		return
	}
	q.consumed(db.CI(), arm)
}
