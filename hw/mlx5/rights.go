//go:build hw

package mlx5

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/verbs"
)

// DropRights implements verbs.Dropper. Capabilities are a thread's own, and a thread here
// is one of the operating system; the limit is the process's.
func (p *process) DropRights(t verbs.Thread, memlock uint64) error {
	callingThread(t)
	limit := unix.Rlimit{}
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return fmt.Errorf("memlock limit: %w", err)
	}
	if memlock > limit.Cur {
		return fmt.Errorf("memlock limit %d, and it is %d already: %w", memlock, limit.Cur, syscall.EINVAL)
	}
	limit.Cur = memlock
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return fmt.Errorf("memlock limit: %w", err)
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&head, &caps[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	const give = 1<<unix.CAP_NET_RAW | 1<<unix.CAP_IPC_LOCK | 1<<unix.CAP_NET_BIND_SERVICE // all are in the first word
	caps[0].Effective &^= give
	caps[0].Permitted &^= give
	caps[0].Inheritable &^= give
	if err := unix.Capset(&head, &caps[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}

var _ verbs.Dropper = (*process)(nil)
