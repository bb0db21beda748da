package hca

import (
	"math"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
)

// n keys used at random in a direct-mapped cache of m places hit as often as the key
// used last in a place is the one wanted: m/n * (1 - exp(-n/m)).
func TestCacheHitRate(t *testing.T) {
	const m = 4096
	for _, n := range []uint64{64, 1280, 4096, 10000} {
		c := newCache(m)
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
	c := newCache(1)
	for i, k := range []uint64{7, 7, 9, 7} {
		if got, want := c.touch(c.place(k), k), i == 1; got != want {
			t.Errorf("access %d of key %d: hit %v, want %v", i, k, got, want)
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
