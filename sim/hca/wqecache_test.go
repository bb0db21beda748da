package hca

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// An lru of n keys holds the n that were touched last.
func TestLRUHoldsTheNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "size")
		l := newLRU(n)
		at := make([]int32, 20)
		var model []uint64 // newest last
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			key := rapid.Uint64Range(1, 19).Draw(t, "key")
			want := slices.Contains(model, key)
			lost := uint64(0)
			if want {
				model = slices.DeleteFunc(model, func(k uint64) bool { return k == key })
			} else if len(model) == n {
				lost, model = model[0], model[1:]
			}
			model = append(model, key)
			hit, gone := l.touch(&at[key], key)
			if hit != want || gone != lost {
				t.Fatalf("touch of %d: hit %t, lost %d; want %t, %d", key, hit, gone, want, lost)
			}
		}
	})
}
