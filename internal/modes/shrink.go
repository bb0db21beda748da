package modes

import (
	"errors"
	"slices"
)

// fails is the difference that a program shows, nil when it shows none.
func (p *Program) fails() *Difference {
	var d *Difference
	errors.As(p.Check(), &d)
	return d
}

// Shrink takes out of a program whose modes differ what is not needed for that, in at
// most tries attempts.
func (p *Program) Shrink(tries int) (*Program, *Difference) {
	best, diff := p.clone(), p.fails()
	smaller := func(change func(q *Program)) bool {
		if tries--; tries < 0 {
			return false
		}
		q := best.clone()
		change(q)
		if d := q.fails(); d != nil {
			best, diff = q, d
			return true
		}
		return false
	}
	smaller(func(q *Program) { q.Faults = "" })
	for before := -1; before != len(best.Text()) && tries > 0; {
		before = len(best.Text())
		for i := len(best.Threads) - 1; i >= 0; i-- {
			smaller(func(q *Program) { q.Threads = slices.Delete(q.Threads, i, i+1) })
		}
		for i := range best.Threads {
			for n := len(best.Threads[i].Ops); n > 0; n /= 2 {
				for at := len(best.Threads[i].Ops) - n; at >= 0; at -= n {
					smaller(func(q *Program) { q.Threads[i].Ops = slices.Delete(q.Threads[i].Ops, at, at+n) })
				}
			}
		}
		for i := len(best.Set) - 1; i >= 0; i-- {
			smaller(func(q *Program) { q.Set = slices.Delete(q.Set, i, i+1) })
		}
		for len(best.Conns) > 1 && best.unused(len(best.Conns)-1) {
			if !smaller(func(q *Program) { q.Conns = q.Conns[:len(q.Conns)-1] }) {
				break
			}
		}
	}
	return best, diff
}

// unused says whether no step is about a connection.
func (p *Program) unused(conn int) bool {
	for _, t := range p.Threads {
		for _, o := range t.Ops {
			if o.EP/2 == conn || o.To/2 == conn {
				return false
			}
		}
	}
	return true
}
