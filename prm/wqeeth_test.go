package prm

import (
	"bytes"
	"testing"
)

// packetBytes is a WQE with n inline bytes of headers, and the data segments that follow.
func packetBytes(n int, op WQEOpcode, segments ...[]byte) []byte {
	b := make([]byte, CtrlSegmentSize+max(EthSegmentSize, (14+n+15)&^15))
	e := EthSegment(b[16:32])
	e.SetInlineSize(uint16(n))
	for i := range n {
		b[30+i] = byte(i + 1)
	}
	for _, s := range segments {
		b = append(b, s...)
	}
	CtrlSegment(b).Set(op, 0, 7, 0x40, len(b)/16, CtrlCQUpdate, 0)
	return b
}

func memorySegment(n uint32) []byte {
	b := make([]byte, DataSegmentSize)
	DataSegment(b).Set(n, 0x1200, 0x10000)
	return b
}

func TestParsePacketWQE(t *testing.T) {
	inline := make([]byte, InlineSize(20))
	InlineSegment(inline).SetLen(20)
	for _, n := range []int{0, 2, 3, 14, 18, 66} {
		var w PacketWQE
		b := packetBytes(n, WQEOpSend, memorySegment(100), inline, memorySegment(1000))
		if err := ParsePacketWQE(b, &w); err != nil {
			t.Fatal(n, err)
		}
		if len(w.Headers) != n || n > 0 && (w.Headers[0] != 1 || w.Headers[n-1] != byte(n)) || w.Bytes != 1120 {
			t.Errorf("%d: headers % x, %d bytes", n, w.Headers, w.Bytes)
		}
		var lens []uint32
		for s, at, ok := w.Data(0); ok; s, at, ok = w.Data(at) {
			if s.Inline == nil && (s.LKey != 0x1200 || s.Addr != 0x10000) || s.Inline != nil && !bytes.Equal(s.Inline, make([]byte, 20)) {
				t.Errorf("%d: %+v", n, s)
			}
			lens = append(lens, s.Len)
		}
		if len(lens) != 3 || lens[0] != 100 || lens[1] != 20 || lens[2] != 1000 {
			t.Errorf("%d: %v", n, lens)
		}
	}
	long := make([]byte, 16)
	InlineSegment(long).SetLen(13)
	for what, b := range map[string][]byte{
		"nothing": {}, "cut off": packetBytes(0, WQEOpSend, memorySegment(1))[:47], "opcode": packetBytes(0, WQEOpRDMAWrite),
		"inline data beyond the end": packetBytes(0, WQEOpSend, long),
	} {
		if ParsePacketWQE(b, new(PacketWQE)) == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	for what, spoil := range map[string]func(b []byte){
		"no Ethernet segment":    func(b []byte) { CtrlSegment(b).SetDS(1) },
		"no segments":            func(b []byte) { CtrlSegment(b).SetDS(0) },
		"headers beyond the end": func(b []byte) { EthSegment(b[16:]).SetInlineSize(100) },
	} {
		b := packetBytes(0, WQEOpTSO, memorySegment(1))
		if spoil(b); ParsePacketWQE(b, new(PacketWQE)) == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

// FuzzPacketWQE: what is accepted can be walked, and adds up.
func FuzzPacketWQE(f *testing.F) {
	f.Add(packetBytes(18, WQEOpSend, memorySegment(100)))
	f.Add(packetBytes(66, WQEOpTSO, memorySegment(100), memorySegment(9000)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var w PacketWQE
		if ParsePacketWQE(b, &w) != nil {
			return
		}
		sum := uint64(0)
		for s, at, ok := w.Data(0); ok; s, at, ok = w.Data(at) {
			if s.Inline != nil && len(s.Inline) != int(s.Len) {
				t.Fatalf("%+v", s)
			}
			sum += uint64(s.Len)
		}
		if sum != w.Bytes || len(w.Headers) != int(w.Eth.InlineSize()) {
			t.Fatalf("%d, %d bytes", sum, w.Bytes)
		}
	})
}
