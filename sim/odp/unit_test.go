package odp

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// bed is a unit with a driver that keeps the events, and queues that keep who went on.
type bed struct {
	e       *sim.Engine
	u       *Unit
	events  []prm.EQE
	resumed []Fault
	failed  int
}

func (b *bed) WantsPageFaults() bool { return true }

func (b *bed) PageFault(put func(e prm.EQE)) {
	e := make(prm.EQE, prm.EQESize)
	put(e)
	b.events = append(b.events, e)
}

func (b *bed) Resumed(queue uint64, s Side, wqe, failed bool) {
	b.resumed = append(b.resumed, Fault{Queue: queue, Side: s, WQE: wqe})
	if failed {
		b.failed++
	}
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{e: sim.New(sim.Options{})}
	p := &Params{RC: prm.ODPSend, MemoryScheme: true, Report: 10 * sim.Microsecond, ReportPage: sim.Microsecond, Resume: 5 * sim.Microsecond}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	b.u = New(b.e, p, b, b)
	return b
}

func (b *bed) run(t *testing.T, d sim.Time) {
	t.Helper()
	if err := b.e.Run(b.e.Now() + d); err != nil {
		t.Fatal(err)
	}
}

// answer answers a token in the scheme of queues.
func (b *bed) answer(token Token, failed bool) {
	in := prm.PageFaultResumeIn(prm.NewIn(prm.OpPageFaultResume, 0))
	in.SetToken(uint32(token))
	in.SetError(failed)
	b.u.Answer(in)
}

// TestEvents: what an event says of each kind of fault, and when it comes.
func TestEvents(t *testing.T) {
	b := newBed(t)
	token := b.u.Raise(Fault{Queue: 1, Side: GatherSide, WQE: true, Number: 0x41, Index: 7, Committed: 100, Packet: 64, Bytes: 3 * prm.PageSize})
	b.run(t, 11*sim.Microsecond)
	if len(b.events) != 0 {
		t.Fatal("the event is early: it is about two further pages")
	}
	b.run(t, sim.Microsecond)
	d := prm.PageFaultWQE(b.events[0].Data())
	if b.events[0].SubType() != prm.PageFaultSubWQE || d.Token() != uint32(token) || d.WQNumber() != 0x41 || d.WQEIndex() != 7 || d.BytesCommitted() != 100 || d.FaultType() != prm.FaultSendOrWrite {
		t.Errorf("% x", []byte(b.events[0]))
	}
	b.u.Raise(Fault{Queue: 1, Side: WriteSide, WQE: true, SRQ: true, Number: 9})
	token = b.u.Raise(Fault{Queue: 1, Side: ReadSide, RKey: 0x1234, VA: 0x5000, Length: 77})
	b.run(t, 20*sim.Microsecond)
	if d := prm.PageFaultWQE(b.events[1].Data()); d.FaultType() != prm.FaultRMP || d.WQNumber() != 9 {
		t.Errorf("of an SRQ: % x", []byte(b.events[1]))
	}
	if d := prm.PageFaultRDMA(b.events[2].Data()); d.RKey() != 0x1234 || d.RDMAVA() != 0x5000 || d.RDMAOpLen() != 77 || d.FaultType() != prm.FaultRDMA || d.Token() != uint32(token) {
		t.Errorf("of a READ: % x", []byte(b.events[2]))
	}
	if c := b.u.Counters; c.LocalTriggered != 1 || c.RemoteTriggered != 2 {
		t.Errorf("%+v", c)
	}
	b.u.ChooseMemoryScheme(true)
	b.u.Raise(Fault{Queue: 1, Side: GatherSide, WQE: true, MKey: 0x5600, At: 0x7ff8, Demand: 16, Bytes: 0x3000})
	b.run(t, 20*sim.Microsecond)
	if d := prm.PageFaultMemory(b.events[3].Data()); b.events[3].SubType() != prm.PageFaultSubMemory || d.MKey() != 0x5600 || d.VA() != 0x7000 || d.DemandPages() != 2 || d.PostDemandPages() != 2 || d.Flags() != prm.PageFaultMemoryLast {
		t.Errorf("of memory: % x", []byte(b.events[3]))
	}
}

// TestAnswerCountsOnce: an answer counts once, after the event, while the queue waits; its place is
// used again by another token.
func TestAnswerCountsOnce(t *testing.T) {
	b := newBed(t)
	first := b.u.Raise(Fault{Queue: 1, Side: LandingSide, WQE: true})
	b.answer(first, false) // the driver cannot know it yet
	b.run(t, 10*sim.Microsecond)
	b.answer(first, false)
	b.answer(first, true)
	b.run(t, 4*sim.Microsecond)
	if len(b.resumed) != 0 || b.u.Stale != 2 {
		t.Fatalf("%d resumed early, %d stale", len(b.resumed), b.u.Stale)
	}
	b.run(t, sim.Microsecond)
	if len(b.resumed) != 1 || b.resumed[0] != (Fault{Queue: 1, Side: LandingSide, WQE: true}) || b.failed != 0 || b.u.Out() != 0 {
		t.Fatalf("%+v, %d failed, %d out", b.resumed, b.failed, b.u.Out())
	}
	second := b.u.Raise(Fault{Queue: 2, Side: GatherSide})
	if second == first || second == 0 || second>>24 != 0 {
		t.Fatalf("tokens %#x and %#x", first, second)
	}
	b.run(t, 10*sim.Microsecond)
	b.answer(first, false)
	b.answer(second, true)
	b.run(t, 5*sim.Microsecond)
	if len(b.resumed) != 2 || b.failed != 1 || b.u.Stale != 3 {
		t.Errorf("%+v, %d failed, %d stale", b.resumed, b.failed, b.u.Stale)
	}
}

// TestDropped: of a fault whose queue is gone nothing comes, neither before its event nor after its
// answer.
func TestDropped(t *testing.T) {
	b := newBed(t)
	b.u.Drop(b.u.Raise(Fault{Queue: 1}))
	b.run(t, 20*sim.Microsecond)
	late := b.u.Raise(Fault{Queue: 2})
	b.run(t, 10*sim.Microsecond)
	b.answer(late, false)
	b.u.Drop(late)
	b.u.Drop(0)
	b.run(t, 20*sim.Microsecond)
	if len(b.events) != 1 || len(b.resumed) != 0 || b.u.Out() != 0 {
		t.Errorf("%d events, %+v, %d out", len(b.events), b.resumed, b.u.Out())
	}
	b.u.Raise(Fault{Queue: 3})
	b.u.Reset()
	b.run(t, 20*sim.Microsecond)
	if len(b.events) != 1 || b.u.Out() != 0 {
		t.Error("a fault outlives the reset")
	}
}

// TestMostFaults: one above the greatest number of faults is refused, and room comes back.
func TestMostFaults(t *testing.T) {
	b := newBed(t)
	var last Token
	n := 0
	for {
		token := b.u.Raise(Fault{Queue: 1})
		if token == 0 {
			break
		}
		last, n = token, n+1
	}
	if n != 1<<placeBits-1 || b.u.Raise(Fault{Queue: 1}) != 0 {
		t.Fatalf("%d faults are out", n)
	}
	b.u.Drop(last)
	if b.u.Raise(Fault{Queue: 1}) == 0 {
		t.Error("no room where one was dropped")
	}
}
