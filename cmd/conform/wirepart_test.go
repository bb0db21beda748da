package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"
)

// partOf is a capture as a program leaves it that takes some packets out of a file: without the
// counts of the interfaces, or as they were.
func partOf(t *testing.T, name string, from, to int, counts bool) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	const packet, statistics = 6, 5
	var part bytes.Buffer
	for n := 0; len(b) > 0; {
		typ, size := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		keep := true
		switch typ {
		case packet:
			keep = n >= from && n < to
			n++
		case statistics:
			keep = counts
		}
		if keep {
			part.Write(b[:size])
		}
		b = b[size:]
	}
	out := name + ".part"
	if err := os.WriteFile(out, part.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// Packets that somebody has taken out of a capture of the simulator are no whole capture: they are
// judged like those of anybody else, and that is said.
func TestWireOfAPartOfOurOwnCapture(t *testing.T) {
	capture := captureOf(t, "name: s\nhosts: 3\nlink: switch\ntraffic:\n"+
		"  - {from: 0, to: 2, payload: 8KiB, window: 8, messages: 40}\n  - {from: 1, to: 2, payload: 8KiB, window: 8, messages: 40}\n"+
		"  - {from: 0, to: 1, verb: read, payload: 4KiB, window: 8, messages: 40}\n  - {from: 1, to: 0, verb: faa, window: 8, messages: 40}\n")
	const said = "not all packets of a capture of the simulator"
	if code, out, errs := judgeFile(t, capture); code != exitOK || strings.Contains(out, said) {
		t.Errorf("whole: exit %d\n%.1000s%s", code, out, errs)
	}
	for _, p := range [][2]int{{0, 300}, {150, 700}, {301, 100000}} {
		for _, counts := range []bool{true, false} {
			name := partOf(t, capture, p[0], p[1], counts)
			if code, out, errs := judgeFile(t, name); code != exitOK || !strings.Contains(out, said) || !strings.Contains(out, " 0 violations") {
				t.Errorf("packets %d to %d, with counts %v: exit %d\n%.1000s%s", p[0], p[1], counts, code, out, errs)
			}
		}
	}
}
