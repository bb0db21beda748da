package wire

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/verbs/remotewire"
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
	t.Setenv(remotewire.SocketEnv, "/tmp/socket")
	if f := FindPort(sys); f != "/tmp/socket" {
		t.Errorf("below rdmasim exec: port %q", f)
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

// far is a wire whose reset the kernel sees a while later.
type far struct {
	remotewire.Wire
	resets int
	seen   func()
}

func (f *far) Reset() ([]uint64, bool) {
	if f.resets++; f.resets == 2 { // that of Close
		time.AfterFunc(100*time.Millisecond, f.seen)
	}
	return nil, false
}

func (f *far) SetLink(uint64, bool) error { return nil }

// TestPortWaits: a case that has changed links ends when the kernel has seen that they are as
// before.
func TestPortWaits(t *testing.T) {
	sys := t.TempDir()
	state := filepath.Join(sys, "class/infiniband/mlx5_0/ports/1/state")
	if err := os.MkdirAll(filepath.Dir(state), 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(text string) {
		if err := os.WriteFile(state, []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	put("4: ACTIVE\n")
	f := &far{seen: func() { put("4: ACTIVE\n") }}
	ours, theirs := net.Pipe()
	served := make(chan error)
	go func() { served <- remotewire.Serve(theirs, f) }()
	c, err := remotewire.New(ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	devices := []string{"mlx5_0"}
	p := &Port{Client: c, sys: sys, devices: devices, before: ports(sys, devices)}
	if err := p.SetLink(nil, 0, 1, false); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a host that is not there: %v", err)
	}
	put("1: DOWN\n")
	if err := p.Close(); err != nil || ports(sys, devices) != p.before {
		t.Errorf("%v; the port is %q", err, ports(sys, devices))
	}
	select {
	case err := <-served:
		if err != nil || f.resets != 3 { // at the start, by Close, and when the stream ends
			t.Errorf("%v, %d resets", err, f.resets)
		}
	case <-time.After(time.Minute):
		t.Fatal("waited a minute for the far end to notice that the stream has ended")
	}
}
