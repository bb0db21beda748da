//go:build linux && amd64

package exec

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
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
// each is taken by an exchange with zero and none is seen twice or missed, except those
// that later ones of the same register overwrite: the doorbell records that programs write
// before they ring tell of these.
type page struct {
	f   *file
	n   uint64 // in the file
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
	gone       bool                            // the memory cannot be reached any more
	undecided  [prm.UserBFRegsPerUAR]undecided // for the log
}

const (
	maxHalf = 256        // length of the largest half of a register
	noHalf  = ^uint32(0) // not the number of a half
)

// uarPage is a page in BAR 0 with the queues that ring there. The device file may show
// it at several places, of which a program maps one.
type uarPage struct {
	bar       uint64
	regs      [prm.UserBFRegsPerUAR]register
	cqs       []*armedCQ
	filePages []uint64 // where in the device file
	mapped    []*page  // those mapped
	others    int      // CQs of commands
	commands  int      // QPs of commands
}

func (u *uarPage) unused() bool {
	return u.others == 0 && len(u.cqs) == 0 && len(u.regs[0].qps) == 0 && len(u.regs[1].qps) == 0
}

// register is a bfreg with the queues that ring it.
type register struct{ qps []*doorbellQP }

// doorbellQP is a QP that rings a register, with the send counter that the device knows.
type doorbellQP struct {
	*uverbs.QP
	sent   uint16
	placed bool // where it rings is known
}

// armedCQ is a CQ with the arm word seen last.
type armedCQ struct {
	*uverbs.CQ
	arm prm.ArmWord
}

// neverArmed is not a valid arm word. The first one may be zero, and must differ from what is
// there.
const neverArmed = prm.ArmWord(0xffffffff)

var _ uverbs.Pages = (*file)(nil)

// MapUAR implements uverbs.Pages. Pages of the first mmap command are looked at from
// now on; those of other commands from the call of mmap on, which the filter reports.
func (f *file) MapUAR(n uint64, m *cpu.Mapping) error {
	if f.pages[n] != nil || n >= deviceFileSize/pageSize {
		return fmt.Errorf("page %d of the device file: %w", n, syscall.EINVAL)
	}
	u := f.uar(m.Off)
	if u == nil {
		u = &uarPage{bar: m.Off}
		f.uars = append(f.uars, u)
	}
	u.filePages = append(u.filePages, n)
	f.pages[n] = &page{f: f, n: n, uar: u}
	if n < firstOtherOffset/pageSize {
		return f.mapHere(n)
	}
	return nil
}

// mapHere maps a page of the file here, to find what programs store there.
func (f *file) mapHere(n uint64) error {
	p := f.pages[n]
	if p.mem != nil {
		return nil
	}
	b, err := f.mapPages(n, 1)
	if err != nil {
		return err
	}
	p.mem = b
	size := cmp.Or(f.dev.hca.Params().BFRegSize, 2*maxHalf) // without BlueFlame the registers take doorbells all the same
	p.findRegisters(size)
	p.uar.mapped = append(p.uar.mapped, p)
	if !p.uar.unused() {
		f.s.eng.addPage(p)
	}
	return nil
}

// findRegisters finds the words of the page that are looked at, where registers are of a size.
func (p *page) findRegisters(size int) {
	p.m.LogBFRegSize = uint32(bits.Len(uint(size)) - 1)
	for k := range p.words {
		for h := range p.words[k] {
			p.words[k][h] = p.word(p.m.BFReg(uint32(k), uint32(h)))
		}
	}
	p.arm = p.word(prm.UARCQArm)
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
	u.filePages = slices.DeleteFunc(u.filePages, func(x uint64) bool { return x == n })
	u.mapped = slices.DeleteFunc(u.mapped, func(x *page) bool { return x == p })
	if len(u.filePages) == 0 {
		f.uars = slices.DeleteFunc(f.uars, func(x *uarPage) bool { return x == u })
	}
	if p.mem == nil {
		return
	}
	if l := f.s.eng.log; l != nil && !p.gone {
		p.decideAll(l)
	}
	f.unmapPages(n, p.mem)
}

// decideAll decides what the last stores to the registers were.
func (p *page) decideAll(l *uarLog) {
	for k := range p.undecided {
		p.undecided[k].decide(l, noHalf)
	}
}

// mapPages maps pages of the device file here, from page n on.
func (f *file) mapPages(n uint64, count int) ([]byte, error) {
	if err := f.proc.maps.Take(1); err != nil {
		return nil, err
	}
	b, err := unix.Mmap(int(f.own.Fd()), int64(n*pageSize), count*pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		f.proc.maps.Give(1)
		return nil, fmt.Errorf("map page %d of the device file: %w", n, err)
	}
	return b, nil
}

// unmapPages ends mapPages. The pages are zero when something else takes their place in the file.
func (f *file) unmapPages(n uint64, b []byte) {
	punch(f.own.Fd(), n, n+uint64(len(b)/pageSize))
	_ = unix.Munmap(b)
	f.proc.maps.Give(1)
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

// changeQueues adds or removes a queue of the page at bar; pages without queues are not
// looked at.
func (f *file) changeQueues(bar uint64, do func(u *uarPage)) {
	u := f.uar(bar)
	if u == nil {
		return
	}
	was := u.unused()
	do(u)
	if now := u.unused(); now != was {
		for _, p := range u.mapped {
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
	f.workQueues(q, true)
	f.changeQueues(q.UAROff, func(u *uarPage) {
		if q.ByCommand {
			u.commands++
		}
		x := &doorbellQP{QP: q}
		for k := range u.regs {
			if q.Rings(uint32(k)) {
				u.regs[k].qps = append(u.regs[k].qps, x)
			}
		}
	})
}

// RemoveQP implements uverbs.Pages.
func (f *file) RemoveQP(q *uverbs.QP) {
	f.workQueues(q, false)
	f.changeQueues(q.UAROff, func(u *uarPage) {
		if q.ByCommand {
			u.commands--
		}
		u.remove(q, len(u.regs))
	})
}

// AddOther implements uverbs.Pages.
func (f *file) AddOther(off uint64) { f.changeQueues(off, func(u *uarPage) { u.others++ }) }

// RemoveOther implements uverbs.Pages.
func (f *file) RemoveOther(off uint64) { f.changeQueues(off, func(u *uarPage) { u.others-- }) }

// remove takes a QP from the registers of the page but register k.
func (u *uarPage) remove(q *uverbs.QP, k int) {
	for i := range u.regs {
		if r := &u.regs[i]; i != k {
			r.qps = removeLast(r.qps, func(x *doorbellQP) bool { return x.QP == q })
		}
	}
}

// removeLast removes the last element that is meant. A file that ends removes its queues from the
// newest on, which are the last.
func removeLast[T any](l []T, meant func(T) bool) []T {
	for i := len(l) - 1; i >= 0; i-- {
		if meant(l[i]) {
			return slices.Delete(l, i, i+1)
		}
	}
	return l
}

// AddCQ implements uverbs.Pages. The arm word of its record is zero at first, and so
// may be the first arm: neverArmed is put there, so that the first arm shows.
func (f *file) AddCQ(c *uverbs.CQ) {
	f.completionQueue(c, true)
	f.changeQueues(c.UAROff, func(u *uarPage) { u.cqs = append(u.cqs, &armedCQ{CQ: c, arm: neverArmed}) })
	var rec [prm.DBRecSize]byte
	prm.CQDBRec(rec[:]).SetArm(neverArmed)
	_ = f.proc.mem.WriteAt(mem.VA(c.DBAddr+prm.DBRecSize/2), rec[prm.DBRecSize/2:])
}

// RemoveCQ implements uverbs.Pages.
func (f *file) RemoveCQ(c *uverbs.CQ) {
	f.changeQueues(c.UAROff, func(u *uarPage) {
		u.cqs = removeLast(u.cqs, func(x *armedCQ) bool { return x.CQ == c })
	})
	f.completionQueue(c, false)
}

// MoveCQ implements uverbs.Pages: a CQ is known by its number and its record, which
// stay.
func (f *file) MoveCQ(c *uverbs.CQ, was uverbs.CQ) {
	f.completionQueue(&was, false)
	f.completionQueue(c, true)
}

// AddSRQ implements uverbs.Pages.
func (f *file) AddSRQ(q *uverbs.SRQ) { f.workQueue(q.Addr, uint64(q.Count)<<q.Shift, true) }

// RemoveSRQ implements uverbs.Pages.
func (f *file) RemoveSRQ(q *uverbs.SRQ) { f.workQueue(q.Addr, uint64(q.Count)<<q.Shift, false) }

// mapped prepares page n of the device file, which the program maps now.
func (f *file) mapped(n uint64) syscall.Errno {
	if f.pages[n] == nil {
		if e := f.verbs.Mmap(n); e != 0 {
			return e
		}
	}
	if f.pages[n] != nil {
		if err := f.mapHere(n); err != nil {
			return errno(err)
		}
	}
	return 0
}
