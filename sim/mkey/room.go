package mkey

import "github.com/rdmasim/rdmasim/prm"

// MaxWords is how many words of 8 bytes the entries of all keys of a device may take: 2 GiB, where
// a card has what the driver gives it in pages. A work request of one line can name the last entry
// of a key of 2^26, and keys are many.
const MaxWords = 1 << 28

// childWords is the size of a child.
const childWords = 3

// Room says whether the entries of the keys may take so many words more.
func (t *Table) Room(words int) bool { return words <= MaxWords-t.words }

// words is what the entries of the key take.
func (k *Key) words() int {
	return len(k.entries) + childWords*(len(k.children)+k.rounds.len()) + sparseBlock*len(k.far)
}

// growth is how many words more the key takes at most when a UMR has written its entries.
func (k *Key) growth(umr prm.UMRCtrlSegment, list []byte) int {
	at, units := int(xltOffset(umr)), len(list)/xltUnit
	switch {
	case units == 0:
		return 0
	case k.mode != prm.MKeyModeMTT:
		return childWords * max(0, at+units-len(k.children))
	case k.far != nil:
		return sparseBlock * (2*units/sparseBlock + 2)
	}
	return max(0, 2*(at+units)-len(k.entries))
}
