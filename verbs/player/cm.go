package player

import (
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// Commands of the connection manager. Channels and ids are counted from 1, as all objects are; the
// id of a connection request comes with its event. Addresses in Data are 4 or 16 bytes; none is the
// wildcard of IPv4.
const (
	// CMChannel makes an event channel. Values: channel.
	CMChannel = "cm-channel"
	// CMCreate: args channel, ps, type. Values: id.
	CMCreate = "cm-id"
	// CMBind: args id, port. Data: the address. Values: port.
	CMBind = "cm-bind"
	// CMListen: args id, backlog.
	CMListen = "cm-listen"
	// CMResolve resolves address and route. Args: id, port, timeout. Data: the destination.
	CMResolve = "cm-resolve"
	// CMAddress and CMRoute are its steps, which do not wait. Args: id, port, timeout. Data: the
	// destination.
	CMAddress = "cm-address"
	CMRoute   = "cm-route"
	// CMConnect: args id, resp, init, retry, rnr. Data: private data.
	CMConnect = "cm-connect"
	// CMEvent takes an event and acknowledges it. Args: channel, timeout. Values: type, status (of
	// 64 bits with its sign), id, resp, init, retry, rnr, qpn, qkey. Data: private data. EAGAIN:
	// none came.
	CMEvent = "cm-event"
	// CMQP makes a QP of an id, with a PD and a CQ for which Wait waits from then on. Args: id.
	// Values: qp, qpn, pd.
	CMQP = "cm-qp"
	// CMAccept: args id, resp, init, rnr, qkey. Data: private data.
	CMAccept = "cm-accept"
	// CMReject: args id. Data: private data.
	CMReject = "cm-reject"
	// CMDisconnect: args id.
	CMDisconnect = "cm-disconnect"
	// CMAttr says what the kernel gives for a state. Args: id, state. Values: mask, rq_psn, sq_psn,
	// dest_qpn, rnr_retry, retry, timeout, mtu.
	CMAttr = "cm-attr"
	// CMJoin and CMLeave: args id, flags. Data: the group.
	CMJoin  = "cm-join"
	CMLeave = "cm-leave"
	// CMDestroy destroys an id, and the QP that it has.
	CMDestroy = "cm-destroy"
	// CMAddresses are those of ids. Args: id. Values: port, peer_port. Data: the id's own address,
	// then the peer's, 16 bytes each.
	CMAddresses = "cm-addresses"
	// CMInterface is the address of IP of the device's port, by verbs.InterfaceAddr. Data: 4 or 16
	// bytes.
	CMInterface = "cm-interface"
)

func (a *Agent) cmHandlers() map[string]handler {
	return map[string]handler{
		CMChannel: a.cmChannel, CMCreate: a.cmCreate, CMBind: a.cmBind, CMListen: a.onID(listen), CMResolve: a.cmResolve, CMConnect: a.onID(connectID),
		CMEvent: a.cmEvent, CMQP: a.cmQP, CMAccept: a.onID(accept), CMReject: a.onID(reject), CMDisconnect: a.onID(disconnect), CMAttr: a.onID(attr),
		CMJoin: a.onID(join), CMLeave: a.onID(leave), CMDestroy: a.cmDestroy, CMAddresses: a.onID(addresses), CMInterface: a.cmInterface, CMAddress: a.onID(resolveAddress), CMRoute: a.onID(resolveRoute),
	}
}

// errNoCM is the answer where processes have no connection manager.
var errNoCM = fmt.Errorf("player: the processes of this target have no connection manager: %w", syscall.EOPNOTSUPP)

func (a *Agent) cmChannel(t verbs.Thread, _ verbs.PlayerCommand, r *verbs.PlayerReply) error {
	m, ok := t.Process().(verbs.ConnectionManager)
	if !ok {
		return errNoCM
	}
	ch, err := m.CreateEventChannel(t)
	if err != nil {
		return err
	}
	a.cmChannels = append(a.cmChannels, ch)
	r.Values["channel"] = uint64(len(a.cmChannels))
	return nil
}

// keepID gives an id its number.
func (a *Agent) keepID(id verbs.CMID, r *verbs.PlayerReply) {
	a.cmIDs = append(a.cmIDs, id)
	r.Values["id"] = uint64(len(a.cmIDs))
}

func (a *Agent) cmCreate(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	ch, err := pick(a.cmChannels, c.Args["channel"], "event channel")
	if err != nil {
		return err
	}
	id, err := ch.CreateID(t, verbs.PortSpace(c.Args["ps"]), verbs.QPType(c.Args["type"]), nil)
	if err != nil {
		return err
	}
	a.keepID(id, r)
	return nil
}

// onID is a handler of a command on an id.
func (a *Agent) onID(do func(verbs.Thread, verbs.CMID, verbs.PlayerCommand, *verbs.PlayerReply) error) handler {
	return func(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
		id, err := pick(a.cmIDs, c.Args["id"], "id")
		if err != nil {
			return err
		}
		if id == nil {
			return fmt.Errorf("player: id %d was destroyed: %w", c.Args["id"], syscall.ENOENT)
		}
		return do(t, id, c, r)
	}
}

// address is that of a command.
func address(c verbs.PlayerCommand) netip.AddrPort {
	ip, ok := netip.AddrFromSlice(c.Data)
	if !ok {
		ip = netip.IPv4Unspecified()
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(c.Args["port"]))
}

func (a *Agent) cmBind(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	return a.onID(func(t verbs.Thread, id verbs.CMID, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
		if err := id.BindAddr(t, address(c)); err != nil {
			return err
		}
		r.Values["port"] = uint64(id.LocalAddr().Port())
		return nil
	})(t, c, r)
}

func listen(t verbs.Thread, id verbs.CMID, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	return id.Listen(t, int(c.Args["backlog"]))
}

// cmResolve waits for the events of both steps.
func (a *Agent) cmResolve(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	return a.onID(func(t verbs.Thread, id verbs.CMID, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
		d := time.Duration(c.Args["timeout"])
		if err := id.ResolveAddr(t, netip.AddrPort{}, address(c), d); err != nil {
			return err
		}
		if err := awaitEvent(t, id, verbs.CMAddrResolved, d); err != nil {
			return err
		}
		if err := id.ResolveRoute(t, d); err != nil {
			return err
		}
		return awaitEvent(t, id, verbs.CMRouteResolved, d)
	})(t, c, r)
}

func resolveAddress(t verbs.Thread, id verbs.CMID, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	return id.ResolveAddr(t, netip.AddrPort{}, address(c), time.Duration(c.Args["timeout"]))
}

func resolveRoute(t verbs.Thread, id verbs.CMID, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	return id.ResolveRoute(t, time.Duration(c.Args["timeout"]))
}

func awaitEvent(t verbs.Thread, id verbs.CMID, want verbs.CMEventType, timeout time.Duration) error {
	ch := id.Channel()
	ev, err := ch.GetEvent(t, 2*timeout)
	if err != nil {
		return err
	}
	typ, status := ev.Type, ev.Status
	if err := ch.AckEvent(t, ev); err != nil {
		return err
	}
	if typ != want || status != 0 {
		return fmt.Errorf("player: event %v with status %d, not %v: %w", typ, status, want, syscall.EPROTO)
	}
	return nil
}

// param are the parameters of a connection in a command.
func param(c verbs.PlayerCommand) *verbs.ConnParam {
	return &verbs.ConnParam{PrivateData: c.Data, ResponderResources: uint8(c.Args["resp"]), InitiatorDepth: uint8(c.Args["init"]),
		RetryCount: uint8(c.Args["retry"]), RNRRetryCount: uint8(c.Args["rnr"]), QKey: uint32(c.Args["qkey"])}
}

func connectID(t verbs.Thread, id verbs.CMID, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	return id.Connect(t, param(c))
}

func accept(t verbs.Thread, id verbs.CMID, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	return id.Accept(t, param(c))
}

func reject(t verbs.Thread, id verbs.CMID, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	return id.Reject(t, c.Data)
}

func disconnect(t verbs.Thread, id verbs.CMID, _ verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	return id.Disconnect(t)
}

func attr(t verbs.Thread, id verbs.CMID, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	a, mask, err := id.InitQPAttr(t, verbs.QPState(c.Args["state"]))
	if err != nil {
		return err
	}
	for name, v := range map[string]uint64{"mask": uint64(mask), "rq_psn": uint64(a.RQPSN), "sq_psn": uint64(a.SQPSN), "dest_qpn": uint64(a.DestQPN),
		"rnr_retry": uint64(a.RNRRetry), "retry": uint64(a.RetryCnt), "timeout": uint64(a.Timeout), "mtu": uint64(a.PathMTU)} {
		r.Values[name] = v
	}
	return nil
}

func join(t verbs.Thread, id verbs.CMID, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	return id.JoinMulticast(t, address(c).Addr(), verbs.MulticastFlags(c.Args["flags"]), nil)
}

func leave(t verbs.Thread, id verbs.CMID, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
	return id.LeaveMulticast(t, address(c).Addr())
}

func addresses(_ verbs.Thread, id verbs.CMID, _ verbs.PlayerCommand, r *verbs.PlayerReply) error {
	own, peer := id.LocalAddr(), id.PeerAddr()
	r.Values["port"], r.Values["peer_port"] = uint64(own.Port()), uint64(peer.Port())
	for _, ip := range []netip.Addr{own.Addr(), peer.Addr()} {
		if !ip.IsValid() {
			ip = netip.IPv6Unspecified()
		}
		b := ip.As16()
		r.Data = append(r.Data, b[:]...)
	}
	return nil
}

func (a *Agent) cmInterface(t verbs.Thread, _ verbs.PlayerCommand, r *verbs.PlayerReply) error {
	ip, err := verbs.InterfaceAddr(t, a.ctx, int(a.port))
	if err == nil {
		r.Data = ip.AsSlice()
	}
	return err
}

func (a *Agent) cmEvent(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	ch, err := pick(a.cmChannels, c.Args["channel"], "event channel")
	if err != nil {
		return err
	}
	ev, err := ch.GetEvent(t, time.Duration(c.Args["timeout"]))
	if err != nil {
		return err
	}
	p := ev.Conn
	if ev.ID != nil && ev.ID.Type() == verbs.QPTUD {
		p = verbs.ConnParam{PrivateData: ev.UD.PrivateData, QPN: ev.UD.QPN, QKey: ev.UD.QKey}
	}
	for name, v := range map[string]uint64{"type": uint64(ev.Type), "status": uint64(int64(ev.Status)), "resp": uint64(p.ResponderResources),
		"init": uint64(p.InitiatorDepth), "retry": uint64(p.RetryCount), "rnr": uint64(p.RNRRetryCount), "qpn": uint64(p.QPN), "qkey": uint64(p.QKey)} {
		r.Values[name] = v
	}
	r.Data = append([]byte(nil), p.PrivateData...)
	if ev.Type == verbs.CMConnectRequest {
		a.keepID(ev.ID, r)
	} else {
		for i, id := range a.cmIDs {
			if id == ev.ID {
				r.Values["id"] = uint64(i + 1)
			}
		}
	}
	return ch.AckEvent(t, ev)
}

func (a *Agent) cmQP(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	return a.onID(func(t verbs.Thread, id verbs.CMID, _ verbs.PlayerCommand, r *verbs.PlayerReply) error {
		ctx := id.Verbs()
		if ctx == nil {
			return fmt.Errorf("player: an id without a device: %w", syscall.EINVAL)
		}
		cq, err := ctx.CreateCQ(t, verbs.CQAttr{CQE: 64})
		if err != nil {
			return err
		}
		pd, err := ctx.AllocPD(t)
		if err != nil {
			return err
		}
		qp, err := id.CreateQP(t, pd, verbs.QPInitAttr{Type: id.Type(), SendCQ: cq, RecvCQ: cq,
			Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 1, MaxRecvSGE: 1}})
		if err != nil {
			return err
		}
		a.cq = cq
		a.pds = append(a.pds, pd)
		a.qps = append(a.qps, qp)
		r.Values["pd"], r.Values["qp"], r.Values["qpn"] = uint64(len(a.pds)), uint64(len(a.qps)), uint64(qp.QPN())
		return nil
	})(t, c, r)
}

func (a *Agent) cmDestroy(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	return a.onID(func(t verbs.Thread, id verbs.CMID, c verbs.PlayerCommand, _ *verbs.PlayerReply) error {
		if qp := id.QP(); qp != nil {
			if err := id.DestroyQP(t); err != nil {
				return err
			}
			for i := range a.qps {
				if a.qps[i] == qp {
					a.qps[i] = nil
				}
			}
		}
		if err := id.Destroy(t); err != nil {
			return err
		}
		a.cmIDs[c.Args["id"]-1] = nil
		return nil
	})(t, c, r)
}
