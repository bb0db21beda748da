//go:build linux && amd64

package exec

import (
	"bytes"
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/uverbs"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// page is a page of registers that a program maps: plain memory, in which stores are
// found by looking. A doorbell is never zero, as it holds the number of a queue, so
// each is taken by an exchange with zero and none is seen twice or missed, but for those
// that later ones of the same register overwrite. What to do is told by the records
// that programs write before they ring.
type page struct {
	f   *file
	uar *uarPage
	mem []byte
	m   prm.UARMap
	// The heads of the halves of the registers that queues of programs ring, and the
	// doorbell of CQs.
	words [prm.UserBFRegsPerUAR][2]*uint64
	arm   *uint64
	// Scratch of one store: a half as found, a WQE of the ring, a record.
	found, wqe [maxHalf]byte
	rec        [prm.DBRecSize]byte
	unsure     [prm.UserBFRegsPerUAR]unsure // for the log
}

const (
	maxHalf = 256        // length of the largest half of a register
	noHalf  = ^uint32(0) // no number of a half
)

// uarPage is a page in BAR 0 with the queues that ring there. The device file may show
// it at several places, of which a program maps one.
type uarPage struct {
	bar  uint64
	regs [prm.UserBFRegsPerUAR]register
	cqs  []*armedCQ
	file []uint64 // where in the device file
	view []*page  // those mapped
}

func (u *uarPage) quiet() bool {
	return len(u.cqs) == 0 && len(u.regs[0].qps) == 0 && len(u.regs[1].qps) == 0
}

// register is a bfreg with the queues that ring it.
type register struct{ qps []*ringer }

// ringer is a QP with the send counter that the device knows.
type ringer struct {
	*uverbs.QP
	sent   uint16
	placed bool // where it rings is known
}

// armedCQ is a CQ with the arm word seen last.
type armedCQ struct {
	*uverbs.CQ
	arm prm.ArmWord
}

// neverArmed is no arm word: the first one may be zero, and must look new.
const neverArmed = prm.ArmWord(0xffffffff)

var _ uverbs.Pages = (*file)(nil)

// MapUAR implements uverbs.Pages. Pages of the first mmap command are looked at from
// now on; those of others when the program maps them, which we are told.
func (f *file) MapUAR(n uint64, m *cpu.Mapping) error {
	if f.pages[n] != nil || n >= deviceFileSize/pageSize {
		return fmt.Errorf("page %d of the device file: %w", n, syscall.EINVAL)
	}
	u := f.uar(m.Off)
	if u == nil {
		u = &uarPage{bar: m.Off}
		f.uars = append(f.uars, u)
	}
	u.file = append(u.file, n)
	f.pages[n] = &page{f: f, uar: u}
	if n < firstOtherOffset/pageSize {
		return f.look(n)
	}
	return nil
}

// look maps a page of the file here, to find what programs store there.
func (f *file) look(n uint64) error {
	p := f.pages[n]
	if p.mem != nil {
		return nil
	}
	b, err := unix.Mmap(int(f.own.Fd()), int64(n*pageSize), pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map page %d of the device file: %w", n, err)
	}
	p.mem = b
	size := f.dev.hca.Params().BFRegSize
	if size == 0 {
		size = 2 * maxHalf // without BlueFlame the registers take doorbells all the same
	}
	p.m.LogBFRegSize = uint32(bits.Len(uint(size)) - 1)
	for k := range p.words {
		for h := range p.words[k] {
			p.words[k][h] = p.word(p.m.BFReg(uint32(k), uint32(h)))
		}
	}
	p.arm = p.word(prm.UARCQArm)
	p.uar.view = append(p.uar.view, p)
	if !p.uar.quiet() {
		f.s.eng.addPage(p)
	}
	return nil
}

func (p *page) word(off uint32) *uint64 { return (*uint64)(unsafe.Pointer(&p.mem[off])) }

// UnmapUAR implements uverbs.Pages.
func (f *file) UnmapUAR(n uint64) {
	p := f.pages[n]
	if p == nil {
		return
	}
	delete(f.pages, n)
	f.s.eng.removePage(p)
	u := p.uar
	u.file = slices.DeleteFunc(u.file, func(x uint64) bool { return x == n })
	u.view = slices.DeleteFunc(u.view, func(x *page) bool { return x == p })
	if len(u.file) == 0 {
		f.uars = slices.DeleteFunc(f.uars, func(x *uarPage) bool { return x == u })
	}
	if p.mem == nil {
		return
	}
	if l := f.s.eng.log; l != nil {
		for k := range p.unsure {
			p.unsure[k].settle(l, noHalf)
		}
	}
	_ = unix.Munmap(p.mem)
}

// uar is the page at a place in BAR 0, nil when the file has none there.
func (f *file) uar(bar uint64) *uarPage {
	for _, u := range f.uars {
		if u.bar == bar {
			return u
		}
	}
	return nil
}

// change adds or removes a queue of the page at bar; pages without queues are not
// looked at.
func (f *file) change(bar uint64, do func(u *uarPage)) {
	u := f.uar(bar)
	if u == nil {
		return
	}
	was := u.quiet()
	do(u)
	if now := u.quiet(); now != was {
		for _, p := range u.view {
			if now {
				f.s.eng.removePage(p)
			} else {
				f.s.eng.addPage(p)
			}
		}
	}
}

// AddQP implements uverbs.Pages. Which register of a dynamic page a library has chosen
// shows when it rings: until then the QP is at all of them.
func (f *file) AddQP(q *uverbs.QP) {
	f.workOf(q, true)
	f.change(q.UAROff, func(u *uarPage) {
		x := &ringer{QP: q}
		for k := range u.regs {
			if q.Rings(uint32(k)) {
				u.regs[k].qps = append(u.regs[k].qps, x)
			}
		}
	})
}

// RemoveQP implements uverbs.Pages.
func (f *file) RemoveQP(q *uverbs.QP) {
	f.workOf(q, false)
	f.change(q.UAROff, func(u *uarPage) { u.remove(q, len(u.regs)) })
}

// remove takes a QP from the registers of the page but register k.
func (u *uarPage) remove(q *uverbs.QP, k int) {
	for i := range u.regs {
		if r := &u.regs[i]; i != k {
			r.qps = slices.DeleteFunc(r.qps, func(x *ringer) bool { return x.QP == q })
		}
	}
}

// AddCQ implements uverbs.Pages. The arm word of its record begins as zero, and so
// does the first arm: what never occurs is put there, so that it shows.
func (f *file) AddCQ(c *uverbs.CQ) {
	f.completions(c, true)
	f.change(c.UAROff, func(u *uarPage) { u.cqs = append(u.cqs, &armedCQ{CQ: c, arm: neverArmed}) })
	var rec [prm.DBRecSize]byte
	prm.CQDBRec(rec[:]).SetArm(neverArmed)
	_ = f.proc.mem.WriteAt(mem.VA(c.DBAddr+prm.DBRecSize/2), rec[prm.DBRecSize/2:])
}

// RemoveCQ implements uverbs.Pages.
func (f *file) RemoveCQ(c *uverbs.CQ) {
	f.change(c.UAROff, func(u *uarPage) {
		u.cqs = slices.DeleteFunc(u.cqs, func(x *armedCQ) bool { return x.CQ == c })
	})
	f.completions(c, false)
}

// MoveCQ implements uverbs.Pages: a CQ is known by its number and its record, which
// stay.
func (f *file) MoveCQ(c *uverbs.CQ, was uverbs.CQ) {
	f.completions(&was, false)
	f.completions(c, true)
}

// AddSRQ implements uverbs.Pages.
func (f *file) AddSRQ(q *uverbs.SRQ) { f.work(q.Addr, uint64(q.Count)<<q.Shift, true) }

// RemoveSRQ implements uverbs.Pages.
func (f *file) RemoveSRQ(q *uverbs.SRQ) { f.work(q.Addr, uint64(q.Count)<<q.Shift, false) }

// poll takes what lies in the registers of the page.
func (p *page) poll(e *engine) (rung bool) {
	for k := range p.words {
		for h, w := range p.words[k] {
			if atomic.LoadUint64(w) != 0 {
				rung = true
				e.catchUp()
				p.ring(e, uint32(k), uint32(h))
				e.streams.Fresh()
			}
		}
	}
	if atomic.LoadUint64(p.arm) != 0 {
		rung = true
		e.catchUp()
		p.armed()
		e.streams.Fresh()
	}
	return rung
}

// ring takes a store to half h of register k.
func (p *page) ring(e *engine, k, h uint32) {
	r := &p.uar.regs[k]
	off := p.m.BFReg(k, h)
	half := p.mem[off : off+p.m.HalfSize()]
	b := p.found[:len(half)]
	*(*uint64)(unsafe.Pointer(&b[0])) = atomic.SwapUint64(p.words[k][h], 0)
	c := prm.CtrlSegment(b)
	n := max(1, (c.DS()*prm.DSSize+prm.WQEBBSize-1)/prm.WQEBBSize)
	var rang *ringer
	for _, q := range r.qps {
		if q.QPN == c.QPN() {
			rang = q
		}
	}
	if e.log != nil {
		p.unsure[k].settle(e.log, h)
	}
	b = b[:min(len(b), n*prm.WQEBBSize)]
	pushed := rang != nil && n*prm.WQEBBSize <= len(half) && p.push(rang, b, half, off)
	if !pushed {
		b = b[:prm.DoorbellSize]
		p.f.dev.link.PostNow(p.uar.bar+uint64(off), b)
	}
	if e.log != nil {
		p.note(e.log, k, h, b, half, rang, pushed, n*prm.WQEBBSize)
	}
	if rang != nil {
		rang.sent = c.WQEIndex() + uint16(n)
		if rang.BFReg == uverbs.AnyBFReg && !rang.placed {
			rang.placed = true
			p.uar.remove(rang.QP, int(k))
		}
	}
	if len(r.qps) > 1 {
		p.others(r, off)
	}
}

// pushSpins is how often a half is looked at for the rest of a push, whose bytes follow
// the first ones within nanoseconds unless the program is interrupted just there.
const pushSpins = 200

// push sends a WQE on to the device if the program pushed it (BlueFlame), and did not
// only ring: then more than the doorbell lies in the half. The bytes that the device
// gets are those of the ring, which are the same and all there. The half is cleared, so
// that the next store to it shows again what it is.
func (p *page) push(q *ringer, b, half []byte, off uint32) bool {
	rest := half[prm.DoorbellSize:len(b)]
	for spin := 0; empty(rest); spin++ {
		if spin == pushSpins {
			return false
		}
	}
	wqe, ok := p.posted(q, prm.CtrlSegment(b).WQEIndex(), len(b))
	if !ok {
		return false
	}
	same := false
	for spin := 0; !same && spin < pushSpins; spin++ {
		same = bytes.Equal(rest, wqe[prm.DoorbellSize:])
	}
	clear(half[prm.DoorbellSize:])
	if !same {
		return false // bytes of an earlier push that came late
	}
	copy(b, wqe)
	p.f.dev.link.PostNow(p.uar.bar+uint64(off), b)
	return true
}

// posted is a WQE of n bytes as it lies in the ring of a QP.
func (p *page) posted(q *ringer, index uint16, n int) (wqe []byte, ok bool) {
	wqe = p.wqe[:n]
	at := uint64(index) % uint64(max(1, q.SQCount)) * prm.WQEBBSize
	first := min(uint64(n), uint64(q.SQCount)*prm.WQEBBSize-at)
	err := p.f.proc.mem.ReadAt(mem.VA(q.SQAddr+at), wqe[:first])
	if err == nil && first < uint64(n) {
		err = p.f.proc.mem.ReadAt(mem.VA(q.SQAddr), wqe[first:])
	}
	return wqe, err == nil
}

// note logs a store of b to half h of register k. One that seems to be a doorbell stays
// open if the WQE of size bytes that it names could have been pushed.
func (p *page) note(l *uarLog, k, h uint32, b, half []byte, rang *ringer, pushed bool, size int) {
	if !pushed && rang != nil && size <= len(half) {
		if wqe, ok := p.posted(rang, prm.CtrlSegment(b).WQEIndex(), size); ok {
			p.unsure[k].doubt(l.add(p, k, h, b, pushed, true), h, half, wqe)
			return
		}
	}
	l.add(p, k, h, b, pushed, false)
}

// empty reports whether nothing has been stored to the words of b.
func empty(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if atomic.LoadUint64((*uint64)(unsafe.Pointer(&b[0]))) != 0 {
			return false
		}
	}
	return true
}

// others rings for the queues of a shared register whose doorbell another one has
// overwritten: their send counters tell.
func (p *page) others(r *register, off uint32) {
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

// armed takes a store to the page's CQ doorbell, which all CQs of a context share.
func (p *page) armed() {
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

// mapped prepares page n of the device file, which the program maps now.
func (f *file) mapped(n uint64) syscall.Errno {
	if f.pages[n] == nil {
		if e := f.verbs.Mmap(n); e != 0 {
			return e
		}
	}
	if f.pages[n] != nil {
		if err := f.look(n); err != nil {
			return errno(err)
		}
	}
	return 0
}
