package sim

import "math/bits"

// Rand is a small seeded generator (SplitMix64): integer draws only, the same on
// every machine.
type Rand struct{ s uint64 }

// NewRand makes a stream for one purpose: streams of different names are
// independent, so a new user of draws does not shift another's.
func NewRand(seed uint64, name string) *Rand {
	h := uint64(14695981039346656037)
	for i := 0; i < len(name); i++ {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	r := &Rand{s: seed ^ h}
	r.Uint64()
	return r
}

// Uint64 is the next draw.
func (r *Rand) Uint64() uint64 {
	r.s += 0x9e3779b97f4a7c15
	z := r.s
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Intn is a draw from 0..n-1.
func (r *Rand) Intn(n int) int {
	if n <= 0 {
		panic("sim: Intn of a non-positive number")
	}
	// Lemire's method: a product's high word, with the biased draws rejected.
	m := uint64(n)
	hi, lo := bits.Mul64(r.Uint64(), m)
	if lo < m {
		for t := -m % m; lo < t; {
			hi, lo = bits.Mul64(r.Uint64(), m)
		}
	}
	return int(hi)
}
