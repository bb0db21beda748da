package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// nameSRQ puts the number of the SRQ that a WQE names into a request packet of an XRC initiator:
// each bears it, first ones and others, when they are sent and when they are sent again.
func (q *requester) nameSRQ(m *msg, f *roce.Frame, psn uint32) {
	if psn != m.first && q.breaks(rule.EachPacketNamesTheSRQ) || roce.CmpPSN(psn, q.sent) < 0 && q.breaks(rule.RetransmissionNamesTheSRQ) {
		return
	}
	f.XRCETH().SetSRQN(m.srqn)
}

// namesAnother says whether a WQE that is sent again names another SRQ than before.
func (q *requester) namesAnother(m *msg, w *prm.SendWQE) bool {
	return q.st == prm.STXRC && w.XRC.SRQN() != m.srqn
}
