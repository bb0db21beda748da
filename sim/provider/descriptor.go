package provider

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/verbs"
)

// firstFD is the first descriptor that a process hands out.
const firstFD = 3

// descriptor is an open file of a process: a device's, of events, of the folder, or of the null
// device.
type descriptor struct {
	of      openContext // that it was duplicated of; nil: another file
	file    kernel.Inode
	buf     *kernel.DMABuf      // nil of other files
	release func(kernel.Caller) // the end of a file that the library itself has open; nil of others
}

// close gives up what the descriptor stands for.
func (d *descriptor) close(c kernel.Caller) {
	if d.of != nil {
		d.of.closeFile(c)
	}
	if d.buf != nil {
		d.buf.Put()
	}
	if d.release != nil {
		d.release(c)
	}
}

// openFD gives a file the lowest number that is free.
func (p *Process) openFD(d *descriptor) int {
	for i := p.freeFD; i < len(p.fds); i++ {
		if p.fds[i] == nil {
			p.fds[i], p.freeFD = d, i+1
			return firstFD + i
		}
	}
	p.fds = append(p.fds, d)
	p.freeFD = len(p.fds)
	return firstFD + len(p.fds) - 1
}

// takeFD is the file behind a descriptor, which is closed. Nil: there is none.
func (p *Process) takeFD(fd int) *descriptor {
	i := fd - firstFD
	if i < 0 || i >= len(p.fds) {
		return nil
	}
	d := p.fds[i]
	p.fds[i], p.freeFD = nil, min(p.freeFD, i)
	return d
}

// forgetFD frees the number of a file whose end the caller sees to.
func (p *Process) forgetFD(d *descriptor) {
	if i := slices.Index(p.fds, d); d != nil && i >= 0 {
		p.takeFD(firstFD + i)
	}
}

// CloseFD closes a descriptor.
func (p *Process) CloseFD(vt verbs.Thread, fd int) error {
	t := Of(vt)
	d := p.takeFD(fd)
	if d == nil {
		return fmt.Errorf("close descriptor %d: %w", fd, syscall.EBADF)
	}
	d.close(t.caller)
	return nil
}
