package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/report"
)

// A card that was passed through to a virtual machine becomes a baseline when the user says so, and is one then.
func TestAcceptPassedThrough(t *testing.T) {
	dir := t.TempDir()
	record := func(name string, env map[string]string) string {
		env[report.KeyProvider], env[report.KeyPart], env[report.KeyMachine] = "mlx5", "0x1017", report.VirtualMachine
		text, err := json.Marshal(&report.Run{Schema: report.Schema, Seed: 1, Target: report.Target{Kind: "hw"}, Environment: env, Cases: []report.Case{}})
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	card := record("card.json", map[string]string{report.KeyPCI: "0000:07:00.0"})
	soft := record("soft.json", map[string]string{})
	for want, args := range map[string][]string{"say so with conform accept --passed-through": {card}, "is no PCI function": {soft}, "device is no PCI": {"--passed-through", soft}} {
		if code, _, stderr := command(t, append([]string{"accept", "--into", dir}, args...)...); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("accept %v: exit %d, %s", args, code, stderr)
		}
	}
	if code, _, stderr := command(t, "accept", "--into", dir, "--passed-through", card); code != exitOK {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	o := &runOptions{seed: 1, baselines: []string{filepath.Join(dir, "mlx5-0x1017.json")}}
	if got, err := o.readBaselines(t.Context()); err != nil || got[0].Environment[report.KeyPassedThrough] == "" {
		t.Errorf("as a baseline: %v", err)
	}
}
