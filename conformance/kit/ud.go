package kit

import (
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// DefaultFor returns Default with another type of QP.
func DefaultFor(t verbs.QPType) Options {
	o := Default()
	o.Type = t
	return o
}

// NewUD creates a UD QP with the default options and takes it to RTS.
func (e *Env) NewUD(c *spec.C) *QP {
	q := e.CreateQP(c, DefaultFor(verbs.QPTUD))
	q.BringUp(c, Peer{}, verbs.QPSRTS)
	return q
}

// CreateAH creates an address handle, which is destroyed when the case ends.
func (e *Env) CreateAH(c *spec.C, a verbs.AHAttr) verbs.AH {
	ah, err := e.PD.CreateAH(c.T, a)
	ok(c, "create_ah", err)
	DestroyOnce(c, "destroy_ah", ah.Destroy)
	return ah
}

// Datagram returns a signalled send to a UD QP, with QKey.
func Datagram(id uint64, ah verbs.AH, qpn uint32, sges ...verbs.SGE) verbs.SendWR {
	w := Send(id, sges...)
	w.AH, w.RemoteQPN, w.RemoteQKey = ah, qpn, QKey
	return w
}

// JoinMulticast attaches the QP to a multicast group until the case ends.
func (q *QP) JoinMulticast(c *spec.C, group verbs.GID) {
	lid := q.Env.Group(group).LID
	ok(c, "attach_mcast", q.AttachMcast(c.T, group, lid))
	c.Defer(func() { _ = q.DetachMcast(c.T, group, lid) })
}
