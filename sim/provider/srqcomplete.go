package provider

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// The completions of an XRC SRQ name it, and not the target QP, by its user index.
var _ completer = (*SRQ)(nil)

// completeSend is for requests, which an SRQ has none of.
func (s *SRQ) completeSend(*Thread, prm.CQE64, *verbs.WC) {}

// completeRecv retires the request of an entry.
func (s *SRQ) completeRecv(t *Thread, e prm.CQE64, wc *verbs.WC) uint32 {
	idx := e.WQECounter()
	wc.ID = s.retire(t, idx)
	return uint32(idx)
}

// repostRecv posts the request of an entry again.
func (s *SRQ) repostRecv(t *Thread, e prm.CQE64) bool {
	s.repost(t, e.WQECounter())
	return true
}

// scatterSend is for requests.
func (s *SRQ) scatterSend(*Thread, prm.CQE64, *verbs.WC, []byte) {}

// scatterRecv is mlx5_copy_to_recv_srq.
func (s *SRQ) scatterRecv(t *Thread, wqe uint32, wc *verbs.WC, data []byte) {
	b := s.wqe(int(wqe) & (s.max - 1))[prm.SRQNextSegmentSize:]
	for i := 0; i < s.maxGS && len(data) > 0; i++ {
		data = s.ctx.store(t, prm.DataSegment(b[i*segSize:]), data)
	}
	if len(data) > 0 {
		wc.Status = verbs.WCLocLenErr
	}
}
