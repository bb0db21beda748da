package hca

import (
	"math"
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// n keys used at random in a direct-mapped cache of m places hit as often as the key
// used last in a place is the one wanted: m/n * (1 - exp(-n/m)).
func TestCacheHitRate(t *testing.T) {
	const m = 4096
	for _, n := range []uint64{64, 1280, 4096, 10000} {
		c := newCache(m, 1)
		hits, rng := 0, uint64(1)
		const rounds = 400000
		for i := range 2 * rounds {
			rng ^= rng << 13
			rng ^= rng >> 7
			rng ^= rng << 17
			key := firstQPN + rng%n
			if c.touch(c.place(key), key) && i >= rounds {
				hits++
			}
		}
		x := float64(n) / m
		want := (1 - math.Exp(-x)) / x
		if got := float64(hits) / rounds; math.Abs(got-want) > 0.02 {
			t.Errorf("%d keys: hit rate %.3f, want %.3f", n, got, want)
		}
	}
}

func TestCacheOfOne(t *testing.T) {
	c := newCache(1, 1)
	for i, k := range []uint64{7, 7, 9, 7} {
		if got, want := c.touch(c.place(k), k), i == 1; got != want {
			t.Errorf("access %d of key %d: hit %v, want %v", i, k, got, want)
		}
	}
}

// A set keeps the keys that were used last, in whatever order they came; whole sets lose hardly any
// of the keys that fit.
func TestCacheSets(t *testing.T) {
	for _, ways := range []int{1, 2, 4, 16} {
		c := newCache(ways, ways) // one set
		var last []uint64
		rng := uint64(1)
		for range 20000 {
			rng ^= rng << 13
			rng ^= rng >> 7
			rng ^= rng << 17
			key := 1 + rng%uint64(ways+3)
			i := slices.Index(last, key)
			if got := c.touch(c.place(key), key); got != (i >= 0) {
				t.Fatalf("%d ways, key %d after %v: hit %v", ways, key, last, got)
			}
			if i >= 0 {
				last = slices.Delete(last, i, i+1)
			}
			if last = append([]uint64{key}, last...); len(last) > ways {
				last = last[:ways]
			}
		}
	}
	for _, x := range []struct {
		ways        int
		least, most float64
	}{{1, 0.24, 0.28}, {8, 0.005, 0.03}, {16, 0, 0.01}} {
		c := newCache(16384, x.ways)
		misses, rng := 0, uint64(1)
		const rounds = 200000
		for i := range 2 * rounds {
			rng ^= rng << 13
			rng ^= rng >> 7
			rng ^= rng << 17
			key := 1 + rng%10240
			if !c.touch(c.place(key), key) && i >= rounds {
				misses++
			}
		}
		if got := float64(misses) / rounds; got < x.least || got > x.most {
			t.Errorf("10240 keys in 16384 entries of %d ways: %.4f miss, want %.3f to %.3f", x.ways, got, x.least, x.most)
		}
	}
}

// Destroying one key makes the device forget all, where it does that.
func TestFlushOnDestroy(t *testing.T) {
	for _, flush := range []bool{false, true} {
		p := testParams()
		p.FlushOnDestroy = flush
		h := newHost(t, sim.New(sim.Options{}), p, 1)
		r, other := h.newMR(4096, rightsAll), h.newMR(4096, rightsAll)
		d := prm.NewIn(prm.OpDestroyMKey, 0)
		prm.DestroyMKeyIn(d).SetMKeyIndex(other.lkey >> 8)
		h.cmd(d)
		var m miss
		h.d.caches.touchKey(r.lkey, r.va, &m)
		c := h.d.Counters()
		if got := c.MPTMisses == 1 && c.MTTMisses == 1 && c.KeyFlushes == 1; got != flush {
			t.Errorf("flush %v: %d and %d misses, %d flushes", flush, c.MPTMisses, c.MTTMisses, c.KeyFlushes)
		}
	}
}
