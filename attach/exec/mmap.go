//go:build linux && amd64

package exec

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/attach/exec/seccomp"
)

// An mmap is prepared by a change of what the descriptor shows, and must reach the kernel before
// another thread's mmap on the same file changes that again. That one waits in a queue of the
// file, while the calls on other files are answered. It goes on when the first thread makes
// another call, when the mapping is there, or when it has waited for long enough: an mmap that
// the kernel refused leaves no trace.

// waiting is an mmap that comes after another on the same file.
type waiting struct {
	x     seccomp.Notif
	looks int       // at the mappings of the program so far
	next  time.Time // when to look again
}

// How often the mappings of a program are looked at before its mmap goes on all the same, and the
// first pause between two looks, which doubles: 1 s in all.
const (
	mmapLooks = 11
	mmapPause = time.Millisecond
)

// lookAgain goes on with what waits, on the engine's thread.
func (n *notifier) lookAgain() {
	n.lookAt = time.Time{}
	for f := range n.waits {
		n.serve(f)
	}
}

// mmap takes the mmap of a thread, on the engine's thread.
func (n *notifier) mmap(x *seccomp.Notif) {
	tid, fd := int(x.PID), int(int32(x.Args[4]))
	f, _, err := n.s.files.find(n.l, x.ID, tid, fd)
	if err != nil || f == nil {
		_ = n.l.Continue(x.ID) // another file: the kernel maps it
		return
	}
	f.mmapOver(tid)
	n.waits[f] = append(n.waits[f], &waiting{x: *x, next: time.Now()})
	n.serve(f)
}

// serve carries out the mmaps that wait for a file, up to one that has to wait on.
func (n *notifier) serve(f *file) {
	for q := n.waits[f]; len(q) > 0; q = n.waits[f] {
		w := q[0]
		if n.l.Valid(w.x.ID) && !w.mayGoOn(f) {
			n.lookLater(w.next)
			return
		}
		if len(q) == 1 {
			delete(n.waits, f)
		} else {
			n.waits[f] = q[1:]
		}
		n.prepare(f, &w.x)
	}
}

// lookLater has lookAgain called at a time, or before.
func (n *notifier) lookLater(at time.Time) {
	if !n.lookAt.IsZero() && !n.lookAt.After(at) {
		return
	}
	n.lookAt = at
	time.AfterFunc(max(time.Until(at), mmapPause), func() { n.s.eng.do(n.lookAgain) })
}

// mayGoOn reports whether no other thread's mmap is on its way to the kernel, or has been for too
// long.
func (w *waiting) mayGoOn(f *file) bool {
	if f.mapping == nil {
		return true
	}
	now := time.Now()
	if now.Before(w.next) {
		return false
	}
	if !f.busy() {
		return true
	}
	w.next = now.Add(mmapPause << w.looks)
	w.looks++
	return w.looks == mmapLooks
}

// prepare makes the descriptor show what the mmap is to map, and lets the kernel do it.
func (n *notifier) prepare(f *file, x *seccomp.Notif) {
	tid, fd, off := int(x.PID), int(int32(x.Args[4])), x.Args[5]
	now, shows, err := n.s.files.find(n.l, x.ID, tid, fd)
	switch {
	case err != nil || now == nil:
		_ = n.l.Continue(x.ID)
		return
	case now != f: // the descriptor was changed meanwhile
		n.mmap(x)
		return
	}
	if page := off / pageSize; contiguousPage(page) {
		err = f.contiguous(n.l, x.ID, tid, fd, off, x.Args[1])
	} else if e := f.mapped(page); e != 0 {
		err = e
	} else {
		err = f.showDeviceFile(n.l, x.ID, tid, fd, shows, off)
	}
	if err != nil {
		_ = n.l.Fail(x.ID, errno(err))
		return
	}
	_ = n.l.Continue(x.ID)
}

// busy reports whether the last mmap may not have reached the kernel yet.
func (f *file) busy() bool {
	p := f.mapping
	if p != nil && !errors.Is(unix.Tgkill(f.proc.mem.PID(), p.tid, 0), unix.ESRCH) && !p.done(f.proc.mem) {
		return true
	}
	f.mapping = nil
	return false
}
