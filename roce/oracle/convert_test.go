package oracle_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

var be = binary.BigEndian

// shot is a packet as another tap shows it: a frame of Ethernet, until a link layer takes it.
type shot struct {
	time   int64
	data   []byte
	length int // on the wire
	number int // of the frame in the capture that it is from
	link   uint16
	point  int // which interface, or direction, has seen it
}

// shotsOf are the packets of a file.
func shotsOf(t testing.TB, file []byte) []shot {
	t.Helper()
	_, packets, err := pcap.Read(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var all []shot
	for i, p := range packets {
		all = append(all, shot{time: p.Time, data: p.Data, length: p.Length, number: i + 1, link: pcap.LinkTypeEthernet})
	}
	return all
}

// reheaded replaces the first n bytes.
func (s shot) reheaded(link uint16, n int, head ...byte) shot {
	s.data = slices.Concat(head, s.data[n:])
	s.length += len(head) - n
	s.link = link
	return s
}

// A link is how packets are shown, of a frame without a tag.
type linkKind struct {
	name string
	of   func(s shot) shot
	// points: it tells interfaces or directions apart.
	points bool
}

func tagged(types ...uint16) func(s shot) shot {
	return func(s shot) shot {
		head := slices.Clone(s.data[:12])
		for i, t := range types {
			head = be.AppendUint16(be.AppendUint16(head, t), uint16(100+i))
		}
		return s.reheaded(pcap.LinkTypeEthernet, 12, head...)
	}
}

func bare(link uint16) func(s shot) shot {
	return func(s shot) shot { return s.reheaded(link, roce.EthernetSize) }
}

// directions are those of packet sockets: to us, and outgoing.
var directions = []byte{0, 4}

func sll(s shot) shot {
	h := append([]byte{0, directions[s.point&1], 0, 1, 0, 6}, s.data[6:12]...)
	return s.reheaded(pcap.LinkTypeSLL, 12, append(h, 0, 0)...)
}

func sll2(s shot) shot {
	h := append(slices.Clone(s.data[12:14]), 0, 0, 0, 0, 0, byte(2+s.point), 0, 1, directions[0], 6)
	return s.reheaded(pcap.LinkTypeSLL2, roce.EthernetSize, append(append(h, s.data[6:12]...), 0, 0)...)
}

// An InfiniBand address in a cooked header is longer than its field.
func sllOfIPoIB(s shot) shot {
	s = sll(s)
	s.data[3], s.data[5] = 32, 20
	return s
}

var links = []linkKind{
	{"Ethernet", func(s shot) shot { return s }, false},
	{"802.1Q", tagged(0x8100), false},
	{"802.1ad", tagged(0x88A8), false},
	{"802.1ad and 802.1Q", tagged(0x88A8, 0x8100), false},
	{"802.1Q twice", tagged(0x8100, 0x8100), false},
	{"0x9100 and 802.1Q", tagged(0x9100, 0x8100), false},
	{"three tags", tagged(0x88A8, 0x8100, 0x8100), false},
	{"SLL", sll, true},
	{"SLL of IPoIB", sllOfIPoIB, true},
	{"SLL with a tag", func(s shot) shot { return sll(tagged(0x8100)(s)) }, true},
	{"SLL2", sll2, true},
	{"raw IP", bare(pcap.LinkTypeRaw), false},
	{"raw IP (12)", bare(12), false},
	{"raw IP (14)", bare(14), false},
	{"raw IPv4", bare(pcap.LinkTypeIPv4), false},
}

// container is a format of files.
type container struct {
	name string
	of   func(shots []shot) []byte
	// mixed: packets of several link types, and of several interfaces; micro: no nanoseconds.
	mixed, micro bool
}

var containers = []container{
	{"pcap", classic(binary.LittleEndian, 0xA1B2C3D4), false, true},
	{"pcap, big-endian", classic(binary.BigEndian, 0xA1B2C3D4), false, true},
	{"pcap of nanoseconds", classic(binary.LittleEndian, 0xA1B23C4D), false, false},
	{"pcap of nanoseconds, big-endian", classic(binary.BigEndian, 0xA1B23C4D), false, false},
	{"modified pcap", classic(binary.LittleEndian, 0xA1B2CD34), false, true},
	{"pcapng", pcapng(binary.LittleEndian), true, false},
	{"pcapng, big-endian", pcapng(binary.BigEndian), true, false},
}

func classic(order binary.AppendByteOrder, magic uint32) func([]shot) []byte {
	return func(shots []shot) []byte {
		unit := int64(1000)
		if magic == 0xA1B23C4D {
			unit = 1
		}
		b := order.AppendUint16(order.AppendUint16(order.AppendUint32(nil, magic), 2), 4)
		b = order.AppendUint32(order.AppendUint32(append(b, make([]byte, 8)...), 0xFFFF), uint32(shots[0].link))
		for _, s := range shots {
			for _, v := range []int64{s.time / 1e9, s.time % 1e9 / unit, int64(len(s.data)), int64(s.length)} {
				b = order.AppendUint32(b, uint32(v))
			}
			if magic == 0xA1B2CD34 {
				b = append(b, 0, 0, 0, 2, 0x08, 0, directions[s.point&1], 0)
			}
			b = append(b, s.data...)
		}
		return b
	}
}

// pcapng writes blocks that nobody knows too, and an interface for each link type and point.
func pcapng(order binary.AppendByteOrder) func([]shot) []byte {
	u16, u32 := func(v uint16) []byte { return order.AppendUint16(nil, v) }, func(v uint32) []byte { return order.AppendUint32(nil, v) }
	block := func(kind uint32, parts ...[]byte) []byte {
		body := bytes.Join(parts, nil)
		body = append(body, make([]byte, -len(body)&3)...)
		n := u32(uint32(len(body) + 12))
		return slices.Concat(u32(kind), n, body, n)
	}
	return func(shots []shot) []byte {
		b := block(0x0A0D0D0A, u32(0x1A2B3C4D), u16(1), u16(0), bytes.Repeat([]byte{0xFF}, 8))
		type key struct {
			link  uint16
			point int
		}
		interfaces := map[key]uint32{}
		for _, s := range shots {
			k := key{s.link, s.point}
			if _, ok := interfaces[k]; !ok {
				interfaces[k] = uint32(len(interfaces))
				b = append(b, block(1, u16(s.link), u16(0), u32(0), u16(9), u16(1), []byte{9, 0, 0, 0}, u32(0))...)
				b = append(b, block(0x40000BAD, u32(32473), []byte("of a company"))...)
			}
			b = append(b, block(6, u32(interfaces[k]), u32(uint32(s.time>>32)), u32(uint32(s.time)), u32(uint32(len(s.data))), u32(uint32(s.length)), s.data)...)
			b = append(b, block(0x7FFF0001, []byte("unknown"))...)
		}
		return b
	}
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

// snapped keeps the first n bytes of each packet.
func snapped(shots []shot, n int) []shot {
	out := slices.Clone(shots)
	for i := range out {
		out[i].data = out[i].data[:min(n, len(out[i].data))]
	}
	return out
}

// swapped exchanges neighbours in the file, with their time stamps, of which the first is at most a
// millisecond older.
func swapped(r *rand.Rand, shots []shot) []shot {
	out := slices.Clone(shots)
	for i := 0; i+1 < len(out); i += 2 {
		if d := out[i+1].time - out[i].time; d >= 1000 && d <= 1_000_000 && r.IntN(3) == 0 {
			out[i], out[i+1] = out[i+1], out[i]
		}
	}
	return out
}

// seenTwice has a second sighting of some packets, up to 300 us later, of a host that forwards or
// not.
func seenTwice(r *rand.Rand, shots []shot) []shot {
	var out []shot
	for _, s := range shots {
		out = append(out, s)
		if r.IntN(3) == 0 {
			continue
		}
		s.point, s.time = 1, s.time+int64(r.IntN(3)*r.IntN(150))*1000
		s.data = slices.Clone(s.data)
		if p, err := roce.Parse(s.data); err == nil && p.Framing == roce.RoCEv2IPv4 && r.IntN(2) == 0 {
			h := p.IPv4()
			h.SetTTL(h.TTL() - 1)
			h.SetChecksum(h.ComputeChecksum())
		}
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b shot) int { return int(a.time - b.time) })
	return out
}
