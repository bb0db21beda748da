package record

import (
	"fmt"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// Calls of the connection manager. Of private data the length is recorded: programs put keys and
// addresses into it. Addresses of IP, ports and ids are symbols.

// CreateEventChannel passes through where the inner process has a connection manager.
func (p *process) CreateEventChannel(t verbs.Thread) (verbs.EventChannel, error) {
	return valueOn(p.Process, "connection manager of this target", func(m verbs.ConnectionManager) (verbs.EventChannel, error) {
		ch, err := m.CreateEventChannel(innerThread(t))
		return made(p.r, t, "create_event_channel", nil, err, func() (verbs.EventChannel, []string) { return p.r.channel(ch), nil })
	})
}

// Interfaces pass through where the inner process can list them.
func (p *process) Interfaces(t verbs.Thread) ([]verbs.Interface, error) {
	return valueOn(p.Process, "network interfaces of this target", func(l verbs.InterfaceLister) ([]verbs.Interface, error) { return l.Interfaces(innerThread(t)) })
}

func (r *Recorder) channel(ch verbs.EventChannel) verbs.EventChannel {
	return wrap(r, ch, func() *eventChannel {
		return &eventChannel{EventChannel: ch, r: r, taken: map[*verbs.CMEvent]*verbs.CMEvent{}}
	})
}

type eventChannel struct {
	verbs.EventChannel
	r *Recorder

	mu    sync.Mutex
	taken map[*verbs.CMEvent]*verbs.CMEvent // what programs have, by it the inner event; those that are not acknowledged
}

func (x *eventChannel) inner() verbs.EventChannel { return x.EventChannel }

func (ch *eventChannel) CreateID(t verbs.Thread, ps verbs.PortSpace, typ verbs.QPType, context any) (verbs.CMID, error) {
	id, err := ch.EventChannel.CreateID(innerThread(t), ps, typ, context)
	args := list(fmt.Sprintf("%#x", uint16(ps)), typ)
	if err != nil {
		ch.r.add(t, "create_id", args, err)
		return nil, err
	}
	w := ch.r.id(id)
	ch.r.add(t, "create_id", args, nil, w.name())
	return w, nil
}

// GetEvent records events, and not the waits in which none has come: how many there are depends on
// times.
func (ch *eventChannel) GetEvent(t verbs.Thread, timeout time.Duration) (*verbs.CMEvent, error) {
	in, err := ch.EventChannel.GetEvent(innerThread(t), timeout)
	args := list(seconds(timeout))
	if err != nil {
		if verbs.ErrnoOf(err) != syscall.EAGAIN {
			ch.r.add(t, "get_cm_event", args, err)
		}
		return nil, err
	}
	out := *in
	what := in.Type.String()
	if in.ID != nil {
		w := ch.r.id(in.ID)
		out.ID = w
		what += " of " + w.name()
	}
	if in.ListenID != nil {
		w := ch.r.id(in.ListenID)
		out.ListenID = w
		what += " by " + w.name()
	}
	ch.mu.Lock()
	ch.taken[&out] = in
	ch.mu.Unlock()
	ch.r.add(t, "get_cm_event", args, nil, what, fmt.Sprintf("status %d", in.Status), fmt.Sprintf("%d B of data", len(in.Conn.PrivateData)+len(in.UD.PrivateData)))
	return &out, nil
}

func (ch *eventChannel) AckEvent(t verbs.Thread, ev *verbs.CMEvent) error {
	ch.mu.Lock()
	in, ok := ch.taken[ev]
	delete(ch.taken, ev)
	ch.mu.Unlock()
	if !ok {
		in = ev
	}
	return ch.r.add(t, "ack_cm_event", list(ev.Type), ch.EventChannel.AckEvent(innerThread(t), in))
}

func (ch *eventChannel) Readable(t verbs.Thread) bool {
	return ch.EventChannel.Readable(innerThread(t))
}

func (ch *eventChannel) Destroy(t verbs.Thread) error {
	return ch.r.add(t, "destroy_event_channel", nil, ch.EventChannel.Destroy(innerThread(t)))
}

func (r *Recorder) id(id verbs.CMID) *cmID {
	return wrap(r, id, func() *cmID { return &cmID{id, r} })
}

type cmID struct {
	verbs.CMID
	r *Recorder
}

func (id *cmID) name() string { return id.r.sym("id", id.CMID) }

// note records a call of an id.
func (id *cmID) note(t verbs.Thread, call string, err error, args ...string) error {
	return id.r.add(t, call, append([]string{id.name()}, args...), err)
}

// ip is the symbol of an address with its port.
func (r *Recorder) ip(a netip.AddrPort) string {
	switch {
	case !a.Addr().IsValid():
		return "no address"
	case a.Addr().IsUnspecified():
		return r.port(a.Port())
	}
	return r.sym("ip", a.Addr()) + " " + r.port(a.Port())
}

func (r *Recorder) port(p uint16) string {
	if p == 0 {
		return "any port"
	}
	return r.sym("port", p)
}

func (id *cmID) Channel() verbs.EventChannel {
	if ch := id.CMID.Channel(); ch != nil {
		return id.r.channel(ch)
	}
	return nil
}

func (id *cmID) Verbs() verbs.Context {
	c := id.CMID.Verbs()
	if c == nil {
		return nil
	}
	return id.r.context(c)
}

func (id *cmID) QP() verbs.QP {
	if q := id.CMID.QP(); q != nil {
		return id.r.qp(q)
	}
	return nil
}

func (id *cmID) BindAddr(t verbs.Thread, a netip.AddrPort) error {
	return id.note(t, "bind_addr", id.CMID.BindAddr(innerThread(t), a), id.r.ip(a))
}

func (id *cmID) ResolveAddr(t verbs.Thread, src, dst netip.AddrPort, timeout time.Duration) error {
	return id.note(t, "resolve_addr", id.CMID.ResolveAddr(innerThread(t), src, dst, timeout), id.r.ip(src), id.r.ip(dst), seconds(timeout))
}

func (id *cmID) ResolveRoute(t verbs.Thread, timeout time.Duration) error {
	return id.note(t, "resolve_route", id.CMID.ResolveRoute(innerThread(t), timeout), seconds(timeout))
}

func (id *cmID) QueryPath(t verbs.Thread) ([]verbs.PathRecord, error) {
	l, err := id.CMID.QueryPath(innerThread(t))
	return l, id.r.add(t, "query_path", list(id.name()), err, list(len(l))...)
}

func (id *cmID) CreateQP(t verbs.Thread, p verbs.PD, a verbs.QPInitAttr) (verbs.QP, error) {
	in := a
	in.SendCQ, in.RecvCQ, in.SRQ = bare(a.SendCQ), bare(a.RecvCQ), bare(a.SRQ)
	q, err := id.CMID.CreateQP(innerThread(t), bare(p), in)
	args := list(id.name(), a.Type, fmt.Sprintf("%+v", a.Cap))
	return made(id.r, t, "rdma_create_qp", args, err, func() (verbs.QP, []string) { return id.r.qp(q), []string{id.r.qpn(q.QPN())} })
}

func (id *cmID) DestroyQP(t verbs.Thread) error {
	return id.note(t, "rdma_destroy_qp", id.CMID.DestroyQP(innerThread(t)))
}

func (id *cmID) InitQPAttr(t verbs.Thread, state verbs.QPState) (verbs.QPAttr, verbs.QPAttrMask, error) {
	a, m, err := id.CMID.InitQPAttr(innerThread(t), state)
	return a, m, id.r.add(t, "init_qp_attr", list(id.name(), state), err, mask(m))
}

// param are the parameters of a connection as a recording has them.
func param(p *verbs.ConnParam) string {
	if p == nil {
		return "the library's parameters"
	}
	return fmt.Sprintf("{%d B, responder %d, initiator %d, retry %d, rnr %d}", len(p.PrivateData), p.ResponderResources, p.InitiatorDepth, p.RetryCount, p.RNRRetryCount)
}

func (id *cmID) Connect(t verbs.Thread, p *verbs.ConnParam) error {
	return id.note(t, "connect", id.CMID.Connect(innerThread(t), p), param(p))
}

func (id *cmID) Listen(t verbs.Thread, backlog int) error {
	return id.note(t, "listen", id.CMID.Listen(innerThread(t), backlog), list(backlog)...)
}

func (id *cmID) Accept(t verbs.Thread, p *verbs.ConnParam) error {
	return id.note(t, "accept", id.CMID.Accept(innerThread(t), p), param(p))
}

func (id *cmID) Reject(t verbs.Thread, private []byte) error {
	return id.note(t, "reject", id.CMID.Reject(innerThread(t), private), fmt.Sprintf("%d B", len(private)))
}

func (id *cmID) Establish(t verbs.Thread) error {
	return id.note(t, "establish", id.CMID.Establish(innerThread(t)))
}

func (id *cmID) Disconnect(t verbs.Thread) error {
	return id.note(t, "disconnect", id.CMID.Disconnect(innerThread(t)))
}

func (id *cmID) Notify(t verbs.Thread, ev verbs.EventType) error {
	return id.note(t, "notify", id.CMID.Notify(innerThread(t), ev), list(ev)...)
}

func (id *cmID) JoinMulticast(t verbs.Thread, group netip.Addr, flags verbs.MulticastFlags, context any) error {
	return id.note(t, "join_multicast", id.CMID.JoinMulticast(innerThread(t), group, flags, context), id.r.sym("ip", group), list(flags)[0])
}

func (id *cmID) LeaveMulticast(t verbs.Thread, group netip.Addr) error {
	return id.note(t, "leave_multicast", id.CMID.LeaveMulticast(innerThread(t), group), id.r.sym("ip", group))
}

func (id *cmID) Migrate(t verbs.Thread, to verbs.EventChannel) error {
	return id.note(t, "migrate_id", id.CMID.Migrate(innerThread(t), bare(to)))
}

func (id *cmID) SetOption(t verbs.Thread, level verbs.CMOptionLevel, name int, value []byte) error {
	return id.note(t, "set_option", id.CMID.SetOption(innerThread(t), level, name, value), list(level, name, fmt.Sprintf("%d B", len(value)))...)
}

func (id *cmID) Destroy(t verbs.Thread) error {
	return id.note(t, "destroy_id", id.CMID.Destroy(innerThread(t)))
}
