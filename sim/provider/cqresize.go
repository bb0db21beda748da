package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/verbs"
)

// Resize is ibv_resize_cq (mlx5_resize_cq): another ring, which the kernel has the
// device go on in, and into which the entries of the old one are moved. A size that
// rounds to the present one needs no kernel; the kernel and the device judge the
// others.
func (q *CQ) Resize(vt verbs.Thread, cqe int) (err error) {
	defer Of(vt).answers(&err)
	t := q.ctx.enter(vt)
	if cqe < 0 || cqe >= maxCQEntries {
		return fmt.Errorf("resize_cq to %d: %w", cqe, syscall.EINVAL)
	}
	left := q.lock.acquire(t, q.ctx.proc.Params, 0)
	t.Core.Run(t.P, left+t.Core.Claim(t.P, &q.line))
	t.P.Sync()
	if n := uint32(roundupPow2(cqe + 1)); n != q.n {
		err = q.moveTo(t, n)
	}
	q.lock.release(t)
	if err != nil {
		return fmt.Errorf("resize_cq to %d: %w", cqe, err)
	}
	return nil
}

// moveTo moves the CQ to a new ring of n entries.
func (q *CQ) moveTo(t *Thread, n uint32) error {
	c := q.ctx
	r, err := q.newRing(t, n)
	if err != nil {
		return err
	}
	// The device may write to the new ring before the kernel's answer is here.
	watch := r.watch(q.wakeup)
	if _, err = c.u.ResizeCQ(t.caller, q.h, n-1, uint64(r.va), uint32(q.esize)); err == nil {
		err = q.copyTo(t, r, n)
	}
	if err != nil {
		q.unwatch(watch)
		allocator{c.proc, q.parent}.freeRing(t, r, resCQ)
		return err
	}
	q.unwatch(q.watch)
	allocator{c.proc, q.parent}.freeRing(t, q.ring, resCQ)
	q.ring, q.n, q.watch = r, n, watch
	q.ci++ // the RESIZE entry
	return nil
}

// copyTo moves the entries before the device's RESIZE entry one place up in the new
// ring, with the owner bit of where they come to lie (mlx5_cq_resize_copy_cqes).
func (q *CQ) copyTo(t *Thread, r *ring, n uint32) error {
	var moved uint32
	for ; ; moved++ {
		i := q.ci + moved
		if e, ready := q.look(t, i); moved == q.n || !ready {
			return fmt.Errorf("the device's RESIZE entry is not there behind %d others: %w", moved, syscall.EIO)
		} else if e.Opcode() == prm.CQEResizeCQ {
			break
		}
		d := r.at(int((i+1)&(n-1)) * q.esize)[:q.esize]
		copy(d, q.ring.at(int(i&(q.n-1)) * q.esize)[:q.esize])
		e := prm.CQE64(d[q.esize-prm.CQE64Size:])
		e.SetOpOwn(e.Opcode(), e.Format(), e.SE(), prm.CQEOwner(i+1, n))
	}
	t.Core.Run(t.P, q.ctx.proc.Params.CleanCQE*sim.Time(moved)+t.unspent)
	t.unspent = 0
	return nil
}
