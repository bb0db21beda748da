// Package cm holds the cases of area CM: connections that are made and ended by the connection
// manager, in the terms of librdmacm.
//
// The case's own process is one end. The other is a process on the far host, or on the only one,
// that carries out commands of package player.
package cm

import (
	"encoding/hex"
	"net/netip"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// long is the deadline of cases that wait for timers of the connection manager.
var long = spec.Deadline(4 * time.Minute)

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("CM-001", rawHeaders)
	s.Case("CM-002", rawIDs)
	s.Case("CM-003", unknownSpace)
	s.Case("CM-004", readiness)
	s.Case("CM-005", bindToDevice)
	s.Case("CM-006", bindToNothing)
	s.Case("CM-007", bindTwice)
	s.Case("CM-008", portInUse)
	s.Case("CM-009", reusedPort)
	s.Case("CM-010", spacesApart)
	s.Case("CM-011", lowPort)
	s.Case("CM-012", wildcard)
	s.Case("CM-013", resolveAddress)
	s.Case("CM-014", noNeighbour, long)
	s.Case("CM-015", noRoute)
	s.Case("CM-016", routeTooEarly)
	s.Case("CM-017", pathRecord)
	s.Case("CM-018", eventsOfAConnection)
	s.Case("CM-019", requestData)
	s.Case("CM-020", replyData)
	s.Case("CM-021", depthsExchanged)
	s.Case("CM-022", attributes)
	s.Case("CM-023", firstPSNs)
	s.Case("CM-024", nobodyListens)
	s.Case("CM-025", otherAddress)
	s.Case("CM-026", rejected)
	s.Case("CM-027", backlog, long)
	s.Case("CM-028", lostAnswers, long)
	s.Case("CM-029", lostRequests, long)
	s.Case("CM-030", lateAccept, long)
	s.Case("CM-031", disconnect, long)
	s.Case("CM-032", disconnectTwice, long)
	s.Case("CM-033", answerOfDisconnect, long)
	s.Case("CM-034", killedPeer)
	s.Case("CM-035", destroyWaits)
	s.Case("CM-036", migrate)
	s.Case("CM-037", typeOfService)
	s.Case("CM-038", datagrams)
	s.Case("CM-039", datagramsRefused)
	s.Case("CM-040", multicast)
	s.Case("CM-041", bindToOther)
	s.Case("CM-042", staleConnection, long)
	s.Case("IB-019", subnetPath)
	s.Case("IB-020", lostQueries)
	s.Case("IB-021", lastMember)
	s.Case("IB-022", serviceClass)
	s.Case("IB-023", globalPath)
}

// timeout is how long addresses and routes may take to resolve, and events of a peer to come: long
// enough for a host that has little of its processors.
const timeout = 10 * time.Second

// patience is how long a case waits for an event, resends of the connection manager included;
// giveUp for one that comes when all resends were in vain.
const (
	patience = 20 * time.Second
	giveUp   = 150 * time.Second
)

// end is this side: a channel of the case's process.
type end struct {
	ch   verbs.EventChannel
	env  *kit.Env
	addr netip.Addr
}

func channel(c *spec.C) verbs.EventChannel {
	m, ok := c.Process().(verbs.ConnectionManager)
	if !ok {
		c.Errorf("the testbed says that it has a connection manager, and its processes have none")
	}
	ch, err := m.CreateEventChannel(c.T)
	kit.Must(c, "create_event_channel", err)
	kit.DestroyOnce(c, "destroy_event_channel", ch.Destroy)
	return ch
}

func open(c *spec.C) *end {
	e := &end{env: kit.Open(c), ch: channel(c)}
	e.addr = addrOf(e.env.LocalAddr.GID)
	if e.env.IB {
		var err error
		e.addr, err = verbs.InterfaceAddr(c.T, e.env.Ctx, int(e.env.Port))
		kit.Must(c, "address of the port's interface", err)
	}
	return e
}

// own is the address of this side.
func (e *end) own() netip.Addr { return e.addr }

func addrOf(g verbs.GID) netip.Addr { return netip.AddrFrom16(g).Unmap() }

// neighbour is another address on the network of an address.
func neighbour(a netip.Addr, last byte) netip.Addr {
	b := a.AsSlice()
	b[len(b)-1] = last
	n, _ := netip.AddrFromSlice(b)
	return n
}

// addAddress gives this side another address, until the case ends.
func (e *end) addAddress(c *spec.C, ctl verbs.AddressControl, ip netip.Addr) {
	kit.AddAddress(c, ctl, ip)
	if !e.env.IB { // IPoIB's addresses are no GIDs
		kit.AwaitGID(c, e.env, ip)
	}
}

// id makes an id, which ends with the case.
func (e *end) id(c *spec.C, ps verbs.PortSpace) verbs.CMID {
	id, err := e.ch.CreateID(c.T, ps, 0, nil)
	kit.Must(c, "create_id", err)
	destroyAtEnd(c, id)
	return id
}

func destroyAtEnd(c *spec.C, id verbs.CMID) {
	kit.DestroyOnce(c, "the end of an id", func(t verbs.Thread) error {
		if id.QP() != nil {
			if err := id.DestroyQP(t); err != nil {
				return err
			}
		}
		err := id.Destroy(t)
		if verbs.ErrnoOf(err) == syscall.ENOENT { // the case has destroyed it
			return nil
		}
		return err
	})
}

// event takes the next event, which must be of a type and have a status, and acknowledges it.
func (e *end) event(c *spec.C, typ verbs.CMEventType, status int) *verbs.CMEvent {
	return e.eventWithin(c, patience, typ, status)
}

func (e *end) eventWithin(c *spec.C, d time.Duration, typ verbs.CMEventType, status int) *verbs.CMEvent {
	ev := take(c, e.ch, d, typ, status)
	kit.Must(c, "ack_cm_event", e.ch.AckEvent(c.T, ev))
	return ev
}

// take is event without the acknowledgement.
func take(c *spec.C, ch verbs.EventChannel, d time.Duration, typ verbs.CMEventType, status int) *verbs.CMEvent {
	ev, err := ch.GetEvent(c.T, d)
	c.NoErr("get_cm_event for "+typ.String(), err)
	c.Equal("event", ev.Type.String(), typ.String())
	c.Equal("status of "+typ.String(), ev.Status, status)
	return ev
}

// quiet says that no event comes.
func (e *end) quiet(c *spec.C, step string) {
	ev, err := e.ch.GetEvent(c.T, kit.QuietPeriod)
	if err == nil {
		_ = e.ch.AckEvent(c.T, ev)
		c.True(step, false, "want no event, got %v with status %d", ev.Type, ev.Status)
	}
	c.Errno(step, err, syscall.EAGAIN)
}

// resolved is an id whose address and route are resolved.
func (e *end) resolved(c *spec.C, ps verbs.PortSpace, to netip.AddrPort) verbs.CMID {
	id := e.id(c, ps)
	e.resolve(c, id, to)
	return id
}

func (e *end) resolve(c *spec.C, id verbs.CMID, to netip.AddrPort) {
	e.address(c, id, to)
	kit.Must(c, "resolve_route", id.ResolveRoute(c.T, timeout))
	e.event(c, verbs.CMRouteResolved, 0)
}

// address names its source: where both ends are of one machine the kernel would take the
// destination's own address for it, and nothing would go by the wire.
func (e *end) address(c *spec.C, id verbs.CMID, to netip.AddrPort) {
	kit.Must(c, "resolve_addr", id.ResolveAddr(c.T, netip.AddrPortFrom(e.own(), 0), to, timeout))
	e.event(c, verbs.CMAddrResolved, 0)
}

// queue is the QP of an id with what it needs.
type queue struct {
	verbs.QP
	cq verbs.CQ
	pd verbs.PD
}

func newQueue(c *spec.C, id verbs.CMID) *queue {
	ctx := id.Verbs()
	cq, err := ctx.CreateCQ(c.T, verbs.CQAttr{CQE: 64})
	kit.Must(c, "create_cq", err)
	pd, err := ctx.AllocPD(c.T)
	kit.Must(c, "alloc_pd", err)
	q, err := id.CreateQP(c.T, pd, verbs.QPInitAttr{Type: id.Type(), SendCQ: cq, RecvCQ: cq,
		Cap: verbs.QPCap{MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 1, MaxRecvSGE: 1}})
	kit.Must(c, "rdma_create_qp", err)
	c.Defer(func() {
		if id.QP() != nil {
			kit.Must(c, "rdma_destroy_qp", id.DestroyQP(c.T))
		}
		kit.Must(c, "destroy_cq", cq.Destroy(c.T))
		kit.Must(c, "dealloc_pd", pd.Dealloc(c.T))
	})
	return &queue{q, cq, pd}
}

// state is that of a QP as the device has it.
func state(c *spec.C, q verbs.QP) string {
	a, _, err := q.Query(c.T, verbs.QPMaskState)
	kit.Must(c, "query_qp", err)
	return a.State.String()
}

// param are the usual parameters of a connection.
func param(data []byte) *verbs.ConnParam {
	return &verbs.ConnParam{PrivateData: data, ResponderResources: 1, InitiatorDepth: 1, RetryCount: 7, RNRRetryCount: 7}
}

// far is the other side: a process with a channel, and an id that is bound.
type far struct {
	*kit.OtherProcess
	ch   uint64
	id   uint64
	at   netip.AddrPort
	addr netip.Addr
}

// otherSide starts a process on a host, with a channel.
func otherSide(c *spec.C, host int) *far {
	o := kit.OpenOtherProcess(c, host, nil)
	f := &far{OtherProcess: o, addr: addrOf(o.GID)}
	if o.LID != 0 {
		f.addr, _ = netip.AddrFromSlice(o.Do(c, player.CMInterface, nil, nil).Data)
	}
	f.ch = o.Do(c, player.CMChannel, nil, nil).Values["channel"]
	return f
}

// bound is otherSide with an id that is bound to an address of it; the zero address is the
// wildcard.
func bound(c *spec.C, ps verbs.PortSpace, a netip.Addr) *far {
	f := otherSide(c, kit.RemoteHost(c))
	f.bind(c, ps, a)
	return f
}

func (f *far) bind(c *spec.C, ps verbs.PortSpace, a netip.Addr) {
	f.id = f.newID(c, ps)
	port := f.Do(c, player.CMBind, kit.Args{"id": f.id}, a.AsSlice()).Values["port"]
	f.at = netip.AddrPortFrom(f.addr, uint16(port))
}

func (f *far) newID(c *spec.C, ps verbs.PortSpace) uint64 {
	return f.Do(c, player.CMCreate, kit.Args{"channel": f.ch, "ps": uint64(ps)}, nil).Values["id"]
}

// serve is bound with an id that listens.
func serve(c *spec.C, ps verbs.PortSpace, backlog int) *far {
	f := bound(c, ps, netip.Addr{})
	f.listen(c, backlog)
	return f
}

func (f *far) listen(c *spec.C, backlog int) {
	f.Do(c, player.CMListen, kit.Args{"id": f.id, "backlog": uint64(backlog)}, nil)
}

// event takes the next event there.
func (f *far) event(c *spec.C, typ verbs.CMEventType, status int) verbs.PlayerReply {
	r := f.Do(c, player.CMEvent, kit.Args{"channel": f.ch, "timeout": uint64(patience)}, nil)
	c.Equal("event there", verbs.CMEventType(r.Values["type"]).String(), typ.String())
	c.Equal("status there of "+typ.String(), int(int64(r.Values["status"])), status)
	return r
}

// quiet says that no event comes there.
func (f *far) quiet(c *spec.C, step string) {
	_, err := f.DoErr(c, player.CMEvent, kit.Args{"channel": f.ch, "timeout": uint64(kit.QuietPeriod)}, nil)
	c.Errno(step, err, syscall.EAGAIN)
}

// request takes a connection request and makes a QP of its id.
func (f *far) request(c *spec.C) (verbs.PlayerReply, *kit.OtherQP) {
	r := f.event(c, verbs.CMConnectRequest, 0)
	v := f.Do(c, player.CMQP, kit.Args{"id": r.Values["id"]}, nil).Values
	return r, &kit.OtherQP{Process: f.OtherProcess, ID: v["qp"], QPN: uint32(v["qpn"]), Values: v}
}

// accept accepts the request of an id.
func (f *far) accept(c *spec.C, id uint64, data []byte) {
	f.Do(c, player.CMAccept, kit.Args{"id": id, "resp": 1, "init": 1, "rnr": 7}, data)
}

// do is a command on an id that has no answer.
func (f *far) do(c *spec.C, op string, id uint64) { f.Do(c, op, kit.Args{"id": id}, nil) }

// pair is a connection that is established, from here to a listener there.
type pair struct {
	*end
	far   *far
	id    verbs.CMID
	q     *queue
	farID uint64
	farQP *kit.OtherQP
}

// client is an end whose id has resolved the address of a server, and the queue pair of the id.
func client(c *spec.C) (*end, *far, verbs.CMID, *queue) {
	e := open(c)
	f := serve(c, verbs.PortSpaceTCP, 0)
	id := e.resolved(c, verbs.PortSpaceTCP, f.at)
	return e, f, id, newQueue(c, id)
}

// connected makes a connection.
func connected(c *spec.C) *pair {
	e := open(c)
	return e.connect(c, serve(c, verbs.PortSpaceTCP, 0))
}

func (e *end) connect(c *spec.C, f *far) *pair {
	id := e.resolved(c, verbs.PortSpaceTCP, f.at)
	p := &pair{end: e, far: f, id: id, q: newQueue(c, id)}
	kit.Must(c, "connect", id.Connect(c.T, param(nil)))
	p.establish(c)
	return p
}

// establish is the rest of a connection whose request is out.
func (p *pair) establish(c *spec.C) {
	r, q := p.far.request(c)
	p.farID, p.farQP = r.Values["id"], q
	p.far.accept(c, p.farID, nil)
	p.event(c, verbs.CMEstablished, 0)
	p.far.event(c, verbs.CMEstablished, 0)
}

// data is private data of n bytes.
func data(c *spec.C, n int) []byte { return c.Rand().Bytes(n) }

// sameData compares private data with what was sent: behind it are zeros.
func sameData(c *spec.C, step string, got, sent []byte, room int) {
	want := make([]byte, room)
	copy(want, sent)
	c.Equal(step+": length", len(got), room)
	c.Equal(step, hex.EncodeToString(got) == hex.EncodeToString(want), true)
}
