package oracle

import "github.com/rdmasim/rdmasim/roce"

// CNPScope says between which CNPs a notification point keeps its least interval.
type CNPScope uint8

// Scopes, by what mlx5 devices were seen to do (Lumina, SIGCOMM 2023, section 6.3).
const (
	PerPort CNPScope = iota
	PerDestination
	PerQP
)

// notifier is a pacing domain of a notification point.
type notifier struct {
	from, to roce.GID
	qp       uint32
}

// notifying is what was seen of one.
type notifying struct {
	sent   bool
	last   int64 // time of the last CNP
	due    *rec  // a marked frame that still needs one
	dueFor int64 // and when it is late
}

// domain is the pacing domain of a CNP; of a marked frame that needs one, with the ends
// swapped, all but its QP.
func (j *judge) domain(from, to roce.GID, qp uint32) *notifying {
	key := notifier{from: from}
	if j.o.CNPScope >= PerDestination {
		key.to = to
	}
	if j.o.CNPScope == PerQP {
		key.qp = qp
	}
	n := j.notifiers[key]
	if n == nil {
		n = &notifying{}
		j.notifiers[key] = n
	}
	return n
}

// isMarked says whether the frame arrived marked "congestion experienced".
func isMarked(r *rec) bool {
	return r.Fate.arrives() && (r.p.TrafficClass()&3 == 3 || r.Fate == Marked)
}

// isMarkable says whether a switch may mark the frame: its sender heeds marks (ECT).
func isMarkable(r *rec) bool {
	ecn := r.p.TrafficClass() & 3
	return r.Fate.arrives() && (ecn == 1 || ecn == 2)
}

// notice judges a CNP against the marks and the CNPs before it.
func (j *judge) notice(r *rec, e endpoint) {
	switch ends := (endpoint{e.src, e.dst, 0, 0}); {
	case j.marked[ends]:
	case !j.o.Complete, j.o.Declared && !j.seen[ends]:
		j.constant(Inconclusive, "OR-106", r, flowName(&r.p), "a CNP, and the frame of its receiver that was marked CE is not in the capture")
	case j.markable[ends]:
		j.constant(Inconclusive, "OR-106", r, flowName(&r.p), "a CNP, and no frame of its receiver was marked CE where it was captured: a switch may have marked one behind it")
	default:
		j.verdict(Violation, "OR-106", r.Number, flowName(&r.p), "a CNP, and no frame of its receiver was marked CE")
	}
	if j.o.CNPInterval == 0 {
		return
	}
	n := j.domain(e.src, e.dst, e.qpn)
	if gap := r.Time - n.last; n.sent && gap+j.o.Tolerance < j.o.CNPInterval {
		j.verdict(Violation, "OR-108", r.Number, flowName(&r.p), "%d ns after the last CNP, the interval is %d ns", gap, j.o.CNPInterval)
	}
	n.sent, n.last, n.due = true, r.Time, nil
}

// congestion checks a frame for marks that need a CNP, and for CNPs that are late. With
// one domain for each QP it is not known which QP a mark is for.
func (j *judge) congestion(r *rec, e endpoint) {
	ends := endpoint{e.dst, e.src, 0, 0}
	j.seen[ends] = true
	if isMarked(r) {
		j.marked[ends] = true
	}
	if isMarkable(r) {
		j.markable[ends] = true
	}
	if j.o.CNPInterval == 0 || j.o.CNPScope == PerQP {
		return
	}
	n := j.domain(e.dst, e.src, 0)
	if n.due != nil && r.Time > n.dueFor {
		k := Inconclusive
		if j.o.Delivered && j.o.Complete {
			k = Violation
		}
		j.verdict(k, "OR-107", n.due.Number, flowName(&n.due.p), "it arrived marked, and no CNP follows within %d ns", n.dueFor-n.due.Time)
		n.due = nil
	}
	data := r.kind == roce.KindRequest || r.info.Class == roce.ClassReadResponse
	connected := r.p.Op.Transport() == roce.RC || r.p.Op.Transport() == roce.UC
	if n.due == nil && data && connected && isMarked(r) && (!n.sent || r.Time-n.last > j.o.CNPInterval+j.o.flight()) {
		n.due, n.dueFor = r, r.Time+j.o.flight()+j.o.Tolerance
	}
}
