package testbed

import (
	"encoding/binary"
	"fmt"
	"time"
)

// history is what a side's own process has put into its arena, in the order of time.
type history []change

// change is something that gives words a value at an instant: of a salt, unique of word and salt,
// or zero.
type change struct {
	t    time.Duration
	span span
	salt uint64
}

// word is what a change gives word i.
func (c *change) word(i int) uint64 {
	if c.salt == 0 {
		return 0
	}
	return c.salt<<16 | uint64(i)
}

func (c *change) covers(i int) bool { return i >= c.span.at && i < c.span.at+c.span.n }

// allows says whether word i had value v at some time in [from, to], as far as the process itself
// has changed it.
func (h history) allows(i int, v uint64, from, to time.Duration) bool {
	for k := len(h) - 1; k >= 0; k-- {
		c := &h[k]
		if c.t > to || !c.covers(i) {
			continue
		}
		if c.word(i) == v {
			return true
		}
		if c.t < from {
			return false
		}
	}
	return false
}

// since says whether the process has given word i the value at or after a time.
func (h history) since(i int, v uint64, from time.Duration) bool {
	for k := len(h) - 1; k >= 0 && h[k].t >= from; k-- {
		if c := &h[k]; c.covers(i) && c.word(i) == v {
			return true
		}
	}
	return false
}

// outcome is a request that was posted, and what became of it.
type outcome struct {
	pagingPost
	id       int
	from, to time.Duration
	done     bool // it has completed
	ok       bool // with success
}

// added is what an atomic adds.
const added = 1 << 60

// lands says whether v is right in word i of an operation's target, where it has come from the
// other side's history.
func (o *outcome) lands(own, other history, at, from span, i int, v uint64) bool {
	return other.allows(from.at+i-at.at, v, o.from, o.to) || own.since(i, v, o.from) || !o.ok && own.allows(i, v, o.from, o.to)
}

// target is where an operation puts data on a side, and what the side has of it.
func (o *outcome) target(side int) (span, bool) {
	switch {
	case o.kind == postAtomic:
		return []span{o.own, o.peers}[side], true
	case o.kind == postRead && side == 0:
		return o.own, true
	case (o.kind == postSend || o.kind == postWrite) && side == 1:
		return o.peers, true
	}
	return span{}, false
}

// right says whether v may stand in word i of the operation's target on a side.
func (o *outcome) right(h [2]history, side, i int, v uint64) bool {
	switch {
	case o.kind != postAtomic && side == 0:
		return o.lands(h[0], h[1], o.own, o.peers, i, v)
	case o.kind != postAtomic:
		return o.lands(h[1], h[0], o.peers, o.own, i, v)
	case side == 0: // what was there before
		return o.lands(h[0], h[1], o.own, o.peers, i, v)
	}
	return h[1].allows(i, v-added, o.from, o.to) || h[1].since(i, v, o.from) || !o.ok && h[1].allows(i, v, o.from, o.to)
}

// compare checks the words of a side's arena, of which the process sees b from word first on: at
// the targets of operations what may have arrived, elsewhere what the process has put there.
func compare(h [2]history, side int, all []*outcome, b []byte, first int, now time.Duration) error {
	var owner [arenaWords]int8
	for k, o := range all {
		if t, ok := o.target(side); ok {
			for i := range t.n {
				owner[t.at+i] = int8(k + 1)
			}
		}
	}
	for n := range len(b) / 8 {
		i, v := first+n, binary.LittleEndian.Uint64(b[8*n:])
		if k := owner[i]; k != 0 {
			if o := all[k-1]; !o.right(h, side, i, v) {
				return fmt.Errorf("word %d of side %d has %#x at %v, which the other side had not there from %v to %v (request %d)", i, side, v, now, o.from, o.to, o.id)
			}
			continue
		}
		if !h[side].allows(i, v, now, now) {
			return fmt.Errorf("word %d of side %d, which is no target, has %#x at %v", i, side, v, now)
		}
	}
	return nil
}

// fill gives bytes the words of a salt, from word first on.
func fill(b []byte, first int, salt uint64) {
	c := change{salt: salt}
	for n := range len(b) / 8 {
		binary.LittleEndian.PutUint64(b[8*n:], c.word(first+n))
	}
}
