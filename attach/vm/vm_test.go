package vm

import (
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
	for _, name := range []string{"boot", "guest", "kernel", "qemu", "root", "debian"} {
		path := filepath.Join(dir, "scripts", name)
		if st, err := os.Stat(path); err != nil || st.Mode()&0o100 == 0 {
			t.Errorf("%s cannot be run: %v", name, err)
		}
		if out, err := exec.Command("bash", "-n", path).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestFlags(t *testing.T) {
	got := (&Config{Sockets: []string{"a", "b"}, Kernel: "6.1", Timeout: 90 * time.Second, Args: []string{"--x", "y"}}).flags()
	want := strings.Fields("--device mlx5 --socket a --socket b --kernel 6.1 --timeout 90 -- --x y")
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
