package provider

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

// completer is what the user index of a completion names (struct mlx5_resource).
type completer interface {
	// completeSend finds the request of a requester entry and retires it with all that
	// were posted before it.
	completeSend(t *Thread, e prm.CQE64, wc *verbs.WC)
	// completeRecv finds the request of a responder entry, the oldest there is or the one
	// of the SRQ that the entry names, and returns its index.
	completeRecv(t *Thread, e prm.CQE64, wc *verbs.WC) (wqe uint32)
	// repostRecv posts the request of the SRQ that the entry names again: its page was absent. It
	// reports false when there is no SRQ.
	repostRecv(t *Thread, e prm.CQE64) bool
	// scatterSend copies the result of a read or an atomic from the entry to where the
	// send WQE wants it, scatterRecv what was received to where the receive WQE wants it.
	scatterSend(t *Thread, e prm.CQE64, wc *verbs.WC, data []byte)
	scatterRecv(t *Thread, wqe uint32, wc *verbs.WC, data []byte)
}
