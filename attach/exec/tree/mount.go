//go:build linux && amd64

package tree

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// opaque is the attribute by which a folder of an overlay hides the one below it.
const opaque = "trusted.overlay.opaque"

// Mount shows the files of the devices in a mount namespace of its own for the calling thread:
// nothing of it is seen outside, and nothing is left of it when the last process in it ends. at is
// an empty folder to work in; it is empty again afterwards. It needs CAP_SYS_ADMIN. After an error
// the namespace may be half changed; what programs find there is still true. The descriptor that it
// returns is of inotify: something can be read from it once a file or folder of a device has been
// opened.
func Mount(at string, devices []Device) (reads int, err error) {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return -1, fmt.Errorf("mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return -1, fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return -1, fmt.Errorf("tmpfs: %w", err)
	}
	defer func() { _ = unix.Unmount(at, unix.MNT_DETACH) }() // the overlays hold it
	t, err := Build(at, devices)
	if err == nil {
		err = t.mount()
	}
	if err != nil {
		return -1, err
	}
	return watch(devices), nil
}

// watch returns the descriptor of Mount, or -1 where there is none.
func watch(devices []Device) int {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return -1
	}
	dirs := []string{"/sys/class/infiniband", "/sys/class/infiniband_verbs", "/sys/class/infiniband_mad"}
	for k := range devices {
		function := "/sys/devices/" + devices[k].PCI.bridge() + "/" + devices[k].PCI.Address
		dirs = append(dirs, function, function+"/infiniband/"+devices[k].Name, function+"/net/"+devices[k].Net.Name)
		for n := range devices[k].Ports {
			dirs = append(dirs, fmt.Sprintf("%s/infiniband/%s/ports/%d", function, devices[k].Name, n+1))
		}
	}
	for _, dir := range dirs {
		_, _ = unix.InotifyAddWatch(fd, dir, unix.IN_OPEN|unix.IN_ONESHOT)
	}
	return fd
}

func (t *Tree) mount() error {
	for _, c := range t.owned {
		// Hides the host's own devices, if it has any.
		err := unix.Setxattr(filepath.Join(t.Dir, c.dir), opaque, []byte("y"), 0)
		if _, real := os.Stat(c.prefix); err != nil && real == nil {
			return fmt.Errorf("overlay: hide %s: %w", c.prefix, err)
		}
	}
	if err := overlay(filepath.Join(t.Dir, "class"), "/sys/class", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC); err != nil {
		return err
	}
	bus := "bus/pci"
	if _, err := os.Stat("/sys/" + bus); err != nil { // a machine without PCI
		bus = "bus"
	}
	if err := overlay(filepath.Join(t.Dir, bus), "/sys/"+bus, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC); err != nil {
		return err
	}
	if err := t.mountDevices(); err != nil {
		return err
	}
	return t.mountDev()
}

// mountDevices puts the functions of devices beside the host's folders in /sys/devices. An overlay
// would take from the host's files that they can be written and waited for.
func (t *Tree) mountDevices() error {
	const at = "/sys/devices"
	entries, err := os.ReadDir(at)
	if err != nil {
		return err
	}
	ours := filepath.Join(t.Dir, "devices")
	for _, e := range entries {
		dir := filepath.Join(ours, e.Name())
		if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // programs of other users look into it
			return err
		}
		if err := unix.Mount(filepath.Join(at, e.Name()), dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mount %s/%s again: %w", at, e.Name(), err)
		}
	}
	if err := unix.Mount(ours, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("devices on %s: %w", at, err)
	}
	const flags = unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("", at, "", flags, ""); err != nil {
		return fmt.Errorf("devices on %s, read-only: %w", at, err)
	}
	return nil
}

func overlay(upper, at string, flags uintptr) error {
	fd, err := unix.Open(upper, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("overlay on %s: %w", at, err)
	}
	defer unix.Close(fd)
	// The folder of temporary files may have colons and commas in its name, which options cannot
	// hold.
	if err := unix.Mount("overlay", at, "overlay", flags, fmt.Sprintf("lowerdir=/proc/self/fd/%d:%s", fd, at)); err != nil {
		return fmt.Errorf("overlay on %s: %w", at, err)
	}
	return nil
}

// mountDev lays our device files over /dev. An overlay hides what is mounted below
// /dev, and so that is put back from a copy.
func (t *Tree) mountDev() error {
	below, err := mountsBelow("/dev")
	if err != nil {
		return err
	}
	aside := filepath.Join(t.Dir, "aside")
	if err := os.Mkdir(aside, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("/dev", aside, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("copy of /dev: %w", err)
	}
	if err := overlay(filepath.Join(t.Dir, "dev"), "/dev", unix.MS_NOSUID); err != nil {
		return err
	}
	for _, m := range below {
		if err := unix.Mount(filepath.Join(aside, m), filepath.Join("/dev", m), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mount /dev%s again: %w", m, err)
		}
	}
	if err := unix.Unmount(aside, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("copy of /dev: %w", err)
	}
	files := []string{channelPath}
	for k := range t.Count {
		files = append(files, DevFile(k))
		if k < t.UMADs {
			files = append(files, UMADFile(k))
		}
	}
	for _, name := range files {
		if err := unix.Mount(nullDevice, name, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("device file %s: %w", name, err)
		}
	}
	return nil
}

// mountsBelow lists the mount points directly below dir, without those below them.
func mountsBelow(dir string) ([]string, error) {
	b, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, err
	}
	var l []string
next:
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 5 {
			continue
		}
		rest, ok := strings.CutPrefix(f[4], dir+"/")
		if !ok || strings.Contains(rest, "\\") {
			continue
		}
		rest = "/" + rest
		for _, x := range l {
			if rest == x || strings.HasPrefix(rest, x+"/") {
				continue next
			}
		}
		l = append(l, rest)
	}
	return l, nil
}
