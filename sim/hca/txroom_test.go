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

// An engine that finds no room when its turn comes stays the first of those that wait: a small
// packet does not overtake a large one.
func TestStalledEngineKeepsItsPlace(t *testing.T) {
	e := sim.New(sim.Options{})
	c := core{e: e}
	c.p.TxBuffer = 100
	w := &waiters{sizes: map[uint64]int{1: 80, 2: 10, 3: 10}}
	r := &txRoom{core: &c, engines: w, txBytes: 100}
	w.room = r
	c.h.resume = r.onResume
	for word := range uint64(3) {
		r.stall(word + 1)
	}
	for _, free := range []int{30, 30, 20, 20} { // the first has room with the third
		r.txBytes -= free
		r.resumeOne()
		if err := e.Run(sim.Never - 1); err != nil {
			t.Fatal(err)
		}
	}
	if want := []uint64{1, 2, 3}; !slices.Equal(w.went, want) {
		t.Errorf("went on in the order %v, want %v", w.went, want)
	}
	if c.c.TxStalls != 3 {
		t.Errorf("%d stalls counted, want 3: one for each packet", c.c.TxStalls)
	}
}

// Small packets of engines that come later pass a large one that waits for room, while there is some for them, until they are as much as the
// buffer holds; what needs no room always does.
func TestNewcomersDoNotStarveAStalledEngine(t *testing.T) {
	e := sim.New(sim.Options{})
	c := core{e: e}
	c.p.TxBuffer = 100
	w := &waiters{sizes: map[uint64]int{1: 80, 2: 30, 3: 0}}
	r := &txRoom{core: &c, engines: w, txBytes: 30}
	w.room = r
	c.h.resume = r.onResume
	free := func(n int) {
		r.txBytes -= n
		r.resumeOne()
		if err := e.Run(sim.Never - 1); err != nil {
			t.Fatal(err)
		}
	}
	w.goOn(1)
	for range 9 { // as if there were always one more
		if w.goOn(2); r.stalled.Len() > 1 {
			break
		}
		free(30)
	}
	w.goOn(3)
	if want := []uint64{2, 2, 2, 3}; !slices.Equal(w.went, want) {
		t.Errorf("%v went, want %v", w.went, want)
	}
	free(r.txBytes)
	free(80)
	if want := []uint64{2, 2, 2, 3, 1, 2}; !slices.Equal(w.went, want) || r.stalled.Len() != 0 {
		t.Errorf("%v went, want %v; %d wait", w.went, want, r.stalled.Len())
	}
}
