package kernel

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// eventFile is a file that events are read from: a completion channel or the async
// file of a context. Events are read in the order in which they came.
type eventFile struct {
	d       *Device
	events  []fileEvent
	waiting []*sim.Proc
	closed  bool
	lost    bool   // closed because the device was removed: there is EIO to read
	onEvent func() // called for each event; may be nil
}

type fileEvent struct {
	typ    verbs.EventType
	cookie uint64
	port   int
	qpn    uint32  // of a receive QP that is known by number
	seen   *uint32 // of the object, counts what programs have read
}

// push queues an event and wakes the first thread that waits.
func (f *eventFile) push(typ verbs.EventType, cookie uint64, seen *uint32) {
	f.put(fileEvent{typ: typ, cookie: cookie, seen: seen})
}

func (f *eventFile) put(e fileEvent) {
	f.events = append(f.events, e)
	if len(f.waiting) > 0 {
		f.waiting[0].Wake(f.d.eng.Now() + f.d.p.Wakeup)
		f.waiting = f.waiting[1:]
	}
	if f.onEvent != nil {
		f.onEvent()
	}
}

// forget removes the events of an object that is going away: no program may see it any more.
func (f *eventFile) forget(seen *uint32) {
	f.events = slices.DeleteFunc(f.events, func(e fileEvent) bool { return e.seen == seen })
}

// close ends every wait on the file.
func (f *eventFile) close() {
	f.closed = true
	for _, p := range f.waiting {
		p.Wake(f.d.eng.Now() + f.d.p.Wakeup)
	}
	f.waiting = nil
}

// read takes the oldest event, waiting until deadline: EAGAIN when none has come by
// then, EINTR when a signal came first, EBADF when the file was closed.
func (f *eventFile) read(c Caller, deadline sim.Time, why string) (fileEvent, error) {
	f.d.enter(c, false)
	for interrupted := false; ; interrupted = f.sleep(c, deadline, why) {
		if len(f.events) > 0 {
			i := 0
			if f.d.breaks(rule.EventsAreReadInOrder) {
				i = len(f.events) - 1
			}
			e := f.events[i]
			f.events = append(f.events[:i], f.events[i+1:]...)
			if e.seen != nil {
				*e.seen++
			}
			return e, nil
		}
		if f.lost {
			return fileEvent{}, fmt.Errorf("%s: %w", why, errRemoved)
		}
		if f.closed {
			return fileEvent{}, fmt.Errorf("%s: closed: %w", why, syscall.EBADF)
		}
		if interrupted {
			return fileEvent{}, fmt.Errorf("no %s: %w", why, syscall.EINTR)
		}
		if c.P == nil || c.P.Now() >= deadline {
			return fileEvent{}, fmt.Errorf("no %s: %w", why, syscall.EAGAIN)
		}
	}
}

// sleep parks the thread until an event, the deadline, the end of the file or a
// signal. It reports whether there was a signal.
func (f *eventFile) sleep(c Caller, deadline sim.Time, why string) (interrupted bool) {
	f.waiting = append(f.waiting, c.P)
	woken := false
	defer func() {
		for i, p := range f.waiting {
			if p == c.P {
				f.waiting = append(f.waiting[:i], f.waiting[i+1:]...)
				break
			}
		}
		// A thread that was killed in its sleep leaves its event to the next.
		if !woken && len(f.events) > 0 && len(f.waiting) > 0 {
			f.waiting[0].Wake(f.d.eng.Now() + f.d.p.Wakeup)
		}
	}()
	interrupted = c.Sleep(why, deadline, f.d.p.Wakeup)
	woken = true
	return interrupted
}
