//go:build linux && amd64

package tree

import (
	"os"
	"path/filepath"
	"testing"
)

func sample() []Device {
	return []Device{{
		Name: "mlx5_0", NodeGUID: 0x0c42a1030065bafe, PCIDevice: 0x1017, NetDev: "lo", FWVer: "16.35.2000",
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
		"class/infiniband_verbs/abi_version":                "6\n",
		"class/infiniband_verbs/uverbs0/ibdev":              "mlx5_0\n",
		"class/infiniband_verbs/uverbs0/dev":                "231:192\n",
		"class/infiniband/mlx5_0/node_guid":                 "0c42:a103:0065:bafe\n",
		"class/infiniband/mlx5_0/device/modalias":           "pci:v000015B3d00001017sv000015B3sd00000008bc02sc00i00\n",
		"class/infiniband/mlx5_0/ports/1/gids/0":            "fe80:0000:0000:0000:0000:0000:0000:0001\n",
		"class/infiniband/mlx5_0/ports/1/gids/1":            "0000:0000:0000:0000:0000:0000:0000:0000\n",
		"class/infiniband/mlx5_0/ports/1/gid_attrs/types/0": "RoCE v2\n",
		"class/infiniband/mlx5_0/ports/1/pkeys/0":           "0xffff\n",
		"class/infiniband_verbs/uverbs0/device/device":      "0x1017\n",
		"class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0": "lo\n",
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
	tr := &Tree{Dir: "/t", Count: 2}
	for path, want := range map[string]Found{
		"/sys/class/infiniband":                     {Path: "/t/class/infiniband"},
		"/sys/class/infiniband/mlx5_0//fw_ver":      {Path: "/t/class/infiniband/mlx5_0/fw_ver"},
		"/sys/class/infiniband_verbs/../infiniband": {Path: "/t/class/infiniband"},
		"/sys/class/infiniband_verbs/":              {Path: "/t/class/infiniband_verbs"},
		"/dev/infiniband":                           {Path: "/t/dev/infiniband"},
		"/dev/infiniband/uverbs1":                   {Kind: DeviceFile, Path: "/dev/null", Index: 1},
		"/dev/infiniband/uverbs2":                   {Path: "/t/dev/infiniband/uverbs2"},
		"/dev/infiniband/uverbs01":                  {Path: "/t/dev/infiniband/uverbs01"},
	} {
		if got, ok := tr.Resolve(path); !ok || got != want {
			t.Errorf("%s: %+v, %v; want %+v", path, got, ok, want)
		}
	}
	for _, path := range []string{
		"/sys/class/net", "/sys/class/infiniband_mad", "/dev/infiniband0", "relative", "",
		"/sys/class/infiniband/../net", "/dev/infiniband/../../etc/passwd",
	} {
		if got, ok := tr.Resolve(path); ok {
			t.Errorf("%s: %+v, want none", path, got)
		}
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
