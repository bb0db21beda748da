package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// TestRNRStall: a device that sends an RNR NAK serves its other queues only when the stall is
// over, in both directions, and none waits when the parameter is 0.
func TestRNRStall(t *testing.T) {
	for _, stall := range []sim.Time{0, 2 * ms} {
		for _, reverse := range []bool{false, true} {
			p := testParams()
			p.RNRStall = stall
			o := defaults()
			o.rnrTimer = 31 // the sender waits longer than the test
			ha, hb, a, _, _, _ := twoHosts(t, p, 1, o)
			va, vb := ha.newQP(ha.newCQ(9, 64), ha.newCQ(9, 64)), hb.newQP(hb.newCQ(9, 64), hb.newCQ(9, 64))
			va.connect(vb, o)
			vb.connect(va, o)
			la, lb := ha.newMR(4096, rightsAll), hb.newMR(4096, rightsAll)
			a.post(wr{op: prm.WQEOpSend, inline: []byte("refused")})
			run(t, ha.e, 20*sim.Microsecond)
			if reverse {
				vb.post(wr{op: prm.WQEOpRDMAWrite, raddr: la.va, rkey: la.rkey, inline: []byte("x")})
				va = vb
			} else {
				va.post(wr{op: prm.WQEOpRDMAWrite, raddr: lb.va, rkey: lb.rkey, inline: []byte("x")})
			}
			run(t, ha.e, ms)
			if stall > 0 {
				if va.scq.poll() != nil {
					t.Errorf("reverse %v: completed while the device stands still", reverse)
				}
				run(t, ha.e, 2*ms)
			}
			va.scq.expect(prm.CQEReq)
			if n := hb.d.Counters().RNRStalls; n != uint64(stall/(2*ms)) {
				t.Errorf("%d stalls", n)
			}
		}
	}
}
