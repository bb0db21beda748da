package uar

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// log is a Sink that writes down what it is told.
type log []string

func (l *log) Doorbell(page uint32, db []byte) {
	*l = append(*l, fmt.Sprintf("db %d", prm.CtrlSegment(db).WQEIndex()))
}
func (l *log) BlueFlame(page uint32, wqe []byte, delay sim.Time) {
	*l = append(*l, fmt.Sprintf("bf %d len %d delay %v", prm.CtrlSegment(wqe).WQEIndex(), len(wqe), delay))
}
func (l *log) Begun(page uint32, b []byte) {
	*l = append(*l, fmt.Sprintf("begun %d len %d", prm.CtrlSegment(b).WQEIndex(), len(b)))
}
func (l *log) ArmCQ(page uint32, b []byte) {
	*l = append(*l, fmt.Sprintf("arm %d", prm.CQArmDoorbell(b).CQN()))
}
func (l *log) EQ(page uint32, b []byte, arm bool) {
	*l = append(*l, fmt.Sprintf("eq %d %v", prm.EQDoorbell(b).EQN(), arm))
}

// wqe is the bytes of a WQE of ds units, padded to whole lines.
func wqe(index uint16, ds int) []byte {
	b := make([]byte, max(64, (ds*16+63)/64*64))
	prm.CtrlSegment(b).Set(prm.WQEOpSend, 0, index, 7, ds, 0, 0)
	return b
}

func params(c Conflict) *Params {
	return &Params{BFConflict: c, BFBusy: 10, BFConflictCost: 7, BFTimeout: 1000, BFLines: 4}
}

// write is one TLP.
type write struct {
	at  sim.Time
	off uint64
	b   []byte
}

func TestPage(t *testing.T) {
	reg := func(k, h uint64) uint64 { return 0x800 + k*512 + h*256 }
	long := wqe(1, 10) // three lines
	arm := make([]byte, 8)
	prm.CQArmDoorbell(arm).Set(0, 5)
	eq := []byte{9, 0, 0, 1}
	for _, c := range []struct {
		name     string
		conflict Conflict
		w        []write
		want     log
		count    Counters
	}{
		{"doorbells on both halves", ConflictNone, []write{{0, reg(0, 0), wqe(1, 1)[:8]}, {0, reg(0, 1), wqe(2, 1)[:8]}, {0, reg(3, 1), wqe(3, 1)[:8]}},
			log{"db 1", "db 2", "db 3"}, Counters{Doorbells: 3}},
		{"one line", ConflictNone, []write{{0, reg(1, 0), wqe(1, 4)}}, log{"bf 1 len 64 delay 0ps"}, Counters{BlueFlame: 1}},
		{"three lines", ConflictNone, []write{{0, reg(1, 0), long[:64]}, {1, reg(1, 0) + 64, long[64:128]}, {2, reg(1, 0) + 128, long[128:]}},
			log{"bf 1 len 192 delay 0ps"}, Counters{BlueFlame: 1}},
		{"two registers interleaved", ConflictNone, []write{{0, reg(0, 0), long[:64]}, {0, reg(1, 0), long[:64]}, {1, reg(0, 0) + 64, long[64:]}, {2, reg(1, 0) + 64, long[64:]}},
			log{"bf 1 len 192 delay 0ps", "bf 1 len 192 delay 0ps"}, Counters{BlueFlame: 2, Conflicts: 1}},
		{"a line of small pieces", ConflictNone, []write{{0, reg(0, 0), long[:24]}, {0, reg(0, 0) + 24, long[24:64]}, {1, reg(0, 0) + 64, long[64:]}},
			log{"db 1"}, Counters{Torn: 1, Dropped: 2}},
		{"lines in the wrong order", ConflictNone, []write{{0, reg(0, 0), long[:64]}, {0, reg(0, 0) + 128, long[128:]}, {1, reg(0, 0) + 64, long[64:128]}},
			log{"db 1"}, Counters{Torn: 1, Dropped: 2}},
		{"overtaken by a new push", ConflictNone, []write{{0, reg(0, 0), long[:64]}, {0, reg(0, 0), wqe(2, 2)}},
			log{"db 1", "bf 2 len 64 delay 0ps"}, Counters{Torn: 1, BlueFlame: 1}},
		{"overtaken by a doorbell", ConflictNone, []write{{0, reg(0, 0), long[:64]}, {0, reg(0, 0), wqe(2, 2)[:8]}},
			log{"db 1", "db 2"}, Counters{Torn: 1, Doorbells: 1}},
		{"the rest never comes", ConflictNone, []write{{0, reg(0, 0), long[:64]}, {1000, 0, nil}}, log{"db 1"}, Counters{Torn: 1}},
		{"longer than a half", ConflictNone, []write{{0, reg(0, 0), wqe(1, 17)[:64]}}, log{"db 1"}, Counters{Torn: 1}},
		{"arms and EQs", ConflictNone, []write{{0, 0x20, arm}, {0, 0x40, eq}, {0, 0x48, eq}, {0, 0x20, arm[:4]}, {0, 0x44, eq}, {0, 0x7f8, arm}, {0, 0xffc, arm}, {0, 0x804, arm}},
			log{"arm 5", "eq 9 true", "eq 9 false"}, Counters{CQArms: 1, EQDoorbells: 2, Dropped: 5}},
		{"conflict without effect", ConflictNone, []write{{0, reg(0, 0), wqe(1, 2)}, {9, reg(1, 0), wqe(2, 2)}},
			log{"bf 1 len 64 delay 0ps", "bf 2 len 64 delay 0ps"}, Counters{BlueFlame: 2, Conflicts: 1}},
		{"serialize", ConflictSerialize, []write{{0, reg(0, 0), wqe(1, 2)}, {9, reg(1, 0), wqe(2, 2)}, {12, reg(1, 1), wqe(3, 2)}, {50, reg(0, 1), wqe(4, 2)}},
			log{"bf 1 len 64 delay 0ps", "bf 2 len 64 delay 8ps", "bf 3 len 64 delay 5ps", "bf 4 len 64 delay 0ps"},
			Counters{BlueFlame: 4, Conflicts: 1, ConflictDelay: 8}},
		{"same register is no conflict", ConflictSerialize, []write{{0, reg(0, 0), wqe(1, 2)}, {1, reg(0, 1), wqe(2, 2)}},
			log{"bf 1 len 64 delay 0ps", "bf 2 len 64 delay 0ps"}, Counters{BlueFlame: 2}},
		{"doorbells are exempt", ConflictSerialize, []write{{0, reg(0, 0), wqe(1, 2)}, {1, reg(1, 0), wqe(2, 2)[:8]}},
			log{"bf 1 len 64 delay 0ps", "db 2"}, Counters{BlueFlame: 1, Doorbells: 1}},
		{"refetch", ConflictRefetch, []write{{0, reg(0, 0), wqe(1, 2)}, {9, reg(1, 0), wqe(2, 2)}},
			log{"bf 1 len 64 delay 0ps", "db 2"}, Counters{BlueFlame: 2, Conflicts: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewPage(3, 512, params(c.conflict))
			var got log
			for _, w := range c.w {
				if w.b == nil {
					g.Expire(w.at, &got)
					continue
				}
				g.Write(w.at, w.off, w.b, &got)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.count, g.Counters); d != "" {
				t.Error(d)
			}
			if g.Assembling() {
				t.Error("a push is left over")
			}
		})
	}
}

// A device that takes one line of a push has all it takes with the first TLP.
func TestFirstLine(t *testing.T) {
	p := params(ConflictNone)
	p.BFLines = 1
	g := NewPage(3, 512, p)
	var got log
	g.Write(0, 0x800, wqe(1, 10)[:64], &got)
	g.Write(0, 0x900, wqe(4, 3), &got)
	if d := cmp.Diff(log{"begun 1 len 64", "bf 4 len 64 delay 0ps"}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(Counters{BFCut: 1, BlueFlame: 1}, g.Counters); d != "" {
		t.Error(d)
	}
}

func TestWithoutBlueFlame(t *testing.T) {
	g := NewPage(3, 0, params(ConflictNone))
	var got log
	g.Write(0, 0x800, wqe(1, 2), &got)
	g.Write(0, 0x900, wqe(2, 2)[:8], &got)
	if d := cmp.Diff(log{"db 1", "db 2"}, got); d != "" {
		t.Error(d)
	}
}

func FuzzPage(f *testing.F) {
	f.Add([]byte{0x80, 64, 1, 2, 3})
	f.Fuzz(func(t *testing.T, p []byte) {
		for c := ConflictNone; c <= ConflictRefetch; c++ {
			g := NewPage(1, 512, params(c))
			var got log
			now := sim.Time(0)
			for q := p; len(q) > 2; {
				n := min(int(q[1]), len(q)-2)
				g.Write(now, uint64(q[0])<<4|uint64(q[1]&3)<<2, q[2:2+n], &got)
				now += sim.Time(q[0])
				q = q[2+n:]
			}
			g.Expire(now+2000, &got)
			if g.Assembling() {
				t.Fatal("a push is left over")
			}
		}
	})
}

// A write taken ahead of its time does what it would do then; what may change its
// meaning before then is not taken.
func TestWriteAhead(t *testing.T) {
	reg := func(k, h uint64) uint64 { return 0x800 + k*512 + h*256 }
	long := wqe(4, 10) // three lines
	var now, then log
	e := sim.New(sim.Options{})
	at := func(t sim.Time) sim.Place { return e.Reserve(t) }
	a, b := NewPage(3, 512, params(ConflictSerialize)), NewPage(3, 512, params(ConflictSerialize))
	for i, w := range []write{{5, reg(0, 0), wqe(1, 4)}, {8, reg(1, 0), wqe(2, 4)}, {9, reg(2, 1), wqe(3, 2)[:8]}} {
		a.Write(w.at, w.off, w.b, &now)
		if !b.WriteAhead(e, at(w.at), w.off, w.b, &then) {
			t.Errorf("write %d was not taken", i)
		}
	}
	if b.Counters != (Counters{}) {
		t.Errorf("counted before it arrived: %+v", b.Counters)
	}
	if err := e.Run(8); err != nil {
		t.Fatal(err)
	}
	if b.Settle(e); b.BlueFlame != 2 || b.Doorbells != 0 {
		t.Errorf("two of three have arrived, and counted %+v", b.Counters)
	}
	if err := e.Run(10); err != nil {
		t.Fatal(err)
	}
	b.Settle(e)
	if d := cmp.Diff(now, then); d != "" || a.Counters != b.Counters {
		t.Errorf("ahead differs (-then +ahead):\n%s%+v\n%+v", d, a.Counters, b.Counters)
	}
	n := len(then)
	for _, w := range []write{{20, reg(0, 0), long[:64]}, {20, reg(0, 0) + 64, wqe(1, 1)}, {20, 0x20, make([]byte, 8)}, {20, 0x40, make([]byte, 4)}} {
		if b.WriteAhead(e, at(w.at), w.off, w.b, &then) {
			t.Errorf("a write of %d bytes at %#x was taken", len(w.b), w.off)
		}
	}
	b.Write(20, reg(0, 0), long[:64], &then)
	if b.WriteAhead(e, at(21), reg(1, 0), wqe(9, 1), &then) || len(then) != n {
		t.Errorf("a write beside a push that still arrives was taken, or did something: %v", then[n:])
	}
}
