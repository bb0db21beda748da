package hca

import (
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/sim"
)

// waiters are engines that wait for room for one packet each.
type waiters struct {
	room  *txRoom
	sizes map[uint64]int
	went  []uint64
}

func (w *waiters) goOn(word uint64) {
	if !w.room.room(w.sizes[word]) {
		w.room.stall(word)
		return
	}
	w.room.txBytes += w.sizes[word]
	w.went = append(w.went, word)
}

// waitersOf are engines with packets of such sizes, at a buffer of 100 bytes of which some are
// taken.
func waitersOf(sizes map[uint64]int, taken int) (w *waiters, free func(t *testing.T, n int)) {
	e := sim.New(sim.Options{})
	c := &core{e: e}
	c.p.TxBuffer = 100
	w = &waiters{sizes: sizes}
	w.room = &txRoom{core: c, engines: w, txBytes: taken}
	c.h.resume = w.room.onResume
	return w, func(t *testing.T, n int) {
		w.room.txBytes -= n
		w.room.resumeOne()
		if err := e.Run(sim.Never - 1); err != nil {
			t.Fatal(err)
		}
	}
}

// An engine that finds no room when its turn comes stays the first of those that wait: a small
// packet does not overtake a large one.
func TestStalledEngineKeepsItsPlace(t *testing.T) {
	w, free := waitersOf(map[uint64]int{1: 80, 2: 10, 3: 10}, 100)
	for word := range uint64(3) {
		w.room.stall(word + 1)
	}
	for _, n := range []int{30, 30, 20, 20} { // the first has room with the third
		free(t, n)
	}
	if want := []uint64{1, 2, 3}; !slices.Equal(w.went, want) {
		t.Errorf("went on in the order %v, want %v", w.went, want)
	}
	if n := w.room.c.TxStalls; n != 3 {
		t.Errorf("%d stalls counted, want 3: one for each packet", n)
	}
}

// Small packets of engines that come later pass a large one that waits for room, while there is
// some for them, until they are as much as the buffer holds; what needs no room always does.
func TestNewcomersDoNotStarveAStalledEngine(t *testing.T) {
	w, free := waitersOf(map[uint64]int{1: 80, 2: 30, 3: 0}, 30)
	r := w.room
	w.goOn(1)
	for range 9 { // as if there were always one more
		if w.goOn(2); r.stalled.Len() > 1 {
			break
		}
		free(t, 30)
	}
	w.goOn(3)
	if want := []uint64{2, 2, 2, 3}; !slices.Equal(w.went, want) {
		t.Errorf("%v went, want %v", w.went, want)
	}
	free(t, r.txBytes)
	free(t, 80)
	if want := []uint64{2, 2, 2, 3, 1, 2}; !slices.Equal(w.went, want) || r.stalled.Len() != 0 {
		t.Errorf("%v went, want %v; %d wait", w.went, want, r.stalled.Len())
	}
}
