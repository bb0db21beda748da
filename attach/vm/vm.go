// Package vm boots guests under QEMU, emulated or accelerated, with RDMA devices: a Debian kernel
// of a chosen series, the host's root read-only below a layer in memory, or a user space of the
// guest's own. The work is that of the scripts in this package, which the lab of Soft-RoCE uses too
// (scripts/lab); they need bash, busybox, cpio, kmod and xz, and download kernels and, where the
// system's QEMU is older than 10.1, a QEMU from Debian.
package vm

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

//go:embed scripts
var scripts embed.FS

// Config says what to boot, and what to run in it.
type Config struct {
	// Sockets are those of the servers of vfio-user, one for each function that the guest has.
	Sockets []string
	// Wire is the socket through which the guest may watch and disturb the wire; empty: it may not.
	Wire string
	// Kernel is the series, as 6.12, or newest: the newest that Debian has. A path is that of a
	// kernel of one's own: a package linux-image-*.deb, or a folder with boot/vmlinuz-* and
	// lib/modules.
	Kernel string
	// UserSpace is empty for the host's root, "newest" for the newest of Debian, or a folder.
	UserSpace string
	// Folder is mounted writable at its own path; empty: the current one.
	Folder string
	// Cache is where kernels and QEMU are kept; empty: rdmasim/vm in the user's cache folder.
	Cache string
	// Memory of the guest as QEMU has it, such as 3G.
	Memory string
	// Timeout ends the guest.
	Timeout time.Duration
	// Net gives the guest an interface of QEMU's own network, on which this machine is 10.0.2.2.
	Net bool
	// Forward are TCP ports of this machine's loopback interface that lead to the same ports of the
	// guest (with Net).
	Forward []string
	// IP has InfiniBand functions have IP addresses.
	IP bool
	// Dmesg is a file for the log of the guest's kernel; empty: none.
	Dmesg string
	// Args are the command and its arguments. Without any, a shell on the console.
	Args []string

	Stdout, Stderr io.Writer
}

// Run boots the guest and returns the exit status of its command, or 2, with a sentence on Stderr,
// when a value cannot be or packages are missing here. When ctx ends the guest is ended.
func Run(ctx context.Context, cfg *Config) (int, error) {
	dir, err := unpack()
	if err != nil {
		return 0, err
	}
	defer func() { _ = dir.Remove() }()
	c := exec.CommandContext(ctx, filepath.Join(dir.Path, "scripts", "boot"), cfg.flags()...)
	c.Stdout, c.Stderr, c.Stdin = cfg.Stdout, cfg.Stderr, nil
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if len(cfg.Args) == 0 {
		c.Stdin = os.Stdin // and the terminal's own group
	} else {
		c.SysProcAttr.Setpgid = true
	}
	c.Cancel = func() error {
		if c.SysProcAttr.Setpgid {
			return syscall.Kill(-c.Process.Pid, syscall.SIGTERM)
		}
		return c.Process.Signal(syscall.SIGTERM)
	}
	c.WaitDelay = 10 * time.Second
	err = c.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode(), nil
	case err != nil:
		return 0, fmt.Errorf("the guest: %w", err)
	}
	return 0, nil
}

func (cfg *Config) flags() []string {
	a := []string{"--device", "mlx5"}
	for _, s := range cfg.Sockets {
		a = append(a, "--socket", s)
	}
	for _, f := range []struct{ name, value string }{
		{"--wire", cfg.Wire}, {"--kernel", cfg.Kernel}, {"--root", cfg.UserSpace}, {"--folder", cfg.Folder}, {"--cache", cfg.Cache},
		{"--memory", cfg.Memory}, {"--dmesg", cfg.Dmesg},
	} {
		if f.value != "" {
			a = append(a, f.name, f.value)
		}
	}
	if cfg.Net {
		a = append(a, "--net")
	}
	for _, p := range cfg.Forward {
		a = append(a, "--forward", p)
	}
	if cfg.IP {
		a = append(a, "--ip")
	}
	if cfg.Timeout > 0 {
		a = append(a, "--timeout", strconv.Itoa(max(1, int(cfg.Timeout/time.Second))))
	}
	return append(append(a, "--"), cfg.Args...)
}

// unpack writes the scripts into a folder of their own.
func unpack() (*outfile.Dir, error) {
	dir, err := outfile.TempDir("rdmasim-guest")
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(scripts, "scripts", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return os.MkdirAll(filepath.Join(dir.Path, name), 0o755)
		}
		b, err := scripts.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir.Path, name), b, 0o755)
	})
	if err != nil {
		_ = dir.Remove()
		return nil, fmt.Errorf("the scripts that boot guests: %w", err)
	}
	return dir, nil
}
