package vm

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The scripts that a built program carries are whole: each can be run and parses.
func TestUnpack(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir, err := unpack()
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Remove()
	for _, name := range []string{"boot", "guest", "kernel", "qemu", "root", "debian"} {
		path := filepath.Join(dir.Path, "scripts", name)
		if st, err := os.Stat(path); err != nil || st.Mode()&0o100 == 0 {
			t.Errorf("%s cannot be run: %v", name, err)
		}
		if out, err := exec.Command("bash", "-n", path).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestFlags(t *testing.T) {
	got := (&Config{Sockets: []string{"a", "b"}, Kernel: "6.1", IP: true, Timeout: 90 * time.Second, Args: []string{"--x", "y"}}).flags()
	want := strings.Fields("--device mlx5 --socket a --socket b --kernel 6.1 --ip --timeout 90 -- --x y")
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A guest without functions is refused before anything is downloaded, and nothing is left behind.
func TestGuestWithoutFunctions(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	var stderr strings.Builder
	status, err := Run(t.Context(), &Config{Cache: t.TempDir(), Args: []string{"true"}, Stderr: &stderr})
	if err != nil || status != 2 || !strings.Contains(stderr.String(), "--socket PATH") {
		t.Errorf("status %d, %v, %q", status, err, stderr.String())
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// What --kernel cannot be is said before anything is downloaded, and what is missing of a folder is
// named.
func TestKernelOfOnesOwn(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("needs dpkg-deb, of Debian")
	}
	dir, err := unpack()
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Remove()
	cache := filepath.Join(t.TempDir(), "cache")
	kernel := func(what string) (string, error) {
		out, err := exec.Command(filepath.Join(dir.Path, "scripts", "kernel"), what, cache).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	own := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(own, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(own, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		add, text, what, want string
	}{
		{what: "six", want: "want a version such as 6.1"},
		{what: own + "/none.deb", want: "no such file"},
		{add: "x.deb", text: "no package", what: own + "/x.deb", want: "neither a package"},
		{what: own, want: "one boot/vmlinuz-*"},
		{add: "boot/vmlinuz-mine", what: own, want: "one folder in lib/modules"},
		{add: "lib/modules/mine/modules.order", what: own, want: "no modules.dep (depmod -b " + own + " mine)"},
		{add: "lib/modules/mine/modules.dep", text: "kernel/mlx5_ib.ko.xz: kernel/mlx5_core.ko.xz\n", what: own, want: "no module 9p"},
	} {
		if step.add != "" {
			write(step.add, step.text)
		}
		out, err := kernel(step.what)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(out, step.want) {
			t.Errorf("%s: %q, %v, want %q", step.what, out, err, step.want)
		}
	}
	write("lib/modules/mine/modules.builtin", "kernel/9p.ko\nkernel/9pnet_virtio.ko\nkernel/virtio_pci.ko\nkernel/virtio_console.ko\nkernel/overlay.ko\n")
	if out, err := kernel(own); err != nil || out != own {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := os.Stat(cache); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a cache is made: %v", err)
	}
}

// What a guest cannot have is said before anything is downloaded or booted.
func TestCheckOfAGuest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, cfg := range map[string]Config{
		`--forward "99999": a TCP port is needed`: {Forward: []string{"99999"}},
		`--forward "0": a TCP port`:               {Forward: []string{"22", "0"}},
		"it is not a folder":                      {Cache: file},
	} {
		cfg.Kernel, cfg.Memory, cfg.Timeout, cfg.Folder = "6.12", "2G", time.Hour, t.TempDir()
		if err := cfg.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	cfg := Config{Kernel: "6.12", Memory: "2G", Timeout: time.Hour, Folder: t.TempDir()}
	if err := cfg.Check(); err == nil || !strings.Contains(err.Error(), "name a folder with --cache") {
		t.Errorf("without a home: %v", err)
	}
	cfg.Cache = t.TempDir()
	if err := cfg.Check(); err != nil {
		t.Errorf("without a home, and with a cache: %v", err)
	}
}
