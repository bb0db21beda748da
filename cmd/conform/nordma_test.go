package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pcapOf is the name of a classic capture of Ethernet frames.
func pcapOf(t *testing.T, frames ...[]byte) string {
	t.Helper()
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xA1B2C3D4)
	b = append(b, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 1, 0, 0, 0)
	for i, f := range frames {
		for _, v := range []int{i, 0, len(f), len(f)} {
			b = le.AppendUint32(b, uint32(v))
		}
		b = append(b, f...)
	}
	name := filepath.Join(t.TempDir(), "other.pcap")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// ethernet is a frame of a type; ipv4 is one with a packet whose header has no right checksum, as
// before an adapter fills it in.
func ethernet(kind uint16, rest ...byte) []byte {
	return append(binary.BigEndian.AppendUint16(bytes.Repeat([]byte{2}, 12), kind), rest...)
}

func ipv4(flags, protocol byte, payload ...byte) []byte {
	return ethernet(0x0800, append([]byte{0x45, 0, 0, byte(20 + len(payload)), 0, 0, flags, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}, payload...)...)
}

// A capture without RDMA is bad input, and the message says what is in it; such packets beside
// those of RDMA are not judged, whatever is odd in them.
func TestWireOfACaptureWithoutRDMA(t *testing.T) {
	dns := append([]byte{0xC0, 0, 0, 53, 0, 20, 0, 0}, make([]byte, 12)...)
	others := [][]byte{
		ethernet(0x0806, make([]byte, 46)...), ipv4(0x40, 17, dns...), ipv4(0x20, 17, dns...), ipv4(0x40, 17, dns...), ipv4(0x40, 6, make([]byte, 40)...),
		ethernet(0x86DD, make([]byte, 46)...), []byte("x"),
	}
	for _, c := range []struct {
		frames [][]byte
		want   string
	}{
		{nil, "the capture has no packets"},
		{others[:1], "no RDMA among 1 packet: 1 of EtherType 0x0806. RoCEv2 is UDP to port 4791"},
		{others, "no RDMA among 7 packets: 2 of UDP over IPv4, 1 of EtherType 0x0806, 1 of EtherType 0x86dd, 1 of TCP over IPv4, 2 other kinds."},
	} {
		file := pcapOf(t, c.frames...)
		if code, out, errs := judgeFile(t, file); code != exitUsage || !strings.Contains(errs, c.want) || out != "" {
			t.Errorf("exit %d, want %q\n%s%s", code, c.want, out, errs)
		}
		if code, out, _ := judgeFile(t, "--format", "json", file); code != exitUsage || !strings.Contains(out, c.want) || !strings.Contains(out, `"violation": 0`) {
			t.Errorf("exit %d, want %q in the JSON\n%s", code, c.want, out)
		}
	}
}
