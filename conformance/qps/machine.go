package qps

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

func registerMachine(s *spec.Suite) {
	s.Case("QPS-001", illegalTransitions)
	s.Case("QPS-002", missingAttribute)
	s.Case("QPS-003", strangeAttribute)
	s.Case("QPS-004", resetToErr)
	s.Case("QPS-005", anyToErr)
	s.Case("QPS-006", anyToReset)
	s.Case("QPS-007", initToInit)
	s.Case("QPS-008", rtsToRTS)
	s.Case("QPS-009", wrongCurState)
	s.Case("QPS-042", optionalAttribute)
	s.Case("QPS-043", drainedTable)
}

// allMask asks query_qp for everything.
const allMask = verbs.QPAttrMask(1<<21 - 1)

// transitionQP is a QP of one type that the generated cases take from state to state.
type transitionQP struct {
	*kit.QP
	peer kit.Peer
}

func newTransitionQP(c *spec.C, e *kit.Env, t verbs.QPType) transitionQP {
	var q *kit.QP
	if t == verbs.QPTXRCRecv {
		q = e.CreateTarget(c, e.OpenXRCD(c, kit.NoFile, 0), optionsOf(t))
	} else {
		q = e.CreateQP(c, optionsOf(t))
	}
	return transitionQP{q, q.Peer()}
}

// bringTo takes the QP to a state, by way of RESET. A device may refuse that while the queue
// drains, as Soft-RoCE does.
func (q transitionQP) bringTo(c *spec.C, to verbs.QPState) {
	if q.State() == verbs.QPSSQD {
		drained(c, q.QP)
	}
	q.ModifyState(c, verbs.QPSReset)
	switch to {
	case verbs.QPSErr:
		q.BringUp(c, q.peer, verbs.QPSInit)
		q.ModifyState(c, verbs.QPSErr)
	case verbs.QPSSQD:
		q.BringUp(c, q.peer, verbs.QPSRTS)
		q.ModifyState(c, verbs.QPSSQD)
		drained(c, q.QP)
	default:
		q.BringUp(c, q.peer, to)
	}
}

// tryModify modifies with every attribute set to what a connection needs, and the mask.
func (q transitionQP) tryModify(c *spec.C, to verbs.QPState, mask verbs.QPAttrMask) error {
	a := q.AttrFor(q.peer)
	a.State = to
	a.CurState = q.State()
	a.AltAH, a.AltPort = a.AH, a.Port
	a.RateLimit = 1000
	return q.Modify(c.T, &a, mask|verbs.QPMaskState)
}

// refused expects that the call fails with EINVAL, or as one with an unknown attribute, and changes
// nothing that query_qp returns.
func (q transitionQP) refused(c *spec.C, step string, to verbs.QPState, mask verbs.QPAttrMask) {
	before, _, err := q.Query(c.T, allMask)
	kit.Must(c, "query_qp", err)
	err = q.tryModify(c, to, mask)
	// The write ABI has no rate limit: the kernel refuses the bit before the driver sees it.
	unknown := mask&verbs.QPMaskRateLimit != 0 && verbs.ErrnoOf(err) == syscall.EOPNOTSUPP
	if verbs.ErrnoOf(err) != syscall.EINVAL && !unknown {
		c.Errno(step, err, syscall.EINVAL)
	}
	after, _, err := q.Query(c.T, allMask)
	kit.Must(c, "query_qp", err)
	if before != after {
		c.Equal(step+": attributes afterwards", after, before)
	}
}

// takesRateLimit tries the rate limit where it is strange, and returns its bit if it is taken, as a
// known deviation. A kernel takes it with every transition or with none.
func (q transitionQP) takesRateLimit(c *spec.C, name string) verbs.QPAttrMask {
	q.bringTo(c, verbs.QPSReset)
	err := q.tryModify(c, verbs.QPSReset, verbs.QPMaskRateLimit)
	if c.ErrnoIn(name+" RESET to RESET with a rate limit", err, syscall.EINVAL, syscall.EOPNOTSUPP) != 0 {
		return 0
	}
	return verbs.QPMaskRateLimit
}

// count records how much was tried with a type. XRC, which other devices lack, is left out: its
// count is as sure as the table.
func (t qpType) count(c *spec.C, what string, n int) {
	if t.token != "xrc" {
		c.Observe(t.name+what, n)
	}
}

func illegalTransitions(c *spec.C) {
	e := kit.Open(c)
	for _, t := range offered(c, e) {
		q := newTransitionQP(c, e, t.typ)
		n := 0
		for _, from := range starts {
			for _, to := range targets {
				if !isLegal(from, to) {
					q.cannot(c, t, from, to)
					n++
				}
			}
		}
		t.count(c, " refused transitions", n)
	}
}

// cannot expects that there is no way from a state to another, neither with what enters that state
// elsewhere nor with nothing.
func (q transitionQP) cannot(c *spec.C, t qpType, from, to verbs.QPState) {
	q.bringTo(c, from)
	step := fmt.Sprintf("%s %v to %v", t.name, from, to)
	q.refused(c, step, to, kit.MaskFor(t.typ, to))
	q.refused(c, step+" with the state alone", to, 0)
}

func missingAttribute(c *spec.C) {
	e := kit.Open(c)
	for _, t := range offered(c, e) {
		q := newTransitionQP(c, e, t.typ)
		n := 0
		for _, tr := range transitions(t.typ) {
			for _, a := range attributes {
				if tr.required&a.bit == 0 {
					continue
				}
				q.bringTo(c, tr.from)
				q.refused(c, fmt.Sprintf("%s %v to %v without %s", t.name, tr.from, tr.to, a.name), tr.to, tr.required&^a.bit)
				n++
			}
		}
		t.count(c, " refused for a missing attribute", n)
	}
}

func strangeAttribute(c *spec.C) {
	e := kit.Open(c)
	var taken verbs.QPAttrMask // by all types or by none
	for _, t := range offered(c, e) {
		q := newTransitionQP(c, e, t.typ)
		n := 0
		if t.token != "xrc" {
			taken = q.takesRateLimit(c, t.name)
		}
		for _, tr := range transitions(t.typ) {
			n += q.refusesStrange(c, t, tr, taken)
		}
		t.count(c, " refused for a strange attribute other than a rate limit", n)
	}
}

// refusesStrange adds each attribute to a transition that it does not take, but those that the
// target is known to take, and counts them. The transition itself is carried out afterwards.
func (q transitionQP) refusesStrange(c *spec.C, t qpType, tr transition, taken verbs.QPAttrMask) (n int) {
	q.bringTo(c, tr.from)
	for _, a := range attributes {
		if (tr.required|tr.optional|taken|otherDirection(t.typ))&a.bit != 0 {
			continue
		}
		q.refused(c, fmt.Sprintf("%s %v to %v with %s", t.name, tr.from, tr.to, a.name), tr.to, tr.required|a.bit)
		if a.bit != verbs.QPMaskRateLimit {
			n++
		}
	}
	q.taken(c, fmt.Sprintf("%s %v to %v with what it needs", t.name, tr.from, tr.to), tr, 0)
	return n
}

// taken expects that the transition is carried out with the attributes that it needs and more.
func (q transitionQP) taken(c *spec.C, step string, tr transition, more verbs.QPAttrMask) {
	kit.Must(c, step, q.tryModify(c, tr.to, tr.required|more))
	if got := q.QueryState(c); got != tr.to {
		c.Equal(step, got, tr.to)
	}
}

// unasked are optional attributes that may be refused for another reason: RoCE has no alternate
// path (QPS-023), and an address without a port gets one from the kernel (modify_qp of
// core/uverbs_cmd.c), which UC may not have in SQD.
func unasked(t verbs.QPType) verbs.QPAttrMask {
	if t == verbs.QPTUC {
		return verbs.QPMaskAltPath | verbs.QPMaskAV
	}
	return verbs.QPMaskAltPath
}

func optionalAttribute(c *spec.C) {
	e := kit.Open(c)
	for _, t := range offered(c, e) {
		q := newTransitionQP(c, e, t.typ)
		n := 0
		for _, tr := range transitions(t.typ) {
			n += q.takesOptional(c, t, tr)
		}
		t.count(c, " taken with an optional attribute", n)
	}
}

// takesOptional carries a transition out with each attribute that it may have, and with all of
// them.
func (q transitionQP) takesOptional(c *spec.C, t qpType, tr transition) (n int) {
	optional := tr.optional &^ unasked(t.typ)
	for _, a := range attributes {
		if optional&a.bit == 0 {
			continue
		}
		q.bringTo(c, tr.from)
		q.taken(c, fmt.Sprintf("%s %v to %v with %s", t.name, tr.from, tr.to, a.name), tr, a.bit)
		n++
	}
	if n > 1 {
		q.bringTo(c, tr.from)
		q.taken(c, fmt.Sprintf("%s %v to %v with all that it may have", t.name, tr.from, tr.to), tr, optional)
	}
	return n
}

// drainedTable is the part of the table of states that has SQD in it.
func drainedTable(c *spec.C) {
	e := kit.Open(c)
	for _, t := range ordinary(c, e) { // SQD of an XRC target is the affair of QPS-034
		q := newTransitionQP(c, e, t.typ)
		for _, to := range []verbs.QPState{verbs.QPSInit, verbs.QPSRTR, verbs.QPSSQE} {
			q.cannot(c, t, verbs.QPSSQD, to)
		}
		rate := q.takesRateLimit(c, t.name)
		for _, tr := range drainedTransitions(t.typ) {
			q.refusesStrange(c, t, tr, rate)
			q.takesOptional(c, t, tr)
		}
	}
}

// ordinary are the types without XRC, whose ways to ERR and RESET the table has.
func ordinary(c *spec.C, e *kit.Env) []qpType {
	return slices.DeleteFunc(offered(c, e), func(t qpType) bool { return t.token == "xrc" })
}

func resetToErr(c *spec.C) {
	e := kit.Open(c)
	for _, t := range ordinary(c, e) {
		q := newTransitionQP(c, e, t.typ)
		c.Errno(t.name+" RESET to ERR", q.tryModify(c, verbs.QPSErr, 0), syscall.EINVAL)
		c.Equal(t.name+" state", q.QueryState(c), verbs.QPSReset)
	}
}

func anyToErr(c *spec.C) {
	e := kit.Open(c)
	for _, t := range ordinary(c, e) {
		q := newTransitionQP(c, e, t.typ)
		for _, from := range starts[1:] {
			q.bringTo(c, from)
			c.Errno(fmt.Sprintf("%s %v to ERR", t.name, from), q.tryModify(c, verbs.QPSErr, 0), 0)
			c.Equal("state", q.QueryState(c), verbs.QPSErr)
		}
	}
}

func anyToReset(c *spec.C) {
	e := kit.Open(c)
	for _, t := range ordinary(c, e) {
		q := newTransitionQP(c, e, t.typ)
		for _, from := range starts {
			q.bringTo(c, from)
			c.Errno(fmt.Sprintf("%s %v to RESET", t.name, from), q.tryModify(c, verbs.QPSReset, 0), 0)
			c.Equal("state", q.QueryState(c), verbs.QPSReset)
		}
	}
}

func initToInit(c *spec.C) {
	q := newTransitionQP(c, kit.Open(c), verbs.QPTRC)
	q.bringTo(c, verbs.QPSInit)
	for _, access := range []verbs.AccessFlags{verbs.AccessRemoteWrite, 0, verbs.AccessRemoteRead, kit.RemoteAll} {
		a := q.AttrFor(q.peer)
		a.State, a.Access = verbs.QPSInit, access
		c.NoErr("INIT to INIT", q.Modify(c.T, &a, kit.MaskInitRC))
		got, _, err := q.Query(c.T, allMask)
		c.NoErr("query_qp", err)
		c.Equal("state", got.State, verbs.QPSInit)
		// mlx5 keeps READs and atomics back until max_dest_rd_atomic comes with RTR
		// (set_qpc_atomic_flags), so in INIT only the right to write can be seen.
		c.Equal("remote write", got.Access&verbs.AccessRemoteWrite, access&verbs.AccessRemoteWrite)
		c.Equal("port", got.Port, a.Port)
		c.Equal("key index", got.PKeyIndex, a.PKeyIndex)
	}
	q.StepTo(c, q.peer, verbs.QPSRTR)
	got, _, err := q.Query(c.T, allMask)
	c.NoErr("query_qp", err)
	c.Equal("access flags in RTR", got.Access&kit.RemoteAll, kit.RemoteAll)
}

// rtsToRTS leaves the alternate path and the migration state alone: RoCE refuses the
// first (QPS-023), and without it the second has nothing to say.
func rtsToRTS(c *spec.C) {
	q := newTransitionQP(c, kit.Open(c), verbs.QPTRC)
	q.bringTo(c, verbs.QPSRTS)
	a := q.AttrFor(q.peer)
	a.State, a.Access, a.MinRNRTimer = verbs.QPSRTS, verbs.AccessRemoteRead, 20
	c.NoErr("RTS to RTS", q.Modify(c.T, &a, verbs.QPMaskState|verbs.QPMaskAccessFlags|verbs.QPMaskMinRNRTimer))
	got, _, err := q.Query(c.T, allMask)
	c.NoErr("query_qp", err)
	c.Equal("access flags", got.Access&kit.RemoteAll, verbs.AccessRemoteRead)
	c.Equal("minimum RNR timer", got.MinRNRTimer, uint8(20))
	for _, at := range attributes {
		if at.bit&(liveOptional|verbs.QPMaskMinRNRTimer) != 0 {
			continue
		}
		q.refused(c, "RTS to RTS with "+at.name, verbs.QPSRTS, at.bit)
	}
}

func wrongCurState(c *spec.C) {
	q := newTransitionQP(c, kit.Open(c), verbs.QPTRC)
	for _, tc := range []struct {
		at, cur, to verbs.QPState
		mask        verbs.QPAttrMask
	}{
		{verbs.QPSRTR, verbs.QPSInit, verbs.QPSRTS, kit.MaskRTSRC},
		{verbs.QPSRTR, verbs.QPSRTS, verbs.QPSRTS, kit.MaskRTSRC},
		{verbs.QPSRTS, verbs.QPSRTR, verbs.QPSRTS, verbs.QPMaskAccessFlags},
		{verbs.QPSRTS, verbs.QPSReset, verbs.QPSRTS, verbs.QPMaskAccessFlags},
		{verbs.QPSRTS, verbs.QPSErr, verbs.QPSRTS, verbs.QPMaskAccessFlags},
	} {
		q.bringTo(c, tc.at)
		a := q.AttrFor(q.peer)
		a.State, a.CurState = tc.to, tc.cur
		step := fmt.Sprintf("%v to %v with current state %v", tc.at, tc.to, tc.cur)
		c.Errno(step, q.Modify(c.T, &a, tc.mask|verbs.QPMaskState|verbs.QPMaskCurState), syscall.EINVAL)
		c.Equal("state", q.QueryState(c), tc.at)
	}
}
