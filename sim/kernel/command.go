package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/cpu"
)

// Caller is the thread that makes a call: its program and its core. A zero Caller
// is the kernel itself: it waits for nothing.
type Caller struct {
	P      *sim.Proc
	Core   *cpu.Core
	Signal *Signal // of the thread; nil: it gets none
}

// call is one system call under way. What it does takes effect at one instant,
// when it enters; the time that it costs is waited for at its end. So a thread that
// is killed inside a call leaves tables and device consistent, as a real kernel
// does, which finishes the call first.
type call struct {
	d    *Device
	c    Caller
	work sim.Time // of the kernel
	dev  sim.Time // of the device's firmware
	// outside: the process is not simulated, and has its answer at this instant.
	outside bool
	umr     uint64 // the last change of a memory key that it has posted
	numUMRs int
	lists   bool // some are of on-demand paging, whose lists may be long
	// base is what the next look for pages takes beside what each page takes.
	base sim.Time
	// handles: it is the handler of a page fault that has not been answered.
	handles bool
	gone    []*holders // of what the call has destroyed
	closes  bool       // it ends the context
}

// enter pays for the entry of a call and, if it will send commands, waits for the
// command interface, which serves one at a time.
func (d *Device) enter(c Caller, commands bool) call {
	d.count.Calls++
	if c.P != nil {
		c.P.Advance(d.p.Syscall)
		c.P.Sync()
	}
	k := call{d: d, c: c}
	if c.P != nil && commands {
		k.awaitInterface()
	}
	return k
}

// leave waits for what the call costs.
func (k *call) leave() {
	if k.c.P == nil {
		return
	}
	if k.numUMRs > 0 {
		k.awaitUMRs()
	}
	if len(k.gone) > 0 {
		k.awaitGone()
	}
	cost := k.work
	if k.dev > 0 {
		now := k.c.P.Now()
		_, end := k.d.cmds.Take(now, k.dev)
		cost += end - now
	}
	if cost > 0 {
		k.c.P.Sleep(cost)
	}
}

// step ends a part of a call whose parts take effect one after the other, each at its own instant.
func (k *call) step() {
	if k.c.P == nil {
		return
	}
	k.leave()
	*k = call{d: k.d, c: k.c, outside: k.outside, closes: k.closes}
	k.awaitInterface()
}

// awaitInterface waits until the command interface is free.
func (k *call) awaitInterface() {
	for k.d.cmds.FreeAt() > k.c.P.Now() {
		k.c.P.Sleep(k.d.cmds.FreeAt() - k.c.P.Now())
	}
}

// exec sends a command whose opcode is set and returns its answer's status as an
// errno with context.
func (k *call) exec(in, out []byte) error {
	k.d.count.Commands++
	k.dev += k.d.link.Function().Command(in, out)
	if k.outside {
		k.d.link.Drain()
	}
	op := prm.CmdIn(in).Opcode()
	if err := prm.CmdOut(out).Err(op); err != nil {
		k.d.count.CommandErrors++
		return err
	}
	return nil
}

// simple sends a command with nothing to fill in and returns its answer.
func (k *call) simple(op prm.Opcode, opmod uint16) ([]byte, error) {
	in, out := prm.NewIn(op, 0), prm.NewOut(op, 0)
	prm.CmdIn(in).SetOpMod(opmod)
	return out, k.exec(in, out)
}

// destroy sends a command that takes an object's number and has no answer. The
// device refuses only what is not there or still in use; the kernel has counted
// references before, so a refusal is a broken invariant of the two models.
func (k *call) destroy(in []byte) error {
	op := prm.CmdIn(in).Opcode()
	return k.exec(in, prm.NewOut(op, 0))
}

// mustDestroy is destroy for what nothing can refer to any more.
func (k *call) mustDestroy(in []byte) {
	if err := k.destroy(in); err != nil {
		panic(fmt.Sprintf("kernel: %v: %s: %v", k.d.eng.Now(), k.d.name, err))
	}
}

var (
	errClosed  = fmt.Errorf("context is closed: %w", syscall.EBADF)
	errRemoved = fmt.Errorf("the device was removed: %w", syscall.EIO)
)
