package mkey

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// listBed has a region of 16 pages that lie apart (key 1, variant 9, from 0x10000 on) and a free
// key of 16 entries (key 2, variant 0).
func listBed() *Table {
	pages := make([]uint64, 16)
	for i := range pages {
		pages[i] = uint64(1+i*7%16) << 16
	}
	t := regionBed(pages...)
	c := prm.MKC(make([]byte, prm.MKCSize))
	c.SetAccessMode(prm.MKeyModeKLM)
	c.SetFree(true)
	c.SetUMREn(true)
	c.SetLR(true)
	c.SetPD(tPD)
	c.SetQPN(prm.MKeyQPNAny)
	c.SetTranslationsOctwordSize(16)
	t.Insert(2, c, nil, false)
	return t
}

// layOut gives key 2 entries as libmlx5 does.
func layOut(t *Table, list []byte, length uint64) Result {
	umr, c := make(prm.UMRCtrlSegment, prm.UMRCtrlSegmentSize), make(prm.MKC, prm.MKCSize)
	umr.SetFlags(prm.UMRInline)
	umr.SetXLTOctowords(uint16(len(list) / 16))
	umr.SetMKeyMask(prm.MKeyMaskFree | prm.MKeyMaskKey | prm.MKeyMaskLen | prm.MKeyMaskLW | prm.MKeyMaskRR | prm.MKeyMaskRW | prm.MKeyMaskA)
	c.SetLW(true)
	c.SetRR(true)
	c.SetRW(true)
	c.SetQPN(prm.MKeyQPNAny)
	c.SetLen(length)
	return t.Update(Queue{User: User{PD: tPD, QPN: 5}}, 2<<8, umr, c, list)
}

// places are the physical addresses of n bytes of a key, one for each byte.
func places(t *rapid.T, tab *Table, key uint32, va uint64, n int) (all []mem.PA) {
	runs, r := tab.Translate(User{PD: tPD, QPN: 5}, key, va, n, LocalWrite, nil)
	if r != OK {
		t.Fatalf("key %#x: [%#x, +%d): %v", key, va, n, r)
	}
	for _, run := range runs {
		for i := range run.Len {
			all = append(all, run.PA+mem.PA(i))
		}
	}
	return all
}

// A key over any pieces, in a list or interleaved, leads byte by byte to where the pieces lie one
// behind the other, and no further.
func TestLayoutIsTheConcatenation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := listBed()
		n := rapid.IntRange(1, 7).Draw(t, "pieces")
		interleaved, count := rapid.Bool().Draw(t, "interleaved"), 1
		var list []byte
		if interleaved {
			count = rapid.IntRange(1, 5).Draw(t, "rounds")
			list = make([]byte, 16)
			b := prm.UMRRepeatBlock(list)
			b.SetOp(prm.UMRRepeat)
			b.SetPieces(uint16(n))
			b.SetRepeatCount(uint32(count))
		}
		type part struct{ va, bytes, stride uint64 }
		var parts []part
		for range n {
			p := part{bytes: rapid.Uint64Range(1, 3000).Draw(t, "bytes")}
			p.stride = p.bytes + rapid.Uint64Range(0, 2000).Draw(t, "gap")
			p.va = 0x10000 + rapid.Uint64Range(0, 16<<12-p.stride*uint64(count)).Draw(t, "offset")
			parts = append(parts, p)
			e := make([]byte, 16)
			if interleaved {
				x := prm.UMRRepeatEntry(e)
				x.SetByteCount(uint16(p.bytes))
				x.SetStride(uint16(p.stride))
				x.SetMKey(1<<8 | 9)
				x.SetVA(p.va)
			} else {
				x := prm.KLM(e)
				x.SetByteCount(uint32(p.bytes))
				x.SetMKey(1<<8 | 9)
				x.SetVA(p.va)
			}
			list = append(list, e...)
		}
		var want []mem.PA
		for r := range count {
			for _, p := range parts {
				want = append(want, places(t, tab, 1<<8|9, p.va+uint64(r)*p.stride, int(p.bytes))...)
			}
		}
		if r := layOut(tab, append(list, make([]byte, (64-len(list)%64)%64)...), uint64(len(want))); r != OK {
			t.Fatal(r)
		}
		from := rapid.IntRange(0, len(want)-1).Draw(t, "from")
		to := rapid.IntRange(from+1, len(want)).Draw(t, "to")
		got := places(t, tab, 2<<8, uint64(from), to-from)
		for i, pa := range got {
			if pa != want[from+i] {
				t.Fatalf("byte %d of [%d, %d) is at %#x, want %#x", i, from, to, pa, want[from+i])
			}
		}
		if len(got) != to-from {
			t.Fatalf("%d bytes of [%d, %d)", len(got), from, to)
		}
		if _, r := tab.Translate(User{PD: tPD, QPN: 5}, 2<<8, uint64(len(want)), 1, RemoteRead, nil); r != OutOfRange {
			t.Fatalf("the byte behind the last: %v", r)
		}
	})
}

// What a layout says that is not so.
func TestLayoutRefused(t *testing.T) {
	tab := listBed()
	if r := layOut(tab, make([]byte, 20*16), 100); r != OutOfRange {
		t.Errorf("20 entries in a key of 16: %v", r)
	}
	list := make([]byte, 64)
	b := prm.UMRRepeatBlock(list)
	b.SetOp(prm.UMRRepeat)
	b.SetPieces(4)
	if r := layOut(tab, list, 100); r != OutOfRange {
		t.Errorf("four pieces behind the block of three: %v", r)
	}
	if _, r := tab.Translate(User{PD: tPD, QPN: 5}, 2<<8, 0, 1, RemoteRead, nil); r != Free {
		t.Errorf("a key without a layout: %v", r)
	}
	// A length beyond the pieces leads nowhere.
	list = make([]byte, 64)
	k := prm.KLM(list)
	k.SetByteCount(50)
	k.SetMKey(1<<8 | 9)
	k.SetVA(0x10000)
	if r := layOut(tab, list, 100); r != OK {
		t.Fatal(r)
	}
	for va, want := range map[uint64]Result{49: OK, 50: Absent, 99: Absent, 100: OutOfRange} {
		if _, r := tab.Translate(User{PD: tPD, QPN: 5}, 2<<8, va, 1, RemoteRead, nil); r != want {
			t.Errorf("byte %d: %v, want %v", va, r, want)
		}
	}
}
