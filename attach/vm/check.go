package vm

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

var (
	release = regexp.MustCompile(`^[1-9][0-9]*\.[0-9]+$`)
	size    = regexp.MustCompile(`^([1-9][0-9]*)([MG])(iB)?$`)
)

// leastMemory is what a guest boots with, in MiB; mostMemory is more than any machine has.
const leastMemory, mostMemory = 256, 1 << 24

// Check says what is wrong with the values, in the words of the flags of rdmasim vm. Memory becomes
// what QEMU reads.
func (cfg *Config) Check() error {
	if strings.Contains(cfg.Kernel, "/") || strings.HasSuffix(cfg.Kernel, ".deb") {
		if _, err := os.Stat(cfg.Kernel); err != nil {
			return fmt.Errorf("--kernel %q: there is no such file", cfg.Kernel)
		}
	} else if cfg.Kernel != "newest" && !release.MatchString(cfg.Kernel) {
		return fmt.Errorf("--kernel %q: a series such as 6.1 or 6.12 is needed, newest, a package linux-image-*.deb, or a folder with boot/vmlinuz-* and lib/modules", cfg.Kernel)
	}
	if cfg.Timeout <= 0 {
		return fmt.Errorf("--timeout %v: a time above 0 is needed, such as 10m", cfg.Timeout)
	}
	memory := size.FindStringSubmatch(cfg.Memory)
	if memory == nil {
		return fmt.Errorf("--memory %q: a size such as 512M or 3G is needed", cfg.Memory)
	}
	mib, err := strconv.ParseUint(memory[1], 10, 32)
	if memory[2] == "G" {
		mib <<= 10
	}
	if err != nil || mib < leastMemory || mib > mostMemory {
		return fmt.Errorf("--memory %s: from %dM to %dG are possible", cfg.Memory, leastMemory, mostMemory>>10)
	}
	cfg.Memory = strings.TrimSuffix(cfg.Memory, "iB")
	for _, f := range []struct{ flag, path string }{{"--folder", cfg.Folder}, {"--root", cfg.UserSpace}} {
		if st, err := os.Stat(f.path); f.path != "" && f.path != "newest" && (err != nil || !st.IsDir()) {
			return fmt.Errorf("%s %q: there is no such folder", f.flag, f.path)
		}
	}
	for _, p := range cfg.Forward {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("--forward %q: a TCP port is needed, such as 18515", p)
		}
	}
	if cfg.Cache == "" && os.Getenv("XDG_CACHE_HOME") == "" && os.Getenv("HOME") == "" {
		return fmt.Errorf("neither HOME nor XDG_CACHE_HOME says where kernels and QEMU are kept: name a folder with --cache")
	}
	if st, err := os.Stat(cfg.Cache); err == nil && !st.IsDir() {
		return fmt.Errorf("--cache %q: it is not a folder", cfg.Cache)
	}
	folder, err := filepath.Abs(cfg.Folder)
	if err != nil {
		return fmt.Errorf("the folder in which this command was started is gone, and the guest would share it: change to one that is there, or use --folder")
	}
	if folder, err = filepath.EvalSymlinks(folder); err == nil && folder == "/" {
		return fmt.Errorf("the root of this machine cannot be the folder that the guest may write to: start the command in another one, or name one with --folder")
	}
	for _, s := range cfg.Sockets {
		if st, err := os.Stat(s); err != nil || st.Mode().Type() != fs.ModeSocket {
			return fmt.Errorf("--connect %q: there is no such socket: start rdmasim pci --socket first, and name one that it prints", s)
		}
	}
	return nil
}
