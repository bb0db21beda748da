package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// queueFault handles a fault of a work request (mlx5_ib_mr_wqe_pfault_handler): it reads the
// request where the program wrote it, and makes all its memory present. Of a queue that is gone
// nothing is resumed.
func (k *call) queueFault(f *fault) {
	q := k.d.faultedQueue(f)
	if q == nil {
		k.d.count.Paging.OrphanQueueFaults++
		return
	}
	h := q.faults()
	defer h.take(k.d)()
	segments, receive, err := k.d.faultedWQE(q, f)
	if err == nil {
		err = k.faultSegments(f, segments, receive)
	}
	k.pause(k.base) // of a fault that needed no pages
	k.base = 0
	if k.d.faultedQueue(f) == q { // else it was reset and destroyed, and the device takes no answer
		k.resume(f, err != nil && err != errAgain)
	}
}

// faultQueue is a queue whose work requests may meet absent pages.
type faultQueue interface {
	faults() *holders
}

func (q *qp) faults() *holders  { return &q.holds }
func (s *srq) faults() *holders { return &s.holds }

// faultedQueue is the queue of a fault, or nil (odp_get_rsc).
func (d *Device) faultedQueue(f *fault) faultQueue {
	switch f.typ {
	case prm.FaultRMP:
		if s, ok := d.srqs[f.queue].(*srq); ok {
			return s
		}
	case prm.FaultSendOrWrite, prm.FaultReceive, prm.FaultReadOrAtomic:
		if q, ok := d.qps[f.queue].(*qp); ok {
			return q
		}
	}
	return nil
}

// faultedWQE reads the data segments of the work request of a fault. receive: they are a receive's.
func (d *Device) faultedWQE(of faultQueue, f *fault) (segments []byte, receive bool, err error) {
	q, ok := of.(*qp)
	if ok && f.typ&prm.FaultRequestor != 0 {
		segments, err = q.sendSegments(f.wqe)
		return segments, false, err
	}
	var ring *umem
	var count uint32
	var stride, skip uint64
	if ok {
		ring, count, stride = q.mem, q.rqCount, 1<<q.rqShift
	} else {
		s := of.(*srq)
		ring, count, stride, skip = s.mem, s.max, uint64(s.stride), prm.SRQNextSegmentSize
	}
	if ring == nil || count == 0 {
		return nil, true, errReadWQE
	}
	b := make([]byte, stride)
	if !ring.read(d.mem, uint64(uint32(f.wqe)&(count-1))*stride, b) {
		return nil, true, errReadWQE
	}
	return b[skip:], true, nil
}

var errReadWQE = fmt.Errorf("the work request cannot be read: %w", syscall.EFAULT)

// read reads memory of a process that is pinned, from an offset of it on.
func (m *umem) read(phys *mem.Memory, off uint64, p []byte) bool {
	for len(p) > 0 {
		at := m.addr&pageMask + off
		if at/mem.PageSize >= uint64(len(m.pages)) {
			return false
		}
		n := min(mem.PageSize-int(at&pageMask), len(p))
		if !phys.Read(m.pages[at/mem.PageSize]+mem.PA(at&pageMask), p[:n]) {
			return false
		}
		p, off = p[n:], off+uint64(n)
	}
	return true
}

// sendSegments reads a send WQE, which may go on at the beginning of the ring
// (mlx5_ib_read_user_wqe_sq), and returns what lies behind the segments of its opcode
// (mlx5_ib_mr_initiator_pfault_handler).
func (q *qp) sendSegments(wqe uint16) ([]byte, error) {
	if q.sqCount == 0 || q.mem == nil {
		return nil, errReadWQE
	}
	ring, start := q.dev.mem, uint64(q.rqCount)<<q.rqShift
	size := uint64(q.sqCount) * prm.WQEBBSize
	at := uint64(uint32(wqe)&(q.sqCount-1)) * prm.WQEBBSize
	b := make([]byte, prm.WQEBBSize)
	if !q.mem.read(ring, start+at, b) {
		return nil, errReadWQE
	}
	c := prm.CtrlSegment(b)
	n := uint64(c.DS()) * prm.DSSize
	if n == 0 || n > size {
		return nil, fmt.Errorf("work request %d of %d B: %w", wqe, n, syscall.EFAULT)
	}
	b = make([]byte, n)
	whole := min(n, size-at)
	if !q.mem.read(ring, start+at, b[:whole]) || !q.mem.read(ring, start, b[whole:]) {
		return nil, errReadWQE
	}
	skip := prm.CtrlSegmentSize + q.addressSize(b)
	switch prm.CtrlSegment(b).Opcode() {
	case prm.WQEOpRDMAWrite, prm.WQEOpRDMAWriteImm, prm.WQEOpRDMARead:
		skip += prm.RaddrSegmentSize
	case prm.WQEOpAtomicCS, prm.WQEOpAtomicFA:
		skip += prm.RaddrSegmentSize + prm.AtomicSegmentSize
	}
	if skip >= len(b) {
		return nil, nil
	}
	return b[skip:], nil
}

// addressSize is how long the segment is that says where a request goes.
func (q *qp) addressSize(wqe []byte) int {
	const short = 16 // an address vector without path
	switch q.svc {
	case svcXRCSend:
		return prm.XRCSegmentSize
	case svcUD, svcDCI:
		if av := wqe[prm.CtrlSegmentSize:]; len(av) >= prm.AVSegmentSize && prm.AVSegment(av).Extended() {
			return prm.AVSegmentSize
		}
		return short
	}
	return 0
}

// faultSegments makes the memory of data segments present (pagefault_data_segments). EFAULT: there
// are none, or bytes that could not be.
func (k *call) faultSegments(f *fault, b []byte, receive bool) error {
	if len(b) == 0 {
		return fmt.Errorf("no data segments: %w", syscall.EFAULT)
	}
	var total, mapped uint32
	for len(b) >= prm.DataSegmentSize {
		if s := prm.InlineSegment(b); s.Inline() {
			const lengthMask = 0x3ff
			n := s.Len() & lengthMask
			f.committed -= min(uint32(n), f.committed)
			b = b[min(len(b), prm.InlineSize(n)):]
			continue
		}
		s := prm.DataSegment(b[:prm.DataSegmentSize])
		n := uint64(s.ByteCount())
		b = b[prm.DataSegmentSize:]
		if receive && n == 0 && s.LKey() == k.d.caps.endOfList && s.Addr() == 0 {
			break
		}
		total += uint32(n) - min(uint32(n), f.committed)
		if n == 0 {
			n = 1 << 31
		}
		if n <= uint64(f.committed) {
			f.committed -= uint32(n)
			continue
		}
		done := uint64(f.committed)
		f.committed = 0
		got, err := k.faultSegment(s.LKey(), s.Addr()+done, n-done)
		mapped += got
		if err != nil || k.d.breaks(rule.EverySegmentIsPaged) {
			return err
		}
	}
	if total > mapped {
		return fmt.Errorf("%d of %d B: %w", mapped, total, syscall.EFAULT)
	}
	return nil
}
