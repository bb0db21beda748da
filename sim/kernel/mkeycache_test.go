package kernel

import (
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// regions registers and deregisters memory in pages of 4096 bytes.
type regions struct {
	*setup
	u  *Ucontext
	pd Handle
}

func newRegions(t *testing.T, order MKeyCache) *regions {
	p := testParams()
	p.MKeyCache = order
	s := newSetup(t, p)
	u := s.open()
	return &regions{s, u, s.pd(u)}
}

func (r *regions) register(pages uint64, a verbs.AccessFlags) (Handle, uint32) {
	r.t.Helper()
	va, err := r.proc.Space.MapPages(pages*page, page, mem.Read|mem.Write)
	if err != nil {
		r.t.Fatal(err)
	}
	h, key, _, err := r.u.RegMR(Caller{}, r.pd, uint64(va), pages*page, uint64(va), verbs.AccessLocalWrite|a)
	if err != nil {
		r.t.Fatal(err)
	}
	return h, key
}

func (r *regions) deregister(h Handle) {
	r.t.Helper()
	if err := r.u.DeregMR(Caller{}, h); err != nil {
		r.t.Fatal(err)
	}
}

// again is how many registrations it takes until a key names a region again; most: not before.
func (r *regions) again(pages uint64, key uint32, most int) int {
	r.t.Helper()
	for n := 1; n < most; n++ {
		h, k := r.register(pages, 0)
		if k == key {
			return n
		}
		r.deregister(h)
	}
	return most
}

// A key comes back at once from an array of keys, after all 500 that the driver keeps for that
// size from a list, and never without a cache. It has the same variant byte.
func TestKeysAreTakenAgain(t *testing.T) {
	for order, want := range map[MKeyCache]int{LastKeyFirst: 1, FirstKeyFirst: 500, NoKeyAgain: 600} {
		for _, pages := range []uint64{1, 4, 5, 64} {
			r := newRegions(t, order)
			h, key := r.register(pages, 0)
			r.deregister(h)
			if got := r.again(pages, key, 600); got != want {
				t.Errorf("cache %d, %d pages: key taken again after %d registrations, want %d", order, pages, got, want)
			}
		}
	}
}

// Keys are kept by the room that they have: powers of two from 4 up.
func TestKeysOfASize(t *testing.T) {
	r := newRegions(t, LastKeyFirst)
	keys := map[uint32]bool{}
	for _, c := range []struct {
		pages uint64
		same  bool // as the one before
	}{{1, false}, {4, true}, {3, true}, {5, false}, {8, true}, {9, false}, {16, true}, {17, false}} {
		h, key := r.register(c.pages, 0)
		if keys[key] != c.same {
			t.Errorf("%d pages: key %#x, taken before %v, want %v", c.pages, key, keys[key], c.same)
		}
		keys[key] = true
		r.deregister(h)
	}
}

// Several keys of a size come back in the order of the driver's time.
func TestOrderOfKeys(t *testing.T) {
	for _, order := range []MKeyCache{LastKeyFirst, FirstKeyFirst} {
		r := newRegions(t, order)
		var hs [3]Handle
		var freed, got []uint32
		for i := range hs {
			var key uint32
			hs[i], key = r.register(1, 0)
			freed = append(freed, key)
		}
		for _, h := range hs {
			r.deregister(h)
		}
		for range 600 { // those that the driver made in advance come first, or last
			if _, key := r.register(1, 0); slices.Contains(freed, key) {
				got = append(got, key)
			}
		}
		if order == LastKeyFirst {
			slices.Reverse(freed)
		}
		// The list is filled up again when it has less than 250 keys.
		if !slices.Equal(got, freed) {
			t.Errorf("cache %d: keys %#x, want %#x", order, got, freed)
		}
	}
}

// Rights that no UMR gives make a key that no persistent entry has: it is kept for 30 s in an
// entry of its own, for regions of up to half its size.
func TestTemporaryEntries(t *testing.T) {
	r := newRegions(t, LastKeyFirst)
	r.d.caps.roWrite, r.d.caps.umrROWrite = true, false
	r.e.Go("test", func(p *sim.Proc) {
		h, first := r.register(100, verbs.AccessRelaxedOrdering)
		r.deregister(h)
		_, plain := r.register(100, 0)
		_, large := r.register(101, verbs.AccessRelaxedOrdering)
		_, small := r.register(49, verbs.AccessRelaxedOrdering)
		h, half := r.register(50, verbs.AccessRelaxedOrdering)
		if plain == first || large == first || small == first || half != first {
			t.Errorf("key %#x: %#x without the right, %#x for 101 pages, %#x for 49, %#x for 50", first, plain, large, small, half)
		}
		r.deregister(h)
		n := r.f.live[prm.OpCreateMKey]
		p.Sleep(31 * sim.Second)
		if _, key := r.register(100, verbs.AccessRelaxedOrdering); key == first {
			t.Errorf("key %#x is there after 31 s", key)
		}
		if got := r.f.live[prm.OpCreateMKey]; got != n {
			t.Errorf("%d keys, want %d: one destroyed, one made", got, n)
		}
	})
	if err := r.e.Run(sim.Never); err != nil {
		t.Fatal(err)
	}
}

// A region too large for UMR has a key of its own, which goes with it.
func TestLargeRegionsAreCreated(t *testing.T) {
	r := newRegions(t, LastKeyFirst)
	h, _ := r.register(1<<16-1, 0)
	c := prm.CreateMKeyIn(r.f.last[prm.OpCreateMKey])
	if !c.MKC().Free() || c.TranslationsOctwordActualSize() != 0 {
		t.Errorf("256 MiB less a page: created with %d units, free %v", c.TranslationsOctwordActualSize(), c.MKC().Free())
	}
	r.deregister(h)
	h, _ = r.register(1<<16, 0)
	c = prm.CreateMKeyIn(r.f.last[prm.OpCreateMKey])
	if c.MKC().Free() || c.TranslationsOctwordActualSize() != 1<<15 {
		t.Errorf("256 MiB: created with %d units, free %v", c.TranslationsOctwordActualSize(), c.MKC().Free())
	}
	n := r.f.live[prm.OpCreateMKey]
	r.deregister(h)
	if r.f.live[prm.OpCreateMKey] != n-1 {
		t.Errorf("%d keys, want %d", r.f.live[prm.OpCreateMKey], n-1)
	}
}

// A region whose key has room for its new pages keeps the key.
func TestReregistrationKeepsTheKey(t *testing.T) {
	for _, c := range []struct {
		order MKeyCache
		pages uint64
		same  bool
	}{{LastKeyFirst, 4, true}, {LastKeyFirst, 5, false}, {NoKeyAgain, 4, false}} {
		r := newRegions(t, c.order)
		h, key := r.register(1, 0)
		va, err := r.proc.Space.MapPages(c.pages*page, page, mem.Read|mem.Write)
		if err != nil {
			t.Fatal(err)
		}
		_, got, err := r.u.ReregMR(Caller{}, h, ReregReq{Flags: verbs.ReregTranslation, Addr: uint64(va), Length: c.pages * page, Iova: uint64(va)})
		if err != nil || (got == key) != c.same {
			t.Errorf("cache %d, from 1 page to %d: key %#x, was %#x, %v", c.order, c.pages, got, key, err)
		}
	}
}
