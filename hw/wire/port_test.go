package wire

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPort: the port is found by its name, and devices are told apart by their GUIDs.
func TestPort(t *testing.T) {
	sys := t.TempDir()
	put := func(path, text string) {
		path = filepath.Join(sys, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if f := FindPort(sys); f != "" {
		t.Errorf("%q on a machine without ports", f)
	}
	put("class/virtio-ports/vport0p1/name", "org.qemu.guest_agent.0\n")
	put("class/virtio-ports/vport2p3/name", "rdmasim.wire\n")
	put("class/infiniband/mlx5_0/node_guid", "0002:c903:0000:0101\n")
	put("class/infiniband/odd/node_guid", "none\n")
	if f := FindPort(sys); f != "/dev/vport2p3" {
		t.Errorf("port %q", f)
	}
	if g, err := nodeGUID(sys, "mlx5_0"); err != nil || g != 0x0002c90300000101 {
		t.Errorf("%#x, %v", g, err)
	}
	for _, d := range []string{"odd", "missing"} {
		if _, err := OpenPort("/dev/null", sys, []string{d}); err == nil || !strings.Contains(err.Error(), "node_guid") {
			t.Errorf("%s: %v", d, err)
		}
	}
	if _, err := OpenPort("/dev/null", sys, []string{"mlx5_0"}); err == nil {
		t.Error("/dev/null is a wire")
	}
}
