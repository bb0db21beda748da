//go:build linux

package wire

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim"
)

// ends are two ends of an Ethernet in UDP datagrams, each as this one has them.
func ends(n int) [2]Place {
	a, b := netip.AddrPortFrom(loopback(n), 5001), netip.AddrPortFrom(loopback(n+1), 5002)
	return [2]Place{{Kind: KindDgram, Local: a, Remote: b}, {Kind: KindDgram, Local: b, Remote: a}}
}

// openLAN is an Ethernet with a cable, and what arrives at the device's end.
func openLAN(t testing.TB, cfg Config) (*LAN, *kept, *sim.Engine) {
	t.Helper()
	l, err := OpenLAN(cfg)
	if err != nil {
		t.Fatal(err)
	}
	k, e := cabled(t, l)
	return l, k, e
}

// pair is a LAN with an address on one end, and a socket on the other one.
func pair(t testing.TB, n int, cfg Config) (*LAN, *kept, *sim.Engine, *dgram) {
	t.Helper()
	at := ends(n)
	own := cfg.Address
	cfg.Place = at[0]
	cfg.Address = own
	far, err := openDgram(at[1].Local, at[1].Remote)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.close() })
	l, k, e := openLAN(t, cfg)
	far.(*dgram).frames(t) // whether somebody has the address
	return l, k, e, far.(*dgram)
}

// put sends bytes as they are.
func (d *dgram) put(t testing.TB, all ...[]byte) {
	t.Helper()
	for _, b := range all {
		if err := unix.Sendto(d.fd(), b, 0, &unix.SockaddrInet4{Port: int(d.remote.Port()), Addr: d.remote.Addr().As4()}); err != nil {
			t.Fatal(err)
		}
	}
}

// frames are those that have come.
func (d *dgram) frames(t testing.TB) (all [][]byte) {
	t.Helper()
	var in batch
	in.init()
	for {
		n, err := d.receive(&in)
		if err != nil {
			return all
		}
		for i := range n {
			all = append(all, bytes.Clone(in.bytes(i)))
		}
	}
}

// pass takes what has come to a LAN.
func pass(t testing.TB, l *LAN, e *sim.Engine) {
	t.Helper()
	for l.Fetch() {
		l.Deliver()
	}
	l.Flush()
	if err := e.Run(e.Now() + sim.Millisecond); err != nil {
		t.Fatal(err)
	}
}

var (
	ownAddress, peerAddress = netip.MustParseAddr("10.77.0.2"), netip.MustParseAddr("10.77.0.1")
	own6, peer6             = netip.MustParseAddr("fd77::2"), netip.MustParseAddr("fd77::1")
	peerMAC                 = roce.MAC{0x52, 0x54, 0, 1, 2, 3}
)

// peerHost is the far end's host, whose Ethernet address is not made of its IP address.
func peerHost(a netip.Addr) *host {
	h := newHost(a)
	h.mac = peerMAC
	return h
}

// rdmaFrames are packets of RoCE v2 of a peer.
func rdmaFrames(t testing.TB, from, to netip.Addr, sizes ...int) (all [][]byte) {
	t.Helper()
	for _, f := range frames(t, from, to, 0, defaultTTL, sizes...) {
		f.FinishICRC()
		roce.Ethernet(f.B).SetSrc(peerMAC)
		all = append(all, bytes.Clone(f.B))
	}
	return all
}

// TestLANPassesAll: without an address of its own an Ethernet passes every frame both ways as it
// is, short ones padded as Ethernet does.
func TestLANPassesAll(t *testing.T) {
	l, k, e, far := pair(t, 40, Config{})
	var all [][]byte
	for i, n := range []int{14, 42, 60, 61, 1514, 9018, maxFrame} {
		b := bytes.Repeat([]byte{byte(i + 1)}, n)
		all = append(all, b)
	}
	all = append(all, rdmaFrames(t, peerAddress, ownAddress, 0, 1000)...)
	far.put(t, all...)
	pass(t, l, e)
	if len(k.frames) != len(all) {
		t.Fatalf("%d of %d frames arrive", len(k.frames), len(all))
	}
	for i, b := range all {
		if !bytes.Equal(k.frames[i], b) {
			t.Errorf("frame %d arrives as %x", i, k.frames[i])
		}
		f := new(roce.Pool).GetPlain(len(b))
		copy(f.B, b)
		l.Receive(f)
	}
	l.Flush()
	for i, b := range far.frames(t) {
		want := append(bytes.Clone(all[i]), make([]byte, max(0, ether.MinFrame-len(all[i])))...)
		if !bytes.Equal(b, want) {
			t.Errorf("frame %d leaves as %x", i, b)
		}
	}
	if l.C.Sent != uint64(len(all)) || l.C.Received != uint64(len(all)) || l.C.Dropped() != "" {
		t.Errorf("%+v", l.C)
	}
}

// TestLANAnswers: a host on the Ethernet finds the adapter's address by ARP or neighbour discovery,
// and gets its echo; a question after a free address is answered, too.
func TestLANAnswers(t *testing.T) {
	for n, c := range []struct{ own, peer netip.Addr }{{ownAddress, peerAddress}, {own6, peer6}} {
		l, k, e, far := pair(t, 44+2*n, Config{Place: Place{Address: c.own}})
		p := peerHost(c.peer)
		far.put(t, p.solicit(c.own))
		pass(t, l, e)
		got := far.frames(t)
		if len(got) != 1 || len(got[0]) < ether.MinFrame {
			t.Fatalf("answers: %x", got)
		}
		if v, _ := p.take(got[0], nil); v != answered {
			t.Errorf("an answer that is taken for %d: %x", v, got[0])
		}
		if mac, ok := p.fresh(c.own); !ok || mac != MACOf(c.own) {
			t.Errorf("%v is at %v", c.own, mac)
		}
		if mac, ok := l.Neighbour(c.peer); !ok || mac != peerMAC { // who asks is known
			t.Errorf("%v is at %v", c.peer, mac)
		}
		// Somebody wants the address.
		same := peerHost(c.own)
		far.put(t, same.probe())
		pass(t, l, e)
		if got = far.frames(t); len(got) != 1 {
			t.Fatalf("answers: %x", got)
		}
		if same.take(got[0], nil); same.conflict != MACOf(c.own) {
			t.Errorf("an answer that shows no conflict: %x", got[0])
		}
		for _, size := range []int{0, 56, 1400} {
			far.put(t, echo(p, c.own, size))
			pass(t, l, e)
			got = far.frames(t)
			if len(got) != 1 {
				t.Fatalf("answers to an echo of %d bytes: %x", size, got)
			}
			checkEcho(t, got[0], c.own, c.peer, size)
		}
		if len(k.frames) > 0 || l.C.Dropped() != "" || l.C.Answered != 6 {
			t.Errorf("%d frames for the device, %+v", len(k.frames), l.C)
		}
	}
}

// echo is an echo request.
func echo(from *host, to netip.Addr, size int) []byte {
	if !to.Is4() {
		b, m := from.discovery(MACOf(to), from.own, to, ether.ICMPv6Echo, ether.ICMPSize+size)
		m[5] = 7
		return filled(b)
	}
	b := from.ethernet(MACOf(to), roce.EtherTypeIPv4, roce.IPv4Size+ether.ICMPSize+size)
	ip := roce.IPv4(b[roce.EthernetSize:])
	ip[0] = 0x45
	ip.SetTotalLen(uint16(len(b) - roce.EthernetSize))
	ip.SetTTL(defaultTTL)
	ip.SetProtocol(ether.ProtoICMP)
	ip.SetSrc(from.own.As4())
	ip.SetDst(to.As4())
	ip[roce.IPv4Size], ip[roce.IPv4Size+5] = ether.ICMPEcho, 7
	return filled(b)
}

func checkEcho(t *testing.T, b []byte, from, to netip.Addr, size int) {
	t.Helper()
	p := ether.Parse(b)
	a, z := addresses(b, &p)
	m, ok := p.ICMP(b)
	reply := uint8(ether.ICMPEchoReply)
	if p.Version == 6 {
		reply = ether.ICMPv6EchoReply
	}
	if !ok || !p.NetworkOK(b) || !p.ICMPOK(b) || m.Type() != reply || len(m) != ether.ICMPSize+size || a != from || z != to || roce.Ethernet(b).Dst() != peerMAC || m[5] != 7 {
		t.Errorf("the answer to an echo request: %x", b)
	}
}

// TestLANPackets: packets of RoCE v2 for the address, and for groups, reach the device without
// padding; those of others and damaged ones do not, and are counted.
func TestLANPackets(t *testing.T) {
	l, k, e, far := pair(t, 50, Config{Place: Place{Address: ownAddress}, Allow: []netip.Prefix{netip.MustParsePrefix("10.77.0.0/24")}})
	good := rdmaFrames(t, peerAddress, ownAddress, 0, 100, 1024)
	for _, b := range good {
		far.put(t, append(bytes.Clone(b), make([]byte, max(0, ether.MinFrame-len(b)))...))
	}
	group := rdmaFrames(t, peerAddress, netip.MustParseAddr("239.1.2.3"), 100)
	roce.Ethernet(group[0]).SetDst(roce.MAC{1, 0, 0x5e, 1, 2, 3})
	far.put(t, group...)
	pass(t, l, e)
	if len(k.frames) != 4 || !bytes.Equal(k.frames[0], good[0]) || !bytes.Equal(k.frames[3], group[0]) {
		t.Fatalf("%d frames arrive", len(k.frames))
	}
	if mac, ok := l.Neighbour(peerAddress); !ok || mac != peerMAC {
		t.Errorf("the sender is at %v", mac)
	}
	others := rdmaFrames(t, peerAddress, netip.MustParseAddr("10.77.0.3"), 100)
	roce.Ethernet(others[0]).SetDst(MACOf(ownAddress)) // as by a wrong neighbour
	far.put(t, others...)
	elsewhere := rdmaFrames(t, peerAddress, ownAddress, 100)[0]
	roce.Ethernet(elsewhere).SetDst(peerMAC)
	far.put(t, elsewhere)
	far.put(t, rdmaFrames(t, netip.MustParseAddr("10.78.0.1"), ownAddress, 100)...)
	damaged := rdmaFrames(t, peerAddress, ownAddress, 100, 200)
	damaged[0][80] ^= 1
	damaged[1][14+8] ^= 1 // in the IP header
	far.put(t, damaged...)
	cut := rdmaFrames(t, peerAddress, ownAddress, 100)[0]
	far.put(t, cut[:60], cut[:14], cut[:13], bytes.Repeat(cut, 100), tag(cut))
	fragment := rdmaFrames(t, peerAddress, ownAddress, 100)[0]
	ip := roce.IPv4(fragment[roce.EthernetSize:])
	ip.SetFlagsOffset(roce.IPv4MoreFragments)
	ip.SetChecksum(ip.ComputeChecksum())
	far.put(t, fragment)
	stranger, err := openDgram(netip.AddrPortFrom(loopback(53), 5003), far.remote)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.close() }()
	stranger.(*dgram).put(t, good...)
	pass(t, l, e)
	if len(k.frames) != 4 {
		t.Errorf("%d frames arrive", len(k.frames))
	}
	want := "1 from addresses that --allow leaves out, 3 that were not from the other end, 1 longer than any packet, 5 that were no RoCE packets, 1 of VLANs, 1 with a wrong ICRC"
	if got := l.C.Dropped(); got != want {
		t.Errorf("dropped: %s\nwant:    %s", got, want)
	}
}

// TestRequestOfALargeMTU: a request for a connection with a path MTU that this end does not carry
// is named, with the one that fits.
func TestRequestOfALargeMTU(t *testing.T) {
	var said []string
	l, k, e, far := pair(t, 82, Config{Place: Place{Address: ownAddress}, Say: func(format string, a ...any) { said = append(said, fmt.Sprintf(format, a...)) }})
	tmpl, err := roce.NewTemplate(roce.Path{Framing: roce.RoCEv2IPv4, SrcGID: roce.GID(peerAddress.As16()), DstGID: roce.GID(ownAddress.As16()), HopLimit: 1,
		PKey: roce.DefaultPKey, DestQP: gsiQP, SrcMAC: peerMAC, DstMAC: MACOf(ownAddress)})
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	for _, m := range []roce.MTU{0, roce.MTU1024, roce.MTU4096, roce.MTU4096, 15} {
		for _, class := range []uint8{mad.ClassCM, mad.ClassSubnAdm} {
			f := tmpl.New(new(roce.Pool), roce.UDSendOnly, 0, mad.Size, 0)
			b := mad.MAD(f.Payload())
			clear(b)
			b.SetClass(class)
			b.SetAttribute(mad.AttrREQ)
			mad.REQ(b.Body()).SetMTU(uint8(m))
			f.FinishICRC()
			far.put(t, f.B)
			sent++
		}
	}
	pass(t, l, e)
	if len(k.frames) != sent || len(said) != 1 || !strings.Contains(said[0], "10.77.0.1 asks for a connection with a path MTU of 4096, and the MTU of dgram:") ||
		!strings.Contains(said[0], "is 1500, with which a path MTU of 1024 fits") {
		t.Errorf("%d of %d frames arrive; said %q", len(k.frames), sent, said)
	}
}

// tag puts a tag of a VLAN into a frame.
func tag(b []byte) []byte {
	return append(append(bytes.Clone(b[:12]), 0x81, 0, 0, 5), b[12:]...)
}

// TestLANSends: what a device sends is on the Ethernet as it left the device, with its UDP source
// port, and what cannot be is counted, with a sentence that names the path MTU that fits.
func TestLANSends(t *testing.T) {
	var said []string
	l, _, _, far := pair(t, 56, Config{Place: Place{Address: ownAddress}, Allow: []netip.Prefix{netip.PrefixFrom(peerAddress, 32)},
		Say: func(format string, a ...any) { said = append(said, fmt.Sprintf(format, a...)) }})
	var want [][]byte
	for i, f := range frames(t, ownAddress, peerAddress, 0x48, 3, 0, 100, 1024) {
		pk, err := f.Decode()
		if err != nil {
			t.Fatal(err)
		}
		pk.UDP().SetSrcPort(uint16(0xc000 + i))
		l.Receive(f)
		want = append(want, bytes.Clone(f.B))
	}
	for _, f := range append(frames(t, ownAddress, peerAddress, 0, 64, 2048, 4096), frames(t, ownAddress, netip.MustParseAddr("10.77.0.3"), 0, 64, 1)...) {
		l.Receive(f)
	}
	bad := new(roce.Pool).GetPlain(70)
	clear(bad.B)
	l.Receive(bad)
	v1 := new(roce.Pool).GetPlain(0)
	v1.B = tag(rdmaFrames(t, ownAddress, peerAddress, 100)[0])
	l.Receive(v1)
	l.Flush()
	got := far.frames(t)
	for i := range want {
		want[i] = append(want[i], make([]byte, max(0, ether.MinFrame-len(want[i])))...)
	}
	if fmt.Sprintf("%x", got) != fmt.Sprintf("%x", want) {
		t.Errorf("%x\nwant %x", got, want)
	}
	for _, b := range got {
		if pk, err := roce.Parse(b); err != nil || !pk.ICRCOK() {
			t.Errorf("%x: %v", b, err)
		}
	}
	if d := l.C.Dropped(); !strings.HasPrefix(d, "2 of what was sent") || !strings.HasSuffix(d, "1 to addresses that --allow leaves out, 2 longer than the MTU of their way") {
		t.Errorf("dropped: %s", d)
	}
	if len(said) != 1 || !strings.Contains(said[0], "the MTU of dgram:") || !strings.Contains(said[0], "is 1500; a path MTU of 1024 fits") {
		t.Errorf("said: %q", said)
	}
}

// TestLANNeighbours: a neighbour that is not known is asked for; what comes for the device
// meanwhile arrives later, and who does not answer is named once and not asked again at once.
func TestLANNeighbours(t *testing.T) {
	for n, c := range []struct{ own, peer, silent netip.Addr }{{ownAddress, peerAddress, netip.MustParseAddr("10.77.0.9")}, {own6, peer6, netip.MustParseAddr("fd77::9")}} {
		var said []string
		l, k, e, far := pair(t, 60+2*n, Config{Place: Place{Address: c.own}, Say: func(format string, a ...any) { said = append(said, fmt.Sprintf(format, a...)) }})
		_, answer := peerHost(c.peer).take(l.host.solicit(c.peer), nil)
		far.put(t, rdmaFrames(t, c.peer, c.own, 100)[0], answer)
		delete(l.host.neighbours, c.peer)
		mac, ok := l.Neighbour(c.peer)
		if !ok || mac != peerMAC {
			t.Fatalf("%v is at %v, %v", c.peer, mac, ok)
		}
		pass(t, l, e)
		if len(k.frames) != 1 {
			t.Errorf("%d frames arrive", len(k.frames))
		}
		for range 3 {
			if mac, ok := l.Neighbour(c.silent); ok {
				t.Errorf("nobody is at %v", mac)
			}
		}
		asked := 0
		for _, b := range far.frames(t) {
			silent := newHost(c.silent)
			silent.mac = peerMAC
			if _, answer := silent.take(b, nil); answer != nil {
				asked++
			}
		}
		if asked < neighbourTries || len(said) != 1 || !strings.Contains(said[0], "answers for "+c.silent.String()) {
			t.Errorf("asked %d times; said %q", asked, said)
		}
		for _, a := range []string{"10.77.0.2", "fd77::2", "0.0.0.0", "224.0.0.1", "255.255.255.255", "fe80::1", "ff02::1"} {
			if _, ok := l.Neighbour(netip.MustParseAddr(a)); ok {
				t.Errorf("%s is a neighbour", a)
			}
		}
	}
}

// TestLANConflict: another host with the address is named, also another session there, which has
// the same Ethernet address.
func TestLANConflict(t *testing.T) {
	at := ends(66)
	var said []string
	say := func(format string, a ...any) { said = append(said, fmt.Sprintf(format, a...)) }
	at[0].Address, at[1].Address = ownAddress, ownAddress
	x, _, ex := openLAN(t, Config{Place: at[0], Say: say})
	y, _, ey := openLAN(t, Config{Place: at[1], Say: say})
	for range 2 {
		pass(t, x, ex)
		pass(t, y, ey)
	}
	if len(said) != 1 || !strings.Contains(said[0], "10.77.0.2 has another host on dgram:") {
		t.Errorf("said: %q", said)
	}
}

// TestLANFlood: a flood is taken in bounded memory, and neither neighbours nor sentences grow
// without end.
func TestLANFlood(t *testing.T) {
	said := 0
	l, _, e, far := pair(t, 68, Config{Place: Place{Address: ownAddress}, Say: func(string, ...any) { said++ }})
	p := peerHost(peerAddress)
	for i := range 3 * mostPeers {
		p.own = netip.AddrFrom4([4]byte{10, 78, byte(i >> 8), byte(i)})
		far.put(t, p.solicit(ownAddress))
		if i%64 == 0 {
			pass(t, l, e)
			far.frames(t)
		}
	}
	pass(t, l, e)
	if n := len(l.host.neighbours); n > mostPeers || said > 0 {
		t.Errorf("%d neighbours, %d sentences", n, said)
	}
}

// TestLANNoAllocation: a frame that goes from one end to the other allocates nothing once there
// were some.
func TestLANNoAllocation(t *testing.T) {
	at := ends(84)
	at[0].Address, at[1].Address = ownAddress, peerAddress
	x, _, _ := openLAN(t, Config{Place: at[0]})
	y, _, e := openLAN(t, Config{Place: at[1]})
	pass(t, y, e)
	allocatesNothing(t, x, y, y.end, e, roce.Path{Framing: roce.RoCEv2IPv4, SrcGID: roce.GID(ownAddress.As16()), DstGID: roce.GID(peerAddress.As16()), HopLimit: 64,
		PKey: roce.DefaultPKey, SrcMAC: MACOf(ownAddress), DstMAC: MACOf(peerAddress)})
}

// TestLANErrors: what cannot be opened says what to do.
func TestLANErrors(t *testing.T) {
	at := ends(72)
	openLAN(t, Config{Place: at[0]})
	elsewhere := at[0]
	elsewhere.Local = netip.MustParseAddrPort("192.0.2.201:5001")
	small := at[1]
	small.Address = ownAddress
	for want, cfg := range map[string]Config{
		"is taken (`ss -ulnp sport = 5001`":      {Place: at[0]},
		"is no address of this machine":          {Place: elsewhere},
		"needs 352: --mtu 352":                   {Place: small, MTU: 300},
		"no interface absent0; `ip tuntap add a": {Place: Place{Kind: KindTAP, Name: "absent0"}},
		"lo is no TAP interface":                 {Place: Place{Kind: KindTAP, Name: "lo"}},
	} {
		if l, err := OpenLAN(cfg); err == nil || !strings.Contains(err.Error(), want) && !os.IsPermission(err) && !strings.Contains(err.Error(), tapFile) {
			t.Errorf("%v, want %q", err, want)
			if err == nil {
				_ = l.Close()
			}
		}
	}
}

// FuzzLAN: no frame makes the host or the device's end panic, what is answered is whole, and what
// reaches the device is a packet with a right ICRC to its address.
func FuzzLAN(f *testing.F) {
	for _, c := range []struct{ own, peer netip.Addr }{{ownAddress, peerAddress}, {own6, peer6}} {
		p := peerHost(c.peer)
		for _, b := range [][]byte{p.solicit(c.own), p.probe(), newHost(c.own).probe(), echo(p, c.own, 5), rdmaFrames(f, c.peer, c.own, 100)[0], tag(echo(p, c.own, 5))} {
			f.Add(b)
		}
		same := newHost(c.own)
		_, answer := same.take(p.solicit(c.own), nil)
		f.Add(answer)
	}
	lans := [2]*LAN{}
	kepts := [2]*kept{}
	engines := [2]*sim.Engine{}
	for i, own := range []netip.Addr{ownAddress, own6} {
		lans[i], kepts[i], engines[i], _ = pair(f, 76+2*i, Config{Place: Place{Address: own}})
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < roce.EthernetSize || len(b) > maxFrame {
			return
		}
		before := bytes.Clone(b)
		for i, l := range lans {
			l.take(b)
			for _, f := range l.out.frames[:l.out.n] {
				if h := ether.Parse(f.B); h.Short || h.Version > 0 && !h.NetworkOK(f.B) || roce.Ethernet(f.B).Src() != l.host.mac {
					t.Errorf("%x is answered with %x", b, f.B)
				}
			}
			l.drop()
			if err := engines[i].Run(engines[i].Now() + sim.Millisecond); err != nil {
				t.Fatal(err)
			}
			for _, got := range kepts[i].frames {
				if pk, err := roce.Parse(got); err != nil || !pk.ICRCOK() || pk.Len() != len(got) || destinationOf(&pk) != l.host.own && !destinationOf(&pk).IsMulticast() {
					t.Errorf("%x reaches the device as %x", b, got)
				}
			}
			kepts[i].frames = nil
		}
		if !bytes.Equal(b, before) {
			t.Error("a frame was changed")
		}
	})
}
