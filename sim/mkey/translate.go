package mkey

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// Run is a piece of contiguous physical memory.
type Run struct {
	PA  mem.PA
	Len int
}

// Translate is Check, and appends the pieces of physical memory to runs: none of the key
// of SetDumpFill.
func (t *Table) Translate(u User, mkey uint32, va uint64, n int, a Access, runs []Run) ([]Run, Result) {
	k, r := t.check(u, mkey, va, uint64(n), a)
	if r != OK {
		t.Failed[r]++
		return runs, r
	}
	if k.mode == prm.MKeyModeMTT { // bytes within a page, as nearly all are
		off := va - k.start + k.pageOff
		if i, in := off>>k.logPage, off&k.pageMask; i < uint64(len(k.entries)) && k.usable(k.entries[i], a) && uint64(n-1) <= k.pageMask-in {
			return append(runs, Run{mem.PA(k.entries[i]&^(prm.MTTRead|prm.MTTWrite) + in), n}), OK
		}
	}
	return t.translateElse(u, k, va, n, a, runs)
}

// translateElse is Translate by a key that was checked, of whatever kind.
//
//go:noinline
func (t *Table) translateElse(u User, k *Key, va uint64, n int, a Access, runs []Run) ([]Run, Result) {
	switch k.mode {
	case modeDumpFill:
		return runs, OK
	case prm.MKeyModeMemic, prm.MKeyModeSWICM:
		return append(runs, Run{k.deviceMemory + mem.PA(va), n}), OK
	}
	if k.mode == prm.MKeyModeKLM && k.window.region != nil {
		k, va = k.window.region, k.window.va+(va-k.start)
	}
	if k.indirect() {
		out, r := t.descend(u, k, va, n, a, runs, 0)
		if r != OK {
			t.Failed[r]++
		}
		return out, r
	}
	if k.mode == prm.MKeyModePA {
		return append(runs, Run{mem.PA(va), n}), OK
	}
	out, r := t.walk(k, va, n, a, runs)
	if r != OK {
		t.Failed[r]++
		return runs, r
	}
	return out, OK
}

// writes are the accesses that change memory.
const writes = LocalWrite | RemoteWrite | RemoteAtomic

// usable says whether entry e of the key is present and allows an access.
func (k *Key) usable(e uint64, a Access) bool {
	if !k.entryRights {
		return e != 0
	}
	need := uint64(prm.MTTRead)
	if a&writes != 0 {
		need = prm.MTTRead | prm.MTTWrite
	}
	return e&need == need
}

// walk translates page by page and joins what is contiguous. An entry that is absent, or lacks a
// right, ends it.
func (t *Table) walk(k *Key, va uint64, n int, a Access, runs []Run) ([]Run, Result) {
	off := va - k.start + k.pageOff
	for first := true; n > 0; first = false {
		i := off >> k.logPage
		var e uint64
		if i < uint64(len(k.entries)) {
			e = k.entries[i]
		} else if k.far != nil {
			e = k.far.at(i)
		}
		if !k.usable(e, a) {
			if k.entryRights {
				return nil, t.missed(k, off-k.pageOff+k.start, n)
			}
			return nil, Absent
		}
		in := off & k.pageMask
		pa := mem.PA(e&^(prm.MTTRead|prm.MTTWrite) + in)
		l := n
		if room := k.pageMask - in; uint64(n-1) > room {
			l = int(room) + 1
		}
		if last := len(runs) - 1; !first && runs[last].PA+mem.PA(runs[last].Len) == pa {
			runs[last].Len += l
		} else {
			runs = append(runs, Run{pa, l})
		}
		off += uint64(l)
		n -= l
	}
	return runs, OK
}

// indirect says whether the entries of a key lead to other keys. A memory window leads to one
// without entries.
func (k *Key) indirect() bool {
	return k.mode == prm.MKeyModeKSM || k.mode == prm.MKeyModeKLM && k.window.region == nil
}

// place finds what lies at an offset behind the first byte of a key of mode KSM or KLM: the entry,
// the offset in it, and how many bytes it has from there on.
func (k *Key) place(off uint64) (e child, in, left uint64, ok bool) {
	if k.mode == prm.MKeyModeKSM {
		i, in := off>>k.logPage, off&k.pageMask
		if i >= uint64(len(k.children)) || k.children[i] == (child{}) {
			return e, 0, 0, false
		}
		return k.children[i], in, k.pageMask - in + 1, true
	}
	if k.rounds != nil {
		return k.rounds.at(off)
	}
	for _, e := range k.children {
		n := uint64(e.length)
		if n == 0 { // as of a window's entry
			n = 1 << 31
		}
		if off < n {
			return e, off, n - off, e != child{}
		}
		off -= n
	}
	return e, 0, 0, false
}

// MaxIndirection is how many keys of mode KSM or KLM an access passes at most.
const MaxIndirection = 4

// descend translates by a key of mode KSM or KLM, and by those that its entries name. Of them all
// is checked again; rights only where a program gave the entries.
func (t *Table) descend(u User, k *Key, va uint64, n int, a Access, runs []Run, depth int) ([]Run, Result) {
	if depth == MaxIndirection {
		return runs, NotModelled
	}
	out := runs
	off, va0 := va-k.start, k.start // off counts from the address va0
	if k.mode == prm.MKeyModeKSM {
		off, va0 = off+k.pageOff, va0-k.pageOff
	}
	for n > 0 {
		e, in, left, ok := k.place(off)
		if !ok {
			return runs, Absent
		}
		l := int(min(left, uint64(n)))
		if e.mkey == t.nullMKey && t.nullMKey != 0 {
			return runs, t.missed(k, off+va0, n)
		}
		pd := k.PD
		if c := t.At(e.mkey >> 8); c != nil && k.program && t.breaks(rule.ListedKeysAreOfThePD) {
			pd = c.PD
		}
		below, r := t.check(User{pd, u.QPN}, e.mkey, e.va+in, uint64(l), t.below(k, a))
		if r != OK {
			return runs, r
		}
		switch below.mode {
		case prm.MKeyModeKSM, prm.MKeyModeKLM:
			if !below.indirect() {
				return runs, NotModelled // a window
			}
			out, r = t.descend(u, below, e.va+in, l, a, out, depth+1)
		case prm.MKeyModePA:
			out = append(out, Run{mem.PA(e.va + in), l})
		case prm.MKeyModeMemic, prm.MKeyModeSWICM:
			out = append(out, Run{below.deviceMemory + mem.PA(e.va+in), l})
		case prm.MKeyModeMTT:
			out, r = t.walk(below, e.va+in, l, a, out)
		default:
			r = NotModelled
		}
		if r != OK {
			return runs, r
		}
		off += uint64(l)
		n -= l
	}
	return out, OK
}
