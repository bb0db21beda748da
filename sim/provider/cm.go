package provider

import (
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/kernel/cm"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// connections is what librdmacm keeps in a process (cma.c of rdma-core 44): the devices that it has
// opened, and its ids by what the kernel calls them in events.
type connections struct {
	devices []*cmDevice
	ids     map[uint64]*CMID
	groups  map[uint64]*cmGroup
	last    uint64
	events  []*cmEvent // that are not acknowledged
}

// cmDevice is a device that the library has opened, with a PD for QPs without one; it stays open.
type cmDevice struct {
	kernel      *kernel.Device
	ctx         *Context
	pd          *PD
	maxRespRes  uint8
	maxInitiate uint8
}

// EventChannel is rdma_event_channel.
type EventChannel struct {
	lib    *Process
	file   *cm.File
	fd     *descriptor
	lookup func(*kernel.Device) *Device
	closed bool
}

// CreateEventChannel is rdma_create_event_channel. lookup finds the entry of the process for a
// device of the kernel.
func (p *Process) CreateEventChannel(vt verbs.Thread, m *cm.Manager, lookup func(*kernel.Device) *Device) (_ verbs.EventChannel, err error) {
	defer Of(vt).answers(&err)
	t := p.enterCM(vt)
	if p.cm.ids == nil {
		p.cm.ids, p.cm.groups = map[uint64]*CMID{}, map[uint64]*cmGroup{}
	}
	ch := &EventChannel{lib: p, file: m.Open(t.caller, p.K), lookup: lookup}
	ch.fd = &descriptor{release: ch.file.Close}
	p.openFD(ch.fd)
	return ch, nil
}

// enterCM is what each call of the library does first.
func (p *Process) enterCM(vt verbs.Thread) *Thread {
	t := Of(vt)
	t.Core.Run(t.P, p.Params.Control)
	t.P.Sync()
	return t
}

// Destroy is rdma_destroy_event_channel.
func (ch *EventChannel) Destroy(vt verbs.Thread) error {
	t := ch.lib.enterCM(vt)
	if ch.closed {
		return fmt.Errorf("destroy_event_channel: %w", syscall.EBADF)
	}
	ch.closed = true
	ch.file.Close(t.caller)
	ch.lib.forgetFD(ch.fd)
	return nil
}

// Readable is poll of the channel's descriptor.
func (ch *EventChannel) Readable(vt verbs.Thread) bool {
	ch.lib.enterCM(vt)
	return ch.file.Readable()
}

// newID makes the library's part of an id.
func (ch *EventChannel) newID(ps verbs.PortSpace, typ verbs.QPType, context any) *CMID {
	l := &ch.lib.cm
	l.last++
	id := &CMID{ch: ch, uid: l.last, ps: ps, typ: typ, context: context}
	l.ids[id.uid] = id
	return id
}

// CreateID is rdma_create_id.
func (ch *EventChannel) CreateID(vt verbs.Thread, ps verbs.PortSpace, typ verbs.QPType, context any) (_ verbs.CMID, err error) {
	defer Of(vt).answers(&err)
	t := ch.lib.enterCM(vt)
	switch {
	case ps == verbs.PortSpaceUDP || ps == verbs.PortSpaceIPoIB:
		typ = verbs.QPTUD
	case ps != verbs.PortSpaceIB || typ == 0:
		typ = verbs.QPTRC
	}
	id := ch.newID(ps, typ, context)
	if id.h, err = ch.file.CreateID(t.caller, id.uid, ps, typ); err != nil {
		delete(ch.lib.cm.ids, id.uid)
		return nil, fmt.Errorf("create_id: %w", err)
	}
	return id, nil
}

// device is ucma_get_device: the library opens a device when it sees it first.
func (ch *EventChannel) device(vt verbs.Thread, d *kernel.Device) (*cmDevice, error) {
	l := &ch.lib.cm
	for _, x := range l.devices {
		if x.kernel == d {
			return x, nil
		}
	}
	entry := ch.lookup(d)
	if entry == nil {
		return nil, fmt.Errorf("%s is not in the list of devices: %w", d.Name(), syscall.ENODEV)
	}
	c, err := entry.Open(vt)
	if err != nil {
		return nil, err
	}
	x := &cmDevice{kernel: d, ctx: c.(*Context)}
	pd, err := c.AllocPD(vt)
	if err != nil {
		return nil, err
	}
	x.pd = pd.(*PD)
	a := &x.ctx.attr
	x.maxRespRes, x.maxInitiate = uint8(min(a.MaxQPRdAtom, 0xff)), uint8(min(a.MaxQPInitRdAtom, 0xff))
	l.devices = append(l.devices, x)
	return x, nil
}

// GetEvent is rdma_get_cm_event.
func (ch *EventChannel) GetEvent(vt verbs.Thread, timeout time.Duration) (_ *verbs.CMEvent, err error) {
	defer Of(vt).answers(&err)
	t := ch.lib.enterCM(vt)
	deadline := t.until(timeout)
	for {
		e, err := ch.file.GetEvent(t.caller, deadline)
		if err != nil {
			return nil, fmt.Errorf("get_cm_event: %w", err)
		}
		if out := ch.process(t, &e); out != nil {
			return out, nil
		}
	}
}

// process makes the program's event of the kernel's; nil: the program gets none.
func (ch *EventChannel) process(t *Thread, e *cm.Event) *verbs.CMEvent {
	l := &ch.lib.cm
	out := &cmEvent{CMEvent: verbs.CMEvent{Type: e.Type, Status: int(e.Status)}}
	var id *CMID
	if e.Type == verbs.CMMulticastJoin || e.Type == verbs.CMMulticastError {
		g := l.groups[e.UID]
		if g == nil {
			return nil
		}
		id, out.group = g.id, g
		out.Multicast = g.context
	} else {
		id = l.ids[e.UID]
	}
	if id == nil {
		return nil
	}
	out.id, out.ID, out.Conn, out.UD = id, id, e.Conn, e.UD
	switch e.Type {
	case verbs.CMAddrResolved:
		if err := id.query(t); err != nil {
			out.Type, out.Status = verbs.CMAddrError, -int(verbs.ErrnoOf(err))
		}
	case verbs.CMConnectRequest:
		if !id.request(t, e, out) {
			return nil
		}
	case verbs.CMConnectResponse:
		id.response(t, e, out)
	case verbs.CMRejected, verbs.CMDisconnected:
		if id.connectError {
			id.acks.ack(t, 1)
			return nil
		}
		if e.Type == verbs.CMRejected && !t.breaks(rule.RefusedConnectionsEndTheirQP) {
			_ = id.endQP(t)
		}
	case verbs.CMMulticastJoin:
		if err := out.group.joined(t, e.UD.AH.GRH.DGID, e.UD.AH.DLID); err != nil {
			out.Type, out.Status = verbs.CMMulticastError, -int(verbs.ErrnoOf(err))
		}
	}
	l.pending(out)
	return &out.CMEvent
}

// cmEvent is an event with what its acknowledgement counts for.
type cmEvent struct {
	verbs.CMEvent
	id    *CMID // of a request the listener
	group *cmGroup
}

// request is ucma_process_conn_req: the new id has the context of its listener. It is refused if it
// cannot be made.
func (id *CMID) request(t *Thread, e *cm.Event, out *cmEvent) bool {
	ch := id.ch
	n := ch.newID(id.ps, id.typ, id.context)
	n.h, n.initDepth, n.respRes, n.asked = e.ID, e.Conn.InitiatorDepth, e.Conn.ResponderResources, e.ECE.Vendor
	if err := n.query(t); err != nil {
		_, _ = ch.file.DestroyID(t.caller, n.h)
		delete(ch.lib.cm.ids, n.uid)
		id.acks.ack(t, 1)
		return false
	}
	out.ID, out.ListenID = n, id
	return true
}

// response is what the library does when a REP has come (ucma_process_conn_resp).
func (id *CMID) response(t *Thread, e *cm.Event, out *cmEvent) {
	if id.qp == nil {
		return
	}
	var err error
	if v := e.ECE.Vendor; v != 0 && v != id.ece().Vendor {
		err = fmt.Errorf("the answer has options of vendor %#x: %w", v, syscall.EINVAL)
	}
	if err == nil {
		err = id.bringUp(t, verbs.MaxRespRes, verbs.MaxInitDepth)
	}
	if err == nil {
		err = id.ch.file.Accept(t.caller, id.h, 0, nil, cm.ECE{})
	}
	if err != nil {
		_ = id.endQP(t)
		id.connectError = true
		out.Type, out.Status = verbs.CMConnectError, -int(verbs.ErrnoOf(err))
		return
	}
	out.Type = verbs.CMEstablished
}

// query is ucma_query_addr: the kernel knows addresses and device.
func (id *CMID) query(t *Thread) error {
	a, err := id.ch.file.QueryAddr(t.caller, id.h)
	if err != nil {
		return err
	}
	id.local, id.peer = a.Src, a.Dst
	if a.Device == nil || id.dev != nil {
		return nil
	}
	id.port = a.Port
	id.dev, err = id.ch.device(t, a.Device)
	return err
}

// AckEvent is rdma_ack_cm_event.
func (ch *EventChannel) AckEvent(vt verbs.Thread, ev *verbs.CMEvent) error {
	t := ch.lib.enterCM(vt)
	e := ch.lib.cm.take(ev)
	if e == nil {
		return fmt.Errorf("ack_cm_event: the event is not one of the channel, or was acknowledged: %w", syscall.EINVAL)
	}
	if e.group != nil {
		e.group.acks.ack(t, 1)
	}
	e.id.acks.ack(t, 1)
	return nil
}

// cmGroup is a multicast group that an id has joined (struct cma_multicast).
type cmGroup struct {
	id      *CMID
	uid     uint64
	h       uint32
	addr    netip.Addr
	flags   verbs.MulticastFlags
	context any
	mgid    verbs.GID
	mlid    uint16
	on      bool // the QP is attached
	acks    acks
}

// joined is ucma_process_join: the id's QP is attached, unless it only sends.
func (g *cmGroup) joined(t *Thread, mgid verbs.GID, mlid uint16) error {
	g.mgid, g.mlid = mgid, mlid
	sends := g.flags&verbs.MulticastSendOnly != 0 && !t.breaks(rule.SendOnlyMembersAreNotAttached)
	if sends || g.id.qp == nil {
		return nil
	}
	if err := g.id.qp.AttachMcast(t, mgid, mlid); err != nil {
		return err
	}
	g.on = true
	return nil
}
