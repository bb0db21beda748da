package mkey

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
)

// A work request that names the last entries of a large key is refused where the entries of all
// keys would take more than MaxWords, at exactly that, and what a key takes is given back when it
// goes.
func TestEntriesOfAllKeysAreBounded(t *testing.T) {
	const pd, units = 3, 1 << 12
	user := User{PD: pd, QPN: 5}
	by := Queue{User: user, FastRegister: true, Driver: true}
	list := make([]byte, 4*xltUnit)
	umr := make(prm.UMRCtrlSegment, prm.UMRCtrlSegmentSize)
	umr.SetFlags(prm.UMRTranslationOffset)
	umr.SetXLTOffset(units - 4)
	for _, mode := range []struct {
		mode uint32
		free bool
		take int
	}{{prm.MKeyModeMTT, false, 2 * units}, {prm.MKeyModeKSM, true, childWords * units}} {
		c := make(prm.MKC, prm.MKCSize)
		c.SetAccessMode(mode.mode)
		c.SetFree(mode.free)
		c.SetUMREn(true)
		c.SetQPN(prm.MKeyQPNAny)
		c.SetPD(pd)
		c.SetLen(units << 12)
		c.SetLogPageSize(12)
		c.SetTranslationsOctwordSize(units)
		for _, short := range []int{1, 0} {
			tab := NewTable(4)
			tab.words = MaxWords - mode.take + short
			others := tab.words
			k := tab.Insert(1, c, nil, false)
			want := OK
			if short > 0 {
				want = NoMemory
			}
			if r := tab.Update(by, 1<<8, umr, make(prm.MKC, prm.MKCSize), list); r != want {
				t.Errorf("mode %d, %d words too few: %v, want %v", mode.mode, short, r, want)
			}
			if short == 0 && (tab.words != MaxWords || tab.Room(1)) {
				t.Errorf("mode %d: %d words, want %d", mode.mode, tab.words, MaxWords)
			}
			if short > 0 && k.words() != 0 {
				t.Errorf("mode %d: a refused request leaves %d words", mode.mode, k.words())
			}
			if tab.Remove(1); tab.words != others {
				t.Errorf("mode %d: %d words are kept of a key that is gone", mode.mode, tab.words-others)
			}
		}
	}
}
