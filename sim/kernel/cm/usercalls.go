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

func (f *File) bind(c kernel.Caller, id uint32, a netip.AddrPort) error {
	return f.do(c, id, false, func(u *user) error { return u.x.bind(a, f.owner.NetBindService) })
}

func (f *File) resolveAddr(c kernel.Caller, id uint32, src, dst netip.AddrPort, timeout sim.Time) error {
	return f.do(c, id, false, func(u *user) error { return u.x.resolveAddr(src, dst, timeout) })
}

func (f *File) resolveRoute(c kernel.Caller, id uint32, timeout sim.Time) error {
	return f.do(c, id, true, func(u *user) error { return u.x.resolveRoute(timeout) })
}

func (f *File) queryAddr(c kernel.Caller, id uint32) (a Addr, err error) {
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

func (f *File) queryGID(c kernel.Caller, id uint32) (g GIDs, err error) {
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

func (f *File) queryPath(c kernel.Caller, id uint32) (l []verbs.PathRecord, err error) {
	err = f.do(c, id, false, func(u *user) error {
		if u.x.path != nil {
			l = append(l, u.x.path.PathRecord)
		}
		return nil
	})
	return l, err
}

func (f *File) initQPAttr(c kernel.Caller, id uint32, to verbs.QPState) (a verbs.QPAttr, mask verbs.QPAttrMask, err error) {
	err = f.do(c, id, true, func(u *user) error {
		if to > verbs.QPSErr {
			return fmt.Errorf("attributes of state %v: %w", to, errInvalid)
		}
		a, mask, err = u.x.qpAttr(to)
		return err
	})
	return a, mask, err
}

func (f *File) connect(c kernel.Caller, id uint32, p *verbs.ConnParam, ece ECE) error {
	if p == nil {
		f.m.enter(c)
		return fmt.Errorf("connect without parameters: %w", errInvalid)
	}
	return f.do(c, id, true, func(u *user) error { return u.x.connect(p, ece) })
}

func (f *File) listen(c kernel.Caller, id uint32, backlog int) error {
	return f.do(c, id, false, func(u *user) error {
		if backlog <= 0 || backlog > maxBacklog {
			backlog = maxBacklog
		}
		u.backlog = backlog
		return u.x.listen(f.owner.NetBindService)
	})
}

func (f *File) accept(c kernel.Caller, id uint32, uid uint64, p *verbs.ConnParam, ece ECE) error {
	return f.do(c, id, true, func(u *user) error {
		err := u.x.accept(p, ece)
		if err == nil && p != nil {
			u.uid = uid
		}
		return err
	})
}

func (f *File) reject(c kernel.Caller, id uint32, reason uint8, private []byte) error {
	r, err := rejectReason(reason)
	if err != nil {
		f.m.enter(c)
		return err
	}
	return f.do(c, id, true, func(u *user) error { return u.x.reject(r, private) })
}

func (f *File) disconnect(c kernel.Caller, id uint32) error {
	return f.do(c, id, true, func(u *user) error { return u.x.disconnect() })
}

func (f *File) notifyID(c kernel.Caller, id uint32, ev verbs.EventType) error {
	return f.do(c, id, false, func(u *user) error {
		if u.x.port == nil {
			return fmt.Errorf("notify of an id without a device: %w", errInvalid)
		}
		return u.x.notify(ev)
	})
}

func (f *File) joinMulticast(c kernel.Caller, id uint32, uid uint64, a netip.Addr, flags verbs.MulticastFlags) (handle uint32, err error) {
	err = f.do(c, id, true, func(u *user) error {
		g, err := u.x.join(a, flags)
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

func (f *File) leaveMulticast(c kernel.Caller, handle uint32) (uint32, error) {
	f.m.enter(c)
	s := &f.m.users
	g := s.groups[handle]
	switch {
	case g == nil:
		return 0, fmt.Errorf("multicast handle %d: %w", handle, syscall.ENOENT)
	case g.u.f != f:
		return 0, fmt.Errorf("multicast handle %d is of another channel: %w", handle, errInvalid)
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

func (f *File) setOption(c kernel.Caller, id uint32, level verbs.CMOptionLevel, name int, value []byte) error {
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
