package pcap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/gopacket/pcapgo"
	"pgregory.net/rapid"
)

// write makes a file of two interfaces.
func write(t testing.TB, packets ...Packet) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, "test", "host0/mlx5_0", "host1/mlx5_0")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packets {
		if err := w.Write(p.Interface, p.Time, p.Data, p.Comment); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		packets := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Packet {
			d := rapid.SliceOfN(rapid.Byte(), 1, 80).Draw(t, "data")
			return Packet{
				Time: rapid.Int64Range(0, 1<<62).Draw(t, "time"), Interface: rapid.IntRange(0, 1).Draw(t, "port"),
				Data: d, Length: len(d), Comment: rapid.StringN(0, 9, -1).Draw(t, "comment"),
			}
		}), 0, 5).Draw(rt, "packets")
		file := write(t, packets...)
		if !bytes.Equal(file, write(t, packets...)) {
			rt.Fatal("equal packets make different files")
		}
		r, got, err := Read(bytes.NewReader(file))
		if err != nil {
			rt.Fatal(err)
		}
		if len(r.Interfaces) != 2 || r.Interfaces[1].Name != "host1/mlx5_0" || r.Interfaces[0].LinkType != LinkTypeEthernet || r.Interfaces[0].Dropped != 0 {
			rt.Fatalf("interfaces %+v", r.Interfaces)
		}
		same := slices.EqualFunc(packets, got, func(a, b Packet) bool {
			return a.Time == b.Time && a.Interface == b.Interface && bytes.Equal(a.Data, b.Data) && a.Length == b.Length && a.Comment == b.Comment
		})
		if !same {
			rt.Fatalf("wrote %+v\nread %+v", packets, got)
		}
	})
}

// Another reader agrees about every block and option.
func TestOtherReaderAgrees(t *testing.T) {
	file := write(t, Packet{Time: 1, Data: []byte("one")}, Packet{Time: 1_000_000_002, Interface: 1, Data: []byte("three"), Comment: "dropped"})
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.NgReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"one", "three"} {
		data, ci, err := r.ReadPacketData()
		if err != nil || string(data) != want || ci.InterfaceIndex != i || ci.Timestamp.UnixNano() != []int64{1, 1_000_000_002}[i] {
			t.Errorf("packet %d: %q %+v %v", i, data, ci, err)
		}
	}
}

// Interfaces may come between packets, as the runs of a file do.
func TestLaterInterface(t *testing.T) {
	var file bytes.Buffer
	w, err := NewWriter(&file, "test")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"a", "b"} {
		if n, err := w.AddInterface(name); n != i || err != nil {
			t.Fatalf("interface %s is number %d, %v", name, n, err)
		}
		for k, comment := range []string{"", "loopback"} {
			if err := w.Write(i, int64(k), []byte{byte(i), byte(k)}, comment); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, packets, err := Read(&file)
	if err != nil || len(packets) != 4 || len(r.Interfaces) != 2 {
		t.Fatalf("%d packets of %+v, %v", len(packets), r, err)
	}
	for n, p := range packets {
		if p.Interface != n/2 || !bytes.Equal(p.Data, []byte{byte(n / 2), byte(n % 2)}) || r.Interfaces[p.Interface].Name != string('a'+rune(n/2)) {
			t.Errorf("packet %d: %+v", n, p)
		}
	}
}

func TestCaptures(t *testing.T) {
	names, _ := filepath.Glob("../../fixtures/captures/rxe/*/*.pcap")
	n := 0
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		r, packets, err := Read(f)
		if err != nil || r.Format != "pcap" || r.Interfaces[0].LinkType != LinkTypeEthernet {
			t.Errorf("%s: %v %+v", name, err, r)
		}
		if !slices.IsSortedFunc(packets, func(a, b Packet) int { return int(a.Time - b.Time) }) {
			t.Errorf("%s: times go backwards", name)
		}
		n += len(packets)
		f.Close()
	}
	if n != 307 {
		t.Errorf("%d packets, want 307", n)
	}
}

// Wherever a file is cut, the packets before the cut are read and the cut is
// reported, unless it is between two records.
func TestCutFiles(t *testing.T) {
	classic, err := os.ReadFile("../../fixtures/captures/rxe/7.2/send_only.pcap")
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{
		"pcap":   classic,
		"pcapng": write(t, Packet{Data: []byte("first")}, Packet{Data: []byte("second"), Comment: "c"}),
	} {
		_, whole, err := Read(bytes.NewReader(file))
		if err != nil || len(whole) != 2 {
			t.Fatalf("%s: %d packets, %v", name, len(whole), err)
		}
		clean := 0
		for cut := range file {
			_, got, err := Read(bytes.NewReader(file[:cut]))
			for i, p := range got {
				if !bytes.Equal(p.Data, whole[i].Data) {
					t.Fatalf("%s cut at %d: packet %d differs", name, cut, i)
				}
			}
			var broken *BrokenError
			switch {
			case err == nil:
				clean++
			case errors.As(err, &broken):
				if broken.Packets != len(got) || broken.Offset > int64(cut) || !strings.Contains(err.Error(), "the file ends in") {
					t.Fatalf("%s cut at %d, %d packets read: %v", name, cut, len(got), err)
				}
			case cut < 4 && errors.Is(err, ErrNotCapture):
			default:
				t.Fatalf("%s cut at %d: %v", name, cut, err)
			}
		}
		// Cuts between records: 2 of pcap (after the header, after a packet); of pcapng
		// behind the section, two interfaces, two packets and one of two statistics.
		if want := map[string]int{"pcap": 2, "pcapng": 6}[name]; clean != want {
			t.Errorf("%s: %d cuts look whole, want %d", name, clean, want)
		}
	}
}

func TestBrokenFiles(t *testing.T) {
	good := write(t, Packet{Data: []byte("first")}, Packet{Data: []byte("second")})
	_, packets, err := Read(bytes.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	second := packets[1].Offset
	for _, c := range []struct {
		at   int64
		v    byte
		want string
	}{
		{second + 4, 0x29, "with a length of"}, {second + 7, 0x7F, "with a length of"}, {second + 8, 9, "interface 9, the section has 2"},
		{second + 20, 99, "99 bytes of a packet"}, {second + 15, 0xFF, "a time of"}, {second + 36, 1, "whose lengths are"},
	} {
		bad := bytes.Clone(good)
		bad[c.at] = c.v
		_, got, err := Read(bytes.NewReader(bad))
		var broken *BrokenError
		if !errors.As(err, &broken) || broken.Offset != second || len(got) != 1 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("byte %d set to %#x: %d packets, %v, want %q", c.at-second, c.v, len(got), err, c.want)
		}
	}
	for _, s := range []string{"", "abc", "a text file", "\x0a\x0d\x0d\x0a\x1c\x00\x00\x00????"} {
		if _, _, err := Read(strings.NewReader(s)); err == nil {
			t.Errorf("%q is read as a capture", s)
		}
	}
	if _, _, err := Read(io.MultiReader(bytes.NewReader(good[:40]), failing{})); !errors.Is(err, errDisk) {
		t.Errorf("a failing disk gives %v", err)
	}
}

// A format of another version is no empty capture, in either order of bytes.
func TestOtherVersions(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for version, known := range map[uint16]bool{0: false, 1: true, 2: false, 9: false} {
			b := block(order, blockSection, order.AppendUint32(nil, byteOrderMagic), order.AppendUint16(nil, version), order.AppendUint16(nil, 2), bytes.Repeat([]byte{0xFF}, 8))
			_, _, err := Read(bytes.NewReader(b))
			if known != (err == nil) || !known && !strings.Contains(err.Error(), "pcapng version") {
				t.Errorf("version %d: %v", version, err)
			}
		}
	}
}

// block is a block of a pcapng file.
func block(order binary.AppendByteOrder, kind uint32, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	n := uint32(len(body) + 12)
	return order.AppendUint32(append(order.AppendUint32(order.AppendUint32(nil, kind), n), body...), n)
}

// Packets in blocks of the old kind are read, and the numbers of lost packets that stand beside
// packets are counted. Two sections of two programs are of neither.
func TestOldBlocksAndLosses(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		u16, u32 := func(v uint16) []byte { return order.AppendUint16(nil, v) }, func(v uint32) []byte { return order.AppendUint32(nil, v) }
		u64 := func(v uint64) []byte { return order.AppendUint64(nil, v) }
		section := func(application string) []byte {
			return block(order, blockSection, u32(byteOrderMagic), u16(1), u16(0), u64(1<<64-1), u16(optUserAppl), u16(4), []byte(application), u32(0))
		}
		intf := block(order, blockInterface, u16(LinkTypeEthernet), u16(0), u32(0))
		old := func(drops uint16) []byte {
			return block(order, blockPacket, u16(0), u16(drops), u32(0), u32(7), u32(5), u32(5), []byte("first\x00\x00\x00"))
		}
		epb := block(order, blockEnhancedPacket, u32(0), u32(0), u32(8), u32(4), u32(4), []byte("next"), u16(optEpbDrops), u16(8), u64(3), u32(0))
		file := bytes.Join([][]byte{section("test"), intf, old(0xFFFF), old(2), epb, section("test"), intf}, nil)
		r, got, err := Read(bytes.NewReader(file))
		if err != nil || len(got) != 3 {
			t.Fatalf("%d packets, %v", len(got), err)
		}
		if got[0].Time != 7000 || string(got[0].Data) != "first" || string(got[2].Data) != "next" || r.Interfaces[0].Dropped != 5 || r.Interfaces[1].Dropped != 0 || r.Application != "test" {
			t.Errorf("%+v, %+v, of %q", got, r.Interfaces, r.Application)
		}
		if r, _, err = Read(bytes.NewReader(append(file, section("else")...))); err != nil || r.Application != "" {
			t.Errorf("two programs: %q, %v", r.Application, err)
		}
	}
}

var errDisk = errors.New("disk")

type failing struct{}

func (failing) Read([]byte) (int, error)  { return 0, errDisk }
func (failing) Write([]byte) (int, error) { return 0, errDisk }

func TestTimes(t *testing.T) {
	for _, c := range []struct {
		resol  byte
		offset int64
		ts     uint64
		want   int64
		ok     bool
	}{
		{9, 0, 123, 123, true}, {6, 2, 123, 2_000_123_000, true}, {12, 0, 1_500_000_001_999, 1_500_000_001, true},
		{0x80 | 1, 0, 3, 1_500_000_000, true}, {0, 0, 7, 7_000_000_000, true}, {0, 0, 1 << 40, 0, false}, {9, 1 << 40, 0, 0, false},
	} {
		i := Interface{perSecond: unitsPerSecond(c.resol), offset: c.offset}
		if got, ok := i.nanoseconds(c.ts); got != c.want || ok != c.ok {
			t.Errorf("resolution %#x, offset %d, %d: %d %v, want %d %v", c.resol, c.offset, c.ts, got, ok, c.want, c.ok)
		}
	}
	if unitsPerSecond(20) != 0 || unitsPerSecond(0x80|64) != 0 {
		t.Error("resolutions that fit no 64 bits are accepted")
	}
}

// Packets of InfiniBand go into ERF records and come out of them; so do those of other
// writers, and bare ones.
func TestInfiniBandRecords(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, "test", "eth")
	if err != nil {
		t.Fatal(err)
	}
	i, err := w.AddInterfaceOf("ib", LinkTypeInfiniBand)
	if err != nil || i != 1 {
		t.Fatal(i, err)
	}
	for k, text := range []string{"an Ethernet frame", "a packet", "another one"} {
		if err := w.Write(min(k, 1), int64(k)*1_500_000_000, []byte(text), ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, packets, err := Read(&b)
	if err != nil || len(packets) != 3 || r.Interfaces[1].LinkType != LinkTypeERF {
		t.Fatalf("%d packets, %v", len(packets), err)
	}
	for k, want := range []Packet{{LinkType: LinkTypeEthernet, Data: []byte("an Ethernet frame")},
		{LinkType: LinkTypeInfiniBand, Data: []byte("a packet")}, {LinkType: LinkTypeInfiniBand, Data: []byte("another one")}} {
		if p := packets[k]; p.LinkType != want.LinkType || !bytes.Equal(p.Data, want.Data) || p.Length != len(want.Data) || p.Time != int64(k)*1_500_000_000 {
			t.Errorf("packet %d: %+v", k, p)
		}
	}
	record := appendERF(nil, 0, 1_500_000_000, []byte("x"))
	if got := binary.LittleEndian.Uint64(record); got != 1<<32|1<<31 {
		t.Errorf("time %#x", got)
	}
	extended := append(bytes.Clone(record[:16]), append(make([]byte, 8), "x"...)...)
	extended[8] |= 0x80
	other := bytes.Clone(record)
	other[8] = 2 // Ethernet
	for _, c := range []struct {
		data []byte
		want string
		typ  uint16
	}{{record, "x", LinkTypeInfiniBand}, {extended, "x", LinkTypeInfiniBand}, {other, string(other), LinkTypeERF}, {record[:9], string(record[:9]), LinkTypeERF},
		{extended[:20], string(extended[:20]), LinkTypeERF}} {
		p := Packet{Data: c.data, Length: len(c.data), LinkType: LinkTypeERF}
		unwrap(&p)
		if string(p.Data) != c.want || p.LinkType != c.typ || p.Length < len(p.Data) {
			t.Errorf("% x gives % x, link type %d, length %d", c.data, p.Data, p.LinkType, p.Length)
		}
	}
}

func TestWriterErrors(t *testing.T) {
	none, err := NewWriter(io.Discard, "test")
	if err != nil {
		t.Fatal(err)
	}
	if none.Close() != nil || none.Write(0, 0, []byte{1}, "") == nil {
		t.Error("a frame of a file without interfaces is written")
	}
	for _, bad := range []Packet{{Interface: 1}, {Interface: -1}, {Time: -1}} {
		w, err := NewWriter(io.Discard, "test", "a")
		if err != nil {
			t.Fatal(err)
		}
		first := w.Write(bad.Interface, bad.Time, []byte{1}, "")
		if again := w.Write(0, 0, []byte{1}, ""); first == nil || again != first || w.Close() != first {
			t.Errorf("%+v: %v, then %v", bad, first, again)
		}
	}
	for _, size := range []int{1, 1 << 20} { // what is small is noticed in the end
		w, err := NewWriter(failing{}, "test", "a")
		if err != nil {
			t.Fatal(err)
		}
		wrote := w.Write(0, 0, make([]byte, size), "comment")
		if closed := w.Close(); !errors.Is(closed, errDisk) || wrote != nil && wrote != closed || wrote == nil && size > 1<<16 {
			t.Errorf("a full disk gives %v for %d bytes, then %v", wrote, size, closed)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(write(f, Packet{Data: []byte("first")}, Packet{Data: []byte("second"), Comment: "c"}))
	if b, err := os.ReadFile("../../fixtures/captures/rxe/7.2/send_only.pcap"); err == nil {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		_, packets, err := Read(bytes.NewReader(file))
		var broken *BrokenError
		if err != nil && !errors.As(err, &broken) && !errors.Is(err, ErrNotCapture) {
			t.Fatalf("%T: %v", err, err)
		}
		for _, p := range packets {
			if len(p.Data) > p.Length {
				t.Fatalf("%d bytes of a packet of %d", len(p.Data), p.Length)
			}
		}
	})
}

// A capture is read into memory up to a size; what is read is good.
func TestCaptureThatIsTooLong(t *testing.T) {
	var all []Packet
	for i := range 100 {
		all = append(all, Packet{Time: int64(i), Data: make([]byte, 100)})
	}
	file := write(t, all...)
	for _, bound := range []struct {
		bytes   int64
		packets int
		want    int
	}{{1 << 30, 1000, 100}, {1 << 30, 100, 100}, {1 << 30, 10, 10}, {5000, 1000, -1}} {
		_, got, err := read(bytes.NewReader(file), bound.bytes, bound.packets)
		var broken *BrokenError
		if whole := bound.want == 100; whole != (err == nil) || !whole && !errors.As(err, &broken) {
			t.Errorf("%+v: %v", bound, err)
		}
		if len(got) != bound.want && bound.want >= 0 || len(got) == 0 {
			t.Errorf("%+v: %d packets", bound, len(got))
		}
	}
}

func TestCaptureWithTooManyInterfaces(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, "x")
	for i := 0; err == nil && i <= mostInterfaces; i++ {
		_, err = w.AddInterface("")
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := Read(&b)
	if err == nil || !strings.Contains(err.Error(), "more than 65536 interfaces") || len(r.Interfaces) != mostInterfaces {
		t.Errorf("%v", err)
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
