package pcie

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// looks is what a random run of writes and looks of every kind sees. Many looks come at the
// very instant at which a write becomes visible, before it or behind it.
func looks(t *testing.T, seed uint64, holdBack bool) (seen []string, events uint64) {
	p := kalia()
	p.PostedLatency, p.MemoryLatency = 10*sim.Nanosecond, 0
	r := newRig(p)
	if holdBack {
		r.l.HoldBack()
	}
	rnd := sim.NewRand(seed, "looks")
	note := func(f string, a ...any) { seen = append(seen, fmt.Sprintf("%v ", r.e.Now())+fmt.Sprintf(f, a...)) }
	const pages = 4
	base := r.alloc(t, pages*mem.PageSize)
	at := func() mem.PA { return base + mem.PA(rnd.Intn(pages*mem.PageSize-16)) }
	space := mem.NewSpace(r.m)
	var win []byte
	var va mem.VA
	step := func(k uint64) {
		b := make([]byte, 8)
		switch rnd.Intn(12) {
		default:
			r.l.WriteDMA(base+mem.PA(rnd.Intn(64)*256), fmt.Appendf(nil, "%08d", k))
		case 0:
			r.l.WriteDMANotify(at(), []byte("notified"), func(x uint64) { note("visible %d", x) }, k)
		case 1:
			r.l.ReadDMA(at(), b, func(uint64) { note("read %q", b) }, 0)
		case 2:
			r.l.WriteDMA(base+pages*mem.PageSize-4, []byte("past end")) // what lies behind is not allocated
		}
	}
	look := func(k uint64) {
		b := make([]byte, 300)
		switch rnd.Intn(9) {
		case 0:
			r.m.Write(at(), fmt.Appendf(nil, "core%04d", k))
		case 1:
			win = r.m.Window(base+mem.PA(rnd.Intn(pages))*mem.PageSize, mem.PageSize)
		case 2:
			r.m.Watch(at(), 16, func(uint64) { note("watched") }, 0)
		case 3:
			if va == 0 {
				va, _ = space.Map(mem.PageSize, mem.Read)
				pa, _, _, _ := space.Translate(va)
				r.l.WriteDMA(pa, []byte("goes away"))
			} else if err := space.Unmap(va, mem.PageSize); err == nil {
				va = 0
			}
		default:
			r.m.Read(base+mem.PA(rnd.Intn(pages*16-2)*256), b)
			note("core reads %q", bytes.Trim(b, "\x00"))
		}
		if win != nil {
			note("window %q", bytes.Trim(win, "\x00"))
		}
	}
	for k := range 300 {
		r.e.At(sim.Time(2*rnd.Intn(2000))*sim.Nanosecond, step, uint64(k))
		r.e.At(sim.Time(rnd.Intn(4000))*sim.Nanosecond, look, uint64(k))
	}
	later := func(k uint64) { r.e.At(r.e.Now()+10*sim.Nanosecond, look, k) }
	for k := range 100 {
		r.e.At(sim.Time(2*rnd.Intn(2000))*sim.Nanosecond, later, uint64(k))
	}
	r.run(t)
	all := make([]byte, pages*mem.PageSize)
	r.m.Read(base, all)
	note("end %x, %d unsupported", all, r.l.Counters().Unsupported)
	return seen[:len(seen):len(seen)], r.e.Events()
}

func TestHeldBackWritesLookLikeOthers(t *testing.T) {
	fewer := false
	for seed := range uint64(16) {
		eager, n := looks(t, seed, false)
		late, m := looks(t, seed, true)
		// The run may end earlier, since what is held back needs no event.
		eager[len(eager)-1], late[len(late)-1] = cut(eager), cut(late)
		if d := cmp.Diff(eager, late); d != "" {
			t.Fatalf("seed %d: held back differs (-eager +late):\n%s", seed, d)
		}
		fewer = fewer || m < n
	}
	if !fewer {
		t.Error("nothing was ever held back")
	}
}

// cut is the last line without its time.
func cut(l []string) string {
	s := l[len(l)-1]
	return s[bytes.IndexByte([]byte(s), ' '):]
}

// ahead is a probe that takes writes ahead of their time, when it is told to.
type ahead struct {
	probe
	took  []sim.Time
	until int // writes that it takes so
}

func (a *ahead) MMIOWriteAt(at sim.Place, off uint64, p []byte) bool {
	if a.until == 0 {
		return false
	}
	a.until--
	a.took = append(a.took, at.Time())
	a.data = append(a.data, bytes.Clone(p))
	return true
}

// A busy link tells the function when it will deliver; what the function does not take
// comes by an event, and then also what is behind it.
func TestWritesAheadOfTheirTime(t *testing.T) {
	e := sim.New(sim.Options{})
	l := NewLink(e, mem.New(1<<20), kalia())
	f := &ahead{probe: probe{e: e}, until: 3}
	l.Attach(f, nil)
	e.Go("cpu", func(p *sim.Proc) {
		for i := range 8 {
			b := make([]byte, 64)
			b[0] = byte(i)
			l.PostMMIO(p, 0, b)
		}
	})
	if err := e.Run(sim.Never); err != nil {
		t.Fatal(err)
	}
	step := l.ser(64 + kalia().WriteHeader)
	first := kalia().PostedLatency
	if want := []sim.Time{first + step, first + 2*step, first + 3*step}; !cmp.Equal(f.took, want) {
		t.Errorf("ahead at %v, want %v", f.took, want)
	}
	if want := []sim.Time{first, first + 4*step, first + 5*step, first + 6*step, first + 7*step}; !cmp.Equal(f.at, want) {
		t.Errorf("delivered at %v, want %v", f.at, want)
	}
	for i, b := range f.data {
		order := []byte{0, 1, 2, 3, 4, 5, 6, 7}
		if b[0] != order[i] {
			t.Errorf("write %d came at place %d", b[0], i)
		}
	}
}
