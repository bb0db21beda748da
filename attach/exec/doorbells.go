//go:build linux && amd64

package exec

import (
	"bytes"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rdmasim/rdmasim/attach/exec/uverbs"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// rung reports whether something lies in the registers of the page.
func (p *page) rung() bool {
	for k := range p.words {
		for _, w := range p.words[k] {
			if atomic.LoadUint64(w) != 0 {
				return true
			}
		}
	}
	return atomic.LoadUint64(p.arm) != 0
}

// byCommand reports whether a QP that a program has made by a command of its own rings at the page.
func (p *page) byCommand() bool { return p.uar.commands > 0 }

// poll takes what lies in the registers of the page.
func (p *page) poll(e *engine) (rung bool) {
	for k := range p.words {
		for h, w := range p.words[k] {
			if atomic.LoadUint64(w) != 0 {
				rung = true
				e.catchUp()
				p.takeDoorbell(e, uint32(k), uint32(h))
				e.streams.DropReadAhead()
			}
		}
	}
	if atomic.LoadUint64(p.arm) != 0 {
		rung = true
		e.catchUp()
		p.takeArm()
		e.streams.DropReadAhead()
	}
	return rung
}

// takeDoorbell passes a store to half h of register k on to the device.
func (p *page) takeDoorbell(e *engine, k, h uint32) {
	r := &p.uar.regs[k]
	off := p.m.BFReg(k, h)
	half := p.mem[off : off+p.m.HalfSize()]
	b := p.found[:len(half)]
	*(*uint64)(unsafe.Pointer(&b[0])) = atomic.SwapUint64(p.words[k][h], 0)
	c := prm.CtrlSegment(b)
	n := max(1, (c.DS()*prm.DSSize+prm.WQEBBSize-1)/prm.WQEBBSize)
	var rang *doorbellQP
	for _, q := range r.qps {
		if q.QPN == c.QPN() {
			rang = q
		}
	}
	if e.log != nil {
		p.undecided[k].decide(e.log, h)
	}
	b = b[:min(len(b), n*prm.WQEBBSize)]
	arrived := 0
	if rang != nil && n*prm.WQEBBSize <= len(half) {
		arrived = p.forwardPush(rang, b, half, off)
	}
	pushed := arrived > 0
	if !pushed {
		arrived = prm.DoorbellSize
		b = b[:arrived]
		p.f.dev.link.PostNow(p.uar.bar+uint64(off), b)
	}
	if e.log != nil {
		line := uarLine{p: p, reg: k, half: h, at: e.m.eng.Now(), b: b, arrived: arrived, push: pushed}
		p.logStore(e.log, line, half, rang, n*prm.WQEBBSize)
	}
	if rang != nil {
		rang.sent = c.WQEIndex() + uint16(n)
		if rang.BFReg == uverbs.AnyBFReg && !rang.placed {
			rang.placed = true
			p.uar.remove(rang.QP, int(k))
		}
	}
	if len(r.qps) > 1 {
		p.ringOverwritten(r, off)
	}
}

// A half is looked at pushSpins times for the rest of a push, whose bytes follow the first ones
// within nanoseconds unless the program is interrupted just there. Then it passes for a doorbell,
// which has the same effect. Where a tester tears pushes it has not, so that the supervisor waits
// up to tornSleeps times tornSleep for such a program.
const (
	pushSpins  = 200
	tornSleeps = 20_000
	tornSleep  = 20 * time.Microsecond
)

// awaitPush waits for something to come true that the rest of a push brings.
func awaitPush(torn bool, come func() bool) bool {
	for range pushSpins {
		if come() {
			return true
		}
	}
	for range tornSleeps {
		if !torn {
			return false
		}
		time.Sleep(tornSleep)
		if come() {
			return true
		}
	}
	return false
}

// forwardPush sends a WQE on to the device if the program pushed it (BlueFlame), and did not only
// ring: then more than the doorbell lies in the half. The device gets the bytes of the send queue,
// which are the same and complete, or as many of them as a tester lets pass. The half is cleared,
// so that the next store to it shows again what it is. arrived is what the device got, 0 if it was
// no push.
func (p *page) forwardPush(q *doorbellQP, b, half []byte, off uint32) (arrived int) {
	rest := half[prm.DoorbellSize:len(b)]
	torn := p.f.dev.torn.n > 0
	if !awaitPush(torn, func() bool { return !allZero(rest) }) {
		return 0
	}
	wqe, ok := p.readWQE(q, prm.CtrlSegment(b).WQEIndex(), len(b))
	if !ok {
		return 0
	}
	same := awaitPush(torn, func() bool { return bytes.Equal(rest, wqe[prm.DoorbellSize:]) })
	clear(half[prm.DoorbellSize:])
	if !same {
		return 0 // bytes of an earlier push that came late
	}
	copy(b, wqe)
	arrived = p.f.dev.tear(len(b))
	p.f.dev.link.PostNow(p.uar.bar+uint64(off), b[:arrived])
	return arrived
}

// readWQE reads a WQE of n bytes from the send queue of a QP.
func (p *page) readWQE(q *doorbellQP, index uint16, n int) (wqe []byte, ok bool) {
	wqe = p.wqe[:n]
	at := uint64(index) % uint64(max(1, q.SQCount)) * prm.WQEBBSize
	first := min(uint64(n), uint64(q.SQCount)*prm.WQEBBSize-at)
	err := p.f.proc.mem.ReadAt(mem.VA(q.SQAddr+at), wqe[:first])
	if err == nil && first < uint64(n) {
		err = p.f.proc.mem.ReadAt(mem.VA(q.SQAddr), wqe[first:])
	}
	return wqe, err == nil
}

// logStore logs a store. One that seems to be a doorbell stays open if the WQE of size bytes that
// it names could have been pushed.
func (p *page) logStore(l *uarLog, x uarLine, half []byte, rang *doorbellQP, size int) {
	if !x.push && rang != nil && size <= len(half) {
		if wqe, ok := p.readWQE(rang, prm.CtrlSegment(x.b).WQEIndex(), size); ok {
			x.open = true
			p.undecided[x.reg].keep(l.add(x), x.half, half, wqe)
			return
		}
	}
	l.add(x)
}

// allZero reports whether nothing has been stored to the words of b.
func allZero(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if atomic.LoadUint64((*uint64)(unsafe.Pointer(&b[0]))) != 0 {
			return false
		}
	}
	return true
}

// ringOverwritten rings for the queues of a shared register whose doorbell was overwritten by
// that of another queue: their send counters have changed.
func (p *page) ringOverwritten(r *register, off uint32) {
	for _, q := range r.qps {
		if err := p.f.proc.mem.ReadAt(mem.VA(q.DBAddr), p.rec[:]); err != nil {
			continue
		}
		sent := prm.QPDBRec(p.rec[:]).Send()
		if sent == q.sent {
			continue
		}
		q.sent = sent
		var db [prm.CtrlSegmentSize]byte
		c := prm.CtrlSegment(db[:])
		c.SetWQEIndex(sent - 1) // one block, whose end is the counter
		c.SetQPN(q.QPN)
		c.SetDS(prm.WQEBBSize / prm.DSSize)
		p.f.dev.link.PostNow(p.uar.bar+uint64(off), db[:prm.DoorbellSize])
	}
}

// takeArm passes a store to the page's CQ doorbell, which all CQs of a context share, on to the
// device.
func (p *page) takeArm() {
	var b [prm.CQArmDoorbellSize]byte
	*(*uint64)(unsafe.Pointer(&b[0])) = atomic.SwapUint64(p.arm, 0)
	d := prm.CQArmDoorbell(b[:])
	p.f.dev.link.PostNow(p.uar.bar+prm.UARCQArm, b[:])
	for _, c := range p.uar.cqs {
		if c.CQN == d.CQN() {
			c.arm = d.Arm()
		}
	}
	if len(p.uar.cqs) < 2 {
		return
	}
	for _, c := range p.uar.cqs {
		if err := p.f.proc.mem.ReadAt(mem.VA(c.DBAddr), p.rec[:]); err != nil {
			continue
		}
		w := prm.CQDBRec(p.rec[:]).Arm()
		if w == c.arm || w == neverArmed {
			continue
		}
		c.arm = w
		prm.CQArmDoorbell(b[:]).Set(w, c.CQN)
		p.f.dev.link.PostNow(p.uar.bar+prm.UARCQArm, b[:])
	}
}
