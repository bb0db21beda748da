//go:build linux

package uverbs

import (
	"os"

	"github.com/rdmasim/rdmasim/sim/cpu"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
)

// Inode names the file behind a descriptor: it is the same through dup, fork and
// passing, where the number and the process are not.
type Inode struct{ Dev, Ino uint64 }

// Caller is the process that makes a call, for the time of the call: its memory and its
// descriptors.
type Caller interface {
	uapi.Mem
	// Inject puts a file behind a new descriptor of the process, close-on-exec, and
	// returns its number. The file stays the caller's to close.
	Inject(f *os.File) (fd int, err error)
	// Retract takes back a descriptor that Inject made in the same call, after the call
	// failed. Best effort: a program that guesses the number may have used it.
	Retract(fd int)
	// Inode is the file behind a descriptor of the process: EBADF when there is none.
	Inode(fd int) (Inode, error)
	// Hold keeps the inode behind a descriptor of the process, so that its number is not given to
	// another file until release is called: EBADF when the descriptor is not open, or open as a
	// path only.
	Hold(fd int) (in Inode, release func(), err error)
	// Dmabuf makes the memory of the DMA-BUF behind a descriptor of the process reachable for
	// devices, until its Release. EBADF: the descriptor is not open, or open as a path only;
	// EINVAL: another file; ErrUnmappable.
	Dmabuf(fd int) (kernel.Exporter, error)
}

// Identified is a Caller that knows its process. A process that inherited an open file
// may ask and destroy, but not register memory or make queues: the model's context
// belongs to the memory of the process that opened it.
type Identified interface {
	Caller
	// Process returns the process that makes the call.
	Process() *kernel.Process
}

// Pages is the session's side of an open device file: what the program maps of it,
// and the rings that its stores announce. The session calls none of the context's
// methods from inside these.
type Pages interface {
	// MapUAR says that page number page of the file (mmap offset by page size) is a
	// page of registers from now on: the session finds stores there and sends them on
	// to m.Dev at m.Off, as the kind of mapping would.
	MapUAR(page uint64, m *cpu.Mapping) error
	// UnmapUAR ends a MapUAR.
	UnmapUAR(page uint64)
	// AddQP and AddCQ announce a queue that rings one of the pages, before the program
	// knows of it; RemoveQP and RemoveCQ come before its memory may be unmapped. A session that
	// finds arms by the arm words of doorbell records has to overwrite the word of a new CQ:
	// the library put 0 there, and the first arm may write 0 again.
	AddQP(q *QP)
	RemoveQP(q *QP)
	AddCQ(q *CQ)
	RemoveCQ(q *CQ)
	// AddOther and RemoveOther announce and withdraw a CQ of the page at off in BAR 0 that a
	// program has made by a command of its own.
	AddOther(off uint64)
	RemoveOther(off uint64)
	// MoveCQ announces that the ring of a CQ has moved; was is the CQ before that.
	MoveCQ(q *CQ, was CQ)
	// AddSRQ and RemoveSRQ announce and withdraw a shared receive queue. It rings nothing: the
	// device reads its record.
	AddSRQ(q *SRQ)
	RemoveSRQ(q *SRQ)
	// MapClock says that page number page of the file is the device's clock, from which
	// programs read what prm.InitSegTimer reads, or with info set what turns its cycles
	// into nanoseconds (uapi.ClockInfo).
	MapClock(page uint64, info bool) error
	// MapMemory says that n pages of the file from page number page on are memory of the
	// device, which lies at bar in its BAR 0: what programs store there the device reads.
	MapMemory(page uint64, n int, bar uint64) error
	// UnmapMemory ends a MapMemory.
	UnmapMemory(page uint64)
	// UnmapClock ends a MapClock.
	UnmapClock(page uint64)
}

// QP is what the session has to know of a queue pair to notice and explain doorbells.
// Addresses are the program's.
type QP struct {
	QPN        uint32
	DBAddr     uint64 // doorbell record: big-endian words receive counter, send counter
	RQAddr     uint64
	RQCount    uint32
	RQShift    uint32 // log2 of the stride in bytes
	SQAddr     uint64
	SQCount    uint32 // blocks of 64 bytes
	UAROff     uint64 // where in BAR 0 its UAR page lies; with BFReg the register it rings
	BFReg      uint32 // of the page: 0 to 3, or AnyBFReg
	UserHandle uint64
	ByCommand  bool // the program has made it by a command of its own
}

// AnyBFReg says that the library has chosen the register within the page by itself.
const AnyBFReg = ^uint32(0)

// Rings reports whether the QP may ring register k of its page.
func (q *QP) Rings(k uint32) bool { return q.BFReg == k || q.BFReg == AnyBFReg }

// CQ is what the session has to know of a completion queue. Arming rings
// prm.UARCQArm of the page at UAROff.
type CQ struct {
	CQN        uint32
	DBAddr     uint64 // doorbell record: big-endian words consumer counter, arm
	Addr       uint64
	Entries    uint32
	CQESize    uint32
	UAROff     uint64
	Channel    bool // completions are announced
	UserHandle uint64
}

// SRQ is what the session has to know of a shared receive queue.
type SRQ struct {
	SRQN       uint32
	DBAddr     uint64 // doorbell record
	Addr       uint64
	Count      uint32 // WQEs
	Shift      uint32 // log2 of the stride in bytes
	UserHandle uint64
}
