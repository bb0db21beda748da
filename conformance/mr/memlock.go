package mr

import (
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// limitedProcess is another process that may lock only a few pages.
type limitedProcess struct {
	*kit.OtherProcess
	page uint64
}

func newLimitedProcess(c *spec.C, pages uint64) *limitedProcess {
	page := uint64(c.Process().Host().PageSize())
	return &limitedProcess{kit.OpenUnprivileged(c, pages*page), page}
}

// register registers that many pages and returns the number of the buffer.
func (l *limitedProcess) register(c *spec.C, pages uint64) (uint64, error) {
	r, err := l.DoErr(c, player.RegBuffer, kit.Args{"len": pages * l.page, "access": uint64(verbs.AccessLocalWrite)}, nil)
	return r.Values["buf"], err
}

// overMemlock leaves room for what the provider locks for queues, in the most of 64 pages.
func overMemlock(c *spec.C) {
	const most, part, tries = 64, 40, 5
	l := newLimitedProcess(c, most)
	for range tries {
		_, err := l.register(c, most+1)
		c.Errno("more than the limit", err, syscall.ENOMEM)
	}
	for range tries {
		buf, err := l.register(c, part)
		c.Errno("a part of the limit", err, 0)
		_, err = l.register(c, part)
		c.Errno("a second part, over the limit", err, syscall.ENOMEM)
		_, err = l.DoErr(c, player.DeregBuffer, kit.Args{"buf": buf}, nil)
		c.Errno("dereg_mr", err, 0)
	}
}

func noMemlock(c *spec.C) {
	_, err := newLimitedProcess(c, 0).register(c, 1)
	c.ErrnoIn("one page", err, syscall.EPERM, syscall.ENOMEM)
}
