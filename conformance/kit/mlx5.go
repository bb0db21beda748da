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

// Mlx5 returns the QP as mlx5 direct verbs see it. A target without them ends the case without a
// verdict.
func Mlx5(c *spec.C, q *QP) verbs.Mlx5QP {
	m, isMlx5 := q.QP.(verbs.Mlx5QP)
	if !isMlx5 {
		c.Errorf("the target's queue pairs do not report their registers (mlx5 direct verbs)")
	}
	return m
}

// BFReg returns the register at which a QP rings its doorbell.
func BFReg(c *spec.C, q *QP) verbs.BFReg { return Mlx5(c, q).BFReg() }

// ExpectNoLock fails the case if the register needs a lock. It records nothing. It does nothing
// where the library does not report the register's class, as real libraries do not.
func ExpectNoLock(c *spec.C, r verbs.BFReg) {
	if r.Class != "" && r.NeedLock {
		c.Failf("register %d of page %#x (%s) needs a lock", r.Index, r.UARPage, r.Class)
	}
}

// LockStats returns the lock counters of a QP or CQ. A target that does not count ends the case
// without a verdict.
func LockStats(c *spec.C, object any) verbs.LockStats {
	l, counts := object.(verbs.LockCounter)
	if !counts {
		c.Errorf("the target does not count locks")
	}
	return l.LockStats()
}

// ExpectInOrder takes n successful completions and fails the case unless their wr_ids count up from
// 0.
func ExpectInOrder(c *spec.C, cq verbs.CQ, n int) {
	for i, w := range ExpectSuccess(c, cq, n) {
		if w.ID != uint64(i) {
			c.Failf("completion %d is of request %d", i, w.ID)
		}
	}
}

// RecordMMIO returns the writes to the device's registers while body runs.
func RecordMMIO(c *spec.C, body func()) []verbs.MMIOWrite {
	log := c.TB.Log()
	if log == nil {
		c.Errorf("the testbed keeps no log of register writes")
	}
	log.Start()
	body()
	return log.Stop()
}

// WritesToBFReg returns the doorbells, BlueFlame pushes and other writes that went to a QP's
// register.
func WritesToBFReg(ws []verbs.MMIOWrite, r verbs.BFReg) []verbs.MMIOWrite {
	var out []verbs.MMIOWrite
	for _, w := range ws {
		if (w.Kind == verbs.MMIODoorbell || w.Kind == verbs.MMIOBlueFlame || w.Kind == verbs.MMIOOther) && w.UARPage == r.UARPage &&
			w.Offset >= r.Offset && w.Offset < r.Offset+max(2*r.Size, 8) {
			out = append(out, w)
		}
	}
	return out
}

// BlueFlamePush is one BlueFlame push, joined from the blocks in which it arrived.
type BlueFlamePush struct {
	QPN  uint32
	Data []byte
}

// BlueFlamePushes joins the BlueFlame blocks of one register, of block bytes each, into pushes. The
// first block of a push begins with a control segment, which has the length of the request, and the
// others follow right behind it. It fails the case if something comes in between, or if the last
// push is not whole.
func BlueFlamePushes(c *spec.C, ws []verbs.MMIOWrite, block int) []BlueFlamePush {
	var out []BlueFlamePush
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
				out = append(out, BlueFlamePush{ctrl.QPN(), append([]byte(nil), b...)})
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

// WriteRawWQE writes request i, counted from 0, into the send queue of a QP on which the library
// has posted nothing: an unsignalled RDMA WRITE of 8 bytes. It does not ring, and returns the
// doorbell value.
func WriteRawWQE(c *spec.C, q *QP, i uint16, from verbs.SGE, to *Buffer, off int) (doorbell uint64) {
	wqe := make([]byte, prm.WQEBBSize)
	ctrl := prm.CtrlSegment(wqe)
	ctrl.Set(prm.WQEOpRDMAWrite, 0, i, q.QPN(), 3, 0, 0)
	prm.RaddrSegment(wqe[prm.CtrlSegmentSize:]).Set(to.Addr(off), to.MR.RKey())
	prm.DataSegment(wqe[prm.CtrlSegmentSize+prm.RaddrSegmentSize:]).Set(8, from.LKey, from.Addr)
	ok(c, "write the send queue", Mlx5(c, q).WriteSendQueue(c.T, int(i)*prm.WQEBBSize, wqe))
	return DoorbellValue(ctrl)
}

// DoorbellValue returns the 64-bit value that a program writes to the register to ring for a
// request.
func DoorbellValue(ctrl prm.CtrlSegment) (v uint64) {
	for _, b := range ctrl[:prm.DoorbellSize] {
		v = v<<8 | uint64(b)
	}
	return v
}

// AwaitData waits up to d until the 8 bytes at off are want, and reports whether they are.
func AwaitData(c *spec.C, b *Buffer, off int, want []byte, d time.Duration) bool {
	for end := c.T.Now() + d; ; c.T.Sleep(QuietPeriod / 200) {
		if bytes.Equal(b.Get(c, off, 8), want) {
			return true
		}
		if c.T.Now() >= end {
			return false
		}
	}
}
