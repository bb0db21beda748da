package kernel

import (
	"maps"
	"slices"

	"github.com/rdmasim/rdmasim/verbs"
)

// TrackedKind is a kind of object that ib_core keeps for `rdma resource` (enum rdma_restrack_type).
type TrackedKind uint8

// Kinds.
const (
	TrackedPD TrackedKind = iota
	TrackedCQ
	TrackedQP
	TrackedMR
	TrackedContext
	TrackedSRQ
	trackedKinds = iota
)

// Tracked describes an object of a process as ib_core does.
type Tracked struct {
	Kind TrackedKind
	// ID is the QPN of a QP. Objects of other kinds are numbered in the order of their creation,
	// from 0 on each device (xa_alloc_cyclic); a real kernel's own objects take the first numbers.
	ID      uint32
	Context uint32 // ID of the context
	Process *Process
	PD, CQ  uint32 // IDs: PD of all but CQs and contexts, CQ of an XRC SRQ
	NoPD    bool   // XRC target

	Uses   int // of a PD or a CQ: usecnt
	CQE    uint32
	Length uint64 // of a region, bytes
	Key    uint32 // of a region, lkey and rkey

	QPType  verbs.QPType
	QP      verbs.QPAttr // of a QP, as a query says
	SRQType verbs.SRQType
	QPNs    []uint32 // of an SRQ: the QPs that use it, ascending

	OnDemand, Implicit bool // of a region
	Counters           []verbs.NamedCounter
}

// trackNumbers are the next numbers of a device, by kind.
type trackNumbers [trackedKinds]uint32

func (n *trackNumbers) take(k TrackedKind) uint32 {
	n[k]++
	return n[k] - 1
}

// trackedIDs are the numbers of the objects of a context, by handle.
type trackedIDs struct {
	next *trackNumbers // nil: they are not numbered
	of   map[Handle]uint32
}

func (t *trackedIDs) add(h Handle, x object) {
	k, ok := trackedKind(x)
	if !ok || t.next == nil {
		return
	}
	if t.of == nil {
		t.of = map[Handle]uint32{}
	}
	t.of[h] = t.next.take(k)
}

func (t *trackedIDs) remove(h Handle) { delete(t.of, h) }

// trackedKind is the kind of an object that is numbered; QPs have a number of their own.
func trackedKind(x object) (TrackedKind, bool) {
	switch x.(type) {
	case *pd:
		return TrackedPD, true
	case *cq:
		return TrackedCQ, true
	case *mr:
		return TrackedMR, true
	case *srq:
		return TrackedSRQ, true
	}
	return 0, false
}

// Tracked returns the objects of a kind that processes own, in the order of their IDs. It queries
// the attributes of each QP by a command, and leaves out a QP whose command fails.
func (d *Device) Tracked(c Caller, kind TrackedKind) (all []Tracked) {
	k := d.enter(c, true)
	defer k.leave()
	for _, f := range d.files {
		if u, ok := f.(*Ucontext); ok && !u.closed && !u.removed {
			all = u.tracked(&k, kind, all)
		}
	}
	slices.SortFunc(all, func(a, b Tracked) int { return int(int64(a.ID) - int64(b.ID)) })
	return slices.CompactFunc(all, func(a, b Tracked) bool { return a.ID == b.ID }) // a target QP has several handles
}

// tracked appends the objects of a context.
func (u *Ucontext) tracked(k *call, kind TrackedKind, all []Tracked) []Tracked {
	if kind == TrackedContext {
		return append(all, Tracked{Kind: kind, ID: u.trackID, Context: u.trackID, Process: u.proc})
	}
	ids := u.idsByObject()
	for _, h := range slices.Sorted(maps.Keys(u.objs.tab)) {
		t := Tracked{Kind: kind, ID: u.objs.ids.of[h], Context: u.trackID, Process: u.proc}
		if u.describe(k, u.objs.tab[h], ids, &t) {
			all = append(all, t)
		}
	}
	return all
}

// idsByObject are the numbers of the context's objects.
func (u *Ucontext) idsByObject() map[object]uint32 {
	ids := make(map[object]uint32, len(u.objs.ids.of))
	for h, id := range u.objs.ids.of {
		ids[u.objs.tab[h]] = id
	}
	return ids
}

// describe fills in what is said of an object, and reports whether it is of the kind that is asked
// for.
func (u *Ucontext) describe(k *call, x object, ids map[object]uint32, t *Tracked) bool {
	if q, ok := x.(queuePair); ok {
		return t.Kind == TrackedQP && q.queue().describe(k, ids, t)
	}
	if kind, ok := trackedKind(x); !ok || kind != t.Kind {
		return false
	}
	switch x := x.(type) {
	case *pd:
		t.Uses = x.refs
	case *cq:
		t.Uses, t.CQE = x.refs, x.entries-1
	case *mr:
		t.Length, t.Key, t.PD = x.length(), x.mkey, ids[x.pd]
		t.OnDemand, t.Implicit = x.odp != nil, x.odp != nil && x.odp.implicit
		t.Counters, _ = x.counters()
	case *srq:
		t.PD, t.QPNs = ids[x.pd], u.dev.usersOf(x)
		if x.cq != nil {
			t.SRQType, t.CQ = verbs.SRQXRC, ids[x.cq]
		}
	}
	return true
}

func (q *qp) describe(k *call, ids map[object]uint32, t *Tracked) bool {
	if q.dct != nil { // rdma_restrack_no_track
		return false
	}
	t.ID, t.QPType = q.qpn, q.typ
	if t.NoPD = q.pd == nil; !t.NoPD {
		t.PD = ids[q.pd]
	}
	var err error
	t.QP, err = q.query(k)
	return err == nil
}

// usersOf are the QPs that take their receives from an SRQ, ascending.
func (d *Device) usersOf(s *srq) (qpns []uint32) {
	for n, x := range d.qps {
		if q, ok := x.(*qp); ok && q.srq == s {
			qpns = append(qpns, n)
		}
	}
	slices.Sort(qpns)
	return qpns
}
