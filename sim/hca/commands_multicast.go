package hca

import (
	"slices"

	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// cmdAttachMCG has a UD QP receive what is sent to a group.
func cmdAttachMCG(d *Device, in, _ []byte) prm.Status {
	m := prm.AttachToMCGIn(in)
	q, gid := d.qpn(m.QPN()), roce.GID(m.MulticastGID())
	switch {
	case q == nil:
		return prm.StatusBadResState
	case q.st != prm.STUD || q.special() || !gid.IsMulticast():
		return prm.StatusBadParam
	case slices.Contains(d.groups[gid], q):
		return prm.StatusBadResState
	case d.groups[gid] == nil && len(d.groups) >= 1<<d.p.LogMaxMCG:
		return prm.StatusLimErr
	case len(d.groups[gid]) >= d.p.MaxQPMCG:
		return prm.StatusLimErr
	}
	d.groups[gid] = append(d.groups[gid], q)
	q.joined++
	return prm.StatusOK
}

func cmdDetachMCG(d *Device, in, _ []byte) prm.Status {
	m := prm.DetachFromMCGIn(in)
	gid := roce.GID(m.MulticastGID())
	i := slices.IndexFunc(d.groups[gid], func(q *qp) bool { return q.num == m.QPN() })
	if i < 0 {
		return prm.StatusBadResState
	}
	d.groups[gid][i].joined--
	if d.breaks(rule.DetachedQPGetsNothing) {
		return prm.StatusOK
	}
	if d.groups[gid] = slices.Delete(d.groups[gid], i, i+1); len(d.groups[gid]) == 0 {
		delete(d.groups, gid)
	}
	return prm.StatusOK
}
