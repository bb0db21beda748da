//go:build linux && amd64

package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
)

// Mistakes in the flags of a guest are named in one line before anything is downloaded or booted.
func TestGuestRefusals(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir) // without a shell, what is not refused ends at once, and boots no guest
	cache := filepath.Join(dir, "cache")
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	socket := listener.Addr().String()
	for _, x := range []struct {
		args []string
		say  string
	}{
		{[]string{"--memory", "0"}, `--memory "0": a size such as 512M or 3G`},
		{[]string{"--memory", "1M"}, "--memory 1M: from 256M"},
		{[]string{"--memory", "99999999999G"}, "--memory 99999999999G: from 256M"},
		{[]string{"--memory", "x"}, `--memory "x"`},
		{[]string{"--timeout", "-1s"}, "--timeout -1s: a time above 0"},
		{[]string{"--timeout", "0"}, "--timeout 0s: a time above 0"},
		{[]string{"--kernel", "\x1b[31m"}, `--kernel "\x1b[31m": a series such as 6.1`},
		{[]string{"--kernel", filepath.Join(dir, "none.deb")}, "there is no such file"},
		{[]string{"--folder", filepath.Join(dir, "none")}, "there is no such folder"},
		{[]string{"--folder", "/"}, "the root of this machine cannot be the folder"},
		{[]string{"--root", "/etc/passwd"}, "--root \"/etc/passwd\": there is no such folder"},
		{[]string{"--connect", filepath.Join(dir, "none")}, "there is no such socket: start rdmasim pci"},
		{[]string{"--connect", dir}, "there is no such socket"},
		{[]string{"--connect", socket, "--functions", "2"}, "--functions is for the process that has the adapters"},
		{[]string{"--connect", socket, "--blueflame"}, "--blueflame is for the process that has the adapters"},
		{[]string{"--connect", socket, "--pcap", filepath.Join(dir, "p")}, "--pcap is for the process"},
		{[]string{"--pcap", filepath.Join(dir, "x"), "--dmesg", filepath.Join(dir, "x")}, "--dmesg and --pcap are one file"},
		{[]string{"--dmesg", filepath.Join(dir, "none", "x")}, "no such file or directory"},
		{[]string{"--dmesg", ""}, "--dmesg"},
	} {
		code, out := rdmasim(t, append(append([]string{"vm", "--cache", cache}, x.args...), "--", "true")...)
		if code != exitUsage || !strings.Contains(out, x.say) || strings.Count(out, "\n") != 1 {
			t.Errorf("%q: exit %d, %s", x.args, code, out)
		}
	}
	if _, err := os.Stat(cache); err == nil {
		t.Error("something was downloaded, or a folder made for it")
	}
}

// Without a place for temporary files the error names it, and TMPDIR.
func TestNoTemporaryFolder(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("TMPDIR", none)
	for _, args := range [][]string{{"exec", "--", "/bin/true"}, {"vm", "--", "true"}} {
		code, out := rdmasim(t, args...)
		if code != exitUsage || !strings.Contains(out, none) || !strings.Contains(out, "TMPDIR") {
			t.Errorf("%v: exit %d, %s", args, code, out)
		}
	}
}

// A folder that was removed under the command is named.
func TestFolderThatIsGone(t *testing.T) {
	scenario, err := filepath.Abs("../../fixtures/scenarios/stream.yaml")
	if err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run", scenario, "-o", "out"}, {"run", scenario, "--pcap", "x"}, {"pci", "--socket", "s"}, {"vm", "--", "true"}} {
		if code, out := rdmasim(t, args...); code != exitUsage || !strings.Contains(out, "is gone") {
			t.Errorf("%v: exit %d, %s", args, code, out)
		}
	}
}

// What the points of a sweep have measured before one that fails is in the folder.
func TestPointsBesideOneThatFailsAreWritten(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "own.yaml")
	if err := os.WriteFile(own, []byte("name: own\ntraffic:\n  - {inline: true, messages: 10}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out := rdmasim(t, "run", own, "--sweep", "traffic.0.payload=2B,4KiB,64B", "-o", dir)
	text, err := os.ReadFile(filepath.Join(dir, "own.json"))
	if code != exitFailure || err != nil || !strings.Contains(string(text), `"complete": false`) || !strings.Contains(string(text), `"traffic.0.payload": "2B"`) || !strings.Contains(string(text), `"traffic.0.payload": "64B"`) ||
		!strings.Contains(out, "lost: traffic.0.payload=4KiB: ") || !strings.Contains(out, "(alone: rdmasim run "+commands.Quoted(own)+" --seed 1 --set traffic.0.payload=4KiB)") {
		t.Errorf("exit %d, %v, %s\n%s", code, err, text, out)
	}
}
