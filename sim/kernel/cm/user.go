package cm

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// maxBacklog is net.rdma_ucm.max_backlog.
const maxBacklog = 1024

// user is ucma_context: an id as a program has it.
type user struct {
	f        *File
	id       uint32
	uid      uint64
	x        *rdmaID
	reported uint32 // events that were taken
	backlog  int    // requests that may wait to be taken
	waits    bool   // it is of a request that was not taken
	groups   map[*membership]*userGroup
}

// userGroup is ucma_multicast.
type userGroup struct {
	u        *user
	handle   uint32
	uid      uint64
	g        *membership
	reported uint32
}

// queued is an event that waits (struct ucma_event).
type queued struct {
	e     Event
	of    *user
	fresh *user // of a request
	group *userGroup
}

// users is ucma of a machine: ids and groups have numbers, the lowest that is free.
type users struct {
	ids                     map[uint32]*user
	groups                  map[uint32]*userGroup
	idNumbers, groupNumbers numbers
}

func (s *users) init() { s.ids, s.groups = map[uint32]*user{}, map[uint32]*userGroup{} }

// mostEvents bounds the events of a file that nobody reads: the next ones are lost, as they are in
// a kernel without memory for them.
const mostEvents = 1 << 16

// Open opens the channel device for a process, whose rights count. The caller has seen to Load.
func (m *Manager) Open(c kernel.Caller, p *kernel.Process) *File {
	m.enter(c)
	return &File{m: m, owner: p}
}

// IDs is how many ids the programs of the machine have.
func (m *Manager) IDs() int { return len(m.users.ids) }

// find is ucma_get_ctx.
func (f *File) find(id uint32) (*user, error) {
	u := f.m.users.ids[id]
	switch {
	case f.closed:
		return nil, fmt.Errorf("the channel is closed: %w", syscall.EBADF)
	case u == nil || u.waits:
		return nil, fmt.Errorf("id %d: %w", id, syscall.ENOENT)
	case u.f != f:
		return nil, fmt.Errorf("id %d belongs to another channel: %w", id, errInvalid)
	}
	return u, nil
}

// findOnDevice is ucma_get_ctx_dev.
func (f *File) findOnDevice(id uint32) (*user, error) {
	u, err := f.find(id)
	if err == nil && u.x.port == nil {
		return nil, fmt.Errorf("id %d has no device: %w", id, errInvalid)
	}
	return u, err
}

func (m *Manager) newUser(f *File, uid uint64, x *rdmaID) *user {
	u := &user{f: f, id: m.users.idNumbers.take(), uid: uid, x: x}
	m.users.ids[u.id] = u
	x.handler = u.onEvent
	return u
}

// typeOfSpace is ucma_get_qp_type.
func typeOfSpace(ps verbs.PortSpace, typ verbs.QPType) (verbs.QPType, error) {
	switch ps {
	case verbs.PortSpaceTCP:
		return verbs.QPTRC, nil
	case verbs.PortSpaceUDP, verbs.PortSpaceIPoIB:
		return verbs.QPTUD, nil
	case verbs.PortSpaceIB:
		return typ, nil
	}
	return 0, fmt.Errorf("port space %#x: %w", uint16(ps), errInvalid)
}

// CreateID is CREATE_ID. uid is the caller's name of the id in events. EINVAL: no such port space.
func (f *File) CreateID(c kernel.Caller, uid uint64, ps verbs.PortSpace, typ verbs.QPType) (id uint32, err error) {
	f.m.enter(c)
	typ, err = typeOfSpace(ps, typ)
	if err != nil {
		return 0, err
	}
	return f.m.newUser(f, uid, f.m.ids.newID(ps, typ, nil)).id, nil
}

// DestroyID is DESTROY_ID. It returns how many events of the id were taken.
func (f *File) DestroyID(c kernel.Caller, id uint32) (reported uint32, err error) {
	f.m.enter(c)
	u, err := f.find(id)
	if err != nil {
		return 0, err
	}
	return u.destroy(), nil
}

// destroy is ucma_destroy_private_ctx.
func (u *user) destroy() uint32 {
	var requests []*user
	u.f.events = slices.DeleteFunc(u.f.events, func(q queued) bool {
		if q.of == u && q.fresh != nil {
			requests = append(requests, q.fresh)
		}
		return q.of == u
	})
	u.end(requests)
	return u.reported
}

// end destroys an id whose events are gone, with the requests to it that were not taken.
func (u *user) end(requests []*user) {
	s := &u.f.m.users
	delete(s.ids, u.id)
	s.idNumbers.give(u.id)
	u.x.destroy()
	for _, g := range u.groups { // their order cannot be seen
		delete(s.groups, g.handle)
		s.groupNumbers.give(g.handle)
	}
	for _, r := range requests {
		r.destroy()
	}
}

// Close is the last close of the file (ucma_close): all its ids are destroyed.
func (f *File) Close(c kernel.Caller) {
	f.m.enter(c)
	if f.closed {
		return
	}
	f.closed = true
	if f.m.breaks(rule.ClosedChannelsEndTheirIDs) {
		return
	}
	var mine []uint32
	for id, u := range f.m.users.ids {
		if u.f == f && !u.waits {
			mine = append(mine, id)
		}
	}
	slices.Sort(mine)
	requests := map[*user][]*user{}
	for _, q := range f.events {
		if q.fresh != nil {
			requests[q.of] = append(requests[q.of], q.fresh)
		}
	}
	f.events = nil
	for _, id := range mine {
		u := f.m.users.ids[id]
		u.end(requests[u])
	}
	for _, p := range f.waiting {
		p.Wake(f.m.eng.Now() + f.m.p.Wakeup)
	}
	f.waiting = nil
}

// onEvent is ucma_event_handler.
func (u *user) onEvent(x *rdmaID, e *idEvent) bool {
	if e.typ == verbs.CMConnectRequest {
		return u.onRequest(x, e)
	}
	if u.uid == 0 { // a request that was not accepted: its accept fails instead
		return true
	}
	q := queued{e: u.event(x, e), of: u}
	if e.group != nil {
		if q.group = u.groups[e.group]; q.group == nil {
			return true
		}
		q.e.UID, q.e.ID = q.group.uid, q.group.handle
	}
	u.f.push(q)
	return true
}

// onRequest is ucma_connect_event_handler.
func (u *user) onRequest(x *rdmaID, e *idEvent) bool {
	if u.backlog <= 0 && !x.ids.m.breaks(rule.BacklogIsALimit) || len(u.f.events) >= mostEvents {
		return false
	}
	u.backlog--
	fresh := u.f.m.newUser(u.f, 0, e.fresh)
	fresh.waits = true
	q := queued{e: u.event(e.fresh, e), of: u, fresh: fresh}
	q.e.ID = fresh.id
	u.f.push(q)
	return true
}

// event is ucma_create_uevent: private data has the length of its room.
func (u *user) event(x *rdmaID, e *idEvent) Event {
	out := Event{UID: u.uid, ID: u.id, Type: e.typ, Status: e.status, IsUD: x.typ == verbs.QPTUD, ECE: e.ece}
	if out.IsUD {
		out.UD = e.ud
		out.UD.PrivateData = slices.Clone(e.ud.PrivateData)
	} else {
		out.Conn = e.conn
		out.Conn.PrivateData = slices.Clone(e.conn.PrivateData)
	}
	return out
}

func (f *File) push(q queued) {
	if len(f.events) >= mostEvents {
		return
	}
	f.events = append(f.events, q)
	if len(f.waiting) > 0 {
		f.waiting[0].Wake(f.m.eng.Now() + f.m.p.Wakeup)
		f.waiting = f.waiting[1:]
	}
	if f.notify != nil {
		f.notify()
	}
}

// GetEvent is GET_EVENT: it takes the oldest event, and waits for one until deadline if the caller
// is a simulated thread. EAGAIN: there is none. EINTR: a signal came first. EBADF: the file was
// closed.
func (f *File) GetEvent(c kernel.Caller, deadline sim.Time) (Event, error) {
	f.m.enter(c)
	for interrupted := false; ; interrupted = f.sleep(c, deadline) {
		switch {
		case f.closed:
			return Event{}, fmt.Errorf("event of a closed channel: %w", syscall.EBADF)
		case len(f.events) > 0:
			return f.take(), nil
		case interrupted:
			return Event{}, fmt.Errorf("no event: %w", syscall.EINTR)
		case c.P == nil || c.P.Now() >= deadline:
			return Event{}, fmt.Errorf("no event: %w", syscall.EAGAIN)
		}
	}
}

// take is the end of ucma_get_event.
func (f *File) take() Event {
	q := f.events[0]
	f.events[0] = queued{}
	f.events = f.events[1:]
	q.of.reported++
	if q.group != nil {
		q.group.reported++
	}
	if q.fresh != nil {
		q.fresh.waits = false
		q.of.backlog++
	}
	return q.e
}

// sleep parks the thread until an event, the deadline, the end of the channel or a signal. It
// reports whether there was a signal.
func (f *File) sleep(c kernel.Caller, deadline sim.Time) bool {
	f.waiting = append(f.waiting, c.P)
	woken := false
	defer func() {
		f.waiting = slices.DeleteFunc(f.waiting, func(p *sim.Proc) bool { return p == c.P })
		// A thread that was killed in its sleep leaves its event to the next.
		if !woken && len(f.events) > 0 && len(f.waiting) > 0 {
			f.waiting[0].Wake(f.m.eng.Now() + f.m.p.Wakeup)
		}
	}()
	interrupted := c.Sleep("an event of the connection manager", deadline, f.m.p.Wakeup)
	woken = true
	return interrupted
}

// MigrateID is MIGRATE_ID, by which an id and its waiting events come to this file from another. It
// returns how many events of the id were taken.
func (f *File) MigrateID(c kernel.Caller, id uint32, from *File) (reported uint32, err error) {
	f.m.enter(c)
	u, err := from.find(id)
	if err != nil {
		return 0, err
	}
	if u.f == f {
		return u.reported, nil
	}
	var moved []queued
	from.events = slices.DeleteFunc(from.events, func(q queued) bool {
		if q.of == u {
			moved = append(moved, q)
		}
		return q.of == u
	})
	u.f = f
	for _, q := range moved {
		if q.fresh != nil {
			q.fresh.f = f
		}
		if !f.m.breaks(rule.MigrationTakesEventsAlong) {
			f.push(q)
		}
	}
	return u.reported, nil
}

// rejectReason is what REJECT takes (ucma_reject).
func rejectReason(r uint8) (uint16, error) {
	switch r {
	case 0, mad.RejConsumerDefined:
		return mad.RejConsumerDefined, nil
	case mad.RejVendorUnsupported:
		return mad.RejVendorUnsupported, nil
	}
	return 0, fmt.Errorf("reason %d of a reject: %w", r, errInvalid)
}
