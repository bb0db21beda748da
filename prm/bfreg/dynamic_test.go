package bfreg

import (
	"errors"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// letters names UARs in the order of allocation, as the worked example does.
func letters(p *uint32) UARAlloc {
	return func(bool) (uint32, error) {
		*p++
		return *p - 1, nil
	}
}

type dynRow struct {
	Reg   string
	Class Class
	Users int
	UARs  string // allocated by this request
}

func name(r *Reg) string { return string([]byte{'A' + byte(r.Page), '0' + byte(r.Half)}) }

func TestDynamicWorkedExample(t *testing.T) {
	want := []dynRow{
		{"A0", Dedicated, 1, "A"}, {"A1", Dedicated, 1, ""}, {"B0", Dedicated, 1, "B"}, {"B1", Dedicated, 1, ""},
		{"C0", Shared, 1, "C"}, {"C1", Shared, 1, "D"}, {"D0", Shared, 1, "E"}, {"D1", Shared, 1, "F"},
		{"E0", Shared, 1, "G"}, {"E1", Shared, 1, "H"},
		{"F0", Shared, 1, ""}, {"F1", Shared, 1, ""}, {"G0", Shared, 1, ""}, {"G1", Shared, 1, ""}, {"H0", Shared, 1, ""}, {"H1", Shared, 1, ""},
		{"C0", Shared, 2, ""}, {"C1", Shared, 2, ""}, {"D0", Shared, 2, ""}, {"D1", Shared, 2, ""},
	}
	var uars uint32
	p := NewPools(defaults(t), 1, true, 0, 25)
	var got []dynRow
	for range 20 {
		before := uars
		r, err := p.Get(letters(&uars))
		if err != nil {
			t.Fatal(err)
		}
		row := dynRow{name(r), r.Class, r.Users(), ""}
		if uars > before {
			row.UARs = string([]byte{'A' + byte(before)})
		}
		if r.Lock != (r.Class == Shared) {
			t.Errorf("%s: lock %v", row.Reg, r.Lock)
		}
		got = append(got, row)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if u := p.Usage(); u.UARs != 9 || u.InUse != 16 {
		t.Errorf("usage %+v, want 8 BlueFlame UARs and the uncached one, 16 registers in use", u)
	}
}

// Thread domains 1 to 20 fall on dynamic index n-1 in both eras, two to a UAR.
func TestThreadDomains(t *testing.T) {
	l, _ := NewLayout(16, 4, 4096, false)
	static := NewTDTable(l, false)
	var uars uint32
	pools := NewPools(defaults(t), 1, true, 0, 25)
	for n := uint32(1); n <= 20; n++ {
		s, err := static.Alloc()
		if err != nil {
			t.Fatal(err)
		}
		if want := (DynReg{Index: n - 1, Page: (n - 1) / 2, New: n%2 == 1, Class: TD}); s != want {
			t.Errorf("static TD %d: %+v, want %+v", n, s, want)
		}
		d, err := pools.GetTD(letters(&uars))
		if err != nil {
			t.Fatal(err)
		}
		if d.Page != (n-1)/2 || d.Half != (n-1)%2 || d.Lock || d.Class != TD {
			t.Errorf("dynamic TD %d: %+v", n, d)
		}
	}
	if l.GrossStatic() != 32 {
		t.Errorf("table of dynamic registers begins at %d, want 32", l.GrossStatic())
	}
	if u := static.Usage(); u != (Usage{UARs: 10, Regs: 20, InUse: 20}) {
		t.Errorf("static usage %+v", u)
	}
	if uars != 10 {
		t.Errorf("%d UARs in the dynamic generation, want 10", uars)
	}
}

func TestTDExhausted(t *testing.T) {
	l, _ := NewLayout(16, 4, 4096, false)
	tab := NewTDTable(l, false)
	var last DynReg
	for range 1024 {
		last, _ = tab.Alloc()
	}
	if _, err := tab.Alloc(); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("TD 1025: %v, want ENOENT", err)
	}
	if _, err := tab.AllocIndependent(); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("independent TD on a stock driver: %v, want EINVAL", err)
	}
	tab.Free(last)
	if again, err := tab.Alloc(); err != nil || again.Index != last.Index || again.New {
		t.Errorf("after a free: %+v, %v", again, err)
	}
}

func TestIndependentStatic(t *testing.T) {
	l, _ := NewLayout(16, 4, 4096, false)
	tab := NewTDTable(l, true)
	pages := map[uint32]bool{}
	for i := range 256 {
		r, err := tab.AllocIndependent()
		if err != nil || r.Half() != 0 || pages[r.UAR()] || r.UAR() >= 256 || !r.New {
			t.Fatalf("independent TD %d: %+v, %v", i, r, err)
		}
		pages[r.UAR()] = true
	}
	if _, err := tab.AllocIndependent(); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("independent TD 257: %v, want EINVAL", err)
	}
	for i := range 512 {
		if r, err := tab.Alloc(); err != nil || r.Index != 512+uint32(i) {
			t.Fatalf("ordinary TD %d: %+v, %v, want the upper half", i, r, err)
		}
	}
	if _, err := tab.Alloc(); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("ordinary TD 513: %v, want ENOENT", err)
	}
	if u := tab.Usage(); u != (Usage{UARs: 512, Regs: 1024, InUse: 768, Blocked: 256}) || u.Wasted() != 256 {
		t.Errorf("usage %+v", u)
	}
}

func TestIndependentDynamic(t *testing.T) {
	var uars uint32
	p := NewPools(defaults(t), 1, true, 3, 25)
	var regs []*Reg
	for i := range 3 {
		r, err := p.GetIndependentTD(letters(&uars))
		if err != nil || r.Page != uint32(i) || r.Half != 0 || r.Lock {
			t.Fatalf("independent TD %d: %+v, %v", i, r, err)
		}
		regs = append(regs, r)
	}
	if _, err := p.GetIndependentTD(letters(&uars)); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("past the limit: %v, want EINVAL", err)
	}
	if u := p.Usage(); u.UARs != 4 || u.InUse != 3 || u.Blocked != 3 {
		t.Errorf("usage %+v", u)
	}
	p.PutTD(regs[1], true)
	if r, err := p.GetIndependentTD(letters(&uars)); err != nil || r != regs[1] {
		t.Errorf("a freed page was not used again: %v", err)
	}
	if _, err := NewPools(defaults(t), 1, true, 0, 25).GetIndependentTD(letters(&uars)); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("without the extension: %v, want EINVAL", err)
	}
}

func TestPoolsFree(t *testing.T) {
	var uars uint32
	p := NewPools(defaults(t), 1, true, 0, 25)
	var regs []*Reg
	for range 6 {
		r, _ := p.Get(letters(&uars))
		regs = append(regs, r)
	}
	p.Put(regs[2])
	p.Put(regs[0])
	if r, _ := p.Get(letters(&uars)); r != regs[2] {
		t.Errorf("dedicated registers are not used first freed, first taken: %s", name(r))
	}
	fail := errors.New("no more")
	if r, err := p.Get(func(bool) (uint32, error) { return 0, fail }); err != nil || r != regs[0] {
		t.Errorf("a free dedicated register needs no new UAR: %v", err)
	}
	if _, err := p.Get(func(bool) (uint32, error) { return 0, fail }); !errors.Is(err, fail) {
		t.Errorf("a failed UAR fails the QP though shared registers are idle: %v", err)
	}
}

func TestPoolsWithoutBlueFlame(t *testing.T) {
	var uars uint32
	e := defaults(t)
	e.ShutUpBF = true
	p := NewPools(e, 1, true, 0, 25)
	r, _ := p.Get(letters(&uars))
	if r != p.NC() || r.Lock || uars != 0 {
		t.Errorf("SHUT_UP_BF: %+v", r)
	}
	if td, _ := p.GetTD(letters(&uars)); td == p.NC() {
		t.Error("SHUT_UP_BF: a thread domain still has its own register")
	}
	q := NewPools(defaults(t), 1, false, 0, 25)
	a, _ := q.Get(letters(&uars))
	b, _ := q.GetTD(letters(&uars))
	if a != q.NC() || b != q.NC() {
		t.Error("a device without BlueFlame hands out only the uncached UAR")
	}
}

func TestPoolsSingleThreaded(t *testing.T) {
	var uars uint32
	e := defaults(t)
	e.SingleThreaded = true
	p := NewPools(e, 1, true, 0, 25)
	for range 20 {
		if r, _ := p.Get(letters(&uars)); r.Lock {
			t.Fatalf("%s needs a lock", name(r))
		}
	}
}
