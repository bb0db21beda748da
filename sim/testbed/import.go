package testbed

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

var (
	_ verbs.DescriptorTaker = (*process)(nil)
	_ verbs.Importer        = (*process)(nil)
	_ verbs.FileOpener      = (*process)(nil)
)

// OpenFile is open(2) in the folder of the host.
func (p *process) OpenFile(t verbs.Thread, name string, flags int) (int, error) {
	return p.lib.OpenFile(t, name, flags)
}

// RemoveFile is unlink(2).
func (p *process) RemoveFile(t verbs.Thread, name string) error { return p.lib.RemoveFile(t, name) }

// DupCommandFD duplicates the descriptor of a context's device file.
func (p *process) DupCommandFD(t verbs.Thread, c verbs.Context) (int, error) {
	return p.lib.DupCommandFD(t, c)
}

// OpenNull opens the null device.
func (p *process) OpenNull(t verbs.Thread) (int, error) { return p.lib.OpenNull(t) }

// CloseFD closes a descriptor.
func (p *process) CloseFD(t verbs.Thread, fd int) error { return p.lib.CloseFD(t, fd) }

// ImportDevice is ibv_import_device.
func (p *process) ImportDevice(t verbs.Thread, fd int) (verbs.Context, error) {
	return p.lib.ImportDevice(t, fd)
}

// PID is the process's number among all of the testbed, from 1 on.
func (p *process) PID() int {
	for i, x := range p.host.tb.procs {
		if x == p {
			return i + 1
		}
	}
	return 0
}

// TakeFD is pidfd_getfd.
func (p *process) TakeFD(t verbs.Thread, pid, fd int) (int, error) {
	all := p.host.tb.procs
	if pid < 1 || pid > len(all) || all[pid-1].host != p.host || all[pid-1].dead {
		return -1, fmt.Errorf("take a descriptor of process %d: %w", pid, syscall.ESRCH)
	}
	return p.lib.TakeFD(t, &all[pid-1].lib, fd)
}
