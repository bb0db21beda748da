package hca

import (
	"fmt"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// streamBench is a DCI with streams, of which 2^log may be in error, and its targets.
type streamBench struct {
	*dcBench
	q      *tQP
	within sim.Time // that all is done
}

func newStreamBench(t *testing.T, log uint32, change func(p *Params)) *streamBench {
	p := testParams()
	p.DCIStreams = 4
	if change != nil {
		change(&p)
	}
	b := newDCBenchOf(t, p)
	o := defaults()
	o.timeout = 8
	return &streamBench{b, b.ha.newDCIOf(o, log), 100 * sim.Microsecond}
}

// add is a request that adds 1 to a counter of target i. The others fail for a wrong key, here or
// there.
func (b *streamBench) add(stream uint16, i int) wr {
	d := b.ts[i]
	return wr{op: prm.WQEOpAtomicFA, stream: stream, av: d.av(d.key), raddr: d.mem.va, rkey: d.mem.rkey, swap: 1, sges: []sge{b.local.sge(0, 8)}}
}

func (b *streamBench) wrongHere(stream uint16, i int) wr {
	d := b.ts[i]
	return wr{op: prm.WQEOpRDMAWrite, stream: stream, av: d.av(d.key), raddr: d.mem.va + 64, rkey: d.mem.rkey, sges: []sge{{b.local.lkey ^ 1, b.local.va, 8}}}
}

// wrongLater fails when its first packet has been sent.
func (b *streamBench) wrongLater(stream uint16, i int) wr {
	w := b.wrongHere(stream, i)
	w.sges = []sge{b.local.sge(0, 1024), {b.local.lkey ^ 1, b.local.va, 8}}
	return w
}

func (b *streamBench) wrongThere(stream uint16, i int) wr {
	d := b.ts[i]
	return wr{op: prm.WQEOpRDMAWrite, stream: stream, av: d.av(d.key), raddr: d.mem.va + 64, rkey: d.mem.rkey ^ 1, sges: []sge{b.local.sge(0, 2000)}}
}

// ends waits for all that was posted, and compares the ends in order; 0 is success.
func (b *streamBench) ends(want ...prm.Syndrome) {
	b.ha.t.Helper()
	run(b.ha.t, b.e, b.within)
	for i, s := range want {
		e := b.q.scq.poll()
		switch {
		case e == nil:
			b.ha.t.Fatalf("completion %d of %d is missing", i, len(want))
		case s == 0 && e.Opcode() != prm.CQEReq, s != 0 && (e.Opcode() != prm.CQEReqErr || e.Syndrome() != s):
			b.ha.t.Fatalf("completion %d: opcode %d, syndrome %v, want %v", i, e.Opcode(), e.Syndrome(), s)
		}
	}
	b.q.scq.expectNone()
}

func (b *streamBench) counts(want ...uint64) {
	b.ha.t.Helper()
	for i, w := range want {
		if v := host64(b.ts[i].mem.bytes(0, 8)); v != w {
			b.ha.t.Errorf("target %d: %d additions of %d", i, v, w)
		}
	}
}

// restart resets a stream, as mlx5dv_dci_stream_id_reset does.
func restart(q *tQP, stream uint16, change func(m prm.ModifyQPIn)) prm.Status {
	in := make([]byte, prm.ModifyQPInSize+prm.QPCExtSize)
	prm.CmdIn(in).SetOpcode(prm.OpRTS2RTSQP)
	m := prm.ModifyQPIn(in)
	m.SetQPN(q.n)
	m.SetQPCExt(true)
	m.SetOptParamMaskHigh(prm.OptParHighDCIStream)
	prm.QPCExt(m.Ext()).SetDCIStream(stream)
	if change != nil {
		change(m)
	}
	_, st := q.h.try(in)
	return st
}

const (
	streamLocal  = prm.SyndromeLocalProt
	streamRemote = prm.SyndromeRemoteAccess
	streamFlush  = prm.SyndromeWRFlush
)

// An error ends its stream: what follows in it is flushed in order, others go on, and after a reset
// it does, too.
func TestStreamsFailAlone(t *testing.T) {
	for name, bad := range map[string]func(*streamBench, uint16, int) wr{"here": (*streamBench).wrongHere, "later": (*streamBench).wrongLater, "there": (*streamBench).wrongThere} {
		for _, other := range []int{0, 1} { // whether others are for the same target
			t.Run(fmt.Sprintf("%s, %d", name, other), func(t *testing.T) {
				b := newStreamBench(t, 2, nil)
				why := map[string]prm.Syndrome{"here": streamLocal, "later": streamLocal, "there": streamRemote}[name]
				b.q.post(b.add(3, 0), bad(b, 3, 0), b.add(4, other), b.add(3, 0), b.add(4, other), b.add(3, 1), b.add(0, other))
				b.ends(0, why, 0, streamFlush, 0, streamFlush, 0)
				want := [2]uint64{1, 0}
				want[other] += 3
				b.counts(want[:]...)
				if s := b.q.state(); s != prm.QPStateRTS {
					t.Fatalf("state %d", s)
				}
				b.q.post(b.add(3, 0))
				b.ends(streamFlush)
				if st := restart(b.q, 3, nil); st != prm.StatusOK {
					t.Fatal(st)
				}
				b.q.post(b.add(3, 0), b.add(4, 2))
				b.ends(0, 0)
				want[0]++
				b.counts(want[0], want[1], 1)
			})
		}
	}
}

// Requests behind a failed one that were sent with it are carried out once, whatever is lost. The
// NAK that ends a connection at the target comes once, and counts behind what was answered before:
// answers are lost and late only where no target refuses.
func TestStreamsGoOnOnce(t *testing.T) {
	for seed := range 200 {
		b := newStreamBench(t, 4, nil)
		b.within = sim.Second
		b.ab.loss, b.ab.delay, b.ab.dup = 9, 4, 6
		refusals := seed%2 == 0
		if !refusals {
			b.ba.loss, b.ba.delay = 9, 4
		}
		r := sim.NewRand(uint64(seed), "streams")
		var want []prm.Syndrome
		counts, failed := [3]uint64{}, map[uint16]bool{}
		for range 8 {
			want = want[:0]
			var ws []wr
			for range 6 {
				s, i := uint16(r.Intn(6)), r.Intn(3)
				switch kind := r.Intn(6); {
				case failed[s]:
					ws, want = append(ws, b.add(s, i)), append(want, streamFlush)
				case kind == 0:
					ws, want, failed[s] = append(ws, b.wrongHere(s, i)), append(want, streamLocal), true
				case kind == 2:
					ws, want, failed[s] = append(ws, b.wrongLater(s, i)), append(want, streamLocal), true
				case kind == 1 && refusals:
					ws, want, failed[s] = append(ws, b.wrongThere(s, i)), append(want, streamRemote), true
				default:
					ws, want = append(ws, b.add(s, i)), append(want, 0)
					counts[i]++
				}
			}
			b.q.post(ws...)
			b.ends(want...)
			for s := range uint16(6) {
				if failed[s] && r.Intn(2) == 0 {
					failed[s] = false
					if st := restart(b.q, s, nil); st != prm.StatusOK {
						t.Fatalf("reset of %d: %v", s, st)
					}
				}
			}
		}
		b.counts(counts[:]...)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A read whose data has no place here leaves what the target has carried out behind it.
func TestStreamThatCannotLand(t *testing.T) {
	b := newStreamBench(t, 2, nil)
	d, gone := b.ts[0], b.ha.newMR(4096, rightsAll)
	b.q.post(wr{op: prm.WQEOpRDMARead, stream: 1, av: d.av(d.key), raddr: d.mem.va + 64, rkey: d.mem.rkey, sges: []sge{gone.sge(0, 2500)}},
		b.add(2, 0), b.add(2, 0), b.add(1, 0))
	for host64(d.mem.bytes(0, 8)) == 0 {
		run(t, b.e, 10*sim.Nanosecond)
	}
	in := prm.NewIn(prm.OpDestroyMKey, 0)
	prm.DestroyMKeyIn(in).SetMKeyIndex(gone.index)
	b.ha.cmd(in)
	b.ends(streamLocal, 0, 0, streamFlush) // the target has carried it out
	b.counts(3)
	b.q.post(b.add(2, 0), b.add(2, 1))
	b.ends(0, 0)
	b.counts(4, 1)
}

// The same at any time of the READ, again and again, on a good wire without a timeout: what is
// behind it is carried out once, its landing area serves others, and the DCI goes on. What is
// flushed may have been carried out, once.
func TestStreamsThatCannotLandAtAnyTime(t *testing.T) {
	lands, fails := 0, 0
	for _, size := range []int{600, 2500, 3900} {
		for _, late := range []int{0, 3} {
			b := newStreamBench(t, 4, nil)
			b.ab.delay, b.ba.delay = late, late
			if late > 0 {
				b.within = sim.Second
			}
			d, adds, before := b.ts[0], uint64(0), uint64(0)
			last := b.add(1, 0)
			last.raddr += 8
			for step := range sim.Time(120) {
				gone := b.ha.newMR(4096, rightsAll)
				b.q.post(wr{op: prm.WQEOpRDMARead, stream: 1, av: d.av(d.key), raddr: d.mem.va + 64, rkey: d.mem.rkey, sges: []sge{gone.sge(0, size)}},
					b.add(2, 0), b.add(2, 0), last)
				run(t, b.e, step*50*sim.Nanosecond)
				in := prm.NewIn(prm.OpDestroyMKey, 0)
				prm.DestroyMKeyIn(in).SetMKeyIndex(gone.index)
				b.ha.cmd(in)
				run(t, b.e, b.within)
				first := b.q.scq.poll()
				if first == nil {
					t.Fatalf("%d bytes, %d: no completion", size, step)
				}
				adds += 2
				flushed := uint64(0)
				if first.Opcode() == prm.CQEReq {
					lands++
					b.ends(0, 0, 0)
				} else {
					fails++
					flushed = 1
					if first.Syndrome() != streamLocal {
						t.Fatalf("%d bytes, %d: syndrome %v", size, step, first.Syndrome())
					}
					b.ends(0, 0, streamFlush)
					if st := restart(b.q, 1, nil); st != prm.StatusOK {
						t.Fatal(st)
					}
				}
				b.counts(adds)
				n := host64(d.mem.bytes(8, 8))
				if more := n - before; more > 1 || more+flushed < 1 || t.Failed() {
					t.Fatalf("%d bytes, %d: the last request was carried out %d times", size, step, more)
				}
				before = n
			}
		}
	}
	if lands == 0 || fails == 0 {
		t.Errorf("%d READs landed, %d did not", lands, fails)
	}
}

// As many streams in error as the QP was made for end it; a reset of the QP is one of its streams.
func TestStreamsEndTheQP(t *testing.T) {
	for _, card := range []bool{false, true} {
		b := newStreamBench(t, 1, func(p *Params) { p.CardFaults = card })
		for range 2 {
			b.q.post(b.wrongHere(1, 0), b.wrongHere(1, 0), b.add(0, 0))
			b.ends(streamLocal, streamFlush, 0)
			if b.q.state() != prm.QPStateRTS {
				t.Fatalf("state %d after one stream", b.q.state())
			}
			b.q.post(b.wrongHere(2, 0), b.add(0, 0))
			b.ends(streamLocal, streamFlush)
			if b.q.state() != prm.QPStateERR {
				t.Fatalf("state %d after two streams", b.q.state())
			}
			if st := restart(b.q, 1, nil); st != prm.StatusBadQPState {
				t.Errorf("a stream of a QP in error: %v", st)
			}
			b.q.modify2(prm.Op2RstQP)
			b.q.pi = 0
			b.q.startDCI(defaults())
		}
		if st := restart(b.q, 1, nil); st != prm.StatusBadParam {
			t.Errorf("a stream that the reset has freed: %v", st)
		}
		b.q.post(b.add(1, 0), b.add(2, 0))
		b.ends(0, 0)
		b.counts(4)
	}
}

// A target that does not answer is no matter of a stream.
func TestSilenceEndsStreams(t *testing.T) {
	b := newStreamBench(t, 2, nil)
	o := defaults()
	o.timeout, o.retry = 1, 1
	b.q, b.within = b.ha.newDCIOf(o, 2), sim.Second
	w := b.add(1, 0)
	w.av = func(a prm.AVSegment) { b.ts[0].av(b.ts[0].key)(a); a.SetDestQPN(0x1234) }
	b.q.post(w, b.add(2, 0))
	b.ends(prm.SyndromeTransportRetryExc, streamFlush)
	if b.q.state() != prm.QPStateERR {
		t.Errorf("state %d", b.q.state())
	}
}

// What is no reset of a stream in error is refused, and streams that the device has not.
func TestStreamRefusals(t *testing.T) {
	b := newStreamBench(t, 2, nil)
	plain := b.ha.newDCI(defaults())
	b.q.post(b.wrongHere(7, 0))
	b.ends(streamLocal)
	for what, st := range map[string]prm.Status{
		"a stream without error":  restart(b.q, 8, nil),
		"no context extension":    restart(b.q, 7, func(m prm.ModifyQPIn) { m.SetQPCExt(false) }),
		"another field":           restart(b.q, 7, func(m prm.ModifyQPIn) { m.SetOptParamMaskHigh(3) }),
		"a field of the context":  restart(b.q, 7, func(m prm.ModifyQPIn) { m.SetOptParamMask(prm.OptParRNRTimeout) }),
		"a DCI without streams":   restart(plain, 7, nil),
		"another type":            restart(b.ha.newQP(b.q.scq, b.q.rcq), 7, func(m prm.ModifyQPIn) { m.SetQPN(plain.n) }),
		"a transition that's not": restart(b.q, 7, func(m prm.ModifyQPIn) { prm.CmdIn(m).SetOpcode(prm.OpSQErr2RTSQP) }),
	} {
		if st == prm.StatusOK {
			t.Errorf("%s: %v", what, st)
		}
	}
	short := prm.NewIn(prm.OpRTS2RTSQP, 0)
	m := prm.ModifyQPIn(short)
	m.SetQPN(b.q.n)
	m.SetQPCExt(true)
	m.SetOptParamMaskHigh(prm.OptParHighDCIStream)
	b.ha.status(short, prm.StatusBadParam)
	if st := restart(b.q, 7, nil); st != prm.StatusOK {
		t.Errorf("after the refusals: %v", st)
	}
	dci := func(c prm.QPC) {
		c.SetST(prm.STDCI)
		c.SetRQType(prm.RQTypeNone)
		c.SetLogRQSize(0)
		c.SetLogRQStride(0)
	}
	for _, edit := range []func(c prm.QPC){
		func(c prm.QPC) { dci(c); c.SetLogNumDCIStreamChannels(5) },
		func(c prm.QPC) { dci(c); c.SetLogNumDCIErroredStreams(5) },
		func(c prm.QPC) { c.SetLogNumDCIErroredStreams(1) },
	} {
		b.ha.status(plain.create(edit), prm.StatusBadParam)
	}
	old := newDCBench(t)
	q := old.ha.newDCI(defaults())
	old.ha.status(q.create(func(c prm.QPC) { dci(c); c.SetLogNumDCIErroredStreams(1) }), prm.StatusBadParam)
}
