package testbed

import (
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/verbs"
)

// A CQ is resized again and again while one thread posts and another polls: every
// completion is seen once and in order.
func TestResizeUnderLoad(t *testing.T) {
	for _, size := range []int{64, 128} {
		for seed := range uint64(4) {
			resizeUnderLoad(t, size, seed)
		}
	}
}

func resizeUnderLoad(t *testing.T, cqeSize int, seed uint64) {
	const total = 3000
	draw := sim.NewRand(seed, "resize")
	c := config(t, func(c *Config) { c.Seed = seed })
	moved := 0
	run(t, c, func(x *rig) {
		n := &node{ctx: x.open(x.t)}
		var err error
		n.cq, err = n.ctx.CreateCQ(x.t, verbs.CQAttr{CQE: 63, Ex: true, CQESize: cqeSize})
		x.ok("create_cq", err)
		n.pd, err = n.ctx.AllocPD(x.t)
		x.ok("alloc_pd", err)
		n.gid = x.gid(x.t, n.ctx)
		n.buf, err = x.t.Process().Map(x.t, 4096, verbs.MapOptions{})
		x.ok("map", err)
		n.mr, err = n.pd.RegMR(x.t, n.buf.Addr(), n.buf.Len(), everything)
		x.ok("reg_mr", err)
		a, b := x.qp(x.t, n.pd, n.cq), x.qp(x.t, n.pd, n.cq)
		x.connect(x.t, b, n.gid, n.gid, a.QPN(), verbs.MTU1024)
		x.connect(x.t, a, n.gid, n.gid, b.QPN(), verbs.MTU1024)
		taken := 0
		w := verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: n.sge(0, 8), RemoteAddr: n.buf.Addr(), RKey: n.mr.RKey()}
		poster := x.t.Process().Start(x.t, "poster", -1, func(th verbs.Thread) {
			for w.ID < total {
				if int(w.ID)-taken >= 24 {
					th.Sleep(time.Microsecond)
					continue
				}
				if _, err := a.PostSend(th, []verbs.SendWR{w}); err != nil {
					t.Errorf("post %d: %v", w.ID, err)
					return
				}
				w.ID++
			}
		})
		poller := x.t.Process().Start(x.t, "poller", -1, func(th verbs.Thread) {
			wc := make([]verbs.WC, 4)
			for taken < total {
				k, err := n.cq.PollWait(th, wc[:1+draw.Intn(4)], time.Second)
				if err != nil || k == 0 {
					t.Errorf("poll after %d: %d, %v", taken, k, err)
					return
				}
				for _, got := range wc[:k] {
					if got.ID != uint64(taken) || got.Status != verbs.WCSuccess {
						t.Errorf("completion %d has wr_id %d, status %v", taken, got.ID, got.Status)
						return
					}
					taken++
				}
				th.Work(time.Duration(draw.Intn(2000)))
			}
		})
		for taken < total && !t.Failed() {
			want := 24 + draw.Intn(230) // never below what the poster may have outstanding
			x.ok("resize", n.cq.Resize(x.t, want))
			moved++
			if n.cq.Cap() < want {
				t.Errorf("asked for %d, got %d", want, n.cq.Cap())
			}
			x.t.Sleep(time.Duration(draw.Intn(30_000)))
		}
		x.t.Join(poster)
		x.t.Join(poller)
	})
	if moved < 10 {
		t.Errorf("%d-byte entries, seed %d: resized %d times only", cqeSize, seed, moved)
	}
}
