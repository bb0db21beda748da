package perf

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// What the ends have of the connection manager: a channel of events with its ids (-z and -R).
// Source: perftest_communication.c, rdma_client_connect and rdma_server_connect for the exchange,
// create_rdma_cm_connection for the queue pairs of the test.
const (
	resolveTime = 2 * time.Second        // of an address, and of a route
	tries       = 10                     // of an address or connection (NUM_OF_RETRIES, max_retries)
	betweenTry  = 100 * time.Millisecond // of the queue pairs of a test
	eventSlice  = 50 * time.Millisecond  // how long one wait for an event is
	answerTime  = 100 * time.Second      // more than all resends of a request take
)

// cmNobodyListens is IB_CM_REJ_INVALID_SERVICE_ID: nobody listens to the port.
const cmNobodyListens = 8

// events is an event channel of an end.
type events struct {
	e  *End
	ch verbs.EventChannel
}

// openEvents makes an event channel, which ends with the test.
func (e *End) openEvents(t verbs.Thread) (*events, error) {
	m, ok := t.Process().(verbs.ConnectionManager)
	if !ok {
		return nil, &StepError{Err: errors.New("this target has no connection manager"), Hint: "leave -R and -z out", Words: " rdma_create_event_channel failed\n Unable to create RDMA_CM resources\n"}
	}
	ch, err := m.CreateEventChannel(t)
	if err != nil {
		hint := "load rdma_ucm (modprobe rdma_ucm)"
		if verbs.ErrnoOf(err) == syscall.EOPNOTSUPP {
			hint = "leave -R and -z out"
		}
		return nil, &StepError{Err: fmt.Errorf("rdma_create_event_channel: %w", err), Hint: hint, Words: " rdma_create_event_channel failed\n Unable to create RDMA_CM resources\n"}
	}
	e.later(ch.Destroy)
	return &events{e, ch}, nil
}

// id makes an id for the type of a queue pair.
func (v *events) id(t verbs.Thread, connection int) (verbs.CMID, error) {
	ps := verbs.PortSpaceTCP
	if connection == UD {
		ps = verbs.PortSpaceUDP
	}
	id, err := v.ch.CreateID(t, ps, 0, nil)
	if err != nil {
		return nil, fmt.Errorf("rdma_create_id: %w", err)
	}
	return id, nil
}

// next waits for an event, for so long; 0: until the user or the end of the peer ends the wait.
func (v *events) next(t verbs.Thread, most time.Duration) (*verbs.CMEvent, error) {
	for began := t.Now(); ; {
		ev, err := v.ch.GetEvent(t, eventSlice)
		switch {
		case err == nil:
			return ev, nil
		case !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR):
			return nil, fmt.Errorf("rdma_get_cm_event: %w", err)
		case v.e.interrupted():
			return nil, ErrInterrupted
		case v.e.env.PeerGone != nil && v.e.env.PeerGone():
			return nil, fmt.Errorf("the peer has ended: %w", io.EOF)
		case v.e.sideLost(t):
			return nil, fmt.Errorf("the peer has closed the connection: %w", io.EOF)
		case most > 0 && t.Now()-began >= most:
			return nil, fmt.Errorf("no event of the connection manager within %v: %w", most, syscall.ETIMEDOUT)
		}
	}
}

// unexpected is an event that ends a connection before it is made.
type unexpected struct {
	typ    verbs.CMEventType
	status int
}

func (u *unexpected) Error() string {
	switch {
	case u.typ == verbs.CMRejected && u.status == cmNobodyListens:
		return "the connection manager says REJECTED: nobody listens to the port there (reason 8)"
	case u.typ == verbs.CMRejected:
		return fmt.Sprintf("the connection manager says REJECTED, for reason %d", u.status)
	case u.status < 0:
		return fmt.Sprintf("the connection manager says %v: %v", u.typ, syscall.Errno(-u.status))
	}
	return fmt.Sprintf("the connection manager says %v, status %d", u.typ, u.status)
}

// expect waits for an event of a type, which use sees before it is acknowledged. Another event that
// ends something is an *unexpected.
func (v *events) expect(t verbs.Thread, typ verbs.CMEventType, most time.Duration, use func(*verbs.CMEvent) error) error {
	for {
		ev, err := v.next(t, most)
		if err != nil {
			return err
		}
		got, status := ev.Type, ev.Status
		if got == typ && use != nil {
			err = use(ev)
		}
		if ack := v.ch.AckEvent(t, ev); ack != nil && err == nil {
			err = fmt.Errorf("rdma_ack_cm_event: %w", ack)
		}
		switch {
		case err != nil || got == typ:
			return err
		case typ == verbs.CMConnectRequest && got != verbs.CMDeviceRemoval, got == verbs.CMAddrChange, got == verbs.CMTimewaitExit:
			continue // of a connection that is made or gone
		}
		return &unexpected{got, status}
	}
}

// resolve finds the way of an id to the server, several times if no address is known, and sets its
// options.
func (v *events) resolve(t verbs.Thread, id verbs.CMID, src netip.Addr, tos int, ackTimeout bool) error {
	o := v.e.o
	to := netip.AddrPortFrom(v.e.server, uint16(o.Port))
	var from netip.AddrPort
	if src.IsValid() {
		from = netip.AddrPortFrom(src, 0)
	}
	for _, x := range []struct {
		name string
		do   func() error
		want verbs.CMEventType
		miss verbs.CMEventType
	}{
		{"rdma_resolve_addr to " + to.String(), func() error { return id.ResolveAddr(t, from, to, resolveTime) }, verbs.CMAddrResolved, verbs.CMAddrError},
		{"rdma_resolve_route to " + to.String(), func() error { return v.options(t, id, tos, ackTimeout, resolveTime) }, verbs.CMRouteResolved, verbs.CMRouteError},
	} {
		for n := 1; ; n++ {
			if err := x.do(); err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
			err := v.expect(t, x.want, answerTime, nil)
			var u *unexpected
			if errors.As(err, &u) && u.typ == x.miss && n < tries {
				continue
			}
			if err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
			break
		}
	}
	return nil
}

// options sets the options of an id whose address is resolved, and asks for its route.
func (v *events) options(t verbs.Thread, id verbs.CMID, tos int, ackTimeout bool, d time.Duration) error {
	if tos != unset {
		if err := id.SetOption(t, verbs.CMOptionID, verbs.CMOptionTOS, []byte{byte(tos)}); err != nil {
			return fmt.Errorf("type of service %d: %w", tos, err)
		}
	}
	if ackTimeout {
		if err := id.SetOption(t, verbs.CMOptionID, verbs.CMOptionACKTimeout, []byte{v.e.o.QPTimeout}); err != nil {
			return fmt.Errorf("timeout of acknowledgements %d: %w", v.e.o.QPTimeout, err)
		}
	}
	return id.ResolveRoute(t, d)
}

// listen has an id listen to the port of the options.
func (v *events) listen(t verbs.Thread, connection int) (verbs.CMID, error) {
	id, err := v.id(t, connection)
	if err != nil {
		return nil, err
	}
	at := netip.AddrPortFrom(v.e.wildcard(), uint16(v.e.o.Port))
	if v.e.o.SourceIP != "" {
		at = netip.AddrPortFrom(v.e.source, uint16(v.e.o.Port))
	}
	if err = id.BindAddr(t, at); err != nil {
		err = &StepError{Err: fmt.Errorf("rdma_bind_addr to %v: %w", at, err), Hint: bindHint(err), Words: " rdma_bind_addr failed\n Unable to perform rdma_server function\n Unable to init the socket connection\n"}
	} else if err = id.Listen(t, v.e.o.QPs); err != nil {
		err = fmt.Errorf("rdma_listen to %v: %w", at, err)
	}
	if err != nil {
		return nil, errors.Join(err, id.Destroy(t))
	}
	return id, nil
}

func bindHint(err error) string {
	switch verbs.ErrnoOf(err) {
	case syscall.EADDRINUSE:
		return "another program has the port: choose another with -p, for both ends"
	case syscall.EADDRNOTAVAIL, syscall.ENODEV:
		return "--bind_source_ip is an address of an RDMA interface of this machine"
	case syscall.EACCES:
		return "ports below 1024 are for the superuser: choose another with -p, for both ends"
	}
	return ""
}

func (e *End) wildcard() netip.Addr {
	if e.o.IPv6 {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

// reach notes the addresses that the connection manager takes: the server's, and that of
// --bind_source_ip.
func (e *End) reach(t verbs.Thread) (err error) {
	if e.o.SourceIP != "" {
		if e.source, err = netip.ParseAddr(e.o.SourceIP); err != nil {
			return &StepError{Err: fmt.Errorf("--bind_source_ip %q is not an address", e.o.SourceIP), Words: "Problem in resolving basic address and port\n"}
		}
	}
	if e.o.Port < 1 || e.o.Port > 65535 {
		return &StepError{Err: fmt.Errorf("-p %d is not a port", e.o.Port), Hint: "give one from 1 to 65535 to both ends", Words: "Problem in resolving basic address and port\n"}
	}
	if e.o.Host == "" {
		return nil
	}
	if e.env.Server == nil {
		return errors.New("the server's address is not known")
	}
	if e.server, err = e.env.Server(t); err != nil {
		return &StepError{Err: err, Hint: "give the address of the server's RDMA interface", Words: "Problem in resolving basic address and port\n"}
	}
	return nil
}

// cmHint says what to try when a connection by the connection manager is not made.
func (e *End) cmHint(err error) string {
	var u *unexpected
	if errors.As(err, &u) {
		switch {
		case u.typ == verbs.CMRejected && u.status == cmNobodyListens:
			return "start the server first, with -R or -z too, and give the same -p to both"
		case u.typ == verbs.CMAddrError || u.typ == verbs.CMRouteError:
			return fmt.Sprintf("%v must be the address of an RDMA interface of the server, on the network of one of this machine", e.server)
		case u.typ == verbs.CMUnreachable:
			return "the server's machine does not answer"
		}
	}
	switch verbs.ErrnoOf(err) {
	case syscall.ENODEV, syscall.EADDRNOTAVAIL, syscall.ENETUNREACH:
		return fmt.Sprintf("%v must be the address of an RDMA interface of the server, on the network of one of this machine", e.server)
	}
	return ""
}
