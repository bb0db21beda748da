//go:build linux && amd64

package tree

import (
	"os"
	"path"
	"path/filepath"
	"slices"
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
	// UMADDevice is an umad file: Index names the device, Path the null device.
	UMADDevice
)

// Found is the answer to a path.
type Found struct {
	Kind  int
	Path  string
	Index int
	Link  bool // Path is a symbolic link as sysfs has it, which the call does not follow
	Host  bool // what the host has is there too
}

// owned is a folder of which programs see nothing but ours.
type owned struct{ prefix, dir string }

// covered are the folders of any devices.
var covered = []owned{
	{"/sys/class/infiniband", "class/infiniband"},
	{"/sys/class/infiniband_verbs", "class/infiniband_verbs"},
	{"/sys/class/infiniband_mad", "class/infiniband_mad"},
	{"/sys/class/misc/rdma_cm", "class/misc/rdma_cm"},
	{"/sys/bus/pci/drivers/" + driver, "bus/pci/drivers/" + driver},
	{"/dev/infiniband", "dev/infiniband"},
}

// ownedBy are covered, and the host bridges of devices.
func ownedBy(devices []Device) []owned {
	l := covered[:len(covered):len(covered)]
	for i := range devices {
		dir := "devices/" + devices[i].PCI.bridge()
		l = append(l, owned{"/sys/" + dir, dir})
	}
	return l
}

// merged are folders of links, of which programs see the host's and ours.
var merged = []owned{{"/sys/bus/pci/devices", "bus/pci/devices"}, {"/sys/class/net", "class/net"}}

// MayConcern says whether a path that begins at a folder can lead to the tree.
func (t *Tree) MayConcern(folder string) bool {
	switch first, _, _ := strings.Cut(strings.TrimLeft(folder, "/"), "/"); first {
	case "", ".", "..", "sys", "dev":
		return true
	}
	return folder == t.Dir || strings.HasPrefix(folder, t.Dir+"/")
}

// Seen is the path that programs use for a folder of the tree that they have open; another's is its
// own.
func (t *Tree) Seen(folder string) string {
	rest, ok := strings.CutPrefix(folder, t.Dir+"/")
	if !ok {
		return folder
	}
	if strings.HasPrefix(rest, "dev/") {
		return "/" + rest
	}
	return "/sys/" + rest
}

// maxLinks is how many symbolic links a path may follow (MAXSYMLINKS).
const maxLinks = 40

// Resolve says what an absolute path of a program means, with the last link followed or not. A path
// that is covered but names nothing gives the place where it would be, where the kernel finds
// nothing too.
func (t *Tree) Resolve(p string, follow bool) (Found, bool) {
	if !strings.HasPrefix(p, "/") || !t.MayConcern(p) {
		return Found{}, false
	}
	at, linked, dead := t.walk(p, follow || strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/."))
	if dead {
		return Found{Path: t.place(at)}, true // where the kernel finds why
	}
	if t.owns(at) {
		if k, ok := t.DeviceIndex(at); ok {
			return Found{Kind: DeviceFile, Path: nullDevice, Index: k}, true
		}
		if k, ok := UMADIndex(at); ok && k < t.UMADs {
			return Found{Kind: UMADDevice, Path: nullDevice, Index: k}, true
		}
		if IsChannel(at) {
			return Found{Kind: ChannelFile, Path: nullDevice}, true
		}
		if strings.HasPrefix(at, "/sys/devices/") || strings.HasPrefix(at, "/sys/bus/") {
			t.host.Do(t.addHost)
		}
		f := t.found(at)
		if strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/.") {
			f.Path += "/." // only a folder is there
		}
		return f, true
	}
	for _, c := range merged {
		if at == c.prefix {
			t.host.Do(t.addHost)
			return Found{Path: t.place(at), Host: true}, true
		}
	}
	if _, is := t.links[at]; is {
		return t.found(at), true
	}
	// By one of our links to what the host has. The kernel does not get there by the program's
	// path; the supervisor, whose rights the program may lack, opens what everybody may read.
	if linked {
		if st, err := os.Stat(at); err != nil || st.Mode().Perm()&0o004 == 0 || !strings.HasPrefix(at+"/", "/sys/") {
			at = filepath.Join(t.Dir, "absent")
		}
		return Found{Path: at, Host: true}, true
	}
	return Found{}, false
}

func (t *Tree) found(at string) Found {
	_, link := t.links[at]
	return Found{Path: t.place(at), Link: link}
}

// place is where the tree has what programs see at a clean path.
func (t *Tree) place(at string) string {
	return t.Dir + strings.TrimPrefix(at, "/sys")
}

// owns reports whether programs see nothing but ours at a clean path.
func (t *Tree) owns(at string) bool {
	return slices.ContainsFunc(t.owned, func(c owned) bool {
		rest, ok := strings.CutPrefix(at, c.prefix)
		return ok && (rest == "" || rest[0] == '/')
	})
}

// walk follows a path from the root and returns the one without links that it leads to, and whether
// one of ours was among them. It is dead where the path goes up from what is no folder.
func (t *Tree) walk(p string, follow bool) (at string, linked, dead bool) {
	links := 0
	for rest := p; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(strings.TrimLeft(rest, "/"), "/")
		switch name {
		case "", ".":
			continue
		case "..":
			if ours := t.owns(at); at != "" {
				place := at
				if ours {
					place = t.place(at)
				}
				if st, err := os.Lstat(place); err != nil || !st.IsDir() {
					return at + "/..", linked, ours
				}
			}
			at = at[:max(strings.LastIndexByte(at, '/'), 0)]
			continue
		}
		to, is := t.links[at+"/"+name]
		if !is || !follow && strings.Trim(rest, "/") == "" {
			at += "/" + name
			continue
		}
		if links++; links > maxLinks {
			return at + "/..", true, true
		}
		linked = true
		rest = to + "/" + rest
	}
	return at, linked, false
}

// UMADIndex is the device whose umad file a path names.
func UMADIndex(p string) (int, bool) {
	s, ok := strings.CutPrefix(path.Clean(p), "/dev/infiniband/umad")
	if !ok {
		return 0, false
	}
	k, err := strconv.Atoi(s)
	return k, err == nil && k >= 0 && strconv.Itoa(k) == s
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

// addHost makes the host's links in the merged folders, and links to its folders below
// /sys/devices, so that a program which opens a folder of the tree finds by it what belongs to the
// host too. What cannot be made is not found.
func (t *Tree) addHost() {
	for _, c := range merged {
		if err := os.MkdirAll(filepath.Join(t.Dir, c.dir), 0o755); err != nil { //nolint:gosec // programs of other users look into it
			return
		}
		entries, _ := os.ReadDir(c.prefix) // a host without PCI has none
		for _, e := range entries {
			if to, err := os.Readlink(filepath.Join(c.prefix, e.Name())); err == nil {
				_ = os.Symlink(to, filepath.Join(t.Dir, c.dir, e.Name()))
			}
		}
	}
	entries, _ := os.ReadDir("/sys/devices")
	for _, e := range entries {
		_ = os.Symlink("/sys/devices/"+e.Name(), filepath.Join(t.Dir, "devices", e.Name()))
	}
}
