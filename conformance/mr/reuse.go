package mr

import (
	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// mostRegistrations bounds the search for the registration that brings a key back: mlx5 drivers
// keep up to 500 free keys of a size.
const mostRegistrations = 1024

// writeByStaleKey writes to a region by a key that an earlier one left, and reports whether that
// reached it. The pair is connected again after a refusal.
func writeByStaleKey(c *spec.C, p *kit.Pair, src, to *kit.Buffer, stale uint32) bool {
	before, want := to.FillRandom(c), src.FillRandom(c)
	wr := kit.Write(1, to, 0, src.All())
	wr.RKey = stale
	got := c.StatusIn("write by the key of the deregistered region", p.A.PostAndPoll(c, wr), verbs.WCSuccess, verbs.WCRemAccessErr)
	if got == verbs.WCSuccess {
		to.ExpectContents(c, "the bytes are in the new region", want)
		return true
	}
	to.ExpectContents(c, "the new region", before)
	reconnect(c, p)
	return false
}

// leftKey registers a region of p and deregisters it.
func leftKey(c *spec.C, p *kit.Pair) uint32 {
	b := p.Buffer(c, 64, kit.AllAccess)
	key := b.MR.RKey()
	b.Dereg(c)
	return key
}

func staleKey(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	src := p.Buffer(c, 64, kit.AllAccess)
	stale := leftKey(c, p)
	n := 1
	next := p.Buffer(c, 64, kit.AllAccess)
	reached := writeByStaleKey(c, p, src, next, stale)
	c.Equal("the write reached the region whose key is the same", reached, next.MR.RKey() == stale)
	for ; next.MR.RKey() != stale && n < mostRegistrations; n++ {
		next.Dereg(c)
		next = p.Buffer(c, 64, kit.AllAccess)
	}
	if next.MR.RKey() != stale {
		c.Observe("registrations until the key names a region again", "more")
		return
	}
	c.Observe("registrations until the key names a region again", n)
	c.Equal("a write by it reaches the region that it names", writeByStaleKey(c, p, src, next, stale), true)
}

func lastKeyFirst(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	src, a, b := p.Buffer(c, 64, kit.AllAccess), p.Buffer(c, 64, kit.AllAccess), p.Buffer(c, 64, kit.AllAccess)
	keys := [2]uint32{b.MR.RKey(), a.MR.RKey()}
	a.Dereg(c)
	b.Dereg(c)
	first, second := p.Buffer(c, 64, kit.AllAccess), p.Buffer(c, 64, kit.AllAccess)
	c.Equal("the keys of the next two regions are those of the last two, the later first", [2]uint32{first.MR.RKey(), second.MR.RKey()} == keys, true)
	c.Equal("a write by the stale key reaches the new region", writeByStaleKey(c, p, src, first, keys[0]), true)
}

func anotherKey(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	src := p.Buffer(c, 64, kit.AllAccess)
	stale := leftKey(c, p)
	for range 16 {
		next := p.Buffer(c, 64, kit.AllAccess)
		c.Equal("the key of the next region is the stale one", next.MR.RKey() == stale, false)
		c.Equal("a write by the stale key reaches the new region", writeByStaleKey(c, p, src, next, stale), false)
		next.Dereg(c)
	}
}
