package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
)

// TestPathMTUChange: a connection that is reset and made again with another path MTU cuts its
// messages by the new one; where the two ends differ, a packet of the wrong length is an invalid
// request.
func TestPathMTUChange(t *testing.T) {
	o := defaults()
	ha, hb, a, b, _, _ := twoHosts(t, testParams(), 1, o)
	la, lb := ha.newMR(8192, rightsAll), hb.newMR(8192, rightsAll)
	write := wr{op: prm.WQEOpRDMAWrite, raddr: lb.va, rkey: lb.rkey, sges: []sge{la.sge(0, 4096)}}
	for _, mtu := range []roce.MTU{roce.MTU1024, roce.MTU256, roce.MTU4096} {
		o.mtu = mtu
		reconnect(a, b, o, o)
		before := ha.d.Counters().TxRequests
		a.post(write)
		run(t, ha.e, ms)
		a.scq.expect(prm.CQEReq)
		if n := ha.d.Counters().TxRequests - before; n != uint64(4096/mtu.Bytes()) {
			t.Errorf("MTU %d: %d packets", mtu.Bytes(), n)
		}
	}
	other := o
	o.mtu, other.mtu = roce.MTU512, roce.MTU1024
	reconnect(a, b, o, other)
	a.post(write)
	run(t, ha.e, ms)
	a.scq.expectError(prm.CQEReqErr, prm.SyndromeRemoteInvalReq)
}

// reconnect resets both ends and connects them with these attributes.
func reconnect(a, b *tQP, oa, ob opts) {
	for _, q := range []*tQP{a, b} {
		q.modify2(prm.Op2RstQP)
		q.pi, q.rqPI = 0, 0
		q.record()
	}
	a.connect(b, oa)
	b.connect(a, ob)
}
