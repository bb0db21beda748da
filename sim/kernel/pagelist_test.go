package kernel

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A list of pages is a map whose keys come in order.
func TestPageListAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 3 * blockPages
		l, m := newPageList(n), map[uint64]uint64{}
		index := rapid.Custom(func(t *rapid.T) uint64 {
			return rapid.SampledFrom([]uint64{0, leafPages, blockPages, n - 70}).Draw(t, "near") + rapid.Uint64Range(0, 69).Draw(t, "off")
		})
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := index.Draw(t, "page")
			if rapid.Bool().Draw(t, "set") {
				l.set(i, i+1)
				m[i] = i + 1
			} else {
				l.clear(i)
				delete(m, i)
			}
			from, end := index.Draw(t, "from"), index.Draw(t, "end")
			var got, want []uint64
			for j, ok := l.next(from, end); ok; j, ok = l.next(j+1, end) {
				got = append(got, j)
			}
			for _, j := range slices.Sorted(maps.Keys(m)) {
				if j >= from && j < end {
					want = append(want, j)
				}
			}
			if !slices.Equal(got, want) || l.at(i) != m[i] || l.present != uint64(len(m)) {
				t.Fatalf("[%d, %d): %v, want %v; page %d is %d, want %d; %d of %d", from, end, got, want, i, l.at(i), m[i], l.present, len(m))
			}
		}
		for i := range m {
			l.clear(i)
		}
		for i, b := range l.blocks {
			if b != nil {
				t.Fatalf("block %d is left", i)
			}
		}
	})
}
