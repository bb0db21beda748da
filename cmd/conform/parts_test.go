package main

import (
	"fmt"
	"maps"
	"testing"

	"github.com/rdmasim/rdmasim/conformance"
	"github.com/rdmasim/rdmasim/conformance/report"
	"github.com/rdmasim/rdmasim/sim/hca"
	"github.com/rdmasim/rdmasim/sim/profile"
)

// What the ledger says of a profile because of its part it says of that part below a library too,
// as a card or below exec.
func TestLedgerKnowsPartsOfProfiles(t *testing.T) {
	l, err := conformance.LoadLedger()
	if err != nil {
		t.Fatal(err)
	}
	predicted := func(p report.Platform) map[string]string {
		if err := l.Ambiguous(p); err != nil {
			t.Errorf("%v: %v", p, err)
		}
		out := map[string]string{}
		for _, d := range l.Of(p) {
			for _, x := range d.Predicts {
				if d.Kind == "timing" {
					out[x.Case+": "+x.Step] = x.Got
				}
			}
		}
		return out
	}
	for _, name := range profile.List() {
		p, err := profile.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "generic-roce" {
			continue // it bears the number of a ConnectX-5, and has the timer of the specification
		}
		layer := "Ethernet"
		if p.HCA.LinkLayer == hca.InfiniBand {
			layer = "InfiniBand"
		}
		want := predicted(report.PlatformOf(name, nil))
		for _, hw := range []string{"hw-mlx5", report.ExecProfile, report.PCIProfile} {
			got := predicted(report.PlatformOf(hw, map[string]string{report.KeyProvider: "mlx5", report.KeyKernel: "6.12.1", report.KeyPart: fmt.Sprintf("%#x", p.Kernel.PCIDevice), report.KeyLinkLayer: layer}))
			if !maps.Equal(got, want) {
				t.Errorf("%s as %s: %v, and on the simulator %v", name, hw, got, want)
			}
		}
	}
}
