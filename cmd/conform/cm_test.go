package main

import (
	"path/filepath"
	"testing"

	"github.com/rdmasim/rdmasim/internal/tshark"
)

// TestCaptureOfConnections: neither our judge nor Wireshark's dissector of the connection manager
// finds fault with what the cases of area CM send, and each kind of message is among it.
func TestCaptureOfConnections(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cm.pcapng")
	if code, out, stderr := command(t, "--target=sim", "--label-filter", "CM", "--pcap", file); code != exitOK {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	if code, out, stderr := command(t, "wire", "--delivered", file); code != exitOK {
		t.Errorf("the oracle finds rules broken, exit %d\n%s%s", code, out, stderr)
	}
	path := tshark.Find(t)
	seen := map[string]int{}
	for _, row := range tshark.Fields(t, path, file, "infiniband.mad.attributeid", "infiniband.mad.mgmtclass", "_ws.malformed", "infiniband.cm.req.serviceid", "infiniband.deth.q_key") {
		if row[0] == "" {
			continue
		}
		seen[row[0]]++
		if row[1] != "0x07" || row[2] != "" || row[4] != "2147549184" && row[4] != "0x0000000080010000" && row[4] != "0x80010000" {
			t.Errorf("a management datagram reads as %q", row)
		}
		if req := row[0] == "0x0010"; req != (row[3] != "") {
			t.Errorf("service ID of a datagram: %q", row)
		}
	}
	for _, kind := range []string{"0x0010", "0x0011", "0x0012", "0x0013", "0x0014", "0x0015", "0x0016", "0x0017", "0x0018"} {
		if seen[kind] == 0 {
			t.Errorf("no message with attribute %s: %v", kind, seen)
		}
	}
}
