package testbed

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/verbs"
)

// Packets take their bytes from the data segments of their message, wherever the ends of
// packets and of segments lie.
func TestGatherAcrossPackets(t *testing.T) {
	for _, lengths := range [][]int{
		{5000}, {1024, 1024, 1024}, {1023, 2, 1023}, {1024 + 100, 1024 - 100, 50}, {1024 + 100, 1024 - 100, 1024, 50},
		{1, 3000, 1, 2000}, {2100, 948, 1, 100}, {100, 100, 100, 5000},
	} {
		for _, op := range []verbs.WROpcode{verbs.WRRDMAWrite, verbs.WRSend} {
			run(t, config(t), func(x *rig) {
				const size = 32768
				a, b, _ := x.pair(false, size)
				for _, n := range []*node{a, b} {
					q, err := n.pd.CreateQP(x.t, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: n.cq, RecvCQ: n.cq,
						Cap: verbs.QPCap{MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 4, MaxRecvSGE: 1}})
					x.ok("qp", err)
					n.qp = q
				}
				x.connect(x.t, b.qp, b.gid, a.gid, a.qp.QPN(), verbs.MTU1024)
				x.connect(x.t, a.qp, a.gid, b.gid, b.qp.QPN(), verbs.MTU1024)
				memory := pattern(size)
				x.write(x.t, a.buf, memory, 0)
				w := verbs.SendWR{Opcode: op, Flags: verbs.SendSignaled, RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey()}
				var want []byte
				for i, n := range lengths {
					at := 7000 * i
					w.SGEs = append(w.SGEs, a.sge(at, n)...)
					want = append(want, memory[at:at+n]...)
				}
				if op == verbs.WRSend {
					_, err := b.qp.PostRecv(x.t, []verbs.RecvWR{{SGEs: b.sge(0, size)}})
					x.ok("recv", err)
				}
				x.post(a, w)
				x.wait(x.t, a)
				if got := x.read(x.t, b.buf, 0, len(want)); !bytes.Equal(got, want) {
					x.Errorf("segments of %d bytes, opcode %v: wrong bytes arrived", lengths, op)
				}
			})
		}
	}
}
