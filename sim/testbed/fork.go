package testbed

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/verbs"
)

var _ verbs.Forker = (*process)(nil)

// ForkInit is ibv_fork_init.
func (p *process) ForkInit(t verbs.Thread) error {
	provider.Of(t)
	return p.lib.ForkInit()
}

// IsForkInitialized is ibv_is_fork_initialized.
func (p *process) IsForkInitialized(t verbs.Thread) (verbs.ForkStatus, error) {
	provider.Of(t)
	return p.lib.ForkStatus(), nil
}

// Fork makes a child with a copy of the process's memory, which writes to the buffer.
// EOPNOTSUPP on a kernel that leaves pinned pages to whoever writes to them last, and after
// ibv_fork_init, which keeps them from the child.
func (p *process) Fork(t verbs.Thread, b verbs.Buffer, value byte) (end func(verbs.Thread) error, err error) {
	parent := provider.Of(t)
	parent.P.Sync()
	if !p.lib.CopiesAll() {
		return nil, fmt.Errorf("a child that does not get a copy of all memory is not modelled: %w", syscall.EOPNOTSUPP)
	}
	space, err := p.lib.K.Space.Fork()
	if err != nil {
		return nil, err
	}
	child := p.host.newProcess(p.lib.Env)
	child.lib.K.Space = space
	data := make([]byte, b.Len())
	for i := range data {
		data[i] = value
	}
	ready, over := false, false
	th := child.start("child", p.host.core(), func(vt verbs.Thread) {
		t := vt.(*provider.Thread)
		write := func() {
			t.P.Sync()
			if e := space.WriteAt(data, mem.VA(b.Addr())); e != nil {
				err = e
			}
		}
		write()
		ready = true
		parent.Wake(t.P.Now())
		for !over {
			t.ParkUntil("the parent", sim.Never)
		}
		write()
		child.end(t)
	})
	for !ready {
		parent.ParkUntil("a forked child", sim.Never)
	}
	return func(t verbs.Thread) error {
		p := provider.Of(t).P
		p.Sync()
		over = true
		th.Wake(p.Now())
		t.Join(th)
		return err
	}, err
}
