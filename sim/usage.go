package sim

import (
	"cmp"
	"math/bits"
	"slices"
)

// Resource is what may limit the rate of a run.
type Resource uint8

// Resources, from the core to the memory of the other end. Window is none: nothing is busy, so that
// latency and the number of requests that may be outstanding decide.
const (
	Window         Resource = iota
	CPU                     // time of the cores on which threads run
	Lock                    // a lock that several threads take
	Doorbell                // register writes: a UAR page, or the bus that carries them
	PU                      // processing units, or the one that works on a QP
	SendEngine              // what all WQEs of a device pass
	PCIeRead                // what a device reads: the bus, or requests that may be outstanding
	PCIeWrite               // what a device writes
	PeerPath                // the way between a device and the memory of a GPU
	TxBuffer                // room for payload that has been asked for and has not left
	Wire                    // a cable, in one direction
	ReceiveEngine           // what all requests that arrive pass
	ResponseEngine          // what all responses that arrive pass
	ReadEngine              // what all READ requests pass
	Atomics                 // the unit of atomics, or one of its slots
	Caches                  // misses of contexts, keys and translations, which hold up an engine
	Paging                  // page faults of a device, which its driver answers
	AckTimer                // the time until an unanswered request is sent again
	resources
)

var resourceNames = [...]string{"window", "CPU", "lock", "doorbell", "PU", "send engine", "PCIe read", "PCIe write", "peer path", "TX buffer", "wire",
	"receive engine", "response engine", "READ engine", "atomics", "caches", "page faults", "ACK timer"}

var _ = [1]struct{}{}[len(resourceNames)-int(resources)]

// String returns the text form.
func (r Resource) String() string { return resourceNames[r] }

// Resources are all of them.
func Resources() (all []Resource) {
	for r := range resources {
		all = append(all, r)
	}
	return all
}

// Meter is how long a unit has been busy.
type Meter struct {
	Resource Resource
	Unit     string // several meters of a resource and a unit, such as the cores of a host, are one in what they say
	Index    int    // among those
	Busy     Time   // of all Of units
	Of       int    // units that work beside each other; 0: one
	// Part of Busy is really the use of another resource, which is named if it is more than half.
	Part   Time
	PartOf Resource
	// Queued says that the meter counts for how long something waited for the unit: nothing is
	// known of its work, and a unit whose work is measured comes before it.
	Queued bool
}

// Usage is what all units have done by an instant.
type Usage struct {
	At     Time
	Meters []Meter
}

// Load is the part of a time for which a unit was busy.
type Load struct {
	Resource Resource
	Unit     string
	PerMille int
	Queued   bool
}

// Busy is the load, in thousandths, at which a unit counts as the limit.
const Busy = 900

// meterKey names a meter.
type meterKey struct {
	r     Resource
	unit  string
	index int
}

// Since is how busy each unit was since before, the busiest first, and of equals the one that is
// further on the way of a message. Of several meters of one unit it is the mean, each weighted with
// itself: one that does nothing does not count.
func (u *Usage) Since(before *Usage) (all []Load) {
	span := u.At - before.At
	if span <= 0 {
		return nil
	}
	old := make(map[meterKey]*Meter, len(before.Meters))
	for i := range before.Meters {
		m := &before.Meters[i]
		old[meterKey{m.Resource, m.Unit, m.Index}] = m
	}
	type sum struct{ weight, square, part, busy int64 }
	var order []*Meter
	sums := map[meterKey]*sum{}
	for i := range u.Meters {
		m := &u.Meters[i]
		busy, part := m.Busy, m.Part
		if o := old[meterKey{m.Resource, m.Unit, m.Index}]; o != nil {
			busy, part = busy-o.Busy, part-o.Part
		}
		k := meterKey{m.Resource, m.Unit, 0}
		s := sums[k]
		if s == nil {
			s = &sum{}
			sums[k], order = s, append(order, m)
		}
		mille := share(busy, span*Time(max(1, m.Of)))
		s.weight, s.square, s.part, s.busy = s.weight+mille, s.square+mille*mille, s.part+int64(part), s.busy+int64(busy)
	}
	for _, m := range order {
		s := sums[meterKey{m.Resource, m.Unit, 0}]
		if s.weight <= 0 {
			continue
		}
		l := Load{m.Resource, m.Unit, int(s.square / s.weight), m.Queued}
		if s.part > s.busy/2 {
			l.Resource = m.PartOf
		}
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(a, b Load) int {
		if a.Queued != b.Queued && min(a.PerMille, b.PerMille) >= Busy {
			if a.Queued {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(b.PerMille, a.PerMille), cmp.Compare(b.Resource, a.Resource))
	})
	return all
}

// share is busy of span in thousandths, at most all of it.
func share(busy, span Time) int64 {
	if span <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(min(max(busy, 0), span)), 1000)
	mille, _ := bits.Div64(hi, lo, uint64(span))
	return int64(mille)
}

// Stalled is the part of the time, in thousandths, for which queue pairs wait in vain for answers,
// at which their ACK timers count as the limit where no unit does.
const Stalled = 100

// Limit is the first of loads in their order, if it counts as the limit. Where no unit is Busy it
// is AckTimer, if queue pairs were Stalled, or else Window, with the load of the busiest. Whether
// requests came back often enough for their number to be a limit, who knows them says.
func Limit(loads []Load) Load {
	if len(loads) == 0 {
		return Load{}
	}
	l := loads[0]
	if l.PerMille >= Busy {
		return l
	}
	for _, timer := range loads {
		if timer.Resource == AckTimer && timer.PerMille >= Stalled {
			return timer
		}
	}
	l.Resource = Window
	return l
}

// Waiting measures for how long something waits. The zero value is ready.
type Waiting struct {
	since, total Time
	on           bool
}

// Set says whether something waits from now on.
func (w *Waiting) Set(now Time, on bool) {
	if w.on != on {
		w.set(now, on)
	}
}

func (w *Waiting) set(now Time, on bool) {
	if !on {
		w.total += now - w.since
	}
	w.on, w.since = on, now
}

// For is how long something has waited by now.
func (w *Waiting) For(now Time) Time {
	if w.on {
		return w.total + now - w.since
	}
	return w.total
}

// BusyBy is how long the server has served by now: without what is reserved for later, which begins
// when it is free.
func (s *Server) BusyBy(now Time) Time { return s.Busy - max(0, s.free-now) }
