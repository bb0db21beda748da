package pcap

import (
	"bytes"
	"encoding/binary"
	"testing"
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
		{"Ethernet", LinkTypeEthernet, ethernet, ethernet, 0, false, 0},
		{"one tag", LinkTypeEthernet, tags(0x81, 0, 0, 5), tags(0x81, 0, 0, 5), 0, false, 0},
		{"two tags", LinkTypeEthernet, tags(0x88, 0xA8, 0, 5, 0x81, 0, 0, 5), ethernet, 0, false, 0},
		{"an old tag", LinkTypeEthernet, tags(0x91, 0, 0, 5), ethernet, 0, false, 0},
		{"SLL", LinkTypeSLL, join([]byte{0, 4, 0, 1, 0, 6}, mac, []byte{0, 0, 8, 0}, ip), framed(mac, 8, 0), 16, true, 0},
		{"SLL without an address", LinkTypeSLL, join([]byte{0, 0, 3, 4, 0, 0}, make([]byte, 8), []byte{8, 0}, ip), framed(none, 8, 0), 16, false, 0},
		{"SLL with a long address", LinkTypeSLL, join([]byte{0, 0, 0, 32, 0, 20}, make([]byte, 8), []byte{8, 0}, ip), framed(none, 8, 0), 26, false, 0},
		{"SLL with a tag", LinkTypeSLL, join([]byte{0, 0, 0, 1, 0, 6}, mac, []byte{0, 0, 0x81, 0, 0, 5, 8, 0}, ip), framed(mac, 8, 0), 20, false, 0},
		{"SLL2", LinkTypeSLL2, join([]byte{8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 4, 6}, mac, []byte{0, 0}, ip), framed(mac, 8, 0), 20, true, 3},
		{"IP", LinkTypeRaw, ip, framed(none, 8, 0), 1, false, 0},
		{"no IP", LinkTypeRaw, []byte{0x75}, nil, 2, false, 0},
	} {
		for n := range c.data {
			p := Packet{LinkType: c.link, Data: bytes.Clone(c.data[:n]), Length: len(c.data)}
			if p.Frame(); n < c.header && (len(p.Data) != 0 || p.Length != 0) || p.Length < len(p.Data) {
				t.Errorf("%s, %d bytes of it: % x of %d", c.name, n, p.Data, p.Length)
			}
		}
		p := Packet{LinkType: c.link, Data: bytes.Clone(c.data), Length: len(c.data) + 5}
		p.Frame()
		if !bytes.Equal(p.Data, c.want) || p.LinkType != LinkTypeEthernet || p.Outgoing != c.out || p.HostInterface != c.host || c.want != nil && p.Length != len(c.want)+5 {
			t.Errorf("%s: % x of %d, %+v\nwant % x", c.name, p.Data, p.Length, p, c.want)
		}
		again := p
		if again.Frame(); !bytes.Equal(again.Data, p.Data) {
			t.Errorf("%s: % x, again % x", c.name, p.Data, again.Data)
		}
	}
	other := Packet{LinkType: 220, Data: []byte{1, 2}, Length: 2}
	if other.Frame(); other.LinkType != 220 || len(other.Data) != 2 || Framed(220) {
		t.Errorf("%+v", other)
	}
}

// Simple packet blocks have no time, and the flags of others a direction.
func TestUntimedAndOutgoing(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		u16, u32 := func(v uint16) []byte { return order.AppendUint16(nil, v) }, func(v uint32) []byte { return order.AppendUint32(nil, v) }
		flags := func(v uint32) []byte {
			return block(order, blockEnhancedPacket, u32(0), u32(0), u32(8), u32(4), u32(4), []byte("next"), u16(optEpbFlags), u16(4), u32(v), u32(0))
		}
		_, got, err := Read(bytes.NewReader(bytes.Join([][]byte{
			block(order, blockSection, u32(byteOrderMagic), u16(1), u16(0), bytes.Repeat([]byte{0xFF}, 8)), block(order, blockInterface, u16(1), u16(0), u32(0)),
			block(order, blockSimplePacket, u32(4), []byte("some")), flags(1), flags(2),
		}, nil)))
		if err != nil || len(got) != 3 || !got[0].Untimed || got[1].Untimed || got[0].Outgoing || got[1].Outgoing || !got[2].Outgoing {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// Blocks without packets end where a file is too long, as packets do.
func TestBlocksWithoutEnd(t *testing.T) {
	order := binary.LittleEndian
	b := block(order, blockSection, order.AppendUint32(nil, byteOrderMagic), []byte{1, 0, 0, 0}, bytes.Repeat([]byte{0xFF}, 8))
	for range 1000 {
		b = append(b, block(order, 0x7777, make([]byte, 100))...)
	}
	if _, _, err := read(bytes.NewReader(b), 1<<20, 10); err != nil {
		t.Error(err)
	}
	if _, _, err := read(bytes.NewReader(b), 5000, 10); err == nil {
		t.Error("a file of blocks is read beyond its limit")
	}
}
