package sim

import (
	"testing"

	"pgregory.net/rapid"
)

func TestFIFO(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q FIFO[int]
		var want []int
		for i, push := range rapid.SliceOf(rapid.Bool()).Draw(t, "pushes") {
			switch {
			case push:
				q.Push(i)
				want = append(want, i)
			case len(want) > 0:
				if front, x := *q.Front(), q.Pop(); front != want[0] || x != want[0] {
					t.Fatalf("front %d, popped %d, want %d", front, x, want[0])
				}
				want = want[1:]
			}
			if q.Len() != len(want) {
				t.Fatalf("length %d, want %d", q.Len(), len(want))
			}
		}
	})
}

func TestFIFOUsesItsMemoryAgain(t *testing.T) {
	var q FIFO[int]
	if n := testing.AllocsPerRun(100, func() {
		for i := range 7 {
			q.Push(i)
		}
		for q.Len() > 0 {
			q.Pop()
		}
	}); n > 1 {
		t.Errorf("%v allocations a run", n)
	}
}

func TestFIFOInPlace(t *testing.T) {
	var q FIFO[int]
	for i := range 20 {
		q.Reserve()
		*q.Extend() = i
		if i < 9 {
			q.Drop()
		}
	}
	if *q.At(0) != *q.Front() || *q.At(0) != 9 || *q.At(10) != 19 {
		t.Errorf("values %d, %d, ..., %d; want 9, 9, ..., 19", *q.Front(), *q.At(0), *q.At(10))
	}
	if q.Truncate(3); q.Len() != 3 || *q.At(2) != 11 {
		t.Errorf("%d values are left, the last is %d; want 3 up to 11", q.Len(), *q.At(2))
	}
}
