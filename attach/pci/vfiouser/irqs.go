//go:build linux && amd64

package vfiouser

import (
	"fmt"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/uapi"
)

// Interrupts are the MSI-X vectors of a connection. Raise may be called from any goroutine.
type Interrupts struct {
	mu      sync.Mutex
	vectors []vector
}

type vector struct {
	fd      int // eventfd, -1: none
	masked  bool
	pending bool // raised while there was no way to deliver it
}

func newInterrupts(n int) *Interrupts {
	q := &Interrupts{vectors: make([]vector, n)}
	for i := range q.vectors {
		q.vectors[i].fd = -1
	}
	return q
}

// Raise delivers an interrupt, or keeps it until the vector can be delivered. A vector that does
// not exist, or one of a connection that has ended, is left alone.
func (q *Interrupts) Raise(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n >= 0 && n < len(q.vectors) {
		q.vectors[n].raise()
	}
}

func (v *vector) raise() {
	if v.fd < 0 || v.masked {
		v.pending = true
		return
	}
	v.pending = false
	one := [8]byte{1}
	// A counter that is full will be read.
	_, _ = unix.Write(v.fd, one[:])
}

func (v *vector) set(fd int) {
	if v.fd >= 0 {
		_ = unix.Close(v.fd)
	}
	v.fd = fd
	v.deliver()
}

func (v *vector) deliver() {
	if v.pending && v.fd >= 0 && !v.masked {
		v.raise()
	}
}

// allOff takes all vectors back, and forgets what waits.
func (q *Interrupts) allOff() {
	for i := range q.vectors {
		q.vectors[i].set(-1)
		q.vectors[i] = vector{fd: -1}
	}
}

// close ends the interrupts for good.
func (q *Interrupts) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.allOff()
	q.vectors = nil
}

func (x *connection) setIRQs(m *message) ([]byte, error) {
	a := uapi.VFIOIRQSet(m.body)
	data := m.body[uapi.VFIOIRQSetSize:]
	start, count := int(a.Start()), int(a.Count())
	if a.Argsz() < uapi.VFIOIRQSetSize || a.Index() >= uapi.VFIOIRQs {
		return nil, syscall.EINVAL
	}
	n := 0
	if a.Index() == uapi.VFIOIRQMSIX {
		n = x.l.Vectors
	}
	if start > n || count > n-start {
		return nil, syscall.EINVAL
	}
	q := x.irqs
	q.mu.Lock()
	defer q.mu.Unlock()
	const datas = uapi.VFIOIRQDataNone | uapi.VFIOIRQDataBool | uapi.VFIOIRQDataEventFD
	some, action := a.Flags()&datas, a.Flags()&^datas
	if some == uapi.VFIOIRQDataNone && action == uapi.VFIOIRQActionTrigger && count == 0 && len(m.files) == 0 {
		if n > 0 {
			q.allOff()
		}
		return nil, nil
	}
	if n == 0 {
		return nil, syscall.EINVAL
	}
	of := q.vectors[start : start+count]
	if some == uapi.VFIOIRQDataEventFD {
		if action != uapi.VFIOIRQActionTrigger {
			return nil, syscall.EINVAL
		}
		return nil, setEventFDs(of, m)
	}
	if len(m.files) > 0 || some != uapi.VFIOIRQDataNone && (some != uapi.VFIOIRQDataBool || len(data) < count) {
		return nil, syscall.EINVAL
	}
	for i := range of {
		if some == uapi.VFIOIRQDataBool && data[i] == 0 {
			continue
		}
		switch action {
		case uapi.VFIOIRQActionMask:
			of[i].masked = true
		case uapi.VFIOIRQActionUnmask:
			of[i].masked = false
			of[i].deliver()
		case uapi.VFIOIRQActionTrigger:
			of[i].raise()
		default:
			return nil, syscall.EINVAL
		}
	}
	return nil, nil
}

// setEventFDs gives vectors the eventfds of a message: as many as vectors, or none, which takes the
// vectors' own away.
func setEventFDs(of []vector, m *message) error {
	if len(m.files) != 0 && len(m.files) != len(of) {
		return syscall.EINVAL
	}
	for _, fd := range m.files {
		// Another file might block whoever raises the interrupt.
		to := make([]byte, 64)
		k, err := unix.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd), to)
		if err != nil || string(to[:k]) != "anon_inode:[eventfd]" {
			return syscall.EINVAL
		}
		if err := unix.SetNonblock(fd, true); err != nil {
			return syscall.EINVAL
		}
	}
	for i := range of {
		if len(m.files) == 0 {
			of[i].set(-1)
		} else {
			of[i].set(m.take(i))
		}
	}
	return nil
}
