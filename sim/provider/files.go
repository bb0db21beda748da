package provider

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// Folder is the folder in which the processes of a host open files. Files have names and inodes,
// and no contents.
type Folder struct {
	inodes map[string]kernel.Inode
	last   uint64
}

// hostFileSystem is the device number of the folder.
const hostFileSystem = 1

// OpenFile is open(2). ENOENT: there is no such file, and O_CREAT is not given. EEXIST: there is,
// and O_EXCL is given with it. EINVAL: no name.
func (p *Process) OpenFile(vt verbs.Thread, name string, flags int) (int, error) {
	Of(vt).P.Sync() // processes share the folder
	if name == "" || strings.Contains(name, "/") {
		return -1, fmt.Errorf("open %q: a name without slashes is wanted: %w", name, syscall.EINVAL)
	}
	f := p.Folder
	inode, found := f.inodes[name]
	switch {
	case !found && flags&syscall.O_CREAT == 0:
		return -1, fmt.Errorf("open %q: %w", name, syscall.ENOENT)
	case found && flags&(syscall.O_CREAT|syscall.O_EXCL) == syscall.O_CREAT|syscall.O_EXCL:
		return -1, fmt.Errorf("open %q: %w", name, syscall.EEXIST)
	case !found:
		if f.inodes == nil {
			f.inodes = map[string]kernel.Inode{}
		}
		f.last++
		inode = kernel.Inode{Dev: hostFileSystem, Ino: f.last}
		f.inodes[name] = inode
	}
	return p.openFD(&descriptor{file: inode}), nil
}

// RemoveFile is unlink(2): who has the file open keeps its inode.
func (p *Process) RemoveFile(vt verbs.Thread, name string) error {
	Of(vt).P.Sync()
	if _, found := p.Folder.inodes[name]; !found {
		return fmt.Errorf("unlink %q: %w", name, syscall.ENOENT)
	}
	delete(p.Folder.inodes, name)
	return nil
}

// inodeOf is the inode behind a descriptor: EBADF when it is not open. All device files and the
// null device are files, too.
func (p *Process) inodeOf(fd int) (kernel.Inode, error) {
	i := fd - firstFD
	if i < 0 || i >= len(p.fds) || p.fds[i] == nil {
		return kernel.Inode{}, fmt.Errorf("descriptor %d: %w", fd, syscall.EBADF)
	}
	return p.fds[i].file, nil
}
