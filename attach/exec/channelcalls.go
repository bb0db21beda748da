//go:build linux && amd64

package exec

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/procmem"
	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
	"github.com/rdmasim/rdmasim/attach/exec/tree"
	"github.com/rdmasim/rdmasim/uapi"
)

// channelRanges are the numbers of descriptors of channel files. The first lie where select(2) and
// the usual limit of descriptors end. The others are for programs with hundreds of channels, and
// below 65,536, since a library keeps tables by these numbers. The last are those of umad files.
var channelRanges = [...]struct{ first, end int }{{768, firstNetlinkFD}, {8192, 16384}, {firstUMADFD, 768}}

// firstUMADFD is the first number of umad files. Of these reads are handed over, too.
const firstUMADFD = 736

// umadRange is the place of their numbers in channelRanges.
const umadRange = 2

// umadRules hand over what programs do to umad files beside what is done to channel files.
func umadRules() []seccomp.Rule {
	r := []seccomp.Rule{numbered(unix.SYS_READ, firstUMADFD, channelRanges[umadRange].end)}
	for _, call := range []uint32{uapi.UMADRegisterAgent, uapi.UMADUnregisterAgent, uapi.UMADEnablePKey, uapi.UMADRegisterAgent2} {
		r = append(r, numbered(unix.SYS_IOCTL, firstUMADFD, channelRanges[umadRange].end, seccomp.Test{Arg: 1, Value: call}))
	}
	return r
}

// restartSys is ERESTARTSYS, which the kernel turns into EINTR or a restart of the call, as the
// handler of the signal has it.
const restartSys = 512

// channelRules hand over what programs do to channel files; with paths, the filter hands over all
// opens anyway.
func channelRules(paths bool) (r []seccomp.Rule) {
	for _, x := range channelRanges {
		r = append(r, numbered(unix.SYS_WRITE, x.first, x.end), numbered(unix.SYS_DUP, x.first, x.end),
			numbered(unix.SYS_FCNTL, x.first, x.end, seccomp.Test{Arg: 1, Value: unix.F_DUPFD}),
			numbered(unix.SYS_FCNTL, x.first, x.end, seccomp.Test{Arg: 1, Value: unix.F_DUPFD_CLOEXEC}))
	}
	if paths {
		return r
	}
	// Few files that exist are opened for reading and writing.
	const looked = unix.O_ACCMODE | unix.O_CREAT | unix.O_DIRECTORY | unix.O_PATH
	return append(r,
		seccomp.Rule{Nr: unix.SYS_OPEN, Tests: []seccomp.Test{{Arg: 1, Mask: looked, Value: unix.O_RDWR}}, Ret: seccomp.Notify},
		seccomp.Rule{Nr: unix.SYS_OPENAT, Tests: []seccomp.Test{{Arg: 2, Mask: looked, Value: unix.O_RDWR}}, Ret: seccomp.Notify})
}

// place puts a file into the caller's table, at a number by which the filter knows it. Where the
// limit of descriptors is lower than the numbers, it is raised for a moment, as far as it may be:
// who has a descriptor keeps it.
func (t *channels) place(l *seccomp.Listener, x *seccomp.Notif, proc *process, fd int, cloexec, umad bool) (int, error) {
	tid := int(x.PID)
	for i, r := range channelRanges {
		if umad != (i == umadRange) {
			continue
		}
		at, err := freeFD(tid, r.first, r.end, proc.channels[i])
		if errors.Is(err, errNoNumber) && i >= umadRange-1 {
			return t.placeAbove(l, x, proc, fd, cloexec, i)
		}
		if errors.Is(err, errNoNumber) {
			continue
		}
		if err != nil {
			return 0, err
		}
		proc.channels[i] = at + 1 - r.first
		return at, l.ReplaceFD(x.ID, fd, at, cloexec)
	}
	return 0, unix.EMFILE
}

// placeAbove is place beyond the limit of descriptors.
func (t *channels) placeAbove(l *seccomp.Listener, x *seccomp.Notif, proc *process, fd int, cloexec bool, last int) (int, error) {
	tid := int(x.PID)
	pid, err := threadGroup(tid)
	if err != nil {
		return 0, err
	}
	var was unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &was); err != nil {
		return 0, err
	}
	r := channelRanges[last]
	raised := unix.Rlimit{Cur: min(was.Max, uint64(r.end)), Max: was.Max}
	if raised.Cur <= was.Cur || unix.Prlimit(pid, unix.RLIMIT_NOFILE, &raised, nil) != nil {
		t.full()
		return 0, fmt.Errorf("%w: %w", errNoNumber, unix.EMFILE)
	}
	defer func() { _ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, &was, nil) }()
	at, err := freeFD(tid, r.first, r.end, proc.channels[last])
	if err != nil {
		t.full()
		return 0, fmt.Errorf("%w: %w", err, unix.EMFILE)
	}
	proc.channels[last] = at + 1 - r.first
	return at, l.ReplaceFD(x.ID, fd, at, cloexec)
}

// openChannelPath answers an open where the files of devices are mounted: that of the channel
// device.
func (n *notifier) openChannelPath(x *seccomp.Notif, p *procmem.Process) {
	flags := x.Args[1]
	if x.Nr == unix.SYS_OPENAT {
		flags = x.Args[2]
	}
	name, ok := cString(p, x.Args[pathArg(x.Nr)])
	if k, umad := tree.UMADIndex(name); ok && umad && n.s.m.net.InfiniBand() && k < len(n.s.m.devs) {
		n.openChannel(x, flags, n.s.m.devs[k])
	} else if ok && tree.IsChannel(name) {
		n.openChannel(x, flags, nil)
	} else {
		_ = n.l.Continue(x.ID)
	}
}

// openChannel opens the umad file of a device, or the channel device.
func (n *notifier) openChannel(x *seccomp.Notif, flags uint64, d *device) {
	n.askedForDevices.Store(true)
	n.s.eng.do(func() { n.s.channels.open(n.l, x, flags, d) })
}

// writeChannel answers a write to a descriptor that may be of a channel file, or a read of one that
// may be of an umad file.
func (n *notifier) writeChannel(x *seccomp.Notif) {
	tid, fd := int(x.PID), int(int32(x.Args[0]))
	if st, err := statFD(tid, fd); err != nil || !isPipe(st) {
		_ = n.l.Continue(x.ID)
		return
	}
	n.s.eng.do(func() {
		n.s.files.reap()
		n.s.channels.reap()
		ch, err := n.s.channels.find(tid, fd)
		if err != nil || ch == nil || x.Nr == unix.SYS_READ && ch.umad == nil {
			_ = n.l.Continue(x.ID)
			return
		}
		proc, err := n.s.procs.ofThread(tid)
		if err != nil {
			_ = n.l.Fail(x.ID, errno(err))
			return
		}
		if n.l.Valid(x.ID) {
			n.s.channels.command(n.l, x, ch, proc)
		}
	})
}

// dupChannel answers dup and its like for a descriptor that may be of a channel file: the duplicate
// has to have a number that the filter knows too.
func (n *notifier) dupChannel(x *seccomp.Notif) {
	tid, fd := int(x.PID), int(int32(x.Args[0]))
	n.s.eng.do(func() {
		ch, err := n.s.channels.find(tid, fd)
		if err != nil || ch == nil {
			_ = n.l.Continue(x.ID)
			return
		}
		if err := n.s.channels.dup(n.l, x, fd, ch.umad != nil); err != nil {
			_ = n.l.Fail(x.ID, errno(err))
		}
	})
}

func (t *channels) dup(l *seccomp.Listener, x *seccomp.Notif, fd int, umad bool) error {
	proc, err := t.s.procs.ofThread(int(x.PID))
	if err != nil {
		return err
	}
	pid, err := threadGroup(int(x.PID))
	if err != nil {
		return err
	}
	p, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(p)
	copied, err := unix.PidfdGetfd(p, fd, 0)
	if err != nil {
		return err
	}
	defer unix.Close(copied)
	at, err := t.place(l, x, proc, copied, x.Nr == unix.SYS_FCNTL && x.Args[1] == unix.F_DUPFD_CLOEXEC, umad)
	if err != nil {
		return err
	}
	return l.Return(x.ID, int64(at))
}

func isPipe(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFIFO }
