//go:build linux

package wire

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/roce"
)

// batch is what one receive call has taken.
type batch struct {
	data    []byte
	size    [receiveBuffers]int  // of each frame, also of what did not fit
	strange [receiveBuffers]bool // not from the other end
	n       int                  // that have not been delivered
}

// frameRoom shows that a frame was longer than any.
const frameRoom = maxFrame + 2

func (in *batch) init() { in.data = make([]byte, receiveBuffers*frameRoom) }

// room is the memory of a frame.
func (in *batch) room(i int) []byte { return in.data[i*frameRoom : (i+1)*frameRoom] }

// bytes are those of a frame that fitted.
func (in *batch) bytes(i int) []byte { return in.room(i)[:in.size[i]] }

// descriptor is what a datagram socket and a TAP interface share.
type descriptor int

func (d descriptor) fd() int      { return int(d) }
func (d descriptor) close() error { return unix.Close(int(d)) }

// gone puts the end of a pipe that nobody writes to in the place of the descriptor.
func (d descriptor) gone() {
	var p [2]int
	if unix.Pipe2(p[:], unix.O_NONBLOCK|unix.O_CLOEXEC) == nil { // the other end stays open
		_ = unix.Dup3(p[0], int(d), unix.O_CLOEXEC)
		_ = unix.Close(p[0])
	}
}

// padding is what Ethernet pads short frames with.
var padding [minFrame]byte

// vectors are the bytes of a frame as they go out.
func vectors(f *roce.Frame, v *[2]unix.Iovec) int {
	v[0].Base = &f.B[0]
	v[0].SetLen(len(f.B))
	if len(f.B) >= minFrame {
		return 1
	}
	v[1].Base = &padding[0]
	v[1].SetLen(minFrame - len(f.B))
	return 2
}

// dgram is a UDP socket whose datagrams are frames.
type dgram struct {
	descriptor
	remote  netip.AddrPort
	to      *destination
	names   [receiveBuffers]unix.RawSockaddrInet6
	control [receiveBuffers]control
	iov     [receiveBuffers]unix.Iovec
	in      [receiveBuffers]mmsghdr
	iovOut  [batchFrames][2]unix.Iovec
	out     [batchFrames]mmsghdr
	seen    uint32 // datagrams that the kernel had no room for
	fresh   uint64 // of them since the last call of lost
}

func openDgram(local, remote netip.AddrPort) (ethernet, error) {
	at := schemeDgram + local.String()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("a UDP socket for %s: %w", at, err)
	}
	on := func(opt, v int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, opt, v) }
	if on(unix.SO_RCVBUFFORCE, receiveRoom) != nil {
		_ = on(unix.SO_RCVBUF, receiveRoom) // as much as there is
	}
	if on(unix.SO_SNDBUFFORCE, sendRoom) != nil {
		_ = on(unix.SO_SNDBUF, sendRoom)
	}
	_ = on(unix.SO_RXQ_OVFL, 1)
	switch err := unix.Bind(fd, &unix.SockaddrInet4{Port: int(local.Port()), Addr: local.Addr().As4()}); {
	case errors.Is(err, unix.EADDRINUSE):
		err = fmt.Errorf("UDP %v is taken (`ss -ulnp sport = %d` says by whom): choose another port, and name it to the other end: %w", local, local.Port(), err)
		return nil, errors.Join(err, unix.Close(fd))
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return nil, errors.Join(fmt.Errorf("%v is no address of this machine: `ip address` lists those that it has: %w", local.Addr(), err), unix.Close(fd))
	case errors.Is(err, unix.EACCES):
		return nil, errors.Join(fmt.Errorf("UDP %v: ports up to 1023 are root's: choose another, and name it to the other end: %w", local, err), unix.Close(fd))
	case err != nil:
		return nil, errors.Join(fmt.Errorf("bind a UDP socket to %v: %w", local, err), unix.Close(fd))
	}
	d := &dgram{descriptor: descriptor(fd), remote: remote, to: newDestinationPort(remote)}
	for i := range d.in {
		h := &d.in[i].hdr
		h.Name, h.Iov, h.Control = (*byte)(unsafe.Pointer(&d.names[i])), &d.iov[i], &d.control[i].b[0]
		h.SetIovlen(1)
	}
	for i := range d.out {
		h := &d.out[i].hdr
		h.Name, h.Namelen, h.Iov = (*byte)(unsafe.Pointer(&d.to.name)), d.to.size, &d.iovOut[i][0]
	}
	return d, nil
}

func (d *dgram) receive(in *batch) (int, error) {
	for i := range d.in {
		h := &d.in[i].hdr
		h.Namelen, h.Flags = unix.SizeofSockaddrInet6, 0
		h.SetControllen(controlSize)
		d.iov[i].Base = &in.room(i)[0]
		d.iov[i].SetLen(frameRoom)
	}
	n, err := recvmmsg(d.fd(), d.in[:])
	for i := range n {
		m := &d.in[i]
		in.size[i] = int(m.n)
		in.strange[i] = source(&d.names[i]) != d.remote
		if f := d.control[i].read(int(m.hdr.Controllen)); f.counted {
			d.fresh += uint64(f.lost - d.seen)
			d.seen = f.lost
		}
	}
	return n, err
}

func (d *dgram) lost() (n uint64) {
	n, d.fresh = d.fresh, 0
	return n
}

func (d *dgram) send(all []*roce.Frame) (int, error) {
	for i, f := range all {
		d.out[i].hdr.SetIovlen(vectors(f, &d.iovOut[i]))
	}
	return sendmmsg(d.fd(), d.out[:len(all)])
}

// tap is a TAP interface, which has the frames one by one.
type tap struct {
	descriptor
	iov [2]unix.Iovec
}

// tapFile is the device file of TAP interfaces.
const tapFile = "/dev/net/tun"

func openTAP(name string) (ethernet, int, error) {
	create := fmt.Sprintf("`ip tuntap add %s mode tap user $USER && ip link set %[1]s up`, as root", name)
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil, 0, fmt.Errorf("this machine has no interface %s; %s, makes one", name, create)
	}
	fd, err := unix.Open(tapFile, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w: the kernel's module tun, or the right to use it, is missing; a UDP socket (dgram:) needs neither", tapFile, err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	switch {
	case errors.Is(err, unix.EBUSY):
		err = fmt.Errorf("%s is taken by another program: end it, or give another TAP interface: %w", name, err)
	case errors.Is(err, unix.EPERM):
		err = fmt.Errorf("%s belongs to another user: root may give it to you: `ip tuntap del %s mode tap`, and %s: %w", name, name, create, err)
	case errors.Is(err, unix.EINVAL):
		err = fmt.Errorf("%s is no TAP interface of one queue: %s, makes one: %w", name, create, err)
	case err != nil:
		err = fmt.Errorf("%s: %w", name, err)
	}
	if err != nil {
		return nil, 0, errors.Join(err, unix.Close(fd))
	}
	return &tap{descriptor: descriptor(fd)}, i.MTU, nil
}

func (t *tap) receive(in *batch) (n int, err error) {
	for n < receiveBuffers {
		in.strange[n] = false
		if in.size[n], err = unix.Read(t.fd(), in.room(n)); err != nil {
			break
		}
		n++
	}
	if n > 0 {
		return n, nil
	}
	return 0, err
}

func (t *tap) lost() uint64 { return 0 } // the interface counts them

func (t *tap) send(all []*roce.Frame) (n int, err error) {
	for _, f := range all {
		k := vectors(f, &t.iov)
		if _, _, e := unix.RawSyscall(unix.SYS_WRITEV, uintptr(t.fd()), uintptr(unsafe.Pointer(&t.iov[0])), uintptr(k)); e != 0 {
			return n, e
		}
		n++
	}
	return n, nil
}
