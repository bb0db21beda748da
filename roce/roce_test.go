package roce_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/roce"
)

func fromHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "|", "").Replace(s))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// An ACK of a real capture (rxe/7.2/send_only frame 2), IP header on.
const wireAck = "45000030 0b5d4000 40111b4c 0a090002 0a090001 | c15612b7 001c0000 | 1100ffff 00000012 00000100 | 1f000001"

func TestICRCKnownAnswers(t *testing.T) {
	ip := fromHex(t, wireAck)
	if got := roce.ICRC(ip); got != 0xF44F8385 {
		t.Errorf("ICRC of the captured ACK is %08x, want f44f8385", got)
	}
	for _, at := range []int{1, 8, 10, 11, 26, 27, 32} {
		b := bytes.Clone(ip)
		b[at] ^= 0x5A
		if roce.ICRC(b) != 0xF44F8385 {
			t.Errorf("byte %d is under the ICRC; it changes on the way", at)
		}
	}
	for _, at := range []int{2, 4, 6, 9, 12, 16, 20, 22, 24, 28, 29, 30, 33, 36, 37, 40} {
		b := bytes.Clone(ip)
		b[at] ^= 1
		if roce.ICRC(b) == 0xF44F8385 {
			t.Errorf("byte %d is not under the ICRC", at)
		}
	}
	// A CNP printed in NVIDIA's documentation gives the BTH and the CRC, not the
	// addresses, so only its form is checked here.
	cnp := fromHex(t, "8100ffff 400000d2 00000000 00000000000000000000000000000000")
	if op := roce.BTH(cnp).Opcode(); op != roce.CNPacket || !roce.BTH(cnp).BECN() || int(op.Info().HeaderLen) != len(cnp)-roce.BTHSize {
		t.Errorf("CNP decodes as %v", op)
	}
	if got := roce.VCRC([]byte("123456789")); got != 0x0A3D {
		t.Errorf("VCRC check value is %04x, want 0a3d", got)
	}
}

// The masked bytes of IPv6, RoCEv1 and InfiniBand frames, against a plain copy.
func TestICRCMasks(t *testing.T) {
	plain := func(prefix int, masked []byte) uint32 {
		all := append(bytes.Repeat([]byte{0xFF}, prefix), masked...)
		return crcReference(all)
	}
	rapid.Check(t, func(t *rapid.T) {
		payload := rapid.SliceOfN(rapid.Byte(), 4, 64).Draw(t, "payload")
		head := rapid.SliceOfN(rapid.Byte(), 60, 60).Draw(t, "head")
		v6 := append(bytes.Clone(head), payload...)
		v6[0] = 0x60 | v6[0]&0xF
		v6[6] = roce.ProtoUDP
		m := bytes.Clone(v6)
		m[0], m[1], m[2], m[3], m[7] = 0x6F, 0xFF, 0xFF, 0xFF, 0xFF
		m[46], m[47], m[52] = 0xFF, 0xFF, 0xFF
		if got, want := roce.ICRC(v6), plain(8, m); got != want {
			t.Fatalf("IPv6: %08x, want %08x", got, want)
		}
		v1 := bytes.Clone(v6)
		v1[6] = roce.ProtoIBA
		m = bytes.Clone(v1)
		m[0], m[1], m[2], m[3], m[7], m[44] = 0x6F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF
		if got, want := roce.ICRC(v1), plain(8, m); got != want {
			t.Fatalf("RoCEv1: %08x, want %08x", got, want)
		}
		global := append(bytes.Clone(head[:8]), v1...)
		roce.LRH(global).SetLNH(roce.LNHIBAGlobal)
		if got, want := roce.ICRCInfiniBand(global), plain(8, m); got != want {
			t.Fatalf("InfiniBand with GRH: %08x, want %08x", got, want)
		}
		local := append(bytes.Clone(head[:8]), v1[40:]...)
		roce.LRH(local).SetLNH(roce.LNHIBALocal)
		m = bytes.Clone(local)
		m[0] |= 0xF0
		m[12] = 0xFF
		if got, want := roce.ICRCInfiniBand(local), plain(0, m); got != want {
			t.Fatalf("InfiniBand without GRH: %08x, want %08x", got, want)
		}
	})
}

// crcReference is CRC-32 bit by bit from its parameters.
func crcReference(p []byte) uint32 {
	c := ^uint32(0)
	for _, b := range p {
		c ^= uint32(b)
		for range 8 {
			c = c>>1 ^ 0xEDB88320&-(c&1)
		}
	}
	return ^c
}

func TestCmpPSN(t *testing.T) {
	for _, c := range []struct {
		a, b uint32
		want int
	}{
		{0, 0, 0}, {1, 0, 1}, {0, 1, -1}, {0, 0xFFFFFF, 1}, {0xFFFFFF, 0, -1},
		{0x7FFFFF, 0, 1}, {0x800000, 0, -1}, {1, 0xFFFFFE, 1},
	} {
		got := roce.CmpPSN(c.a, c.b)
		if (got > 0) != (c.want > 0) || (got < 0) != (c.want < 0) {
			t.Errorf("CmpPSN(%#x, %#x) = %d, want the sign of %d", c.a, c.b, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Uint32Range(0, roce.PSNMask).Draw(t, "a")
		d := rapid.Int32Range(-roce.MaxOutstandingPSN, roce.MaxOutstandingPSN).Draw(t, "d")
		b := roce.AddPSN(a, d)
		if b > roce.PSNMask || roce.CmpPSN(b, a) != d {
			t.Fatalf("%#x + %d = %#x, and back %d", a, d, b, roce.CmpPSN(b, a))
		}
	})
}

func TestCodes(t *testing.T) {
	wantCredits := []int{0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768,
		1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, -1}
	for code, want := range wantCredits {
		if got := roce.Credits(uint8(code)); got != want {
			t.Errorf("credit code %d: %d, want %d", code, got, want)
		}
		if want >= 0 && (int(roce.CreditCode(want)) != code || want > 2 && int(roce.CreditCode(want-1)) != code-1) {
			t.Errorf("%d credits: code %d, want %d", want, roce.CreditCode(want), code)
		}
	}
	if roce.CreditCode(1<<20) != 0x1E {
		t.Error("more credits than the table holds are not the last code")
	}
	for code, us := range map[uint8]int64{0: 655360, 1: 10, 14: 1280, 25: 61440, 31: 491520} {
		if got := roce.RNRTimer(code); got != us*1000 {
			t.Errorf("RNR timer %d: %d ns, want %d us", code, got, us)
		}
	}
	if roce.AckTimeout(0) != 0 || roce.AckTimeout(14) != 67_108_864 || roce.AckTimeout(31) != 4096<<31 {
		t.Error("ACK timeouts")
	}
	if roce.MTU1024.Bytes() != 1024 || roce.MTU(6).Bytes() != 0 || roce.MTUFromBytes(4096) != roce.MTU4096 || roce.MTUFromBytes(1500) != 0 {
		t.Error("MTU codes")
	}
	if roce.MTUForEthernet(1500) != roce.MTU1024 || roce.MTUForEthernet(4200) != roce.MTU4096 || roce.MTUForEthernet(300) != 0 {
		t.Error("MTU of an Ethernet device")
	}
	for n, want := range map[uint32]uint32{0: 1, 1: 1, 1024: 1, 1025: 2, 2048: 2, 1 << 31: 1 << 21, 1<<32 - 1: 1 << 22} {
		if got := roce.PacketsOf(n, 1024); got != want {
			t.Errorf("%d bytes take %d packets, want %d", n, got, want)
		}
	}
	if roce.PadCount(101) != 3 || roce.PadCount(0) != 0 || roce.PadCount(4) != 0 {
		t.Error("pad")
	}
}

func TestSyndromes(t *testing.T) {
	for v := range 256 {
		s, want := roce.Syndrome(v), roce.SyndromeTypeReserved
		switch {
		case v <= 0x1F:
			want = roce.SyndromeTypeAck
		case v <= 0x3F:
			want = roce.SyndromeTypeRNR
		case v >= 0x60 && v <= 0x64:
			want = roce.SyndromeTypeNAK
		}
		if s.Type() != want || s.String() == "" {
			t.Errorf("syndrome %#x is of type %d, want %d", v, s.Type(), want)
		}
	}
	if roce.RNRSyndrome(14) != 0x2E || roce.AckSyndrome(31) != roce.SyndromeAck {
		t.Error("syndromes made from codes")
	}
}

func TestAddresses(t *testing.T) {
	mac := roce.MAC{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}
	g := roce.GIDFromMAC(mac)
	if g.String() != "fe80:0000:0000:0000:0011:22ff:fe33:4455" || g.MAC() != mac || !g.IsLinkLocal() || g.IsIPv4() {
		t.Errorf("default GID %v, MAC %v", g, g.MAC())
	}
	v4 := roce.GIDFromIPv4([4]byte{10, 9, 0, 1})
	if v4.String() != "0000:0000:0000:0000:0000:ffff:0a09:0001" || v4.IPv4() != [4]byte{10, 9, 0, 1} || !v4.IsIPv4() || v4.IsMulticast() {
		t.Errorf("mapped GID %v", v4)
	}
	if !roce.GIDFromIPv4([4]byte{224, 1, 2, 3}).IsMulticast() {
		t.Error("224.1.2.3 is a group")
	}
	if m := roce.GIDFromIPv4([4]byte{239, 129, 2, 3}).MulticastMAC(); m.String() != "01:00:5e:01:02:03" || !m.IsGroup() || m.IsBroadcast() {
		t.Errorf("239.129.2.3 is at %v", m)
	}
	if m := (roce.GID{0: 0xFF, 1: 0x0E, 12: 1, 15: 2}).MulticastMAC(); m.String() != "33:33:01:00:00:02" {
		t.Errorf("an IPv6 group is at %v", m)
	}
	for _, c := range []struct {
		a, b uint16
		want bool
	}{{0xFFFF, 0xFFFF, true}, {0xFFFF, 0x7FFF, true}, {0x7FFF, 0x7FFF, false}, {0x8000, 0x8000, false}, {0x8001, 0x8002, false}} {
		if roce.PKeyMatch(c.a, c.b) != c.want {
			t.Errorf("P_Keys %#x and %#x: %v", c.a, c.b, !c.want)
		}
	}
}

// The opcode table against rows read from the kernel's ib_pack.h.
func TestOpcodeTable(t *testing.T) {
	for _, c := range []struct {
		op      roce.Opcode
		name    string
		headers roce.Headers
		size    int
		kind    roce.Kind
	}{
		{0x04, "RC SEND Only", 0, 0, roce.KindRequest},
		{0x0B, "RC RDMA WRITE Only with Immediate", roce.HasRETH | roce.HasImmDt, 20, roce.KindRequest},
		{0x12, "RC ATOMIC Acknowledge", roce.HasAETH | roce.HasAtomicAckETH, 12, roce.KindResponse},
		{0x13, "RC CmpSwap", roce.HasAtomicETH, 28, roce.KindRequest},
		{0x16, "RC SEND Last with Invalidate", roce.HasIETH, 4, roce.KindRequest},
		{0x1B, "RC NAK with SACK (assumed form)", roce.HasAETH | roce.HasSACKETH, 8, roce.KindResponse},
		{0x1C, "RC FLUSH", roce.HasFETH | roce.HasRETH, 20, roce.KindRequest},
		{0x2A, "UC RDMA WRITE Only", roce.HasRETH, 16, roce.KindRequest},
		{0x4C, "RD RDMA READ Request", roce.HasRDETH | roce.HasDETH | roce.HasRETH, 28, roce.KindRequest},
		{0x4E, "RD RDMA READ Response Middle", roce.HasRDETH, 4, roce.KindResponse},
		{0x65, "UD SEND Only with Immediate", roce.HasDETH | roce.HasImmDt, 12, roce.KindRequest},
		{0x81, "CNP", roce.HasCNPReserved, 16, roce.KindNotification},
		{0xAB, "XRC RDMA WRITE Only with Immediate", roce.HasXRCETH | roce.HasRETH | roce.HasImmDt, 24, roce.KindRequest},
		{0xB1, "XRC Acknowledge", roce.HasAETH, 4, roce.KindResponse},
		{0xB3, "XRC CmpSwap", roce.HasXRCETH | roce.HasAtomicETH, 32, roce.KindRequest},
		{0xE4, "DC (assumed form) SEND Only", roce.HasDCETH, 16, roce.KindRequest},
		{0xF1, "DC (assumed form) Acknowledge", roce.HasAETH, 4, roce.KindResponse},
		{0xF8, "DC (assumed form) Connect", roce.HasDCETH, 16, roce.KindRequest},
	} {
		i := c.op.Info()
		if i.Name != c.name || i.Headers != c.headers || int(i.HeaderLen) != c.size || c.headers.Size() != c.size || i.Kind != c.kind {
			t.Errorf("0x%02x: %+v, want %+v", uint8(c.op), i, c)
		}
	}
	valid := 0
	for op := range 256 {
		if roce.Opcode(op).Valid() {
			valid++
		}
	}
	// RC, UC, RD (RESYNC, but neither invalidate nor ATOMIC WRITE), UD, CNP, XRC, DC (neither FLUSH
	// nor ATOMIC WRITE). NAKs with SACK, of RC and XRC, are an assumption too.
	if valid != 25+12+23+2+1+25+25+2 {
		t.Errorf("%d opcodes are defined", valid)
	}
	if roce.XRC.Opcode(roce.OpWriteOnlyImm).Info().Offset(roce.HasImmDt) != 20 {
		t.Error("ImmDt does not follow the RETH")
	}
	for _, r := range []struct {
		op   roce.Opcode
		n    int
		want bool
	}{
		{roce.RCSendFirst, 1024, true}, {roce.RCSendFirst, 1023, false}, {roce.RCSendLast, 0, false},
		{roce.RCSendOnly, 0, true}, {roce.RCSendOnly, 1025, false}, {roce.RCReadRequest, 4, false},
		{roce.RCAtomicWrite, 8, true}, {roce.RCAtomicWrite, 4, false},
	} {
		if r.op.Info().Payload.Allows(r.n, 1024) != r.want {
			t.Errorf("%v with %d bytes: allowed is not %v", r.op, r.n, r.want)
		}
	}
}

// An edit reaches the headers before the BTH, and stays within the frame.
func TestSetByteBeforeTheBTH(t *testing.T) {
	tmpl, err := roce.NewTemplate(roce.Path{Framing: roce.RoCEv2IPv4, SrcGID: roce.GID{10: 0xff, 11: 0xff, 12: 10, 15: 1}, DstGID: roce.GID{10: 0xff, 11: 0xff, 12: 10, 15: 2}, PKey: 0xFFFF, DestQP: 5, HopLimit: 9})
	if err != nil {
		t.Fatal(err)
	}
	var pool roce.Pool
	f := tmpl.New(&pool, roce.RCWriteOnly, 1, 8, 0)
	f.FinishICRC()
	p, err := f.Parse()
	if err != nil {
		t.Fatal(err)
	}
	p.SetByte(-20, 8) // the time to live, which the ICRC does not cover
	p.FixChecksum()
	if p.IPv4().TTL() != 8 || !p.IPv4().ChecksumOK() || !p.ICRCOK() {
		t.Errorf("time to live %d, checksum %v, ICRC %v", p.IPv4().TTL(), p.IPv4().ChecksumOK(), p.ICRCOK())
	}
	p.SetByte(-9, 7) // the end of the destination
	if p.FixChecksum(); p.IPv4().Dst()[3] != 7 || p.ICRCOK() {
		t.Errorf("destination %v, ICRC %v", p.IPv4().Dst(), p.ICRCOK())
	}
	before := append([]byte(nil), p.B...)
	p.SetByte(-1000, 1)
	p.SetByte(1000, 1)
	if !bytes.Equal(before, p.B) {
		t.Error("an edit outside the frame changes it")
	}
}
