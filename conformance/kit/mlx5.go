package kit

import (
	"bytes"
	"time"

	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// comp_mask bits of ibv_cq_init_attr_ex.
const (
	CQMaskFlags        uint32 = 1 << 0
	CQMaskParentDomain uint32 = 1 << 1
)

// Mlx5 is the QP as mlx5 direct verbs see it.
func Mlx5(c *spec.C, q *QP) verbs.Mlx5QP {
	m, isMlx5 := q.QP.(verbs.Mlx5QP)
	if !isMlx5 {
		c.Errorf("the target's queue pairs do not tell of their registers (mlx5 direct verbs)")
	}
	return m
}

// BFReg is the register that a QP rings.
func BFReg(c *spec.C, q *QP) verbs.BFReg { return Mlx5(c, q).BFReg() }

// Locks are the lock counters of a QP or CQ.
func Locks(c *spec.C, object any) verbs.LockStats {
	l, counts := object.(verbs.LockCounter)
	if !counts {
		c.Errorf("the target does not count locks")
	}
	return l.LockStats()
}

// InOrder takes n successes whose wr_ids count up from 0.
func InOrder(c *spec.C, cq verbs.CQ, n int) {
	for i, w := range Good(c, cq, n) {
		if w.ID != uint64(i) {
			c.Failf("completion %d is of request %d", i, w.ID)
		}
	}
}

// MMIO records the writes to registers while body runs.
func MMIO(c *spec.C, body func()) []verbs.MMIOWrite {
	log := c.TB.Log()
	if log == nil {
		c.Errorf("the testbed keeps no log of register writes")
	}
	log.Start()
	body()
	return log.Stop()
}

// AtRegister selects the doorbells and BlueFlame writes to a QP's register.
func AtRegister(ws []verbs.MMIOWrite, r verbs.BFReg) []verbs.MMIOWrite {
	var out []verbs.MMIOWrite
	for _, w := range ws {
		if (w.Kind == verbs.MMIODoorbell || w.Kind == verbs.MMIOBlueFlame || w.Kind == verbs.MMIOOther) && w.UARPage == r.UARPage &&
			w.Offset >= r.Offset && w.Offset < r.Offset+max(2*r.Size, 8) {
			out = append(out, w)
		}
	}
	return out
}

// Push is one BlueFlame push, put together from the blocks in which it arrived.
type Push struct {
	QPN  uint32
	Data []byte
}

// Pushes puts the BlueFlame blocks of one register together: the first block of a push
// begins with a control segment that tells how long the request is, the others lie
// right behind it. It fails the case when a block of another push comes in between.
func Pushes(c *spec.C, ws []verbs.MMIOWrite, block int) []Push {
	var out []Push
	left, next := 0, uint32(0)
	for _, w := range ws {
		if w.Kind == verbs.MMIODoorbell {
			if left > 0 {
				c.Failf("a doorbell inside a push")
			}
			continue
		}
		for at := 0; at+block <= len(w.Data); at += block {
			b, off := w.Data[at:at+block], w.Offset+uint32(at)
			if left > 0 {
				if off != next {
					c.Failf("a block at %#x inside a push that goes on at %#x", off, next)
				}
				p := &out[len(out)-1]
				p.Data = append(p.Data, b...)
			} else {
				ctrl := prm.CtrlSegment(b)
				left = (ctrl.DS()*16 + block - 1) / block
				out = append(out, Push{ctrl.QPN(), append([]byte(nil), b...)})
			}
			left--
			next = off + uint32(block)
		}
	}
	if left > 0 {
		c.Failf("the last push is not whole")
	}
	return out
}

// RawWrite lays request i, counted from 0, into the send ring of a QP that nothing was posted to: an
// unsignalled RDMA WRITE of 8 bytes, of which the library knows nothing. It returns the word
// that rings for it.
func RawWrite(c *spec.C, q *QP, i uint16, from verbs.SGE, to *Buffer, off int) (bell uint64) {
	wqe := make([]byte, prm.WQEBBSize)
	ctrl := prm.CtrlSegment(wqe)
	ctrl.Set(prm.WQEOpRDMAWrite, 0, i, q.QPN(), 3, 0, 0)
	prm.RaddrSegment(wqe[prm.CtrlSegmentSize:]).Set(to.Addr(off), to.MR.RKey())
	prm.DataSegment(wqe[prm.CtrlSegmentSize+prm.RaddrSegmentSize:]).Set(8, from.LKey, from.Addr)
	ok(c, "write the send queue", Mlx5(c, q).WriteSendQueue(c.T, int(i)*prm.WQEBBSize, wqe))
	return Bell(ctrl)
}

// Bell is the word that rings for a request.
func Bell(ctrl prm.CtrlSegment) (v uint64) {
	for _, b := range ctrl[:prm.DoorbellSize] {
		v = v<<8 | uint64(b)
	}
	return v
}

// Arrives waits until 8 bytes lie at off in a buffer, and reports whether they do within d.
func Arrives(c *spec.C, b *Buffer, off int, want []byte, d time.Duration) bool {
	for end := c.T.Now() + d; ; c.T.Sleep(Silence / 200) {
		if bytes.Equal(b.Get(c, off, 8), want) {
			return true
		}
		if c.T.Now() >= end {
			return false
		}
	}
}
