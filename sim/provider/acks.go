package provider

// acks counts acknowledged events, and lets a destroy wait until all are.
type acks struct {
	n      uint32
	waiter *Thread
}

func (a *acks) ack(t *Thread, n int) {
	a.n += uint32(n)
	if a.waiter != nil {
		a.waiter.Wake(t.P.Now())
	}
}

// wait blocks until reported events are acknowledged.
func (a *acks) wait(t *Thread, reported uint32, what string) {
	for t.P.Sync(); a.n < reported; t.P.Sync() {
		a.waiter = t
		t.ParkUntil("the acknowledgement of events of "+what, neverDeadline)
	}
	a.waiter = nil
}
