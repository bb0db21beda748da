package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// Channel is a completion event channel.
type Channel struct {
	u    *Ucontext
	file eventFile
	h    Handle
	refs int // CQs that report to it
}

// CreateChannel is CREATE_COMP_CHANNEL.
func (u *Ucontext) CreateChannel(c Caller) (*Channel, error) {
	u.dev.enter(c, false)
	if err := u.usable(); err != nil {
		return nil, err
	}
	ch := &Channel{u: u, file: eventFile{d: u.dev}}
	ch.h = u.objs.add(ch)
	u.dev.res.CompChannel++
	return ch, nil
}

// DestroyChannel closes the channel's file: EBUSY while a CQ reports to it (a check
// that libibverbs makes before it closes the file), EBADF when it is closed already.
func (u *Ucontext) DestroyChannel(c Caller, ch *Channel) error {
	k := u.dev.enter(c, false)
	if ch == nil || ch.u != u {
		return fmt.Errorf("channel of another context: %w", syscall.EINVAL)
	}
	if ch.file.closed && !u.removed {
		return fmt.Errorf("channel: %w", syscall.EBADF)
	}
	_, err := destroyObject[*Channel](&u.objs, &k, ch.h, "channel")
	return err
}

func (ch *Channel) destroy(k *call) error {
	if ch.refs > 0 && !k.d.breaks(rule.ChannelInUseIsBusy) {
		return fmt.Errorf("%d CQs report to it: %w", ch.refs, syscall.EBUSY)
	}
	ch.file.lost = ch.u.removed
	ch.file.close()
	ch.u.dev.res.CompChannel--
	return nil
}

// Wait blocks until deadline (sim.Never: for ever) for an event and returns the cookie of its CQ.
// EAGAIN: the deadline passed; EBADF: the channel was closed meanwhile; EIO: the device was
// removed.
func (ch *Channel) Wait(c Caller, deadline sim.Time) (cookie uint64, err error) {
	e, err := ch.file.read(c, deadline, "completion event")
	return e.cookie, err
}

// OnEvent sets the function that is called, in the engine's thread, whenever Wait has an
// event to return. It is for readers outside the simulation.
func (ch *Channel) OnEvent(f func()) { ch.file.onEvent = f }
