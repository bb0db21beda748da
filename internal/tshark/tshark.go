// Package tshark decodes the captures that our programs write with Wireshark's dissectors.
// It is for tests.
package tshark

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

// Need is the variable that, set to 1, makes a missing tshark a failure; make test
// sets it.
const Need = "RDMASIM_NEED_TSHARK"

// Guessers are the dissectors that guess what an InfiniBand payload is. They read past
// the end of a payload of a few bytes, or of none, and call the packet malformed.
var Guessers = []string{"rpcordma", "infiniband.eoib"}

// Find returns tshark's path, or ends the test.
func Find(t testing.TB) string {
	t.Helper()
	return Tool(t, "tshark")
}

// Tool returns the path of a program of Wireshark's, or ends the test.
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
	case os.Getenv(Need) == "1":
		t.Fatalf("%s is missing and %s is set", name, Need)
	default:
		t.Skipf("%s is missing: the check of our captures by another program is left out (%s=1 makes this a failure)", name, Need)
	}
	return path
}

// Fields are the named fields of each frame of a file, as tshark decodes it.
func Fields(t testing.TB, tshark, file string, names ...string) [][]string {
	t.Helper()
	args := []string{"-r", file, "-n", "-o", "ip.check_checksum:TRUE", "-T", "fields", "-E", "separator=|", "-E", "occurrence=f"}
	for _, g := range Guessers {
		args = append(args, "--disable-protocol", g)
	}
	for _, n := range names {
		args = append(args, "-e", n)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(tshark, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, stderr.String())
	}
	var rows [][]string
	for _, line := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		if line != "" {
			rows = append(rows, strings.Split(line, "|"))
		}
	}
	return rows
}

// Summary is what a capture holds.
type Summary struct {
	Frames   int
	Runs     map[string]int // frames by the name before the interface's ("" without one)
	Comments map[string]int
	Opcodes  map[roce.Opcode]int
}

// Check reads a capture with our reader and with tshark. Every frame must be a whole
// RoCEv2 packet with the right ICRC, on an interface named [RUN ]HOST/DEVICE; the times
// of a run must not go back; tshark must see the same frames at the same
// nanoseconds on the same interfaces, call none malformed and find no wrong checksum.
func Check(t testing.TB, file string) Summary {
	t.Helper()
	tshark := Find(t)
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r, packets, err := pcap.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	s := Summary{Frames: len(packets), Runs: map[string]int{}, Comments: map[string]int{}, Opcodes: map[roce.Opcode]int{}}
	last := map[string]int64{}
	for i := range packets {
		p := &packets[i]
		name := r.Interfaces[p.Interface].Name
		run, port := "", name
		if at := strings.LastIndexByte(name, ' '); at >= 0 {
			run, port = name[:at], name[at+1:]
		}
		if !strings.HasPrefix(port, "host") || !strings.Contains(port, "/mlx5_") {
			t.Errorf("frame %d is of interface %q", i+1, name)
		}
		if p.Time < last[run] {
			t.Errorf("frame %d of %q is of %d ns, behind one of %d ns", i+1, run, p.Time, last[run])
		}
		last[run] = p.Time
		s.Runs[run]++
		if p.Comment != "" {
			s.Comments[p.Comment]++
		}
		d, err := decode(p)
		if err != nil || !d.ICRCOK() || d.Len()+vcrc(p) != len(p.Data) {
			t.Errorf("frame %d: %v, ICRC right %v, %d bytes of %d", i+1, err, d.ICRCOK(), d.Len(), len(p.Data))
			continue
		}
		s.Opcodes[d.Op]++
	}
	agree(t, tshark, file, r, packets)
	return s
}

func decode(p *pcap.Packet) (roce.Packet, error) {
	if p.LinkType == pcap.LinkTypeInfiniBand {
		return roce.ParseInfiniBand(p.Data)
	}
	return roce.Parse(p.Data)
}

// vcrc is how many bytes a packet has behind its ICRC.
func vcrc(p *pcap.Packet) int {
	if p.LinkType == pcap.LinkTypeInfiniBand {
		return roce.VCRCSize
	}
	return 0
}

// agree compares our reading of the frames with tshark's.
func agree(t testing.TB, tshark, file string, r *pcap.Reader, packets []pcap.Packet) {
	t.Helper()
	rows := Fields(t, tshark, file, "frame.time_epoch", "frame.interface_name", "infiniband.bth.opcode", "ip.checksum.status", "_ws.malformed", "frame.len")
	if len(rows) != len(packets) {
		t.Fatalf("tshark reads %d frames of %d", len(rows), len(packets))
	}
	for i, row := range rows {
		p := &packets[i]
		op, checksum := "?", "" // of the IPv4 header, which only some framings have
		if d, err := decode(p); err == nil {
			op = fmt.Sprint(uint8(d.Op))
			if d.Framing == roce.RoCEv2IPv4 {
				checksum = "1"
			}
		}
		want := []string{fmt.Sprintf("%d.%09d", p.Time/1e9, p.Time%1e9), r.Interfaces[p.Interface].Name, op, checksum, "", fmt.Sprint(len(p.Data))}
		for k := range want {
			if row[k] != want[k] {
				t.Fatalf("frame %d: tshark says %q, we %q", i+1, row, want)
			}
		}
	}
}
