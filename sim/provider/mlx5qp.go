package provider

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

var _ verbs.Mlx5QP = (*QP)(nil)

// BFReg is the register that the QP rings.
func (q *QP) BFReg() verbs.BFReg { return q.bf.describe() }

// Pushes counts doorbells and BlueFlame pushes of the QP.
func (q *QP) Pushes() (doorbells, blueFlame uint64) { return q.doorbell, q.blue }

// DoorbellRecord reads both words.
func (q *QP) DoorbellRecord(vt verbs.Thread) (recv, send uint32) {
	Of(vt).P.Sync()
	d := q.dbRecord
	return uint32(d.Recv()), uint32(d.Send())
}

// SendQueue reads from the send ring.
func (q *QP) SendQueue(vt verbs.Thread, off int, p []byte) error {
	return q.inSendQueue(vt, off, p, func(p, ring []byte) int { return copy(p, ring) })
}

// WriteSendQueue writes to the send ring.
func (q *QP) WriteSendQueue(vt verbs.Thread, off int, p []byte) error {
	return q.inSendQueue(vt, off, p, func(p, ring []byte) int { return copy(ring, p) })
}

// inSendQueue moves bytes between p and the windows of the ring from off on.
func (q *QP) inSendQueue(vt verbs.Thread, off int, p []byte, move func(p, ring []byte) int) error {
	Of(vt).P.Sync()
	if off < 0 || off+len(p) > q.sq.mask+1 {
		return fmt.Errorf("%d B at %d of a send queue of %d: %w", len(p), off, q.sq.mask+1, syscall.EINVAL)
	}
	for n := 0; n < len(p); {
		n += move(p[n:], q.ring.at(q.sq.off+off+n))
	}
	return nil
}

// WriteDoorbellRecord stores the send counter alone.
func (q *QP) WriteDoorbellRecord(vt verbs.Thread, sendCounter uint16) error {
	t := Of(vt)
	t.P.Sync()
	q.dbRecord.SetSend(sendCounter)
	t.Core.DMABarrier(t.P)
	return nil
}

// RingDoorbell stores 8 bytes at the register; the highest byte of ctrl comes first.
func (q *QP) RingDoorbell(vt verbs.Thread, ctrl uint64) error {
	t := Of(vt)
	t.P.Sync()
	t.store64(q.bf.m, q.bf.off+q.bf.half, ctrl)
	t.Core.Fence(t.P)
	q.bf.half ^= q.bf.buf
	return nil
}
