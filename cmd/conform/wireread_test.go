package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/roce/pcap"
)

// standardInput makes b the standard input of a test.
func standardInput(t *testing.T, b []byte) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stdin
	os.Stdin = r
	t.Cleanup(func() { os.Stdin = old; _ = r.Close() })
	go func() {
		_, _ = w.Write(b)
		_ = w.Close()
	}()
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

// A capture may come from a pipe, and be packed; of one whose end is missing what is there is
// judged, and the break is named.
func TestWireOfPipesAndGzip(t *testing.T) {
	whole, err := os.ReadFile(recorded + "send_multi.pcap")
	if err != nil {
		t.Fatal(err)
	}
	zip := gzipped(whole)
	spoilt := bytes.Clone(zip)
	spoilt[len(spoilt)-6] ^= 1 // the checksum
	for _, c := range []struct {
		name      string
		in        []byte
		code      int
		out, errs string
	}{
		{"plain", whole, exitOK, "5 frames, 5 of RDMA: 0 violations", ""},
		{"gzip", zip, exitOK, "5 frames, 5 of RDMA: 0 violations", ""},
		{"gzip that is cut", zip[:len(zip)-30], exitUsage, "4 frames, 4 of RDMA", "of what is unpacked, after 4 packets: its gzip data ends too early"},
		{"gzip without its trailer", zip[:len(zip)-8], exitUsage, "5 frames, 5 of RDMA", "after 5 packets: its gzip data ends too early"},
		{"gzip with another checksum", spoilt, exitUsage, "5 frames, 5 of RDMA", "another checksum"},
		{"gzip and something else", append(bytes.Clone(zip), "something else"...), exitUsage, "5 frames, 5 of RDMA", "what follows here is no gzip data"},
		{"a gzip header", zip[:6], exitUsage, "", "not a pcap or pcapng file: its gzip data ends too early"},
		{"gzip of a text", gzipped([]byte("no capture")), exitUsage, "", "not a pcap or pcapng file: it begins with 6e 6f 20 63"},
		{"zstd", []byte("\x28\xB5\x2F\xFDxxxx"), exitUsage, "", "one that zstd has compressed: unpack it first"},
		{"nothing", nil, exitUsage, "", "it has 0 bytes"},
	} {
		file := filepath.Join(t.TempDir(), "x.pcap") // whatever the name says
		if err := os.WriteFile(file, c.in, 0o600); err != nil {
			t.Fatal(err)
		}
		standardInput(t, c.in)
		for _, from := range []string{file, "-"} {
			code, out, errs := judgeFile(t, from)
			if code != c.code || !strings.Contains(out, c.out) || c.out == "" && out != "" || !strings.Contains(errs, c.errs) || c.errs == "" && errs != "" {
				t.Errorf("%s from %s: exit %d\n%s%s", c.name, filepath.Base(from), code, out, errs)
			}
		}
	}
}

// foreign writes the packets of a file of the simulator as another program may have captured them:
// their first bytes.
func foreign(t *testing.T, name string, length int) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, packets, err := pcap.Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	put := func(words ...uint32) {
		for _, w := range words {
			all.Write([]byte{byte(w), byte(w >> 8), byte(w >> 16), byte(w >> 24)})
		}
	}
	put(0xA1B23C4D, 4<<16|2, 0, 0, uint32(length), pcap.LinkTypeEthernet)
	for _, p := range packets {
		data := p.Data[:min(length, len(p.Data))]
		put(uint32(p.Time/1e9), uint32(p.Time%1e9), uint32(len(data)), uint32(p.Length))
		all.Write(data)
	}
	out := filepath.Join(t.TempDir(), "foreign.pcap")
	if err := os.WriteFile(out, all.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// Headers suffice: the verdicts of a lossy run are those of its whole frames, and what is left out
// is named.
func TestWireOfHeaders(t *testing.T) {
	capture := captureOf(t, "name: s\ntraffic: [{messages: 400, window: 32, payload: 3000, mtu: 1024, ack_timeout: 8, mix: [{verb: write, weight: 2}, {verb: read}, {verb: send}]}]\n"+
		"faults: [{do: drop, direction: responses, per_million: 5000}]\n")
	whole, headers := foreign(t, capture, 1<<16), foreign(t, capture, 96)
	code, want, errs := judgeFile(t, whole)
	again, got, errs2 := judgeFile(t, headers)
	var rest []string
	said := ""
	for line := range strings.Lines(got) {
		if strings.Contains(line, "has only the headers") {
			said = line
			continue
		}
		rest = append(rest, line)
	}
	if code != again || want != strings.Join(rest, "") || code == exitUsage {
		t.Errorf("exit %d and %d\n%.2000s%s\nof headers\n%.2000s%s", code, again, want, errs, got, errs2)
	}
	for _, rule := range []string{"OR-011 (ICRC)", "OR-036 (payload)", "OR-101"} {
		if !strings.Contains(said, rule) {
			t.Errorf("%q does not name %s", said, rule)
		}
	}
	if code, out, _ := judgeFile(t, foreign(t, capture, 60)); code != exitFailed || !strings.Contains(out, "within its headers (capture with a snap length of 128 or more)") {
		t.Errorf("exit %d\n%.1000s", code, out)
	}
}

// Packets of link types that are not read are counted beside others; a capture of nothing else is
// bad input.
func TestWireOfOtherLinkTypes(t *testing.T) {
	b, err := os.ReadFile(recorded + "send_multi.pcap")
	if err != nil {
		t.Fatal(err)
	}
	_, packets, err := pcap.Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		links     []uint16 // the second is that of one more packet
		frames    int
		code      int
		out, errs string
	}{
		{[]uint16{pcap.LinkTypeEthernet, 220}, len(packets), exitOK, "packets of link types that are not read: 1\n", ""},
		{[]uint16{pcap.LinkTypeEthernet, 220}, 0, exitUsage, "", "have link types that are not read"},
		{[]uint16{220, 220}, 0, exitUsage, "", "link type 220: only Ethernet (1)"},
	} {
		var file bytes.Buffer
		w, err := pcap.NewWriter(&file, "somebody's")
		for _, l := range c.links {
			if err == nil {
				_, err = w.AddInterfaceOf("if", l)
			}
		}
		for _, p := range packets[:c.frames] {
			if err == nil {
				err = w.Write(0, p.Time, p.Data, "")
			}
		}
		if err == nil {
			err = w.Write(1, packets[len(packets)-1].Time, []byte("USB"), "")
		}
		if err == nil {
			err = w.Close()
		}
		name := filepath.Join(t.TempDir(), "x.pcapng")
		if err == nil {
			err = os.WriteFile(name, file.Bytes(), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if code, out, errs := judgeFile(t, name); code != c.code || !strings.Contains(out, c.out) || !strings.Contains(errs, c.errs) || c.errs == "" && errs != "" {
			t.Errorf("%v: exit %d\n%s%s", c.links, code, out, errs)
		}
	}
}
