package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"pgregory.net/rapid"
)

// badWire carries frames between two devices, and loses, repeats and delays some.
type badWire struct {
	e                *sim.Engine
	to               *Device
	rand             *sim.Rand
	loss, dup, delay int // one in so many; 0 never
	late             []*roce.Frame
	n                int
	spoil            int // changes a byte of so many frames
	deliver          sim.Handler
}

func newWire(e *sim.Engine, to *Device, seed uint64, name string) *badWire {
	w := &badWire{e: e, to: to, rand: sim.NewRand(seed, name)}
	w.deliver = func(i uint64) {
		f := w.late[i]
		w.late[i] = nil
		w.to.Receive(f)
	}
	return w
}

func (w *badWire) hit(n int) bool { return n > 0 && w.rand.Intn(n) == 0 }

func (w *badWire) Send(f *roce.Frame) {
	w.n++
	if w.hit(w.loss) {
		f.Release()
		return
	}
	if w.spoil > 0 {
		w.spoil--
		f.Touch()
		f.B[len(f.B)-6] ^= 1
	}
	d := 200 * sim.Nanosecond
	if w.hit(w.delay) {
		d += sim.Time(w.rand.Intn(3000)) * sim.Nanosecond
	}
	if w.hit(w.dup) {
		w.at(d+sim.Time(w.rand.Intn(2000))*sim.Nanosecond, f.Retain())
	}
	w.at(d, f)
}

func (w *badWire) at(d sim.Time, f *roce.Frame) {
	w.late = append(w.late, f)
	w.e.After(d, w.deliver, uint64(len(w.late)-1))
}

// twoHosts is two devices on one wire, with a connected pair.
func twoHosts(t testing.TB, p Params, seed uint64, o opts) (ha, hb *host, a, b *tQP, ab, ba *badWire) {
	e := sim.New(sim.Options{MaxEvents: 1 << 26})
	ha, hb = newHost(t, e, p, 1), newHost(t, e, p, 2)
	ab, ba = newWire(e, hb.d, seed, "ab"), newWire(e, ha.d, seed, "ba")
	ha.d.SetWire(ab)
	hb.d.SetWire(ba)
	a, b = ha.newQP(ha.newCQ(9, 64), ha.newCQ(9, 64)), hb.newQP(hb.newCQ(9, 64), hb.newCQ(9, 64))
	a.connect(b, o)
	b.connect(a, o)
	return
}

// TestLossyWire posts a random mix of operations over a wire that loses, repeats
// and reorders, and checks what reliable means: every operation completes once, in
// order, with the right data, and atomics happened exactly once.
func TestLossyWire(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := defaults()
		o.timeout = 5
		o.mtu = roce.MTU(rapid.IntRange(1, 5).Draw(rt, "mtu"))
		p := testParams()
		p.AckDelay = rapid.SampledFrom([]sim.Time{0, 20 * sim.Nanosecond, sim.Microsecond}).Draw(rt, "ackdelay")
		if rapid.Bool().Draw(rt, "nonack") {
			p.NackGenerate, p.NackReact = [2]sim.Time{}, [2]sim.Time{}
		}
		p.SelectiveRepeat, p.RepeatScheme = rapid.Bool().Draw(rt, "selective"), RepeatScheme(rapid.IntRange(0, 2).Draw(rt, "scheme"))
		p.AtomicWrite = true
		p.Credits = rapid.Bool().Draw(rt, "credits")
		if rapid.Bool().Draw(rt, "tight") {
			p.PUs, p.Quantum, p.WQEBuffer, p.FetchLimit, p.TxBuffer, p.RQPrefetch = 1, 1, 32, 16, 4096, 1
		}
		ha, hb, a, b, ab, ba := twoHosts(t, p, rapid.Uint64().Draw(rt, "seed"), o)
		if rapid.Bool().Draw(rt, "msnwrap") { // PSNs wrap in any case
			startCount(a, b, 0xfffffc)
		}
		for _, w := range []*badWire{ab, ba} {
			w.loss = rapid.SampledFrom([]int{0, 50, 15}).Draw(rt, "loss")
			w.dup = rapid.SampledFrom([]int{0, 20}).Draw(rt, "dup")
			w.delay = rapid.SampledFrom([]int{0, 10}).Draw(rt, "delay")
		}
		const slot = 12 << 10
		n := rapid.IntRange(1, 14).Draw(rt, "n")
		la, lb := ha.newMR(uint64(n)*slot, rightsAll), hb.newMR(uint64(n)*slot, rightsAll)
		la.fill(pattern)
		lb.fill(func(i int) byte { return ^pattern(i) })
		counter := hb.newMR(4096, rightsAll)
		srcA, srcB := la.bytes(0, n*slot), lb.bytes(0, n*slot)
		type want struct {
			op    prm.WQEOpcode
			len   int
			unsig bool
		}
		posted := make([]want, n)
		adds := uint64(0)
		for i := range posted {
			op := rapid.SampledFrom([]prm.WQEOpcode{prm.WQEOpRDMAWrite, prm.WQEOpSend, prm.WQEOpRDMARead, prm.WQEOpAtomicFA, prm.WQEOpRDMAWriteImm, prm.WQEOpNOP}).Draw(rt, "op")
			size := rapid.IntRange(0, slot).Draw(rt, "size")
			w := wr{op: op, rkey: lb.rkey, raddr: lb.va + uint64(i*slot), fence: rapid.Bool().Draw(rt, "fence"), unsig: rapid.Bool().Draw(rt, "unsig") && i < n-1}
			if size > 0 {
				w.sges = []sge{la.sge(i*slot, size)}
			}
			switch op {
			case prm.WQEOpSend:
				b.recv(lb.sge(i*slot, slot))
			case prm.WQEOpRDMAWriteImm:
				b.recv()
			case prm.WQEOpAtomicFA:
				w.rkey, w.raddr, w.swap, w.sges = counter.rkey, counter.va, uint64(i)+1, []sge{la.sge(i*slot, 8)}
				adds += w.swap
			case prm.WQEOpNOP:
				w.sges = nil
			}
			if rapid.Bool().Draw(rt, "push") {
				a.push(w)
			} else {
				a.post(w)
			}
			posted[i] = want{op, size, w.unsig}
			run(t, ha.e, sim.Time(rapid.IntRange(0, 1500).Draw(rt, "gap"))*sim.Nanosecond)
		}
		run(t, ha.e, 40*ms)
		for i, w := range posted {
			if w.unsig {
				continue
			}
			e := a.scq.poll()
			if e == nil || e.Opcode() != prm.CQEReq || e.SOp() != w.op {
				if e != nil && e.Opcode() == prm.CQEReqErr && e.Syndrome() == prm.SyndromeTransportRetryExc && (ab.delay+ba.delay > 0 || p.SelectiveRepeat) {
					return // each packet that another overtakes costs a retry
				}
				rt.Fatalf("WQE %d of %#x: CQE % x", i, w.op, []byte(e))
			}
		}
		a.scq.expectNone()
		sum := uint64(0)
		for i, w := range posted {
			mine, theirs := la.bytes(i*slot, slot), lb.bytes(i*slot, slot)
			wantMine, wantTheirs := srcA[i*slot:(i+1)*slot], srcB[i*slot:(i+1)*slot]
			sum = carryOut(w.op, wantMine, wantTheirs, w.len, sum, uint64(i)+1)
			if !bytes.Equal(mine, wantMine) || !bytes.Equal(theirs, wantTheirs) {
				rt.Fatalf("WQE %d of %#x, %d bytes: memory differs", i, w.op, w.len)
			}
			if w.op == prm.WQEOpSend || w.op == prm.WQEOpRDMAWriteImm {
				if e := b.rcq.poll(); e == nil || e.ByteCnt() != uint32(w.len) {
					rt.Fatalf("WQE %d of %#x: receive CQE % x", i, w.op, []byte(e))
				}
			}
		}
		b.rcq.expectNone()
		if g := host64(counter.bytes(0, 8)); g != adds {
			rt.Fatalf("atomics added %d, want %d", g, adds)
		}
		if live := ha.d.frames.Live + hb.d.frames.Live; live != 0 {
			rt.Fatalf("%d frames leaked", live)
		}
	})
}

// carryOut does to two memories what an operation on n bytes does; an atomic adds to a sum, which
// it returns.
func carryOut(op prm.WQEOpcode, mine, theirs []byte, n int, sum, add uint64) uint64 {
	switch op {
	case prm.WQEOpRDMAWrite, prm.WQEOpSend, prm.WQEOpRDMAWriteImm:
		copy(theirs, mine[:n])
	case prm.WQEOpRDMARead:
		copy(mine, theirs[:n])
	case prm.WQEOpAtomicFA:
		putHost64(mine, sum)
		sum += add
	}
	return sum
}

// TestLostAnswerBeforeManyRequests loses the answers to all but the last request once. Each request
// behind it comes again and is acknowledged by the PSN of the READ at the end, which so seems lost
// as often; it costs no retry each time.
func TestLostAnswerBeforeManyRequests(t *testing.T) {
	o := defaults()
	o.timeout, o.retry = 10, 2
	p := testParams()
	p.AckDelay, p.NackGenerate, p.NackReact = 0, [2]sim.Time{5 * sim.Microsecond, 5 * sim.Microsecond}, [2]sim.Time{}
	ha, hb, a, _, _, ba := twoHosts(t, p, 1, o)
	lose := map[uint32]int{}
	for i := range int32(13) {
		lose[roce.AddPSN(a.psn, i)] = 1
	}
	hb.d.SetWire(&lossy{w: ba, lose: lose})
	la, lb := ha.newMR(4096, rightsAll), hb.newMR(4096, rightsAll)
	a.post(wr{op: prm.WQEOpAtomicFA, raddr: lb.va, rkey: lb.rkey, sges: []sge{la.sge(0, 8)}, swap: 1})
	for range 12 {
		a.post(wr{op: prm.WQEOpRDMAWrite, raddr: lb.va + 64, rkey: lb.rkey, sges: []sge{la.sge(64, 100)}})
	}
	a.post(wr{op: prm.WQEOpRDMARead, raddr: lb.va, rkey: lb.rkey, sges: []sge{la.sge(256, 64)}})
	run(t, ha.e, 40*ms)
	for range 14 {
		a.scq.expect(prm.CQEReq)
	}
}
