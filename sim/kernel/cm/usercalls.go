package cm

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// do is a command on an id; device: it needs one.
func (f *File) do(c kernel.Caller, id uint32, device bool, what func(u *user) error) error {
	f.m.enter(c)
	get := f.find
	if device {
		get = f.findOnDevice
	}
	u, err := get(id)
	if err != nil {
		return err
	}
	return what(u)
}

// Bind is BIND and BIND_IP.
func (f *File) Bind(c kernel.Caller, id uint32, addr netip.AddrPort) error {
	return f.do(c, id, false, func(u *user) error { return u.x.bind(addr, f.owner.NetBindService) })
}

// ResolveAddr is RESOLVE_ADDR and RESOLVE_IP: the zero src is an absent one.
func (f *File) ResolveAddr(c kernel.Caller, id uint32, src, dst netip.AddrPort, timeout sim.Time) error {
	return f.do(c, id, false, func(u *user) error { return u.x.resolveAddr(src, dst, timeout) })
}

// ResolveRoute is RESOLVE_ROUTE.
func (f *File) ResolveRoute(c kernel.Caller, id uint32, timeout sim.Time) error {
	return f.do(c, id, true, func(u *user) error { return u.x.resolveRoute(timeout) })
}

// QueryAddr is QUERY of the addresses.
func (f *File) QueryAddr(c kernel.Caller, id uint32) (a Addr, err error) {
	err = f.do(c, id, false, func(u *user) error {
		a = u.addr()
		return nil
	})
	return a, err
}

func (u *user) addr() Addr {
	x := u.x
	a := Addr{Src: x.src, Dst: x.dst}
	if x.port != nil {
		a.Device, a.NodeGUID, a.Port, a.PKey = x.port.d, x.port.d.NodeGUID(), 1, x.pkey
	}
	return a
}

// QueryGID is QUERY of the GIDs.
func (f *File) QueryGID(c kernel.Caller, id uint32) (g GIDs, err error) {
	err = f.do(c, id, false, func(u *user) error {
		g.Addr = u.addr()
		if x := u.x; x.port != nil {
			g.SGID, g.DGID = x.sourceGID(), x.destinationGID()
			g.SrcSID, g.DstSID = service(x.ps, x.src.Port()), service(x.ps, x.dst.Port())
		}
		return nil
	})
	return g, err
}

// QueryPath is QUERY of the path records, and what QUERY_ROUTE has of them.
func (f *File) QueryPath(c kernel.Caller, id uint32) (l []verbs.PathRecord, err error) {
	err = f.do(c, id, false, func(u *user) error {
		if u.x.path != nil {
			l = append(l, u.x.path.PathRecord)
		}
		return nil
	})
	return l, err
}

// InitQPAttr is INIT_QP_ATTR.
func (f *File) InitQPAttr(c kernel.Caller, id uint32, to verbs.QPState) (a verbs.QPAttr, mask verbs.QPAttrMask, err error) {
	err = f.do(c, id, true, func(u *user) error {
		if to > verbs.QPSErr {
			return fmt.Errorf("attributes of state %v: %w", to, errInvalid)
		}
		a, mask, err = u.x.qpAttr(to)
		return err
	})
	return a, mask, err
}

// Connect is CONNECT. The number of the QP is in p.
func (f *File) Connect(c kernel.Caller, id uint32, p *verbs.ConnParam, ece ECE) error {
	if p == nil {
		f.m.enter(c)
		return fmt.Errorf("connect without parameters: %w", errInvalid)
	}
	return f.do(c, id, true, func(u *user) error { return u.x.connect(p, ece) })
}

// Listen is LISTEN. Backlog 0, and what is beyond the limit, is the limit.
func (f *File) Listen(c kernel.Caller, id uint32, backlog int) error {
	return f.do(c, id, false, func(u *user) error {
		if backlog <= 0 || backlog > maxBacklog {
			backlog = maxBacklog
		}
		u.backlog = backlog
		return u.x.listen(f.owner.NetBindService)
	})
}

// Accept is ACCEPT. With p the id of a connection request answers it and has its events under uid
// from then on; nil (valid = 0) is the end of an active connection.
func (f *File) Accept(c kernel.Caller, id uint32, uid uint64, p *verbs.ConnParam, ece ECE) error {
	return f.do(c, id, true, func(u *user) error {
		err := u.x.accept(p, ece)
		if err == nil && p != nil {
			u.uid = uid
		}
		return err
	})
}

// Reject is REJECT. Reason 0 stands for 28, consumer defined.
func (f *File) Reject(c kernel.Caller, id uint32, reason uint8, private []byte) error {
	r, err := rejectReason(reason)
	if err != nil {
		f.m.enter(c)
		return err
	}
	return f.do(c, id, true, func(u *user) error { return u.x.reject(r, private) })
}

// Disconnect is DISCONNECT.
func (f *File) Disconnect(c kernel.Caller, id uint32) error {
	return f.do(c, id, true, func(u *user) error { return u.x.disconnect() })
}

// Notify is NOTIFY.
func (f *File) Notify(c kernel.Caller, id uint32, ev verbs.EventType) error {
	return f.do(c, id, false, func(u *user) error {
		if u.x.port == nil {
			return fmt.Errorf("notify of an id without a device: %w", errInvalid)
		}
		return u.x.notify(ev)
	})
}

// JoinMulticast is JOIN_MCAST and JOIN_IP_MCAST. It returns the group's handle.
func (f *File) JoinMulticast(c kernel.Caller, id uint32, uid uint64, group netip.Addr, flags verbs.MulticastFlags) (handle uint32, err error) {
	err = f.do(c, id, true, func(u *user) error {
		g, err := u.x.join(group, flags)
		if err != nil {
			return err
		}
		s := &f.m.users
		handle = s.groupNumbers.take()
		s.groups[handle] = &userGroup{u: u, handle: handle, uid: uid, g: g}
		if u.groups == nil {
			u.groups = map[*membership]*userGroup{}
		}
		u.groups[g] = s.groups[handle]
		return nil
	})
	return handle, err
}

// LeaveMulticast is LEAVE_MCAST, by the group's handle. It returns how many events of the group
// were taken.
func (f *File) LeaveMulticast(c kernel.Caller, handle uint32) (reported uint32, err error) {
	f.m.enter(c)
	s := &f.m.users
	g := s.groups[handle]
	switch {
	case g == nil:
		return 0, fmt.Errorf("multicast handle %d: %w", handle, syscall.ENOENT)
	case g.u.f != f:
		return 0, fmt.Errorf("multicast handle %d belongs to another channel: %w", handle, errInvalid)
	}
	delete(s.groups, handle)
	s.groupNumbers.give(handle)
	delete(g.u.groups, g.g)
	g.u.x.leave(g.g)
	f.events = slices.DeleteFunc(f.events, func(q queued) bool { return q.group == g })
	return g.reported, nil
}

// Lengths of options.
const (
	intSize      = 4
	pathDataSize = 8 + mad.PathRecordSize
	pathFlags    = 0x2b // of the record that counts: GMP, primary, both directions
)

// SetOption is SET_OPTION, with the value's bytes in the order of the host.
func (f *File) SetOption(c kernel.Caller, id uint32, level verbs.CMOptionLevel, name int, value []byte) error {
	return f.do(c, id, false, func(u *user) error {
		switch level {
		case verbs.CMOptionID:
			return u.setIDOption(name, value)
		case verbs.CMOptionIB:
			if name == verbs.CMOptionIBPath {
				return u.setPath(value)
			}
		}
		return fmt.Errorf("option %d of level %d: %w", name, level, syscall.ENOSYS)
	})
}

// setIDOption is ucma_set_option_id.
func (u *user) setIDOption(name int, value []byte) error {
	want := 1
	switch name {
	case verbs.CMOptionTOS, verbs.CMOptionACKTimeout:
	case verbs.CMOptionReuseAddr, verbs.CMOptionAFOnly:
		want = intSize
	default:
		return fmt.Errorf("option %d of an id: %w", name, syscall.ENOSYS)
	}
	if len(value) != want {
		return fmt.Errorf("option %d of an id has %d bytes, not %d: %w", name, want, len(value), errInvalid)
	}
	on := slices.ContainsFunc(value, func(b byte) bool { return b != 0 })
	switch name {
	case verbs.CMOptionTOS:
		u.x.setTOS(value[0])
		return nil
	case verbs.CMOptionReuseAddr:
		return u.x.setReuse(on)
	case verbs.CMOptionAFOnly:
		return u.x.setAFOnly(on)
	}
	return u.x.setACKTimeout(value[0])
}

// setPath is ucma_set_ib_path: the program knows the route.
func (u *user) setPath(value []byte) error {
	x := u.x
	if len(value) == 0 || len(value)%pathDataSize != 0 {
		return fmt.Errorf("%d B of path records of %d: %w", len(value), pathDataSize, errInvalid)
	}
	for ; len(value) > 0; value = value[pathDataSize:] {
		if value[0] != pathFlags || value[1]|value[2]|value[3] != 0 {
			continue
		}
		switch {
		case x.port == nil:
			return fmt.Errorf("a path of an id without a device: %w", errInvalid)
		case x.state != addrResolved:
			return x.wrongState("path")
		}
		x.path = &path{port: x.port, sgid: x.sgid, PathRecord: recordOf(mad.PathRecord(value[8:pathDataSize]))}
		x.state = routeResolved
		x.report(&idEvent{typ: verbs.CMRouteResolved})
		return nil
	}
	return fmt.Errorf("no path record with flags %#x: %w", pathFlags, errInvalid)
}

// recordOf reads a path record.
func recordOf(r mad.PathRecord) verbs.PathRecord {
	_, mtu := r.MTU()
	_, rate := r.Rate()
	_, life := r.Lifetime()
	return verbs.PathRecord{DGID: verbs.GID(r.DGID()), SGID: verbs.GID(r.SGID()), DLID: r.DLID(), SLID: r.SLID(), FlowLabel: r.FlowLabel(),
		HopLimit: r.HopLimit(), TrafficClass: r.TrafficClass(), Reversible: r.Reversible(), NumPath: r.Number(), PKey: r.PKey(), SL: r.SL(),
		MTU: verbs.MTU(mtu), Rate: rate, Lifetime: life}
}
