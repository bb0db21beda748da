package ether

import (
	"bytes"
	"encoding/hex"
	"math/rand"
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
)

func frame(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const macs = "020000000002" + "020000000001"

// packet is a frame of TCP or UDP with right checksums.
func packet(version, proto uint8, tag bool, payload []byte) []byte {
	b := make([]byte, roce.EthernetSize, 2000)
	copy(b, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1})
	typ := uint16(roce.EtherTypeIPv4)
	if version == 6 {
		typ = roce.EtherTypeIPv6
	}
	if tag {
		roce.Ethernet(b).SetType(roce.EtherTypeVLAN)
		b = be.AppendUint16(be.AppendUint16(b, 0x6005), typ)
	} else {
		roce.Ethernet(b).SetType(typ)
	}
	n := roce.UDPSize
	if proto == ProtoTCP {
		n = tcpSize + 12 // with options
	}
	n += len(payload)
	if version == 4 {
		b = append(b, 0x45, 3, byte((20+n)>>8), byte(20+n), 1, 2, 0x40, 0, 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2)
	} else {
		b = append(b, 0x60, 0x30, 0, 0, byte(n>>8), byte(n), proto, 64)
		b = append(b, bytes.Repeat([]byte{0xfe, 1}, 16)...)
	}
	if proto == ProtoTCP {
		b = append(b, 0x12, 0x34, 0x00, 0x50, 0, 0, 1, 0, 0, 0, 2, 0, 0x80, tcpCWR|TCPACK|tcpPSH|tcpFIN, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	} else {
		b = append(b, 0x12, 0x34, 0x00, 0x50, byte(n>>8), byte(n), 0, 0)
	}
	b = append(b, payload...)
	h := Parse(b)
	h.FillNetwork(b)
	h.FillTransport(b)
	return b
}

func bytesOf(n int) []byte {
	b := make([]byte, n)
	rand.New(rand.NewSource(int64(n))).Read(b)
	return b
}

// TestParse: headers, with and without tags, padded and cut off.
func TestParse(t *testing.T) {
	for _, tag := range []bool{false, true} {
		for _, version := range []uint8{4, 6} {
			for _, proto := range []uint8{ProtoTCP, roce.ProtoUDP} {
				b := packet(version, proto, tag, bytesOf(101))
				h := Parse(append(slices.Clone(b), 0, 0, 0))
				if h.Version != version || h.Proto != proto || h.Tagged != tag || h.STagged || h.End != len(b) || h.End-h.Payload != 101 ||
					h.SrcPort != 0x1234 || h.DstPort != 80 || h.TOS != 3 || h.TTL != 64 || h.Fragment || h.Short || tag && h.TCI != 0x6005 {
					t.Errorf("%+v of % x", h, b)
				}
				if !h.NetworkOK(b) || !h.TransportOK(b) {
					t.Errorf("IPv%d, protocol %d: checksums of % x", version, proto, b)
				}
				for n := range b {
					s := Parse(b[:n])
					if s.TransportOK(b[:n]) || s.Transport > 0 && !s.Short {
						t.Errorf("the first %d bytes pass: %+v", n, s)
					}
				}
				for i := h.Net; i < len(b); i++ {
					b[i] ^= 0x10
					if s := Parse(b); s.Version == version && s.NetworkOK(b) && s.TransportOK(b) && i != h.Net+1 && i != h.Net+2 && i != h.Net+3 && i != h.Net+7 {
						t.Errorf("IPv%d, protocol %d: a change of byte %d is not noticed", version, proto, i)
					}
					b[i] ^= 0x10
				}
			}
		}
	}
	arp := frame(t, "ffffffffffff"+"020000000001"+"0806"+"0001080006040001020000000001"+"0a000001"+"000000000000"+"0a000002")
	if h := Parse(arp); h.Type != 0x0806 || h.Version != 0 || h.Sum(arp) != 0 || h.NetworkOK(arp) || h.SrcIP(arp) != nil {
		t.Errorf("%+v", h)
	}
}

// TestFragments: only the first one has a header of TCP or UDP, and none a checksum that can be
// checked.
func TestFragments(t *testing.T) {
	for offset, first := range map[uint16]bool{roce.IPv4MoreFragments: true, roce.IPv4MoreFragments | 10: false, 10: false} {
		b := packet(4, roce.ProtoUDP, false, bytesOf(64))
		roce.IPv4(b[14:]).SetFlagsOffset(offset)
		h := Parse(b)
		if !h.Fragment || h.Transport != 0 != first || h.TransportOK(b) {
			t.Errorf("%#x: %+v", offset, h)
		}
		before := bytes.Clone(b)
		if h.FillTransport(b); !bytes.Equal(b, before) {
			t.Error("a checksum of a fragment")
		}
	}
	// IPv6: a fragment header behind a hop-by-hop one, offset 0 and then 1.
	for _, offset := range []byte{1, 8} {
		b := frame(t, macs+"86dd"+"60000000"+"0018"+"0040"+"fe800000000000000000000000000001"+"fe800000000000000000000000000002"+
			"2c00010400000000"+"110000"+hex.EncodeToString([]byte{offset})+"00000001"+"1234005000080000")
		h := Parse(b)
		if h.Proto != roce.ProtoUDP || !h.Fragment || (h.Transport != 0) != (offset == 1) {
			t.Errorf("%d: %+v", offset, h)
		}
	}
}

// TestSumLeavesPaddingOut: the sum of all that is behind the Ethernet header is the reported one,
// without padding.
func TestSumLeavesPaddingOut(t *testing.T) {
	b := packet(4, roce.ProtoUDP, false, bytesOf(3))
	h := Parse(append(b, 9, 9, 9, 9))
	// The header sums to ones, and so does the datagram with its pseudo header: what is left is
	// minus that.
	want := ^fold(sum(uint64(roce.ProtoUDP)+uint64(h.End-h.Transport), b[h.Net+12:][:8]))
	if got := h.Sum(b); got != want {
		t.Errorf("%#x, want %#x", got, want)
	}
}

// TestSegments: packets that are whole, in order, and hold the payload.
func TestSegments(t *testing.T) {
	for _, version := range []uint8{4, 6} {
		for _, proto := range []uint8{ProtoTCP, roce.ProtoUDP} {
			for _, n := range []int{1, 100, 1000, 1001, 40000} {
				payload := bytesOf(n)
				whole := packet(version, proto, n%2 == 1, nil)
				// The stack leaves the length of the whole send in the header, or 0 where that does
				// not fit.
				s, ok := Cut(whole, payload, 1000)
				if !ok || s.Count() != (n+999)/1000 {
					t.Fatalf("%d bytes: %v, %d segments", n, ok, s.Count())
				}
				var got []byte
				for i := range s.Count() {
					b := make([]byte, s.Len(i))
					s.Write(i, b)
					h := Parse(b)
					h.FillNetwork(b)
					h.FillTransport(b)
					if h.End != len(b) || !h.NetworkOK(b) || !h.TransportOK(b) {
						t.Fatalf("segment %d: %+v", i, h)
					}
					if version == 4 && roce.IPv4(b[h.Net:]).ID() != 0x0102+uint16(i) {
						t.Errorf("segment %d has ID %#x", i, roce.IPv4(b[h.Net:]).ID())
					}
					first, last := i == 0, i == s.Count()-1
					if f := h.TCPFlags; proto == ProtoTCP && (f&TCPACK == 0 || f&tcpCWR != 0 != first || f&tcpFIN != 0 != last || f&tcpPSH != 0 != last || be.Uint32(b[h.Transport+4:]) != 0x100+uint32(i*1000)) {
						t.Errorf("segment %d of %d: %+v, sequence %#x", i, s.Count(), h, be.Uint32(b[h.Transport+4:]))
					}
					got = append(got, b[h.Payload:]...)
				}
				if !bytes.Equal(got, payload) {
					t.Error("the payload has changed")
				}
			}
		}
	}
	b := packet(4, ProtoTCP, false, nil)
	for name, bad := range map[string]struct {
		headers []byte
		mss     int
	}{"mss": {b, 0}, "headers cut off": {b[:60], 100}, "more than headers": {append(slices.Clone(b), 1), 100}, "no headers": {nil, 100}, "longer than IP": {b, 1 << 20}} {
		if _, ok := Cut(bad.headers, make([]byte, 1<<17), bad.mss); ok {
			t.Errorf("%s: cut", name)
		}
	}
	if _, ok := Cut(b, nil, 100); ok {
		t.Error("nothing to cut")
	}
}

// TestToeplitz: the published vectors of receive side scaling (Microsoft, "Verifying the RSS Hash
// Calculation").
func TestToeplitz(t *testing.T) {
	key := frame(t, "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
	for _, v := range []struct {
		src, dst     [4]byte
		sport, dport uint16
		ip, tcp      uint32
	}{
		{[4]byte{66, 9, 149, 187}, [4]byte{161, 142, 100, 80}, 2794, 1766, 0x323e8fc2, 0x51ccc178},
		{[4]byte{199, 92, 111, 2}, [4]byte{65, 69, 140, 83}, 14230, 4739, 0xd718262a, 0xc626b0ea},
		{[4]byte{24, 19, 198, 95}, [4]byte{12, 22, 207, 184}, 12898, 38024, 0xd2d0a5de, 0x5c2b394a},
	} {
		b := packet(4, ProtoTCP, false, nil)
		h := Parse(b)
		copy(h.SrcIP(b), v.src[:])
		copy(h.DstIP(b), v.dst[:])
		h.SrcPort, h.DstPort = v.sport, v.dport
		f := Fields{SrcIP: true, DstIP: true}
		if got := Toeplitz(key, f.Tuple(&h, b, nil)); got != v.ip {
			t.Errorf("%v: %#x, want %#x", v, got, v.ip)
		}
		f.SrcPort, f.DstPort = true, true
		if got := Toeplitz(key, f.Tuple(&h, b, nil)); got != v.tcp {
			t.Errorf("%v: %#x, want %#x", v, got, v.tcp)
		}
		f.Symmetric = true
		there := Toeplitz(key, f.Tuple(&h, b, nil))
		copy(h.SrcIP(b), v.dst[:])
		copy(h.DstIP(b), v.src[:])
		h.SrcPort, h.DstPort = v.dport, v.sport
		if back := Toeplitz(key, f.Tuple(&h, b, nil)); back != there {
			t.Errorf("%v: %#x there and %#x back", v, there, back)
		}
	}
	if InvertedXOR([]byte{1, 2, 4}) != 0xf8 {
		t.Error(InvertedXOR([]byte{1, 2, 4}))
	}
}

// FuzzParse: no frame makes anything panic, and what is found lies in it.
func FuzzParse(f *testing.F) {
	for _, version := range []uint8{4, 6} {
		f.Add(packet(version, ProtoTCP, true, []byte("x")), uint16(1000))
		f.Add(packet(version, roce.ProtoUDP, false, nil), uint16(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, mss uint16) {
		h := Parse(b)
		if h.End > len(b) || h.Payload > len(b) || h.Transport > h.End {
			t.Fatalf("%+v of %d bytes", h, len(b))
		}
		h.Sum(b)
		h.NetworkOK(b)
		h.TransportOK(b)
		all := Fields{true, true, true, true, true}
		if tuple := all.Tuple(&h, b, nil); len(tuple) > maxTuple {
			t.Fatalf("%d bytes", len(tuple))
		}
		s, ok := Cut(b, make([]byte, 3000), int(mss))
		count := 0
		if ok {
			count = s.Count()
		}
		for i := range count {
			out := make([]byte, s.Len(i))
			s.Write(i, out)
			c := Parse(out)
			c.FillNetwork(out)
			c.FillTransport(out)
			if c.Version != 0 && !c.Short && (!c.NetworkOK(out) || !c.Fragment && c.Transport > 0 && !c.TransportOK(out)) {
				t.Fatalf("segment %d: %+v", i, c)
			}
		}
		h.FillNetwork(b)
		h.FillTransport(b)
	})
}
