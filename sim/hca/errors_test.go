package hca

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// TestRemoteErrors checks NAK, both CQEs and the event of what a responder refuses.
func TestRemoteErrors(t *testing.T) {
	type c struct {
		name string
		w    func(h *host, r *mr) wr
		o    func(o *opts)
		recv int
		syn  prm.Syndrome
		ev   prm.EventType
		resp prm.Syndrome
	}
	write := func(f func(h *host, r *mr, w *wr)) func(h *host, r *mr) wr {
		return func(h *host, r *mr) wr {
			w := wr{op: prm.WQEOpRDMAWrite, raddr: r.va, rkey: r.rkey, sges: []sge{r.sge(0, 16)}}
			f(h, r, &w)
			return w
		}
	}
	for _, c := range []c{
		{"rkey", write(func(_ *host, _ *mr, w *wr) { w.rkey ^= 1 }), nil, 0, prm.SyndromeRemoteAccess, prm.EventWQAccessError, 0},
		{"end", write(func(_ *host, r *mr, w *wr) { w.raddr = r.va + r.n - 15 }), nil, 0, prm.SyndromeRemoteAccess, prm.EventWQAccessError, 0},
		{"begin", write(func(_ *host, r *mr, w *wr) { w.raddr = r.va - 1 }), nil, 0, prm.SyndromeRemoteAccess, prm.EventWQAccessError, 0},
		{"wrap", write(func(_ *host, _ *mr, w *wr) { w.raddr = 1<<64 - 8 }), nil, 0, prm.SyndromeRemoteAccess, prm.EventWQAccessError, 0},
		{"rights", write(func(h *host, _ *mr, w *wr) { x := h.newMR(4096, 0x1b); w.raddr, w.rkey = x.va, x.rkey }), nil, 0, prm.SyndromeRemoteAccess, prm.EventWQAccessError, 0},
		{"qp flag", write(func(*host, *mr, *wr) {}), func(o *opts) { o.noWrite = true }, 0, prm.SyndromeRemoteInvalReq, prm.EventWQInvalReqError, 0},
		{"read rights", write(func(h *host, _ *mr, w *wr) {
			x := h.newMR(4096, 0x17)
			w.op, w.raddr, w.rkey = prm.WQEOpRDMARead, x.va, x.rkey
		}), nil, 0, prm.SyndromeRemoteAccess, prm.EventWQAccessError, 0},
		{"atomic unaligned", write(func(_ *host, r *mr, w *wr) {
			w.op, w.raddr, w.sges = prm.WQEOpAtomicFA, r.va+4, []sge{r.sge(0, 8)}
		}), nil, 0, prm.SyndromeRemoteInvalReq, prm.EventWQInvalReqError, 0},
		{"too long", write(func(_ *host, _ *mr, w *wr) { w.op = prm.WQEOpSend }), nil, 15, prm.SyndromeRemoteInvalReq, 0, prm.SyndromeLocalLength},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := defaults()
			if c.o != nil {
				c.o(&o)
			}
			h, a, b := pair(t, o)
			r := h.newMR(8192, rightsAll)
			if c.recv > 0 {
				b.recv(r.sge(64, c.recv))
				b.recv(r.sge(64, 64))
			}
			before := r.bytes(0, 8192)
			run(t, h.e, 10*sim.Microsecond)
			a.post(c.w(h, r))
			run(t, h.e, 50*sim.Microsecond)
			a.scq.expectError(prm.CQEReqErr, c.syn)
			if c.resp != 0 {
				b.rcq.expectError(prm.CQERespErr, c.resp)
				b.rcq.expectError(prm.CQERespErr, prm.SyndromeWRFlush)
			}
			ev := h.nextEQE(h.aeq)
			if c.ev == 0 && ev != nil || c.ev != 0 && (ev == nil || ev.Type() != c.ev || ev.QPSRQN() != b.n) {
				t.Fatalf("event % x", ev)
			}
			if c.ev != 0 && h.ints[1] != 1 {
				t.Fatalf("%d interrupts", h.ints[1])
			}
			if a.state() != prm.QPStateERR || b.state() != prm.QPStateERR {
				t.Fatalf("states %d %d", a.state(), b.state())
			}
			if !bytes.Equal(before, r.bytes(0, 8192)) {
				t.Fatal("memory changed")
			}
		})
	}
}

// TestLocalErrors checks what a requester refuses by itself: nothing is sent, what
// went before completes, what follows is flushed.
func TestLocalErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		w    func(r *mr) wr
		syn  prm.Syndrome
	}{
		{"lkey", func(r *mr) wr { return wr{op: prm.WQEOpSend, sges: []sge{{r.lkey ^ 2, r.va, 4}}} }, prm.SyndromeLocalProt},
		{"bounds", func(r *mr) wr { return wr{op: prm.WQEOpSend, sges: []sge{r.sge(0, 4), r.sge(4090, 7)}} }, prm.SyndromeLocalProt},
		{"opcode", func(r *mr) wr { return wr{op: 0x3f} }, prm.SyndromeLocalQPOp},
		{"umr", func(r *mr) wr { return wr{op: prm.WQEOpLocalInval} }, prm.SyndromeLocalQPOp},
		{"read rights", func(r *mr) wr {
			x := r.h.newMR(4096, rightsRead)
			return wr{op: prm.WQEOpRDMARead, raddr: r.va, rkey: r.rkey, sges: []sge{x.sge(0, 8)}}
		}, prm.SyndromeLocalProt},
		{"too long", func(r *mr) wr { return wr{op: prm.WQEOpSend, sges: []sge{{r.lkey, r.va, 1<<30 + 1}}} }, prm.SyndromeLocalLength},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, a, b := pair(t, defaults())
			r := h.newMR(4096, rightsAll)
			bad := c.w(r)
			bad.unsig = true
			ok := wr{op: prm.WQEOpRDMAWrite, raddr: r.va, rkey: r.rkey, inline: []byte("x")}
			a.post(ok, bad, ok, ok)
			a.post(ok)
			run(t, h.e, 100*sim.Microsecond)
			a.scq.expect(prm.CQEReq)
			if e := a.scq.expectError(prm.CQEReqErr, c.syn); e.WQECounter() != 1 {
				t.Fatalf("WQE %d", e.WQECounter())
			}
			for range 3 {
				a.scq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush)
			}
			a.scq.expectNone()
			if n := h.d.Counters().TxRequests; n != 1 {
				t.Fatalf("%d requests left", n)
			}
			// A WQE posted in ERR is flushed at its doorbell, a receive soon after.
			a.post(ok)
			a.recv(r.sge(0, 8))
			run(t, h.e, 100*sim.Microsecond)
			a.scq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush)
			a.rcq.expectError(prm.CQERespErr, prm.SyndromeWRFlush)
			run(t, h.e, 2*ms)
			a.recv(r.sge(0, 8))
			run(t, h.e, 10*ms)
			a.rcq.expectError(prm.CQERespErr, prm.SyndromeWRFlush)
			if b.state() != prm.QPStateRTS {
				t.Fatal("the peer changed state")
			}
			run(t, h.e, 60*sim.Second)
			if err := h.e.Run(sim.Never - 1); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Receives that are posted to a queue pair long after it has come to ERR are flushed where programs
// are paced by the wall's clock. Elsewhere the device has stopped to look, so that a run can end.
func TestFlushLongAfterTheError(t *testing.T) {
	for _, paced := range []bool{true, false} {
		h, a, _ := pair(t, defaults())
		h.d.id.Paced = paced
		r := h.newMR(4096, rightsAll)
		a.modify2(prm.Op2ErrQP)
		run(t, h.e, 60*sim.Second)
		a.recv(r.sge(0, 8))
		run(t, h.e, 10*ms)
		if paced {
			a.rcq.expectError(prm.CQERespErr, prm.SyndromeWRFlush)
		} else {
			a.rcq.expectNone()
		}
	}
}

// TestTimeout has a peer that is not there: every retry, then the error.
func TestTimeout(t *testing.T) {
	o := defaults()
	o.timeout, o.retry = 1, 3 // 8.192 us
	h, a, b := pair(t, o)
	b.modify2(prm.Op2RstQP)
	a.post(wr{op: prm.WQEOpRDMAWrite, inline: []byte("x")}, wr{op: prm.WQEOpRDMAWrite, inline: []byte("y")})
	run(t, h.e, 30*sim.Microsecond)
	a.scq.expectNone()
	run(t, h.e, 20*sim.Microsecond)
	a.scq.expectError(prm.CQEReqErr, prm.SyndromeTransportRetryExc)
	a.scq.expectError(prm.CQEReqErr, prm.SyndromeWRFlush)
	if n := h.counter(prm.QCLocalAckTimeoutErr); n != 4 {
		t.Fatalf("%d timeouts", n)
	}
	if n := h.d.Counters().TxRequests; n != 8 {
		t.Fatalf("%d packets, want 2 of 4 times", n)
	}
}

func (q *tQP) modify2(op prm.Opcode) {
	q.h.t.Helper()
	in := prm.NewIn(op, 0)
	prm.Cmd2RstQPIn(in).SetQPN(q.n)
	q.h.cmd(in)
}

// TestRecordOfTheLifeBefore resets a QP while the device reads its doorbell record: what
// the record said before is nothing to the QP after.
func TestRecordOfTheLifeBefore(t *testing.T) {
	h, a, b := pair(t, defaults())
	r := h.newMR(4096, rightsAll)
	a.post(wr{op: prm.WQEOpRDMAWrite, raddr: r.va, rkey: r.rkey, inline: []byte("x")})
	run(t, h.e, 10*sim.Microsecond)
	a.scq.expect(prm.CQEReq)
	a.modify2(prm.Op2ErrQP) // begins to read the record
	a.modify2(prm.Op2RstQP)
	run(t, h.e, 10*sim.Microsecond)
	a.connect(b, defaults())
	run(t, h.e, 100*sim.Microsecond)
	if q := &h.d.qpn(a.n).requester; q.sq.pi != 0 || q.state != prm.QPStateRTS {
		t.Errorf("state %d, %d WQEs posted", q.state, q.sq.pi)
	}
}
