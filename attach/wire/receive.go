//go:build linux

package wire

import (
	"errors"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/roce"
)

// Limits of one receive call.
const (
	receiveBuffers = 16
	receiveSize    = 1 << 16 // no UDP datagram, and no buffer of several, is longer
)

// incoming are the buffers of a receive call.
type incoming struct {
	data    []byte
	iov     [receiveBuffers]unix.Iovec
	names   [receiveBuffers]unix.RawSockaddrInet6
	control [receiveBuffers]control
	headers [receiveBuffers]mmsghdr
	n       int // buffers of the last call that have not been delivered
}

func (in *incoming) init() {
	in.data = make([]byte, receiveBuffers*receiveSize)
	for i := range in.headers {
		in.iov[i].Base = &in.data[i*receiveSize]
		in.iov[i].SetLen(receiveSize)
		h := &in.headers[i].hdr
		h.Name, h.Iov, h.Control = (*byte)(unsafe.Pointer(&in.names[i])), &in.iov[i], &in.control[i].b[0]
		h.SetIovlen(1)
		in.reset(i)
	}
}

// reset makes a header ready for the next call.
func (in *incoming) reset(i int) {
	h := &in.headers[i].hdr
	h.Namelen, h.Flags = unix.SizeofSockaddrInet6, 0
	h.SetControllen(controlSize)
}

// Fetch receives datagrams from the socket without waiting, and reports whether there were any.
// Deliver passes them to the device.
func (p *Port) Fetch() bool {
	n, err := recvmmsg(p.sock.fd, p.in.headers[:])
	if err != nil {
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			p.sayOnce("receive", "datagrams for %v cannot be received: %v", p.cfg.Address, err)
		}
		return false
	}
	p.C.ReceiveCalls++
	p.in.n = n
	return n > 0
}

// Deliver puts the frames that Fetch received on the device's cable. It reports whether one of
// them, a READ or an atomic, asks for memory that programs may have written since the device last
// looked.
func (p *Port) Deliver() (reads bool) {
	in := &p.in
	for i := range in.n {
		m := &in.headers[i]
		f := in.control[i].read(int(m.hdr.Controllen))
		if f.counted {
			p.C.Overrun += uint64(f.lost - p.lost)
			p.lost = f.lost
		}
		a := arrived{from: source(&in.names[i]), tos: f.tos, ttl: f.ttl}
		truncated := m.hdr.Flags&unix.MSG_TRUNC != 0
		reads = p.split(in.data[i*receiveSize:i*receiveSize+int(m.n)], f.segment, truncated, &a) || reads
		in.reset(i)
	}
	in.n = 0
	return reads
}

// split takes the datagrams out of a buffer.
func (p *Port) split(data []byte, segment int, truncated bool, a *arrived) (reads bool) {
	if segment <= 0 {
		segment = len(data)
	}
	who := p.peer(a.from.Addr())
	for first := true; first || len(data) > 0; first = false {
		a.data = data[:min(segment, len(data))]
		data = data[len(a.data):]
		switch {
		case who == nil:
			p.C.Strangers++
		case len(a.data) > maxDatagram || truncated && len(data) == 0:
			p.C.Truncated++
		case len(a.data) < minDatagram || len(a.data)%4 != 0:
			p.C.Malformed++
		default:
			reads = p.arrive(who, a) || reads
		}
		a.segment++
	}
	return reads
}

// peer is that of an address; nil: it is a stranger's.
func (p *Port) peer(a netip.Addr) *peer {
	if who := p.lastPeer; who != nil && who.addr == a {
		return who
	}
	who := p.peers[a]
	if who == nil {
		if !p.Allows(a) {
			return nil
		}
		if len(p.peers) >= mostPeers {
			clear(p.peers)
		}
		who = newPeer(a, p.cfg.Address)
		p.peers[a] = who
	}
	p.lastPeer = who
	return who
}

// arrive puts a datagram on the cable.
func (p *Port) arrive(who *peer, a *arrived) (reads bool) {
	f, drop := who.frame(p.pool, &p.solver, a)
	switch {
	case drop == roce.DropICRC:
		p.C.BadICRC++
		return false
	case f == nil:
		p.C.Malformed++
		return false
	}
	if who.counts {
		p.C.Counted++
	}
	p.C.Received++
	p.C.ReceivedBytes += uint64(len(a.data))
	if text := tooLarge(&f.Packet, &p.cfg.Place, p.mtu); text != "" {
		p.sayOnce("mtu "+who.addr.String(), "%s", text)
	}
	info := f.Info()
	reads = info.Class == roce.ClassReadRequest || info.Class == roce.ClassAtomic
	p.end.Send(f)
	return reads
}
