package sim

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// exact is how long n bytes take at a rate, by integers without an end, at most Never.
func exact(n, rate uint64, up bool) Time {
	bits := new(big.Int).Mul(new(big.Int).SetUint64(n), big.NewInt(8*int64(Second)))
	q, rest := new(big.Int).QuoRem(bits, new(big.Int).SetUint64(rate), new(big.Int))
	if up && rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsInt64() {
		return Never
	}
	return Time(q.Int64())
}

// The time of any number of bytes at any rate is the exact one, or Never.
func TestBytesTimeIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	for i := range 100_000 {
		n, rate := rng.Uint64()>>rng.IntN(64), max(1, rng.Uint64()>>rng.IntN(64))
		if i%10 == 0 {
			n = 2_305_843 + uint64(i)%7 - 3 // where the product has 64 bits
		}
		if got, want := BytesTime(n, rate), exact(n, rate, false); got != want {
			t.Fatalf("BytesTime(%d, %d) is %d, want %d", n, rate, got, want)
		}
		if got, want := BytesTimeUp(n, rate), exact(n, rate, true); got != want {
			t.Fatalf("BytesTimeUp(%d, %d) is %d, want %d", n, rate, got, want)
		}
	}
	for _, x := range []struct{ n, rate uint64 }{{0, 0}, {1, 0}} {
		if got := BytesTime(x.n, x.rate); got != Never {
			t.Errorf("%d bytes at no rate: %v", x.n, got)
		}
	}
}
