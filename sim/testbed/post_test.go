package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// none checks that nothing completes for a while.
func (x *rig) none(n *node) {
	x.Helper()
	var wc [1]verbs.WC
	k, err := n.cq.PollWait(x.t, wc[:], time.Millisecond)
	x.ok("poll", err)
	if k != 0 {
		x.Fatalf("unexpected completion %+v", wc[0])
	}
}

// The legacy call's quirk: when a request fails after its control segment was begun,
// the register is written from that segment, so that the good ones before it wait
// for the next ring. One that fails earlier does no harm.
func TestErrorInAList(t *testing.T) {
	for _, c := range []struct {
		name  string
		bad   func(w *verbs.SendWR)
		errno syscall.Errno
		waits bool
	}{
		{"opcode", func(w *verbs.SendWR) { w.Opcode = 99 }, syscall.EINVAL, false},
		{"SGEs", func(w *verbs.SendWR) { w.SGEs = make([]verbs.SGE, 3) }, syscall.ENOMEM, false},
		{"inline", func(w *verbs.SendWR) { w.SGEs = []verbs.SGE{{Addr: w.SGEs[0].Addr, Length: 1000}} }, syscall.ENOMEM, true},
		{"bind without a window", func(w *verbs.SendWR) { w.Opcode = verbs.WRBindMW }, syscall.EINVAL, true},
	} {
		run(t, config(t), func(x *rig) {
			a, b, _ := x.pair(false, 4096)
			w := verbs.SendWR{ID: 1, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled | verbs.SendInline, SGEs: a.sge(0, 8),
				RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey()}
			bad := w
			c.bad(&bad)
			n, err := a.qp.PostSend(x.t, []verbs.SendWR{w, w, bad, w})
			if n != 2 || !errors.Is(err, c.errno) {
				x.Errorf("%s: bad request %d, %v; want 2, %v", c.name, n, err, c.errno)
			}
			done := 2
			if c.waits {
				x.none(a)
				x.post(a, w)
				done++
			}
			for range done {
				x.wait(x.t, a)
			}
			x.none(a)
		})
	}
}

// Requests of several blocks cross the end of the ring, inline data and all.
func TestRingEnd(t *testing.T) {
	run(t, config(t), func(x *rig) {
		a, b, _ := x.pair(true, 8192)
		qp, err := a.pd.CreateQP(x.t, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: a.cq, RecvCQ: a.cq, SigAll: true,
			Cap: verbs.QPCap{MaxSendWR: 5, MaxSendSGE: 1, MaxInline: 400, MaxRecvWR: 1, MaxRecvSGE: 1}})
		x.ok("qp", err)
		peer := &node{}
		p, err := x.bed.Hosts()[1].NewProcess(x.t, nil)
		x.ok("process", err)
		x.t.Join(p.Start(x.t, "peer", -1, func(t verbs.Thread) {
			peer = x.node(t, 8192)
			x.connect(t, peer.qp, peer.gid, a.gid, qp.QPN(), verbs.MTU256)
		}))
		x.connect(x.t, qp, a.gid, b.gid, peer.qp.QPN(), verbs.MTU256)
		max := int(qp.Caps().MaxInline)
		for i := range 60 {
			n := 1 + i*53%max
			want := bytes.Repeat([]byte{byte(i + 1)}, n)
			x.write(x.t, a.buf, want, 0)
			_, err := qp.PostSend(x.t, []verbs.SendWR{{ID: uint64(i), Opcode: verbs.WRRDMAWrite, Flags: verbs.SendInline, SGEs: a.sge(0, n),
				RemoteAddr: peer.buf.Addr(), RKey: peer.mr.RKey()}})
			x.ok("post", err)
			x.write(x.t, a.buf, make([]byte, n), 0) // inline data was taken
			if wc := x.wait(x.t, a); int(wc.ID) != i {
				x.Fatalf("completion of %d, want %d", wc.ID, i)
			}
			x.t.Join(p.Start(x.t, "check", -1, func(t verbs.Thread) {
				if got := x.read(t, peer.buf, 0, n); !bytes.Equal(got, want) {
					x.Fatalf("message %d of %d bytes arrived as %v", i, n, got)
				}
			}))
		}
	})
}

// Small results come inside completions, by both entry sizes, or not at all when the
// environment says so; what the program sees is the same.
func TestScatterToCQE(t *testing.T) {
	for _, size := range []int{64, 128} {
		for _, off := range []string{"1", "0"} {
			c := config(t, func(c *Config) {
				c.Env = map[string]string{"MLX5_CQE_SIZE": fmt.Sprint(size), "MLX5_SCATTER_TO_CQE": off}
			})
			run(t, c, func(x *rig) {
				a, b, _ := x.pair(false, 4096)
				for _, n := range []int{1, 8, 24, 31, 32, 33, 63, 64, 65} {
					want := pattern(n)
					x.write(x.t, b.buf, want, 0)
					x.post(a, verbs.SendWR{Opcode: verbs.WRRDMARead, Flags: verbs.SendSignaled, RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey(),
						SGEs: append(a.sge(0, n/2), a.sge(1000, n-n/2)...)})
					x.wait(x.t, a)
					if got := append(x.read(x.t, a.buf, 0, n/2), x.read(x.t, a.buf, 1000, n-n/2)...); !bytes.Equal(got, want) {
						x.Errorf("CQE size %d, scatter %s: read of %d bytes gave %v", size, off, n, got)
					}
					_, err := b.qp.PostRecv(x.t, []verbs.RecvWR{{SGEs: append(b.sge(2000, n/2), b.sge(3000, n)...)}})
					x.ok("recv", err)
					x.write(x.t, a.buf, want, 0)
					x.post(a, verbs.SendWR{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGEs: a.sge(0, n)})
					x.wait(x.t, a)
					if wc := x.wait(x.t, b); int(wc.ByteLen) != n {
						x.Errorf("CQE size %d, scatter %s: received %+v, want %d bytes", size, off, wc, n)
					}
					if got := append(x.read(x.t, b.buf, 2000, n/2), x.read(x.t, b.buf, 3000, n-n/2)...); !bytes.Equal(got, want) {
						x.Errorf("CQE size %d, scatter %s: send of %d bytes gave %v", size, off, n, got)
					}
				}
			})
		}
	}
}

// A QP that is destroyed or reset takes its completions out of a shared CQ, and the
// others stay in order.
func TestCleanOfASharedCQ(t *testing.T) {
	for _, reset := range []bool{false, true} {
		run(t, config(t), func(x *rig) {
			a, b, _ := x.pair(false, 4096)
			c, d := &node{}, &node{}
			*c, *d = *a, *b
			c.qp, d.qp = x.qp(x.t, a.pd, a.cq), x.qp(x.t, b.pd, b.cq)
			x.connect(x.t, c.qp, c.gid, d.gid, d.qp.QPN(), verbs.MTU1024)
			x.connect(x.t, d.qp, d.gid, c.gid, c.qp.QPN(), verbs.MTU1024)
			for i := range 40 {
				n := []*node{a, c, c, a, a}[i%5]
				x.post(n, verbs.SendWR{ID: uint64(i), Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: a.sge(0, 8), RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey()})
			}
			x.t.Sleep(100 * time.Microsecond)
			if reset {
				x.ok("reset", c.qp.Modify(x.t, &verbs.QPAttr{State: verbs.QPSReset}, verbs.QPMaskState))
			} else {
				x.ok("destroy", c.qp.Destroy(x.t))
			}
			for i := range 40 {
				if i%5 == 1 || i%5 == 2 {
					continue
				}
				if wc := x.wait(x.t, a); int(wc.ID) != i || wc.QPN != a.qp.QPN() {
					x.Fatalf("completion %+v, want %d of %#x", wc, i, a.qp.QPN())
				}
			}
			x.none(a)
		})
	}
}

// Locks: a QP takes its lock once for each call, one on a thread domain none.
func TestLockCounts(t *testing.T) {
	for _, td := range []bool{false, true} {
		run(t, config(t), func(x *rig) {
			a, b, _ := x.pair(false, 4096)
			attr := verbs.ParentDomainAttr{PD: a.pd}
			if td {
				var err error
				attr.TD, err = a.ctx.AllocTD(x.t, verbs.TDInitAttr{})
				x.ok("td", err)
			}
			pd, err := a.ctx.AllocParentDomain(x.t, attr)
			x.ok("parent domain", err)
			q := x.qp(x.t, pd, a.cq)
			x.connect(x.t, q, a.gid, b.gid, b.qp.QPN(), verbs.MTU1024)
			x.ok("peer reset", b.qp.Modify(x.t, &verbs.QPAttr{State: verbs.QPSReset}, verbs.QPMaskState))
			x.connect(x.t, b.qp, b.gid, a.gid, q.QPN(), verbs.MTU1024)
			n := *a
			n.qp = q
			for range 10 {
				_, err := q.PostRecv(x.t, []verbs.RecvWR{{SGEs: a.sge(0, 8)}})
				x.ok("recv", err)
				x.post(&n, verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: a.sge(0, 8), RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey()})
				x.wait(x.t, &n)
			}
			want := uint64(10)
			if td {
				want = 0
			}
			if s := q.(verbs.LockCounter).LockStats(); s.SQ != want || s.RQ != want || s.CQ == 0 {
				x.Errorf("thread domain %v: %+v, want %d of each queue", td, s, want)
			}
			if err := pd.Dealloc(x.t); !errors.Is(err, syscall.EBUSY) {
				x.Errorf("dealloc of a parent domain in use: %v", err)
			}
		})
	}
}

// Destroying a CQ waits for its events to be acknowledged.
func TestEventsAndAcks(t *testing.T) {
	run(t, config(t), func(x *rig) {
		ctx := x.open(x.t)
		ch, err := ctx.CreateCompChannel(x.t)
		x.ok("channel", err)
		a := &node{ctx: ctx}
		x.fill(x.t, a, 4096)
		b := &node{ctx: ctx}
		x.fill(x.t, b, 4096)
		cq, err := ctx.CreateCQ(x.t, verbs.CQAttr{CQE: 10, Channel: ch})
		x.ok("cq", err)
		n := *a
		n.cq, n.qp = cq, x.qp(x.t, a.pd, cq)
		x.connect(x.t, n.qp, n.gid, b.gid, b.qp.QPN(), verbs.MTU1024)
		x.connect(x.t, b.qp, b.gid, n.gid, n.qp.QPN(), verbs.MTU1024)
		w := verbs.SendWR{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: a.sge(0, 8), RemoteAddr: b.buf.Addr(), RKey: b.mr.RKey()}
		for range 3 {
			x.ok("arm", cq.ReqNotify(x.t, false))
			x.post(&n, w)
			got, err := ch.Event(x.t, time.Second)
			x.ok("event", err)
			if got != cq {
				x.Fatalf("event of another CQ")
			}
			x.wait(x.t, &n)
		}
		if _, err := ch.Event(x.t, time.Millisecond); !errors.Is(err, syscall.EAGAIN) {
			x.Errorf("event without arming: %v, want EAGAIN", err)
		}
		if err := ch.Destroy(x.t); !errors.Is(err, syscall.EBUSY) {
			x.Errorf("destroy of a channel in use: %v", err)
		}
		x.ok("destroy QP", n.qp.Destroy(x.t))
		gone := false
		th := x.t.Process().Start(x.t, "destroyer", -1, func(t verbs.Thread) {
			x.ok("destroy CQ", cq.Destroy(t))
			gone = true
		})
		ch.Ack(x.t, cq, 2)
		x.t.Sleep(time.Millisecond)
		if gone {
			x.Errorf("the CQ was destroyed with an event not acknowledged")
		}
		ch.Ack(x.t, cq, 1)
		x.t.Join(th)
		x.ok("destroy channel", ch.Destroy(x.t))
	})
}

// A parent domain's allocator gets every queue and record, and each is freed once.
func TestCustomAllocator(t *testing.T) {
	run(t, config(t), func(x *rig) {
		ctx, base, cq := x.domainAndCQ()
		live := map[uint64]uint64{} // address to resource
		asked := map[uint64]int{}
		pd, err := ctx.AllocParentDomain(x.t, verbs.ParentDomainAttr{PD: base, CompMask: verbs.ParentDomainAllocators,
			Alloc: func(t verbs.Thread, size, align, resource uint64) (verbs.Buffer, verbs.AllocAnswer) {
				asked[resource]++
				b, err := t.Process().Map(t, size, verbs.MapOptions{})
				x.ok("map", err)
				live[b.Addr()] = resource
				return b, verbs.AllocOK
			},
			Free: func(t verbs.Thread, b verbs.Buffer, resource uint64) {
				if live[b.Addr()] != resource {
					x.Errorf("%#x is freed as %#x, was %#x", b.Addr(), resource, live[b.Addr()])
				}
				delete(live, b.Addr())
			}})
		x.ok("parent domain", err)
		q := x.qp(x.t, pd, cq)
		pcq, err := ctx.CreateCQ(x.t, verbs.CQAttr{CQE: 10, Ex: true, ParentDomain: pd, CompMask: 2})
		x.ok("cq", err)
		const driver = 1 << 32
		if asked[driver|1] != 1 || asked[driver|3] != 2 || asked[driver|5] != 1 || len(live) != 4 {
			x.Errorf("asked for %v", asked)
		}
		x.ok("destroy QP", q.Destroy(x.t))
		x.ok("destroy CQ", pcq.Destroy(x.t))
		if len(live) != 0 {
			x.Errorf("still there: %v", live)
		}
	})
}

// Ten thousand connected QPs fit in 1 GiB of the simulating machine's memory.
func TestTenThousandQPs(t *testing.T) {
	if testing.Short() {
		t.Skip("makes ten thousand QPs")
	}
	run(t, config(t, func(c *Config) { c.NoTap = true }), func(x *rig) {
		a := x.node(x.t, 4096)
		for range 5000 {
			p, q := x.qp(x.t, a.pd, a.cq), x.qp(x.t, a.pd, a.cq)
			x.connect(x.t, p, a.gid, a.gid, q.QPN(), verbs.MTU1024)
			x.connect(x.t, q, a.gid, a.gid, p.QPN(), verbs.MTU1024)
			_, err := p.PostSend(x.t, []verbs.SendWR{{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGEs: a.sge(0, 64), RemoteAddr: a.buf.Addr(), RKey: a.mr.RKey()}})
			x.ok("post", err)
			x.wait(x.t, a)
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		if m.HeapInuse+m.StackInuse > 1<<30 {
			x.Errorf("%d MiB in use for 10,000 QPs", (m.HeapInuse+m.StackInuse)>>20)
		}
		x.Logf("%d KiB for each QP", m.HeapInuse/10000>>10)
	})
}
