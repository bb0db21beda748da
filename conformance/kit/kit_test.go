package kit

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// judge runs a body as a case without a testbed and returns why it failed.
func judge(body func(c *spec.C)) string {
	r := spec.NewRunning("KIT-TEST", 1)
	r.Execute(nil, verbs.UnimplementedTestbed{}, body)
	if v := r.Result().Verdict; v != nil {
		return v.Reason
	}
	return ""
}

// bfBlock is a write of one 64-byte block whose request has ds units of 16 bytes.
func bfBlock(off uint32, qpn uint32, ds int) verbs.MMIOWrite {
	b := make([]byte, 64)
	prm.CtrlSegment(b).Set(prm.WQEOpRDMAWrite, 0, 0, qpn, ds, 0, 0)
	return verbs.MMIOWrite{Kind: verbs.MMIOBlueFlame, Offset: off, Len: 64, Data: b}
}

func TestPushes(t *testing.T) {
	whole := []verbs.MMIOWrite{bfBlock(0x800, 5, 9), bfBlock(0x840, 0, 0), bfBlock(0x880, 0, 0), bfBlock(0x900, 6, 3)}
	var got []BlueFlamePush
	if why := judge(func(c *spec.C) { got = BlueFlamePushes(c, whole, 64) }); why != "" {
		t.Fatalf("whole pushes are refused: %s", why)
	}
	if len(got) != 2 || got[0].QPN != 5 || len(got[0].Data) != 192 || got[1].QPN != 6 || len(got[1].Data) != 64 {
		t.Errorf("pushes %+v", got)
	}
	for name, tc := range map[string]struct {
		ws   []verbs.MMIOWrite
		want string
	}{
		"interleaved": {[]verbs.MMIOWrite{whole[0], bfBlock(0x900, 6, 3), whole[1], whole[2]}, "inside a push"},
		"doorbell":    {[]verbs.MMIOWrite{whole[0], {Kind: verbs.MMIODoorbell, Offset: 0x900, Len: 8}}, "doorbell inside"},
		"cut":         {whole[:2], "not whole"},
	} {
		if why := judge(func(c *spec.C) { BlueFlamePushes(c, tc.ws, 64) }); !strings.Contains(why, tc.want) {
			t.Errorf("%s: reason %q, want one with %q", name, why, tc.want)
		}
	}
}

// unstarted is the testbed of a helper process that ends before it answers.
type unstarted struct {
	verbs.UnimplementedTestbed
	answers int // commands that it answers before
}

func (u *unstarted) Player(verbs.Thread, int, map[string]string) (verbs.Player, error) { return u, nil }

func (u *unstarted) Do(verbs.Thread, verbs.PlayerCommand) (verbs.PlayerReply, error) {
	if u.answers--; u.answers >= 0 {
		return verbs.PlayerReply{}, nil
	}
	return verbs.PlayerReply{Text: "error while loading shared libraries"}, verbs.ErrProcessDied
}

func (u *unstarted) Kill(verbs.Thread) {}

// A helper process that does not get as far as an answer says nothing about the device.
func TestHelperThatCannotStartIsAnError(t *testing.T) {
	for answers, want := range map[int]report.Outcome{0: report.Error, 1: report.Fail} {
		for name, body := range map[string]func(c *spec.C){
			"do":  func(c *spec.C) { OpenOtherProcess(c, 0, nil).Do(c, "td", nil, nil) },
			"err": func(c *spec.C) { _, _ = OpenOtherProcess(c, 0, nil).DoErr(c, "td", nil, nil) },
		} {
			r := spec.NewRunning("KIT-TEST", 1)
			r.Execute(nil, &unstarted{answers: answers}, body)
			v := r.Result().Verdict
			if v == nil || v.Outcome != want || want == report.Error && !strings.Contains(v.Reason, "loading shared libraries") {
				t.Errorf("%s, %d answers: %+v, want %s", name, answers, v, want)
			}
		}
	}
}

func TestTranscriptIsRelative(t *testing.T) {
	packet := func(op roce.Opcode, to, psn uint32) Packet {
		return Packet{Packet: frame(t, op, to, psn)}
	}
	a := Transcript([]Packet{packet(roce.RCSendOnly, 7, 0xffffff), packet(roce.RCAcknowledge, 7, 3), packet(roce.RCSendOnly, 7, 0)},
		[]uint32{7}, []uint32{0xfffffe})
	b := Transcript([]Packet{packet(roce.RCSendOnly, 9, 0x10), packet(roce.RCSendOnly, 8, 1), packet(roce.RCSendOnly, 9, 0x11)},
		[]uint32{9}, []uint32{0xf})
	if d := cmp.Diff(a, b); d != "" || len(a) != 2 {
		t.Errorf("transcripts of the same program differ:\n%s", d)
	}
}

func TestMaskFor(t *testing.T) {
	for _, tc := range []struct {
		typ  verbs.QPType
		to   verbs.QPState
		want verbs.QPAttrMask
	}{
		{verbs.QPTRC, verbs.QPSInit, MaskInitRC}, {verbs.QPTUD, verbs.QPSInit, MaskInitUD}, {verbs.QPTUC, verbs.QPSRTR, MaskRTRUC},
		{verbs.QPTRC, verbs.QPSRTR, MaskRTRRC}, {verbs.QPTUD, verbs.QPSRTR, verbs.QPMaskState}, {verbs.QPTRC, verbs.QPSRTS, MaskRTSRC},
		{verbs.QPTUD, verbs.QPSRTS, MaskRTSUC}, {verbs.QPTRC, verbs.QPSErr, verbs.QPMaskState},
		{verbs.QPTXRCSend, verbs.QPSRTR, MaskRTRUC}, {verbs.QPTXRCRecv, verbs.QPSRTR, MaskRTRRC}, {verbs.QPTXRCSend, verbs.QPSRTS, MaskRTSRC},
		{verbs.QPTXRCRecv, verbs.QPSRTS, MaskRTSUC | verbs.QPMaskTimeout},
	} {
		if got := MaskFor(tc.typ, tc.to); got != tc.want {
			t.Errorf("MaskFor(%d, %v) = %#x, want %#x", tc.typ, tc.to, got, tc.want)
		}
	}
}

func TestWordsAreOfTheHost(t *testing.T) {
	for _, v := range []uint64{0, 1, 0x0102030405060708, 1<<64 - 1} {
		if got := HostWord(HostWordBytes(v)); got != v {
			t.Errorf("word(unword(%#x)) = %#x", v, got)
		}
	}
}

// frame is a frame of an opcode without payload, decoded.
func frame(t *testing.T, op roce.Opcode, to, psn uint32) roce.Packet {
	t.Helper()
	tmpl, err := roce.NewTemplate(roce.Path{Framing: roce.RoCEv2IPv4, SrcGID: roce.GIDFromIPv4([4]byte{1}),
		DstGID: roce.GIDFromIPv4([4]byte{2}), DestQP: to, HopLimit: 1, PKey: 0xffff})
	if err != nil {
		t.Fatal(err)
	}
	var pool roce.Pool
	f := tmpl.New(&pool, op, psn, 0, 0)
	f.FinishICRC()
	p, err := roce.Parse(f.B)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// eventful is a context with events of its port.
type eventful struct {
	verbs.UnimplementedContext
	events []verbs.EventType
}

func (x *eventful) AsyncEvent(verbs.Thread, time.Duration) (verbs.AsyncEvent, error) {
	if len(x.events) == 0 {
		return verbs.AsyncEvent{}, syscall.EAGAIN
	}
	ev := verbs.AsyncEvent{Type: x.events[0], Port: 1}
	x.events = x.events[1:]
	return ev, nil
}

// The PORT_ERR of a port that waits for the subnet manager belongs to its PORT_ACTIVE, which may
// come first.
func TestPortIsActiveInAnyOrder(t *testing.T) {
	const portErr, active, lid = verbs.EventPortErr, verbs.EventPortActive, verbs.EventLIDChange
	for name, tc := range map[string]struct {
		events []verbs.EventType
		left   int
		why    string
	}{
		"in order":  {[]verbs.EventType{portErr, active, portErr}, 1, ""},
		"overtaken": {[]verbs.EventType{active, portErr}, 0, ""},
		"alone":     {[]verbs.EventType{active}, 0, ""},
		"another":   {[]verbs.EventType{active, lid}, 0, "LID_CHANGE"},
	} {
		x := &eventful{events: tc.events}
		why := judge(func(c *spec.C) {
			if ev := AwaitPortEvent(c, &Env{Ctx: x, Port: 1, IB: true}, active); ev.Type != active {
				t.Errorf("%s: %v", name, ev.Type)
			}
		})
		if !strings.Contains(why, tc.why) || tc.why == "" && why != "" || len(x.events) != tc.left {
			t.Errorf("%s: %q, and %d events are left", name, why, len(x.events))
		}
	}
}

// recorder is a testbed whose wire counts its recordings.
type recorder struct {
	verbs.UnimplementedTestbed
	wire countingWire
}

type countingWire struct {
	verbs.Wire
	taps int
}

func (r *recorder) Wire() verbs.Wire                                  { return &r.wire }
func (w *countingWire) StartTap(verbs.Thread) error                   { w.taps++; return nil }
func (*countingWire) StopTap(verbs.Thread) ([]verbs.WireFrame, error) { return nil, nil }

// A tap within a tap would end its recording: the case is an error. One after another, also after a
// failed body, are two recordings.
func TestTapWithinATap(t *testing.T) {
	run := func(body func(c *spec.C)) (*recorder, *spec.Verdict) {
		w, r := &recorder{}, spec.NewRunning("KIT-TEST", 1)
		r.Execute(nil, w, body)
		return w, r.Result().Verdict
	}
	w, v := run(func(c *spec.C) { Tap(c, func() { Tap(c, func() {}) }) })
	if v == nil || v.Outcome != report.Error || !strings.Contains(v.Reason, "a tap within a tap") || w.wire.taps != 1 {
		t.Errorf("%d taps, verdict %+v", w.wire.taps, v)
	}
	w, v = run(func(c *spec.C) {
		c.Defer(func() { Tap(c, func() {}) })
		Tap(c, func() {})
		Tap(c, func() { c.Failf("in the body") })
	})
	if v == nil || v.Reason != "in the body" || w.wire.taps != 3 {
		t.Errorf("%d taps, verdict %+v", w.wire.taps, v)
	}
}

// work answers commands with what it was given.
type work struct {
	verbs.UnimplementedTestbed
	last verbs.PlayerCommand
}

func (w *work) Player(verbs.Thread, int, map[string]string) (verbs.Player, error) { return w, nil }
func (w *work) Kill(verbs.Thread)                                                 {}
func (w *work) Do(_ verbs.Thread, c verbs.PlayerCommand) (verbs.PlayerReply, error) {
	w.last = c
	return verbs.PlayerReply{Values: map[string]uint64{"n": 1, "id0": 7, "status0": uint64(verbs.WCRemAccessErr), "opcode0": 128, "vendor0": 0x88, "len0": 5,
		"imm0": 9, "qpn0": 0x123, "src0": 0x456, "flags0": 2, "pkey0": 3, "slid0": 4, "sl0": 1, "path0": 6}}, nil
}

// A completion of another process has all its fields, and a request there all its SGEs.
func TestWorkOfAnotherProcess(t *testing.T) {
	w := &work{}
	spec.NewRunning("KIT-TEST", 1).Execute(nil, w, func(c *spec.C) {
		o := StartOtherProcess(c, 0, nil)
		want := verbs.WC{ID: 7, Status: verbs.WCRemAccessErr, Opcode: 128, VendorErr: 0x88, ByteLen: 5, Imm: 9, QPN: 0x123, SrcQP: 0x456, Flags: 2, PKeyIndex: 3,
			SLID: 4, SL: 1, DLIDPathBits: 6}
		if got := o.Completions(c, 1); len(got) != 1 || got[0] != want {
			t.Errorf("completions %+v, want %+v", got, want)
		}
		b := &OtherBuffer{Process: o, ID: 2, Len: 64}
		(&OtherQP{Process: o, ID: 1}).Post(c, verbs.SendWR{ID: 8, Opcode: verbs.WRSend}, b.Part(0, 8), b.Part(16, 4))
		if a := w.last.Args; a["buf"] != 2 || a["len"] != 8 || a["buf1"] != 2 || a["off1"] != 16 || a["len1"] != 4 || a["id"] != 8 {
			t.Errorf("arguments %v", a)
		}
	})
}
