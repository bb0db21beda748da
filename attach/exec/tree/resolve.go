//go:build linux && amd64

package tree

import (
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// What Resolve finds.
const (
	// File is a file or folder of the tree: Path names it.
	File = iota
	// DeviceFile is a device file: Index names the device, Path the null device.
	DeviceFile
	// ChannelFile is the device file of rdma_cm: Path is the null device.
	ChannelFile
)

// Found is the answer to a path.
type Found struct {
	Kind  int
	Path  string
	Index int
}

// covered are the folders of which programs see nothing but ours.
var covered = []struct{ prefix, dir string }{
	{"/sys/class/infiniband", "class/infiniband"},
	{"/sys/class/infiniband_verbs", "class/infiniband_verbs"},
	{"/sys/class/misc/rdma_cm", "class/misc/rdma_cm"},
	{"/dev/infiniband", "dev/infiniband"},
}

// Resolve says what an absolute path of a program means. A path that is covered but
// names nothing gives the place where it would be, where the kernel finds nothing too.
func (t *Tree) Resolve(p string) (Found, bool) {
	if !strings.HasPrefix(p, "/sys/class/infiniband") && !strings.HasPrefix(p, "/sys/class/misc/rdma_cm") && !strings.HasPrefix(p, "/dev/infiniband") {
		return Found{}, false
	}
	p = path.Clean(p)
	for _, c := range covered {
		rest, ok := strings.CutPrefix(p, c.prefix)
		if !ok || rest != "" && rest[0] != '/' {
			continue
		}
		if k, ok := t.DeviceIndex(p); ok {
			return Found{Kind: DeviceFile, Path: nullDevice, Index: k}, true
		}
		if IsChannel(p) {
			return Found{Kind: ChannelFile, Path: nullDevice}, true
		}
		return Found{Kind: File, Path: filepath.Join(t.Dir, c.dir, rest)}, true
	}
	return Found{}, false
}

// DeviceIndex is the device whose device file a clean path names.
func (t *Tree) DeviceIndex(p string) (int, bool) {
	s, ok := strings.CutPrefix(p, "/dev/infiniband/uverbs")
	if !ok {
		return 0, false
	}
	k, err := strconv.Atoi(s)
	return k, err == nil && k >= 0 && k < t.Count && DevFile(k) == p
}
