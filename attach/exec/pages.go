//go:build linux && amd64

package exec

import (
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
	f    *file
	mem  []byte
	bar  uint64 // of the page in BAR 0
	m    prm.UARMap
	regs [prm.BFRegsPerUAR]register
	cqs  []*armedCQ
	arm  *uint64
	// Scratch of one store: a half as found, a WQE of the ring, a record.
	found, wqe [maxHalf]byte
	rec        [prm.DBRecSize]byte
}

// maxHalf is the length of the largest half of a register.
const maxHalf = 256

// register is a bfreg with the queues that ring it.
type register struct {
	qps   []*ringer
	words [2]*uint64 // the heads of the halves
}

// ringer is a QP with the send counter that the device knows.
type ringer struct {
	*uverbs.QP
	sent uint16
}

// armedCQ is a CQ with the arm word seen last.
type armedCQ struct {
	*uverbs.CQ
	arm prm.ArmWord
}

// neverArmed is no arm word: the first one may be zero, and must look new.
const neverArmed = prm.ArmWord(0xffffffff)

var _ uverbs.Pages = (*file)(nil)

// MapUAR implements uverbs.Pages.
func (f *file) MapUAR(n uint64, m *cpu.Mapping) error {
	if f.pages[n] != nil || n >= deviceFileSize/pageSize {
		return fmt.Errorf("page %d of the device file: %w", n, syscall.EINVAL)
	}
	b, err := unix.Mmap(int(f.own.Fd()), int64(n*pageSize), pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map page %d of the device file: %w", n, err)
	}
	p := &page{f: f, mem: b, bar: m.Off}
	size := f.dev.hca.Params().BFRegSize
	if size == 0 {
		size = 512 // without BlueFlame the registers take doorbells all the same
	}
	p.m.LogBFRegSize = uint32(bits.Len(uint(size)) - 1)
	for k := range p.regs {
		for h := range p.regs[k].words {
			p.regs[k].words[h] = p.word(p.m.BFReg(uint32(k), uint32(h)))
		}
	}
	p.arm = p.word(prm.UARCQArm)
	f.pages[n] = p
	f.s.eng.addPage(p)
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
	_ = unix.Munmap(p.mem)
}

// at is the page at a place in BAR 0, nil when the program has not mapped it.
func (f *file) at(bar uint64) *page {
	for _, p := range f.pages {
		if p.bar == bar {
			return p
		}
	}
	return nil
}

// AddQP implements uverbs.Pages.
func (f *file) AddQP(q *uverbs.QP) {
	if p := f.at(q.UAROff); p != nil && q.BFReg < prm.BFRegsPerUAR {
		r := &p.regs[q.BFReg]
		r.qps = append(r.qps, &ringer{QP: q})
	}
}

// RemoveQP implements uverbs.Pages.
func (f *file) RemoveQP(q *uverbs.QP) {
	if p := f.at(q.UAROff); p != nil && q.BFReg < prm.BFRegsPerUAR {
		r := &p.regs[q.BFReg]
		r.qps = slices.DeleteFunc(r.qps, func(x *ringer) bool { return x.QP == q })
	}
}

// AddCQ implements uverbs.Pages. The arm word of its record begins as zero, and so
// does the first arm: what never occurs is put there, so that it shows.
func (f *file) AddCQ(c *uverbs.CQ) {
	p := f.at(c.UAROff)
	if p == nil {
		return
	}
	prm.CQDBRec(p.rec[:]).SetArm(neverArmed)
	_ = f.proc.mem.WriteAt(mem.VA(c.DBAddr+prm.DBRecSize/2), p.rec[prm.DBRecSize/2:])
	p.cqs = append(p.cqs, &armedCQ{CQ: c, arm: neverArmed})
}

// RemoveCQ implements uverbs.Pages.
func (f *file) RemoveCQ(c *uverbs.CQ) {
	if p := f.at(c.UAROff); p != nil {
		p.cqs = slices.DeleteFunc(p.cqs, func(x *armedCQ) bool { return x.CQ == c })
	}
}

// poll takes what lies in the registers of the page.
func (p *page) poll(e *engine) (rung bool) {
	for k := range p.regs[:prm.UserBFRegsPerUAR] {
		r := &p.regs[k]
		for h := range r.words {
			if atomic.LoadUint64(r.words[h]) != 0 {
				rung = true
				e.catchUp()
				p.ring(e, uint32(k), uint32(h))
			}
		}
	}
	if atomic.LoadUint64(p.arm) != 0 {
		rung = true
		e.catchUp()
		p.armed()
	}
	return rung
}

// ring takes a store to half h of register k.
func (p *page) ring(e *engine, k, h uint32) {
	r := &p.regs[k]
	off := p.m.BFReg(k, h)
	half := p.mem[off : off+p.m.HalfSize()]
	b := p.found[:len(half)]
	copy(b[prm.DoorbellSize:], half[prm.DoorbellSize:])
	*(*uint64)(unsafe.Pointer(&b[0])) = atomic.SwapUint64(r.words[h], 0)
	c := prm.CtrlSegment(b)
	n := max(1, (c.DS()*prm.DSSize+prm.WQEBBSize-1)/prm.WQEBBSize)
	var rang *ringer
	for _, q := range r.qps {
		if q.QPN == c.QPN() {
			rang = q
		}
	}
	b = b[:min(len(b), n*prm.WQEBBSize)]
	pushed := rang != nil && n*prm.WQEBBSize <= len(half) && p.push(rang, b, half, off)
	if !pushed {
		b = b[:prm.DoorbellSize]
		p.f.dev.link.PostNow(p.bar+uint64(off), b)
	}
	if e.log != nil {
		e.log.ring(p, k, h, b, pushed)
	}
	if rang != nil {
		rang.sent = c.WQEIndex() + uint16(n)
	}
	if len(r.qps) > 1 {
		p.others(r, off)
	}
}

// push sends a WQE on to the device if the program pushed it (BlueFlame), and did not
// only ring: then more than the doorbell lies in the half. The bytes are those of the
// ring, since a push may be in the middle of its way here. The half is cleared, so that
// the next store to it shows again what it is.
func (p *page) push(q *ringer, b, half []byte, off uint32) bool {
	if !slices.ContainsFunc(b[prm.DoorbellSize:], func(x byte) bool { return x != 0 }) {
		return false
	}
	wqe := p.wqe[:len(b)]
	at := uint64(prm.CtrlSegment(b).WQEIndex()) % uint64(max(1, q.SQCount)) * prm.WQEBBSize
	n := min(uint64(len(b)), uint64(q.SQCount)*prm.WQEBBSize-at)
	err := p.f.proc.mem.ReadAt(mem.VA(q.SQAddr+at), wqe[:n])
	if err == nil && n < uint64(len(b)) {
		err = p.f.proc.mem.ReadAt(mem.VA(q.SQAddr), wqe[n:])
	}
	if err != nil {
		return false
	}
	// Stale bytes of an earlier push are no push.
	for i := prm.DoorbellSize; i < len(b); i++ {
		if b[i] != 0 && b[i] != wqe[i] {
			clear(half[prm.DoorbellSize:])
			return false
		}
	}
	clear(half[prm.DoorbellSize:])
	copy(b, wqe)
	p.f.dev.link.PostNow(p.bar+uint64(off), b)
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
		p.f.dev.link.PostNow(p.bar+uint64(off), db[:prm.DoorbellSize])
	}
}

// armed takes a store to the page's CQ doorbell, which all CQs of a context share.
func (p *page) armed() {
	var b [prm.CQArmDoorbellSize]byte
	*(*uint64)(unsafe.Pointer(&b[0])) = atomic.SwapUint64(p.arm, 0)
	d := prm.CQArmDoorbell(b[:])
	p.f.dev.link.PostNow(p.bar+prm.UARCQArm, b[:])
	for _, c := range p.cqs {
		if c.CQN == d.CQN() {
			c.arm = d.Arm()
		}
	}
	if len(p.cqs) < 2 {
		return
	}
	for _, c := range p.cqs {
		if err := p.f.proc.mem.ReadAt(mem.VA(c.DBAddr), p.rec[:]); err != nil {
			continue
		}
		w := prm.CQDBRec(p.rec[:]).Arm()
		if w == c.arm || w == neverArmed {
			continue
		}
		c.arm = w
		prm.CQArmDoorbell(b[:]).Set(w, c.CQN)
		p.f.dev.link.PostNow(p.bar+prm.UARCQArm, b[:])
	}
}

// mapped prepares page n of the device file, which the program maps now.
func (f *file) mapped(n uint64) syscall.Errno {
	if f.pages[n] != nil {
		return 0
	}
	return f.verbs.Mmap(n)
}
