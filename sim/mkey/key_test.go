package mkey

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"pgregory.net/rapid"
)

const (
	va      = 0x7f0000001100 // in the middle of a page
	length  = 0x3000
	variant = 0x5a
	pd, qpn = 7, 0x55
)

var user = User{PD: pd, QPN: qpn}

// insert makes key 9 over the pages of the list, which edit may change first.
func insert(edit func(c prm.MKC), pages ...uint64) *Table {
	c := make(prm.MKC, prm.MKCSize)
	c.SetAccessMode(prm.MKeyModeMTT)
	c.SetA(true)
	c.SetRR(true)
	c.SetRW(true)
	c.SetLW(true)
	c.SetLR(true)
	c.SetQPN(prm.MKeyQPNAny)
	c.SetMKey70(variant)
	c.SetPD(pd)
	c.SetStartAddr(va)
	c.SetLen(length)
	c.SetLogPageSize(12)
	if edit != nil {
		edit(c)
	}
	m := make(prm.MTT, 8*len(pages))
	for i, p := range pages {
		m.Set(i, p&^3, p&3)
	}
	t := NewTable(16)
	t.Insert(9, c, m, false)
	return t
}

const key = 9<<8 | variant

func TestCheckOrder(t *testing.T) {
	pages := []uint64{0x10000, 0x11000, 0x40000, 0x41000}
	for _, c := range []struct {
		name string
		edit func(c prm.MKC)
		user User
		key  uint32
		va   uint64
		n    uint64
		a    Access
		want Result
	}{
		{"good", nil, user, key, va, length, RemoteWrite | LocalRead, OK},
		{"index", nil, user, 10<<8 | variant, va, 1, LocalRead, NoKey},
		{"huge index", nil, user, 0xffffff00 | variant, va, 1, LocalRead, NoKey},
		{"variant before PD", nil, User{8, qpn}, key ^ 1, va, 1, LocalRead, NoKey},
		{"free before PD", func(c prm.MKC) { c.SetFree(true) }, User{8, qpn}, key, va, 1, LocalRead, Free},
		{"PD before range", nil, User{8, qpn}, key, 0, 1, LocalRead, OtherPD},
		{"QP before range", func(c prm.MKC) { c.SetQPN(1) }, user, key, 0, 1, LocalRead, OtherQP},
		{"bound QP", func(c prm.MKC) { c.SetQPN(qpn) }, user, key, va, 1, LocalRead, OK},
		{"below", nil, user, key, va - 1, 1, LocalRead, OutOfRange},
		{"last byte", nil, user, key, va + length - 1, 1, LocalRead, OK},
		{"behind", nil, user, key, va + length, 1, LocalRead, OutOfRange},
		{"across", nil, user, key, va + length - 1, 2, LocalRead, OutOfRange},
		{"wraps", nil, user, key, va + 1, 1<<64 - 1, LocalRead, OutOfRange},
		{"range before rights", func(c prm.MKC) { c.SetRW(false) }, user, key, va - 1, 1, RemoteWrite, OutOfRange},
		{"rights", func(c prm.MKC) { c.SetRW(false) }, user, key, va, 1, RemoteWrite, NoRight},
		{"atomic", func(c prm.MKC) { c.SetA(false) }, user, key, va, 8, RemoteAtomic, NoRight},
		{"mode", func(c prm.MKC) { c.SetAccessMode(prm.MKeyModeKLM) }, user, key, va, 1, LocalRead, NotModelled},
		{"whole space", func(c prm.MKC) { c.SetLength64(true); c.SetAccessMode(prm.MKeyModePA) }, user, key, 1<<64 - 8, 8, LocalRead, OK},
	} {
		t.Run(c.name, func(t *testing.T) {
			tab := insert(c.edit, pages...)
			if _, got := tab.Check(c.user, c.key, c.va, c.n, c.a); got != c.want {
				t.Fatalf("%v, want %v", got, c.want)
			}
			if c.want != OK && tab.Failed[c.want] != 1 {
				t.Fatal("not counted")
			}
		})
	}
}

func TestTranslate(t *testing.T) {
	tab := insert(nil, 0x10000, 0x11000, 0x40000, 0)
	for _, c := range []struct {
		va   uint64
		n    int
		want []Run
		r    Result
	}{
		{va, 16, []Run{{0x10100, 16}}, OK},
		{va, 0x1f00, []Run{{0x10100, 0x1f00}}, OK}, // two pages that follow one another
		{va, 0x1f01, []Run{{0x10100, 0x1f00}, {0x40000, 1}}, OK},
		{va + 0xeff, 2, []Run{{0x10fff, 2}}, OK},
		{va + 0x2f00 - 1, 1, []Run{{0x40fff, 1}}, OK},
		{va + 0x2f00 - 1, 2, nil, Absent},
	} {
		got, r := tab.Translate(user, key, c.va, c.n, RemoteWrite, nil)
		if d := cmp.Diff(c.want, got); d != "" || r != c.r {
			t.Errorf("%#x+%#x: %v %s", c.va, c.n, r, d)
		}
	}
	pa := insert(func(c prm.MKC) { c.SetAccessMode(prm.MKeyModePA); c.SetLength64(true) })
	if got, r := pa.Translate(user, key, 0x123456, 1<<20, LocalRead, nil); r != OK || got[0] != (Run{0x123456, 1 << 20}) {
		t.Errorf("physical key: %v %v", got, r)
	}
}

// TestTranslateBytewise compares a translation with one that goes byte by byte.
func TestTranslateBytewise(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		log := rapid.IntRange(12, 16).Draw(rt, "log")
		size := uint64(1) << log
		start := va + rapid.Uint64Range(0, size-1).Draw(rt, "start")
		var pages []uint64
		for range 5 {
			pages = append(pages, rapid.Uint64Range(1, 6).Draw(rt, "page")<<log)
		}
		tab := insert(func(c prm.MKC) {
			c.SetStartAddr(start)
			c.SetLen(4 * size)
			c.SetLogPageSize(uint32(log))
		}, pages...)
		off := rapid.Uint64Range(0, 4*size-1).Draw(rt, "off")
		n := rapid.IntRange(1, int(min(4*size-off, 3*size))).Draw(rt, "n")
		runs, r := tab.Translate(user, key, start+off, n, LocalWrite, nil)
		if r != OK {
			rt.Fatal(r)
		}
		i := uint64(0)
		for _, run := range runs {
			for _, at := range []int{0, run.Len - 1} {
				o := off + i + uint64(at) + start%size
				if want := mem.PA(pages[o/size] + o%size); run.PA+mem.PA(at) != want {
					rt.Fatalf("byte %d: %#x, want %#x", i, run.PA+mem.PA(at), want)
				}
			}
			i += uint64(run.Len)
		}
		if i != uint64(n) {
			rt.Fatalf("%d bytes of %d", i, n)
		}
	})
}

func TestEntryRights(t *testing.T) {
	c := make(prm.MKC, prm.MKCSize)
	c.SetAccessMode(prm.MKeyModeMTT)
	c.SetLR(true)
	c.SetLW(true)
	c.SetQPN(prm.MKeyQPNAny)
	c.SetPD(pd)
	c.SetLen(0x3000)
	c.SetLogPageSize(12)
	m := make(prm.MTT, 24)
	m.Set(0, 0x1000, prm.MTTRead|prm.MTTWrite)
	m.Set(1, 0x2000, prm.MTTRead)
	tab := NewTable(4)
	tab.Insert(1, c, m, true)
	for _, x := range []struct {
		va   uint64
		a    Access
		want Result
	}{{0, LocalWrite, OK}, {0x1000, LocalRead, OK}, {0x1000, LocalWrite, Fault}, {0x2000, LocalRead, Fault}} {
		if _, r := tab.Translate(user, 1<<8, x.va, 8, x.a, nil); r != x.want {
			t.Errorf("%#x: %v, want %v", x.va, r, x.want)
		}
	}
}

func TestInvalidate(t *testing.T) {
	tab := insert(nil, 0x1000)
	if r := tab.Invalidate(user, key); r != NoRight {
		t.Fatal(r)
	}
	tab = insert(func(c prm.MKC) { c.SetEnRInval(true) }, 0x1000)
	if r := tab.Invalidate(user, key^1); r != NoKey {
		t.Fatal(r)
	}
	if r := tab.Invalidate(user, key); r != OK {
		t.Fatal(r)
	}
	if _, r := tab.Check(user, key, va, 1, LocalRead); r != Free {
		t.Fatal(r)
	}
	if !prm.MKC(tab.At(9).Context[:]).Free() {
		t.Fatal("the context does not say so")
	}
}

func TestTranslateDoesNotAllocate(t *testing.T) {
	tab := insert(nil, 0x10000, 0x30000, 0x50000, 0x70000)
	runs := make([]Run, 0, 8)
	if n := testing.AllocsPerRun(100, func() {
		if _, r := tab.Translate(user, key, va, length, RemoteWrite, runs[:0]); r != OK {
			t.Fatal(r)
		}
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func TestDumpFill(t *testing.T) {
	tab := NewTable(4)
	const key = 2 << 8
	if _, r := tab.Check(User{PD: 7}, key, 1, 1, LocalRead); r != NoKey {
		t.Errorf("before it is set: %v", r)
	}
	tab.SetDumpFill(key)
	for _, c := range []struct {
		key  uint32
		a    Access
		want Result
	}{{key, LocalRead, OK}, {key, LocalRead | LocalWrite, OK}, {key, RemoteRead, NoRight}, {key, RemoteWrite, NoRight}, {key + 1, LocalRead, NoKey}} {
		runs, r := tab.Translate(User{PD: 7}, c.key, ^uint64(0), 1<<20, c.a, nil)
		if r != c.want || len(runs) != 0 {
			t.Errorf("key %#x, rights %#x: %v and %d runs, want %v", c.key, c.a, r, len(runs), c.want)
		}
	}
}

// TestMiss: a fault names the key in which a page is absent, the first address that is missing and
// how much of the access lies behind it, by a key of pages and by one that leads to others.
func TestMiss(t *testing.T) {
	c := make(prm.MKC, prm.MKCSize)
	c.SetAccessMode(prm.MKeyModeMTT)
	c.SetUMREn(true)
	c.SetLR(true)
	c.SetLW(true)
	c.SetQPN(prm.MKeyQPNAny)
	c.SetPD(pd)
	c.SetStartAddr(0x7000_0000_0800)
	c.SetLen(512 << 30)
	c.SetLogPageSize(12)
	c.SetTranslationsOctwordSize(1 << 26)
	tab := NewTable(4)
	const null = 4 << 8
	tab.SetPaging(null)
	big := tab.Insert(1, c, nil, true)
	last := uint64(512<<30/4096) - 8
	list := make(prm.MTT, 64)
	list.Set(1, 0x5000, prm.MTTRead|prm.MTTWrite)
	umr := make(prm.UMRCtrlSegment, prm.UMRCtrlSegmentSize)
	umr.SetFlags(prm.UMRTranslationOffset)
	umr.SetXLTOffset(last / 2)
	by := Queue{User: user, FastRegister: true, Driver: true}
	if r := tab.Update(by, 1<<8, umr, make(prm.MKC, prm.MKCSize), list); r != OK {
		t.Fatal(r)
	}
	at := uint64(0x7000_0000_0000) + (last+1)<<12
	if runs, r := tab.Translate(user, 1<<8, at+0x10, 0x10, LocalWrite, nil); r != OK || runs[0] != (Run{0x5010, 0x10}) {
		t.Fatal(runs, r)
	}
	if _, r := tab.Translate(user, 1<<8, at+0xff0, 0x100, LocalWrite, nil); r != Fault || tab.LastMiss() != (Miss{1 << 8, at + 0x1000, 0xf0}) {
		t.Fatalf("%v, %+x", r, tab.LastMiss())
	}
	if n := len(big.far); n != 1 || len(big.entries) != 0 {
		t.Errorf("%d blocks and %d entries for one page", n, len(big.entries))
	}
	list.Set(1, 0, 0)
	if r := tab.Update(by, 1<<8, umr, make(prm.MKC, prm.MKCSize), list); r != OK || len(big.far) != 0 {
		t.Error(r, "the block of no page is kept")
	}

	c.SetAccessMode(prm.MKeyModeKSM)
	c.SetLogPageSize(30)
	c.SetStartAddr(0)
	c.SetLen(1 << 47)
	tab.Insert(2, c, nil, false)
	k := make([]byte, 64)
	prm.KLM(k).SetMKey(1 << 8)
	prm.KLM(k).SetVA(0x7000_0000_0800)
	prm.KLM(k[16:]).SetMKey(null)
	clear(umr)
	if r := tab.Update(by, 2<<8, umr, make(prm.MKC, prm.MKCSize), k); r != OK {
		t.Fatal(r)
	}
	if _, r := tab.Translate(user, 2<<8, 0x1234, 8, LocalRead, nil); r != Fault || tab.LastMiss() != (Miss{1 << 8, 0x7000_0000_1a34, 8}) {
		t.Errorf("in a child: %v, %+x", r, tab.LastMiss())
	}
	if _, r := tab.Translate(user, 2<<8, 1<<30+0x1234, 8, LocalRead, nil); r != Fault || tab.LastMiss() != (Miss{2 << 8, 1<<30 + 0x1234, 8}) {
		t.Errorf("without a child: %v, %+x", r, tab.LastMiss())
	}
}
