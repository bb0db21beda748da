package hca

import "github.com/rdmasim/rdmasim/sim"

// goneKeys are the keys that were deregistered a moment ago, oldest first.
type goneKeys []goneKey

// goneKey is such a key by its index, with the time at which a responder answers again what names
// it.
type goneKey struct {
	index uint32
	until sim.Time
}

// add notes a key that was deregistered now, and forgets those whose time is over.
func (g *goneKeys) add(index uint32, now, silence sim.Time) {
	if silence == 0 {
		return
	}
	old := 0
	for old < len(*g) && (*g)[old].until <= now {
		old++
	}
	*g = append(append((*g)[:0], (*g)[old:]...), goneKey{index, now + silence})
}

// remove notes that an index has a key again.
func (g goneKeys) remove(index uint32) {
	for i := range g {
		if g[i].index == index {
			g[i].until = 0
		}
	}
}

// until is when what names a key is answered again; 0: now.
func (g goneKeys) until(index uint32, now sim.Time) sim.Time {
	for i := len(g) - 1; i >= 0; i-- {
		if g[i].index == index && g[i].until > now {
			return g[i].until
		}
	}
	return 0
}
