package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// dontFork is ibv_dontfork_range for memory that the device is about to use.
func (p *Process) dontFork() { p.fork.late = p.fork.late || !p.fork.enabled }

// ForkInit is ibv_fork_init as rdma-core 44 has it: it asks the kernel nothing. (From 52 on it
// does nothing where the kernel copies.)
func (p *Process) ForkInit() error {
	if p.fork.late && !p.fork.enabled {
		return fmt.Errorf("fork_init: memory was registered before: %w", syscall.EINVAL)
	}
	p.fork.enabled = true
	return nil
}

// CopiesAll says whether a child gets a copy of all memory of the process: it does from a
// kernel that copies, unless the library keeps memory from it.
func (p *Process) CopiesAll() bool { return p.CopiesOnFork && !p.fork.enabled }

// ForkStatus is ibv_is_fork_initialized.
func (p *Process) ForkStatus() verbs.ForkStatus {
	switch {
	case p.CopiesOnFork:
		return verbs.ForkUnneeded
	case p.fork.enabled:
		return verbs.ForkEnabled
	}
	return verbs.ForkDisabled
}
