package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmasim/rdmasim/attach/peer"
	"github.com/rdmasim/rdmasim/attach/wire"
	"github.com/rdmasim/rdmasim/internal/cli/plain"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload/perftest/perf"
	"github.com/rdmasim/rdmasim/workload/pingpong"
	"github.com/rdmasim/rdmasim/workload/rping"
)

// wireEnd is one end of a program.
type wireEnd interface {
	// run is the program, in a thread of the host.
	run(h *peer.Host, t verbs.Thread) error
	// peer says who the other end was, empty if it is not known.
	peer() string
	close()
}

// meeting is the TCP connection by which two ends find each other.
type meeting struct {
	ctx    context.Context
	host   string // of the server; empty: this end is it
	source string // address of this machine; empty: any
	family string // tcp, tcp4 or tcp6
	port   int
	allow  []netip.Prefix
	note   func(string)
	l      net.Listener // of a server
}

const dialPatience = 30 * time.Second

// meet makes ready to connect; a server listens, unless the connection manager connects. source is
// an address that the program's flags ask for.
func (f *wireFlags) meet(c *cobra.Command, source string, port int, byManager bool) (*meeting, error) {
	e := &meeting{ctx: c.Context(), host: f.to, source: source, family: "tcp4", port: port, allow: f.cfg.Allow, note: note(c, "wire")}
	if source == "" && f.cfg.Place.Kind == wire.KindUDP {
		e.source = f.cfg.Place.Address.String()
	}
	if e.source == "" { // an address on an Ethernet is not this machine's
		e.family, e.allow = "tcp", nil
	} else if a, err := netip.ParseAddr(e.source); err != nil {
		return nil, f.usage("%q is no address to connect from", plain.Line(source))
	} else if a.Is6() {
		e.family = "tcp6"
	}
	if e.host != "" || byManager {
		return e, nil
	}
	at := net.JoinHostPort(e.source, strconv.Itoa(port))
	var err error
	switch e.l, err = net.Listen(e.family, at); {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, f.usage("TCP port %s is taken (`ss -ltnp sport = %d` says by whom): choose another with --port, for both ends: %w", at, port, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, f.usage("%s is no address of this machine: `ip address` lists those that it has: %w", e.source, err)
	case err != nil:
		return nil, f.usage("listen to TCP port %s: %w", at, err)
	}
	return e, nil
}

func (e *meeting) close() {
	if e.l != nil {
		_ = e.l.Close()
	}
}

// connect connects to the server, or waits for one client. A signal ends the wait.
func (e *meeting) connect() (net.Conn, error) {
	if e.l == nil {
		d := net.Dialer{Timeout: dialPatience}
		if e.source != "" {
			d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(e.source)}
		}
		c, err := d.DialContext(e.ctx, e.family, net.JoinHostPort(e.host, strconv.Itoa(e.port)))
		if err != nil {
			return nil, fmt.Errorf("connect to %s port %d: %w", e.host, e.port, err)
		}
		return c, nil
	}
	defer context.AfterFunc(e.ctx, e.close)()
	for {
		c, err := e.l.Accept()
		if err != nil {
			return nil, fmt.Errorf("wait for a client: %w", err)
		}
		from := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
		if len(e.allow) == 0 || slices.ContainsFunc(e.allow, func(n netip.Prefix) bool { return n.Contains(from) }) {
			e.close() // for one client is served
			return c, nil
		}
		e.note(fmt.Sprintf("%v has connected, and --allow leaves it out", from))
		_ = c.Close()
	}
}

// perfEnd is an end of a program of perftest.
type perfEnd struct {
	*meeting
	c      *cobra.Command
	o      *perf.Options
	report *perfReport
	test   *perf.End
}

// newPerf makes the end; nil without an error: help was wanted.
func (f *wireFlags) newPerf(c *cobra.Command, program string, args []string) (wireEnd, error) {
	test, err := perf.ParseTest(program)
	if err != nil {
		return nil, f.usage("%w", err)
	}
	if f.to != "" {
		args = append(args, f.to)
	}
	o, err := parsePerf(c, "wire", test, program, args, "")
	if o == nil {
		return nil, err
	}
	switch {
	case f.to == "" && o.Host != "":
		return nil, f.usage("%s: --serve is a server, which takes no host; --to %[1]s is a client", plain.Line(o.Host))
	case o.Memory.Kind != "":
		return nil, f.usage("the simulated host has no GPU: leave --use_%s out", o.Memory.Kind)
	}
	e := &perfEnd{c: c, o: o}
	if e.report, err = openPerfReport(c, o); err != nil {
		return nil, err
	}
	if e.meeting, err = f.meet(c, o.SourceIP, o.Port, o.SideCM); err != nil {
		return nil, errors.Join(err, e.report.finish())
	}
	return e, nil
}

func (e *perfEnd) run(h *peer.Host, t verbs.Thread) error {
	wait := func(f func()) { h.Wait(t, f) }
	env := &perf.Env{Out: e.c.OutOrStdout(), Err: e.c.ErrOrStderr(), Random: rand.Uint32, WriteJSON: e.report.write, Note: e.note, Interrupted: ended(e.c, e.o), Idle: h.Idle,
		Connect: func() (ch perf.Channel, err error) {
			wait(func() {
				var c net.Conn
				if c, err = e.connect(); err == nil {
					ch = endedBySignal(e.ctx, e.o, perf.Stream(c))
				}
			})
			if err != nil {
				return nil, err
			}
			return perf.Apart(ch, wait), nil
		},
		Server: func(verbs.Thread) (a netip.Addr, err error) {
			wait(func() { a, err = perf.Lookup(e.ctx, e.o) })
			return a, err
		}}
	e.test = perf.New(e.o, env)
	return withLoss(e.c, e.test.Run(t), e.report.finish())
}

// perfGrace is how long an infinite test may take to end in good order with its peer.
const perfGrace = 3 * time.Second

// endedBySignal closes a channel when a signal comes; of an infinite test, whose end the peer hears
// of, a while later.
func endedBySignal(ctx context.Context, o *perf.Options, ch perf.Channel) perf.Channel {
	grace := time.Duration(0)
	if o.Method == perf.Infinite {
		grace = perfGrace
	}
	context.AfterFunc(ctx, func() { time.AfterFunc(grace, func() { _ = ch.Close() }) })
	return ch
}

func (e *perfEnd) peer() string {
	if e.test == nil {
		return ""
	}
	p := e.test.Peer()
	if p.Version == 0 {
		return ""
	}
	s := fmt.Sprintf("perftest %.2f", p.Version)
	if len(p.Keys) > 0 {
		s += fmt.Sprintf(" at %v, queue pair %#06x", netip.AddrFrom16(p.Keys[0].GID).Unmap(), p.Keys[0].QPN)
		if n := len(p.Keys) - 1; n > 0 {
			s += fmt.Sprintf(" and %d more", n)
		}
	}
	if p.MTU != 0 {
		s += fmt.Sprintf(", path MTU %d", p.MTU.Bytes())
	}
	return s
}

// pingpongEnd is an end of ibv_rc_pingpong or its kin.
type pingpongEnd struct {
	*meeting
	c    *cobra.Command
	o    pingpong.Options
	name string
	test *pingpong.End
}

// newPingpong makes the end; nil without an error: help was wanted.
func (f *wireFlags) newPingpong(c *cobra.Command, program string, args []string) (wireEnd, error) {
	o, _ := pingpong.Default(program)
	s := pflag.NewFlagSet(program, pflag.ContinueOnError)
	s.SetOutput(c.OutOrStdout())
	port := s.IntP("port", "p", defaultPort, "TCP port of the exchange")
	s.IntVarP(&o.Size, "size", "s", o.Size, "bytes of a message")
	if o.Type != verbs.QPTUD {
		s.IntVarP(&o.MTU, "mtu", "m", o.MTU, "path MTU in bytes")
	}
	s.IntVarP(&o.RxDepth, "rx-depth", "r", o.RxDepth, "receives that are posted at a time")
	s.IntVarP(&o.Iters, "iters", "n", o.Iters, "messages each way")
	s.Uint8VarP(&o.SL, "sl", "l", o.SL, "service level")
	s.BoolVarP(&o.Events, "events", "e", false, "sleep until a completion event")
	s.BoolVarP(&o.Check, "chk", "c", false, "the peer checks the bytes (this end always does)")
	gid := s.IntP("gid-idx", "g", 0, "index of the GID: 0, the only one")
	err := s.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return nil, nil
	case err != nil:
		return nil, f.usage("%s: %w", program, err)
	case s.NArg() > 0:
		return nil, f.usage("%s takes no %q: --to HOST names the server", program, plain.Line(s.Arg(0)))
	case *gid != 0:
		return nil, f.usage("%s: -g %d: this end has GID 0 alone; the peer's index is its own", program, *gid)
	case *port < 1 || *port > 1<<16-1:
		return nil, f.usage("%s: -p %d: a TCP port from 1 to 65535 is needed", program, *port)
	}
	if err := o.Validate(); err != nil {
		return nil, f.usage("%s: %w", program, err)
	}
	o.Client = f.to != ""
	e := &pingpongEnd{c: c, o: o, name: program}
	if e.meeting, err = f.meet(c, "", *port, false); err != nil {
		return nil, err
	}
	return e, nil
}

// defaultPort is that of the programs.
const defaultPort = 18515

// apart is a connection for which only a thread waits.
type apart struct {
	net.Conn
	wait func(f func())
}

func (a apart) Read(b []byte) (n int, err error) {
	a.wait(func() { n, err = a.Conn.Read(b) })
	return n, err
}

func (a apart) Write(b []byte) (n int, err error) {
	a.wait(func() { n, err = a.Conn.Write(b) })
	return n, err
}

// meetPatience bounds the exchange of two pingpongs, which wait for nothing but each other's words.
const meetPatience = 120 * time.Second

func (e *pingpongEnd) run(h *peer.Host, t verbs.Thread) error {
	wait := func(f func()) { h.Wait(t, f) }
	e.test = pingpong.New(e.o, &pingpong.Env{Out: e.c.OutOrStdout(), Random: rand.Uint32, Interrupted: func() bool { return e.ctx.Err() != nil },
		Connect: func() (_ io.ReadWriteCloser, err error) {
			var c net.Conn
			wait(func() { c, err = e.connect() })
			if err != nil {
				return nil, err
			}
			context.AfterFunc(e.ctx, func() { _ = c.Close() })
			return apart{c, wait}, c.SetDeadline(time.Now().Add(meetPatience))
		}})
	return e.test.Run(t)
}

func (e *pingpongEnd) peer() string {
	if e.test == nil || e.test.Peer() == nil {
		return ""
	}
	p := e.test.Peer()
	return fmt.Sprintf("%s at %v, queue pair %#06x", e.name, netip.AddrFrom16(p.GID).Unmap(), p.QPN)
}

// rpingEnd is an end of rping.
type rpingEnd struct {
	c    *cobra.Command
	o    rping.Options
	test *rping.End
}

// rpingProgram is the name of the program.
const rpingProgram = "rping"

// newRping makes the end; nil without an error: help was wanted.
func (f *wireFlags) newRping(c *cobra.Command, _ string, args []string) (wireEnd, error) {
	o := rping.Default()
	o.Client = f.to != ""
	s := pflag.NewFlagSet(rpingProgram, pflag.ContinueOnError)
	s.SetOutput(c.OutOrStdout())
	port := s.IntP("port", "p", rping.Port, "port of the connection manager")
	s.IntVarP(&o.Size, "size", "S", o.Size, "bytes of a ping")
	s.IntVarP(&o.Count, "count", "C", o.Count, "pings; 0: a client pings until it is interrupted, a server as long as its client does")
	s.BoolVarP(&o.Verbose, "verbose", "v", false, "print each ping")
	s.BoolP("validate", "V", true, "compare the bytes that come back, as this end always does")
	err := s.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return nil, nil
	case err != nil:
		return nil, f.usage("rping: %w; --serve and --to say which end it is, and with whom", err)
	case s.NArg() > 0:
		return nil, f.usage("rping takes no %q: --to HOST names the server", plain.Line(s.Arg(0)))
	case *port < 1 || *port > 1<<16-1:
		return nil, f.usage("rping: -p %d: a port from 1 to 65535 is needed", *port)
	}
	if err := o.Validate(); err != nil {
		return nil, f.usage("rping: %w", err)
	}
	a := f.cfg.Place.Address
	if o.Client {
		family := "ip4"
		if a.Is6() {
			family = "ip6"
		}
		all, err := net.DefaultResolver.LookupNetIP(c.Context(), family, f.to)
		if err != nil {
			return nil, fmt.Errorf("wire: --to: %w", err)
		}
		a = all[0].Unmap()
	}
	o.Server = netip.AddrPortFrom(a, uint16(*port))
	return &rpingEnd{c: c, o: o}, nil
}

func (e *rpingEnd) close() {}

func (e *rpingEnd) run(_ *peer.Host, t verbs.Thread) error {
	e.test = rping.New(e.o, e.c.OutOrStdout(), func() bool { return e.c.Context().Err() != nil })
	if !e.o.Client {
		fmt.Fprintf(e.c.OutOrStdout(), "rping waits for a client at %v\n", e.o.Server)
	}
	if err := e.test.Run(t); err != nil {
		return err
	}
	fmt.Fprintf(e.c.OutOrStdout(), "rping: %d pings\n", e.test.Pings())
	return nil
}

func (e *rpingEnd) peer() string {
	if e.test == nil || !e.test.Peer().IsValid() {
		return ""
	}
	return fmt.Sprintf("rping at %v", e.test.Peer().Addr().Unmap())
}
