//go:build hw

package mlx5

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Where a device of the kernel's is seen, and where a program opens it.
const (
	deviceFiles = "/dev/infiniband/"
	verbsClass  = "/sys/class/infiniband_verbs"
)

// unopened says why a device cannot be opened, and what to do. The library's own errno is that of
// its last try elsewhere, so the device file is asked.
func unopened(device, file string, err error) error {
	if e := unix.Access(file, unix.R_OK|unix.W_OK); errors.Is(e, syscall.EACCES) || errors.Is(e, syscall.EPERM) {
		return fmt.Errorf("no permission on %s of %s: run as root, or let your user read and write it (%w)", file, device, syscall.EACCES)
	}
	return err
}

// hidden says that the kernel has a device (of any name, if none is given) which the library
// leaves out because its device file is missing, else nil.
func hidden(device string) error {
	entries, _ := filepath.Glob(verbsClass + "/*/ibdev")
	for _, e := range entries {
		name, err := os.ReadFile(e)
		file := deviceFiles + filepath.Base(filepath.Dir(e))
		if err != nil || device != "" && device != strings.TrimSpace(string(name)) {
			continue
		}
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%s has no device file (%w): is udev running, and does this container have it?", strings.TrimSpace(string(name)), err)
		}
	}
	return nil
}
