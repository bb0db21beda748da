package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// seize records what a device sends and delivers what it is told to.
type seize struct {
	to   *Device
	sent []*roce.Frame
	drop func(n int) bool // of the n-th frame, from 0
}

func (w *seize) Send(f *roce.Frame) {
	n := len(w.sent)
	w.sent = append(w.sent, f.Retain())
	if w.drop != nil && w.drop(n) {
		f.Release()
		return
	}
	w.to.Receive(f)
}

func (w *seize) free() {
	for _, f := range w.sent {
		f.Release()
	}
	w.sent = nil
}

func uc(c prm.QPC) { c.SetST(prm.STUC) }
func ud(c prm.QPC) { c.SetST(prm.STUD) }

// ucHosts is a connected UC pair on two devices.
func ucHosts(t *testing.T) (ha, hb *host, a, b *tQP, w *seize) {
	e := sim.New(sim.Options{MaxEvents: 1 << 22})
	ha, hb = newHost(t, e, testParams(), 1), newHost(t, e, testParams(), 2)
	w = &seize{to: hb.d}
	ha.d.SetWire(w)
	hb.d.SetWire(&seize{to: ha.d})
	a = ha.newQPOn(ha.newCQ(7, 64), ha.newCQ(7, 64), ha.uar, uc)
	b = hb.newQPOn(hb.newCQ(7, 64), hb.newCQ(7, 64), hb.uar, uc)
	o := defaults()
	a.connect(b, o)
	b.connect(a, o)
	return
}

func TestUCOperations(t *testing.T) {
	ha, hb, a, b, w := ucHosts(t)
	src, dst := ha.newMR(16<<10, rightsAll), hb.newMR(16<<10, rightsAll)
	src.fill(pattern)
	b.recv(dst.sge(0, 4096))
	b.recv(dst.sge(0, 4096))
	b.recv()
	a.post(wr{op: prm.WQEOpSend, sges: []sge{src.sge(0, 3000)}},
		wr{op: prm.WQEOpSendImm, imm: 5, sges: []sge{src.sge(3000, 100)}, se: true},
		wr{op: prm.WQEOpRDMAWrite, raddr: dst.va + 8192, rkey: dst.rkey, sges: []sge{src.sge(0, 2500)}},
		wr{op: prm.WQEOpRDMAWriteImm, imm: 6, raddr: dst.va + 12000, rkey: dst.rkey, sges: []sge{src.sge(0, 1025)}})
	run(t, ha.e, 50*sim.Microsecond)
	for range 4 {
		a.scq.expect(prm.CQEReq)
	}
	if e := b.rcq.expect(prm.CQERespSend); e.ByteCnt() != 3000 {
		t.Fatalf("byte count %d", e.ByteCnt())
	}
	if e := b.rcq.expect(prm.CQERespSendImm); e.ByteCnt() != 100 || e.ImmInvalPKey() != 5 || !e.SE() {
		t.Fatalf("CQE % x", []byte(e))
	}
	if e := b.rcq.expect(prm.CQERespWrImm); e.ByteCnt() != 1025 || e.ImmInvalPKey() != 6 || e.WQECounter() != 2 {
		t.Fatalf("CQE % x", []byte(e))
	}
	if !bytes.Equal(dst.bytes(8192, 2500), src.bytes(0, 2500)) || !bytes.Equal(dst.bytes(12000, 1025), src.bytes(0, 1025)) ||
		!bytes.Equal(dst.bytes(0, 100), src.bytes(3000, 100)) || !bytes.Equal(dst.bytes(100, 2900), src.bytes(100, 2900)) {
		t.Fatal("data differs")
	}
	want := []roce.Opcode{0x20, 0x21, 0x22, 0x25, 0x26, 0x27, 0x28, 0x26, 0x29}
	for i, f := range w.sent {
		h := f.BTH()
		if h.Opcode() != want[i] || h.AckReq() || h.PSN() != roce.AddPSN(0xfffffe, int32(i)) || h.DestQP() != b.n {
			t.Errorf("frame %d: %v AckReq %v PSN %#x to %#x", i, h.Opcode(), h.AckReq(), h.PSN(), h.DestQP())
		}
	}
	if len(w.sent) != len(want) || hb.d.Counters().TxPackets != 0 {
		t.Errorf("%d frames there, %d back", len(w.sent), hb.d.Counters().TxPackets)
	}
	w.free()
	if n := ha.d.frames.Live; n != 0 {
		t.Errorf("%d frames leaked", n)
	}
}

// TestUCLoss loses each packet of a stream of messages in turn: exactly the message that
// lost one is missing, its receive WQE is used by the next, and the sender is content.
func TestUCLoss(t *testing.T) {
	const msgs, each, size = 4, 3, 2500 // packets of a message
	for lost := range msgs * each {
		ha, hb, a, b, w := ucHosts(t)
		src, dst := ha.newMR(64<<10, rightsAll), hb.newMR(64<<10, rightsAll)
		src.fill(pattern)
		w.drop = func(n int) bool { return n == lost }
		for i := range msgs {
			b.recv(dst.sge(i*4096, 4096))
			a.post(wr{op: prm.WQEOpSend, sges: []sge{src.sge(i*size, size)}})
		}
		run(t, ha.e, 100*sim.Microsecond)
		for range msgs {
			a.scq.expect(prm.CQEReq)
		}
		at := 0
		for i := range msgs {
			if i == lost/each {
				continue
			}
			if e := b.rcq.expect(prm.CQERespSend); e.WQECounter() != uint16(at) || e.ByteCnt() != size {
				t.Fatalf("packet %d lost, message %d: CQE % x", lost, i, []byte(e))
			}
			if !bytes.Equal(dst.bytes(at*4096, size), src.bytes(i*size, size)) {
				t.Fatalf("packet %d lost, message %d: data differs", lost, i)
			}
			at++
		}
		b.rcq.expectNone()
		w.free()
	}
}

func TestUCDrops(t *testing.T) {
	ha, hb, a, b, w := ucHosts(t)
	src, dst := ha.newMR(8192, rightsAll), hb.newMR(8192, rightsAll)
	src.fill(pattern)
	before := dst.bytes(0, 8192)
	a.post(wr{op: prm.WQEOpSend, sges: []sge{src.sge(0, 2000)}}, // no receive
		wr{op: prm.WQEOpRDMAWrite, raddr: dst.va, rkey: dst.rkey ^ 1, sges: []sge{src.sge(0, 2000)}},
		wr{op: prm.WQEOpRDMAWrite, raddr: dst.va + 8000, rkey: dst.rkey, sges: []sge{src.sge(0, 2000)}},
		wr{op: prm.WQEOpRDMAWriteImm, raddr: dst.va, rkey: dst.rkey, inline: []byte("x")}) // no receive
	run(t, ha.e, 50*sim.Microsecond)
	for range 4 {
		a.scq.expect(prm.CQEReq)
	}
	b.rcq.expectNone()
	if !bytes.Equal(dst.bytes(0, 8192), before) || b.state() != prm.QPStateRTS {
		t.Fatalf("memory was written, or state %d", b.state())
	}
	b.recv(dst.sge(0, 64))
	a.post(wr{op: prm.WQEOpSend, inline: []byte("hello")})
	run(t, ha.e, 50*sim.Microsecond)
	b.rcq.expect(prm.CQERespSend)
	// Longer than the receive: that is an error of the receiver alone.
	b.recv(dst.sge(0, 64))
	a.post(wr{op: prm.WQEOpSend, sges: []sge{src.sge(0, 65)}})
	run(t, ha.e, 50*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	a.scq.expect(prm.CQEReq)
	b.rcq.expectError(prm.CQERespErr, prm.SyndromeLocalLength)
	if a.state() != prm.QPStateRTS || b.state() != prm.QPStateERR {
		t.Fatalf("states %d %d", a.state(), b.state())
	}
	w.free()
}

// TestSQError: a send that fails by itself flushes what is behind it; the QP receives
// on, and sends again when it was brought back.
func TestSQError(t *testing.T) {
	ha, _, a, b, w := ucHosts(t)
	src := ha.newMR(8192, rightsAll)
	a.post(wr{op: prm.WQEOpSend, inline: []byte("1")}, wr{op: prm.WQEOpRDMARead, raddr: 1, rkey: 2, sges: []sge{src.sge(0, 8)}},
		wr{op: prm.WQEOpSend, inline: []byte("3")}, wr{op: prm.WQEOpSend, inline: []byte("4"), unsig: true})
	run(t, ha.e, 50*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	a.scq.expectError(prm.CQEReqErr, prm.SyndromeLocalQPOp)
	a.scq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush)
	a.scq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush)
	a.scq.expectNone()
	if a.state() != prm.QPStateSQER {
		t.Fatalf("state %d", a.state())
	}
	a.post(wr{op: prm.WQEOpSend, inline: []byte("5")})
	a.recv(src.sge(0, 64))
	b.post(wr{op: prm.WQEOpSend, inline: []byte("6")})
	run(t, ha.e, 50*sim.Microsecond)
	a.scq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush)
	a.rcq.expect(prm.CQERespSend)
	a.modify(prm.OpSQErr2RTSQP, func(prm.QPC) {})
	n := len(w.sent)
	a.post(wr{op: prm.WQEOpSend, inline: []byte("7")})
	run(t, ha.e, 50*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	if len(w.sent) != n+1 {
		t.Fatal("nothing was sent")
	}
	w.free()
}

// TestUnreliablePace: messages leave at the rate of the wire, not faster, though nobody
// acknowledges them.
func TestUnreliablePace(t *testing.T) {
	p := testParams()
	p.WireRate = 1e9
	e := sim.New(sim.Options{MaxEvents: 1 << 22})
	h, g := newHost(t, e, p, 1), newHost(t, e, p, 2)
	w := &seize{to: g.d}
	h.d.SetWire(w)
	a := h.newQPOn(h.newCQ(7, 64), h.newCQ(7, 64), h.uar, uc)
	b := g.newQPOn(g.newCQ(7, 64), g.newCQ(7, 64), g.uar, uc)
	a.connect(b, defaults())
	for range 20 {
		a.post(wr{op: prm.WQEOpSend, inline: make([]byte, 100)})
	}
	run(t, e, 10*sim.Microsecond) // a frame takes 1.4 us
	n := 0
	for a.scq.poll() != nil {
		n++
	}
	if n < 6 || n > 8 || len(w.sent) != n {
		t.Fatalf("%d completions, %d frames", n, len(w.sent))
	}
	w.free()
}
