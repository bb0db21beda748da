package player

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// regDmabuf takes a descriptor of another process, registers what is behind it, and closes it
// again.
func (a *Agent) regDmabuf(t verbs.Thread, c verbs.PlayerCommand, r *verbs.PlayerReply) error {
	taker, ok := t.Process().(verbs.DescriptorTaker)
	files, opens := t.Process().(verbs.MemoryOpener)
	if !ok || !opens {
		return fmt.Errorf("player: the processes of this target take no descriptors of others: %w", syscall.EOPNOTSUPP)
	}
	pd, err := a.pd(c)
	if err != nil {
		return err
	}
	fd, err := taker.TakeFD(t, int(c.Args["pid"]), int(c.Args["fd"]))
	if err != nil {
		return err
	}
	mr, err := pd.RegDmabufMR(t, c.Args["off"], c.Args["len"], c.Args["iova"], fd, verbs.AccessFlags(c.Args["access"]))
	if err = errors.Join(err, files.CloseFD(t, fd)); err != nil {
		return err
	}
	a.bufs = append(a.bufs, buffer{mr: mr})
	r.Values["buf"], r.Values["lkey"], r.Values["rkey"] = uint64(len(a.bufs)), uint64(mr.LKey()), uint64(mr.RKey())
	return nil
}
