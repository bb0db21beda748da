package provider

import (
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/sim/kernel/cm"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// CMID is rdma_cm_id.
type CMID struct {
	ch          *EventChannel
	h           uint32 // the kernel's name of it
	uid         uint64
	context     any
	ps          verbs.PortSpace
	typ         verbs.QPType
	dev         *cmDevice
	port        uint8
	local, peer netip.AddrPort
	qp          *QP

	initDepth, respRes uint8  // of the request
	asked              uint32 // the vendor of its options, which the answer has too (ucma_copy_ece_param_to_kern_rep)
	connectError       bool
	acks               acks
}

// Channel returns the event channel of the id.
func (id *CMID) Channel() verbs.EventChannel { return id.ch }

// Context returns the context that the program has set.
func (id *CMID) Context() any { return id.context }

// SetContext sets the context of the id.
func (id *CMID) SetContext(v any) { id.context = v }

// PortSpace returns the port space of the id.
func (id *CMID) PortSpace() verbs.PortSpace { return id.ps }

// Type returns the type of the QP that the id makes.
func (id *CMID) Type() verbs.QPType { return id.typ }

// Port returns the port of the device to which the id is bound, 0 for none.
func (id *CMID) Port() int { return int(id.port) }

// LocalAddr returns the local address and port.
func (id *CMID) LocalAddr() netip.AddrPort { return id.local }

// PeerAddr returns the address and port of the peer.
func (id *CMID) PeerAddr() netip.AddrPort { return id.peer }

// Verbs is the context that the library has opened.
func (id *CMID) Verbs() verbs.Context {
	if id.dev == nil {
		return nil
	}
	return id.dev.ctx
}

// pending keeps an event until it is acknowledged.
func (l *connections) pending(e *cmEvent) { l.events = append(l.events, e) }

// take finds an event that was not acknowledged yet.
func (l *connections) take(ev *verbs.CMEvent) *cmEvent {
	for i, e := range l.events {
		if &e.CMEvent == ev {
			l.events = append(l.events[:i], l.events[i+1:]...)
			return e
		}
	}
	return nil
}

// call is what each call of an id does: do is its work, in the thread's time.
func (id *CMID) call(vt verbs.Thread, name string, do func(t *Thread, f *cm.File) error) (err error) {
	defer Of(vt).answers(&err)
	t := id.ch.lib.enterCM(vt)
	if err := do(t, id.ch.file); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// BindAddr is rdma_bind_addr.
func (id *CMID) BindAddr(vt verbs.Thread, a netip.AddrPort) error {
	return id.call(vt, "bind_addr", func(t *Thread, f *cm.File) error {
		if err := f.Bind(t.caller, id.h, a); err != nil {
			return err
		}
		return id.query(t)
	})
}

// millis is a timeout as the kernel takes it, in whole milliseconds.
func millis(d time.Duration) time.Duration { return d.Truncate(time.Millisecond) }

// ResolveAddr is rdma_resolve_addr.
func (id *CMID) ResolveAddr(vt verbs.Thread, src, dst netip.AddrPort, timeout time.Duration) error {
	return id.call(vt, "resolve_addr", func(t *Thread, f *cm.File) error {
		if err := f.ResolveAddr(t.caller, id.h, src, dst, FromDuration(millis(timeout))); err != nil {
			return err
		}
		id.peer = dst
		return nil
	})
}

// ResolveRoute is rdma_resolve_route.
func (id *CMID) ResolveRoute(vt verbs.Thread, timeout time.Duration) error {
	return id.call(vt, "resolve_route", func(t *Thread, f *cm.File) error {
		return f.ResolveRoute(t.caller, id.h, FromDuration(millis(timeout)))
	})
}

// QueryPath is the path records of the id.
func (id *CMID) QueryPath(vt verbs.Thread) (l []verbs.PathRecord, err error) {
	err = id.call(vt, "query path", func(t *Thread, f *cm.File) (err error) {
		l, err = f.QueryPath(t.caller, id.h)
		return err
	})
	return l, err
}

// checkParam is ucma_valid_param.
func (id *CMID) checkParam(p *verbs.ConnParam) error {
	switch {
	case id.ps != verbs.PortSpaceTCP || p == nil && id.qp != nil:
		return nil
	case p == nil:
		return fmt.Errorf("no parameters, and no QP: %w", syscall.EINVAL)
	case id.dev == nil:
		return fmt.Errorf("no device: %w", syscall.EINVAL)
	case p.ResponderResources != verbs.MaxRespRes && p.ResponderResources > id.dev.maxRespRes,
		p.InitiatorDepth != verbs.MaxInitDepth && p.InitiatorDepth > id.dev.maxInitiate:
		return fmt.Errorf("%d responder resources, initiator depth %d: the device has %d and %d: %w", p.ResponderResources, p.InitiatorDepth,
			id.dev.maxRespRes, id.dev.maxInitiate, syscall.EINVAL)
	}
	return nil
}

// retries are the counts of a connection whose parameters the program leaves to the library.
const retries = 7

// fill makes the kernel's parameters of the program's.
func (id *CMID) fill(p *verbs.ConnParam) *verbs.ConnParam {
	q := verbs.ConnParam{RetryCount: retries, RNRRetryCount: retries}
	if p != nil {
		q = *p
	}
	q.InitiatorDepth, q.ResponderResources = id.initDepth, id.respRes
	if id.qp != nil {
		q.QPN, q.SRQ = id.qp.qpn, id.qp.srq != nil
	}
	return &q
}

// ece are the options that libmlx5 gives for a QP: its vendor, and no options.
func (id *CMID) ece() cm.ECE {
	if id.qp == nil {
		return cm.ECE{}
	}
	return cm.ECE{Vendor: mellanoxVendor}
}

// mellanoxVendor is the vendor of libmlx5's options, that of PCI.
const mellanoxVendor = 0x15b3

// Connect is rdma_connect.
func (id *CMID) Connect(vt verbs.Thread, p *verbs.ConnParam) error {
	return id.call(vt, "connect", func(t *Thread, f *cm.File) error {
		if err := id.checkParam(p); err != nil {
			return err
		}
		if id.dev != nil {
			id.initDepth, id.respRes = id.dev.maxInitiate, id.dev.maxRespRes
		}
		if p != nil && p.InitiatorDepth != verbs.MaxInitDepth {
			id.initDepth = p.InitiatorDepth
		}
		if p != nil && p.ResponderResources != verbs.MaxRespRes {
			id.respRes = p.ResponderResources
		}
		return f.Connect(t.caller, id.h, id.fill(p), id.ece())
	})
}

// Listen is rdma_listen.
func (id *CMID) Listen(vt verbs.Thread, backlog int) error {
	return id.call(vt, "listen", func(t *Thread, f *cm.File) error {
		if err := f.Listen(t.caller, id.h, backlog); err != nil {
			return err
		}
		return id.query(t)
	})
}

// Accept is rdma_accept.
func (id *CMID) Accept(vt verbs.Thread, p *verbs.ConnParam) error {
	return id.call(vt, "accept", func(t *Thread, f *cm.File) error {
		if err := id.checkParam(p); err != nil {
			return err
		}
		if id.dev == nil {
			return fmt.Errorf("no device: %w", syscall.EINVAL)
		}
		id.initDepth, id.respRes = min(id.initDepth, id.dev.maxInitiate), min(id.respRes, id.dev.maxRespRes)
		if p != nil && p.InitiatorDepth != verbs.MaxInitDepth {
			id.initDepth = p.InitiatorDepth
		}
		if p != nil && p.ResponderResources != verbs.MaxRespRes {
			id.respRes = p.ResponderResources
		}
		if id.qp != nil && id.typ != verbs.QPTUD {
			if err := id.bringUp(t, id.respRes, id.initDepth); err != nil {
				return err
			}
		}
		if err := f.Accept(t.caller, id.h, id.uid, id.fill(p), cm.ECE{Vendor: id.asked}); err != nil {
			_ = id.endQP(t)
			return err
		}
		return nil
	})
}

// Reject is rdma_reject.
func (id *CMID) Reject(vt verbs.Thread, private []byte) error {
	return id.call(vt, "reject", func(t *Thread, f *cm.File) error { return f.Reject(t.caller, id.h, 0, private) })
}

// Establish is rdma_establish.
func (id *CMID) Establish(vt verbs.Thread) error {
	return id.call(vt, "establish", func(t *Thread, f *cm.File) error {
		if id.qp != nil {
			return fmt.Errorf("the library has done it: %w", syscall.EINVAL)
		}
		return f.Accept(t.caller, id.h, 0, nil, cm.ECE{})
	})
}

// Disconnect is rdma_disconnect.
func (id *CMID) Disconnect(vt verbs.Thread) error {
	return id.call(vt, "disconnect", func(t *Thread, f *cm.File) error {
		if err := id.endQP(t); err != nil {
			return err
		}
		return f.Disconnect(t.caller, id.h)
	})
}

// Notify is rdma_notify.
func (id *CMID) Notify(vt verbs.Thread, ev verbs.EventType) error {
	return id.call(vt, "notify", func(t *Thread, f *cm.File) error { return f.Notify(t.caller, id.h, ev) })
}

// JoinMulticast is rdma_join_multicast_ex.
func (id *CMID) JoinMulticast(vt verbs.Thread, a netip.Addr, flags verbs.MulticastFlags, context any) error {
	return id.call(vt, "join_multicast", func(t *Thread, f *cm.File) error {
		l := &id.ch.lib.cm
		l.last++
		g := &cmGroup{id: id, uid: l.last, addr: a, flags: flags, context: context}
		h, err := f.JoinMulticast(t.caller, id.h, g.uid, a, flags)
		if err != nil {
			return err
		}
		g.h = h
		l.groups[g.uid] = g
		return nil
	})
}

// LeaveMulticast is rdma_leave_multicast.
func (id *CMID) LeaveMulticast(vt verbs.Thread, a netip.Addr) error {
	return id.call(vt, "leave_multicast", func(t *Thread, f *cm.File) error {
		g := id.group(a)
		if g == nil {
			return fmt.Errorf("%v: the id has not joined it: %w", a, syscall.EADDRNOTAVAIL)
		}
		if g.on && id.qp != nil {
			_ = id.qp.DetachMcast(t, g.mgid, g.mlid)
		}
		n, err := f.LeaveMulticast(t.caller, g.h)
		if err != nil {
			return err
		}
		delete(id.ch.lib.cm.groups, g.uid)
		g.acks.wait(t, n, "a multicast group")
		return nil
	})
}

// group is the first membership of an address.
func (id *CMID) group(a netip.Addr) *cmGroup {
	var first *cmGroup
	for _, g := range id.ch.lib.cm.groups {
		if g.id == id && g.addr == a && (first == nil || g.uid < first.uid) {
			first = g
		}
	}
	return first
}

// Migrate is rdma_migrate_id.
func (id *CMID) Migrate(vt verbs.Thread, to verbs.EventChannel) error {
	return id.call(vt, "migrate_id", func(t *Thread, f *cm.File) error {
		ch, ok := to.(*EventChannel)
		if !ok || ch.lib != id.ch.lib {
			return fmt.Errorf("a channel of another process: %w", syscall.EINVAL)
		}
		n, err := ch.file.MigrateID(t.caller, id.h, f)
		if err != nil {
			return err
		}
		id.acks.wait(t, n, "an id that migrates")
		id.ch = ch
		return nil
	})
}

// SetOption is rdma_set_option.
func (id *CMID) SetOption(vt verbs.Thread, level verbs.CMOptionLevel, name int, value []byte) error {
	return id.call(vt, "set_option", func(t *Thread, f *cm.File) error { return f.SetOption(t.caller, id.h, level, name, value) })
}

// Destroy is rdma_destroy_id.
func (id *CMID) Destroy(vt verbs.Thread) error {
	return id.call(vt, "destroy_id", func(t *Thread, f *cm.File) error {
		n, err := f.DestroyID(t.caller, id.h)
		if err != nil {
			return err
		}
		if !t.breaks(rule.EventsAreAwaitedByDestroy) {
			id.acks.wait(t, n, "an id")
		}
		delete(id.ch.lib.cm.ids, id.uid)
		return nil
	})
}
