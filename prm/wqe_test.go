package prm

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "\n", "", "\t", "").Replace(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A WRITE of one range, a WRITE of inline data and a CMP_SWP as libmlx5 would lay
// them out, written by hand from the format.
func TestWQEGolden(t *testing.T) {
	write := unhex(t, `
		00001208 00012303  00000008 00000000
		00007f0011223344  00c0ffee 00000000
		00000040 00001234  00007f00aabbccdd`)
	b := make([]byte, 48)
	CtrlSegment(b).Set(WQEOpRDMAWrite, 0, 0x12, 0x123, 3, CtrlCQUpdate, 0)
	RaddrSegment(b[16:]).Set(0x7f0011223344, 0xc0ffee)
	DataSegment(b[32:]).Set(64, 0x1234, 0x7f00aabbccdd)
	if !bytes.Equal(b, write) {
		t.Errorf("got % x", b)
	}
	var w SendWQE
	if err := ParseSendWQE(append(write, 1, 2, 3), STRC, &w); err != nil {
		t.Fatal(err)
	}
	if w.Ctrl.Opcode() != WQEOpRDMAWrite || w.Ctrl.WQEIndex() != 0x12 || w.Ctrl.QPN() != 0x123 || w.Ctrl.DS() != 3 || w.Ctrl.FMCESE() != 8 {
		t.Errorf("control segment % x", []byte(w.Ctrl))
	}
	if w.Raddr.Addr() != 0x7f0011223344 || w.Raddr.RKey() != 0xc0ffee || w.Bytes != 64 || w.Segments != 1 || w.Atomic != nil {
		t.Errorf("%+v", w)
	}
	s, at, ok := w.Data(0)
	if !ok || s.Addr != 0x7f00aabbccdd || s.LKey != 0x1234 || s.Len != 64 || s.Inline != nil {
		t.Errorf("%+v", s)
	}
	if _, _, ok := w.Data(at); ok {
		t.Error("a second segment")
	}

	inline := unhex(t, `
		00000109 00012304  00000008 deadbeef
		0000000000001000  00000001 00000000
		8000000d 30313233  3435363738394142
		43000000 00000000  0000000000000000`)
	if err := ParseSendWQE(inline, STRC, &w); err != nil {
		t.Fatal(err)
	}
	s, at, ok = w.Data(0)
	if !ok || string(s.Inline) != "0123456789ABC" || s.Len != 13 || at != 32 || w.Bytes != 13 || w.Ctrl.Imm() != 0xdeadbeef {
		t.Errorf("%+v, next %d", s, at)
	}

	cas := unhex(t, `
		00000011 00012304  00000008 00000000
		0000000000001000  00000001 00000000
		1111111111111111 2222222222222222
		00000008 00000777  0000000000002000`)
	if err := ParseSendWQE(cas, STRC, &w); err != nil || w.Atomic.SwapAdd() != 0x1111111111111111 || w.Atomic.Compare() != 0x2222222222222222 || w.Bytes != 8 {
		t.Errorf("%+v, %v", w, err)
	}
}

func ctrl(op WQEOpcode, ds int, rest ...byte) []byte {
	b := make([]byte, max(16*ds, 16+len(rest)))
	CtrlSegment(b).Set(op, 0, 0, 1, ds, 0, 0)
	copy(b[16:], rest)
	return b
}

func TestParseSendWQERejects(t *testing.T) {
	inline := func(n uint32) []byte {
		b := make([]byte, 16)
		putBE32(b, 0, InlineFlag|n)
		return b
	}
	raddr := make([]byte, 16)
	for _, c := range []struct {
		name string
		b    []byte
		st   uint32
		want error
	}{
		{"nothing", nil, STRC, ErrWQETruncated},
		{"15 bytes", make([]byte, 15), STRC, ErrWQETruncated},
		{"DS 0", ctrl(WQEOpSend, 0), STRC, ErrWQELength},
		{"fewer bytes than DS", ctrl(WQEOpSend, 2)[:31], STRC, ErrWQETruncated},
		{"unknown opcode", ctrl(0x7f, 1), STRC, ErrWQEOpcode},
		{"opcode of another queue", ctrl(WQEOpTagMatching, 4), STRC, ErrWQEOpcode},
		{"WRITE without raddr", ctrl(WQEOpRDMAWrite, 1), STRC, ErrWQELength},
		{"CMP_SWP without operands", ctrl(WQEOpAtomicCS, 2), STRC, ErrWQELength},
		{"inline beyond the WQE", ctrl(WQEOpSend, 2, inline(13)...), STRC, ErrWQEInline},
		{"inline of 2 GiB", ctrl(WQEOpSend, 2, inline(0x7fffffff)...), STRC, ErrWQEInline},
		{"inline in a READ", ctrl(WQEOpRDMARead, 3, append(raddr, inline(4)...)...), STRC, ErrWQEInline},
		{"READ on UC", ctrl(WQEOpRDMARead, 3), STUC, ErrWQEOpcode},
		{"SEND_INV on UC", ctrl(WQEOpSendInv, 2), STUC, ErrWQEOpcode},
		{"WRITE on UD", ctrl(WQEOpRDMAWrite, 6), STUD, ErrWQEOpcode},
		{"UD without AV", ctrl(WQEOpSend, 1), STUD, ErrWQELength},
		{"UD with half an AV", ctrl(WQEOpSend, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0x80), STUD, ErrWQELength},
		{"XRC without its segment", ctrl(WQEOpSend, 1), STXRC, ErrWQELength},
		{"UMR cut short", ctrl(WQEOpUMR, 7), STRC, ErrWQELength},
		{"DCI without AV", ctrl(WQEOpRDMAWrite, 1), STDCI, ErrWQELength},
		{"DCI with half an AV", ctrl(WQEOpSend, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0x80), STDCI, ErrWQELength},
		{"DCI without raddr", ctrl(WQEOpRDMAWrite, 2), STDCI, ErrWQELength},
		{"DCT", ctrl(WQEOpSend, 2), STDCT, ErrWQEOpcode},
	} {
		var w SendWQE
		if err := ParseSendWQE(c.b, c.st, &w); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	var w SendWQE
	for _, good := range []struct {
		b  []byte
		st uint32
	}{
		{ctrl(WQEOpNOP, 1), STRC}, {ctrl(WQEOpNOP, 4, inline(99)...), STRC}, {ctrl(WQEOpSend, 1), STRC},
		{ctrl(WQEOpSend, 2, inline(12)...), STRC}, {ctrl(WQEOpRDMARead, 2), STRC}, {ctrl(WQEOpSend, 2), STUD},
		{ctrl(WQEOpRDMAWrite, 4), STXRC}, {ctrl(WQEOpSendInv, 2), STDCI}, {ctrl(WQEOpRDMARead, 3), STDCI},
	} {
		if err := ParseSendWQE(good.b, good.st, &w); err != nil {
			t.Errorf("% x: %v", good.b[:16], err)
		}
	}
}

func TestParseUMR(t *testing.T) {
	b := ctrl(WQEOpUMR, 12)
	u := UMRCtrlSegment(b[16:])
	u.SetFlags(UMRInline | UMRTranslationOffset)
	u.SetXLTOctowords(4)
	u.SetMKeyMask(MKeyMaskFree | MKeyMaskKey)
	MKC(b[64:]).SetStartAddr(0x1000)
	KLM(b[128:]).SetMKey(77)
	var w SendWQE
	if err := ParseSendWQE(b, STRC, &w); err != nil {
		t.Fatal(err)
	}
	if len(w.Inline) != 64 || KLM(w.Inline).MKey() != 77 || w.MKC.StartAddr() != 0x1000 || w.UMR.MKeyMask() != 1<<29|1<<13 {
		t.Errorf("%+v", w)
	}
	u.SetXLTOctowords(5)
	if err := ParseSendWQE(b, STRC, &w); !errors.Is(err, ErrWQELength) {
		t.Errorf("more entries than there is room for: %v", err)
	}
}

// What a poster writes is what a parser reads.
func TestWQERoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b []byte
		op := rapid.SampledFrom([]WQEOpcode{WQEOpSend, WQEOpRDMAWrite, WQEOpRDMARead, WQEOpAtomicFA}).Draw(t, "op")
		grow := func(n int) []byte {
			b = append(b, make([]byte, n)...)
			return b[len(b)-n:]
		}
		grow(CtrlSegmentSize)
		raddr, rkey := rapid.Uint64().Draw(t, "raddr"), rapid.Uint32().Draw(t, "rkey")
		st, srqn := rapid.SampledFrom([]uint32{STRC, STXRC}).Draw(t, "service"), rapid.Uint32Range(0, 1<<24-1).Draw(t, "srqn")
		if st == STXRC {
			XRCSegment(grow(XRCSegmentSize)).SetSRQN(srqn)
		}
		if op != WQEOpSend {
			RaddrSegment(grow(RaddrSegmentSize)).Set(raddr, rkey)
		}
		if op == WQEOpAtomicFA {
			AtomicSegment(grow(AtomicSegmentSize)).SetSwapAdd(raddr)
		}
		var want []SGE
		total := uint64(0)
		for range rapid.IntRange(0, 5).Draw(t, "segments") {
			if (op == WQEOpSend || op == WQEOpRDMAWrite) && rapid.Bool().Draw(t, "inline") {
				data := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "data")
				seg := make([]byte, InlineSize(len(data)))
				InlineSegment(seg).SetLen(len(data))
				copy(InlineSegment(seg).Data(), data)
				b = append(b, seg...)
				want = append(want, SGE{Inline: data, Len: uint32(len(data))})
				total += uint64(len(data))
				continue
			}
			s := SGE{Addr: rapid.Uint64().Draw(t, "addr"), LKey: rapid.Uint32().Draw(t, "lkey"), Len: rapid.Uint32Range(1, 1<<31-1).Draw(t, "len")}
			seg := make([]byte, DataSegmentSize)
			DataSegment(seg).Set(s.Len, s.LKey, s.Addr)
			b = append(b, seg...)
			want = append(want, s)
			total += uint64(s.Len)
		}
		CtrlSegment(b).Set(op, 0, rapid.Uint16().Draw(t, "index"), rapid.Uint32Range(0, 1<<24-1).Draw(t, "qpn"), len(b)/16, 0, 0)
		var w SendWQE
		if err := ParseSendWQE(b, st, &w); err != nil {
			t.Fatal(err)
		}
		if (st == STXRC) != (w.XRC != nil) || st == STXRC && w.XRC.SRQN() != srqn {
			t.Fatalf("XRC segment % x", []byte(w.XRC))
		}
		if op == WQEOpAtomicFA && w.Atomic.SwapAdd() != raddr {
			t.Fatalf("atomic segment % x", []byte(w.Atomic))
		}
		if op != WQEOpSend && (w.Raddr.Addr() != raddr || w.Raddr.RKey() != rkey) {
			t.Fatalf("raddr % x", []byte(w.Raddr))
		}
		if w.Bytes != total || w.Segments != len(want) {
			t.Fatalf("%d bytes in %d segments, want %d in %d", w.Bytes, w.Segments, total, len(want))
		}
		at := 0
		for i, x := range want {
			s, next, ok := w.Data(at)
			if !ok || s.Addr != x.Addr || s.LKey != x.LKey || s.Len != x.Len || !bytes.Equal(s.Inline, x.Inline) {
				t.Fatalf("segment %d: %+v, want %+v", i, s, x)
			}
			at = next
		}
	})
}

func TestRecvSGE(t *testing.T) {
	b := make([]byte, 64)
	DataSegment(b).Set(100, 5, 0x1000)
	DataSegment(b[16:]).Set(0, 6, 0x2000)
	DataSegment(b[32:]).Set(0, InvalidLKey, 0)
	s, at, ok := RecvSGE(b, 0)
	if !ok || s.Len != 100 || s.LKey != 5 || s.Addr != 0x1000 {
		t.Errorf("%+v", s)
	}
	if s, at, ok = RecvSGE(b, at); !ok || s.Len != 1<<31 {
		t.Errorf("count 0 with a key is 2 GiB: %+v", s)
	}
	if _, _, ok = RecvSGE(b, at); ok {
		t.Error("the terminator is not an entry")
	}
	if _, _, ok = RecvSGE(b, 56); ok {
		t.Error("8 bytes are not an entry")
	}
}

func TestParseAllocatesNothing(t *testing.T) {
	b := ctrl(WQEOpRDMAWrite, 4)
	var w SendWQE
	if n := testing.AllocsPerRun(100, func() {
		if ParseSendWQE(b, STRC, &w) != nil {
			t.Fatal("not parsed")
		}
		for at, ok := 0, true; ok; {
			_, at, ok = w.Data(at)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSignature(t *testing.T) {
	b := ctrl(WQEOpSend, 1)
	CtrlSegment(b).SetSignature(WQESignature(b))
	if WQESignature(b) != 0 { // all bytes XOR to 0xff
		t.Errorf("signature %#x", b[8])
	}
}

func FuzzSendWQE(f *testing.F) {
	for op := range 0x30 {
		f.Add(ctrl(WQEOpcode(op), 8), uint8(op%4))
	}
	for _, op := range []WQEOpcode{WQEOpSend, WQEOpSendInv, WQEOpRDMAWriteImm, WQEOpRDMARead, WQEOpAtomicCS, WQEOpUMR} {
		for ds := range 6 { // the segment of XRC is cut off, the next, or there is data
			f.Add(ctrl(op, ds), uint8(STXRC))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, st uint8) {
		var w SendWQE
		if ParseSendWQE(b, uint32(st), &w) != nil {
			return
		}
		n, sum, at := 0, uint64(0), 0
		for {
			s, next, ok := w.Data(at)
			if !ok {
				break
			}
			if next <= at || s.Inline != nil && len(s.Inline) != int(s.Len) {
				t.Fatalf("segment at %d: %+v, next %d", at, s, next)
			}
			n, sum, at = n+1, sum+uint64(s.Len), next
		}
		if n != w.Segments || sum != w.Bytes || at != len(w.data) {
			t.Fatalf("walked %d segments, %d bytes to %d; parsed %d, %d to %d", n, sum, at, w.Segments, w.Bytes, len(w.data))
		}
	})
}

func FuzzRecvWQE(f *testing.F) {
	f.Add(make([]byte, 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		for at, ok := 0, true; ok; {
			var next int
			if _, next, ok = RecvSGE(b, at); ok && (next <= at || next > len(b)) {
				t.Fatalf("next %d after %d of %d", next, at, len(b))
			}
			at = next
		}
	})
}
