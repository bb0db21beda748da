package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
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
	told    func() // of each event, nil: nobody
}

type fileEvent struct {
	typ    verbs.EventType
	cookie uint64
	port   int
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
	if f.told != nil {
		f.told()
	}
}

// forget removes the events of an object that is going away: nobody may be told of it.
func (f *eventFile) forget(seen *uint32) {
	keep := f.events[:0]
	for _, e := range f.events {
		if e.seen != seen {
			keep = append(keep, e)
		}
	}
	f.events = keep
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
			e := f.events[0]
			f.events = f.events[:copy(f.events, f.events[1:])]
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

// Signal is how one thread is interrupted by another.
type Signal struct {
	sleeper *sim.Proc // the thread, while it sleeps in a call that a signal ends
	file    *eventFile
	raised  bool
}

// Raise ends the call that the thread sleeps in. A thread that does not sleep runs its
// handler and goes on.
func (s *Signal) Raise() {
	if s.sleeper != nil {
		s.raised = true
		s.sleeper.Wake(s.file.d.eng.Now() + s.file.d.p.Wakeup)
	}
}

// sleep parks the thread until an event, the deadline, the end of the file or a
// signal. It reports whether there was a signal.
func (f *eventFile) sleep(c Caller, deadline sim.Time, why string) (interrupted bool) {
	f.waiting = append(f.waiting, c.P)
	woken := false
	if s := c.Signal; s != nil {
		*s = Signal{sleeper: c.P, file: f}
		defer func() { interrupted, *s = s.raised, Signal{} }()
	}
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
	c.P.ParkUntil(why, deadline)
	woken = true
	return false
}

// OnAsync has f called, in the engine's thread, whenever an event is there for
// WaitAsync to take: it is for readers that are no simulated programs.
func (u *Ucontext) OnAsync(f func()) { u.async.told = f }

// AsyncEvent is what the async fd delivers.
type AsyncEvent struct {
	Type   verbs.EventType
	Cookie uint64 // of the QP or CQ
	Port   int
}

// WaitAsync is the read of the async fd: EAGAIN when the deadline (sim.Never: none)
// passes, EBADF when the context is closed meanwhile.
func (u *Ucontext) WaitAsync(c Caller, deadline sim.Time) (AsyncEvent, error) {
	e, err := u.async.read(c, deadline, "asynchronous event")
	if err != nil {
		return AsyncEvent{}, err
	}
	return AsyncEvent{Type: e.typ, Cookie: e.cookie, Port: e.port}, nil
}

// broadcast queues an event of the port to every open context.
func (d *Device) broadcast(t verbs.EventType) {
	for _, u := range d.ctxs {
		u.async.put(fileEvent{typ: t, port: 1})
		d.count.AsyncEvents++
	}
}

const eventCQErr = verbs.EventCQErr

// qpEvent is the event that programs see (mlx5_ib_qp_event).
func qpEvent(t prm.EventType) (verbs.EventType, bool) {
	switch t {
	case prm.EventPathMig:
		return verbs.EventPathMig, true
	case prm.EventCommEst:
		return verbs.EventCommEst, true
	case prm.EventSQDrained:
		return verbs.EventSQDrained, true
	case prm.EventSRQLastWQE:
		return verbs.EventQPLastWQEReached, true
	case prm.EventWQCatasError:
		return verbs.EventQPFatal, true
	case prm.EventPathMigFailed:
		return verbs.EventPathMigErr, true
	case prm.EventWQInvalReqError:
		return verbs.EventQPReqErr, true
	case prm.EventWQAccessError:
		return verbs.EventQPAccessErr, true
	}
	return 0, false
}

// portEvent is the event for a change of the port (handle_port_change). On Ethernet the
// real driver takes up and down from the network interface, which follows the same change.
// On InfiniBand every state that is not ACTIVE is an error.
func (d *Device) portEvent(sub uint8) (verbs.EventType, bool) {
	switch sub {
	case prm.PortChangeDown:
		return verbs.EventPortErr, true
	case prm.PortChangeInitialized:
		return verbs.EventPortErr, d.caps.ib
	case prm.PortChangeActive:
		return verbs.EventPortActive, true
	case prm.PortChangeLID:
		return verbs.EventLIDChange, true
	case prm.PortChangePKey:
		return verbs.EventPKeyChange, true
	case prm.PortChangeGUID:
		return verbs.EventGIDChange, true
	case prm.PortChangeClientRereg:
		return verbs.EventClientReregister, true
	}
	return 0, false
}
