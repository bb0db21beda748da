package provider

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// record moves the head and stores the doorbell record.
func (q *QP) record(t *Thread, s *posting) {
	q.sq.head += uint32(s.nreq)
	if t.breaks(rule.SendRecordIsItsOwn) {
		q.dbRecord.SetRecv(uint16(q.sq.posted))
	} else {
		q.dbRecord.SetSend(uint16(q.sq.posted))
	}
	if log := q.ctx.proc.DoorbellRecord; log != nil {
		log(t, q.qpn, uint16(q.sq.posted))
	}
}

// ringBell is the rest of post_send_db: lock of the register, BlueFlame or doorbell,
// flush, and the change of halves. The thread has unspent time of what it did before.
// Offset and buffer size share the lock's line; where there is no lock, the queue's or
// the user's promise protects them.
func (q *QP) ringBell(t *Thread, s *posting, unspent sim.Time) {
	bf := q.bf
	t.Core.Run(t.P, unspent+t.Core.Costs().DMABarrier+q.ctx.proc.Params.DoorbellRecord)
	unspent = 0
	locked := bf.locked && !t.breaks(rule.SharedRegisterIsLocked)
	if locked {
		bf.taken++
		wait, cost := bf.lock.Take(t.P, t.Core)
		if wait > 0 {
			bf.waits++
			bf.waited += wait
		}
		unspent = cost + t.Core.Claim(t.P, &bf.line)
	} else {
		t.Core.Fence(t.P)
		if bf.buf != 0 {
			t.Core.Touch(t.P, &bf.line)
		}
	}
	if t.breaks(rule.HalvesAreOfTheRegister) {
		bf.half = uint64(q.blue+q.doorbell) % 2 * bf.buf
	}
	if q.blueFlame(s) {
		q.push(t, s, unspent)
	} else {
		q.doorbell++
		q.ctx.proc.C.Doorbells++
		t.Core.StoreAfter(t.P, bf.m, bf.off+bf.half, q.seg(s.ctrl)[:prm.DoorbellSize], unspent)
	}
	if !t.breaks(rule.RegisterIsFlushed) {
		t.Core.Fence(t.P)
	}
	if !t.breaks(rule.HalvesAlternate) {
		bf.half ^= bf.buf
	}
	if locked {
		bf.lock.Unlock(t.P, t.Core)
	}
}

// blueFlame is the decision of post_send_db.
func (q *QP) blueFlame(s *posting) bool {
	return !q.ctx.env.ShutUpBF && s.nreq == 1 && q.bf.uuarn != 0 && (s.inline || q.ctx.env.PreferBF) &&
		s.ds > 1 && s.ds <= int(q.bf.buf)/segSize
}

// push copies the WQE into the register in blocks of 64 bytes.
func (q *QP) push(t *Thread, s *posting, unspent sim.Time) {
	q.blue++
	proc := q.ctx.proc
	if s.block != nil && s.ds*segSize <= wqebb { // one block, as most are
		proc.C.BlueFlame++
		proc.C.BlueFlameBytes += wqebb
		t.Core.StoreAfter(t.P, q.bf.m, q.bf.off+q.bf.half, s.block, unspent+proc.Params.BFCopyLine)
		return
	}
	q.pushBlocks(t, s, unspent)
}

// pushBlocks is push of several blocks.
//
//go:noinline
func (q *QP) pushBlocks(t *Thread, s *posting, unspent sim.Time) {
	proc := q.ctx.proc
	bytes := min(align(s.ds*segSize, wqebb), proc.Params.BFLines*wqebb)
	proc.C.BlueFlame++
	proc.C.BlueFlameBytes += uint64(bytes)
	src := s.block // the first, where the request was built in it
	for at := 0; at < bytes; at += wqebb {
		if at > 0 || src == nil {
			src = q.block(s.ctrl + at)
		}
		t.Core.StoreAfter(t.P, q.bf.m, q.bf.off+q.bf.half+uint64(at), src, unspent+proc.Params.BFCopyLine)
		unspent = 0
	}
}
