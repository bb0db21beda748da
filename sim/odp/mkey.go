// Package odp is the device's translation: memory keys, and the way from a key and
// an address to physical memory. An entry of a key is present or absent; an access
// that meets an absent one is told so (today the device answers it like a bad
// access; page faults come with on-demand paging).
package odp

import (
	"fmt"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
)

// Access is a set of rights that an access needs.
type Access uint8

// Rights, as the mkey context has them.
const (
	LocalRead Access = 1 << iota
	LocalWrite
	RemoteRead
	RemoteWrite
	RemoteAtomic
)

// Result of a check or a translation. Each is one step of the order in which a
// key is checked.
type Result uint8

// Results.
const (
	OK        Result = iota
	NoKey            // index unknown, or the variant byte differs
	Free             // the key exists and is not usable
	OtherPD          // of another protection domain
	OtherQP          // bound to another QP
	Range            // outside [start, start+len)
	Rights           // right missing
	Absent           // an entry is not present
	NotWanted        // a kind of key that is not modelled
	NotFree          // the key is in use, and must not be
	results
)

var resultNames = [results]string{"ok", "no such key", "free key", "key of another PD", "key of another QP", "outside the key's range", "right missing", "page not present", "kind of key not modelled", "key in use"}

func (r Result) String() string {
	if r < results {
		return resultNames[r]
	}
	return fmt.Sprintf("Result(%d)", uint8(r))
}

// Run is a piece of contiguous physical memory.
type Run struct {
	PA  mem.PA
	Len int
}

// Key is a memory key.
type Key struct {
	Index   uint32
	Context [prm.MKCSize]byte // as created
	PD      uint32

	variant  uint8
	mode     uint32
	free     bool
	whole    bool // length64
	rinval   bool
	paged    bool // the entries carry rights
	rights   Access
	qpn      uint32
	start    uint64
	len      uint64
	logPage  uint
	entries  []uint64 // page address, rights in the low bits; 0 absent
	pageOff  uint64   // of start in its page
	pageMask uint64
	chip     mem.PA // of the first byte, mode MEMIC, whose addresses begin at 0
	to       window // mode KLM
	windows  int    // of mode KLM that lead here
}

// Table holds the keys of a device by index.
type Table struct {
	chip   mem.PA // where addresses of memory on the device begin
	keys   []*Key
	dump   *Key            // by which writes go nowhere and reads give zeros; nil: none
	dumpAs uint32          // its key
	Faults [results]uint64 // checks that failed, by result
}

// NewTable makes a table for n keys.
func NewTable(n int) *Table { return &Table{keys: make([]*Key, 0, min(n, 1024))} }

// SetChip says where the physical addresses of memory on the device begin, in the runs that
// keys of mode MEMIC give: they hold places in BAR 0.
func (t *Table) SetChip(pa mem.PA) { t.chip = pa }

// modeDump is the mode of the key of SetDump; contexts have none like it.
const modeDump = ^uint32(0)

// SetDump makes key one that everybody may use, locally only, for every address: what it
// names takes what is written and reads as zeros. It is at no index.
func (t *Table) SetDump(key uint32) { t.dump, t.dumpAs = &Key{mode: modeDump}, key }

// other is what a key is that no index has.
func (t *Table) other(key uint32, a Access) (*Key, Result) {
	switch {
	case t.dump == nil || key != t.dumpAs:
		return nil, NoKey
	case a&^(LocalRead|LocalWrite) != 0:
		return nil, Rights
	}
	return t.dump, OK
}

// At is key index, or nil.
func (t *Table) At(index uint32) *Key {
	if int64(index) >= int64(len(t.keys)) {
		return nil
	}
	return t.keys[index]
}

// Remove takes a key out.
func (t *Table) Remove(index uint32) {
	t.keys[index].lead(window{})
	t.keys[index] = nil
}

// Insert makes key index of a context and its translation entries (mode MTT). It
// copies both. pgAccess says that the entries carry rights.
func (t *Table) Insert(index uint32, c prm.MKC, entries prm.MTT, pgAccess bool) *Key {
	k := &Key{
		Index: index, PD: c.PD(), variant: uint8(c.MKey70()), mode: c.AccessMode(), free: c.Free(),
		whole: c.Length64(), rinval: c.EnRInval(), paged: pgAccess, qpn: c.QPN(),
		start: c.StartAddr(), len: c.Len(), logPage: uint(c.LogPageSize()),
	}
	copy(k.Context[:], c)
	k.rights = rightsOf(c)
	if k.mode == prm.MKeyModeMemic {
		k.chip, k.start = t.chip+mem.PA(k.start), 0
	}
	k.pageMask = 1<<k.logPage - 1
	k.pageOff = k.start & k.pageMask
	if n := entries.Count(); n > 0 {
		k.entries = make([]uint64, n)
		for i := range k.entries {
			k.entries[i] = entries.Addr(i) | entries.Rights(i)
		}
	}
	for int(index) >= len(t.keys) {
		t.keys = append(t.keys, nil)
	}
	t.keys[index] = k
	return k
}

func rightsOf(c prm.MKC) Access {
	var a Access
	for _, r := range []struct {
		on bool
		a  Access
	}{{c.LR(), LocalRead}, {c.LW(), LocalWrite}, {c.RR(), RemoteRead}, {c.RW(), RemoteWrite}, {c.A(), RemoteAtomic}} {
		if r.on {
			a |= r.a
		}
	}
	return a
}

// EntryIndex is the number of the translation entry of an address in the key's range,
// and whether there is one.
func (k *Key) EntryIndex(va uint64) (uint64, bool) {
	i := (va - k.start + k.pageOff) >> k.logPage
	return i, i < uint64(len(k.entries))
}

// Entry is translation entry i and whether there is one.
func (k *Key) Entry(i int) (uint64, bool) {
	if i >= len(k.entries) {
		return 0, false
	}
	return k.entries[i], true
}

// IsFree says whether the key is not usable for access.
func (k *Key) IsFree() bool { return k.free }

// User is who makes an access.
type User struct{ PD, QPN uint32 }

// Check looks whether user u may do a to [va, va+n) with key (index and variant),
// in the order of the device. n is at least 1.
func (t *Table) Check(u User, key uint32, va uint64, n uint64, a Access) (*Key, Result) {
	k, r := t.check(u, key, va, n, a)
	if r != OK {
		t.Faults[r]++
	}
	return k, r
}

func (t *Table) check(u User, key uint32, va, n uint64, a Access) (*Key, Result) {
	index := key >> 8
	if int64(index) >= int64(len(t.keys)) {
		return t.other(key, a)
	}
	k := t.keys[index]
	switch {
	case k == nil || k.variant != uint8(key):
		return t.other(key, a)
	case k.free:
		return nil, Free
	case k.PD != u.PD:
		return nil, OtherPD
	case k.qpn != prm.MKeyQPNAny && k.qpn != u.QPN:
		return nil, OtherQP
	case va+n < va && va+n != 0:
		return nil, Range
	case !k.inRange(va, n):
		return nil, Range
	case k.rights&a != a:
		return nil, Rights
	case k.mode == prm.MKeyModeKLM && k.to.key != nil:
		if k.to.key.free {
			return nil, Free
		}
	case k.mode != prm.MKeyModePA && k.mode != prm.MKeyModeMTT && k.mode != prm.MKeyModeMemic:
		return nil, NotWanted
	}
	return k, OK
}

func (k *Key) inRange(va, n uint64) bool {
	return k.whole || va >= k.start && va-k.start <= k.len && n <= k.len-(va-k.start)
}

// Translate is Check, and appends the pieces of physical memory to runs: none of the key
// of SetDump.
func (t *Table) Translate(u User, key uint32, va uint64, n int, a Access, runs []Run) ([]Run, Result) {
	k, r := t.check(u, key, va, uint64(n), a)
	if r != OK {
		t.Faults[r]++
		return runs, r
	}
	if k.mode == prm.MKeyModeMTT && !k.paged { // bytes within a page, as nearly all are
		off := va - k.start + k.pageOff
		if i, in := off>>k.logPage, off&k.pageMask; i < uint64(len(k.entries)) && k.entries[i] != 0 && uint64(n-1) <= k.pageMask-in {
			return append(runs, Run{mem.PA(k.entries[i]&^(prm.MTTRead|prm.MTTWrite) + in), n}), OK
		}
	}
	switch k.mode {
	case modeDump:
		return runs, OK
	case prm.MKeyModeMemic:
		return append(runs, Run{k.chip + mem.PA(va), n}), OK
	}
	if k.mode == prm.MKeyModeKLM {
		k, va = k.to.key, k.to.va+(va-k.start)
	}
	if k.mode == prm.MKeyModePA {
		return append(runs, Run{mem.PA(va), n}), OK
	}
	out, ok := k.walk(va, n, a, runs)
	if !ok {
		t.Faults[Absent]++
		return runs, Absent
	}
	return out, OK
}

func (k *Key) walk(va uint64, n int, a Access, runs []Run) ([]Run, bool) {
	need := uint64(prm.MTTRead)
	if a&(LocalWrite|RemoteWrite|RemoteAtomic) != 0 {
		need |= prm.MTTWrite
	}
	off := va - k.start + k.pageOff
	for first := true; n > 0; first = false {
		i := off >> k.logPage
		if i >= uint64(len(k.entries)) {
			return nil, false
		}
		e := k.entries[i]
		if e == 0 || k.paged && e&need != need {
			return nil, false
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
	return runs, true
}

// Invalidate makes a key unusable on a SEND with invalidate from the peer of user
// u. It reports whether the key allows that.
func (t *Table) Invalidate(u User, key uint32) Result {
	k := t.At(key >> 8)
	switch {
	case k == nil || k.variant != uint8(key):
		return NoKey
	case k.free:
		return Free
	case k.PD != u.PD:
		return OtherPD
	case k.qpn != prm.MKeyQPNAny && k.qpn != u.QPN:
		return OtherQP
	case !k.rinval:
		return Rights
	}
	k.free = true
	prm.MKC(k.Context[:]).SetFree(true)
	k.lead(window{})
	return OK
}
