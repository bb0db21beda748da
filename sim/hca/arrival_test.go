package hca

import (
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// lateWire takes what is sent, and notes which planned frames have arrived.
type lateWire struct{ arrived []uint32 }

func (w *lateWire) Send(f *roce.Frame)                { f.Release() }
func (w *lateWire) Arrived(f *roce.Frame, _ sim.Time) { w.arrived = append(w.arrived, f.BTH().PSN()) }
func (w *lateWire) Recall()                           {}

// arrivalRig is a device on such a wire, and packets to a QP that it does not have.
type arrivalRig struct {
	*host
	w    *lateWire
	tmpl roce.Template
}

func newArrivalRig(t *testing.T) *arrivalRig {
	e := sim.New(sim.Options{})
	x := &arrivalRig{host: newHost(t, e, testParams(), 1), w: &lateWire{}}
	x.d.SetWire(x.w)
	var err error
	x.tmpl, err = roce.NewTemplate(roce.Path{
		Framing: roce.RoCEv2IPv4, SrcGID: roce.GIDFromIPv4([4]byte{10, 0, 0, 2}), DstGID: roce.GIDFromIPv4(x.id.IPv4),
		SrcPort: 0xc000, PKey: 0xffff, DestQP: 0x1234, MigReq: true, HopLimit: 64,
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *arrivalRig) frame(op roce.Opcode, psn uint32) *roce.Frame {
	return x.tmpl.New(&x.d.frames, op, psn, 0, 0)
}

func (x *arrivalRig) plan(op roce.Opcode, psn uint32, tail sim.Time) {
	x.t.Helper()
	if !x.d.Plan(x.frame(op, psn), tail) {
		x.t.Fatalf("packet %d is not planned", psn)
	}
}

// A planned frame has arrived for whoever looks behind the place of its last bit, and for nobody
// before it, at the same instant too; those of both kinds arrive in their order.
func TestPlannedFramesArriveInTheirPlace(t *testing.T) {
	x := newArrivalRig(t)
	tail := x.e.Now() + 100*sim.Nanosecond
	var seen []int
	look := func(uint64) {
		x.d.Settle()
		seen = append(seen, len(x.w.arrived))
	}
	x.e.At(tail-1, look, 0)
	x.e.At(tail, look, 0)
	x.plan(roce.RCWriteOnly, 1, tail)
	x.e.At(tail, look, 0)
	x.plan(roce.RCAcknowledge, 2, tail)
	x.plan(roce.RCWriteOnly, 3, tail+1)
	x.e.At(tail+1, look, 0)
	if err := x.e.Run(tail + sim.Millisecond); err != nil {
		t.Fatal(err)
	}
	if want := []int{0, 0, 1, 3}; !slices.Equal(seen, want) {
		t.Errorf("arrived at each look %v, want %v", seen, want)
	}
	if want := []uint32{1, 2, 3}; !slices.Equal(x.w.arrived, want) || x.d.Counters().RxPackets != 3 {
		t.Errorf("arrived %v, %d took effect, want %v", x.w.arrived, x.d.c.RxPackets, want)
	}
}

// A frame that comes without a plan takes its turn before those that are still on their way.
func TestUnplannedFrameAmongPlannedOnes(t *testing.T) {
	x := newArrivalRig(t)
	start := x.e.Now()
	for i := range sim.Time(3) {
		x.plan(roce.RCWriteOnly, uint32(i), start+100*(i+1)*sim.Nanosecond)
	}
	var order []uint32
	x.e.At(start+150*sim.Nanosecond, func(uint64) {
		x.d.Receive(x.frame(roce.RCWriteOnly, 9))
		l := &x.d.arrivals.pipes[requests]
		for i := range l.queue.Len() {
			order = append(order, l.queue.At(i).f.BTH().PSN())
		}
	}, 0)
	if err := x.e.Run(start + sim.Millisecond); err != nil {
		t.Fatal(err)
	}
	n := len(order)
	if want := []uint32{0, 9, 1, 2}; n < 3 || !slices.Equal(order, want[4-n:]) || x.d.Counters().RxPackets != 4 {
		t.Errorf("in the pipeline %v, %d took effect, want the order %v", order, x.d.c.RxPackets, want)
	}
}

// What is on the cable when it is pulled comes back in order with its places; what has arrived
// stays.
func TestUnplannedLink(t *testing.T) {
	x := newArrivalRig(t)
	start := x.e.Now()
	x.plan(roce.RCWriteOnly, 1, start+100*sim.Nanosecond)
	x.plan(roce.RCAcknowledge, 2, start+200*sim.Nanosecond)
	x.plan(roce.RCWriteOnly, 3, start+300*sim.Nanosecond)
	x.plan(roce.RCAcknowledge, 4, start+400*sim.Nanosecond)
	var back []uint32
	x.e.At(start+100*sim.Nanosecond, func(uint64) {
		x.d.Settle()
		x.d.Unplan(func(f *roce.Frame, at sim.Place) {
			psn := f.BTH().PSN()
			if want := start + sim.Time(psn)*100*sim.Nanosecond; at.Time() != want {
				t.Errorf("packet %d would arrive at %v, want %v", psn, at.Time(), want)
			}
			back = append(back, psn)
			f.Release()
		})
	}, 0)
	if err := x.e.Run(start + sim.Millisecond); err != nil {
		t.Fatal(err)
	}
	if want := []uint32{2, 3, 4}; !slices.Equal(back, want) || !slices.Equal(x.w.arrived, []uint32{1}) || x.d.Counters().RxPackets != 1 {
		t.Errorf("came back %v, want %v; arrived %v, %d took effect", back, want, x.w.arrived, x.d.c.RxPackets)
	}
}
