//go:build linux

package wire

import (
	"errors"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/roce"
)

// Limits of what is sent by one call, and of the bytes of one buffer that the kernel cuts into
// datagrams.
const (
	batchFrames  = 128
	batchBuffers = 64
	maxBuffer    = 64000
)

// buffer is a datagram, or several of the same length to the same place, of which only the last may
// be shorter.
type buffer struct {
	to           *destination
	tos, ttl     uint8
	segment      int // bytes of each datagram
	bytes        int
	first, count int // frames
	full         bool
}

// outgoing are the frames that wait for Flush.
type outgoing struct {
	frames  [batchFrames]*roce.Frame
	iov     [batchFrames]unix.Iovec
	n       int
	buffers [batchBuffers]buffer
	used    int
	headers [batchBuffers]mmsghdr
	control [batchBuffers]control
	alone   bool // one datagram a buffer
}

func (o *outgoing) init() {
	for i := range o.headers {
		o.headers[i].hdr.Control = &o.control[i].b[0]
	}
}

// drop forgets what waits.
func (o *outgoing) drop() {
	for i := range o.n {
		o.frames[i].Release()
		o.frames[i] = nil
	}
	o.n, o.used = 0, 0
}

// Alone makes the port send each datagram in a call of its own, so that all have the identification
// 0.
func (p *Port) Alone() { p.out.alone = true }

// Receive queues a frame of the device for Flush; it implements link.Receiver.
func (p *Port) Receive(f *roce.Frame) {
	pk, err := f.Decode()
	if err != nil {
		p.C.Unsendable++
		f.Release()
		return
	}
	to, tos, ttl := p.destination(pk)
	if to == nil {
		f.Release()
		return
	}
	o := &p.out
	if o.n == batchFrames || o.used == batchBuffers {
		p.Flush()
	}
	at, end := pk.BTHOffset(), pk.Len()
	n := end - at
	var b *buffer
	if o.used > 0 {
		b = &o.buffers[o.used-1]
	}
	// The kernel gives the datagrams of a buffer the identifications 0, 1, 2 and so on, which the
	// ICRC covers.
	if b != nil && !b.full && p.sock.segment && !o.alone && f.ICRC == roce.ICRCPending && f.Refs() == 1 && b.to == to && b.tos == tos && b.ttl == ttl &&
		n <= b.segment && b.count < maxSegments && b.bytes+n <= maxBuffer {
		if pk.Framing == roce.RoCEv2IPv4 {
			pk.PutIPv4Hidden(uint16(b.count), roce.IPv4DontFragment)
		}
		b.full = n < b.segment
		b.bytes += n
		b.count++
	} else {
		o.buffers[o.used] = buffer{to: to, tos: tos, ttl: ttl, segment: n, bytes: n, first: o.n, count: 1}
		o.used++
	}
	f.FinishICRC()
	o.iov[o.n].Base = &f.B[at]
	o.iov[o.n].SetLen(n)
	o.frames[o.n] = f
	o.n++
}

// destination is where a packet goes, with its traffic class and TTL; nil, and it is counted, if no
// datagram carries it there.
func (p *Port) destination(pk *roce.Packet) (d *destination, tos, ttl uint8) {
	var a netip.Addr
	switch {
	case pk.VLAN() != nil:
	case pk.Framing == roce.RoCEv2IPv4:
		h := pk.IPv4()
		a, tos, ttl = netip.AddrFrom4(h.Dst()), h.TOS(), h.TTL()
	case pk.Framing == roce.RoCEv2IPv6:
		h := pk.IPv6()
		a, tos, ttl = netip.AddrFrom16(h.Dst()).Unmap(), h.TrafficClass(), h.HopLimit()
	}
	if d := p.last; d != nil && d.addr == a {
		return d, tos, ttl
	}
	switch {
	case !a.IsValid() || a.Is4() != p.cfg.Address.Is4() || a.IsMulticast() || a.IsLinkLocalUnicast() || a.IsUnspecified():
		p.C.Unsendable++
		return nil, 0, 0
	case !p.Allows(a):
		p.C.Unallowed++
		return nil, 0, 0
	}
	if d = p.dests[a]; d == nil {
		if len(p.dests) >= mostPeers {
			clear(p.dests)
		}
		d = newDestination(a)
		p.dests[a] = d
	}
	p.last = d
	return d, tos, ttl
}

// Queued returns how many frames wait for Flush.
func (p *Port) Queued() int { return p.out.n }

// Flush sends the queued frames. If the kernel has no room, it waits a moment, as a device waits
// for its link.
func (p *Port) Flush() {
	o := &p.out
	if o.n == 0 {
		return
	}
	for i := range o.used {
		p.prepare(i)
	}
	for at := 0; at < o.used; {
		p.C.SendCalls++
		n, err := sendmmsg(p.sock.fd, o.headers[at:o.used])
		for i := range n {
			p.sent(&o.buffers[at+i])
		}
		at += n
		if err != nil && !p.retry(err) {
			p.failed(&o.buffers[at], err)
			at++
		}
	}
	o.drop()
}

func (p *Port) sent(b *buffer) {
	p.C.Sent += uint64(b.count)
	p.C.SentBytes += uint64(b.bytes)
}

// prepare describes a buffer to the kernel.
func (p *Port) prepare(i int) {
	o := &p.out
	b, h, c := &o.buffers[i], &o.headers[i].hdr, &o.control[i]
	h.Name, h.Namelen = (*byte)(unsafe.Pointer(&b.to.name)), b.to.size
	h.Iov = &o.iov[b.first]
	h.SetIovlen(b.count)
	n := 0
	if b.ttl != defaultTTL {
		n = c.add(n, p.level(), p.option(unix.IP_TTL, unix.IPV6_HOPLIMIT), uint32(b.ttl), sizeofInt)
	}
	if b.tos != 0 {
		n = c.add(n, p.level(), p.option(unix.IP_TOS, unix.IPV6_TCLASS), uint32(b.tos), sizeofInt)
	}
	if b.count > 1 {
		n = c.add(n, unix.IPPROTO_UDP, unix.UDP_SEGMENT, uint32(b.segment), sizeofShort)
	}
	h.Control = nil
	if n > 0 {
		h.Control = &c.b[0]
	}
	h.SetControllen(n)
}

// Sizes of what control messages hold.
const (
	sizeofInt   = 4
	sizeofShort = 2
)

func (p *Port) level() int32 { return p.option(unix.IPPROTO_IP, unix.IPPROTO_IPV6) }

func (p *Port) option(v4, v6 int32) int32 {
	if p.sock.ipv6 {
		return v6
	}
	return v4
}

// noRoomWait bounds one wait for room in the socket.
const noRoomWait = time.Millisecond

// retry says whether to send the same again, after a wait if need be.
func (p *Port) retry(err error) bool {
	switch {
	case errors.Is(err, unix.EINTR):
		return true
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOBUFS):
		ts := unix.NsecToTimespec(int64(noRoomWait))
		n, _ := unix.Ppoll([]unix.PollFd{{Fd: int32(p.sock.fd), Events: unix.POLLOUT}}, &ts, nil)
		return n > 0 && errors.Is(err, unix.EAGAIN)
	}
	return false
}

// failed is a buffer that the kernel did not take. Several datagrams are tried one by one: the
// interface may not cut buffers.
func (p *Port) failed(b *buffer, err error) {
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOBUFS):
		p.C.NoRoom += uint64(b.count)
		return
	case b.count == 1:
		p.refused(b.to, b.bytes, err)
		return
	}
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.EOPNOTSUPP) {
		p.sock.segment = false
	}
	for i := b.first; i < b.first+b.count; i++ {
		p.one(b, i)
	}
}

// one sends one frame of a buffer by itself.
func (p *Port) one(b *buffer, i int) {
	o := &p.out
	pk, err := o.frames[i].Decode()
	if err != nil {
		return
	}
	if pk.Framing == roce.RoCEv2IPv4 && pk.IPv4().ID() != 0 {
		pk.PutIPv4Hidden(0, roce.IPv4DontFragment)
		pk.FixICRC()
	}
	single := buffer{to: b.to, tos: b.tos, ttl: b.ttl, segment: int(o.iov[i].Len), bytes: int(o.iov[i].Len), first: i, count: 1}
	const slot = batchBuffers - 1 // the last, which is described anew
	was := o.buffers[slot]
	o.buffers[slot] = single
	p.prepare(slot)
	for {
		p.C.SendCalls++
		_, err = sendmmsg(p.sock.fd, o.headers[slot:])
		if err == nil || !p.retry(err) {
			break
		}
	}
	o.buffers[slot] = was
	if was.count > 0 {
		p.prepare(slot)
	}
	if err != nil {
		p.refused(b.to, single.bytes, err)
		return
	}
	p.sent(&single)
}

// refused counts a datagram that the kernel did not send, and says why once for each peer.
func (p *Port) refused(to *destination, bytes int, err error) {
	if !errors.Is(err, unix.EMSGSIZE) {
		p.C.Unreachable++
		if !to.told {
			to.told = true
			p.cfg.Say("datagrams to %v cannot be sent: %v; devices send them again until their retries end", to.addr, err)
		}
		return
	}
	p.C.TooLong++
	if to.told {
		return
	}
	to.told = true
	if mtu := pathMTU(to); mtu > 0 {
		p.cfg.Say("a packet of %d bytes does not reach %v: the MTU of the way there is %d; %s", bytes, to.addr, mtu, fitting(mtu))
		return
	}
	p.cfg.Say("a packet of %d bytes does not reach %v: it is longer than the MTU of the way there; use a smaller path MTU (perftest: -m 1024)", bytes, to.addr)
}
