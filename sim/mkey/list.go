package mkey

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// Keys of mode KLM to which a work request of a program gives entries (mlx5dv_wr_mr_list,
// mlx5dv_wr_mr_interleaved): what they lead to is looked up at each access. Nothing is published
// about the rights of the keys below: here a program that may not write to a region by its own key
// may not by a key over it either, for the kernel has pinned the memory for no more than that.

// rounds are the entries of an interleaved key: the pieces of a round, each of which moves on by
// its stride from round to round.
type rounds struct {
	pieces []piece
	bytes  uint64 // of a round
	count  uint64
}

// piece is a part of a round.
type piece struct {
	mkey          uint32
	va            uint64
	bytes, stride uint64
}

func (r *rounds) len() int {
	if r == nil {
		return 0
	}
	return len(r.pieces)
}

// listed says whether a UMR of a program's queue gives entries to a key, and does not bind a
// window. Those that libmlx5 makes for windows say at which entry they begin.
func (k *Key) listed(umr prm.UMRCtrlSegment, list []byte) bool {
	return k.mode == prm.MKeyModeKLM && len(list) > 0 && umr.Flags()&prm.UMRTranslationOffset == 0
}

// checkList looks at the entries that a program gives a key.
func (t *Table) checkList(k *Key, list []byte) Result {
	units := uint64(len(list) / xltUnit)
	room := (uint64(prm.MKC(k.Context[:]).TranslationsOctwordSize()) + xltAlign - 1) &^ (xltAlign - 1)
	if units > room && !t.breaks(rule.KeysHaveTheirEntries) {
		return OutOfRange
	}
	if b := prm.UMRRepeatBlock(list); b.Op() == prm.UMRRepeat && uint64(b.Pieces()) >= units {
		return OutOfRange
	}
	if !t.Room(childWords * max(0, int(units)-len(k.children))) {
		return NoMemory
	}
	return OK
}

// takeList gives the key its entries.
func (t *Table) takeList(k *Key, list []byte) {
	k.bind(window{})
	k.children, k.rounds, k.program = k.children[:0], nil, true
	if b := prm.UMRRepeatBlock(list); b.Op() == prm.UMRRepeat {
		r := &rounds{count: uint64(b.RepeatCount())}
		for i := range int(b.Pieces()) {
			e := prm.UMRRepeatEntry(list[(i+1)*xltUnit:])
			p := piece{e.MKey(), e.VA(), uint64(e.ByteCount()), uint64(e.Stride())}
			if t.breaks(rule.RoundsHaveTheirStride) {
				p.stride = p.bytes
			}
			r.pieces = append(r.pieces, p)
			r.bytes += p.bytes
		}
		k.rounds = r
		return
	}
	for at := 0; at < len(list); at += xltUnit {
		e := prm.KLM(list[at:])
		k.children = append(k.children, child{e.MKey(), e.VA(), e.ByteCount()})
	}
	if n := len(k.children); n > 1 && t.breaks(rule.EntriesHaveTheirOrder) {
		k.children[0], k.children[1] = k.children[1], k.children[0]
	}
}

// forget takes the entries from a key.
func (k *Key) forget() { k.children, k.rounds, k.program = nil, nil, false }

// at finds what lies at an offset of an interleaved key.
func (r *rounds) at(off uint64) (e child, in, left uint64, ok bool) {
	if r.bytes == 0 || off/r.bytes >= r.count {
		return e, 0, 0, false
	}
	round, off := off/r.bytes, off%r.bytes
	for i := range r.pieces {
		p := &r.pieces[i]
		if off < p.bytes {
			return child{p.mkey, p.va + round*p.stride, uint32(p.bytes)}, off, p.bytes - off, true
		}
		off -= p.bytes
	}
	return e, 0, 0, false
}

// below is what an access by the key needs of the keys to which its entries lead.
func (t *Table) below(k *Key, a Access) Access {
	switch {
	case !k.program, t.breaks(rule.ListedKeysHaveTheirRights):
		return 0
	case a&writes != 0:
		return LocalWrite
	}
	return LocalRead
}
