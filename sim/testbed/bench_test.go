package testbed

import (
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// stream is one thread's share of a benchmark: n writes, signalled each `every`, with
// at most two such groups outstanding.
func (x *rig) stream(t verbs.Thread, q verbs.QP, cq verbs.CQ, w []verbs.SendWR, n, every int) {
	flags := w[0].Flags
	var wc [4]verbs.WC
	out := 0
	for i := 1; i <= n; i++ {
		w[0].Flags = flags
		if i%every == 0 {
			w[0].Flags |= verbs.SendSignaled
			out++
		}
		if _, err := q.PostSend(t, w); err != nil {
			x.Fatal(err)
		}
		for out == 2 || i == n && out > 0 {
			k, err := cq.PollWait(t, wc[:], time.Second)
			if err != nil || k == 0 || wc[0].Status != verbs.WCSuccess {
				x.Fatalf("poll: %d completions, %v, %v", k, err, wc[0].Status)
			}
			out -= k
		}
	}
}

// load runs writes of size bytes, of perMsg packets each, on one QP for each of some
// threads over the cable, and reports messages and packets for each second of CPU time.
func load(b *testing.B, size, threads int, mtu verbs.MTU, perMsg int, change ...func(*Config)) {
	c := config(b, append(change, func(c *Config) { c.NoTap = true })...)
	b.ReportAllocs()
	run(b, c, func(x *rig) {
		ctx := x.open(x.t)
		p, err := x.bed.Hosts()[1].NewProcess(x.t, nil)
		x.ok("process", err)
		nodes := make([]*node, threads)
		peers := make([]*node, threads)
		for i := range nodes {
			nodes[i] = &node{ctx: ctx}
			x.fill(x.t, nodes[i], uint64(max(size, 4096)))
		}
		x.t.Join(p.Start(x.t, "peer", -1, func(t verbs.Thread) {
			pctx := x.open(t)
			for i := range peers {
				peers[i] = &node{ctx: pctx}
				x.fill(t, peers[i], uint64(max(size, 4096)))
				x.connect(t, peers[i].qp, peers[i].gid, nodes[i].gid, nodes[i].qp.QPN(), mtu)
			}
		}))
		for i, n := range nodes {
			x.connect(x.t, n.qp, n.gid, peers[i].gid, peers[i].qp.QPN(), mtu)
		}
		round := func(total int) {
			var ths []verbs.Thread
			for i, n := range nodes {
				ths = append(ths, x.t.Process().Start(x.t, "poster", -1, func(t verbs.Thread) {
					w := []verbs.SendWR{{Opcode: verbs.WRRDMAWrite, SGEs: n.sge(0, size), RemoteAddr: peers[i].buf.Addr(), RKey: peers[i].mr.RKey()}}
					if size <= 28 {
						w[0].Flags = verbs.SendInline
					}
					x.stream(t, n.qp, n.cq, w, total/threads, 64)
				}))
			}
			for _, th := range ths {
				x.t.Join(th)
			}
		}
		round(64 * threads * 4)
		n := (b.N/threads/64 + 1) * 64 * threads
		events, virtual, cpu := x.bed.eng.Events(), x.t.Now(), cpuTime()
		b.ResetTimer()
		round(n)
		b.StopTimer()
		used := cpuTime() - cpu
		msgs := float64(n)
		b.ReportMetric(used.Seconds()*1e9/msgs, "ns/op") // of CPU time, too
		b.ReportMetric(msgs/used.Seconds(), "msgs/cpu-s")
		if perMsg > 1 {
			b.ReportMetric(msgs*float64(perMsg)/used.Seconds(), "pkts/cpu-s")
		}
		b.ReportMetric(float64(x.bed.eng.Events()-events)/msgs, "events/msg")
		b.ReportMetric(msgs/(x.t.Now()-virtual).Seconds()/1e6, "simulated-Mmsg/s")
	})
}

func BenchmarkWrite2B16QP(b *testing.B) { load(b, 2, 16, verbs.MTU1024, 1) }
func BenchmarkIBWrite2B(b *testing.B)   { load(b, 2, 16, verbs.MTU1024, 1, infiniBand) }
func BenchmarkWrite4K100G(b *testing.B) { load(b, 4096, 4, verbs.MTU1024, 4) }
