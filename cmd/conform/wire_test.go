package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/internal/tshark"
	"github.com/rdmasim/rdmasim/roce"
)

// What conform --pcap writes of the cases that move data is whole and decodes, and each frame says
// whose case it is; and what the simulator sends obeys the rules. What the cases find is not this
// test's matter.
func TestCapture(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, profile := range []string{"connectx-5", "connect-ib"} {
		t.Run(profile, func(t *testing.T) { testCapture(t, profile) })
	}
}

func testCapture(t *testing.T, profile string) {
	file := filepath.Join(t.TempDir(), "suite.pcapng")
	if code, out, stderr := command(t, "--target=sim", "--profile", profile, "--label-filter", "(RC && !RC-028 || UC || UD || ATOM && !ATOM-010 || ERR || XRC && !XRC-037 && !XRC-038) && !RAND", "--pcap", file); code != 0 && code != exitFailed {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	if code, out, stderr := command(t, "wire", "--delivered", file); code != exitOK {
		t.Errorf("the oracle finds rules broken, exit %d\n%s%s", code, out, stderr)
	}
	tshark.Find(t)
	s := tshark.Check(t, file)
	id := regexp.MustCompile(`^(RC|UC|UD|ATOM|ERR|QPS|XRC|CQ|CM)-\d{3}$`)
	for name, n := range s.Runs {
		if !id.MatchString(name) {
			t.Errorf("%d frames are of run %q, which is not a case", n, name)
		}
	}
	if s.Frames < 1000 || len(s.Runs) < 30 {
		t.Errorf("%d frames of %d cases: the suite moved less than it should", s.Frames, len(s.Runs))
	}
	for _, op := range []roce.Opcode{roce.RCSendOnly, roce.RCSendOnlyImm, roce.RCWriteOnly, roce.RCWriteOnlyImm, roce.RCReadRequest,
		roce.RCReadResponseOnly, roce.RCCmpSwap, roce.RCFetchAdd, roce.RCAtomicAcknowledge, roce.RCAcknowledge,
		roce.UC.Opcode(roce.OpSendOnly), roce.UC.Opcode(roce.OpSendLastImm), roce.UC.Opcode(roce.OpWriteFirst), roce.UDSendOnly, roce.UDSendOnlyImm} {
		if s.Opcodes[op] == 0 {
			t.Errorf("no frame with opcode %v", op)
		}
	}
	for _, c := range []string{"loopback", "dropped by a rule"} {
		if s.Comments[c] == 0 {
			t.Errorf("no frame has the comment %q: %v", c, s.Comments)
		}
	}
}

// Frames that a case forges, edits or holds back make no rule of the sender's or the receiver's
// seem broken.
func TestCaptureOfForgedFrames(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	file := filepath.Join(t.TempDir(), "wire.pcapng")
	if code, out, stderr := command(t, "--target=sim", "--label-filter", "WIRE", "--pcap", file); code != exitOK {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	for _, args := range [][]string{{"wire", file}, {"wire", "--delivered", file}} {
		if code, out, stderr := command(t, args...); code != exitOK {
			t.Errorf("%v: the oracle finds rules broken, exit %d\n%s%s", args[:len(args)-1], code, out, stderr)
		}
	}
}

// Packets of InfiniBand do not name their sender: connections between two ports that begin with one
// PSN are told apart by what answers what, or not judged.
func TestCaptureOfInfiniBandFlowsThatLookAlike(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	file := filepath.Join(t.TempDir(), "ib.pcapng")
	if code, out, stderr := command(t, "--target=sim", "--profile", "connectx-5-ib", "--label-filter", "PERF-013 || SRQ-019 || QPS-028 || RC-026", "--pcap", file); code != exitOK {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	code, out, stderr := command(t, "wire", file)
	if code != exitOK || !strings.Contains(out, "OR-002 inconclusive") {
		t.Errorf("the oracle finds rules broken, or is sure of all, exit %d\n%s%s", code, out, stderr)
	}
}
