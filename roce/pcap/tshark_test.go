package pcap_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/internal/tshark"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

// field is a tshark field and our value for it; have says whether the packet has it.
type field struct {
	name  string
	have  func(p *roce.Packet) bool
	value func(p *roce.Packet) uint64
}

func always(*roce.Packet) bool { return true }

func has(h roce.Headers) func(p *roce.Packet) bool {
	return func(p *roce.Packet) bool { return p.Has(h) }
}

// tshark shows the address and key of an atomic under the names of the RETH.
func hasAddress(p *roce.Packet) bool { return p.Has(roce.HasRETH) || p.Has(roce.HasAtomicETH) }

func address(p *roce.Packet) (va uint64, key uint32) {
	if p.Has(roce.HasAtomicETH) {
		return p.AtomicETH().VA(), p.AtomicETH().RKey()
	}
	return p.RETH().VA(), p.RETH().RKey()
}

func bit(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

var fields = []field{
	{"infiniband.bth.opcode", always, func(p *roce.Packet) uint64 { return uint64(p.Op) }},
	{"infiniband.bth.se", always, func(p *roce.Packet) uint64 { return bit(p.BTH().Solicited()) }},
	{"infiniband.bth.m", always, func(p *roce.Packet) uint64 { return bit(p.BTH().MigReq()) }},
	{"infiniband.bth.padcnt", always, func(p *roce.Packet) uint64 { return uint64(p.BTH().PadCount()) }},
	{"infiniband.bth.tver", always, func(p *roce.Packet) uint64 { return uint64(p.BTH().Version()) }},
	{"infiniband.bth.p_key", always, func(p *roce.Packet) uint64 { return uint64(p.BTH().PKey()) }},
	{"infiniband.bth.destqp", always, func(p *roce.Packet) uint64 { return uint64(p.BTH().DestQP()) }},
	{"infiniband.bth.a", always, func(p *roce.Packet) uint64 { return bit(p.BTH().AckReq()) }},
	{"infiniband.bth.psn", always, func(p *roce.Packet) uint64 { return uint64(p.BTH().PSN()) }},
	{"infiniband.reth.va", hasAddress, func(p *roce.Packet) uint64 { va, _ := address(p); return va }},
	{"infiniband.reth.r_key", hasAddress, func(p *roce.Packet) uint64 { _, key := address(p); return uint64(key) }},
	{"infiniband.reth.dmalen", has(roce.HasRETH), func(p *roce.Packet) uint64 { return uint64(p.RETH().Length()) }},
	{"infiniband.atomiceth.swapdt", has(roce.HasAtomicETH), func(p *roce.Packet) uint64 { return p.AtomicETH().SwapAdd() }},
	{"infiniband.atomiceth.cmpdt", has(roce.HasAtomicETH), func(p *roce.Packet) uint64 { return p.AtomicETH().Compare() }},
	{"infiniband.aeth.syndrome", has(roce.HasAETH), func(p *roce.Packet) uint64 { return uint64(p.AETH().Syndrome()) }},
	{"infiniband.aeth.msn", has(roce.HasAETH), func(p *roce.Packet) uint64 { return uint64(p.AETH().MSN()) }},
	{"infiniband.atomicacketh.origremdt", has(roce.HasAtomicAckETH), func(p *roce.Packet) uint64 { return p.AtomicAckETH().Original() }},
	{"infiniband.immdt", has(roce.HasImmDt), func(p *roce.Packet) uint64 { return uint64(p.ImmDt().Value()) }},
	{"infiniband.ieth", has(roce.HasIETH), func(p *roce.Packet) uint64 { return uint64(p.IETH().RKey()) }},
	{"infiniband.deth.q_key", has(roce.HasDETH), func(p *roce.Packet) uint64 { return uint64(p.DETH().QKey()) }},
	{"infiniband.deth.srcqp", has(roce.HasDETH), func(p *roce.Packet) uint64 { return uint64(p.DETH().SrcQP()) }},
	{"udp.srcport", always, func(p *roce.Packet) uint64 { return uint64(p.UDP().SrcPort()) }},
	{"udp.length", always, func(p *roce.Packet) uint64 { return uint64(p.UDP().Len()) }},
}

// TestTshark writes the captured frames and a frame of every RC, UC and UD opcode
// that tshark knows, and compares its decoding with ours.
func TestTshark(t *testing.T) {
	path := tshark.Find(t)
	frames := captured(t)
	if len(frames) != 307 {
		t.Fatalf("%d captured frames, want 307", len(frames))
	}
	frames = append(frames, synthesised(t)...)

	file := filepath.Join(t.TempDir(), "frames.pcapng")
	writeFrames(t, file, frames)
	names := []string{"frame.number", "frame.time_epoch", "frame.interface_name", "_ws.malformed", "ip.checksum.status"}
	for _, f := range fields {
		names = append(names, f.name)
	}
	rows := tshark.Fields(t, path, file, names...)
	if len(rows) != len(frames) {
		t.Fatalf("tshark shows %d packets of %d", len(rows), len(frames))
	}
	for i, col := range rows {
		if len(col) != len(names) {
			t.Fatalf("packet %d: %d columns: %q", i, len(col), col)
		}
		compare(t, i, frames[i], col)
	}
}

// writeFrames alternates between two interfaces and gives packet i the time i ns
// after 1 s.
func writeFrames(t *testing.T, name string, frames [][]byte) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := pcap.NewWriter(f, "rdmasim", "host0/mlx5_0", "host1/mlx5_0")
	if err != nil {
		t.Fatal(err)
	}
	for i, frame := range frames {
		comment := ""
		if i%3 == 0 {
			comment = "dropped"
		}
		if err := w.Write(i%2, 1_000_000_000+int64(i), frame, comment); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func compare(t *testing.T, i int, frame []byte, col []string) {
	p, err := roce.Parse(frame)
	if err != nil {
		t.Fatalf("packet %d: %v", i, err)
	}
	if want := fmt.Sprintf("1.%09d", i); col[1] != want || col[2] != fmt.Sprintf("host%d/mlx5_0", i%2) {
		t.Errorf("packet %d: time %s, interface %s, want %s", i, col[1], col[2], want)
	}
	if col[3] != "" {
		t.Errorf("packet %d (%v): tshark calls it malformed: % x", i, p.Op, frame)
	}
	if p.Framing == roce.RoCEv2IPv4 && col[4] != "1" {
		t.Errorf("packet %d (%v): IP checksum status %q", i, p.Op, col[4])
	}
	for k, f := range fields {
		got := col[5+k]
		if !f.have(&p) {
			if got != "" {
				t.Errorf("packet %d (%v): tshark sees %s = %s, we none", i, p.Op, f.name, got)
			}
			continue
		}
		v, err := number(f.name, got)
		if err != nil || v != f.value(&p) {
			t.Errorf("packet %d (%v): %s is %q, ours %#x", i, p.Op, f.name, got, f.value(&p))
		}
	}
}

// number reads a value: decimal, with 0x, a truth value, or raw bytes for the
// fields that tshark does not interpret.
func number(name, s string) (uint64, error) {
	switch {
	case s == "True":
		return 1, nil
	case s == "False":
		return 0, nil
	case name == "infiniband.immdt" || name == "infiniband.ieth":
		return strconv.ParseUint(strings.ReplaceAll(s, ":", ""), 16, 64)
	}
	return strconv.ParseUint(s, 0, 64)
}

func captured(t *testing.T) (frames [][]byte) {
	t.Helper()
	names, _ := filepath.Glob("../../fixtures/captures/rxe/*/*.pcap")
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		_, packets, err := pcap.Read(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range packets {
			frames = append(frames, p.Data)
		}
	}
	return frames
}

// synthesised is a frame of each opcode, over IPv4 and IPv6, tagged and not.
// tshark 4.0 does not know FLUSH, ATOMIC WRITE and NAKs with SACK, and of XRC only the names.
func synthesised(t *testing.T) (frames [][]byte) {
	t.Helper()
	var pool roce.Pool
	for n := range 256 {
		op := roce.Opcode(n)
		info := op.Info()
		switch op.Transport() {
		case roce.RC, roce.UC, roce.UD:
		default:
			continue
		}
		if !info.Valid() || info.Class == roce.ClassFlush || info.Class == roce.ClassAtomicWrite || info.Class == roce.ClassSelectiveNAK {
			continue
		}
		for k, framing := range []roce.Framing{roce.RoCEv2IPv4, roce.RoCEv2IPv6} {
			path := roce.Path{
				Framing: framing, SrcMAC: roce.MAC{2, 0, 0, 0, 0, 1}, DstMAC: roce.MAC{2, 0, 0, 0, 0, 2}, Tagged: n%2 == 0, VLANTCI: 0x6064,
				SrcGID: roce.GIDFromIPv4([4]byte{10, 0, 0, 1}), DstGID: roce.GIDFromIPv4([4]byte{10, 0, 0, 2}), TrafficClass: 0x6A, HopLimit: 64,
				SrcPort: roce.UDPSourcePort(roce.FlowLabel(0x100, uint32(n)+7)), PKey: 0xFFFF, DestQP: 0xABC000 + uint32(n), MigReq: true, CountIPID: true,
			}
			tmpl, err := roce.NewTemplate(path)
			if err != nil {
				t.Fatal(err)
			}
			size := map[roce.PayloadRule]int{roce.PayloadFull: 1024, roce.PayloadSome: 101 + k, roce.PayloadAny: 7 * k}[info.Payload]
			flags := roce.AckReq
			if info.Completes {
				flags |= roce.Solicited
			}
			f := tmpl.New(&pool, op, 0xFEDC00+uint32(n), size, flags)
			for i := range f.Ext() {
				f.Ext()[i] = byte(0x11 + n + i)
			}
			if info.Headers.Has(roce.HasDETH) {
				f.DETH()[4] = 0
			}
			if info.Headers.Has(roce.HasAETH) {
				f.AETH().SetSyndrome(roce.SyndromeAck)
			}
			for i := range f.Payload() {
				f.Payload()[i] = byte(7*i + 1)
			}
			f.FinishICRC()
			frames = append(frames, f.B)
		}
	}
	return frames
}
