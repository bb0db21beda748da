//go:build linux && amd64

package exec

import (
	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/procmem"
	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/uapi"
)

// A device that pages on demand has to forget pages before their process changes them. The kernel
// tells its own devices; here the calls that change a program's memory are told by the filter, and
// go on when the pages are forgotten. What the call and other threads do meanwhile needs no trust:
// a translation of a program's memory leads to what is there then.

// Of linux/sched.h, linux/shm.h and asm-generic/mman-common.h.
const (
	shmRemap                  = 0o40000
	madvDontneedLocked        = 24
	madvCollapse              = 25
	madvGuardInstall          = 102
	maxUserAddress            = 1 << 47
	fixed                     = unix.MAP_FIXED
	sharesMemory              = unix.CLONE_VM
	keepsRightToWrite         = unix.PROT_WRITE
	everything         uint64 = maxUserAddress
)

// memoryRules hand over the calls that take memory away, move it, narrow its rights, or share it
// with a child. Not handed over are those that can only give a program more: the end of the heap
// that moves is, since its direction does not show.
func memoryRules() []seccomp.Rule {
	r := []seccomp.Rule{
		{Nr: unix.SYS_MMAP, Tests: []seccomp.Test{{Arg: 3, Mask: fixed, Value: fixed}}},
		{Nr: unix.SYS_MUNMAP}, {Nr: unix.SYS_MREMAP}, {Nr: unix.SYS_BRK}, {Nr: unix.SYS_REMAP_FILE_PAGES}, {Nr: unix.SYS_SHMDT},
		{Nr: unix.SYS_SHMAT, Tests: []seccomp.Test{{Arg: 2, Mask: shmRemap, Value: shmRemap}}},
		{Nr: unix.SYS_MPROTECT, Tests: []seccomp.Test{{Arg: 2, Mask: keepsRightToWrite, Value: 0}}},
		{Nr: unix.SYS_PKEY_MPROTECT, Tests: []seccomp.Test{{Arg: 2, Mask: keepsRightToWrite, Value: 0}}},
		{Nr: unix.SYS_FORK}, {Nr: unix.SYS_CLONE3},
		{Nr: unix.SYS_CLONE, Tests: []seccomp.Test{{Arg: 0, Mask: sharesMemory, Value: 0}}},
	}
	for _, advice := range []uint32{
		unix.MADV_DONTNEED, unix.MADV_FREE, unix.MADV_REMOVE, unix.MADV_PAGEOUT, madvDontneedLocked, madvCollapse, madvGuardInstall,
	} {
		r = append(r, seccomp.Rule{Nr: unix.SYS_MADVISE, Tests: []seccomp.Test{{Arg: 2, Value: advice}}})
	}
	for i := range r {
		r[i].Ret = seccomp.Notify
	}
	return r
}

// memory answers a call that changes memory. While no program has any that is paged on demand it
// costs nothing but the notice.
func (n *notifier) memory(x *seccomp.Notif) {
	if n.ending.Load() && (x.Nr == unix.SYS_FORK || x.Nr == unix.SYS_CLONE || x.Nr == unix.SYS_CLONE3) {
		_ = n.l.Fail(x.ID, unix.EAGAIN)
		return
	}
	if !n.s.procs.streams.Watched() {
		_ = n.l.Continue(x.ID)
		return
	}
	n.s.eng.post(func() {
		n.forget(x)
		_ = n.l.Continue(x.ID)
	})
}

// forget has the devices forget what a call is about to change, on the engine's thread.
func (n *notifier) forget(x *seccomp.Notif) {
	pid, err := threadGroup(int(x.PID))
	if err != nil {
		return
	}
	p := n.s.procs.byID[pid]
	if p == nil || !p.kern.Space.Watched() || !p.mem.Alive() || !n.l.Valid(x.ID) {
		return
	}
	changes(p.mem, x, func(at, size uint64) {
		if first, end := at&^(pageSize-1), at+size; end > at && at < maxUserAddress {
			last := (min(end, maxUserAddress) + pageSize - 1) &^ (pageSize - 1)
			p.kern.Space.Invalidate(mem.VA(first), last-first)
		}
	})
	n.s.procs.streams.Flush()
	n.s.procs.streams.DropReadAhead()
}

// changes calls f for each range of addresses whose pages a call of a process may change.
func changes(p *procmem.Process, x *seccomp.Notif, f func(at, size uint64)) {
	a := &x.Args
	switch x.Nr {
	case unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_PKEY_MPROTECT, unix.SYS_MADVISE, unix.SYS_REMAP_FILE_PAGES:
		f(a[0], a[1])
	case unix.SYS_MREMAP:
		f(a[0], a[1]) // the kernel may move a mapping that grows, or not
		if a[3]&unix.MREMAP_FIXED != 0 {
			f(a[4], a[2])
		}
	case unix.SYS_BRK:
		shrink(p, a[0], f)
	case unix.SYS_SHMDT:
		_ = p.MappingsFrom(mem.VA(a[0]), func(m *procmem.Mapping) bool {
			if uint64(m.Start) == a[0] {
				f(a[0], uint64(m.End-m.Start))
			}
			return false
		})
	case unix.SYS_SHMAT:
		f(0, everything) // the size is not an argument
	case unix.SYS_FORK, unix.SYS_CLONE:
		copied(p, f)
	case unix.SYS_CLONE3:
		var flags [uapi.CloneFlagsSize]byte
		if p.ReadAt(mem.VA(a[0]), flags[:]) != nil || uapi.CloneFlags(flags[:])&sharesMemory == 0 {
			copied(p, f)
		}
	}
}

// shrink is brk: what lies from the new end to that of the heap goes.
func shrink(p *procmem.Process, end uint64, f func(at, size uint64)) {
	if end == 0 || end >= maxUserAddress {
		return // asks where it is
	}
	end = (end + pageSize - 1) &^ (pageSize - 1)
	_ = p.MappingsFrom(mem.VA(end), func(m *procmem.Mapping) bool {
		if uint64(m.Start) <= end && m.Inode == 0 && !m.Shared {
			f(end, uint64(m.End)-end)
		}
		return false
	})
}

// copied is fork: the pages of private mappings that may be written are no longer the process's
// own.
func copied(p *procmem.Process, f func(at, size uint64)) {
	_ = p.Mappings(func(m *procmem.Mapping) bool {
		if !m.Shared && m.Rights&mem.Write != 0 {
			f(uint64(m.Start), uint64(m.End-m.Start))
		}
		return true
	})
}
