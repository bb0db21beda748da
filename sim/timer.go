package sim

// timer is a program's deadline while it is parked. Deadlines that are not reached
// are the rule, so they are checked lazily: there is one event under way at a
// time, at the earliest deadline asked for, and not one for each wait.
type timer struct {
	p        *Proc
	fire     Handler
	deadline Time // of the wait in progress
	pending  Time // of the event under way
	expired  bool
}

func (t *timer) init(p *Proc) {
	t.p, t.deadline, t.pending = p, Never, Never
	t.fire = t.run
}

// set arms the timer for the wait that begins.
func (t *timer) set(deadline Time) {
	t.deadline, t.expired = max(deadline, t.p.local), false
	t.arm()
}

// arm has an event at the deadline unless an earlier one will see to it.
func (t *timer) arm() {
	if t.deadline < t.pending {
		t.pending = t.deadline
		t.p.eng.queue.push(t.deadline, t.p.key(), t.fire, uint64(t.deadline))
	}
}

// clear ends the wait and reports whether the deadline ended it.
func (t *timer) clear() bool {
	t.deadline = Never
	return t.expired
}

func (t *timer) run(at uint64) {
	if Time(at) == t.pending {
		t.pending = Never
	}
	if !t.p.Parked() || t.p.done {
		return
	}
	if t.deadline <= t.p.eng.queue.now {
		t.expired = true
		t.p.Wake(t.p.eng.queue.now)
		return
	}
	t.arm()
}
