package model_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/rdmasim/rdmasim/conformance/model"
	"github.com/rdmasim/rdmasim/verbs"
)

const remote = verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic

// pair is two connected RC queue pairs and a region of 64 bytes.
type pair struct {
	w      *model.World
	a, b   *model.QP
	ca, cb *model.CQ
	mr     *model.MR
}

func connected(t testing.TB) *pair {
	t.Helper()
	w := &model.World{}
	p := &pair{w: w, ca: &model.CQ{Name: "CQ A", World: w, Cap: 8}, cb: &model.CQ{Name: "CQ B", World: w, Cap: 8}}
	c := verbs.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 2, MaxRecvSGE: 2, MaxInline: 16}
	p.a = w.NewQP(&model.QP{Name: "A", Type: verbs.QPTRC, Number: 1, Cap: c, SendCQ: p.ca, RecvCQ: p.ca})
	p.b = w.NewQP(&model.QP{Name: "B", Type: verbs.QPTRC, Number: 2, Cap: c, SendCQ: p.cb, RecvCQ: p.cb})
	p.a.Peer, p.b.Peer = p.b, p.a
	p.mr = &model.MR{World: w, Mem: &model.Memory{Name: "m", Bytes: make([]byte, 128)}, Len: 64, Access: remote | verbs.AccessLocalWrite}
	ok(t, p.mr.Register(nil))
	for _, q := range []*model.QP{p.a, p.b} {
		a := verbs.QPAttr{Access: remote, PathMTU: verbs.MTU256, MinRNRTimer: 12}
		for _, x := range []struct {
			s    verbs.QPState
			mask verbs.QPAttrMask
		}{
			{verbs.QPSInit, verbs.QPMaskPKeyIndex | verbs.QPMaskPort | verbs.QPMaskAccessFlags},
			{verbs.QPSRTR, verbs.QPMaskAV | verbs.QPMaskPathMTU | verbs.QPMaskDestQPN | verbs.QPMaskRQPSN | verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskMinRNRTimer},
			{verbs.QPSRTS, verbs.QPMaskSQPSN | verbs.QPMaskTimeout | verbs.QPMaskRetryCnt | verbs.QPMaskRNRRetry | verbs.QPMaskMaxQPRdAtomic},
		} {
			a.State = x.s
			ok(t, q.Modify(&a, verbs.QPMaskState|x.mask, nil))
		}
	}
	return p
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (p *pair) piece(off, n int) model.Piece {
	return model.Piece{Mem: p.mr.Mem, Off: off, Len: n, MR: p.mr}
}

func (p *pair) request(id uint64, op verbs.WROpcode, local, to model.Piece) model.Request {
	return model.Request{ID: id, Op: op, Flags: verbs.SendSignaled, Local: []model.Piece{local}, Remote: to}
}

// TestAllowed: results that the specification allows are taken, and others name the rule that they
// break.
func TestAllowed(t *testing.T) {
	inv := &verbs.QPAttr{MinRNRTimer: 7}
	for name, c := range map[string]struct {
		do   func(p *pair) error
		want string // of the violation; empty: there is none
	}{
		"a write succeeds": {func(p *pair) error {
			ok(t, p.a.PostSend([]model.Request{p.request(1, verbs.WRRDMAWrite, p.piece(0, 8), p.piece(8, 0))}, 0, nil))
			return p.ca.Completion(&verbs.WC{ID: 1, QPN: 1, Opcode: verbs.WCOpRDMAWrite})
		}, ""},
		"a write that fails": {func(p *pair) error {
			ok(t, p.a.PostSend([]model.Request{p.request(1, verbs.WRRDMAWrite, p.piece(0, 8), p.piece(8, 0))}, 0, nil))
			return p.ca.Completion(&verbs.WC{ID: 1, QPN: 1, Status: verbs.WCRemAccessErr})
		}, "want SUCCESS"},
		"a write beyond the region": {func(p *pair) error {
			ok(t, p.a.PostSend([]model.Request{p.request(1, verbs.WRRDMAWrite, p.piece(0, 8), p.piece(57, 0))}, 0, nil))
			return p.ca.Completion(&verbs.WC{ID: 1, QPN: 1, Opcode: verbs.WCOpRDMAWrite})
		}, "want REM_ACCESS_ERR"},
		"a write to the region's end": {func(p *pair) error {
			ok(t, p.a.PostSend([]model.Request{p.request(1, verbs.WRRDMAWrite, p.piece(0, 8), p.piece(56, 0))}, 0, nil))
			return p.ca.Completion(&verbs.WC{ID: 1, QPN: 1, Opcode: verbs.WCOpRDMAWrite})
		}, ""},
		"a completion nobody asked for": {func(p *pair) error { return p.ca.Completion(&verbs.WC{ID: 1, QPN: 1}) }, "completion of none"},
		"a completion that is missing": {func(p *pair) error {
			ok(t, p.a.PostSend([]model.Request{p.request(1, verbs.WRRDMAWrite, p.piece(0, 8), p.piece(8, 0))}, 0, nil))
			return p.ca.Empty()
		}, "got no completion"},
		"a send without a receive": {func(p *pair) error {
			ok(t, p.a.PostSend([]model.Request{p.request(1, verbs.WRSend, p.piece(0, 8), p.piece(0, 0))}, 0, nil))
			return p.ca.Completion(&verbs.WC{ID: 1, QPN: 1})
		}, "want RNR_RETRY_EXC_ERR"},
		"a message longer than its receive": {func(p *pair) error {
			ok(t, p.b.PostRecv(9, []model.Piece{p.piece(0, 7)}, nil))
			ok(t, p.a.PostSend([]model.Request{p.request(1, verbs.WRSend, p.piece(8, 8), p.piece(0, 0))}, 0, nil))
			ok(t, p.ca.Completion(&verbs.WC{ID: 1, QPN: 1, Status: verbs.WCRemInvReqErr}))
			return p.cb.Completion(&verbs.WC{ID: 9, QPN: 2, Status: verbs.WCWRFlushErr})
		}, "want LOC_LEN_ERR"},
		"an unsignaled request that completes": {func(p *pair) error {
			r := p.request(1, verbs.WRRDMAWrite, p.piece(0, 8), p.piece(8, 0))
			r.Flags = 0
			ok(t, p.a.PostSend([]model.Request{r}, 0, nil))
			return p.ca.Completion(&verbs.WC{ID: 1, QPN: 1, Opcode: verbs.WCOpRDMAWrite})
		}, "completion of none"},
		"a request behind a failed one": {func(p *pair) error {
			ok(t, p.a.PostSend([]model.Request{p.request(1, verbs.WRRDMAWrite, p.piece(0, 8), p.piece(60, 0)), p.request(2, verbs.WRRDMAWrite, p.piece(0, 8), p.piece(8, 0))}, 0, nil))
			ok(t, p.ca.Completion(&verbs.WC{ID: 1, QPN: 1, Status: verbs.WCRemAccessErr}))
			return p.ca.Completion(&verbs.WC{ID: 2, QPN: 1, Opcode: verbs.WCOpRDMAWrite})
		}, "want WR_FLUSH_ERR"},
		"memory that nobody wrote": {func(p *pair) error {
			b := make([]byte, 128)
			b[70] = 1
			return p.mr.Mem.Check(b)
		}, "at byte 70"},
		"inline data that is refused at the maximum": {func(p *pair) error {
			r := p.request(1, verbs.WRRDMAWrite, p.piece(0, 16), p.piece(8, 0))
			r.Flags |= verbs.SendInline
			return p.a.PostSend([]model.Request{r}, 0, syscall.ENOMEM)
		}, "want 0, got ENOMEM"},
		"inline data that is taken above the maximum": {func(p *pair) error {
			r := p.request(1, verbs.WRRDMAWrite, p.piece(0, 17), p.piece(8, 0))
			r.Flags |= verbs.SendInline
			return p.a.PostSend([]model.Request{r}, 0, nil)
		}, "want refusal"},
		"a timer that another attribute has reset": {func(p *pair) error {
			ok(t, p.a.Modify(inv, verbs.QPMaskMinRNRTimer, nil))
			return p.a.Query(&verbs.QPAttr{State: verbs.QPSRTS, Access: remote &^ verbs.AccessRemoteRead, PathMTU: verbs.MTU256, MinRNRTimer: 7}, nil)
		}, "access 14"},
		"an event of a CQ that is not armed": {func(p *pair) error { return p.ca.Event(true) }, "want no event"},
		"no event of an armed CQ": {func(p *pair) error {
			ok(t, p.ca.Arm(false, nil))
			ok(t, p.a.PostSend([]model.Request{p.request(1, verbs.WRRDMAWrite, p.piece(0, 8), p.piece(8, 0))}, 0, nil))
			return p.ca.Event(false)
		}, "want an event"},
		"a CQ smaller than what waits": {func(p *pair) error {
			for id := range uint64(3) {
				ok(t, p.a.PostSend([]model.Request{p.request(id, verbs.WRRDMAWrite, p.piece(0, 8), p.piece(8, 0))}, 0, nil))
			}
			return p.ca.Resize(2, 2, nil)
		}, "for 3 that wait"},
		"an asynchronous event without a cause": {func(p *pair) error { return p.w.AsyncEvent(verbs.EventQPFatal, p.a) }, "no such event"},
		"RTS to INIT":                           {func(p *pair) error { return p.a.Modify(&verbs.QPAttr{State: verbs.QPSInit}, verbs.QPMaskState, nil) }, "want EINVAL"},
		"remote write without local write": {func(p *pair) error {
			return (&model.MR{World: p.w, Mem: p.mr.Mem, Len: 8, Access: verbs.AccessRemoteWrite}).Register(nil)
		}, "want EINVAL"},
	} {
		err := c.do(connected(t))
		var v *model.Violation
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (!errors.As(err, &v) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestOpenChoice: where the device may check or not, the completion decides what comes next.
func TestOpenChoice(t *testing.T) {
	for status, next := range map[verbs.WCStatus]verbs.WCStatus{verbs.WCSuccess: verbs.WCSuccess, verbs.WCLocProtErr: verbs.WCWRFlushErr} {
		p := connected(t)
		empty := p.request(1, verbs.WRRDMAWrite, p.piece(0, 0), p.piece(8, 0))
		empty.Local[0].WrongKey = true
		ok(t, p.a.PostSend([]model.Request{empty, p.request(2, verbs.WRRDMAWrite, p.piece(0, 8), p.piece(8, 0))}, 0, nil))
		ok(t, p.ca.Completion(&verbs.WC{ID: 1, QPN: 1, Opcode: verbs.WCOpRDMAWrite, Status: status}))
		ok(t, p.ca.Completion(&verbs.WC{ID: 2, QPN: 1, Opcode: verbs.WCOpRDMAWrite, Status: next}))
	}
}

// TestCoverageText: a table survives its text form.
func TestCoverageText(t *testing.T) {
	p := connected(t)
	ok(t, p.ca.Arm(false, nil))
	text, err := p.w.Cover.MarshalText()
	ok(t, err)
	var c model.Coverage
	ok(t, c.UnmarshalText(text))
	if c != p.w.Cover {
		t.Errorf("%s", text)
	}
	for _, bad := range []string{"1 2 x", "100000 0 1", "0 200 1"} {
		if c.UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// BenchmarkCalls: two calls of the model, a post and a completion.
func BenchmarkCalls(b *testing.B) {
	p := connected(b)
	list := []model.Request{p.request(1, verbs.WRRDMAWrite, p.piece(0, 8), p.piece(8, 0))}
	wc := &verbs.WC{ID: 1, QPN: 1, Opcode: verbs.WCOpRDMAWrite}
	b.ReportAllocs()
	for b.Loop() {
		if err := errors.Join(p.a.PostSend(list, 0, nil), p.ca.Completion(wc)); err != nil {
			b.Fatal(err)
		}
	}
}

// write posts a write and takes its completion.
func (p *pair) write(id uint64, to model.Piece, status verbs.WCStatus) error {
	return errors.Join(p.a.PostSend([]model.Request{p.request(id, verbs.WRRDMAWrite, p.piece(0, 8), to)}, 0, nil),
		p.ca.Completion(&verbs.WC{ID: id, QPN: 1, Opcode: verbs.WCOpRDMAWrite, Status: status}))
}

// bind posts a bind of a window through B and takes its completion.
func (p *pair) bind(b *model.Bind, status verbs.WCStatus) error {
	return errors.Join(p.b.PostSend([]model.Request{{ID: 7, Op: verbs.WRBindMW, Flags: verbs.SendSignaled, Bind: b}}, 0, nil),
		p.cb.Completion(&verbs.WC{ID: 7, QPN: 2, Opcode: verbs.WCOpBindMW, Status: status}))
}

// TestWindows: a window gives access to its range with its rights, of type 2 through its queue
// pair.
func TestWindows(t *testing.T) {
	through := func(p *pair, w *model.MW, off int) model.Piece {
		x := p.piece(off, 0)
		x.MW = w
		return x
	}
	for name, c := range map[string]struct {
		b    model.Bind
		off  int
		want verbs.WCStatus
	}{
		"inside":          {model.Bind{Off: 8, Len: 8, Access: verbs.AccessRemoteWrite, Type: verbs.MWType1}, 8, verbs.WCSuccess},
		"of type 2":       {model.Bind{Off: 8, Len: 8, Access: verbs.AccessRemoteWrite, Type: verbs.MWType2}, 8, verbs.WCSuccess},
		"one byte before": {model.Bind{Off: 8, Len: 8, Access: verbs.AccessRemoteWrite, Type: verbs.MWType1}, 7, verbs.WCRemAccessErr},
		"one byte behind": {model.Bind{Off: 8, Len: 8, Access: verbs.AccessRemoteWrite, Type: verbs.MWType1}, 9, verbs.WCRemAccessErr},
		"without a right": {model.Bind{Off: 8, Len: 8, Access: verbs.AccessRemoteRead, Type: verbs.MWType1}, 8, verbs.WCRemAccessErr},
		"that is free":    {model.Bind{Type: verbs.MWType1}, 8, verbs.WCRemAccessErr},
	} {
		p := connected(t)
		p.mr.Access |= verbs.AccessMWBind
		c.b.MW, c.b.MR = &model.MW{}, p.mr
		ok(t, p.bind(&c.b, verbs.WCSuccess))
		if err := p.write(1, through(p, c.b.MW, c.off), c.want); err != nil {
			t.Errorf("a window, %s: %v", name, err)
		}
		if busy := p.mr.Dereg(syscall.EBUSY); (busy == nil) != (c.b.Len > 0) {
			t.Errorf("a window, %s: the region's end: %v", name, busy)
		}
	}
	p := connected(t)
	p.mr.Access |= verbs.AccessMWBind
	if err := p.bind(&model.Bind{MW: &model.MW{}, MR: p.mr, Off: 57, Len: 8, Type: verbs.MWType1}, verbs.WCSuccess); err == nil {
		t.Error("a bind beyond the region succeeds")
	}
}

// TestArms: an arm while an event is untaken may do nothing, and a moderated CQ may keep its event.
func TestArms(t *testing.T) {
	p := connected(t)
	to := p.piece(8, 0)
	ok(t, p.ca.Arm(false, nil))
	ok(t, p.write(1, to, verbs.WCSuccess))
	ok(t, p.ca.Arm(false, nil))
	ok(t, p.ca.Event(true))
	ok(t, p.ca.Arm(true, nil))
	ok(t, p.write(2, to, verbs.WCSuccess)) // unsolicited: only the arm that may have done nothing is for it
	ok(t, p.ca.Event(false))
	ok(t, p.ca.Moderate(verbs.CQModeration{Count: 4}, nil))
	ok(t, p.ca.Arm(false, nil))
	ok(t, p.write(3, to, verbs.WCSuccess))
	ok(t, p.ca.Event(false))
	ok(t, p.ca.Moderate(verbs.CQModeration{}, nil))
	p = connected(t)
	ok(t, p.ca.Arm(false, nil))
	ok(t, p.write(1, to, verbs.WCSuccess))
	if p.ca.Event(false) == nil {
		t.Error("an armed CQ gives no event")
	}
}

// TestDrain: requests wait in SQD, and the notification must come.
func TestDrain(t *testing.T) {
	p := connected(t)
	ok(t, p.a.Modify(&verbs.QPAttr{State: verbs.QPSSQD, EnSQDAsyncNotify: true}, verbs.QPMaskState|verbs.QPMaskEnSQDAsyncNotify, nil))
	ok(t, p.a.PostSend([]model.Request{p.request(1, verbs.WRRDMAWrite, p.piece(0, 8), p.piece(8, 0))}, 0, nil))
	if p.w.NoAsyncEvent() == nil || p.ca.Completion(&verbs.WC{ID: 1, QPN: 1, Opcode: verbs.WCOpRDMAWrite}) == nil {
		t.Error("a request completes in SQD, or no event comes")
	}
	ok(t, p.w.AsyncEvent(verbs.EventSQDrained, p.a))
	ok(t, p.a.Modify(&verbs.QPAttr{State: verbs.QPSRTS}, verbs.QPMaskState, nil))
	ok(t, p.ca.Completion(&verbs.WC{ID: 1, QPN: 1, Opcode: verbs.WCOpRDMAWrite}))
}
