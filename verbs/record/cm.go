package record

import (
	"fmt"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// CreateEventChannel passes through where the inner process has a connection manager.
func (p *process) CreateEventChannel(t verbs.Thread) (verbs.EventChannel, error) {
	m, ok := p.Process.(verbs.ConnectionManager)
	if !ok {
		return nil, fmt.Errorf("connection manager of this target: %w", syscall.EOPNOTSUPP)
	}
	ch, err := m.CreateEventChannel(innerThread(t))
	p.r.add(t, "create_event_channel", nil, err)
	if err != nil {
		return nil, err
	}
	return &eventChannel{EventChannel: ch, r: p.r, events: map[*verbs.CMEvent]*verbs.CMEvent{}}, nil
}

// eventChannel keeps, of each event that was taken, the inner one, by which it is acknowledged.
type eventChannel struct {
	verbs.EventChannel
	r *Recorder

	mu     sync.Mutex
	events map[*verbs.CMEvent]*verbs.CMEvent
}

func (h *eventChannel) id(in verbs.CMID) verbs.CMID {
	if in == nil {
		return nil
	}
	return wrap(h.r, in, func() *cmID { return &cmID{CMID: in, h: h} })
}

func (h *eventChannel) CreateID(t verbs.Thread, ps verbs.PortSpace, typ verbs.QPType, user any) (verbs.CMID, error) {
	id, err := h.EventChannel.CreateID(innerThread(t), ps, typ, user)
	h.r.add(t, "create_id", list(mask(uint32(ps))), err)
	if err != nil {
		return nil, err
	}
	return h.id(id), nil
}

// GetEvent records events, and not the waits in which none has come: how many there are depends on times.
func (h *eventChannel) GetEvent(t verbs.Thread, timeout time.Duration) (*verbs.CMEvent, error) {
	in, err := h.EventChannel.GetEvent(innerThread(t), timeout)
	if err != nil {
		if errnoName(err) != "EAGAIN" {
			h.r.add(t, "get_cm_event", nil, err)
		}
		return nil, err
	}
	h.r.add(t, "get_cm_event", nil, nil, list(in.Type, in.Status)...)
	out := *in
	out.ID, out.ListenID = h.id(in.ID), h.id(in.ListenID)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events[&out] = in
	return &out, nil
}

func (h *eventChannel) Readable(t verbs.Thread) bool { return h.EventChannel.Readable(innerThread(t)) }

func (h *eventChannel) AckEvent(t verbs.Thread, ev *verbs.CMEvent) error {
	h.mu.Lock()
	in := h.events[ev]
	delete(h.events, ev)
	h.mu.Unlock()
	if in == nil {
		in = ev // the inner channel knows what to say
	}
	err := h.EventChannel.AckEvent(innerThread(t), in)
	h.r.add(t, "ack_cm_event", nil, err)
	return err
}

func (h *eventChannel) Destroy(t verbs.Thread) error {
	err := h.EventChannel.Destroy(innerThread(t))
	h.r.add(t, "destroy_event_channel", nil, err)
	return err
}

type cmID struct {
	verbs.CMID
	h *eventChannel
}

func (i *cmID) Channel() verbs.EventChannel { return i.h }

func (i *cmID) Verbs() verbs.Context {
	in := i.CMID.Verbs()
	if in == nil {
		return nil
	}
	r := i.h.r
	dev := wrap(r, in.Device(), func() *device { return &device{in.Device(), r} })
	return wrap(r, in, func() *context { return &context{in, dev, r} })
}

func (i *cmID) QP() verbs.QP {
	if q := i.CMID.QP(); q != nil {
		return i.h.r.qp(q)
	}
	return nil
}

// note records a call without results.
func (i *cmID) note(t verbs.Thread, name string, args []string, err error) error {
	i.h.r.add(t, name, args, err)
	return err
}

func (i *cmID) BindAddr(t verbs.Thread, a netip.AddrPort) error {
	return i.note(t, "bind_addr", nil, i.CMID.BindAddr(innerThread(t), a))
}

func (i *cmID) ResolveAddr(t verbs.Thread, src, dst netip.AddrPort, d time.Duration) error {
	return i.note(t, "resolve_addr", list(seconds(d)), i.CMID.ResolveAddr(innerThread(t), src, dst, d))
}

func (i *cmID) ResolveRoute(t verbs.Thread, d time.Duration) error {
	return i.note(t, "resolve_route", list(seconds(d)), i.CMID.ResolveRoute(innerThread(t), d))
}

func (i *cmID) QueryPath(t verbs.Thread) ([]verbs.PathRecord, error) {
	l, err := i.CMID.QueryPath(innerThread(t))
	i.h.r.add(t, "query_route", nil, err, list(len(l))...)
	return l, err
}

func (i *cmID) CreateQP(t verbs.Thread, in verbs.PD, a verbs.QPInitAttr) (verbs.QP, error) {
	a.SendCQ, a.RecvCQ, a.SRQ = bareCQ(a.SendCQ), bareCQ(a.RecvCQ), bareSRQ(a.SRQ)
	var domain verbs.PD
	if in != nil {
		domain = barePD(in)
	}
	q, err := i.CMID.CreateQP(innerThread(t), domain, a)
	args := list(a.Type, fmt.Sprintf("%+v", a.Cap))
	if err != nil {
		return nil, i.note(t, "rdma_create_qp", args, err)
	}
	i.h.r.add(t, "rdma_create_qp", args, nil, i.h.r.qpn(q.QPN()))
	return i.h.r.qp(q), nil
}

func (i *cmID) DestroyQP(t verbs.Thread) error {
	return i.note(t, "rdma_destroy_qp", nil, i.CMID.DestroyQP(innerThread(t)))
}

func (i *cmID) InitQPAttr(t verbs.Thread, s verbs.QPState) (verbs.QPAttr, verbs.QPAttrMask, error) {
	a, m, err := i.CMID.InitQPAttr(innerThread(t), s)
	i.h.r.add(t, "init_qp_attr", list(s), err, mask(m))
	return a, m, err
}

func (i *cmID) Connect(t verbs.Thread, p *verbs.ConnParam) error {
	return i.note(t, "connect", nil, i.CMID.Connect(innerThread(t), p))
}

func (i *cmID) Listen(t verbs.Thread, backlog int) error {
	return i.note(t, "listen", list(backlog), i.CMID.Listen(innerThread(t), backlog))
}

func (i *cmID) Accept(t verbs.Thread, p *verbs.ConnParam) error {
	return i.note(t, "accept", nil, i.CMID.Accept(innerThread(t), p))
}

func (i *cmID) Reject(t verbs.Thread, private []byte) error {
	return i.note(t, "reject", list(len(private)), i.CMID.Reject(innerThread(t), private))
}

func (i *cmID) Establish(t verbs.Thread) error {
	return i.note(t, "establish", nil, i.CMID.Establish(innerThread(t)))
}

func (i *cmID) Disconnect(t verbs.Thread) error {
	return i.note(t, "disconnect", nil, i.CMID.Disconnect(innerThread(t)))
}

func (i *cmID) Notify(t verbs.Thread, ev verbs.EventType) error {
	return i.note(t, "notify", list(ev), i.CMID.Notify(innerThread(t), ev))
}

func (i *cmID) JoinMulticast(t verbs.Thread, group netip.Addr, flags verbs.MulticastFlags, user any) error {
	return i.note(t, "join_multicast", list(group, flags), i.CMID.JoinMulticast(innerThread(t), group, flags, user))
}

func (i *cmID) LeaveMulticast(t verbs.Thread, group netip.Addr) error {
	return i.note(t, "leave_multicast", list(group), i.CMID.LeaveMulticast(innerThread(t), group))
}

// Migrate moves the id: later events come from the other channel.
func (i *cmID) Migrate(t verbs.Thread, to verbs.EventChannel) error {
	h, ok := to.(*eventChannel)
	if !ok {
		return i.note(t, "migrate", nil, i.CMID.Migrate(innerThread(t), to))
	}
	err := i.CMID.Migrate(innerThread(t), h.EventChannel)
	if err == nil {
		i.h = h
	}
	return i.note(t, "migrate", nil, err)
}

func (i *cmID) SetOption(t verbs.Thread, level verbs.CMOptionLevel, name int, value []byte) error {
	return i.note(t, "set_option", list(uint32(level), name, value), i.CMID.SetOption(innerThread(t), level, name, value))
}

func (i *cmID) Destroy(t verbs.Thread) error {
	return i.note(t, "destroy_id", nil, i.CMID.Destroy(innerThread(t)))
}
