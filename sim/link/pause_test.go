package link

import (
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

func pfc100G() Params {
	p := test100G()
	p.PFC, p.PFCClasses, p.PFCXoff, p.PFCXon, p.PFCTime = true, 1, 8000, 4000, 0xffff
	return p
}

// TestPauseHoldsTheClass: a pause stops the frames of its class behind the one on the line,
// and no other class; the end of the pause lets them go.
func TestPauseHoldsTheClass(t *testing.T) {
	b := newBench(t, pfc100G())
	p, q := b.c.End(0), b.c.End(1)
	var seen []string
	q.Tap(func(s Sent) {
		if pause, ok := roce.ParsePFC(s.Frame.B); ok {
			quanta, _ := pause.Time(0)
			seen = append(seen, map[bool]string{true: "on", false: "off"}[quanta > 0])
		}
	})
	for psn := range uint32(10) {
		p.Send(b.frame(1, psn, string(make([]byte, 1000))))
	}
	other := b.frame(1, 99, "x")
	pk, err := other.Decode()
	if err != nil {
		t.Fatal(err)
	}
	pk.IPv4().SetTOS(6 << 5)
	pk.IPv4().SetChecksum(pk.IPv4().ComputeChecksum())
	b.e.At(300*sim.Nanosecond, func(uint64) { p.Send(other) }, 0)
	q.Buffered(0, 9000)  // the pause arrives while the second or third frame is on the line
	q.Buffered(3, 1<<20) // not a lossless class
	b.e.At(20*sim.Microsecond, func(uint64) { q.Buffered(0, -4000) }, 0)
	b.e.At(30*sim.Microsecond, func(uint64) { q.Buffered(0, -1000) }, 0)
	b.run()
	got := b.rx[1].psns()
	if len(got) != 11 {
		t.Fatalf("%d of 11 frames arrived", len(got))
	}
	at := slices.Index(got, 99)
	if at < 1 || at > 5 || b.rx[1].got[at].at > sim.Microsecond {
		t.Errorf("the frame of the other class came at place %d, %v", at, b.rx[1].got[at].at)
	}
	if next := b.rx[1].got[at+1].at; next < 30*sim.Microsecond || next > 31*sim.Microsecond {
		t.Errorf("the paused class goes on at %v", next)
	}
	if !slices.IsSorted(slices.Delete(slices.Clone(got), at, at+1)) {
		t.Errorf("order %v", got)
	}
	if !slices.Equal(seen, []string{"on", "off"}) || p.C.RxPause[0] != 2 || q.C.TxPause[0] != 2 {
		t.Errorf("pauses %v, counters %d and %d", seen, p.C.RxPause[0], q.C.TxPause[0])
	}
}

// TestPauseEnds: a pause that nobody renews ends by itself.
func TestPauseEnds(t *testing.T) {
	params := pfc100G()
	params.PFCTime = 1000 // 5.12 us
	b := newBench(t, params)
	p, q := b.c.End(0), b.c.End(1)
	f := roce.NewPFC(&b.pool, roce.MAC{}, 0, 1000)
	q.emit(f, 0, &measures{}, false)
	b.e.At(sim.Microsecond, func(uint64) { p.Send(b.frame(1, 7, "x")) }, 0)
	b.run()
	if len(b.rx[1].got) != 1 {
		t.Fatalf("%d frames", len(b.rx[1].got))
	}
	if at := b.rx[1].got[0].at; at < 5*sim.Microsecond || at > 6*sim.Microsecond {
		t.Errorf("it went on at %v", at)
	}
}

// TestLosslessSwitch: two senders of one egress overflow a small buffer without flow control,
// and lose nothing with it.
func TestLosslessSwitch(t *testing.T) {
	for _, on := range []bool{false, true} {
		s := &star{bench: &bench{t: t, e: sim.New(sim.Options{Seed: 1})}}
		s.sw = NewSwitch(s.e, "sw", SwitchParams{Latency: 300 * sim.Nanosecond, Buffer: 64_000})
		for i := range s.ends {
			p := pfc100G()
			p.PFC = on
			c := NewCable(s.e, p, "host", "sw")
			s.sw.Plug(c.End(1))
			s.rx[i] = &sinkhole{e: s.e}
			s.ends[i] = c.End(0)
			s.ends[i].Attach(s.rx[i])
		}
		s.send(2, 0, 0, "") // so that 2 is known
		payload := string(make([]byte, 1000))
		s.e.After(sim.Microsecond, func(uint64) {
			for psn := range uint32(400) {
				s.send(0, 2, psn, payload)
				s.send(1, 2, psn, payload)
			}
		}, 0)
		s.run()
		drops, pauses := uint64(0), uint64(0)
		for _, p := range s.sw.ports {
			drops += p.C.TxDiscards
			pauses += p.C.TxPause[0]
			if p.pfc != nil && (p.pfc.held != [roce.Classes]int{} || p.pfc.queued != 0) {
				t.Errorf("port %s still buffers %v and queues %d", p.name, p.pfc.held, p.pfc.queued)
			}
		}
		if on && (drops != 0 || pauses < 4 || len(s.rx[2].got) != 800) || !on && (drops == 0 || pauses != 0) {
			t.Errorf("flow control %t: %d dropped, %d pauses, %d arrived", on, drops, pauses, len(s.rx[2].got))
		}
	}
}
