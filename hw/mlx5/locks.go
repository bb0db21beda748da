//go:build hw

package mlx5

/*
#include "verbs.h"
*/
import "C"

import (
	"sync/atomic"
	"unsafe"

	"github.com/rdmasim/rdmasim/verbs"
)

// Locks of the library are counted where it takes them: in ibv_post_send, ibv_post_recv,
// ibv_post_srq_recv, ibv_poll_cq and ibv_start_poll. What other calls take of them (the extended
// way to post, bindings, the end of a queue) is not in the counts.

var (
	_ verbs.LockCounter = (*qp)(nil)
	_ verbs.LockCounter = (*srq)(nil)
	_ verbs.LockCounter = (*cq)(nil)
)

// lockCount counts the locks that calls on an object take.
type lockCount struct{ c C.struct_hw_locks }

// watch begins to count. The object has a block of memory of its own, as those of libmlx5 do, with
// its locks inside.
func (l *lockCount) watch(c *context, object unsafe.Pointer) {
	if c.mlx5 {
		l.c.size = C.hw_object_size(object)
	}
}

func (l *lockCount) own() uint64   { return atomic.LoadUint64((*uint64)(&l.c.own)) }
func (l *lockCount) other() uint64 { return atomic.LoadUint64((*uint64)(&l.c.other)) }
func (l *lockCount) waits() uint64 { return atomic.LoadUint64((*uint64)(&l.c.waits)) }

// LockStats counts what ibv_post_send and ibv_post_recv took. What a send takes outside of its
// queue pair is the lock of the register.
func (q *qp) LockStats() verbs.LockStats {
	return verbs.LockStats{SQ: q.sends.own(), BF: q.sends.other(), RQ: q.recvs.own(), Waits: q.sends.waits() + q.recvs.waits()}
}

// LockStats counts what ibv_post_srq_recv took.
func (s *srq) LockStats() verbs.LockStats {
	return verbs.LockStats{RQ: s.locks.own(), Waits: s.locks.waits()}
}

// LockStats counts what ibv_poll_cq and ibv_start_poll took of the queue itself.
func (q *cq) LockStats() verbs.LockStats {
	return verbs.LockStats{CQ: q.locks.own(), Waits: q.locks.waits()}
}
