package hca

import (
	"testing"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/ether"
)

// FuzzEntries steers a packet through arbitrary entries.
func FuzzEntries(f *testing.F) {
	f.Add(ste(prm.STEReceive, func(e prm.STE) { e.PutNext(icmEntries+64, 2); e.SetNextLookupType(lookTuple); e.SetByteMask(0xffff) }), checked(tcpPacket()))
	f.Add(ste(prm.STEModify, func(e prm.STE) { e.SetChanges(3); e.SetTunnelAction(prm.STEPopVLAN); e.PutNext(icmTIRs+64, 1) }), make([]byte, 60))
	f.Add(ste(prm.STETransmit, func(e prm.STE) { e.SetActionType(prm.STEPushVLAN); e.PutNext(icmEntries, 1) }), make([]byte, 14))
	f.Fuzz(func(t *testing.T, entries, packet []byte) {
		var pool roce.Pool
		m := newICM(&Params{SWSteering: true})
		if _, st := m.alloc(icmEntries, 16); st != prm.StatusOK {
			t.Fatal(st)
		}
		if _, st := m.alloc(icmChanges, 16); st != prm.StatusOK {
			t.Fatal(st)
		}
		m.write(icmEntries, entries[:min(len(entries), 1<<16)])
		m.write(icmChanges, entries[:min(len(entries), 1<<16)])
		var tirs []*tir
		s := newSteering(&tirs, &m)
		tirs = put(tirs, 1, &tir{})
		if len(packet) < roce.EthernetSize || len(packet) > 9000 {
			return
		}
		for kind := range uint32(flowKinds) {
			s.roots[kind] = &flowTable{kind: kind, sw: true, at: icmEntries}
			fr := pool.GetPlain(len(packet))
			copy(fr.B, packet)
			if kind == prm.FlowTableNICReceive {
				h := ether.Parse(fr.B)
				for _, hit := range s.receive(fr, &h) {
					hit.f.Release()
				}
				fr.Release()
				continue
			}
			for _, left := range s.send(fr) {
				left.Release()
			}
		}
		if pool.Live != 0 {
			t.Errorf("%d frames leaked", pool.Live)
		}
	})
}

// TestPlaceOfEntry: the place is that of rdma-core's library, which goes bit by bit here: a CRC of
// polynomial 0xEDB88320 from 0, its bytes reversed.
func TestPlaceOfEntry(t *testing.T) {
	tag := steTag{0x24, 0x8a, 0x07, 0xa5, 0x28, 0xc8, 0x88, 0xb5, 9, 10, 11, 12, 13, 14, 15, 16}
	for _, mask := range []uint32{0xffff, 0xfc00, 0x8001} {
		crc := uint32(0)
		for i, b := range tag {
			if mask>>(15-i)&1 == 0 {
				b = 0
			}
			crc ^= uint32(b)
			for range 8 {
				low := crc & 1
				if crc >>= 1; low != 0 {
					crc ^= 0xedb88320
				}
			}
		}
		want := uint64(crc>>24 | crc>>8&0xff00 | crc<<8&0xff0000 | crc<<24)
		for _, n := range []uint64{2, 16, 1 << 20} {
			if got := tag.place(mask, n); got != want%n {
				t.Errorf("mask %#x, %d entries: %d, want %d", mask, n, got, want%n)
			}
		}
	}
	if tag.place(0xffff, 1) != 0 || tag.place(0, 8) != 0 {
		t.Error("one entry, or no mask: another place than the first")
	}
}

// TestTags: a tag has the fields of the packet, and those of a header that it lacks are 0.
func TestTags(t *testing.T) {
	tagged := make([]byte, 64)
	ether.PutTag(tagged, tcpPacket(), 0x88a8_b234)
	b := make([]byte, 68)
	ether.PutTag(b, tagged, 0x8100_5321)
	copy(b, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	ip := b[22:]
	ip[1], ip[8] = 0xb9, 77
	copy(ip[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	copy(ip[20:], []byte{0x12, 0x34, 0x56, 0x78, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x12, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66})
	p := flight{f: new(roce.Pool).GetPlain(len(b))}
	copy(p.f.B, b)
	p.changed()
	p.regs = [headerRegs]uint64{1, 2, 3, 4, 0x1122334455667788}
	for look, want := range map[uint32]string{
		lookSrc:        "\x07\x08\x09\x0a\x0b\x0c\x08\x00\x00\x05\x83\x21\x45\x0b\x42\x34",
		lookDstOut:     "\x01\x02\x03\x04\x05\x06\x08\x00\x00\x05\x83\x21\x45\x0b\x42\x34",
		lookSrcDst:     "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x04\x05\x83\x21",
		lookTuple:      "\x0a\x00\x00\x02\x0a\x00\x00\x01\x12\x34\x56\x78\x02\x12\xb8\x06",
		lookIPv4:       "\x45\x00\x00\x2e\x00\x00\x00\x00\x4d\x00\x00\x00\x00\x00\x00\x00",
		lookL4:         "\x00\x06\x56\x78\x02\x12\x12\x34\x00\x00\x00\xb8\x00\x00\x00\x00",
		lookTCP:        "\x33\x44\x00\x1a\x01\x02\x03\x04\x05\x06\x07\x08\x55\x66\x11\x22",
		lookDst6:       "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		lookRegisters1: "\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x04",
		lookMetadata:   "\x55\x66\x77\x88\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
	} {
		if got, ok := p.tagOf(look); !ok || string(got[:]) != want {
			t.Errorf("look-up %#x: % x, want % x (%v)", look, got, want, ok)
		}
	}
	for _, look := range []uint32{0, 0x05, 0x16, 0x22, lookTunnel, lookSrcIn, 0xff} {
		if got, ok := p.tagOf(look); ok || got != (steTag{}) {
			t.Errorf("look-up %#x: % x", look, got)
		}
	}
}
