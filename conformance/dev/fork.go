package dev

import (
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

func forkInitTooLate(c *spec.C) {
	f := kit.ProcessAs[verbs.Forker](c)
	e := kit.Open(c)
	e.Buffer(c, 4096, kit.AllAccess)
	status := forkStatus(c, f)
	for range 2 {
		c.Errno("fork_init after memory was registered", f.ForkInit(c.T), syscall.EINVAL)
		now := forkStatus(c, f)
		c.True("is_fork_initialized says the same", now == status, "%s, and before %s", now, status)
	}
}

// forkUnneeded: whether the kernel needs fork support, as the library reports it, does not change
// when a program asks for fork support late, with or without success.
func forkUnneeded(c *spec.C) {
	f := kit.ProcessAs[verbs.Forker](c)
	e := kit.Open(c)
	status := forkStatus(c, f)
	unneeded := status == verbs.ForkUnneeded.String()
	c.Observe("is_fork_initialized", status)
	c.Equal("unneeded where the kernel copies pinned pages", unneeded, c.Has("fork.copy"))
	e.Buffer(c, 4096, kit.AllAccess)
	c.ErrnoIn("fork_init after memory was registered", f.ForkInit(c.T), 0, syscall.EINVAL)
	c.Equal("is_fork_initialized after it", forkStatus(c, f), status)
}

func forkStatus(c *spec.C, f verbs.Forker) string {
	s, err := f.IsForkInitialized(c.T)
	kit.Must(c, "is_fork_initialized", err)
	return s.String()
}
