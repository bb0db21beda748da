package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// benchQP posts prebuilt WQEs and counts completions through windows into memory.
type benchQP struct {
	*tQP
	wqe  []byte
	ring []byte
	cqes []byte
	cdb  []byte
	qdb  []byte
}

func newBenchQP(q *tQP, w wr) *benchQP {
	b := &benchQP{tQP: q}
	b.wqe = q.build(w)
	b.wqe = append(b.wqe, make([]byte, -len(b.wqe)&63)...)
	b.ring = q.h.m.Window(q.sq, tBlocks*64)
	b.cqes = q.h.m.Window(q.scq.pa, int(q.scq.size)*64)
	b.cdb = q.h.m.Window(q.scq.db, 8)
	b.qdb = q.h.m.Window(q.db, 8)
	return b
}

func (b *benchQP) post(blueFlame bool) {
	prm.CtrlSegment(b.wqe).SetWQEIndex(b.pi)
	copy(b.ring[int(b.pi)%tBlocks*64:], b.wqe)
	b.pi += uint16(len(b.wqe) / 64)
	prm.QPDBRec(b.qdb).SetSend(b.pi)
	if blueFlame {
		b.h.d.MMIOWrite(b.reg(), b.wqe)
	} else {
		b.h.d.MMIOWrite(b.reg(), b.wqe[:8])
	}
}

func (b *benchQP) poll() int {
	n := 0
	for {
		e := prm.CQE64(b.cqes[b.scq.ci&(b.scq.size-1)*64:][:64])
		if !e.Ready(b.scq.ci, b.scq.size) {
			break
		}
		if e.Opcode() != prm.CQEReq {
			b.h.t.Fatalf("CQE opcode %d %v", e.Opcode(), e.Syndrome())
		}
		b.scq.ci++
		n++
	}
	prm.CQDBRec(b.cdb).SetCI(b.scq.ci)
	return n
}

// bench keeps window messages of each of 16 pairs in flight and reports messages per
// second and events per message.
func bench(b *testing.B, blueFlame bool, window int, mk func(r *mr) wr) {
	h := newHost(b, sim.New(sim.Options{}), testParams(), 1)
	r := h.newMR(1<<20, rightsAll)
	var qs [16]*benchQP
	o := defaults()
	o.mtu = roce.MTU1024
	for i := range qs {
		x, y := h.newQPOn(h.newCQ(7, 64), h.newCQ(7, 64), h.uar+uint32(i%tUARs), nil), h.newQP(h.newCQ(7, 64), h.newCQ(7, 64))
		x.connect(y, o)
		y.connect(x, o)
		qs[i] = newBenchQP(x, mk(r))
		x.half = uint64(i/tUARs) * 512
	}
	run(b, h.e, 10*sim.Microsecond)
	done := 0
	loop := func(n int) {
		for done = 0; done < n; {
			for _, q := range qs {
				for uint32(q.pi)-q.scq.ci&0xffff < uint32(window) {
					q.post(blueFlame)
				}
			}
			if err := h.e.Run(h.e.Now() + 2*sim.Microsecond); err != nil {
				b.Fatal(err)
			}
			for _, q := range qs {
				done += q.poll()
			}
		}
	}
	loop(5000)
	b.ReportAllocs()
	events := h.e.Events()
	b.ResetTimer()
	loop(b.N)
	b.ReportMetric(float64(h.e.Events()-events)/float64(done), "events/op")
	b.ReportMetric(float64(done)/b.Elapsed().Seconds(), "msg/s")
}

func BenchmarkWrite2BlueFlame(b *testing.B) {
	bench(b, true, 8, func(r *mr) wr {
		return wr{op: prm.WQEOpRDMAWrite, raddr: r.va, rkey: r.rkey, inline: []byte("ab")}
	})
}

func BenchmarkWrite4K(b *testing.B) {
	bench(b, false, 8, func(r *mr) wr {
		return wr{op: prm.WQEOpRDMAWrite, raddr: r.va + 8192, rkey: r.rkey, sges: []sge{r.sge(0, 4096)}}
	})
}
