//go:build linux && amd64

package exec

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
	"github.com/rdmasim/rdmasim/attach/exec/ucm"
	"github.com/rdmasim/rdmasim/attach/exec/umad"
	"github.com/rdmasim/rdmasim/attach/exec/uverbs"
	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/kernel/cm"
)

// A channel file of rdma_cm (/dev/infiniband/rdma_cm) is the read end of a pipe in the hands of the
// program. While events wait there are bytes in the pipe, so that poll, select and epoll say what
// they say of a channel; its last close by any process closes the pipe. What a program writes to
// the descriptor the filter hands over by its number (channelRanges). The supervisor carries out
// the command, writes the answer into the program's memory, and then answers the call. A GET_EVENT
// that has to wait is answered later.

// maxTokens is how many bytes are in a pipe at most. Beyond the first they wake who waits by edges
// (EPOLLET).
const maxTokens = 256

// mostDrains empties a pipe that its program has made as large as it may
// (/proc/sys/fs/pipe-max-size, 1 MiB).
const mostDrains = 16

// filesOfChannel are the descriptors of the supervisor for a channel file.
const filesOfChannel = 1

// An umad file (/dev/infiniband/umadN) is served in the same way. Its reads are handed over, too,
// and what waits is a read.

// channel is an open channel file, or an umad file.
type channel struct {
	t *channels
	f interface {
		Readable() bool
		OnReadable(func())
		Close()
	}
	cm    *ucm.File    // f, if it is a channel file
	umad  *umad.File   // f, if it is an umad file
	dev   *device      // of an umad file
	inode uverbs.Inode // of the pipe
	pipe  int          // its other end
	proc  *process     // that opened it

	tokens  int       // bytes in the pipe
	news    int       // events since show
	due     bool      // serve will be called
	waiting []*waiter // in GET_EVENT, in order
	closed  bool      // no descriptor of it is left, but threads in GET_EVENT may be

}

// waiter is a thread in GET_EVENT, or in a read of an umad file.
type waiter struct {
	x    seccomp.Notif
	proc *process
}

// channels are the open channel files. Only the engine's thread uses them, but for watch.
type channels struct {
	s       *session
	cm      *cm.Manager
	byInode map[uverbs.Inode]*channel
	byPipe  map[int32]*channel
	epoll   int
	kick    int // eventfd, wakes watch
	waiters atomic.Int64
	quit    atomic.Bool
	full    func() // says that a process has no number left
	look    look   // of watch
}

func newChannels(s *session) (*channels, error) {
	t := &channels{s: s, cm: s.m.cm, byInode: map[uverbs.Inode]*channel{}, byPipe: map[int32]*channel{}, epoll: -1,
		full: warning("a process has as many channels of rdma_cm as descriptors of their numbers: more need a higher limit (ulimit -n)")}
	var err error
	if t.kick, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	if t.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err == nil {
		err = unix.EpollCtl(t.epoll, unix.EPOLL_CTL_ADD, t.kick, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(t.kick)})
	}
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return t, nil
}

// open answers an open of a device's umad file, or of the channel device. It runs on the engine's
// thread.
func (t *channels) open(l *seccomp.Listener, x *seccomp.Notif, flags uint64, d *device) {
	err := t.openFor(l, x, flags, d)
	if err == nil {
		return
	}
	if name := "rdma_cm"; t.s.refused != nil {
		if d != nil {
			name = "umad of " + d.name
		}
		t.s.refused("%s: %v", name, err)
	}
	_ = l.Fail(x.ID, errno(err))
}

func (t *channels) openFor(l *seccomp.Listener, x *seccomp.Notif, flags uint64, d *device) error {
	tid := int(x.PID)
	proc, err := t.s.procs.ofCaller(tid)
	if err != nil {
		return err
	}
	if err := t.s.m.loadCM(); err != nil {
		return err
	}
	if d != nil {
		if err := t.s.m.loadUMAD(); err != nil {
			return err
		}
		if err := t.s.ports.watch(); err != nil { // a subnet manager may change them
			return err
		}
	}
	if err := proc.files.Take(filesOfChannel); err != nil {
		return err
	}
	ch, err := t.create(l, x, proc, flags, d)
	if err != nil {
		proc.files.Give(filesOfChannel)
		return err
	}
	ch.proc.open++
	t.byInode[ch.inode], t.byPipe[int32(ch.pipe)] = ch, ch
	return nil
}

// create makes the pipe, gives the program its end, and answers the call.
func (t *channels) create(l *seccomp.Listener, x *seccomp.Notif, proc *process, flags uint64, d *device) (_ *channel, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, err
	}
	defer unix.Close(ends[0])
	defer func() {
		if err != nil {
			_ = unix.Close(ends[1])
		}
	}()
	if err := unix.SetNonblock(ends[0], flags&unix.O_NONBLOCK != 0); err != nil {
		return nil, err
	}
	st, err := statFD(os.Getpid(), ends[0])
	if err != nil {
		return nil, err
	}
	at, err := t.place(l, x, proc, ends[0], flags&unix.O_CLOEXEC != 0, d != nil)
	if err != nil {
		return nil, err
	}
	if err := unix.EpollCtl(t.epoll, unix.EPOLL_CTL_ADD, ends[1], &unix.EpollEvent{Fd: int32(ends[1])}); err != nil {
		return nil, err
	}
	ch := &channel{t: t, inode: uverbs.Inode{Dev: st.Dev, Ino: st.Ino}, pipe: ends[1], proc: proc, dev: d}
	if d != nil {
		f, err := t.s.m.umad.Open(d.kern)
		if err != nil {
			return nil, err
		}
		ch.umad = &umad.File{File: f, Logf: t.s.refused}
		ch.f = ch.umad
	} else {
		ch.cm = ucm.Open(t.cm.Open(kernel.Caller{}, proc.kern), t.s.m.number)
		ch.cm.Logf, ch.cm.Objects = t.s.refused, proc.objects
		ch.f = ch.cm
	}
	ch.f.OnReadable(ch.onReadable)
	_ = l.Return(x.ID, int64(at))
	return ch, nil
}

// find is the channel behind a descriptor of a thread, nil: it is another file.
func (t *channels) find(tid, fd int) (*channel, error) {
	st, err := statFD(tid, fd)
	if err != nil {
		return nil, err
	}
	return t.byInode[uverbs.Inode{Dev: st.Dev, Ino: st.Ino}], nil
}

// onReadable is called by the model in the middle of its work.
func (ch *channel) onReadable() {
	ch.news++
	if !ch.due {
		ch.due = true
		ch.t.s.eng.later(ch.serve)
	}
}

// serve gives events to those who wait for them, and shows whether some are left.
func (ch *channel) serve() {
	ch.due = false
	l := ch.t.s.notes.l
	for len(ch.waiting) > 0 && ch.f.Readable() {
		w := ch.waiting[0]
		ch.leave(0)
		if l.Valid(w.x.ID) {
			ch.t.command(l, &w.x, ch, w.proc)
		}
	}
	ch.show()
	ch.t.releaseClosed(ch)
}

// leave removes a waiter.
func (ch *channel) leave(i int) {
	ch.waiting[i].proc.waiting.Give(1)
	ch.waiting = append(ch.waiting[:i], ch.waiting[i+1:]...)
	ch.t.waiters.Add(-1)
}

// show brings the pipe in line with the queue of events.
func (ch *channel) show() {
	want := 0
	if ch.f.Readable() {
		want = min(max(ch.tokens+ch.news, 1), maxTokens)
	}
	ch.news = 0
	switch {
	case want > ch.tokens:
		n, err := unix.Write(ch.pipe, make([]byte, want-ch.tokens))
		if err == nil {
			ch.tokens += n
		}
	case want < ch.tokens:
		ch.drain()
	}
}

// drain empties the pipe by an end of the session's own, so that nothing of it waits for a program
// that reads there too.
func (ch *channel) drain() {
	ch.tokens = 0
	end, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", ch.pipe), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(end)
	var b [64 << 10]byte   // the capacity of a pipe
	for range mostDrains { // a program that goes on writing there is not read for as long as it does
		if n, err := unix.Read(end, b[:]); err != nil || n < len(b) {
			return
		}
	}
}

// lastClosed is the close of a channel file's last descriptor. A thread in GET_EVENT has the file
// open as long as it is there.
func (t *channels) lastClosed(ch *channel) {
	if len(ch.waiting) == 0 {
		t.release(ch)
		return
	}
	ch.closed = true
	_ = unix.EpollCtl(t.epoll, unix.EPOLL_CTL_DEL, ch.pipe, nil) // it has nothing more to say
}

// releaseClosed releases a channel file whose descriptors are closed and in which no thread is any
// more.
func (t *channels) releaseClosed(ch *channel) {
	if ch.closed && len(ch.waiting) == 0 {
		t.release(ch)
	}
}

// release is the end of a channel file.
func (t *channels) release(ch *channel) {
	if t.byInode[ch.inode] != ch {
		return
	}
	delete(t.byInode, ch.inode)
	delete(t.byPipe, int32(ch.pipe))
	for len(ch.waiting) > 0 {
		id := ch.waiting[0].x.ID
		ch.leave(0)
		_ = t.s.notes.l.Fail(id, syscall.EBADF)
	}
	ch.f.Close()
	_ = unix.Close(ch.pipe)
	ch.proc.open--
	ch.proc.files.Give(filesOfChannel)
	t.s.procs.removeEnded()
}

// closeAll releases what is open at the end of the session.
func (t *channels) closeAll() {
	for _, ch := range t.byPipe {
		t.release(ch)
	}
}

// reap releases the channels that programs have closed, on the engine's thread.
func (t *channels) reap() {
	if len(t.byPipe) == 0 {
		return
	}
	var events [64]unix.EpollEvent
	n, err := unix.EpollWait(t.epoll, events[:], 0)
	if err != nil {
		return
	}
	for _, e := range events[:n] {
		if ch := t.byPipe[e.Fd]; ch != nil && e.Events&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
			t.lastClosed(ch)
		}
	}
}

// cmCaller is a program that writes a command.
type cmCaller struct {
	caller
	t       *channels
	touched []*channel // other channels that the command is about
}

// Channel implements ucm.Caller.
func (c *cmCaller) Channel(fd int) (*ucm.File, error) {
	ch, err := c.t.find(c.tid, fd)
	if err != nil || ch == nil || ch.cm == nil {
		return nil, err
	}
	c.touched = append(c.touched, ch)
	return ch.cm, nil
}

// command carries out a command and answers the call, or lets the thread wait.
func (t *channels) command(l *seccomp.Listener, x *seccomp.Notif, ch *channel, proc *process) {
	c := &cmCaller{caller: caller{l: l, id: x.ID, tid: int(x.PID), proc: proc}, t: t}
	n := int64(x.Args[2])
	var e syscall.Errno
	var err error
	switch {
	case ch.cm != nil:
		e, err = ch.cm.Write(c, x.Args[1], x.Args[2])
	case x.Nr == unix.SYS_READ:
		var got int
		got, e, err = ch.umad.Read(c, x.Args[1], x.Args[2])
		n = int64(got)
	default:
		e = ch.umad.Write(c, x.Args[1], x.Args[2])
	}
	t.s.procs.streams.Flush()
	// The program may look at its descriptors as soon as it has the answer.
	ch.show()
	for _, other := range c.touched {
		other.show()
	}
	switch {
	case errors.Is(err, ucm.ErrWait), errors.Is(err, umad.ErrWait):
		t.wait(l, x, ch, proc)
	case e != 0:
		_ = l.Fail(x.ID, e)
	default:
		_ = l.Done(x.ID, n)
	}
}

// wait lets a thread wait for an event, if the descriptor is not one that does not block.
func (t *channels) wait(l *seccomp.Listener, x *seccomp.Notif, ch *channel, proc *process) {
	flags, err := fdFlags(int(x.PID), int(int32(x.Args[0])))
	switch {
	case err != nil:
		_ = l.Fail(x.ID, syscall.EBADF)
	case flags&unix.O_NONBLOCK != 0:
		_ = l.Fail(x.ID, syscall.EAGAIN)
	case proc.waiting.Take(1) != nil:
		_ = l.Fail(x.ID, syscall.ENOMEM)
	default:
		ch.waiting = append(ch.waiting, &waiter{x: *x, proc: proc})
		t.waiters.Add(1)
		t.wake()
	}
}

func (t *channels) wake() {
	one := [8]byte{1}
	_, _ = unix.Write(t.kick, one[:])
}
