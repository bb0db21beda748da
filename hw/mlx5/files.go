//go:build hw

package mlx5

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/internal/cli/outfile"
	"github.com/rdmasim/rdmasim/verbs"
)

var _ verbs.FileOpener = (*process)(nil)

// path is where a file of the testbed's folder lies. EINVAL: no name. EOPNOTSUPP: the process runs
// on another machine than the testbed, which has no folder there.
func (p *process) path(name string) (string, error) {
	if name == "" || strings.Contains(name, "/") || name == "." || name == ".." {
		return "", fmt.Errorf("file %q: want a name without slashes: %w", name, syscall.EINVAL)
	}
	dir, err := p.bed.files()
	return filepath.Join(dir, name), err
}

// files is the folder of the testbed, which is made when it is first asked for, and removed with
// the testbed, or by the next one if the process is killed.
func (tb *Testbed) files() (string, error) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if tb.folder == "" {
		dir, err := outfile.TempDir(outfile.CaseFolder)
		if err != nil {
			return "", err
		}
		tb.folder, tb.made = dir.Path, dir
	}
	if _, err := os.Stat(tb.folder); err != nil {
		return "", fmt.Errorf("files on another machine: %w", syscall.EOPNOTSUPP)
	}
	return tb.folder, nil
}

// OpenFile is open(2).
func (p *process) OpenFile(t verbs.Thread, name string, flags int) (int, error) {
	callingThread(t)
	path, err := p.path(name)
	if err != nil {
		return -1, err
	}
	return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|flags&(unix.O_CREAT|unix.O_EXCL), 0o600)
}

// RemoveFile is unlink(2).
func (p *process) RemoveFile(t verbs.Thread, name string) error {
	callingThread(t)
	path, err := p.path(name)
	if err != nil {
		return err
	}
	return unix.Unlink(path)
}
