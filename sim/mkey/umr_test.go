package mkey

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
)

const (
	tPD    = 7
	bindOn = prm.MKeyMaskFree | prm.MKeyMaskKey | prm.MKeyMaskQPN | prm.MKeyMaskLen | prm.MKeyMaskStartAddr |
		prm.MKeyMaskLW | prm.MKeyMaskRR | prm.MKeyMaskRW | prm.MKeyMaskA
)

// regionBed has a region of pages (key 1, variant 9, from 0x10000 on).
func regionBed(pages ...uint64) *Table {
	t := NewTable(16)
	c := prm.MKC(make([]byte, prm.MKCSize))
	c.SetAccessMode(prm.MKeyModeMTT)
	c.SetLR(true)
	c.SetLW(true)
	c.SetUMREn(true)
	c.SetPD(tPD)
	c.SetQPN(prm.MKeyQPNAny)
	c.SetMKey70(9)
	c.SetStartAddr(0x10000)
	c.SetLen(uint64(len(pages)) << 12)
	c.SetLogPageSize(12)
	mtt := prm.MTT(make([]byte, len(pages)*8))
	for i, p := range pages {
		mtt.Set(i, p, 0)
	}
	t.Insert(1, c, mtt, false)
	return t
}

// umrBed has a region of two pages at 0x10000 (key 1, variant 9) and a free window of
// type 2 (key 2, variant 3).
func umrBed() *Table {
	t := regionBed(0x5000, 0x9000)
	c := prm.MKC(make([]byte, prm.MKCSize))
	c.SetAccessMode(prm.MKeyModeKLM)
	c.SetFree(true)
	c.SetUMREn(true)
	c.SetEnRInval(true)
	c.SetLR(true)
	c.SetPD(tPD)
	c.SetQPN(prm.MKeyQPNAny)
	c.SetMKey70(3)
	c.SetTranslationsOctwordSize(4)
	t.Insert(2, c, nil, false)
	return t
}

// request is a bind of the window to 0x1000 bytes at 0x10800, to be changed.
type request struct {
	user    Queue
	key     uint32
	umr     prm.UMRCtrlSegment
	mkc     prm.MKC
	entries []byte
}

func bindRequest() *request {
	r := &request{user: Queue{User: User{PD: tPD, QPN: 5}}, key: 2<<8 | 3, umr: make(prm.UMRCtrlSegment, prm.UMRCtrlSegmentSize),
		mkc: make(prm.MKC, prm.MKCSize), entries: make([]byte, 64)}
	r.umr.SetFlags(prm.UMRInline | prm.UMRTranslationOffset | prm.UMRCheckFree)
	r.umr.SetXLTOctowords(4)
	r.umr.SetMKeyMask(bindOn)
	r.mkc.SetQPN(5)
	r.mkc.SetMKey70(4)
	r.mkc.SetRW(true)
	r.mkc.SetStartAddr(0x10800)
	r.mkc.SetLen(0x1000)
	e := prm.KLM(r.entries)
	e.SetByteCount(0x1000)
	e.SetMKey(1<<8 | 9)
	e.SetVA(0x10800)
	return r
}

func (r *request) run(t *Table) Result { return t.Update(r.user, r.key, r.umr, r.mkc, r.entries) }

func TestBindAndInvalidate(t *testing.T) {
	tab := umrBed()
	if r := bindRequest().run(tab); r != OK {
		t.Fatal(r)
	}
	user := User{PD: tPD, QPN: 5}
	runs, r := tab.Translate(user, 2<<8|4, 0x10ff8, 16, RemoteWrite, nil)
	if r != OK || len(runs) != 2 || runs[0] != (Run{0x5ff8, 8}) || runs[1] != (Run{0x9000, 8}) {
		t.Fatalf("through the window: %v %v", runs, r)
	}
	for _, x := range []struct {
		what string
		user User
		key  uint32
		va   uint64
		a    Access
		want Result
	}{
		{"old key", user, 2<<8 | 3, 0x10800, RemoteWrite, NoKey},
		{"another QP", User{tPD, 6}, 2<<8 | 4, 0x10800, RemoteWrite, OtherQP},
		{"below", user, 2<<8 | 4, 0x107ff, RemoteWrite, OutOfRange},
		{"read", user, 2<<8 | 4, 0x10800, RemoteRead, NoRight},
	} {
		if _, r := tab.Check(x.user, x.key, x.va, 1, x.a); r != x.want {
			t.Errorf("%s: %v, want %v", x.what, r, x.want)
		}
	}
	if n := tab.At(1).BoundWindows(); n != 1 {
		t.Errorf("%d windows on the region", n)
	}
	if r := bindRequest().run(tab); r != NotFree {
		t.Errorf("bind of a bound window: %v", r)
	}
	inv := bindRequest()
	inv.key, inv.entries = 2<<8|4, nil
	inv.umr.SetFlags(prm.UMRInline | prm.UMRTranslationOffset | prm.UMRCheckQPN)
	inv.umr.SetMKeyMask(prm.MKeyMaskFree | prm.MKeyMaskKey | prm.MKeyMaskQPN)
	inv.mkc = make(prm.MKC, prm.MKCSize)
	inv.mkc.SetFree(true)
	inv.mkc.SetQPN(prm.MKeyQPNAny)
	other := *inv
	other.user.QPN = 6
	if r := other.run(tab); r != OtherQP {
		t.Errorf("invalidate by another QP: %v", r)
	}
	if r := inv.run(tab); r != OK || tab.At(1).BoundWindows() != 0 || tab.At(2).inUse() {
		t.Errorf("invalidate: %v, %d windows left", r, tab.At(1).BoundWindows())
	}
	if _, r := tab.Check(user, 2<<8, 0x10800, 1, RemoteWrite); r != Free {
		t.Errorf("access after it: %v", r)
	}
	if r := bindRequest().run(tab); r != OK {
		t.Errorf("bind again: %v", r)
	}
	if r := tab.Invalidate(user, 2<<8|4); r != OK || tab.At(1).BoundWindows() != 0 {
		t.Errorf("invalidate from the peer: %v, %d windows left", r, tab.At(1).BoundWindows())
	}
	again := bindRequest()
	if again.user.QPN = 6; again.run(tab) != OK {
		t.Error("a window that the peer has freed cannot be bound through another QP")
	}
}

func TestBindRefused(t *testing.T) {
	for _, x := range []struct {
		what   string
		change func(r *request)
		want   Result
	}{
		{"no such key", func(r *request) { r.key = 3 << 8 }, NoKey},
		{"another PD", func(r *request) { r.user.PD = 8 }, OtherPD},
		{"a field that is not modelled", func(r *request) { r.umr.SetMKeyMask(bindOn | prm.MKeyMaskPageSize) }, NotModelled},
		{"the key must be in use", func(r *request) { r.umr.SetFlags(prm.UMRInline | prm.UMRCheckNotFree) }, Free},
		{"no such region", func(r *request) { prm.KLM(r.entries).SetMKey(9 << 8) }, NoKey},
		{"a window on itself", func(r *request) { prm.KLM(r.entries).SetMKey(2<<8 | 3) }, Free},
		{"before the region", func(r *request) { prm.KLM(r.entries).SetVA(0xffff) }, OutOfRange},
		{"beyond the region", func(r *request) { prm.KLM(r.entries).SetVA(0x11001) }, OutOfRange},
		{"range wraps", func(r *request) { prm.KLM(r.entries).SetVA(^uint64(0)) }, OutOfRange},
		{"2 GiB", func(r *request) { prm.KLM(r.entries).SetByteCount(0) }, OutOfRange},
		{"context longer than the entry", func(r *request) { r.mkc.SetLen(0x1001) }, OutOfRange},
		{"a second entry", func(r *request) { r.entries[16] = 1 }, NotModelled},
		{"more entries than there is room for", func(r *request) { r.entries = append(r.entries, make([]byte, 16)...) }, NotModelled},
	} {
		tab := umrBed()
		before := tab.At(2).Context
		r := bindRequest()
		x.change(r)
		if got := r.run(tab); got != x.want {
			t.Errorf("%s: %v, want %v", x.what, got, x.want)
		}
		if tab.At(2).Context != before || tab.At(1).BoundWindows() != 0 {
			t.Errorf("%s: the window has changed", x.what)
		}
	}
}
