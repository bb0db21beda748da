//go:build linux

package wire

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/link"
)

// LAN is an Ethernet: the frames of a device as they are, in UDP datagrams, one in each and nothing
// beside it, which is what QEMU's netdev dgram and the older socket,udp= send (net/dgram.c,
// net/socket.c), or on a TAP interface of this machine. Where the device has no other host for its
// packets of IP, this end answers for it (host).
type LAN struct {
	C Counters

	cfg  Config
	eth  ethernet
	mtu  int
	end  *link.Port // the far end of the device's cable
	pool *roce.Pool
	host *host // nil: a guest answers for itself
	in   batch
	out  struct {
		frames [batchFrames]*roce.Frame
		n      int
	}
	parked [][]byte // frames that came while somebody waited for a neighbour
	told   map[string]bool
	stop   int // eventfd that ends Wait
}

// ethernet moves frames.
type ethernet interface {
	// receive fills in what has come, and returns how many frames.
	receive(in *batch) (int, error)
	// send sends frames, and returns how many were sent.
	send(f []*roce.Frame) (int, error)
	// lost is how many frames there was no room for since the last call.
	lost() uint64
	fd() int
	// gone has the descriptor never be ready again.
	gone()
	close() error
}

const (
	// maxFrame is the longest frame that is taken: a jumbo frame with two tags.
	maxFrame = 9216 + roce.EthernetSize + 2*roce.VLANSize
	// minFrame is the length up to which Ethernet pads frames (without FCS).
	minFrame = 60
	// mostParked bounds what is kept while somebody waits for a neighbour.
	mostParked = 1024
	// defaultMTU is that of Ethernet, which a guest's interface has until it is told another.
	defaultMTU = 1500
)

// OpenLAN opens an Ethernet. Its errors say what to do.
func OpenLAN(cfg Config) (*LAN, error) {
	cfg.Address = cfg.Address.Unmap()
	if cfg.Say == nil {
		cfg.Say = func(string, ...any) {}
	}
	l := &LAN{cfg: cfg, told: map[string]bool{}}
	var err error
	if cfg.Kind == KindTAP {
		l.eth, l.mtu, err = openTAP(cfg.Name)
	} else {
		l.mtu = defaultMTU
		l.eth, err = openDgram(cfg.Local, cfg.Remote)
	}
	if err != nil {
		return nil, err
	}
	if l.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, errors.Join(fmt.Errorf("eventfd: %w", err), l.eth.close())
	}
	if cfg.MTU > 0 {
		l.mtu = cfg.MTU
	}
	if least := roce.MTU256.Bytes() + Headers; l.mtu < least && cfg.Address.IsValid() {
		hint := fmt.Sprintf("--mtu %d", least)
		if cfg.Kind == KindTAP {
			hint = fmt.Sprintf("`ip link set %s mtu %d`", cfg.Name, least)
		}
		return nil, errors.Join(fmt.Errorf("the MTU of %v is %d bytes; the smallest path MTU of RoCE needs %d: %s", cfg.Place, l.mtu, least, hint), l.closeAll())
	}
	if cfg.Address.IsValid() {
		l.host = newHost(cfg.Address)
	}
	l.in.init()
	return l, nil
}

// Attach implements End. The link is asked whether another host has the address.
func (l *LAN) Attach(end *link.Port, pool *roce.Pool) {
	l.end, l.pool = end, pool
	if l.host != nil {
		l.answer(l.host.probe())
		l.Flush()
	}
}

// Name implements End.
func (l *LAN) Name() string { return l.cfg.Place.String() }

// Address implements End.
func (l *LAN) Address() netip.Addr { return l.cfg.Address }

// MTU implements End.
func (l *LAN) MTU() int { return l.mtu }

// FD implements End.
func (l *LAN) FD() int { return l.eth.fd() }

// Alone implements End: frames are never joined.
func (l *LAN) Alone() {}

// Counts implements End.
func (l *LAN) Counts() *Counters { return &l.C }

// Unit implements End.
func (l *LAN) Unit() string { return "frame" }

// Allows implements End. Groups are not asked for.
func (l *LAN) Allows(a netip.Addr) bool {
	a = a.Unmap()
	own := l.cfg.Address
	return a.Is4() == own.Is4() && a != own && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLinkLocalUnicast() && a != broadcast && allows(l.cfg.Allow, a)
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// Close implements End.
func (l *LAN) Close() error {
	l.drop()
	return l.closeAll()
}

func (l *LAN) closeAll() error { return errors.Join(l.eth.close(), unix.Close(l.stop)) }

// drop forgets what waits.
func (l *LAN) drop() {
	for i := range l.out.n {
		l.out.frames[i].Release()
		l.out.frames[i] = nil
	}
	l.out.n = 0
}

func (l *LAN) sayOnce(key, format string, a ...any) {
	if !l.told[key] && len(l.told) < mostPeers {
		l.told[key] = true
		l.cfg.Say(format, a...)
	}
}

// Receive implements link.Receiver: a frame of the device waits for Flush.
func (l *LAN) Receive(f *roce.Frame) {
	if l.host != nil && !l.sendable(f) {
		f.Release()
		return
	}
	f.FinishICRC()
	l.queue(f)
}

func (l *LAN) queue(f *roce.Frame) {
	if l.out.n == batchFrames {
		l.Flush()
	}
	l.out.frames[l.out.n] = f
	l.out.n++
}

// sendable says whether a frame of a device with an address of its own can be sent, and counts it
// if not.
func (l *LAN) sendable(f *roce.Frame) bool {
	pk, err := f.Decode()
	if err != nil || pk.VLAN() != nil || pk.Framing != roce.RoCEv2IPv4 && pk.Framing != roce.RoCEv2IPv6 {
		l.C.Unsendable++
		return false
	}
	to := destinationOf(pk)
	if !to.IsMulticast() && !l.Allows(to) {
		l.C.Unallowed++
		return false
	}
	if n := pk.Len() - roce.EthernetSize; n > l.mtu {
		l.C.TooLong++
		l.sayOnce("long "+to.String(), "a packet of %d bytes does not reach %v: the MTU of %v is %d; %s", n, to, l.cfg.Place, l.mtu, fitting(l.mtu))
		return false
	}
	return true
}

// answer sends a frame of the host's; nil: there is none.
func (l *LAN) answer(b []byte) {
	if b == nil {
		return
	}
	l.C.Answered++
	f := l.pool.GetPlain(len(b))
	copy(f.B, b)
	l.queue(f)
}

// Queued implements End.
func (l *LAN) Queued() int { return l.out.n }

// Flush implements End. Where the kernel has no room it waits for a moment, as a device waits for
// its link.
func (l *LAN) Flush() {
	all := l.out.frames[:l.out.n]
	for at := 0; at < len(all); {
		l.C.SendCalls++
		n, err := l.eth.send(all[at:])
		for _, f := range all[at : at+n] {
			l.C.Sent++
			l.C.SentBytes += uint64(len(f.B))
		}
		at += n
		if err != nil && at < len(all) && !l.retry(err) {
			l.failed(err)
			at++
		}
	}
	l.drop()
}

// retry says whether to send the same again, after a wait if need be.
func (l *LAN) retry(err error) bool {
	return errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) && awaitFD(l.eth.fd(), unix.POLLOUT, noRoomWait)
}

func (l *LAN) failed(err error) {
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOBUFS) {
		l.C.NoRoom++
		return
	}
	l.C.Unreachable++
	if l.cfg.Kind == KindTAP && errors.Is(err, unix.EIO) {
		l.sayOnce("down", "frames do not leave: the interface is down: `ip link set %s up`", l.cfg.Name)
		return
	}
	l.sayOnce("send", "frames cannot be sent to %v: %v; devices send them again until their retries end", l.cfg.Place, err)
}

// awaitFD waits for a descriptor, and reports whether it is ready.
func awaitFD(fd int, events int16, d time.Duration) bool {
	ts := unix.NsecToTimespec(int64(max(0, d)))
	n, _ := unix.Ppoll([]unix.PollFd{{Fd: int32(fd), Events: events}}, &ts, nil)
	return n > 0
}

// Fetch implements End.
func (l *LAN) Fetch() bool {
	n, err := l.eth.receive(&l.in)
	switch {
	case err == nil, errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
	case errors.Is(err, unix.EBADFD):
		l.sayOnce("gone", "the interface %s is gone; no frame passes any more", l.cfg.Name)
		l.eth.gone()
	default:
		l.sayOnce("receive", "frames of %v cannot be received: %v", l.cfg.Place, err)
	}
	if n > 0 {
		l.C.ReceiveCalls++
	}
	l.in.n = n
	return n > 0 || len(l.parked) > 0
}

// Deliver implements End.
func (l *LAN) Deliver() (reads bool) {
	for _, b := range l.parked {
		reads = l.take(b) || reads
	}
	l.parked = nil
	l.C.Overrun += l.eth.lost()
	for i := range l.in.n {
		if b := l.whole(i); b != nil {
			reads = l.take(b) || reads
		}
	}
	l.in.n = 0
	return reads
}

// whole is a frame that has come; nil, and it is counted: it is none, or a stranger's.
func (l *LAN) whole(i int) []byte {
	in := &l.in
	switch {
	case in.strange[i]:
		l.C.Others++
	case in.size[i] > maxFrame:
		l.C.Truncated++
	case in.size[i] < roce.EthernetSize:
		l.C.Malformed++
	default:
		return in.bytes(i)
	}
	return nil
}

// take gives a frame to the device, or to the host.
func (l *LAN) take(b []byte) (reads bool) {
	if l.host == nil {
		l.deliver(b)
		return true // packets of IP may be written and read anywhere
	}
	return l.hosted(b) && l.rdma(b)
}

// hosted shows the host a frame, and reports whether it is one for the device.
func (l *LAN) hosted(b []byte) bool {
	v, answer := l.host.take(b, l.cfg.Allow)
	l.answer(answer)
	switch v {
	case stranger:
		l.C.Strangers++
	case tagged:
		l.C.Tagged++
	case malformed:
		l.C.Malformed++
	}
	if l.host.conflict != (roce.MAC{}) {
		l.sayOnce("conflict", "%v has another host on %v, %v: give each its own address", l.cfg.Address, l.cfg.Place, l.host.conflict)
	}
	return v == forDevice
}

// deliver puts a frame on the cable.
func (l *LAN) deliver(b []byte) *roce.Frame {
	f := l.pool.Get(len(b))
	copy(f.B, b)
	l.C.Received++
	l.C.ReceivedBytes += uint64(len(b))
	l.end.Send(f)
	return f
}

// rdma puts a packet of RoCE v2 to the device's address on the cable, if it is whole. Padding is
// left out.
func (l *LAN) rdma(b []byte) (reads bool) {
	pk, err := roce.Parse(b)
	switch {
	case err == roce.DropIPFragment:
		l.sayOnce("fragment", "the peer's packets come in fragments, which no adapter takes: its path MTU is greater than the MTU of the way; %s", fitting(l.mtu))
		l.C.Malformed++
		return false
	case err != nil:
		l.C.Malformed++
		return false
	case !pk.ICRCOK():
		l.C.BadICRC++
		return false
	}
	l.host.learn(sourceOf(&pk), roce.Ethernet(b).Src(), true)
	if text := tooLarge(&pk, &l.cfg.Place, l.mtu); text != "" {
		l.sayOnce("mtu "+sourceOf(&pk).String(), "%s", text)
	}
	info := pk.Op.Info()
	f := l.pool.Get(pk.Len())
	copy(f.B, b)
	f.ICRC = roce.ICRCValid
	l.C.Received++
	l.C.ReceivedBytes += uint64(len(f.B))
	l.end.Send(f)
	return info.Class == roce.ClassReadRequest || info.Class == roce.ClassAtomic
}

// How long a neighbour may take to answer, and how often it is asked meanwhile: rdma_cm and
// ibv_modify_qp wait a second (rdma_addr_find_l2_eth_by_grh). Nobody asks for one again that has
// not answered for as long.
const (
	neighbourPatience = time.Second
	neighbourTries    = 3
)

// Neighbour implements End. While it waits, what comes for the device is kept.
func (l *LAN) Neighbour(a netip.Addr) (roce.MAC, bool) {
	a = a.Unmap()
	if l.host == nil || !l.Allows(a) {
		return roce.MAC{}, false
	}
	mac, known := l.host.neighbour(a)
	if known {
		return mac, mac != roce.MAC{}
	}
	for range neighbourTries {
		l.answer(l.host.solicit(a))
		l.Flush()
		for until := time.Now().Add(neighbourPatience / neighbourTries); ; {
			if mac, ok := l.host.fresh(a); ok {
				return mac, true
			}
			if !awaitFD(l.eth.fd(), unix.POLLIN, time.Until(until)) {
				break
			}
			l.park()
		}
	}
	l.host.silent(a)
	l.sayOnce("silent "+a.String(), "no host on %v answers for %v: is its interface up, and has it this address?", l.cfg.Place, a)
	return roce.MAC{}, false
}

// park hands what has come to the host, and keeps what is the device's.
func (l *LAN) park() {
	n, _ := l.eth.receive(&l.in)
	l.in.n = n
	for i := range n {
		b := l.whole(i)
		if b == nil {
			continue
		}
		switch {
		case !l.hosted(b):
		case len(l.parked) < mostParked:
			l.parked = append(l.parked, append([]byte(nil), b...))
		default:
			l.C.Overrun++
		}
	}
	l.in.n = 0
	l.Flush()
}

// Wait waits until there is something to Fetch, in a goroutine of its own, and reports whether
// there is: Stop ends it.
func (l *LAN) Wait() bool {
	for {
		p := []unix.PollFd{{Fd: int32(l.eth.fd()), Events: unix.POLLIN}, {Fd: int32(l.stop), Events: unix.POLLIN}}
		n, err := unix.Poll(p, -1)
		switch {
		case err != nil && !errors.Is(err, unix.EINTR), n > 0 && p[1].Revents != 0:
			return false
		case n > 0:
			return true
		}
	}
}

// Stop ends Wait.
func (l *LAN) Stop() {
	one := [8]byte{1}
	_, _ = unix.Write(l.stop, one[:])
}
