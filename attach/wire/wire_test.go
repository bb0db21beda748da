//go:build linux

package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/link"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// loopback is address n of this process among those of the loopback interface, so that tests that
// run side by side have their own.
func loopback(n int) netip.Addr {
	pid := os.Getpid()
	return netip.AddrFrom4([4]byte{127, byte(64 + pid>>8%128), byte(pid), byte(1 + n)})
}

// kept is the device's end of a cable.
type kept struct{ frames [][]byte }

func (k *kept) Receive(f *roce.Frame) {
	k.frames = append(k.frames, bytes.Clone(f.B))
	f.Release()
}

// open is a port with a cable, and what arrives at the device's end.
func open(t testing.TB, cfg Config) (*Port, *kept, *sim.Engine) {
	t.Helper()
	p, err := OpenPort(cfg)
	if err != nil {
		t.Fatal(err)
	}
	k, e := cabled(t, p)
	return p, k, e
}

// cabled puts an end on a cable until the test is over, and keeps what arrives at the device's end.
func cabled(t testing.TB, far End) (*kept, *sim.Engine) {
	t.Helper()
	t.Cleanup(func() {
		if err := far.Close(); err != nil {
			t.Error(err)
		}
	})
	prof, err := profile.Load(profile.Default)
	if err != nil {
		t.Fatal(err)
	}
	e := sim.New(sim.Options{})
	c := link.NewCable(e, prof.Link, "device", "wire")
	k := &kept{}
	c.End(0).Attach(k)
	c.End(1).Attach(far)
	far.Attach(c.End(1), new(roce.Pool))
	return k, e
}

// receive takes all datagrams that have come.
func receive(t testing.TB, p *Port, e *sim.Engine) {
	t.Helper()
	for p.Fetch() {
		p.Deliver()
	}
	if err := e.Run(e.Now() + sim.Millisecond); err != nil {
		t.Fatal(err)
	}
}

// frames makes frames from one address to another with these lengths of payload.
func frames(t testing.TB, from, to netip.Addr, tos, ttl uint8, sizes ...int) (l []*roce.Frame) {
	t.Helper()
	path := roce.Path{Framing: roce.RoCEv2IPv4, SrcGID: roce.GID(from.As16()), DstGID: roce.GID(to.As16()), TrafficClass: tos, HopLimit: ttl,
		SrcPort: roce.UDPPort, PKey: roce.DefaultPKey, DestQP: 5, SrcMAC: MACOf(from), DstMAC: MACOf(to)}
	if !from.Is4() {
		path.Framing = roce.RoCEv2IPv6
	}
	tmpl, err := roce.NewTemplate(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range sizes {
		f := tmpl.New(new(roce.Pool), roce.RCSendOnly, uint32(i), n, 0)
		for k := range f.Payload() {
			f.Payload()[k] = byte(i + k)
		}
		l = append(l, f)
	}
	return l
}

// TestFramesArrive: frames come out as they went in, with the traffic class and the TTL of each,
// alone and as buffers that the kernel cuts.
func TestFramesArrive(t *testing.T) {
	for i, alone := range []bool{false, true} {
		a, b := loopback(20+2*i), loopback(21+2*i)
		x, _, _ := open(t, Config{Place: At(a)})
		y, got, e := open(t, Config{Place: At(b)})
		if alone {
			x.Alone()
		}
		var want [][]byte
		send := func(tos, ttl uint8, sizes ...int) {
			for _, f := range frames(t, a, b, tos, ttl, sizes...) {
				x.Receive(f)
				want = append(want, bytes.Clone(f.B))
			}
		}
		send(0, 64, 1024, 1024, 1024, 7, 1024, 4096, 4096, 4096, 0, 0, 3)
		send(0x6a, 64, 64, 64)
		send(0x6a, 3, 64, 64, 64)
		if x.Queued() != len(want) {
			t.Errorf("%d of %d frames wait", x.Queued(), len(want))
		}
		x.Flush()
		receive(t, y, e)
		if len(got.frames) != len(want) {
			t.Fatalf("alone %v: %d frames arrive of %d: %+v, %+v", alone, len(got.frames), len(want), x.C, y.C)
		}
		for i := range want {
			if !bytes.Equal(got.frames[i], want[i]) {
				t.Errorf("alone %v, frame %d:\n%x\nwant\n%x", alone, i, got.frames[i], want[i])
			}
		}
		if x.C.Sent != uint64(len(want)) || y.C.Received != x.C.Sent || y.C.ReceivedBytes != x.C.SentBytes || x.C.SendCalls != 1 {
			t.Errorf("%+v, %+v", x.C, y.C)
		}
		if d := x.C.Dropped() + y.C.Dropped(); d != "" {
			t.Error(d)
		}
	}
}

// TestManyFrames: more frames than one call takes keep their order.
func TestManyFrames(t *testing.T) {
	a, b := loopback(2), loopback(3)
	x, _, _ := open(t, Config{Place: At(a)})
	y, got, e := open(t, Config{Place: At(b)})
	const rounds = 40
	for i := range rounds {
		for _, f := range frames(t, a, b, 0, 64, 1024, 1024, 1024, 4*i) {
			x.Receive(f)
		}
	}
	x.Flush()
	receive(t, y, e)
	if len(got.frames) != 4*rounds || x.C.SendCalls > 3 {
		t.Fatalf("%d frames in %d calls", len(got.frames), x.C.SendCalls)
	}
	for i, f := range got.frames {
		p, err := roce.Parse(f)
		if want := []int{1024, 1024, 1024, i / 4 * 4}[i%4]; err != nil || !p.ICRCOK() || p.PayloadLen() != want {
			t.Errorf("frame %d: %v, %d bytes", i, err, p.PayloadLen())
		}
	}
}

// TestNoAllocation: a frame that goes from one port to another allocates nothing once there were
// some.
func TestNoAllocation(t *testing.T) {
	a, b := loopback(14), loopback(15)
	x, _, _ := open(t, Config{Place: At(a)})
	y, _, e := open(t, Config{Place: At(b)})
	allocatesNothing(t, x, y, y.end, e, roce.Path{Framing: roce.RoCEv2IPv4, SrcGID: roce.GID(a.As16()), DstGID: roce.GID(b.As16()), HopLimit: 64,
		SrcPort: roce.UDPPort, PKey: roce.DefaultPKey})
}

// allocatesNothing sends frames of a path from one end to another, whose end of the cable is near,
// and counts allocations.
func allocatesNothing(t *testing.T, x, y End, near *link.Port, e *sim.Engine, path roce.Path) {
	t.Helper()
	pool := new(roce.Pool)
	tmpl, err := roce.NewTemplate(path)
	if err != nil {
		t.Fatal(err)
	}
	drop := &dropped{}
	near.Peer().Attach(drop)
	round := func() {
		for range 20 {
			x.Receive(tmpl.New(pool, roce.RCSendOnly, 0, 1024, 0))
		}
		x.Flush()
		for y.Fetch() {
			y.Deliver()
		}
		_ = e.Run(e.Now() + sim.Millisecond)
	}
	for range 10 {
		round()
	}
	was := drop.n
	if n := testing.AllocsPerRun(20, round); n > 0 || drop.n != was+21*20 {
		t.Errorf("%v allocations for 20 frames, %d arrived", n, drop.n-was)
	}
}

// dropped counts frames.
type dropped struct{ n int }

func (d *dropped) Receive(f *roce.Frame) { d.n++; f.Release() }

// TestUnsendable: what no datagram carries is counted and dropped.
func TestUnsendable(t *testing.T) {
	a, b := loopback(4), loopback(5)
	_, net24, _ := strings.Cut(a.String(), ".")
	allow, err := ParseAllow("127." + net24[:strings.LastIndex(net24, ".")] + ".0/24")
	if err != nil {
		t.Fatal(err)
	}
	x, _, _ := open(t, Config{Place: At(a), Allow: []netip.Prefix{allow}})
	one := func(from, to netip.Addr) { x.Receive(frames(t, from, to, 0, 64, 8)[0]) }
	one(a, netip.MustParseAddr("224.0.0.1"))
	one(netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2"))
	broken := frames(t, a, b, 0, 64, 8)[0]
	broken.FinishICRC()
	broken.Touch()
	broken.B[14] = 0x55 // version 5
	x.Receive(broken)
	one(a, netip.MustParseAddr("127.1.2.3"))
	one(a, a)
	if x.C.Unsendable != 3 || x.C.Unallowed != 2 || x.Queued() != 0 {
		t.Errorf("%+v", x.C)
	}
}

// sender is a socket of somebody else.
func sender(t *testing.T, from, to netip.Addr) func(data []byte) {
	t.Helper()
	s, err := openSocket(from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(s.fd) })
	return func(data []byte) {
		t.Helper()
		if err := unix.Sendto(s.fd, data, 0, &unix.SockaddrInet4{Port: roce.UDPPort, Addr: to.As4()}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBadDatagrams: strangers, broken datagrams and wrong ICRCs are counted by their kind, and
// others still arrive.
func TestBadDatagrams(t *testing.T) {
	a, b, c := loopback(6), loopback(7), loopback(8)
	y, got, e := open(t, Config{Place: At(b), Allow: []netip.Prefix{netip.PrefixFrom(a, 32)}})
	peer, stranger := sender(t, a, b), sender(t, c, b)
	f := frames(t, a, b, 0, 64, 100)[0]
	f.FinishICRC()
	good := f.B[42:]
	for range exactEnough {
		peer(good)
	}
	stranger(good)
	stranger(nil)
	peer(nil)
	peer(good[:len(good)-1])
	peer(good[:8])
	peer(make([]byte, maxDatagram+4))
	wrong := bytes.Clone(good)
	wrong[20] ^= 1
	peer(wrong)
	// With another identification, as a peer that counts would send; this one has not.
	pk, err := f.Decode()
	if err != nil {
		t.Fatal(err)
	}
	pk.PutIPv4Hidden(4711, roce.IPv4DontFragment)
	pk.FixICRC()
	peer(good)
	receive(t, y, e)
	want := Counters{Received: exactEnough, Strangers: 2, Malformed: 3, Truncated: 1, BadICRC: 2}
	want.ReceivedBytes, want.ReceiveCalls = exactEnough*uint64(len(good)), y.C.ReceiveCalls
	if y.C != want || len(got.frames) != exactEnough {
		t.Errorf("%+v, %d frames; want %+v", y.C, len(got.frames), want)
	}
	if d := y.C.Dropped(); !strings.Contains(d, "2 from addresses that --allow leaves out, 1 longer than any packet, 3 that were no RoCE packets, 2 with a wrong ICRC") {
		t.Error(d)
	}
}

// TestPeerThatCounts: the frame of a peer that numbers its datagrams, as Soft-RoCE does, has its
// identification.
func TestPeerThatCounts(t *testing.T) {
	a, b := loopback(9), loopback(10)
	y, got, e := open(t, Config{Place: At(b)})
	peer := sender(t, a, b)
	for id := range uint16(40) {
		f := frames(t, a, b, 0, 64, 4*int(id))[0]
		f.FinishICRC()
		pk, err := f.Decode()
		if err != nil {
			t.Fatal(err)
		}
		pk.PutIPv4Hidden(60000+id*300, roce.IPv4DontFragment)
		pk.FixICRC()
		peer(f.B[42:])
	}
	receive(t, y, e)
	if len(got.frames) != 40 || y.C.Counted == 0 {
		t.Fatalf("%d frames, %+v", len(got.frames), y.C)
	}
	for i, b := range got.frames {
		if p, err := roce.Parse(b); err != nil || !p.ICRCOK() || p.IPv4().ID() != 60000+uint16(i)*300 {
			t.Errorf("frame %d: %v, identification %d", i, err, p.IPv4().ID())
		}
	}
}

// TestOpenErrors: each error says what to do.
func TestOpenErrors(t *testing.T) {
	a := loopback(11)
	x, _, _ := open(t, Config{Place: At(a)})
	if x.MTU() < 1500 || x.Room() < 200<<10 || !x.Allows(loopback(12)) || x.Allows(a) {
		t.Errorf("MTU %d, room %d", x.MTU(), x.Room())
	}
	for addr, want := range map[netip.Addr]string{a: "is taken by another session", netip.MustParseAddr("192.0.2.201"): "no address of this machine"} {
		if p, err := OpenPort(Config{Place: At(addr)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, %v", addr, p, err)
		}
	}
}

// TestWords: what users write, and what they are told.
func TestWords(t *testing.T) {
	for s, want := range map[string]string{
		"udp:192.0.2.1": "192.0.2.1", "udp:2001:db8::1": "2001:db8::1", "udp:::ffff:1.2.3.4": "1.2.3.4", "192.0.2.1": "udp:ADDRESS", "udp:host": "no IP address",
		"udp:1.2.3.4:5": "no IP address", "udp:fe80::1%lo": "link-local", "udp:0.0.0.0": "of this machine's own", "udp:224.0.0.1": "of this machine's own", "": "udp:ADDRESS",
	} {
		a, err := ParseAddress(s)
		if got := fmt.Sprint(a, err); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
	for s, want := range map[string]string{"10.1.2.3/8": "10.0.0.0/8", "10.1.2.3": "10.1.2.3/32", "::1": "::1/128", "x": "is needed", "1.2.3.4/33": "is needed"} {
		p, err := ParseAllow(s)
		if got := fmt.Sprint(p, err); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
	for mtu, want := range map[int]string{1500: "-m 1024", 9000: "-m 4096", 1119: "-m 512", 352: "-m 256", 351: "needs 352"} {
		if got := fitting(mtu); !strings.Contains(got, want) {
			t.Errorf("MTU %d: %s", mtu, got)
		}
	}
	if MACOf(netip.MustParseAddr("10.1.2.3")) != (roce.MAC{2, 0, 10, 1, 2, 3}) || MACOf(netip.MustParseAddr("::1")) == MACOf(netip.MustParseAddr("::2")) {
		t.Error("Ethernet addresses")
	}
}

// FuzzDatagram: no bytes make the receiver panic; each datagram is counted once, and what arrives
// is a whole packet with its ICRC.
func FuzzDatagram(f *testing.F) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	a6, b6 := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	for _, ends := range [][2]netip.Addr{{a, b}, {a6, b6}} {
		for _, fr := range frames(f, ends[0], ends[1], 0, 64, 0, 5, 1024) {
			fr.FinishICRC()
			f.Add(fr.B[fr.BTHOffset():], 0, false, ends[0].Is6(), uint8(0))
		}
	}
	f.Add(make([]byte, 200), 64, true, false, uint8(1))
	prof, err := profile.Load(profile.Default)
	if err != nil {
		f.Fatal(err)
	}
	e := sim.New(sim.Options{})
	c := link.NewCable(e, prof.Link, "device", "wire")
	k := &kept{}
	c.End(0).Attach(k)
	pool := new(roce.Pool)
	f.Fuzz(func(t *testing.T, data []byte, segment int, truncated, v6 bool, from uint8) {
		own, other := b, a
		if v6 {
			own, other = b6, a6
		}
		if from%4 == 1 {
			other = own // somebody forges it
		}
		k.frames = k.frames[:0]
		p := &Port{cfg: Config{Place: At(own)}, peers: map[netip.Addr]*peer{}}
		p.Attach(c.End(1), pool)
		x := arrived{from: netip.AddrPortFrom(other, uint16(from)), tos: from, ttl: from}
		p.split(data, segment, truncated, &x)
		if err := e.Run(e.Now() + sim.Millisecond); err != nil {
			t.Fatal(err)
		}
		n := uint64(1)
		if segment > 0 && segment < len(data) {
			n = uint64((len(data) + segment - 1) / segment)
		}
		if got := p.C.Received + p.C.Strangers + p.C.Truncated + p.C.Malformed + p.C.BadICRC; got != n || p.C.Received != uint64(len(k.frames)) {
			t.Fatalf("%d datagrams: %+v, %d frames", n, p.C, len(k.frames))
		}
		for _, b := range k.frames {
			if pk, err := roce.Parse(b); err != nil || !pk.ICRCOK() {
				t.Fatalf("%x: %v", b, err)
			}
		}
	})
}

// FuzzControl: what the kernel says is read within its bounds.
func FuzzControl(f *testing.F) {
	var c control
	n := c.add(0, unix.IPPROTO_IP, unix.IP_TTL, 9, sizeofInt)
	n = c.add(n, unix.IPPROTO_UDP, unix.UDP_GRO, 1024, sizeofInt)
	f.Add(c.b[:n])
	if got := c.read(n); got.ttl != 9 || got.segment != 1024 {
		f.Fatalf("%+v", got)
	}
	f.Add(binary.NativeEndian.AppendUint64(make([]byte, 0, 64), 1<<63)[:16]) // a length that is negative as an int, and still so less the header's
	f.Add(binary.NativeEndian.AppendUint64(make([]byte, 0, 64), math.MaxUint64)[:16])
	f.Fuzz(func(_ *testing.T, b []byte) {
		var c control
		c.read(copy(c.b[:], b))
	})
}

// BenchmarkPort is what a frame costs from one port to another, on the loopback interface.
func BenchmarkPort(b *testing.B) {
	for _, size := range []int{64, 4096} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			from, to := loopback(30), loopback(31)
			x, _, _ := open(b, Config{Place: At(from)})
			y, _, e := open(b, Config{Place: At(to)})
			drop := &dropped{}
			y.end.Peer().Attach(drop)
			pool := new(roce.Pool)
			tmpl, err := roce.NewTemplate(roce.Path{Framing: roce.RoCEv2IPv4, SrcGID: roce.GID(from.As16()), DstGID: roce.GID(to.As16()), HopLimit: 64,
				SrcPort: roce.UDPPort, PKey: roce.DefaultPKey})
			if err != nil {
				b.Fatal(err)
			}
			const batch = 32
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for i := 0; i < b.N; i += batch {
				for range batch {
					x.Receive(tmpl.New(pool, roce.RCSendOnly, 0, size, 0))
				}
				x.Flush()
				for y.Fetch() {
					y.Deliver()
				}
				_ = e.Run(e.Now() + sim.Millisecond)
			}
			b.ReportMetric(float64(drop.n)/float64(b.N), "arrived/op")
		})
	}
}

// TestNarrowWire: the path MTU of a port is what the interface carries, and a queue pair asks for
// answers before the socket is full.
func TestNarrowWire(t *testing.T) {
	p, err := profile.Load(profile.Default)
	if err != nil {
		t.Fatal(err)
	}
	for mtu, want := range map[int]int{65536: p.Kernel.NetMTU, 1500: 1500} {
		if got := Profile(p, mtu); got.Kernel.NetMTU != want || got.HCA.AckReqPackets != ackFreq || p.HCA.AckReqPackets == ackFreq {
			t.Errorf("MTU %d: %d", mtu, got.Kernel.NetMTU)
		}
	}
}
