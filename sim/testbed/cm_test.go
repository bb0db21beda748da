package testbed

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/record"
)

// cmEnd is one end of a connection in a test.
type cmEnd struct {
	t  *testing.T
	th verbs.Thread
	ch verbs.EventChannel
}

func newCMEnd(t *testing.T, th verbs.Thread) *cmEnd {
	t.Helper()
	ch, err := th.Process().(verbs.ConnectionManager).CreateEventChannel(th)
	if err != nil {
		t.Fatal(err)
	}
	return &cmEnd{t, th, ch}
}

// expect takes the next event, which must be of a type, and acknowledges it.
func (e *cmEnd) expect(typ verbs.CMEventType, status int) *verbs.CMEvent {
	e.t.Helper()
	ev, err := e.ch.GetEvent(e.th, 100*time.Second)
	if err != nil {
		e.t.Fatalf("%s waits for %v: %v", e.th.Name(), typ, err)
	}
	if ev.Type != typ || ev.Status != status {
		e.t.Fatalf("%s: %v with status %d, not %v with %d", e.th.Name(), ev.Type, ev.Status, typ, status)
	}
	if err := e.ch.AckEvent(e.th, ev); err != nil {
		e.t.Fatal(err)
	}
	return ev
}

func (e *cmEnd) ok(what string, err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatalf("%s: %s: %v", e.th.Name(), what, err)
	}
}

func (e *cmEnd) id(ps verbs.PortSpace) verbs.CMID {
	e.t.Helper()
	id, err := e.ch.CreateID(e.th, ps, 0, nil)
	e.ok("create id", err)
	return id
}

// qp makes an id's QP.
func (e *cmEnd) qp(id verbs.CMID) verbs.QP {
	e.t.Helper()
	cq, err := id.Verbs().CreateCQ(e.th, verbs.CQAttr{CQE: 16})
	e.ok("create CQ", err)
	q, err := id.CreateQP(e.th, nil, verbs.QPInitAttr{Type: id.Type(), SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}})
	e.ok("create QP", err)
	return q
}

// resolve brings an id to the state of a resolved route.
func (e *cmEnd) resolve(ps verbs.PortSpace, to netip.AddrPort) verbs.CMID {
	e.t.Helper()
	id := e.id(ps)
	e.ok("resolve address", id.ResolveAddr(e.th, netip.AddrPort{}, to, time.Second))
	e.expect(verbs.CMAddrResolved, 0)
	e.ok("resolve route", id.ResolveRoute(e.th, time.Second))
	e.expect(verbs.CMRouteResolved, 0)
	return id
}

var cmServer = netip.MustParseAddr("10.1.0.2")

// TestConnectionIsMadeAndEnds: a client connects to a server of the other host, with data in both
// directions, and both end it.
func TestConnectionIsMadeAndEnds(t *testing.T) {
	run(t, config(t), func(x *rig) { x.connectAndEnd(t, cmServer) })
}

// TestConnectionByIPv6: the same by addresses of IPv6.
func TestConnectionByIPv6(t *testing.T) {
	run(t, config(t), func(x *rig) {
		for host, a := range []string{"2001:db8::1", "2001:db8::2"} {
			x.ok("address", x.bed.AddAddress(x.t, host, netip.MustParseAddr(a)))
		}
		x.connectAndEnd(t, netip.MustParseAddr("2001:db8::2"))
	})
}

// TestConnectionOnInfiniBand: the same by addresses of IPoIB, with a path of the subnet
// administrator, over a cable and over a switch.
func TestConnectionOnInfiniBand(t *testing.T) {
	for _, switched := range []bool{false, true} {
		c := config(t, infiniBand)
		c.Switched = switched
		tb := run(t, c, func(x *rig) { x.connectAndEnd(t, cmServer) })
		if n := tb.sa.C.Requests; n != 1 {
			t.Errorf("%d queries were answered, not 1", n)
		}
	}
}

// TestConnectionIsRecorded: the calls of both ends are in a recording, which is the same on both
// link layers but for where the QPs are.
func TestConnectionIsRecorded(t *testing.T) {
	var texts [2]string
	for i, change := range []func(*Config){func(*Config) {}, infiniBand} {
		run(t, config(t, change), func(x *rig) {
			rec := record.New(x.bed)
			y := &rig{TB: x.TB, bed: x.bed, recorded: rec, t: rec.Thread(x.t)}
			y.connectAndEnd(t, cmServer)
			texts[i] = rec.Text()
		})
	}
	for _, want := range []string{
		"main: resolve_addr(id2, no address, ip1 port1, 1s)\n", "main: get_cm_event(1m40s) = ESTABLISHED of id2, status 0, 196 B of data\n",
		"server: get_cm_event(1m40s) = CONNECT_REQUEST of id3 by id1, status 0, 56 B of data\n", "main: ack_cm_event(DISCONNECTED)\n", "main: destroy_id(id2)\n",
	} {
		if !strings.Contains(texts[0], want) {
			t.Errorf("no %q in\n%s", want, texts[0])
		}
	}
	if texts[0] != texts[1] {
		t.Errorf("on Ethernet\n%s\non InfiniBand\n%s", texts[0], texts[1])
	}
}

// connectAndEnd is a connection to the other host's address.
func (x *rig) connectAndEnd(t *testing.T, to netip.Addr) {
	t.Helper()
	th := x.t
	hosts := x.bed.Hosts()
	if x.recorded != nil {
		hosts = x.recorded.Hosts()
	}
	sp, err := hosts[1].NewProcess(th, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := netip.AddrPortFrom(to, 7174)
	listening, done := false, false
	sp.Start(th, "server", 0, func(th verbs.Thread) {
		s := newCMEnd(t, th)
		l := s.id(verbs.PortSpaceTCP)
		s.ok("bind", l.BindAddr(th, at))
		s.ok("listen", l.Listen(th, 0))
		listening = true
		ev := s.expect(verbs.CMConnectRequest, 0)
		if got := ev.Conn.PrivateData; len(got) != 56 || !bytes.HasPrefix(got, []byte("ping")) {
			t.Errorf("request data %q", got)
		}
		s.qp(ev.ID)
		s.ok("accept", ev.ID.Accept(th, &verbs.ConnParam{PrivateData: []byte("pong"), ResponderResources: 1, InitiatorDepth: 1}))
		s.expect(verbs.CMEstablished, 0)
		s.expect(verbs.CMDisconnected, 0)
		s.ok("disconnect", ev.ID.Disconnect(th))
		s.expect(verbs.CMTimewaitExit, 0)
		s.ok("destroy QP", ev.ID.DestroyQP(th))
		s.ok("destroy id", ev.ID.Destroy(th))
		s.ok("destroy listener", l.Destroy(th))
		s.ok("destroy channel", s.ch.Destroy(th))
		done = true
	})
	for !listening {
		th.Sleep(time.Microsecond)
	}
	c := newCMEnd(t, th)
	id := c.resolve(verbs.PortSpaceTCP, at)
	c.qp(id)
	c.ok("connect", id.Connect(th, &verbs.ConnParam{PrivateData: []byte("ping"), ResponderResources: 1, InitiatorDepth: 1, RetryCount: 7, RNRRetryCount: 7}))
	ev := c.expect(verbs.CMEstablished, 0)
	if got := ev.Conn.PrivateData; len(got) != 196 || !bytes.HasPrefix(got, []byte("pong")) {
		t.Errorf("reply data %q", got)
	}
	if s := id.QP().State(); s != verbs.QPSRTS {
		t.Errorf("the client's QP is in %v", s)
	}
	c.ok("disconnect", id.Disconnect(th))
	c.expect(verbs.CMDisconnected, 0)
	c.expect(verbs.CMTimewaitExit, 0)
	c.ok("destroy QP", id.DestroyQP(th))
	c.ok("destroy id", id.Destroy(th))
	for !done {
		th.Sleep(time.Millisecond)
	}
}

// FuzzManagement: whatever a peer sends to QP1, in whatever order, the connection manager of a host
// with a listener neither panics nor keeps an id that no program has.
func FuzzManagement(f *testing.F) {
	req := make([]byte, mad.Size)
	m := mad.MAD(req)
	m.SetBaseVersion(mad.BaseVersion)
	m.SetClass(mad.ClassCM)
	m.SetClassVersion(mad.CMVersion)
	m.SetMethod(mad.Send)
	m.SetAttribute(mad.AttrREQ)
	r := mad.REQ(m.Body())
	r.SetLocal(7)
	r.SetServiceID(0x0106_1c06)
	r.SetQPN(0x99)
	h := mad.IPHeader(r.PrivateData())
	h.SetIPVersion(4)
	h.SetSrc(roce.GID{12: 10, 13: 1, 15: 1})
	h.SetDst(roce.GID{12: 10, 13: 1, 15: 2})
	r.Primary().SetLocalGID(roce.GIDFromIPv4([4]byte{10, 1, 0, 1}))
	r.Primary().SetRemoteGID(roce.GIDFromIPv4([4]byte{10, 1, 0, 2}))
	r.Primary().SetHopLimit(64)
	f.Add(req, uint16(mad.AttrREQ), uint16(0))
	for a := uint16(mad.AttrREQ); a <= mad.AttrAPR; a++ {
		f.Add(req, a, a)
	}
	f.Fuzz(func(t *testing.T, b []byte, second, third uint16) {
		if len(b) != mad.Size {
			return
		}
		bed, err := New(config(t))
		if err != nil {
			t.Fatal(err)
		}
		defer bed.Close()
		server := bed.hosts[1]
		if err := server.cm.Load(); err != nil {
			t.Fatal(err)
		}
		file := server.cm.Open(kernel.Caller{}, &kernel.Process{})
		id, err := file.CreateID(kernel.Caller{}, 1, verbs.PortSpaceTCP, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(file.Bind(kernel.Caller{}, id, netip.AddrPortFrom(cmServer, 7174)), file.Listen(kernel.Caller{}, id, 0)); err != nil {
			t.Fatal(err)
		}
		gsi, err := bed.hosts[0].devices[0].kern.OpenGSI(func(*kernel.Datagram) {})
		if err != nil {
			t.Fatal(err)
		}
		to := verbs.AHAttr{IsGlobal: true, Port: 1, GRH: verbs.GRH{DGID: verbs.GID(cmServer.As16()), HopLimit: 64}}
		bed.hosts[0].devices[0].kern.GIDs(func(e verbs.GIDEntry, _ uint16) bool {
			to.GRH.SGIDIndex = uint8(e.Index)
			return e.Type != verbs.GIDTypeRoCEv2 || !netip.AddrFrom16(e.GID).Is4In6()
		})
		for _, a := range []uint16{mad.MAD(b).Attribute(), second, third, mad.AttrREQ} {
			mad.MAD(b).SetAttribute(a)
			if err := gsi.Send(&to, b); err != nil {
				t.Fatal(err)
			}
			if err := bed.eng.Run(bed.eng.Now() + sim.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
		file.Close(kernel.Caller{})
		if n := server.cm.IDs(); n != 0 {
			t.Errorf("%d ids are left", n)
		}
		if err := bed.eng.Run(bed.eng.Now() + 100*sim.Second); err != nil {
			t.Fatal(err)
		}
	})
}
