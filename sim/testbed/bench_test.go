package testbed

import (
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/sim"
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

// flow is what one QP of a benchmark has to send, in few cache lines, so that the load itself
// costs little with many QPs.
type flow struct {
	qp     verbs.QP
	cq     verbs.CQ
	sge    [1]verbs.SGE
	remote uint64
	rkey   uint32
	out    int // signalled groups outstanding
}

// writes is the flow of RDMA writes of size bytes from a node to its peer.
func (n *node) writes(peer *node, size int) flow {
	return flow{qp: n.qp, cq: n.cq, sge: [1]verbs.SGE(n.sge(0, size)), remote: peer.buf.Addr(), rkey: peer.mr.RKey()}
}

// stream is one thread's share of a benchmark: n writes on each of its QPs in turn,
// signalled each `every`, with at most two such groups outstanding on a QP.
func (x *rig) stream(t verbs.Thread, flows []flow, flags verbs.SendFlags, n, every int) {
	var wc [4]verbs.WC
	w := []verbs.SendWR{{Opcode: verbs.WRRDMAWrite}}
	for i := 1; i <= n; i++ {
		w[0].Flags = flags
		signaled := i%every == 0
		if signaled {
			w[0].Flags |= verbs.SendSignaled
		}
		for k := range flows {
			f := &flows[k]
			w[0].SGEs, w[0].RemoteAddr, w[0].RKey = f.sge[:], f.remote, f.rkey
			if _, err := f.qp.PostSend(t, w); err != nil {
				x.Fatal(err)
			}
			if signaled {
				f.out++
			}
			for f.out == 2 || i == n && f.out > 0 {
				k, err := f.cq.PollWait(t, wc[:], time.Second)
				if err != nil || k == 0 || wc[0].Status != verbs.WCSuccess {
					x.Fatalf("poll: %d completions, %v, %v", k, err, wc[0].Status)
				}
				f.out -= k
			}
		}
	}
}

// sendBound is a send engine that takes as long for a message as the receive engine.
func sendBound(c *Config) { c.Profile.HCA.IssueInterval = 10 * sim.Nanosecond }

// load runs writes of size bytes, of perMsg packets each, by some threads with some QPs each
// over the cable, and reports messages and packets for each second of CPU time.
func load(b *testing.B, size, threads, each int, mtu verbs.MTU, perMsg int, change ...func(*Config)) {
	c := config(b, append(change, func(c *Config) { c.NoTap = true })...)
	b.ReportAllocs()
	run(b, c, func(x *rig) {
		ctx := x.open(x.t)
		p, err := x.bed.Hosts()[1].NewProcess(x.t, nil)
		x.ok("process", err)
		nodes := make([]*node, threads*each)
		peers := make([]*node, len(nodes))
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
			for first := 0; first < len(nodes); first += each {
				ths = append(ths, x.t.Process().Start(x.t, "poster", -1, func(t verbs.Thread) {
					flows := make([]flow, each)
					for k := range flows {
						flows[k] = nodes[first+k].writes(peers[first+k], size)
					}
					flags := verbs.SendFlags(0)
					if size <= 28 {
						flags = verbs.SendInline
					}
					x.stream(t, flows, flags, total/len(nodes), 64)
				}))
			}
			for _, th := range ths {
				x.t.Join(th)
			}
		}
		round(64 * len(nodes) * 4)
		n := (b.N/len(nodes)/64 + 1) * 64 * len(nodes)
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

func BenchmarkWrite2B16QP(b *testing.B)   { load(b, 2, 16, 1, verbs.MTU1024, 1) }
func BenchmarkWrite2B1024QP(b *testing.B) { load(b, 2, 16, 64, verbs.MTU1024, 1) }
func BenchmarkIBWrite2B(b *testing.B)     { load(b, 2, 16, 1, verbs.MTU1024, 1, infiniBand) }

// The same with the send side as the limit. What the profile's values make of the load, such as
// packets that wait for credits because the target is slower, is not in these: they tell a change
// of the code from one of the profile.
func BenchmarkWrite2BSendBound(b *testing.B) { load(b, 2, 16, 1, verbs.MTU1024, 1, sendBound) }
func BenchmarkIBWrite2BSendBound(b *testing.B) {
	load(b, 2, 16, 1, verbs.MTU1024, 1, infiniBand, sendBound)
}

func BenchmarkWrite4K100G(b *testing.B) { load(b, 4096, 4, 1, verbs.MTU1024, 4) }
