package sim

import "testing"

func TestUsageSince(t *testing.T) {
	meter := func(r Resource, unit string, index int, busy Time) Meter {
		return Meter{Resource: r, Unit: unit, Index: index, Busy: busy}
	}
	before := &Usage{At: 1000, Meters: []Meter{meter(CPU, "host", 0, 100), meter(Wire, "port", 0, 500)}}
	after := &Usage{At: 3000, Meters: []Meter{
		meter(CPU, "host", 0, 1900), meter(CPU, "host", 1, 0), meter(CPU, "host", 2, 200), // 900, 0 and 100 thousandths
		meter(Wire, "port", 0, 2500),
		{Resource: PU, Unit: "PUs", Busy: 4000, Of: 4},
		{Resource: ReadEngine, Unit: "engine", Busy: 2000, Part: 1500, PartOf: Caches},
		{Resource: PCIeRead, Unit: "tags", Busy: 2000, Queued: true},
		meter(Doorbell, "page", 0, 0),
	}}
	got := after.Since(before)
	want := []Load{
		{Caches, "engine", 1000, false}, {Wire, "port", 1000, false}, {PCIeRead, "tags", 1000, true},
		{CPU, "host", 820, false}, {PU, "PUs", 500, false},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: %+v, want %+v", i, got[i], want[i])
		}
	}
	if l := Limit(got); l != got[0] {
		t.Errorf("limit %+v", l)
	}
	if l := Limit(got[3:]); l.Resource != Window || l.Unit != "host" || l.PerMille != 820 {
		t.Errorf("with nothing busy %+v", l)
	}
	if l := Limit(nil); l.Resource != Window {
		t.Errorf("of nothing %+v", l)
	}
	if l := before.Since(after); l != nil {
		t.Errorf("of no time %+v", l)
	}
}

func TestWaiting(t *testing.T) {
	var w Waiting
	if w.For(5) != 0 {
		t.Error("it has waited before it began")
	}
	w.Set(10, true)
	w.Set(12, true) // still
	if w.For(15) != 5 {
		t.Errorf("%v", w.For(15))
	}
	w.Set(20, false)
	w.Set(30, true)
	if w.For(33) != 13 {
		t.Errorf("%v", w.For(33))
	}
}

func TestBusyBy(t *testing.T) {
	var s Server
	s.Take(0, 10)
	s.Take(0, 10)
	if s.BusyBy(5) != 5 || s.BusyBy(20) != 20 || s.BusyBy(99) != 20 {
		t.Errorf("%v, %v, %v", s.BusyBy(5), s.BusyBy(20), s.BusyBy(99))
	}
	if BytesTime(125, 1_000_000_000) != Microsecond || BytesTime(1<<50, 100_000_000_000) != Time(1<<50*80) {
		t.Error("bytes take another time")
	}
}

// TestShareOfAShortTime: no unit is busy for more than all of the time, however few thousandths of
// it are whole.
func TestShareOfAShortTime(t *testing.T) {
	for _, c := range []struct {
		busy, span Time
		want       int64
	}{{1104, 1104, 1000}, {1999, 1999, 1000}, {500, 1999, 250}, {5000, 1999, 1000}, {1 << 60, 1 << 61, 500}, {7, 0, 0}, {-7, 10, 0}} {
		if got := share(c.busy, c.span); got != c.want {
			t.Errorf("%d of %d: %d thousandths, want %d", c.busy, c.span, got, c.want)
		}
	}
}
