//go:build linux && amd64

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPCI: a session prints the options for QEMU, ends with the context, and leaves no socket.
func TestPCI(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, stderr bytes.Buffer
	if code := program.Execute(ctx, []string{"pci", "--socket", socket, "--functions", "2"}, &out, &stderr); code != 0 || out.Len() != 0 {
		t.Errorf("exit %d, %s", code, out.String())
	}
	for _, want := range []string{"memory-backend-memfd", "share=on", `"driver":"vfio-user-pci","bus":"rp1"`, socket + ".0", socket + ".1", "mlx5_1: 0 lives"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("nothing says %s:\n%s", want, stderr.String())
		}
	}
	if l, err := filepath.Glob(socket + "*"); err != nil || len(l) != 0 {
		t.Errorf("%v, %v", l, err)
	}
}

// TestPCIRefusals: mistakes are named, and nothing is made or removed.
func TestPCIRefusals(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	faults := filepath.Join(dir, "f.yaml")
	if err := os.WriteFile(faults, []byte("faults:\n- {from: mlx5_9, do: drop}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	for _, x := range []struct {
		args []string
		say  string
	}{
		{nil, "--socket is needed"},
		{[]string{"--socket", file}, "not a socket"},
		{[]string{"--socket", filepath.Join(dir, "no", "s")}, "no such file"},
		{[]string{"--socket", socket, "--functions", "0"}, "from 1 to 16"},
		{[]string{"--socket", socket, "--functions", "17"}, "from 1 to 16"},
		{[]string{"--socket", socket, "--profile", "connectx-55"}, "connectx-55"},
		{[]string{"--socket", socket, "--fault", faults}, "mlx5_9"},
		{[]string{"--socket", socket, "--fault", filepath.Join(dir, "none")}, "--fault"},
		{[]string{"--socket", socket, "--pcap", filepath.Join(dir, "no", "p")}, "no such file"},
		{[]string{"--socket", socket, "guest"}, "guest"},
		{[]string{"--socket", socket, "--pcap-limit", "1MiB"}, "--pcap-limit is about --pcap"},
		{[]string{"--socket", socket, "--fault", faults, "--pcap", faults}, "--fault and --pcap are one file"},
		{[]string{"--socket", socket, "--pcap", socket}, "--socket and --pcap are one file"},
	} {
		var out, stderr bytes.Buffer
		if code := program.Execute(t.Context(), append([]string{"pci"}, x.args...), &out, &stderr); code != exitUsage || !strings.Contains(stderr.String(), x.say) {
			t.Errorf("%q: exit %d, %s", x.args, code, stderr.String())
		}
	}
	l, err := os.ReadDir(dir)
	if err != nil || len(l) != 2 {
		t.Errorf("%v, %v", l, err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "kept" {
		t.Errorf("%q, %v", b, err)
	}
}
