package hca

import (
	"slices"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim"
)

// Streams of a DCI (rdma-core man mlx5dv_dci_stream_id_reset): each request is of one, and an error
// that is a request's own, or the target's about it, ends its stream only. Later requests of that
// stream are flushed in order, and those of others are carried out, until the stream is reset, or
// until as many are in error as the QP was made for, and the QP is. Requests of all streams take
// turns in the one send queue.

// streams are those of a DCI that are in error.
type streams struct {
	limit  int // that many in error end the QP
	failed []uint16
}

// newStreams is what a context asks for, nil without streams.
func newStreams(c prm.QPC) *streams {
	n := c.LogNumDCIErroredStreams()
	if c.ST() != prm.STDCI || n == 0 {
		return nil
	}
	return &streams{limit: 1 << n}
}

// flushed says whether requests of a stream are flushed.
func (s *streams) flushed(id uint16) bool { return s != nil && slices.Contains(s.failed, id) }

// restart has a stream in error take requests again, and reports whether it was one.
func (s *streams) restart(id uint16) bool {
	if s == nil {
		return false
	}
	i := slices.Index(s.failed, id)
	if i >= 0 {
		s.failed = slices.Delete(s.failed, i, i+1)
	}
	return i >= 0
}

// endsStream says whether an error is one of the request's stream alone. Without answers, and with
// ones that make no sense, the connection is in doubt, and the QP ends: an assumption.
func (s *streams) endsStream(id uint16, why prm.Syndrome) bool {
	if s == nil {
		return false
	}
	switch why {
	case prm.SyndromeWRFlush:
		return true
	case prm.SyndromeTransportRetryExc, prm.SyndromeBadResp:
		return false
	}
	if !slices.Contains(s.failed, id) {
		s.failed = append(s.failed, id)
	}
	return len(s.failed) < s.limit
}

// stream is that of the WQE at the cursor.
func (q *requester) stream() uint16 {
	return prm.CtrlSegment(q.sq.whole(int(q.nbb))).DCIStream()
}

// passFailed completes the oldest request, whose stream alone has failed, and goes on behind it.
// What the target has not taken of it, and what it has dropped behind it, goes by a new connection.
func (q *requester) passFailed(m *msg) {
	q.reportFailed(m)
	q.headGone, q.nakked, q.halt = false, false, false
	if m.land >= 0 && q.landing[m.land].busy {
		q.endRead(m)
	}
	landed := m.kind != msgPush && m.fail == prm.SyndromeLocalProt // the target has done its part, and goes on
	end, una := roce.AddPSN(m.first, int32(m.n)), q.una
	if m.n > 0 && roce.CmpPSN(una, end) < 0 {
		q.una = end
	}
	if roce.CmpPSN(q.sent, q.una) < 0 {
		q.sent = q.una
	}
	q.head++
	q.syncCursor()
	if q.una != una && !landed {
		q.goBack()
		q.reconnect()
	}
	q.waiting, q.retry, q.rnr, q.deadline = false, q.retryMax, q.rnrMax, sim.Never
	if q.outstanding() {
		q.setDeadline()
	}
	q.complete()
	q.kick()
}
