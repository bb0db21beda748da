package random

import (
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/model"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
)

// injects reports whether packets can be disturbed. The capability may be that of a wire which this
// process does not see.
func injects(c *spec.C) bool { return c.Has("inj") && c.TB.Wire() != nil }

// recovery is how long requests may take whose packets were lost. Some devices wait half a second
// for an ACK whatever the timeout says.
const recovery = 2 * time.Second

// disturb puts the program's faults on the wire, for the queue pairs that there are now. Where that
// cannot be done, and where the device sends nothing to itself by its port, the results are the
// same.
func (r *run) disturb() {
	if len(r.p.Faults) == 0 || !injects(r.c) {
		return
	}
	kit.ClearRules(r.c)
	for _, f := range r.p.Faults {
		err := r.c.TB.Wire().Inject(r.c.T, verbs.WireRule{Match: verbs.WireMatchDestQPN, DestQPN: r.qps[f.To].QPN(), Skip: f.Skip, Count: f.Count,
			Action: f.Action, Delay: time.Duration(f.Delay) * time.Microsecond})
		kit.Must(r.c, "inject", err)
	}
}

// together is how many requests of a list are posted at once on a wire with faults: those that
// succeed for certain, or one. A request that fails ends its responder, which then answers no more
// what was lost of those before it.
func (r *run) together(i, k int, list []Request) int {
	for n := range list {
		if _, x := r.build(i, n, k, list[n:n+1]); len(x) > 0 && !r.qm[k].Sure(&x[0]) {
			return max(1, n)
		}
	}
	return len(list)
}

// calm waits until packets that were delayed have arrived, where a program has any: after a reset
// the same numbers mean other packets.
func (r *run) calm() {
	if r.world.Lossy {
		r.settle()
	}
}

// late posts a request before the receive that it needs, which comes while the sender waits for its
// RNR timer. It returns false where that is not certain to be soon enough.
func (r *run) late(i int, s *Step) bool {
	k := s.Side
	q, p := r.qm[k], r.qm[1-k]
	wait := time.Duration(s.Late) * time.Microsecond
	patience := time.Duration(roce.RNRTimer(p.Attr().MinRNRTimer)) * time.Duration(q.Attr().RNRRetry)
	if !r.c.Has(kit.ExactTime) || r.p.UC || r.p.UD || q.State != verbs.QPSRTS || !q.Plain() || !p.Quiet() || p.State != verbs.QPSRTS || p.Posted() > 0 ||
		wait+100*time.Microsecond > patience || len(s.List) != 1 || !s.List[0].sends() || !r.room(i, k, 2) || !r.roomForRecv(i, 1-k, s.Pieces) {
		return false
	}
	wrs, posted := r.build(i, 0, k, s.List)
	if len(wrs) == 0 {
		return false
	}
	bad, err := r.qps[k].TryPost(r.c, wrs)
	r.c.T.Sleep(wait)
	recv := r.postRecv(i, 0, 1-k, s.Pieces)
	r.call("step %d: post_send before its receive: %s", i+1, errnoName(err))
	r.judgeRecv(i, 0, 1-k, s.Pieces, recv) // the order of the two changes no result
	if !r.ended && r.judge(i, "post_send", q.PostSend(posted, bad, err)) && err == nil {
		r.mark(i, k)
	}
	return true
}

// surely builds the requests of a step that succeed for certain if nothing comes between.
func (r *run) surely(i int, s *Step) (wrs []verbs.SendWR, posted []model.Request) {
	q := r.qm[s.Side]
	if len(s.List) == 0 || q.State != verbs.QPSRTS || !q.Plain() {
		return nil, nil
	}
	list := s.List[:r.p.groups(s.List, r.awaited[1-s.Side])[0]]
	list = list[:min(len(list), int(q.Cap.MaxSendWR)-1)]
	if len(list) == 0 || !r.room(i, s.Side, len(list)+1) {
		return nil, nil
	}
	all, requests := r.build(i, 0, s.Side, list)
	for n := range all {
		if q.Sure(&requests[n]) {
			wrs, posted = append(wrs, all[n]), append(posted, requests[n])
		}
	}
	return wrs, posted
}

// launch posts requests that are under way when the queue pair goes to ERR or ends.
func (r *run) launch(i int, s *Step) ([]model.Request, bool) {
	wrs, posted := r.surely(i, s)
	if len(wrs) == 0 {
		return nil, false
	}
	bad, err := r.qps[s.Side].TryPost(r.c, wrs)
	if err != nil {
		r.judge(i, "post_send", r.qm[s.Side].PostSend(posted, bad, err))
		return nil, false
	}
	return posted, true
}

// drainUnderWay brings a side to SQD while requests are under way, and back. It returns false if it
// did nothing.
func (r *run) drainUnderWay(i int, s *Step) bool {
	k := s.Side
	wrs, posted := r.surely(i, s)
	if len(wrs) == 0 {
		return false
	}
	bad, err := r.qps[k].TryPost(r.c, wrs)
	down := verbs.QPAttr{State: verbs.QPSSQD, EnSQDAsyncNotify: s.N != 0}
	first := r.qps[k].Modify(r.c.T, &down, verbs.QPMaskState|verbs.QPMaskEnSQDAsyncNotify)
	r.settle()
	if r.world.Lossy { // the retries of what was lost, or met an absent page
		r.c.T.Sleep(recovery)
	}
	second := r.qps[k].Modify(r.c.T, &verbs.QPAttr{State: verbs.QPSRTS}, verbs.QPMaskState)
	r.call("step %d: post_send, modify_qp to SQD and RTS: %s, %s, %s", i+1, errnoName(err), errnoName(first), errnoName(second))
	// Whether a request has begun before SQD or begins behind it is not seen, and its result is the
	// same.
	if r.judge(i, "modify_qp to SQD with requests under way", r.qm[k].Modify(&down, verbs.QPMaskState|verbs.QPMaskEnSQDAsyncNotify, first)) &&
		r.judge(i, "modify_qp to RTS", r.qm[k].Modify(&verbs.QPAttr{State: verbs.QPSRTS}, verbs.QPMaskState, second)) &&
		r.judge(i, "post_send", r.qm[k].PostSend(posted, bad, err)) && err == nil {
		r.mark(i, k)
	}
	return true
}
