//go:build linux && amd64

package tree

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func sample() []Device {
	return []Device{{
		Name: "mlx5_0", NodeGUID: 0x0c42a1030065bafe, Net: Net{Name: "sim0", Address: "02:02:c9:00:01:01"}, FWVer: "16.35.2000",
		PCI: PCI{
			Address: "0001:01:00.0", BAR: 1 << 40, Size: 1 << 25, Speed: "8.0 GT/s PCIe", Lanes: 16, CPUs: "3", CPUList: "0-1",
			Config: []byte{0: 0xb3, 1: 0x15, 2: 0x17, 3: 0x10, 11: 2, 0x2c: 0xb3, 0x2d: 0x15, 0x2e: 8, 0x33: 0},
		},
		Ports: []Port{{
			LinkLayer: "Ethernet", State: "4: ACTIVE", PKeys: []uint16{0xffff},
			GIDs: []GID{{Value: [16]byte{0: 0xfe, 1: 0x80, 15: 1}, Type: "RoCE v2"}, {}},
		}},
	}}
}

func TestFilesOfADevice(t *testing.T) {
	dir := t.TempDir()
	if _, err := Build(dir, sample()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"class/infiniband_verbs/abi_version":                                               "6\n",
		"class/infiniband_verbs/uverbs0/ibdev":                                             "mlx5_0\n",
		"class/infiniband_verbs/uverbs0/dev":                                               "231:192\n",
		"class/infiniband/mlx5_0/node_guid":                                                "0c42:a103:0065:bafe\n",
		"class/infiniband/mlx5_0/device/modalias":                                          "pci:v000015B3d00001017sv000015B3sd00000008bc02sc00i00\n",
		"class/infiniband/mlx5_0/ports/1/gids/0":                                           "fe80:0000:0000:0000:0000:0000:0000:0001\n",
		"class/infiniband/mlx5_0/ports/1/gids/1":                                           "0000:0000:0000:0000:0000:0000:0000:0000\n",
		"class/infiniband/mlx5_0/ports/1/gid_attrs/types/0":                                "RoCE v2\n",
		"class/infiniband/mlx5_0/ports/1/pkeys/0":                                          "0xffff\n",
		"class/infiniband_verbs/uverbs0/device/device":                                     "0x1017\n",
		"class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0":                                "sim0\n",
		"bus/pci/devices/0001:01:00.0/class":                                               "0x020000\n",
		"class/infiniband/mlx5_0/device/subsystem/devices/0001:01:00.0/current_link_speed": "8.0 GT/s PCIe\n",
		"devices/pci0001:01/0001:01:00.0/net/sim0/address":                                 "02:02:c9:00:01:01\n",
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(b) != want {
			t.Errorf("%s: %q, %v; want %q", name, b, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "class/infiniband/mlx5_0/ports/1/gid_attrs/types/1")); !os.IsNotExist(err) {
		t.Errorf("type of an empty entry: %v", err)
	}
}

func TestResolve(t *testing.T) {
	tr, err := Build(t.TempDir(), append(sample(), Device{Name: "mlx5_1", PCI: PCI{Address: "0001:02:00.0", Config: make([]byte, 64)}, Net: Net{Name: "sim1"}}))
	if err != nil {
		t.Fatal(err)
	}
	const function = "/devices/pci0001:01/0001:01:00.0"
	for path, want := range map[string]Found{
		"/sys/class/infiniband":                                  {Path: "/class/infiniband"},
		"/sys/class/infiniband/mlx5_0//fw_ver":                   {Path: function + "/infiniband/mlx5_0/fw_ver"},
		"/sys/class/infiniband/mlx5_0/../../vendor":              {Path: function + "/vendor"},
		"/sys/class/infiniband/mlx5_0/device/subsystem/devices/": {Path: "/bus/pci/devices", Host: true},
		"/sys/bus/pci/devices/0001:01:00.0":                      {Path: function},
		"/sys/class/infiniband/mlx5_0":                           {Path: function + "/infiniband/mlx5_0"},
		"/sys/class/infiniband_verbs/../infiniband":              {Path: "/class/infiniband"},
		"/sys/class/infiniband_verbs/":                           {Path: "/class/infiniband_verbs/."},
		"/dev/infiniband":                                        {Path: "/dev/infiniband"},
		"/sys/../dev/infiniband/uverbs1":                         {Kind: DeviceFile, Path: "/dev/null", Index: 1},
		"/dev/infiniband/uverbs2":                                {Path: "/dev/infiniband/uverbs2"},
		"/dev/infiniband/uverbs01":                               {Path: "/dev/infiniband/uverbs01"},
	} {
		if want.Kind == File {
			want.Path = tr.Dir + want.Path
		}
		if got, ok := tr.Resolve(path, true); !ok || got != want {
			t.Errorf("%s: %+v, %v; want %+v", path, got, ok, want)
		}
	}
	want := Found{Path: tr.Dir + "/class/infiniband/mlx5_0", Link: true}
	if got, ok := tr.Resolve("/sys/class/infiniband/mlx5_0", false); !ok || got != want {
		t.Errorf("the link itself: %+v, %v; want %+v", got, ok, want)
	}
	for _, path := range []string{
		"/sys/class/net/lo", "/sys/class/infiniband_srp", "/dev/infiniband0", "relative", "", "/sys/devices", "/sys/devices/pci0001:010",
		"/sys/class/infiniband/../net/lo", "/dev/infiniband/../../etc/passwd", "/sys/bus/pci/devices/0000:00:00.0",
	} {
		if got, ok := tr.Resolve(path, true); ok {
			t.Errorf("%s: %+v, want none", path, got)
		}
	}
	// By a link of ours a program comes to a file of the host that not everybody may read.
	for _, path := range []string{"/sys/class/infiniband/mlx5_0/../../../../../../../../etc/passwd", "/sys/class/infiniband/mlx5_0/device/subsystem/rescan"} {
		if got, ok := tr.Resolve(path, true); ok && got.Path != filepath.Join(tr.Dir, "absent") {
			t.Errorf("%s: %+v, %v", path, got, ok)
		}
	}
}

// TestResolveAsTheKernel draws paths and follows them both by Resolve and by the kernel, which has
// the tree as its root.
func TestResolveAsTheKernel(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "sys"), 0o755); err != nil {
		t.Fatal(err)
	}
	tr, err := Build(filepath.Join(root, "sys"), sample())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := unix.Open(root, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(dir)
	names := []string{"..", ".", "", "class", "infiniband", "infiniband_verbs", "uverbs0", "mlx5_0", "device", "subsystem", "devices", "driver", "bus", "pci",
		"pci0001:01", "0001:01:00.0", "vendor", "ports", "1", "net", "sim0", "nothing"}
	draw, seen := rand.New(rand.NewPCG(1, 6)), 0
	for range 20_000 {
		p := []string{"/sys/class/infiniband/mlx5_0", "/sys/bus/pci/devices/0001:01:00.0", "/sys/class/infiniband_verbs"}[draw.IntN(3)]
		for range draw.IntN(8) {
			p += "/" + names[draw.IntN(len(names))]
		}
		follow := draw.IntN(2) == 0
		got, ok := tr.Resolve(p, follow)
		if !ok || got.Kind != File || !strings.HasPrefix(got.Path, tr.Dir) || got.Path == filepath.Join(tr.Dir, "absent") {
			continue // of the host
		}
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}
		if !follow {
			how.Flags |= unix.O_NOFOLLOW
		}
		kernel := ""
		fd, err := unix.Openat2(dir, p, &how)
		for err == unix.EAGAIN { // a rename or a mount anywhere on the machine met a ".."
			fd, err = unix.Openat2(dir, p, &how)
		}
		if err == nil {
			kernel, _ = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
			unix.Close(fd)
			seen++
		}
		var st unix.Stat_t
		ours := unix.Lstat(got.Path, &st)
		if !errors.Is(ours, err) || err == nil && kernel != strings.TrimSuffix(got.Path, "/.") {
			t.Fatalf("%s, follow %v: %+v, %v; the kernel: %s, %v", p, follow, got, ours, kernel, err)
		}
	}
	if seen < 500 {
		t.Errorf("%d paths led somewhere", seen)
	}
}

// TestChangingFiles: a reader finds what has changed of a port, and of what has not the same files.
func TestChangingFiles(t *testing.T) {
	dir, devices := t.TempDir(), sample()
	p := &devices[0].Ports[0]
	p.Live = filepath.Join(t.TempDir(), "1")
	if err := p.WriteLive(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(dir, devices); err != nil {
		t.Fatal(err)
	}
	says := func(name, want string) os.FileInfo {
		t.Helper()
		path := filepath.Join(dir, "class/infiniband/mlx5_0/ports/1", name)
		b, err := os.ReadFile(path)
		if err != nil || string(b) != want {
			t.Errorf("%s: %q, %v; want %q", name, b, err, want)
		}
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	says("state", "4: ACTIVE\n")
	gid := says("gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n")
	now := *p
	now.State, now.PKeys = "1: DOWN", []uint16{0x8123, 0x7fff}
	if err := now.WriteLive(p); err != nil {
		t.Fatal(err)
	}
	says("state", "1: DOWN\n")
	says("pkeys/0", "0x8123\n")
	says("pkeys/1", "0x7fff\n")
	if !os.SameFile(gid, says("gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n")) {
		t.Error("a file that says the same was written anew")
	}
}
