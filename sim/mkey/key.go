// Package mkey is the device's translation: memory keys, the checks that an access passes, and the
// way from a key and an address to physical memory. An entry of a key is present or absent. If the
// entries of a key carry rights, an access that meets an absent entry, or one without the right, is
// a page fault (sim/odp); with other keys it is a bad access.
package mkey

import (
	"slices"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// Key is a memory key. What every access reads comes first.
type Key struct {
	PD          uint32
	qpn         uint32
	mode        uint32
	variant     uint8
	rights      Access
	free        bool
	length64    bool // all addresses are in its range
	entryRights bool // the entries carry rights
	logPage     uint8
	start       uint64
	len         uint64
	entries     []uint64 // page address, rights in the low bits; 0 absent
	far         sparse   // entries of a large key that was made without any, in place of entries
	pageOff     uint64   // of start in its page
	pageMask    uint64
	Place       uint32 // in the device's cache of keys
	EntryPlace  uint32 // in the device's cache of entries, of the one that the device looked up last and names so:
	LastEntry   uint64

	window           window  // mode KLM, of a memory window
	boundWindows     int     // of mode KLM that lead here
	deviceMemory     mem.PA  // of the first byte, mode MEMIC, whose addresses begin at 0
	children         []child // mode KSM: where each page lies; mode KLM: where pieces lie, one behind the other
	rounds           *rounds // in place of children, of an interleaved key
	program          bool    // a program gave the entries
	remoteInvalidate bool
	Index            uint32
	Context          [prm.MKCSize]byte // as created
}

// child is an entry of a key of mode KSM or KLM: a place under another key, of mode KLM with a
// length of its own. The zero value is absent.
type child struct {
	mkey   uint32
	va     uint64
	length uint32
}

// Table holds the keys of a device by index.
type Table struct {
	keys         []*Key
	deviceMemory mem.PA // where addresses of memory on the device begin
	paging       bool   // keys made without entries have pages that come on demand
	nullMKey     uint32 // in place of a child: an absent page; 0: there is none
	miss         Miss   // of the last access that met an absent page
	dumpFill     *Key   // by which writes go nowhere and reads give zeros; nil: none
	dumpFillMKey uint32
	users        map[uint32]int // keys of a PD; looked up, never walked
	words        int            // that the entries of all keys take
	broken       rule.Broken
	Failed       [results]uint64 // checks that failed, by result
}

// NewTable makes a table for n keys.
func NewTable(n int) *Table {
	return &Table{keys: make([]*Key, 0, min(n, 1024)), users: map[uint32]int{}}
}

// count counts a key of a PD.
func (t *Table) count(pd uint32, n int) { t.users[pd] += n }

// UsersOf is how many keys are of a PD.
func (t *Table) UsersOf(pd uint32) int { return t.users[pd] }

// SetDeviceMemory says where the physical addresses of memory on the device begin, in the
// runs that keys of mode MEMIC give: they hold places in BAR 0.
func (t *Table) SetDeviceMemory(pa mem.PA) { t.deviceMemory = pa }

// modeDumpFill is the mode of the key of SetDumpFill; contexts have none like it.
const modeDumpFill = ^uint32(0)

// SetDumpFill makes a key that everybody may use, locally only, for every address: what it
// names takes what is written and reads as zeros. It is at no index.
func (t *Table) SetDumpFill(mkey uint32) {
	t.dumpFill, t.dumpFillMKey = &Key{mode: modeDumpFill}, mkey
}

// SetPaging has the entries of keys carry rights that are made without any, for they come by UMR.
// nullMKey is a key number that entries of mode KSM may name: what it leads to is absent, and comes
// on demand.
func (t *Table) SetPaging(nullMKey uint32) { t.paging, t.nullMKey = true, nullMKey }

// Miss is where an access has met an absent page: the key in which the entry is absent, the first
// address that is missing, in the key's addresses, and how many bytes the access needs from there
// on.
type Miss struct {
	MKey  uint32
	VA    uint64
	Bytes uint32
}

// LastMiss is that of the last translation that ended with Fault.
func (t *Table) LastMiss() Miss { return t.miss }

// missed notes where pages are absent.
func (t *Table) missed(k *Key, va uint64, n int) Result {
	t.miss = Miss{prm.MKeyOf(k.Index, uint32(k.variant)), va, uint32(n)}
	return Fault
}

// Break has the table break rules, to see whether that is noticed (sim/mutant).
func (t *Table) Break(b rule.Broken) { t.broken = b }

func (t *Table) breaks(r rule.Rule) bool { return rule.Mutants && t.broken.Has(r) }

// At is the key at an index, or nil.
func (t *Table) At(index uint32) *Key {
	if int64(index) >= int64(len(t.keys)) {
		return nil
	}
	return t.keys[index]
}

// Remove takes a key out.
func (t *Table) Remove(index uint32) {
	t.count(t.keys[index].PD, -1)
	t.keys[index].bind(window{})
	t.words -= t.keys[index].words()
	t.keys[index] = nil
}

// SteeringOffset is how far behind the memory on the device that for flow steering lies (keys of
// mode SW ICM).
const SteeringOffset = 1 << 62

// Insert makes a key of a context and its translation entries (mode MTT). It copies both.
// entryRights says that these entries carry rights.
func (t *Table) Insert(index uint32, c prm.MKC, entries prm.MTT, entryRights bool) *Key {
	k := &Key{
		Index: index, PD: c.PD(), variant: uint8(c.MKey70()), mode: c.AccessMode(), free: c.Free(),
		length64: c.Length64(), remoteInvalidate: c.EnRInval(), entryRights: entryRights, qpn: c.QPN(),
		start: c.StartAddr(), len: c.Len(), logPage: uint8(c.LogPageSize()),
	}
	copy(k.Context[:], c)
	k.rights = rightsOf(c)
	switch k.mode {
	case prm.MKeyModeMemic:
		k.deviceMemory, k.start = t.deviceMemory+mem.PA(k.start), 0
	case prm.MKeyModeSWICM:
		k.deviceMemory, k.start = t.deviceMemory+SteeringOffset+mem.PA(k.start), 0
	}
	k.pageMask = 1<<k.logPage - 1
	k.pageOff = k.start & k.pageMask
	k.setEntries(entries)
	k.entryRights = k.entryRights || t.paging && len(k.entries) == 0
	if room := uint64(c.TranslationsOctwordSize()) * 2; k.entryRights && len(k.entries) == 0 && room > sparseFrom {
		k.far = sparse{}
	}
	for int(index) >= len(t.keys) {
		t.keys = append(t.keys, nil)
	}
	t.keys[index] = k
	t.words += k.words()
	t.count(k.PD, 1)
	return k
}

// setEntries copies the translation entries.
func (k *Key) setEntries(entries prm.MTT) {
	n := entries.Count()
	if k.entries = slices.Grow(k.entries[:0], n); n == 0 {
		return
	}
	for i := range n {
		k.entries = append(k.entries, entries.Addr(i)|entries.Rights(i))
	}
}

// EntryIndex is the number of the translation entry of an address in the key's range,
// and whether there is one.
func (k *Key) EntryIndex(va uint64) (uint64, bool) {
	i := (va - k.start + k.pageOff) >> k.logPage
	return i, i < uint64(len(k.entries)) || k.far.at(i) != 0
}

// Entry is translation entry i and whether there is one.
func (k *Key) Entry(i int) (uint64, bool) {
	if i >= len(k.entries) {
		return k.far.at(uint64(i)), k.far != nil
	}
	return k.entries[i], true
}

// window is what a key of mode KLM leads to: a memory window has one entry.
type window struct {
	region *Key // nil: it is not bound
	va     uint64
}

// bind makes the window lead to a region, or to none.
func (k *Key) bind(to window) {
	if k.window.region != nil {
		k.window.region.boundWindows--
	}
	if k.window = to; to.region != nil {
		to.region.boundWindows++
	}
}

// LeadsTo is entry i of a key that leads to others: the key there, an address under it, and how
// many bytes; and whether there is such an entry.
func (k *Key) LeadsTo(i int) (mkey uint32, va uint64, n uint32, ok bool) {
	if r := k.window.region; r != nil && i == 0 {
		return prm.MKeyOf(r.Index, uint32(r.variant)), k.window.va, uint32(k.len), true
	}
	if i >= len(k.children) {
		return 0, 0, 0, false
	}
	c := k.children[i]
	return c.mkey, c.va, c.length, true
}

// BoundWindows is how many memory windows are bound to the key.
func (k *Key) BoundWindows() int { return k.boundWindows }
