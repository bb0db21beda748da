package testbed

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/rdmasim/rdmasim/sim/odp"
	"github.com/rdmasim/rdmasim/verbs"
)

// An SRQ receives into pages that are not there: each message once, whole, under its own ID. In the
// form of completions the library posts a request again without a word of it, for as long as the
// queue lives; in the form of events it has nothing to do.
func TestSharedReceivesOnDemand(t *testing.T) {
	for _, form := range []odp.SRQFault{odp.SRQFaultEvent, odp.SRQFaultCompletion} {
		for i, most := range []uint32{1, 5, 1, 5} {
			memory := i > 1
			t.Run(fmt.Sprintf("%s, %d receives, memory scheme %v", []string{"event", "completion"}[form], most, memory), func(t *testing.T) {
				run(t, config(t, onDemand, func(c *Config) { c.Profile.HCA.ODP.SRQFault, c.Profile.HCA.ODP.MemoryScheme = form, memory }), func(x *rig) {
					sharedReceives(x, int(most))
					counters, err := x.bed.HardwareCounters(x.t, 1)
					x.ok("counters", err)
					if back := counters["resp_cqe_error"]; (back > 0) != (form == odp.SRQFaultCompletion) {
						t.Errorf("%d receives came back", back)
					}
				})
			})
		}
	}
}

// sharedReceives sends messages into most receives of an SRQ, which are posted again when all are
// used. Every page is given back before.
func sharedReceives(x *rig, most int) {
	a, b, do := x.pair(true, 4096)
	const slot, rounds = 3 * 4096, 12
	size := uint64(most * slot)
	x.onDemandNode(x.t, a, size, false)
	var srq verbs.SRQ
	do(func(t verbs.Thread) {
		x.onDemandNode(t, b, size, false)
		var err error
		srq, err = b.pd.CreateSRQ(t, verbs.SRQInitAttr{MaxWR: uint32(most), MaxSGE: 2})
		x.ok("create the SRQ", err)
		b.qp, err = b.pd.CreateQP(t, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: b.cq, RecvCQ: b.cq, SRQ: srq, Cap: verbs.QPCap{MaxSendWR: 4, MaxSendSGE: 1}})
		x.ok("create the QP", err)
	})
	var err error
	a.qp, err = a.pd.CreateQP(x.t, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: a.cq, RecvCQ: a.cq, Cap: verbs.QPCap{MaxSendWR: uint32(most), MaxSendSGE: 1}})
	x.ok("create the QP", err)
	do(func(t verbs.Thread) { x.connect(t, b.qp, b.gid, a.gid, a.qp.QPN(), verbs.MTU1024) })
	x.connect(x.t, a.qp, a.gid, b.gid, b.qp.QPN(), verbs.MTU1024)
	for round := range rounds {
		n := 100 + round*1000
		do(func(t verbs.Thread) {
			x.discard(t, b.buf)
			for i := range most {
				list := append(b.sge(i*slot, 50), b.sge(i*slot+50, slot-50)...)
				_, err := srq.PostRecv(t, []verbs.RecvWR{{ID: uint64(i), SGEs: list}})
				x.ok("post a receive", err)
			}
		})
		for i := range most {
			x.write(x.t, a.buf, pattern(n + i)[:n], i*slot)
			x.post(a, verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGEs: a.sge(i*slot, n)})
		}
		do(func(t verbs.Thread) {
			seen := map[uint64]bool{}
			for i := range most { // messages come in their order; receives that came back go to the end
				wc := x.wait(t, b)
				got := make([]byte, n)
				_, err := b.buf.ReadAt(t, got, int64(wc.ID)*slot)
				x.ok("read", err)
				if seen[wc.ID] || wc.ByteLen != uint32(n) || !bytes.Equal(got, pattern(n + i)[:n]) {
					x.Errorf("round %d, message %d: receive %d of %d bytes, seen before: %v", round, i, wc.ID, wc.ByteLen, seen[wc.ID])
				}
				seen[wc.ID] = true
			}
		})
		for range most {
			x.wait(x.t, a)
		}
	}
}
