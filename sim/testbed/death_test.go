package testbed

import (
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// What a peer that writes sees of a killed process follows from what goes first: without its queue
// pair nobody answers; without the region, a queue pair that is still there refuses. The kernel
// takes the newest first (uverbs_destroy_ufile_hw).
func TestKilledProcessAsItsPeerSeesIt(t *testing.T) {
	for _, c := range []struct {
		what    string
		qpFirst bool // the queue pair is made before the region
		want    verbs.WCStatus
	}{{"queue pair newest", false, verbs.WCRetryExcErr}, {"region newest", true, verbs.WCRemAccessErr}} {
		t.Run(c.what, func(t *testing.T) {
			run(t, config(t), func(x *rig) {
				a := x.node(x.t, 4096)
				p, err := x.bed.Hosts()[1].NewProcess(x.t, nil)
				x.ok("process", err)
				var b node
				ready := false
				p.Start(x.t, "victim", -1, func(t verbs.Thread) {
					b.ctx = x.open(t)
					b.pd, err = b.ctx.AllocPD(t)
					x.ok("pd", err)
					b.cq, err = b.ctx.CreateCQ(t, verbs.CQAttr{CQE: 1023})
					x.ok("cq", err)
					b.gid = x.gid(t, b.ctx)
					b.buf, err = t.Process().Map(t, 4096, verbs.MapOptions{})
					x.ok("map", err)
					if c.qpFirst {
						b.qp = x.qp(t, b.pd, b.cq)
						for range 400 { // what the kernel has to do before it comes to the queue pair
							_ = x.qp(t, b.pd, b.cq)
						}
					}
					b.mr, err = b.pd.RegMR(t, b.buf.Addr(), 4096, everything)
					x.ok("mr", err)
					if !c.qpFirst {
						b.qp = x.qp(t, b.pd, b.cq)
					}
					x.connect(t, b.qp, b.gid, a.gid, a.qp.QPN(), verbs.MTU1024)
					ready = true
					t.Sleep(time.Hour)
				})
				for !ready {
					x.t.Sleep(time.Millisecond)
				}
				x.connect(x.t, a.qp, a.gid, b.gid, b.qp.QPN(), verbs.MTU1024)
				x.t.Process().Start(x.t, "killer", -1, func(t verbs.Thread) {
					t.Sleep(100 * time.Microsecond)
					p.Kill(t)
				})
				var wc [1]verbs.WC
				for n := 0; ; n++ {
					x.post(a, verbs.SendWR{ID: uint64(n), Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: a.sge(0, 64), RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey()})
					if k, err := a.cq.PollWait(x.t, wc[:], time.Minute); err != nil || k != 1 {
						x.Fatalf("write %d: %d completions, %v", n, k, err)
					}
					if wc[0].Status != verbs.WCSuccess {
						if n < 10 {
							x.Errorf("the process was killed before it was written to")
						}
						break
					}
				}
				if wc[0].Status != c.want {
					x.Errorf("the peer sees %v, vendor error %#x; want %v", wc[0].Status, wc[0].VendorErr, c.want)
				}
			})
		})
	}
}
