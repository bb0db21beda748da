package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/conformance/target/simulator"
	"github.com/rdmasim/rdmasim/roce/pcap"
)

// A capture that is bounded has the last frames of the whole one, and says how many it leaves out.
func TestCaptureKeepsTheLastFrames(t *testing.T) {
	items, err := conformance.Items(conformance.Suite())
	if err != nil {
		t.Fatal(err)
	}
	target, err := simulator.New(simulator.Config{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	captured := func(keep int) (packets []pcap.Packet, leftOut uint64) {
		path := filepath.Join(dir, "x.pcapng")
		r := &conformance.Runner{Target: target, Seed: 1, Repeat: 1,
			Options: func(string) spec.BedOptions { return spec.BedOptions{Pcap: path, PcapKeep: keep} }}
		for _, i := range items {
			if i.Entry.ID == "WIRE-007" {
				if c := r.Run(i.Entry, i.Case); c.Outcome != report.Pass {
					t.Fatalf("%+v", c)
				}
			}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		in, packets, err := pcap.Read(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range in.Interfaces {
			leftOut += i.Dropped
		}
		return packets, leftOut
	}
	all, none := captured(0)
	if none != 0 || len(all) < 10 {
		t.Fatalf("%d frames, %d left out", len(all), none)
	}
	size := 0
	for _, p := range all[len(all)-3:] {
		size += len(p.Data)
	}
	last, leftOut := captured(size)
	if len(last) != 3 || int(leftOut) != len(all)-3 {
		t.Fatalf("%d frames, %d left out of %d", len(last), leftOut, len(all))
	}
	for i, p := range last {
		if want := all[len(all)-3+i]; !bytes.Equal(p.Data, want.Data) || p.Time != want.Time {
			t.Errorf("frame %d is another", i)
		}
	}
}
