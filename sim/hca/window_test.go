package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// TestWindow: a device with a window has no more packets of a queue pair under way, and stands
// still for none of them.
func TestWindow(t *testing.T) {
	const messages, size = 6, 100_000
	for _, window := range []int{0, 32} {
		h, a, _ := pair(t, defaults())
		h.d.id.Window = window
		sent, acked, most := uint32(0), uint32(0), int32(0)
		first := true
		h.d.SetTap(func(_ sim.Time, f *roce.Frame) {
			p, err := f.Decode()
			if err != nil {
				t.Fatal(err)
			}
			psn := p.BTH().PSN()
			switch {
			case p.Info().Class == roce.ClassWrite:
				if first {
					first, acked = false, roce.AddPSN(psn, -1)
				}
				sent = psn
				most = max(most, roce.CmpPSN(sent, acked))
			case p.Info().Headers.Has(roce.HasAETH):
				acked = psn
			}
		})
		r := h.newMR(2*size, rightsAll)
		r.fill(pattern)
		for i := range messages {
			a.post(wr{op: prm.WQEOpRDMAWrite, raddr: r.va + size, rkey: r.rkey, sges: []sge{r.sge(0, size)}, unsig: i < messages-1})
		}
		run(t, h.e, 10*sim.Millisecond)
		a.scq.expect(prm.CQEReq)
		if got := r.bytes(size, size); got[size-1] != pattern(size-1) || roce.CmpPSN(sent, acked) != 0 {
			t.Errorf("window %d: %d of %d packets acknowledged", window, acked, sent)
		}
		if within := most <= 32; within != (window == 32) {
			t.Errorf("window %d: %d packets were under way", window, most)
		}
	}
}
