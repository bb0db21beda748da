package cm

import (
	"syscall"

	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/roce/mad"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
	"github.com/rdmasim/rdmasim/verbs"
)

// ibRoute is cma_resolve_ib_route: the subnet administrator knows the path.
func (x *rdmaID) ibRoute(timeout sim.Time) error {
	q, err := x.port.sa.ask(x.pathQuery(), timeout, x.pathAnswered)
	if err != nil {
		return err
	}
	x.path, x.query = nil, q
	return nil
}

// pathQuery is the request of cma_query_ib_route.
func (x *rdmaID) pathQuery() *saRequest {
	r := &saRequest{method: mad.Get, attribute: mad.AttrPathRecord}
	r.components = mad.PathDGID | mad.PathSGID | mad.PathPKey | mad.PathNumber | mad.PathReversible | mad.PathServiceID | mad.PathServiceIDLow
	v4 := x.src.Addr().Is4()
	if v4 {
		r.components |= mad.PathQoSClass
	} else {
		r.components |= mad.PathTrafficClass
	}
	r.fill = func(b []byte) {
		p := mad.PathRecord(b)
		p.SetSGID(roce.GID(x.sourceGID()))
		p.SetDGID(roce.GID(x.destinationGID()))
		p.SetPKey(x.pkey)
		p.SetNumber(1)
		p.SetReversible(true)
		p.SetServiceID(service(x.ps, x.dst.Port()))
		if v4 && !x.ids.m.breaks(rule.QueriesNameTheClassOfService) {
			p.SetQoSClass(uint16(x.tos))
		}
	}
	return r
}

// pathAnswered is cma_query_handler. What it found takes effect by the work queue.
func (x *rdmaID) pathAnswered(status int32, record []byte) {
	x.query = nil
	var p *path
	if status == 0 {
		p = &path{port: x.port, sgid: x.sgid, PathRecord: recordOf(record)}
	}
	if x.ids.m.breaks(rule.PathsAreTheAdministrators) && p != nil {
		p.DLID++
	}
	x.ids.m.work.add(func() {
		switch {
		case x.state != routeQuery:
		case p == nil:
			x.state = addrResolved
			x.report(&idEvent{typ: verbs.CMRouteError, status: status})
		default:
			x.path, x.state = p, routeResolved
			x.report(&idEvent{typ: verbs.CMRouteResolved})
		}
	})
}

// findPKey is ib_find_cached_pkey: the entry of a port's table that is of a partition, a full
// member's before a limited one's.
func (p *port) findPKey(key uint16) (index int, ok bool) {
	if !p.ib() {
		return 0, key == defaultPKey
	}
	const full = 0x8000
	for i, k := range p.d.PKeys() {
		switch {
		case k&^full != key&^full || k == 0:
		case k&full != 0:
			return i, true
		case !ok:
			index, ok = i, true
		}
	}
	return index, ok
}

// interfacePKey is the partition of the port's interface: the first of the table, as a full member
// (ipoib_intf_init).
func (p *port) interfacePKey() uint16 {
	if !p.ib() {
		return defaultPKey
	}
	const full = 0x8000
	if l := p.d.PKeys(); len(l) > 0 {
		return l[0] | full
	}
	return defaultPKey
}

// errNoPartition is the errno of a partition that the port is not in.
const errNoPartition = syscall.EINVAL
