package provider

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/prm/bfreg"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/verbs"
)

// bfReg is a register that queues ring, with what the library keeps beside it. Who
// gets which is decided in prm/bfreg.
type bfReg struct {
	m      *cpu.Mapping
	off    uint64 // of the register in the mapping
	half   uint64 // which half the next post writes: 0 or buf
	buf    uint64 // bytes of a half; 0: no BlueFlame
	uuarn  int    // 0: never BlueFlame
	index  int    // bfreg number (static), dynamic index, or place on its page
	uar    uint32 // hardware UAR index
	class  bfreg.Class
	dyn    bool
	locked bool // need_lock
	lock   cpu.Spinlock
	line   cpu.Line // lock, offset and buffer size lie in one line

	taken, waits uint64 // of the lock
	waited       sim.Time
	users        int // QPs

	pool *bfreg.Reg    // today's library: what the pools gave
	td   *bfreg.DynReg // a static library: what the table of thread domains gave
	// static is how many bfregs the static part of the kernel's table has, which the dynamic
	// one follows. 0 on a UAR object.
	static int
}

// bfState is what the library keeps of the assignment of registers.
type bfState struct {
	// Today's library (verbs.c, mlx5_get_qp_uar). On a kernel without UAR objects it has no
	// non-cached UARs, and the static registers below.
	pools  *bfreg.Pools
	nc     *bfReg // the singleton non-cached UAR
	ncPage uint32
	pages  []uarPage // by the number that the pools know
	regs   []*bfReg  // by bfreg.Reg.ID
	ncFree []*bfReg  // free registers of dedicated non-cached UARs

	// A context with static bfregs (1.3 to 1.5): an old library or an old kernel.
	static []*bfReg // by gross number

	// A static library (1.6); nil: today's.
	tds      *bfreg.TDTable
	dynPages map[uint32]*cpu.Mapping // by page of the dynamic part
	dynRegs  map[uint32]*bfReg       // by dynamic index: offset and lock outlive a thread domain
}

// ncRegSpacing is the distance of the registers of a dedicated non-cached UAR.
const ncRegSpacing = 0x100

// uarPage is a mapped page of BlueFlame registers: a UAR object, or a dynamic page of the
// kernel's table.
type uarPage struct {
	m  *cpu.Mapping
	id uint32 // hardware UAR of its first
}

// register is a place in a mapped page.
type register struct {
	m   *cpu.Mapping
	off uint64
}

// use counts the QPs of a register. With one there is no other to contend with for its
// lock: the queue's own lock comes first, so that taking it needs no synchronisation.
func (r *bfReg) use(n int) {
	r.users += n
	if r.users > 1 {
		r.lock.Share()
	} else {
		r.lock.SetPrivate()
	}
}

// describe is the register as mlx5dv_init_obj shows it.
func (r *bfReg) describe() verbs.BFReg {
	return verbs.BFReg{Addr: mmioAddr(r.m) + r.off, UARPage: r.uar, Offset: uint32(r.off % prm.UARPageSize),
		Size: uint32(r.buf), Index: r.static + r.index, Dynamic: r.dyn, Class: r.class.String(), NeedLock: r.locked}
}

// mmioBase is where a process sees device mappings: below all its memory. They are
// not translated anywhere, so that a base and the place in BAR 0 tell pages apart.
const mmioBase = 0x7000_0000_0000

func mmioAddr(m *cpu.Mapping) uint64 { return mmioBase + m.Off }
