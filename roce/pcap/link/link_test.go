package link

import (
	"bytes"
	"testing"

	"github.com/rdmasim/rdmasim/roce/pcap"
)

// Link headers that end early leave nothing, and others a frame of Ethernet with what they say.
func TestFrame(t *testing.T) {
	ip := append([]byte{0x45}, bytes.Repeat([]byte{7}, 30)...)
	mac := []byte{2, 3, 4, 5, 6, 7}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	framed := func(src []byte, typ ...byte) []byte { return join(make([]byte, 6), src, typ, ip) }
	ethernet := join(bytes.Repeat([]byte{9}, 6), mac, []byte{8, 0}, ip)
	tags := func(b ...byte) []byte { return join(ethernet[:12], b, ethernet[12:]) }
	none := make([]byte, 6)
	for _, c := range []struct {
		name   string
		link   uint16
		data   []byte
		want   []byte
		header int // of the link layer: shorter packets are empty
		out    bool
		host   uint32
	}{
		{"Ethernet", pcap.LinkTypeEthernet, ethernet, ethernet, 0, false, 0},
		{"one tag", pcap.LinkTypeEthernet, tags(0x81, 0, 0, 5), tags(0x81, 0, 0, 5), 0, false, 0},
		{"two tags", pcap.LinkTypeEthernet, tags(0x88, 0xA8, 0, 5, 0x81, 0, 0, 5), ethernet, 0, false, 0},
		{"an old tag", pcap.LinkTypeEthernet, tags(0x91, 0, 0, 5), ethernet, 0, false, 0},
		{"SLL", pcap.LinkTypeSLL, join([]byte{0, 4, 0, 1, 0, 6}, mac, []byte{0, 0, 8, 0}, ip), framed(mac, 8, 0), 16, true, 0},
		{"SLL without an address", pcap.LinkTypeSLL, join([]byte{0, 0, 3, 4, 0, 0}, make([]byte, 8), []byte{8, 0}, ip), framed(none, 8, 0), 16, false, 0},
		{"SLL with a long address", pcap.LinkTypeSLL, join([]byte{0, 0, 0, 32, 0, 20}, make([]byte, 8), []byte{8, 0}, ip), framed(none, 8, 0), 26, false, 0},
		{"SLL with a tag", pcap.LinkTypeSLL, join([]byte{0, 0, 0, 1, 0, 6}, mac, []byte{0, 0, 0x81, 0, 0, 5, 8, 0}, ip), framed(mac, 8, 0), 20, false, 0},
		{"SLL2", pcap.LinkTypeSLL2, join([]byte{8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 4, 6}, mac, []byte{0, 0}, ip), framed(mac, 8, 0), 20, true, 3},
		{"IP", pcap.LinkTypeRaw, ip, framed(none, 8, 0), 1, false, 0},
		{"no IP", pcap.LinkTypeRaw, []byte{0x75}, nil, 2, false, 0},
	} {
		for n := range c.data {
			p := pcap.Packet{LinkType: c.link, Data: bytes.Clone(c.data[:n]), Length: len(c.data)}
			if Frame(&p); n < c.header && (len(p.Data) != 0 || p.Length != 0) || p.Length < len(p.Data) {
				t.Errorf("%s, %d bytes of it: % x of %d", c.name, n, p.Data, p.Length)
			}
		}
		p := pcap.Packet{LinkType: c.link, Data: bytes.Clone(c.data), Length: len(c.data) + 5}
		Frame(&p)
		if !bytes.Equal(p.Data, c.want) || p.LinkType != pcap.LinkTypeEthernet || p.Outgoing != c.out || p.HostInterface != c.host || c.want != nil && p.Length != len(c.want)+5 {
			t.Errorf("%s: % x of %d, %+v\nwant % x", c.name, p.Data, p.Length, p, c.want)
		}
		again := p
		if Frame(&again); !bytes.Equal(again.Data, p.Data) {
			t.Errorf("%s: % x, again % x", c.name, p.Data, again.Data)
		}
	}
	other := pcap.Packet{LinkType: 220, Data: []byte{1, 2}, Length: 2}
	if Frame(&other); other.LinkType != 220 || len(other.Data) != 2 || pcap.Framed(220) {
		t.Errorf("%+v", other)
	}
}
