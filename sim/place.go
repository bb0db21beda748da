package sim

// Place is where an event stands in the order of a run. A unit that puts a step off until
// its effect is read needs no event for it, but reserves the place of that event at the
// moment at which it would schedule it: what the step changes is visible to events behind
// that place and to none before it, even at the same instant.
type Place struct {
	t   Time
	seq uint64
}

// PlaceAt is a place before all others of an instant.
func PlaceAt(t Time) Place { return Place{t: t} }

// Time is the instant of the place.
func (p Place) Time() Time { return p.t }

// Before says whether an event in place p would run before one in place o.
func (p Place) Before(o Place) bool { return p.t < o.t || p.t == o.t && p.seq < o.seq }

// Reserve is the place of an event that is scheduled now for t, which is neither before now
// nor Never.
func (e *Engine) Reserve(t Time) Place {
	e.seq++
	e.last = max(e.last, t)
	return Place{t, e.seq}
}

// Passed says whether an event in that place would have run, or be the one that runs.
func (e *Engine) Passed(p Place) bool {
	return p.t < e.queue.now || p.t == e.queue.now && p.seq <= e.place
}

// AtPlace schedules h(arg) in a place that was reserved and that has not passed.
func (e *Engine) AtPlace(p Place, h Handler, arg uint64) {
	if e.Passed(p) && p.seq != e.place {
		e.queue.past(p.t)
	}
	if p.t != Never {
		e.queue.push(p.t, p.seq, h, arg)
	}
}

// Lane is a stream of events of one unit that are scheduled earlier in some runs than in
// others, since the unit may know of their cause before it happens. At the same instant
// they come before all others of devices, in the order of the lanes and then of their At:
// so their order does not depend on when they were scheduled. A unit calls At in the same
// order in every run.
type Lane struct {
	e    *Engine
	next uint64
}

// NewLane makes a lane; units are made in the same order in every run.
func (e *Engine) NewLane() Lane {
	e.lanes++
	return Lane{e, e.lanes << 40}
}

// At schedules h(arg) at t, which is not before now.
func (l *Lane) At(t Time, h Handler, arg uint64) {
	l.next++
	l.e.queue.push(t, l.next, h, arg)
}
