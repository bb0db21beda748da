package wire

import (
	"errors"
	"fmt"
	"math/bits"
	"net"
	"os/exec"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Open takes over the link between two interfaces. Where the kernel forwarded the frames by a
// redirection of tc, as the lab sets it up, that is removed and put back by Close. Times of frames
// count from began.
func Open(a, b string, began time.Time, seed uint64) (*Wire, error) {
	for _, name := range []string{a, b} {
		if err := removeRedirect(name); err != nil {
			return nil, err
		}
	}
	restore := func() error { return errors.Join(addRedirect(a, b), addRedirect(b, a)) }
	x, err := openSocket(a)
	if err != nil {
		return nil, errors.Join(err, restore())
	}
	y, err := openSocket(b)
	if err != nil {
		return nil, errors.Join(err, x.Close(), restore())
	}
	return newWire(began, seed, restore, x, y), nil
}

// preference of the lab's redirection among the filters of an interface.
const preference = "4791"

// removeRedirect removes the kernel's redirection of what an interface receives, if there is one.
func removeRedirect(name string) error {
	if _, err := net.InterfaceByName(name); err != nil {
		return fmt.Errorf("wire: interface %s: %w", name, err)
	}
	// It is no error that the interface has no such filter.
	_ = exec.Command("tc", "filter", "del", "dev", name, "ingress", "pref", preference).Run()
	return nil
}

// addRedirect lets the kernel move what one interface receives to the other.
func addRedirect(from, to string) error {
	out, err := exec.Command("tc", "filter", "add", "dev", from, "ingress", "pref", preference, "matchall",
		"action", "mirred", "egress", "redirect", "dev", to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("wire: tc on %s: %w: %s", from, err, out)
	}
	return nil
}

// socket is an end by a packet socket.
type socket struct {
	name   string
	fd     int
	index  int
	closed atomic.Bool
	last   time.Duration // when the last frame came; of the reader
}

// receiveBuffer is the space in the socket for frames that have not been read yet, in bytes.
const receiveBuffer = 64 << 20

func openSocket(name string) (*socket, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("wire: interface %s: %w", name, err)
	}
	const all = unix.ETH_P_ALL
	proto := bits.ReverseBytes16(all)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("wire: packet socket (CAP_NET_RAW is needed): %w", err)
	}
	s := &socket{name: name, fd: fd, index: i.Index}
	wait := unix.NsecToTimeval(int64(50 * time.Millisecond)) // so that the reader notices Close
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: proto, Ifindex: i.Index}),
	)
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("wire: packet socket on %s: %w", name, err)
	}
	return s, nil
}

func (s *socket) Name() string { return s.name }

func (s *socket) Receive(buf []byte, began time.Time) (int, time.Duration, error) {
	var control [64]byte
	for {
		n, c, _, _, err := unix.Recvmsg(s.fd, buf, control[:], 0)
		switch {
		case s.closed.Load():
			return 0, 0, errors.Join(errClosed, unix.Close(s.fd))
		case err == nil:
			return n, s.arrival(control[:c], began), nil
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR), errors.Is(err, unix.ENETDOWN):
			// That the link went down is reported once, and does not end the reception.
		default:
			return 0, 0, err
		}
	}
}

// maxQueued is more than a frame ever waits in a socket.
const maxQueued = time.Minute

// arrival is when the kernel took a frame, by the time stamp in its control message: of the
// wall clock, or on some kernels, where a veth passes it on, of the sender's monotonic one.
// Without one it is now. Frames of one side come in their order.
func (s *socket) arrival(control []byte, began time.Time) time.Duration {
	now := time.Now()
	at := now.Sub(began)
	if stamp, ok := stampOf(control); ok {
		var mono unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) // the clock is always there
		wall, own := now.UnixNano()-stamp, mono.Nano()-stamp
		switch {
		case wall >= 0 && wall < int64(maxQueued):
			at = time.Duration(stamp - began.UnixNano())
		case own >= 0 && own < int64(maxQueued):
			at -= time.Duration(own)
		}
	}
	s.last = max(s.last, at)
	return s.last
}

// stampOf is the time stamp of a control message, in nanoseconds.
func stampOf(control []byte) (int64, bool) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0, false
	}
	for _, m := range messages {
		var stamp unix.Timespec
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(stamp)) {
			copy((*[unsafe.Sizeof(stamp)]byte)(unsafe.Pointer(&stamp))[:], m.Data)
			return stamp.Nano(), true
		}
	}
	return 0, false
}

func (s *socket) Send(frame []byte) error {
	if s.closed.Load() {
		return errClosed
	}
	return unix.Sendto(s.fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: s.index})
}

func (s *socket) Lost() (int, error) {
	st, err := unix.GetsockoptTpacketStats(s.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0, fmt.Errorf("wire: statistics of %s: %w", s.name, err)
	}
	return int(st.Drops), nil
}

// SetLink sets IFF_UP of our own interface: its peer, the device's, loses or gains its
// carrier and keeps its addresses and routes.
func (s *socket) SetLink(up bool) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	req, err := unix.NewIfreq(s.name)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, req); err != nil {
		return fmt.Errorf("wire: flags of %s: %w", s.name, err)
	}
	flags := req.Uint16() &^ unix.IFF_UP
	if up {
		flags |= unix.IFF_UP
	}
	req.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("wire: link of %s: %w", s.name, err)
	}
	return nil
}

// Close makes the reader return, which closes the socket.
func (s *socket) Close() error {
	s.closed.Store(true)
	return nil
}

var _ end = (*socket)(nil)
