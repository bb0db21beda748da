package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
)

// datagram makes the headers of a datagram in the frame's slot i. A Q_Key with the top
// bit set in the WQE stands for the QP's own.
func (q *requester) datagram(op roce.Opcode, psn uint32, n int, flags roce.Flags, av prm.AVSegment) (f *roce.Frame, i int32) {
	u := q.u
	e := q.paths.path(&q.u.addresses, av, q.pkey, q.manages())
	e.tmpl.SetDestQP(av.DestQPN())
	f = e.tmpl.New(&u.frames, op, psn, n, flags)
	key := av.QKey()
	if key>>31 != 0 {
		key = q.context().QKey()
	}
	h := f.DETH()
	h.SetQKey(key)
	h.SetSrcQP(q.wireQPN)
	i = u.getSlot(f)
	u.slot(i).loop, u.slot(i).group = e.loop, e.group
	return f, i
}
