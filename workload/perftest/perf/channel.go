package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// Channel carries the bytes of the exchange between the ends. A message is sent by one call, since
// a real peer reads each with one.
type Channel interface {
	// Send sends one message.
	Send(t verbs.Thread, b []byte) error
	// Receive fills b. io.EOF: the peer has closed the channel.
	Receive(t verbs.Thread, b []byte) error
	// Close ends the channel; the peer then gets io.EOF.
	Close() error
}

// pipe is one direction between two ends of one simulation: what was sent arrives after a while.
type pipe struct {
	mu     sync.Mutex // on hardware, threads run at once
	parts  []part
	closed bool
}

type part struct {
	at time.Duration // of arrival
	b  []byte
}

// pipeEnd is one end of two pipes. Threads wait in virtual time.
type pipeEnd struct {
	in, out *pipe
	delay   time.Duration
}

// Pipe is a channel between two threads of one testbed; a message takes the delay.
func Pipe(delay time.Duration) (client, server Channel) {
	a, b := &pipe{}, &pipe{}
	return &pipeEnd{a, b, delay}, &pipeEnd{b, a, delay}
}

func (p *pipeEnd) Send(t verbs.Thread, b []byte) error {
	t.Sleep(0) // others see it in the order of the clocks
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	if p.out.closed {
		return io.EOF
	}
	p.out.parts = append(p.out.parts, part{t.Now() + p.delay, slices.Clone(b)})
	return nil
}

// The time between two looks at a channel grows with the wait.
const (
	firstLook = 10 * time.Microsecond
	lastLook  = 500 * time.Microsecond
)

func (p *pipeEnd) Receive(t verbs.Thread, b []byte) error {
	for look := firstLook; len(b) > 0; {
		t.Sleep(0)
		n, closed := p.in.take(t.Now(), b)
		b = b[n:]
		switch {
		case n > 0:
			look = firstLook
		case closed:
			return io.EOF
		default:
			t.Sleep(look)
			look = min(look+look/8, lastLook)
		}
	}
	return nil
}

// take moves what has arrived to b.
func (p *pipe) take(now time.Duration, b []byte) (n int, closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.parts) > 0 && n < len(b) && p.parts[0].at <= now {
		k := copy(b[n:], p.parts[0].b)
		n += k
		if p.parts[0].b = p.parts[0].b[k:]; len(p.parts[0].b) == 0 {
			p.parts = p.parts[1:]
		}
	}
	return n, p.closed && len(p.parts) == 0
}

// Close ends both directions; what was sent still arrives.
func (p *pipeEnd) Close() error {
	for _, x := range []*pipe{p.in, p.out} {
		x.mu.Lock()
		x.closed = true
		x.mu.Unlock()
	}
	return nil
}

// stream is a channel over a connection of the network.
type stream struct{ c net.Conn }

// Stream is a channel over a connection of the network.
func Stream(c net.Conn) Channel { return stream{c} }

func (s stream) Send(_ verbs.Thread, b []byte) error {
	_, err := s.c.Write(b)
	return ended(err)
}

func (s stream) Receive(_ verbs.Thread, b []byte) error {
	_, err := io.ReadFull(s.c, b)
	return ended(err)
}

// ended has io.EOF for each way in which a connection that the peer has ended shows it.
func ended(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return io.EOF
	}
	return err
}

// shortReceiver is implemented by channels whose messages have no end: receiveShort takes the
// least, and more up to the most if it comes along with it.
type shortReceiver interface {
	receiveShort(t verbs.Thread, least, most int) ([]byte, error)
}

// together is how far apart the parts of a message may come.
const together = 300 * time.Millisecond

func (s stream) receiveShort(t verbs.Thread, least, most int) ([]byte, error) {
	b := make([]byte, most)
	if err := s.Receive(t, b[:least]); err != nil {
		return nil, err
	}
	if err := s.c.SetReadDeadline(time.Now().Add(together)); err != nil {
		return nil, err
	}
	n, err := io.ReadFull(s.c, b[least:])
	if n == 0 && (errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(ended(err), io.EOF)) { // the next message meets the end
		return b[:least], s.c.SetReadDeadline(time.Time{})
	}
	return b, errors.Join(ended(err), s.c.SetReadDeadline(time.Time{}))
}

func (s stream) Close() error { return s.c.Close() }

// limit bounds how long the next messages may take together; 0 takes the limit away.
func (s stream) limit(d time.Duration) error {
	if d == 0 {
		return s.c.SetDeadline(time.Time{})
	}
	return s.c.SetDeadline(time.Now().Add(d))
}

// apart is a channel whose calls do not hold up the world of the thread that makes them.
type apart struct {
	Channel
	wait func(f func())
}

// Apart is a channel of which wait carries out each call that waits for the peer, and returns when
// it has ended.
func Apart(ch Channel, wait func(f func())) Channel { return apart{ch, wait} }

func (a apart) Send(_ verbs.Thread, b []byte) (err error) {
	a.wait(func() { err = a.Channel.Send(nil, b) })
	return err
}

func (a apart) Receive(_ verbs.Thread, b []byte) (err error) {
	a.wait(func() { err = a.Channel.Receive(nil, b) })
	return err
}

func (a apart) receiveShort(_ verbs.Thread, least, most int) (b []byte, err error) {
	s, ok := a.Channel.(shortReceiver)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	a.wait(func() { b, err = s.receiveShort(nil, least, most) })
	return b, err
}

func (a apart) limit(d time.Duration) error {
	if l, ok := a.Channel.(interface{ limit(time.Duration) error }); ok {
		return l.limit(d)
	}
	return nil
}

// Dial connects to the server of the options.
func Dial(ctx context.Context, o *Options) (Channel, error) {
	d := net.Dialer{Timeout: dialPatience}
	if o.SourceIP != "" {
		ip := net.ParseIP(o.SourceIP)
		if ip == nil {
			return nil, fmt.Errorf("--bind_source_ip %q is not an address", o.SourceIP)
		}
		d.LocalAddr = &net.TCPAddr{IP: ip}
	}
	c, err := d.DialContext(ctx, o.network(), net.JoinHostPort(o.Host, strconv.Itoa(o.Port)))
	if err != nil {
		return nil, fmt.Errorf("connect to %s port %d: %w", o.Host, o.Port, err)
	}
	return stream{c}, nil
}

const dialPatience = 30 * time.Second

func (o *Options) network() string {
	if o.IPv6 {
		return "tcp6"
	}
	return "tcp4"
}

// Listen waits for one client, and is ended by a call of stop, which may come at any time.
func Listen(o *Options) (accept func() (Channel, error), stop func(), err error) {
	l, err := net.Listen(o.network(), net.JoinHostPort(o.SourceIP, strconv.Itoa(o.Port)))
	if err != nil {
		return nil, nil, fmt.Errorf("listen to port %d: %w", o.Port, err)
	}
	return func() (Channel, error) {
		defer l.Close()
		c, err := l.Accept()
		if err != nil {
			return nil, err
		}
		return stream{c}, nil
	}, func() { l.Close() }, nil
}

// Lookup finds the address of the server of the options, for the connection manager.
func Lookup(ctx context.Context, o *Options) (netip.Addr, error) {
	family := "ip4"
	if o.IPv6 {
		family = "ip6"
	}
	all, err := net.DefaultResolver.LookupNetIP(ctx, family, o.Host)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("address of %s: %w", o.Host, err)
	}
	return all[0].Unmap(), nil
}
