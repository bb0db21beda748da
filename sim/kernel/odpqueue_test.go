package kernel

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// queueFault is a fault of a work request.
func queueFault(typ, queue uint32, wqe uint16, committed uint32) func([]byte) {
	return func(b []byte) {
		f := prm.PageFaultWQE(b)
		f.SetFaultType(typ)
		f.SetWQNumber(queue)
		f.SetWQEIndex(wqe)
		f.SetBytesCommitted(committed)
		f.SetToken(0x5151)
	}
}

// pagedQueue is a QP with a region of on-demand paging and one that is pinned.
type pagedQueue struct {
	*setup
	u           *Ucontext
	pd          Handle
	h           Handle
	req         QPReq
	qpn         uint32
	va          uint64 // 32 pages
	key, pinned uint32
	raised      uint32
}

func newPagedQueue(t *testing.T, typ verbs.QPType) *pagedQueue {
	w := &pagedQueue{setup: pagingSetup(t, testParams())}
	w.u = w.open()
	w.pd = w.setup.pd(w.u)
	w.req = w.qpReq(w.pd, w.cq(w.u), typ)
	h, resp, err := w.u.CreateQP(Caller{}, w.req)
	wantErrno(t, "create", err, 0)
	w.h, w.qpn = h, resp.QPN
	w.va = w.lazy(32)
	_, w.key = w.paged(w.u, w.pd, w.va, 32*page, verbs.AccessLocalWrite)
	buf := w.buf(page, mem.Read|mem.Write)
	_, w.pinned, _, err = w.u.RegMR(Caller{}, w.pd, buf, page, buf, verbs.AccessLocalWrite)
	wantErrno(t, "pinned", err, 0)
	return w
}

// write puts bytes into the ring: of the send queue behind that of the receive queue.
func (w *pagedQueue) write(off uint64, b []byte) {
	if err := w.proc.Space.WriteAt(b, mem.VA(w.req.BufAddr+off)); err != nil {
		w.t.Fatal(err)
	}
}

// sends is where the send ring begins.
func (w *pagedQueue) sends() uint64 { return uint64(w.req.RQWQECount) << w.req.RQWQEShift }

// resumedWith has the fault handled and checks the answer.
func (w *pagedQueue) resumedWith(what string, fill func([]byte), failed bool) {
	w.t.Helper()
	n := len(w.f.resumed)
	w.raiseFault(w.raised, prm.PageFaultSubWQE, fill)
	w.raised++
	w.run()
	if len(w.f.resumed) != n+1 {
		w.t.Fatalf("%s: %d answers", what, len(w.f.resumed)-n)
	}
	if r := prm.PageFaultResumeIn(w.f.resumed[n]); r.Error() != failed || r.Token() != 0x5151 {
		w.t.Errorf("%s: answer %x", what, []byte(r))
	}
}

func segments(s ...[3]uint64) (b []byte) {
	for _, x := range s {
		d := make(prm.DataSegment, prm.DataSegmentSize)
		d.Set(uint32(x[0]), uint32(x[1]), x[2])
		b = append(b, d...)
	}
	return b
}

func sendWQE(op prm.WQEOpcode, index uint16, qpn uint32, rest ...[]byte) []byte {
	b := make([]byte, prm.CtrlSegmentSize)
	for _, r := range rest {
		b = append(b, r...)
	}
	prm.CtrlSegment(b).Set(op, 0, index, qpn, len(b)/prm.DSSize, 0, 0)
	return b
}

// A fault of a send brings all memory of its list, also of other segments than the first, and over
// the end of the ring; what the device has committed it does not touch.
func TestSendFaults(t *testing.T) {
	w := newPagedQueue(t, verbs.QPTRC)
	raddr := make([]byte, prm.RaddrSegmentSize)
	list := segments([3]uint64{page, uint64(w.key), w.va}, [3]uint64{10, uint64(w.pinned), 0x1000}, [3]uint64{page + 1, uint64(w.key), w.va + 8*page + 4095})
	w.write(w.sends()+2*prm.WQEBBSize, sendWQE(prm.WQEOpRDMAWrite, 2, w.qpn, raddr, list))
	w.resumedWith("write", queueFault(prm.FaultSendOrWrite, w.qpn, 2, 0), false)
	if w.deviceHas(w.key) != 3 {
		t.Errorf("device has %v", w.f.keys[w.key>>8].pages)
	}
	// Over the end: 64 basic blocks, the last of which begins a WQE of two.
	long := sendWQE(prm.WQEOpSend, 63, w.qpn, segments([3]uint64{1, uint64(w.key), w.va + 16*page}, [3]uint64{1, uint64(w.key), w.va + 17*page},
		[3]uint64{1, uint64(w.key), w.va + 18*page}, [3]uint64{1, uint64(w.key), w.va + 19*page}))
	w.write(w.sends()+63*prm.WQEBBSize, long[:64])
	w.write(w.sends(), long[64:])
	w.resumedWith("over the end", queueFault(prm.FaultSendOrWrite, w.qpn, 63+64, 0), false)
	if w.deviceHas(w.key) != 7 {
		t.Errorf("device has %v", w.f.keys[w.key>>8].pages)
	}
	w.write(w.sends()+5*prm.WQEBBSize, sendWQE(prm.WQEOpSend, 5, w.qpn, segments([3]uint64{page, uint64(w.key), w.va + 20*page}, [3]uint64{2 * page, uint64(w.key), w.va + 24*page})))
	w.resumedWith("committed", queueFault(prm.FaultSendOrWrite, w.qpn, 5, 2*page), false)
	if w.deviceHas(w.key) != 8 || w.f.keys[w.key>>8].pages[25] == 0 {
		t.Errorf("device has %v", w.f.keys[w.key>>8].pages)
	}
	w.write(w.sends()+6*prm.WQEBBSize, sendWQE(prm.WQEOpRDMARead, 6, w.qpn, raddr, segments([3]uint64{1, uint64(w.key), w.va + 32*page})))
	w.resumedWith("outside the region", queueFault(prm.FaultReadOrAtomic, w.qpn, 6, 0), true)
	w.write(w.sends()+7*prm.WQEBBSize, sendWQE(prm.WQEOpRDMAWrite, 7, w.qpn, raddr))
	w.resumedWith("no data", queueFault(prm.FaultSendOrWrite, w.qpn, 7, 0), true)
	w.write(w.sends()+8*prm.WQEBBSize, make([]byte, 64))
	w.resumedWith("no WQE", queueFault(prm.FaultSendOrWrite, w.qpn, 8, 0), true)
	atomic := make([]byte, prm.RaddrSegmentSize+prm.AtomicSegmentSize)
	w.write(w.sends()+9*prm.WQEBBSize, sendWQE(prm.WQEOpAtomicFA, 9, w.qpn, atomic, segments([3]uint64{8, uint64(w.key), w.va + 30*page})))
	w.resumedWith("atomic", queueFault(prm.FaultReadOrAtomic, w.qpn, 9, 0), false)
	inline := []byte{0x80, 0, 0, 4, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0}
	w.write(w.sends()+10*prm.WQEBBSize, sendWQE(prm.WQEOpSend, 10, w.qpn, inline, segments([3]uint64{8, uint64(w.key), w.va + 31*page})))
	w.resumedWith("inline first", queueFault(prm.FaultSendOrWrite, w.qpn, 10, 0), false)
	if w.deviceHas(w.key) != 10 {
		t.Errorf("device has %v", w.f.keys[w.key>>8].pages)
	}
	w.agree(w.key, w.va)
}

// Datagrams have an address before their data, short or whole.
func TestDatagramFaults(t *testing.T) {
	w := newPagedQueue(t, verbs.QPTUD)
	for i, av := range [][]byte{make([]byte, 16), make([]byte, prm.AVSegmentSize)} {
		if len(av) == prm.AVSegmentSize {
			prm.AVSegment(av).SetExtended(true)
		}
		w.write(w.sends()+uint64(2*i)*prm.WQEBBSize, sendWQE(prm.WQEOpSend, uint16(2*i), w.qpn, av, segments([3]uint64{8, uint64(w.key), w.va + uint64(i)*page})))
		w.resumedWith("datagram", queueFault(prm.FaultSendOrWrite, w.qpn, uint16(2*i), 0), false)
	}
	if w.deviceHas(w.key) != 2 {
		t.Errorf("device has %v", w.f.keys[w.key>>8].pages)
	}
}

// Receives have a list that a key of its own ends; of a queue that is gone nothing is answered.
func TestReceiveFaults(t *testing.T) {
	w := newPagedQueue(t, verbs.QPTRC)
	w.write(3<<w.req.RQWQEShift, segments([3]uint64{10, uint64(w.key), w.va}, [3]uint64{0, prm.InvalidLKey, 0}, [3]uint64{10, uint64(w.key), w.va + 5*page}))
	w.resumedWith("receive", queueFault(prm.FaultReceive, w.qpn, 3+16, 0), false)
	if w.deviceHas(w.key) != 1 {
		t.Errorf("device has %v", w.f.keys[w.key>>8].pages)
	}
	w.write(4<<w.req.RQWQEShift, segments([3]uint64{10, uint64(w.key), w.va + 32*page}, [3]uint64{0, prm.InvalidLKey, 0}))
	w.resumedWith("outside", queueFault(prm.FaultReceive, w.qpn, 4, 0), true)
	for _, fill := range []func([]byte){queueFault(prm.FaultReceive, 0xabc, 0, 0), queueFault(prm.FaultRMP, w.qpn, 0, 0), queueFault(5, w.qpn, 0, 0)} {
		w.raiseFault(w.raised, prm.PageFaultSubWQE, fill)
		w.raised++
	}
	w.run()
	if len(w.f.resumed) != 2 || w.d.Counters().Paging.OrphanQueueFaults != 3 {
		t.Errorf("%d answers, %+v", len(w.f.resumed), w.d.Counters().Paging)
	}
	w.raiseFault(w.raised, 7, func([]byte) {})
	w.run()
	if len(w.f.resumed) != 3 || !prm.PageFaultResumeIn(w.f.resumed[2]).Error() {
		t.Errorf("an event of no known kind: %x", w.f.resumed)
	}
}

// The end of a QP waits for the handler of its fault, which then answers nothing.
func TestQPDestroyedWhileAFaultIsOut(t *testing.T) {
	w := newPagedQueue(t, verbs.QPTRC)
	w.write(w.sends(), sendWQE(prm.WQEOpSend, 0, w.qpn, segments([3]uint64{10, uint64(w.key), w.va})))
	w.raiseFault(0, prm.PageFaultSubWQE, queueFault(prm.FaultSendOrWrite, w.qpn, 0, 0))
	w.e.Go("program", func(p *sim.Proc) {
		p.Sleep(3 * sim.Microsecond)
		_, err := w.u.DestroyQP(Caller{P: p}, w.h)
		wantErrno(t, "destroy", err, 0)
		if w.d.odp.busy != 0 {
			t.Error("the handler is still at work")
		}
	})
	w.run()
	if len(w.f.resumed) != 0 || w.deviceHas(w.key) != 1 {
		t.Errorf("%d answers, %d pages", len(w.f.resumed), w.deviceHas(w.key))
	}
}

// The removal of the device ends what is under way.
func TestRemovedWhileAFaultIsOut(t *testing.T) {
	w := newPagedQueue(t, verbs.QPTRC)
	w.write(w.sends(), sendWQE(prm.WQEOpSend, 0, w.qpn, segments([3]uint64{10, uint64(w.key), w.va})))
	for i := range uint32(100) {
		w.raiseFault(i, prm.PageFaultSubWQE, queueFault(prm.FaultSendOrWrite, w.qpn, 0, 0))
	}
	w.e.Go("remover", func(p *sim.Proc) {
		p.Sleep(3 * sim.Microsecond)
		w.d.Remove()
	})
	w.run()
	if n := len(w.f.resumed); n != 0 || w.deviceHas(w.key) != 0 {
		t.Errorf("%d answers, %d pages", n, w.deviceHas(w.key))
	}
}

// A fault under a window is one in what the window leads to.
func TestFaultsUnderAWindow(t *testing.T) {
	w := newPagedQueue(t, verbs.QPTRC)
	_, rkey, err := w.u.AllocMW(Caller{}, w.pd, verbs.MWType2)
	wantErrno(t, "window", err, 0)
	w.f.windows[rkey>>8] = []fakeSlot{{w.key, w.va + 4*page, 8 * page}}
	bound := rkey + 7 // the program has changed its low byte
	w.raiseFault(0, prm.PageFaultSubRDMA, rdmaFault(bound, 2*page, page, 1))
	w.run()
	if w.deviceHas(w.key) != 1 || w.f.keys[w.key>>8].pages[6] == 0 || prm.PageFaultResumeIn(w.f.resumed[0]).Error() {
		t.Errorf("device has %v", w.f.keys[w.key>>8].pages)
	}
}
