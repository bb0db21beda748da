//go:build hw

package mlx5

/*
#include "verbs.h"
*/
import "C"

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/verbs"
)

var _ verbs.Forker = (*process)(nil)

// ForkInit is ibv_fork_init.
func (p *process) ForkInit(t verbs.Thread) error {
	defer enterCall(t, "ibv_fork_init").leaveCall()
	return failed("ibv_fork_init", C.ibv_fork_init(), nil)
}

// IsForkInitialized is ibv_is_fork_initialized.
func (p *process) IsForkInitialized(t verbs.Thread) (verbs.ForkStatus, error) {
	defer enterCall(t, "ibv_is_fork_initialized").leaveCall()
	return verbs.ForkStatus(C.ibv_is_fork_initialized()), nil
}

// Fork forks this process. The child is C's alone: it writes to the buffer, and waits.
func (p *process) Fork(t verbs.Thread, b verbs.Buffer, value byte) (end func(verbs.Thread) error, err error) {
	defer enterCall(t, "fork").leaveCall()
	var up, down [2]int // from the child, and to it
	if err := unix.Pipe2(up[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("fork: pipe: %w", err)
	}
	if err := unix.Pipe2(down[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("fork: pipe: %w", err)
	}
	at := b.(*buffer).start()
	pid, errno := C.hw_fork(at, C.size_t(b.Len()), C.int(value), C.int(up[1]), C.int(down[0]), C.int(down[1]))
	_, _ = unix.Close(up[1]), unix.Close(down[0])
	if pid < 0 {
		_, _ = unix.Close(up[0]), unix.Close(down[1])
		return nil, fmt.Errorf("fork: %w", errno)
	}
	var word [1]byte
	if n, err := unix.Read(up[0], word[:]); n != 1 {
		err = fmt.Errorf("a forked child ended before it had written: %w", orIO(err))
		_, _ = unix.Close(down[1]), unix.Close(up[0])
		_, _ = unix.Wait4(int(pid), nil, 0, nil)
		return nil, err
	}
	return func(t verbs.Thread) error {
		defer enterCall(t, "the end of a forked child").leaveCall()
		_, _ = unix.Close(down[1]), unix.Close(up[0])
		var ws unix.WaitStatus
		if _, err := unix.Wait4(int(pid), &ws, 0, nil); err != nil || !ws.Exited() || ws.ExitStatus() != 0 {
			return fmt.Errorf("a forked child ended with status %#x: %w", uint32(ws), orIO(err))
		}
		return nil
	}, nil
}

func orIO(err error) error {
	if err == nil {
		return syscall.EIO
	}
	return err
}

// Remap puts fresh memory under the buffer.
func (b *buffer) Remap(t verbs.Thread) error {
	callingThread(t)
	if err := b.Unmap(t); err != nil {
		return err
	}
	_, err := unix.MmapPtr(-1, 0, b.at, uintptr(b.mapped), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED)
	if err != nil {
		return fmt.Errorf("map at %#x: %w", uintptr(b.at), err)
	}
	return nil
}
