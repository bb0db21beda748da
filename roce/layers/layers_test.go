package layers

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/gopacket"
	gplayers "github.com/google/gopacket/layers"
	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

func eachCaptured(t *testing.T, f func(name string, frame []byte)) {
	t.Helper()
	names, _ := filepath.Glob("../../fixtures/captures/rxe/*/*.pcap")
	frames := 0
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		_, packets, err := pcap.Read(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range packets {
			f(name, p.Data)
			frames++
		}
	}
	if frames != 307 {
		t.Errorf("%d frames, want 307", frames)
	}
}

var serialize = gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}

// Captured frames through gopacket and back, byte for byte.
func TestCaptures(t *testing.T) {
	Register()
	eachCaptured(t, func(name string, frame []byte) {
		p := gopacket.NewPacket(frame, gplayers.LayerTypeEthernet, gopacket.Default)
		if e := p.ErrorLayer(); e != nil {
			t.Fatalf("%s: %v", name, e.Error())
		}
		bth, ok := p.Layer(LayerTypeBTH).(*BTH)
		if !ok || !bth.HasICRC || p.Metadata().Truncated {
			t.Fatalf("%s: no whole BTH in %v", name, p)
		}
		want, err := roce.Parse(frame)
		if err != nil {
			t.Fatal(err)
		}
		if bth.Opcode != want.Op || bth.PSN != want.BTH().PSN() || !bytes.Equal(bth.Payload, want.Payload()) || bth.ICRC != want.StoredICRC() {
			t.Errorf("%s: %+v", name, bth)
		}
		eth := p.Layer(gplayers.LayerTypeEthernet).(*gplayers.Ethernet)
		ip := &IPv4{*p.Layer(gplayers.LayerTypeIPv4).(*gplayers.IPv4)}
		udp := &UDP{*p.Layer(gplayers.LayerTypeUDP).(*gplayers.UDP)}
		again := *bth
		again.ICRC, again.PadCount = 0, 0
		ip.Checksum, ip.Length, udp.Length = 0, 0, 0
		buf := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(buf, serialize, eth, ip, udp, &again, gopacket.Payload(bth.Payload)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(buf.Bytes(), frame) {
			t.Errorf("%s: encoded again\n% x\nwas\n% x", name, buf.Bytes(), frame)
		}
	})
}

func TestParserReusesLayers(t *testing.T) {
	Register()
	var (
		eth gplayers.Ethernet
		ip  gplayers.IPv4
		udp gplayers.UDP
		bth BTH
	)
	parser := gopacket.NewDecodingLayerParser(gplayers.LayerTypeEthernet, &eth, &ip, &udp, &bth)
	parser.IgnoreUnsupported = true
	var got []gopacket.LayerType
	eachCaptured(t, func(name string, frame []byte) {
		if err := parser.DecodeLayers(frame, &got); err != nil || len(got) != 4 || !bth.HasICRC {
			t.Fatalf("%s: %v, layers %v", name, err, got)
		}
	})
}

func drawBTH(t *rapid.T) *BTH {
	var ops []roce.Opcode
	for o := range 256 {
		if op := roce.Opcode(o); op.Valid() {
			ops = append(ops, op)
		}
	}
	u8 := func(n string, hi uint8) uint8 { return rapid.Uint8Range(0, hi).Draw(t, n) }
	u24 := func(n string) uint32 { return rapid.Uint32Range(0, roce.PSNMask).Draw(t, n) }
	u32 := func(n string) uint32 { return rapid.Uint32().Draw(t, n) }
	u64 := func(n string) uint64 { return rapid.Uint64().Draw(t, n) }
	yes := func(n string) bool { return rapid.Bool().Draw(t, n) }
	b := &BTH{
		Opcode: rapid.SampledFrom(ops).Draw(t, "op"), Solicited: yes("se"), MigReq: yes("m"), Version: u8("tver", 15), PKey: uint16(u32("pkey")),
		FECN: yes("f"), BECN: yes("b"), Reserved6: u8("r6", 63), DestQP: u24("qp"), AckReq: yes("a"), Reserved7: u8("r7", 127), PSN: u24("psn"),
		HasICRC: true,
	}
	h := b.Opcode.Info().Headers
	for bit, set := range map[roce.Headers]func(){
		roce.HasRDETH:        func() { b.EEContext = u24("ee") },
		roce.HasDETH:         func() { b.DETH = DETH{u32("qkey"), u24("srcqp")} },
		roce.HasXRCETH:       func() { b.SRQN = u24("srqn") },
		roce.HasDCETH:        func() { b.DCETH = DCETH{u64("key"), u24("dci"), u32("conn")} },
		roce.HasFETH:         func() { b.Flush = Flush{u8("sel", 3), u8("plt", 15)} },
		roce.HasRETH:         func() { b.RETH = RETH{u64("va"), u32("rkey"), u32("len")} },
		roce.HasAtomicETH:    func() { b.AtomicETH = AtomicETH{u64("ava"), u32("arkey"), u64("swap"), u64("cmp")} },
		roce.HasAETH:         func() { b.AETH = AETH{roce.Syndrome(u8("syn", 255)), u24("msn")} },
		roce.HasAtomicAckETH: func() { b.AtomicOriginal = u64("orig") },
		roce.HasImmDt:        func() { b.Immediate = u32("imm") },
		roce.HasIETH:         func() { b.InvalidateRKey = u32("inv") },
	} {
		if h.Has(bit) {
			set()
		}
	}
	return b
}

// Every framing, every opcode: serialise, decode, compare, and let package roce
// check lengths and CRCs.
func TestRoundTrip(t *testing.T) {
	Register()
	rapid.Check(t, func(t *rapid.T) {
		b := drawBTH(t)
		payload := rapid.SliceOfN(rapid.Byte(), 0, 70).Draw(t, "payload")
		framing := rapid.IntRange(0, 4).Draw(t, "framing")
		eth := &gplayers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}}
		udp := &UDP{gplayers.UDP{SrcPort: 0xC123, DstPort: roce.UDPPort}}
		grh := &GRH{TrafficClass: 9, FlowLabel: 0x12345, NextHeader: roce.ProtoIBA, HopLimit: 3, Src: roce.GID{1}, Dst: roce.GID{2}}
		lrh := &LRH{VL: 1, SL: 2, DLID: 3, SLID: 4}
		var head []gopacket.SerializableLayer
		switch framing {
		case 0:
			eth.EthernetType = gplayers.EthernetTypeIPv4
			head = []gopacket.SerializableLayer{eth, &IPv4{gplayers.IPv4{
				Version: 4, TTL: 64, Protocol: gplayers.IPProtocolUDP, Flags: gplayers.IPv4DontFragment, SrcIP: net.IP{10, 0, 0, 1}, DstIP: net.IP{10, 0, 0, 2},
			}}, udp}
		case 1:
			eth.EthernetType = gplayers.EthernetTypeIPv6
			head = []gopacket.SerializableLayer{eth, &IPv6{gplayers.IPv6{
				Version: 6, TrafficClass: 5, FlowLabel: 77, HopLimit: 64, NextHeader: gplayers.IPProtocolUDP, SrcIP: make(net.IP, 16), DstIP: make(net.IP, 16),
			}}, udp}
		case 2:
			eth.EthernetType = roce.EtherTypeRoCE
			head = []gopacket.SerializableLayer{eth, grh}
		case 3:
			lrh.LNH = roce.LNHIBAGlobal
			head = []gopacket.SerializableLayer{lrh, grh}
		case 4:
			lrh.LNH = roce.LNHIBALocal
			head = []gopacket.SerializableLayer{lrh}
		}
		buf := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(buf, serialize, append(head, b, gopacket.Payload(payload))...); err != nil {
			t.Fatal(err)
		}
		first, parse := gplayers.LayerTypeEthernet, roce.Parse
		if framing >= 3 {
			first, parse = LayerTypeLRH, roce.ParseInfiniBand
		}
		p := gopacket.NewPacket(buf.Bytes(), first, gopacket.Default)
		if e := p.ErrorLayer(); e != nil || p.Metadata().Truncated {
			t.Fatalf("%v", p)
		}
		got := *p.Layer(LayerTypeBTH).(*BTH)
		if !bytes.Equal(got.Payload, payload) {
			t.Fatalf("payload % x", got.Payload)
		}
		icrc := got.ICRC
		got.BaseLayer, got.ICRC = gplayers.BaseLayer{}, 0
		if d := cmp.Diff(*b, got); d != "" {
			t.Fatal(d)
		}
		if l, ok := p.Layer(LayerTypeLRH).(*LRH); ok {
			all := buf.Bytes()
			if !l.HasVCRC || l.VCRC != roce.VCRC(all[:len(all)-roce.VCRCSize]) || l.VL != 1 || l.SL != 2 || l.DLID != 3 || l.SLID != 4 {
				t.Fatalf("%+v", l)
			}
		}
		if g, ok := p.Layer(LayerTypeGRH).(*GRH); ok && (g.TrafficClass != 9 || g.FlowLabel != 0x12345 || g.HopLimit != 3 || g.Src != grh.Src || g.Dst != grh.Dst || g.Version != 6) {
			t.Fatalf("%+v", g)
		}
		pk, err := parse(buf.Bytes())
		if b.Version == 0 && (err != nil || !pk.ICRCOK() || pk.StoredICRC() != icrc) {
			t.Fatalf("roce: %v", err)
		}
	})
}

// However short a capture is cut, decoding ends without a panic and says so.
func TestCutPackets(t *testing.T) {
	Register()
	eachCaptured(t, func(name string, frame []byte) {
		for n := 15; n < len(frame); n += 7 {
			p := gopacket.NewPacket(frame[:n], gplayers.LayerTypeEthernet, gopacket.Default)
			if !p.Metadata().Truncated && p.ErrorLayer() == nil {
				t.Fatalf("%s cut to %d of %d bytes: %v", name, n, len(frame), p)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	Register()
	f.Add([]byte{0x04, 0, 0xFF, 0xFF, 0, 0, 0, 1, 0x80, 0, 0, 1, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, first := range []gopacket.Decoder{LayerTypeBTH, LayerTypeGRH, LayerTypeLRH, gplayers.LayerTypeEthernet} {
			p := gopacket.NewPacket(data, first, gopacket.DecodeOptions{NoCopy: true, SkipDecodeRecovery: first != gopacket.Decoder(gplayers.LayerTypeEthernet)})
			if b, ok := p.Layer(LayerTypeBTH).(*BTH); ok && len(b.Contents)+len(b.Payload) > len(data) {
				t.Fatal("more bytes out than in")
			}
		}
	})
}
