package sim

// event is a value: 32 bytes, no pointer but the bound handler.
type event struct {
	t   Time
	seq uint64
	h   Handler
	arg uint64
}

func (a *event) before(b *event) bool {
	return a.t < b.t || (a.t == b.t && a.seq < b.seq)
}

// heap is a 4-ary heap of events by (t, seq).
type heap struct{ ev []event }

func (q *heap) push(x event) {
	q.ev = append(q.ev, x)
	i := len(q.ev) - 1
	for i > 0 {
		p := (i - 1) / 4
		if !x.before(&q.ev[p]) {
			break
		}
		q.ev[i] = q.ev[p]
		i = p
	}
	q.ev[i] = x
}

func (q *heap) pop() event {
	top := q.ev[0]
	last := len(q.ev) - 1
	x := q.ev[last]
	q.ev[last].h = nil
	q.ev = q.ev[:last]
	if last > 0 {
		q.sift(x)
	}
	return top
}

// sift puts x where the root was.
func (q *heap) sift(x event) {
	n := len(q.ev)
	i := 0
	for {
		c := 4*i + 1
		if c >= n {
			break
		}
		end := min(c+4, n)
		best := c
		for k := c + 1; k < end; k++ {
			if q.ev[k].before(&q.ev[best]) {
				best = k
			}
		}
		if !q.ev[best].before(&x) {
			break
		}
		q.ev[i] = q.ev[best]
		i = best
	}
	q.ev[i] = x
}
