//go:build linux

package uverbs

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/uapi"
)

// owner is a queue that events are about.
type owner struct {
	handle uint64     // what the program calls it
	async  *eventPipe // for its asynchronous events; nil: the file's first
}

// own gives a queue a cookie for the kernel model.
func (f *File) own(o *owner) uint64 {
	f.cookies++
	f.owners[f.cookies] = o
	return f.cookies
}

// channel is a completion channel: the kernel's and the pipe that the program reads.
type channel struct {
	k    *kernel.Channel
	pipe *eventPipe
}

// createChannel is CREATE_COMP_CHANNEL.
func (f *File) createChannel(c Caller, w *uapi.Write) error {
	f.closeAbandonedChannels()
	k, err := f.u.CreateChannel(noCaller)
	if err != nil {
		return err
	}
	back := func() error { return f.u.DestroyChannel(noCaller, k) }
	p, fd, err := newEventPipe(c, uapi.CompEventSize, f.Descriptors)
	if err != nil {
		return undo(err, back)
	}
	r := uapi.CreateCompChannelResp(make([]byte, uapi.CreateCompChannelRespSize))
	r.SetFD(uint32(fd))
	if err := w.Respond(r); err != nil {
		c.Retract(fd)
		p.close()
		return undo(err, back)
	}
	ch := &channel{k: k, pipe: p}
	k.OnEvent(func() { f.completion(ch) })
	f.channels[p.inode] = ch
	return nil
}

// closeAbandonedChannels closes the channels whose descriptors are all closed and that no CQ
// reports to.
func (f *File) closeAbandonedChannels() {
	for in, ch := range f.channels {
		if ch.pipe.abandoned() && f.u.DestroyChannel(noCaller, ch.k) == nil {
			ch.pipe.close()
			delete(f.channels, in)
		}
	}
}

// channelOf is the channel that an attribute names, nil when it was not given: EBADF
// for a descriptor that is no channel of this file.
func (f *File) channelOf(c Caller, k *uapi.Call, id uint16) (*channel, error) {
	fd, ok := k.FD(id)
	if !ok {
		return nil, nil
	}
	in, err := c.Inode(fd)
	if err != nil {
		return nil, fmt.Errorf("channel: %w", err)
	}
	ch := f.channels[in]
	if ch == nil {
		return nil, fmt.Errorf("descriptor %d is not a completion channel: %w", fd, syscall.EBADF)
	}
	return ch, nil
}

// completion moves an event of the kernel's channel into the pipe.
func (f *File) completion(ch *channel) {
	cookie, err := ch.k.Wait(noCaller, 0)
	if err != nil {
		return
	}
	e := uapi.CompEvent(make([]byte, uapi.CompEventSize))
	if o := f.owners[cookie]; o != nil {
		e.SetCQHandle(o.handle)
	}
	ch.pipe.push(record{cookie, e})
}

// allocAsync is ASYNC_EVENT_ALLOC. The first file is that of queues which name none, and has what
// came before.
func (f *File) allocAsync(c Caller, k *uapi.Call) error {
	f.closeAbandonedAsync()
	p, fd, err := newEventPipe(c, uapi.AsyncEventSize, f.Descriptors)
	if err != nil {
		return err
	}
	if err := k.SetNew(uapi.AsyncEventAllocFD, uint64(fd)); err != nil {
		c.Retract(fd)
		p.close()
		return err
	}
	if f.async != nil {
		f.more = append(f.more, p)
		return nil
	}
	f.async = p
	f.u.OnAsync(f.asyncEvent)
	for f.asyncOnce() { // what came before
	}
	return nil
}

// asyncFiles are all files for asynchronous events.
func (f *File) asyncFiles() []*eventPipe {
	if f.async == nil {
		return nil
	}
	return append([]*eventPipe{f.async}, f.more...)
}

// closeAbandonedAsync closes the files of imported contexts that were closed. A queue that was made
// with one tells nobody any more.
func (f *File) closeAbandonedAsync() {
	f.more = slices.DeleteFunc(f.more, func(p *eventPipe) bool {
		gone := p.abandoned()
		if gone {
			p.close()
		}
		return gone
	})
}

// asyncOf is the async file that an attribute names, or the first: EBADF for a descriptor that is
// none of this file.
func (f *File) asyncOf(c Caller, k *uapi.Call, id uint16) (*eventPipe, error) {
	fd, ok := k.FD(id)
	if !ok {
		return f.async, nil
	}
	in, err := c.Inode(fd)
	if err != nil {
		return nil, fmt.Errorf("async file: %w", err)
	}
	for _, p := range f.asyncFiles() {
		if p.inode == in {
			return p, nil
		}
	}
	return nil, fmt.Errorf("descriptor %d is not the async file: %w", fd, syscall.EBADF)
}

func (f *File) asyncEvent() { f.asyncOnce() }

// asyncOnce moves an event of the kernel's async file into the pipe of the queue that it is about,
// and one of a port into all.
func (f *File) asyncOnce() bool {
	e, err := f.u.WaitAsync(noCaller, 0)
	if err != nil {
		return false
	}
	r := uapi.AsyncEvent(make([]byte, uapi.AsyncEventSize))
	r.SetEventType(uint32(e.Type))
	r.SetElement(uint64(e.Port))
	to := f.asyncFiles()
	if o := f.owners[e.Cookie]; o != nil {
		r.SetElement(o.handle)
		to = to[:1]
		if o.async != nil {
			to[0] = o.async
		}
	}
	for _, p := range to {
		p.push(record{e.Cookie, r})
	}
	return true
}

// forgetAsync takes back the async events of an object that is gone.
func (f *File) forgetAsync(cookie uint64) (n uint32) {
	for _, p := range f.asyncFiles() {
		n += p.forget(cookie)
	}
	return n
}

// flush writes the records that did not fit into the pipes before.
func (f *File) flush() {
	for _, p := range f.asyncFiles() {
		p.flush()
	}
	for _, ch := range f.channels {
		ch.pipe.flush()
	}
}

// record is an event as the program reads it, and the queue that it is about.
type record struct {
	cookie uint64
	b      []byte
}

// eventPipe is a pipe whose read end the program has and whose write end is ours. It
// knows what lies in it, so that events of a queue that is destroyed can be taken back:
// otherwise a library waits for ever until they are acknowledged.
type eventPipe struct {
	inode       Inode
	w           int // write end, never blocking
	size        int // of a record
	sent        []record
	pending     []record // records that did not fit yet
	readersGone bool     // all read ends are closed
	// lost counts, by queue, the events that came when maxPending others waited.
	lost  map[uint64]uint32
	quota *Quota
}

// maxPending is how many events wait at most for a program that does not read them, beyond
// those in the pipe.
const maxPending = 1 << 16

// newEventPipe makes a pipe and gives the caller its read end.
func newEventPipe(c Caller, size int, q *Quota) (*eventPipe, int, error) {
	if err := q.Take(1); err != nil {
		return nil, 0, fmt.Errorf("pipe for events: %w", err)
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		q.Give(1)
		return nil, 0, fmt.Errorf("pipe for events: %w", err)
	}
	r := os.NewFile(uintptr(fds[0]), "events")
	defer r.Close()
	p := &eventPipe{w: fds[1], size: size, quota: q}
	var st unix.Stat_t
	err := errors.Join(unix.SetNonblock(p.w, true), unix.Fstat(p.w, &st))
	fd := -1
	if err == nil {
		p.inode = Inode{Dev: st.Dev, Ino: st.Ino}
		fd, err = c.Inject(r)
	}
	if err != nil {
		p.close()
		return nil, 0, fmt.Errorf("file for events: %w", err)
	}
	return p, fd, nil
}

func (p *eventPipe) close() {
	_ = unix.Close(p.w)
	p.quota.Give(1)
}

// abandoned reports whether no descriptor for reading is left.
func (p *eventPipe) abandoned() bool {
	fds := []unix.PollFd{{Fd: int32(p.w), Events: unix.POLLOUT}}
	_, err := unix.Poll(fds, 0)
	p.readersGone = p.readersGone || err == nil && fds[0].Revents&unix.POLLERR != 0
	return p.readersGone
}

// push writes a record, now or when there is room. Of a program that reads no events those that
// come too late are lost: as far as it is told, it has not read them.
func (p *eventPipe) push(r record) {
	if len(p.pending) >= maxPending {
		p.flush()
	}
	if len(p.pending) >= maxPending {
		if p.lost == nil {
			p.lost = map[uint64]uint32{}
		}
		p.lost[r.cookie]++
		return
	}
	p.pending = append(p.pending, r)
	p.flush()
}

func (p *eventPipe) flush() {
	if len(p.pending) == 0 || p.readersGone {
		return
	}
	p.trim()
	for len(p.pending) > 0 {
		r := p.pending[0]
		n, err := unix.Write(p.w, r.b)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EPIPE:
			p.readersGone = true
			return
		case err != nil || n != len(r.b): // full: writes of this size are whole or not at all
			return
		}
		p.sent, p.pending = append(p.sent, r), p.pending[1:]
	}
}

// trim forgets what the program has read.
func (p *eventPipe) trim() {
	n, err := unix.IoctlGetInt(p.w, unix.TIOCINQ) // FIONREAD
	if err != nil {
		return
	}
	if unread := n / p.size; unread < len(p.sent) {
		p.sent = append(p.sent[:0], p.sent[len(p.sent)-unread:]...)
	}
}

// forget takes the records of a queue out of the pipe and returns how many the program
// had not read. It reads the pipe empty, through a description of its own that does
// not block, and writes the others back.
func (p *eventPipe) forget(cookie uint64) (n uint32) {
	n = p.lost[cookie]
	delete(p.lost, cookie)
	keep := p.pending[:0]
	for _, r := range p.pending {
		if r.cookie == cookie {
			n++
			continue
		}
		keep = append(keep, r)
	}
	p.pending = keep
	p.trim()
	mine := false
	for _, r := range p.sent {
		mine = mine || r.cookie == cookie
	}
	if !mine {
		return n
	}
	in, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", p.w), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return n
	}
	defer unix.Close(in)
	buf := make([]byte, p.size)
	// The program may write there too, for as long as it is read.
	left := 0
	for left <= len(p.sent) {
		k, err := unix.Read(in, buf)
		if err == unix.EINTR {
			continue
		}
		if k < p.size || err != nil {
			break
		}
		left++
	}
	// What was left are the newest.
	back := p.sent[len(p.sent)-min(left, len(p.sent)):]
	p.sent = nil
	var again []record
	for _, r := range back {
		if r.cookie == cookie {
			n++
			continue
		}
		again = append(again, r)
	}
	p.pending = append(again, p.pending...)
	p.flush()
	return n
}
