package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// ward is a wire that is told what the device behind it buffers.
type ward struct {
	Wire
	held, most [roce.Classes]int
	queued     int
}

func (w *ward) Lossless() uint8 { return 1 << 3 }

func (w *ward) Queued() int { return w.queued }

func (w *ward) Buffered(class uint8, n int) {
	w.held[class] += n
	w.most[class] = max(w.most[class], w.held[class])
}

// TestBuffered: what waits for a slow receive engine is reported to the port, by its class,
// and all of it leaves again.
func TestBuffered(t *testing.T) {
	p := testParams()
	p.RxInterval = sim.Microsecond
	o := defaults()
	ha, hb, a, _, _, ba := twoHosts(t, p, 1, o)
	w := &ward{Wire: ba}
	hb.d.SetWire(w)
	la, lb := ha.newMR(64<<10, rightsAll), hb.newMR(64<<10, rightsAll)
	a.post(wr{op: prm.WQEOpRDMAWrite, raddr: lb.va, rkey: lb.rkey, sges: []sge{la.sge(0, 64<<10)}})
	run(t, ha.e, ms)
	a.scq.expect(prm.CQEReq)
	if w.most[0] < 20<<10 || w.held != [roce.Classes]int{} {
		t.Errorf("at most %v bytes, %v in the end", w.most, w.held)
	}
}

// TestPausedPortHoldsTheSendEngine: while the port holds back as much as the device prepares
// at most, nothing more is sent; it goes on when some of that has left.
func TestPausedPortHoldsTheSendEngine(t *testing.T) {
	p := testParams()
	ha, hb, a, _, ab, _ := twoHosts(t, p, 1, defaults())
	w := &ward{Wire: ab, queued: p.TxBuffer}
	ha.d.SetWire(w)
	la, lb := ha.newMR(64<<10, rightsAll), hb.newMR(64<<10, rightsAll)
	a.post(wr{op: prm.WQEOpRDMAWrite, raddr: lb.va, rkey: lb.rkey, sges: []sge{la.sge(0, 64<<10)}})
	run(t, ha.e, ms)
	if n := ha.d.Counters().TxPackets; n != 0 {
		t.Fatalf("%d packets while the port is paused", n)
	}
	w.queued = 0
	ha.d.Relieved()
	run(t, ha.e, ms)
	a.scq.expect(prm.CQEReq)
}
