package random

import (
	"fmt"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// toGroup is the address handle to the group.
const toGroup = 2

// group is the multicast group of the program's kind of address.
func (r *run) group() verbs.GID {
	if r.p.IPv6 && !r.on.IB {
		return verbs.GID{0xff, 0x15, 12: 7, 15: 1}
	}
	return verbs.GID(roce.GIDFromIPv4([4]byte{239, 7, 7, 1}))
}

// member joins the group, or leaves it.
func (r *run) member(i int, s *Step) {
	q, g := r.qm[s.Side], r.group()
	lid := r.env.Group(g).LID
	var err, verdict error
	switch {
	case s.N == 0:
		err = r.qps[s.Side].DetachMcast(r.c.T, g, lid)
		verdict = q.Detach(err)
	case q.Member(): // what another attach returns differs (UD-018)
		return
	default:
		err = r.qps[s.Side].AttachMcast(r.c.T, g, lid)
		verdict = q.Attach(err)
	}
	r.call("step %d: membership %d of %s: %s", i+1, s.N, side(s.Side), errnoName(err))
	r.judge(i, fmt.Sprintf("membership %d of %s", s.N, side(s.Side)), verdict)
}

// leaveGroup has a queue pair leave the group, without which it cannot end.
func (r *run) leaveGroup(i, k int) {
	if r.qm[k] != nil && r.qm[k].Member() {
		r.member(i, &Step{Side: k})
	}
}
