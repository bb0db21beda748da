package testbed

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/verbs"
)

// zipped is a stream of completions on compressed CQs, or on plain ones when the format is 0.
type zipped struct {
	format     uint8
	size       int // of an entry
	aggressive bool
	srq        bool
	lockstep   bool
	seed       uint64
}

// completions runs a random stream: three queue pairs on two CQs of 31 entries, which are armed,
// resized and polled at random; then a queue pair is destroyed and the others are flushed. It
// returns what each queue completed, in order.
func (z zipped) completions(t *testing.T) (seen map[string][]verbs.WC, sessions uint64) {
	seen = map[string][]verbs.WC{}
	c := config(t, func(c *Config) { c.Profile.HCA.CQECompAggressive, c.Lockstep = z.aggressive, z.lockstep })
	b := run(t, c, func(x *rig) {
		s := &zippedStream{rig: x, draw: sim.NewRand(z.seed, "posts"), polls: sim.NewRand(z.seed, "polls"), seen: seen}
		s.build(z)
		for round := range 40 {
			s.burst(1 + s.draw.Intn(10))
			if round%8 == 5 {
				x.ok("resize", s.cq[s.draw.Intn(2)].Resize(x.t, 31+s.draw.Intn(90)))
			}
			s.drain()
		}
		for i, p := range s.pairs {
			x.ok("error", p.b.Modify(x.t, &verbs.QPAttr{State: verbs.QPSErr}, verbs.QPMaskState))
			if i == 0 { // what it has left is dropped
				x.ok("destroy", p.b.Destroy(x.t))
				continue
			}
			x.t.Sleep(50 * time.Microsecond)
		}
		s.drain()
	})
	return seen, b.hosts[0].devices[0].hca.Counters().CQESessions
}

type zippedStream struct {
	*rig
	draw  *sim.Rand
	polls *sim.Rand // how many of these are drawn depends on the time that things take
	n     node
	cq    [2]verbs.CQ // of sends, of receives
	srq   verbs.SRQ
	pairs []*struct{ a, b verbs.QP }
	seen  map[string][]verbs.WC
	due   [2]int
	id    uint64
}

func (s *zippedStream) build(z zipped) {
	x := s.rig
	s.n.ctx = x.open(x.t)
	var err error
	s.n.pd, err = s.n.ctx.AllocPD(x.t)
	x.ok("pd", err)
	s.n.buf, err = x.t.Process().Map(x.t, 1<<16, verbs.MapOptions{})
	x.ok("map", err)
	s.n.mr, err = s.n.pd.RegMR(x.t, s.n.buf.Addr(), s.n.buf.Len(), everything)
	x.ok("mr", err)
	for i := range s.cq {
		s.cq[i], err = s.n.ctx.CreateCQ(x.t, verbs.CQAttr{CQE: 31, Ex: true, CQESize: z.size, CQECompression: z.format})
		x.ok("cq", err)
	}
	if z.srq {
		s.srq, err = s.n.pd.CreateSRQ(x.t, verbs.SRQInitAttr{MaxWR: 128, MaxSGE: 1})
		x.ok("srq", err)
	}
	gid := x.gid(x.t, s.n.ctx)
	for range 3 {
		p := &struct{ a, b verbs.QP }{}
		for _, q := range []*verbs.QP{&p.a, &p.b} {
			*q, err = s.n.pd.CreateQP(x.t, verbs.QPInitAttr{Type: verbs.QPTRC, SendCQ: s.cq[0], RecvCQ: s.cq[1], SRQ: s.srq,
				Cap: verbs.QPCap{MaxSendWR: 64, MaxRecvWR: 64, MaxSendSGE: 1, MaxRecvSGE: 1}})
			x.ok("qp", err)
		}
		x.connect(x.t, p.b, gid, gid, p.a.QPN(), verbs.MTU1024)
		x.connect(x.t, p.a, gid, gid, p.b.QPN(), verbs.MTU1024)
		s.pairs = append(s.pairs, p)
	}
}

// burst posts n requests, mostly of one kind and on one queue pair.
func (s *zippedStream) burst(n int) {
	p, kind := s.pairs[s.draw.Intn(3)], s.draw.Intn(6)
	for range n {
		if s.draw.Intn(12) == 0 {
			p, kind = s.pairs[s.draw.Intn(3)], s.draw.Intn(6)
		}
		s.id++
		w := verbs.SendWR{ID: s.id, Flags: verbs.SendSignaled, SGEs: s.n.sge(0, 8*s.draw.Intn(200)), RemoteAddr: s.n.buf.Addr() + 8192, RKey: s.n.mr.RKey()}
		w.Opcode = [...]verbs.WROpcode{verbs.WRSend, verbs.WRSend, verbs.WRSendImm, verbs.WRRDMAWriteImm, verbs.WRRDMAWrite, verbs.WRAtomicFetchAdd}[kind]
		w.Imm = uint32(s.draw.Intn(2))
		if kind == 5 {
			w.SGEs[0].Length = 8
		}
		if kind == 1 && s.draw.Intn(8) == 0 {
			w.Flags |= verbs.SendSolicited
		}
		if kind <= 3 {
			r := verbs.RecvWR{ID: s.id, SGEs: s.n.sge(16384, 4096)}
			var err error
			if s.srq != nil {
				_, err = s.srq.PostRecv(s.t, []verbs.RecvWR{r})
			} else {
				_, err = p.b.PostRecv(s.t, []verbs.RecvWR{r})
			}
			s.ok("recv", err)
			s.due[1]++
		}
		_, err := p.a.PostSend(s.t, []verbs.SendWR{w})
		s.ok("send", err)
		s.due[0]++
		if s.draw.Intn(6) == 0 {
			s.ok("arm", s.cq[s.draw.Intn(2)].ReqNotify(s.t, s.draw.Intn(2) == 0))
		}
	}
}

// drain polls until everything that is due has come.
func (s *zippedStream) drain() {
	wc := make([]verbs.WC, 7)
	for i, cq := range s.cq {
		for s.due[i] > 0 {
			k, err := cq.PollWait(s.t, wc[:1+s.polls.Intn(7)], time.Second)
			s.ok("poll", err)
			if k == 0 {
				s.Fatalf("%d completions of CQ %d do not come", s.due[i], i)
			}
			for _, w := range wc[:k] {
				key := fmt.Sprintf("QP %d CQ %d", w.QPN, i)
				s.seen[key] = append(s.seen[key], w)
			}
			s.due[i] -= k
		}
	}
}

// With compression programs see the same completions as without.
func TestCompressedCompletions(t *testing.T) {
	for seed := range uint64(3) {
		for _, srq := range []bool{false, true} {
			plain := zipped{seed: seed, srq: srq}
			want, none := plain.completions(t)
			if none != 0 || len(want) == 0 {
				t.Fatalf("%d sessions without compression, %d queues", none, len(want))
			}
			for _, z := range []zipped{
				{format: verbs.CQECompHash, size: 64}, {format: verbs.CQECompCsum, size: 64, aggressive: true},
				{format: verbs.CQECompCsumStrideIndex, size: 128, aggressive: true},
			} {
				z.seed, z.srq = seed, srq
				got, sessions := z.completions(t)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%+v: %s", z, diff)
				}
				if z.aggressive && sessions == 0 {
					t.Errorf("%+v: nothing was compressed", z)
				}
				z.lockstep = true
				got, again := z.completions(t)
				if diff := cmp.Diff(want, got); diff != "" || again != sessions {
					t.Fatalf("%+v: %d sessions, %d without; %s", z, again, sessions, diff)
				}
			}
		}
	}
}
