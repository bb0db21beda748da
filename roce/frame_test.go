package roce_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/roce"
)

func drawPath(t *rapid.T) roce.Path {
	p := roce.Path{
		Framing:      rapid.SampledFrom([]roce.Framing{roce.RoCEv2IPv4, roce.RoCEv2IPv6, roce.RoCEv1, roce.InfiniBand}).Draw(t, "framing"),
		Tagged:       rapid.Bool().Draw(t, "tagged"),
		VLANTCI:      rapid.Uint16().Draw(t, "tci"),
		TrafficClass: rapid.Uint8().Draw(t, "tc"),
		HopLimit:     rapid.Uint8().Draw(t, "hops"),
		PKey:         rapid.Uint16().Draw(t, "pkey"),
		DestQP:       rapid.Uint32Range(0, roce.PSNMask).Draw(t, "qp"),
		MigReq:       rapid.Bool().Draw(t, "mig"),
	}
	copy(p.SrcMAC[:], rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "smac"))
	copy(p.DstMAC[:], rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "dmac"))
	copy(p.SrcGID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "sgid"))
	copy(p.DstGID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "dgid"))
	if p.Framing == roce.InfiniBand {
		p.Tagged, p.Global = false, rapid.Bool().Draw(t, "global")
		p.SLID, p.DLID = rapid.Uint16Range(1, 0xBFFF).Draw(t, "slid"), rapid.Uint16Range(1, 0xFFFE).Draw(t, "dlid")
		p.SL, p.VL = rapid.Uint8Range(0, 15).Draw(t, "sl"), rapid.Uint8Range(0, 14).Draw(t, "vl")
		if !p.Global {
			p.SrcGID, p.DstGID, p.TrafficClass = roce.GID{}, roce.GID{}, 0
		}
	}
	if p.Framing == roce.RoCEv2IPv4 {
		p.SrcGID, p.DstGID = roce.GIDFromIPv4(p.SrcGID.IPv4()), roce.GIDFromIPv4(p.DstGID.IPv4())
		p.CountIPID = rapid.Bool().Draw(t, "count")
		p.FirstIPID = rapid.Uint16().Draw(t, "ipid")
	} else {
		p.FlowLabel = rapid.Uint32Range(0, 0xFFFFF).Draw(t, "flow")
	}
	if p.Framing != roce.RoCEv1 {
		p.SrcPort = rapid.Uint16().Draw(t, "sport")
	}
	if !p.Tagged {
		p.VLANTCI = 0
	}
	return p
}

func validOpcodes() (ops []roce.Opcode) {
	for o := range 256 {
		if op := roce.Opcode(o); op.Valid() {
			ops = append(ops, op)
		}
	}
	return ops
}

// What a template writes, Parse reads back.
func TestTemplateRoundTrip(t *testing.T) {
	ops := validOpcodes()
	rapid.Check(t, func(t *rapid.T) {
		var pool roce.Pool
		path := drawPath(t)
		tmpl, err := roce.NewTemplate(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			op := rapid.SampledFrom(ops).Draw(t, "op")
			psn := rapid.Uint32Range(0, roce.PSNMask).Draw(t, "psn")
			flags := roce.Flags(rapid.IntRange(0, 7).Draw(t, "flags"))
			payload := rapid.SliceOfN(rapid.Byte(), 0, 1024).Draw(t, "payload")
			ext := rapid.SliceOfN(rapid.Byte(), int(op.Info().HeaderLen), int(op.Info().HeaderLen)).Draw(t, "ext")
			f := tmpl.New(&pool, op, psn, len(payload), flags)
			if !bytes.Equal(f.Ext(), make([]byte, len(ext))) {
				t.Fatal("extended headers are not zeroed")
			}
			copy(f.Ext(), ext)
			copy(f.Payload(), payload)
			if f.ICRC != roce.ICRCPending || !f.ICRCOK() || len(f.B) != tmpl.FrameLen(op, len(payload)) {
				t.Fatalf("state %d, %d bytes", f.ICRC, len(f.B))
			}
			f.FinishICRC()
			p, err := f.Parse()
			if err != nil || !p.ICRCOK() || p.Framing != path.Framing || p.Len() != len(f.B) || f.LRH != (path.Framing == roce.InfiniBand) {
				t.Fatalf("%v: %v, ICRC ok %v", p.Framing, err, p.ICRCOK())
			}
			if q, err := f.Decode(); err != nil || !reflect.DeepEqual(*q, p) {
				t.Fatalf("the template knows %+v (%v), the bytes say %+v", q, err, p)
			}
			b := p.BTH()
			if p.Op != op || b.PSN() != psn || b.DestQP() != path.DestQP || b.PKey() != path.PKey || b.MigReq() != path.MigReq ||
				b.AckReq() != (flags&roce.AckReq != 0) || b.Solicited() != (flags&roce.Solicited != 0) || b.BECN() != (flags&roce.BECN != 0) ||
				b.FECN() || b.Reserved6() != 0 || b.Reserved7() != 0 {
				t.Fatalf("BTH % x", []byte(b))
			}
			if !bytes.Equal(p.Payload(), payload) || !bytes.Equal(p.Ext(), ext) || p.PadCount() != roce.PadCount(len(payload)) {
				t.Fatal("payload or headers differ")
			}
			if p.SrcGID() != path.SrcGID || p.DstGID() != path.DstGID || p.TrafficClass() != path.TrafficClass {
				t.Fatal("addresses differ")
			}
			if (p.VLAN() != nil) != path.Tagged || path.Tagged && p.VLAN().TCI() != path.VLANTCI {
				t.Fatal("tag differs")
			}
			if f.LRH {
				if h := p.LRH(); h.SLID() != path.SLID || h.DLID() != path.DLID || h.SL() != path.SL || h.VL() != path.VL ||
					int(h.PktLen())*4 != len(f.B) || p.HasGRH() != path.Global {
					t.Fatalf("LRH % x", []byte(h))
				}
			}
			if path.Framing == roce.RoCEv2IPv4 {
				want := path.FirstIPID
				if path.CountIPID {
					want += uint16(i)
				}
				if h := p.IPv4(); h.ID() != want || h.Checksum() != h.ComputeChecksum() || h.FlagsOffset() != roce.IPv4DontFragment {
					t.Fatalf("IPv4 header % x", []byte(h))
				}
			}
			f.Touch()
			f.B[len(f.B)-roce.ICRCSize-len(payload)-roce.PadCount(len(payload))-len(ext)-roce.BTHSize+1] |= 1 // TVer
			if _, err := f.Decode(); err != roce.DropBTHVersion {
				t.Fatalf("a changed frame: %v", err)
			}
			f.Release()
		}
		if pool.Live != 0 {
			t.Fatalf("%d frames are out", pool.Live)
		}
	})
}

func TestPathsThatCannotBe(t *testing.T) {
	v4 := roce.GIDFromIPv4([4]byte{1, 2, 3, 4})
	for _, p := range []roce.Path{
		{}, {Framing: roce.InfiniBand}, {Framing: roce.RoCEv2IPv4, SrcGID: v4}, {Framing: roce.RoCEv2IPv4, DstGID: v4},
		{Framing: roce.RoCEv1, DestQP: 1 << 24}, {Framing: roce.RoCEv1, FlowLabel: 1 << 20},
		{Framing: roce.InfiniBand, SLID: 1}, {Framing: roce.InfiniBand, DLID: 1}, {Framing: roce.InfiniBand, SLID: 0xC000, DLID: 1},
		{Framing: roce.InfiniBand, SLID: 1, DLID: 0xFFFF}, {Framing: roce.InfiniBand, SLID: 1, DLID: 1, SL: 16}, {Framing: roce.InfiniBand, SLID: 1, DLID: 1, VL: 16},
	} {
		if _, err := roce.NewTemplate(p); !errors.Is(err, roce.ErrPath) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// One broken field each.
func TestParseDrops(t *testing.T) {
	good := func() []byte {
		eth := fromHex(t, "020000000002 020000000001 0800")
		return append(append(eth, fromHex(t, wireAck)...), 0x85, 0x83, 0x4F, 0xF4)
	}
	sum := func(b []byte) []byte {
		h := roce.IPv4(b[14:34])
		h.SetChecksum(h.ComputeChecksum())
		return b
	}
	for _, c := range []struct {
		want  roce.DropReason
		spoil func(b []byte) []byte
	}{
		{0, func(b []byte) []byte { return b }},
		{0, func(b []byte) []byte { return append(b, 0, 0, 0) }},
		{roce.DropShort, func(b []byte) []byte { return b[:13] }},
		{roce.DropShort, func(b []byte) []byte { return b[:33] }},
		{roce.DropShort, func(b []byte) []byte { return b[:len(b)-1] }},
		{roce.DropShort, func(b []byte) []byte { return append(b[:12], 0x81, 0, 0) }},
		{roce.DropLong, func(b []byte) []byte { return append(b, make([]byte, 1<<16)...) }},
		{roce.DropNotRDMA, func(b []byte) []byte { b[12], b[13] = 8, 6; return b }},
		{roce.DropNotRDMA, func(b []byte) []byte { b[23] = 6; return b }},
		{roce.DropNotRDMA, func(b []byte) []byte { b[36] = 0; return b }},
		{roce.DropIPVersion, func(b []byte) []byte { b[14] = 0x65; return b }},
		{roce.DropIPOptions, func(b []byte) []byte { b[14] = 0x46; return b }},
		{roce.DropIPChecksum, func(b []byte) []byte { b[24] ^= 1; return b }},
		{roce.DropIPFragment, func(b []byte) []byte { b[20] = 0x20; return sum(b) }},
		{roce.DropIPFragment, func(b []byte) []byte { b[21] = 1; return sum(b) }},
		{roce.DropIPLength, func(b []byte) []byte { b[17] = 27; return sum(b) }},
		{roce.DropUDPLength, func(b []byte) []byte { b[39] = 24; return b }},
		{roce.DropUDPLength, func(b []byte) []byte { b[17], b[39] = 44, 24; b = b[:58]; b[39] = 23; return sum(b) }},
		{roce.DropUDPChecksum, func(b []byte) []byte { b[41] = 1; return b }},
		{roce.DropBTHVersion, func(b []byte) []byte { b[43] = 1; return b }},
		{roce.DropOpcode, func(b []byte) []byte { b[42] = 0x1E; return b }},
		{roce.DropLength, func(b []byte) []byte { b[42] = 0x13; return b }},
		{roce.DropLength, func(b []byte) []byte { b[43] = 0x30; return b }},
	} {
		p, err := roce.Parse(c.spoil(good()))
		got, _ := err.(roce.DropReason)
		if got != c.want {
			t.Errorf("%v, want %v", err, c.want)
		}
		if (got == roce.DropOpcode || got == roce.DropLength || got == roce.DropBTHVersion) && p.BTH().PSN() != 0x100 {
			t.Errorf("%v: the BTH is not readable", got)
		}
	}
	if roce.DropICRC.Error() != "roce: wrong ICRC" || roce.DropReason(99).String() == "" {
		t.Error("texts")
	}
}

// A right UDP checksum is accepted and leaves the ICRC right.
func TestUDPChecksum(t *testing.T) {
	b := append(fromHex(t, "020000000002 020000000001 0800"), fromHex(t, wireAck)...)
	b = append(b, 0x85, 0x83, 0x4F, 0xF4)
	var s uint32
	word := func(p []byte) {
		for i := 0; i < len(p); i += 2 {
			s += uint32(p[i])<<8 | uint32(p[i+1])
		}
	}
	word(b[26:])
	s += 17 + uint32(len(b)-34)
	s = s>>16 + s&0xFFFF
	s = s>>16 + s&0xFFFF
	roce.UDP(b[34:42]).SetChecksum(^uint16(s))
	if p, err := roce.Parse(b); err != nil || !p.ICRCOK() {
		t.Errorf("%v", err)
	}
}

func TestInfiniBandPackets(t *testing.T) {
	var pool roce.Pool
	tmpl, err := roce.NewTemplate(roce.Path{Framing: roce.RoCEv1, SrcGID: roce.GID{1}, DstGID: roce.GID{2}, PKey: 0xFFFF, DestQP: 5, HopLimit: 1})
	if err != nil {
		t.Fatal(err)
	}
	f := tmpl.New(&pool, roce.RCWriteOnly, 9, 5, 0)
	copy(f.Payload(), "abcde")
	for _, global := range []bool{true, false} {
		body := f.B[roce.EthernetSize:]
		lnh := uint8(roce.LNHIBAGlobal)
		if !global {
			body, lnh = body[roce.GRHSize:], roce.LNHIBALocal
		}
		b := append(make([]byte, roce.LRHSize), body...)
		h := roce.LRH(b)
		h.SetVL(3)
		h.SetSL(2)
		h.SetLNH(lnh)
		h.SetDLID(7)
		h.SetSLID(8)
		h.SetPktLen(uint16(len(b) / 4))
		roce.PutICRC(b[len(b)-4:], roce.ICRCInfiniBand(b[:len(b)-4]))
		v := roce.VCRC(b)
		b = append(b, byte(v), byte(v>>8))
		p, err := roce.ParseInfiniBand(b)
		if err != nil || !p.ICRCOK() || string(p.Payload()) != "abcde" || p.HasGRH() != global || p.LRH().SLID() != 8 {
			t.Errorf("global %v: %v, payload %q", global, err, p.Payload())
		}
		if got, want, ok := p.VCRC(); !ok || got != want {
			t.Errorf("global %v: VCRC %#x, %#x, %v", global, got, want, ok)
		}
		if global != p.PutGRH(make([]byte, 40)) || global != (p.DstGID() == roce.GID{2}) {
			t.Errorf("global %v: GRH", global)
		}
		h = roce.LRH(b)
		h.SetVL(9) // a switch changes it, and the VCRC with it
		if got, want, _ := p.VCRC(); got == want {
			t.Errorf("global %v: the VL is not under the VCRC", global)
		}
		if !p.ICRCOK() {
			t.Errorf("global %v: the VL is under the ICRC", global)
		}
		h.SetSL(9)
		if p.ICRCOK() != global {
			t.Errorf("global %v: the SL counts only without a GRH", global)
		}
		h.SetPktLen(4)
		if _, err := roce.ParseInfiniBand(b); err != roce.DropLRH && err != roce.DropGRH {
			t.Errorf("wrong length: %v", err)
		}
	}
}

func TestGRHOfUDReceives(t *testing.T) {
	b := append(fromHex(t, "020000000002 020000000001 0800"), fromHex(t, wireAck+"00000000")...)
	p, err := roce.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	dst := bytes.Repeat([]byte{0xAA}, 48)
	if !p.PutGRH(dst) || !bytes.Equal(dst[:20], make([]byte, 20)) || !bytes.Equal(dst[20:40], b[14:34]) || dst[40] != 0xAA {
		t.Errorf("% x", dst)
	}
}

func TestFrameLife(t *testing.T) {
	var pool roce.Pool
	for _, n := range []int{0, 1, 128, 129, 4224, 9344, 9345, 70000} {
		f := pool.Get(n)
		if len(f.B) != n {
			t.Errorf("asked for %d bytes, got %d", n, len(f.B))
		}
		f.Retain()
		f.Release()
		if f.Refs() != 1 || pool.Live != 1 {
			t.Errorf("%d references, %d live", f.Refs(), pool.Live)
		}
		f.Release()
	}
	f := pool.Get(100)
	f.Release()
	if g := pool.Get(64); g != f {
		t.Error("a released frame is not used again")
	} else {
		g.Release()
	}
	defer func() {
		if recover() == nil {
			t.Error("released twice without a panic")
		}
	}()
	f.Release()
}

func TestICRCStates(t *testing.T) {
	var pool roce.Pool
	tmpl, _ := roce.NewTemplate(roce.Path{Framing: roce.RoCEv2IPv6, DestQP: 1})
	f := tmpl.New(&pool, roce.RCSendOnly, 0, 3, 0)
	copy(f.Payload(), "abc")
	g := pool.Copy(f)
	if !g.ICRCOK() || g.ICRC != roce.ICRCPending || string(g.Payload()) != "abc" {
		t.Error("a copy is not like its original")
	}
	f.Touch()
	f.B[70] ^= 4
	if f.ICRCOK() || f.ICRC != roce.ICRCInvalid {
		t.Error("a changed frame has a right ICRC")
	}
	f.Touch()
	f.B[70] ^= 4
	if !f.ICRCOK() || f.ICRC != roce.ICRCValid {
		t.Error("changed back, the ICRC is still wrong")
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	var pool roce.Pool
	v4, _ := roce.NewTemplate(roce.Path{Framing: roce.RoCEv2IPv4, SrcGID: roce.GIDFromIPv4([4]byte{1}), DstGID: roce.GIDFromIPv4([4]byte{2})})
	ib, _ := roce.NewTemplate(roce.Path{Framing: roce.InfiniBand, SLID: 1, DLID: 2})
	var bad error
	if n := testing.AllocsPerRun(100, func() {
		for _, tmpl := range []*roce.Template{&v4, &ib} {
			f := tmpl.New(&pool, roce.RCWriteOnly, 1, 64, roce.AckReq)
			f.FinishICRC()
			p, err := f.Parse()
			if err != nil || !p.ICRCOK() {
				bad = err
			}
			f.B = f.B[:20]
			if _, err := f.Parse(); err != roce.DropShort {
				bad = err
			}
			f.Release()
		}
	}); n != 0 || bad != nil {
		t.Errorf("%v allocations, %v", n, bad)
	}
}
