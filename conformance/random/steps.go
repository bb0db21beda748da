package random

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/model"
	"github.com/rdmasim/rdmasim/verbs"
)

func (r *run) step(i int, s *Step) {
	switch s.Kind {
	case StepRecv:
		for n := range min(max(1, s.Times), marker) {
			if !r.ended {
				r.recv(i, n, s)
			}
		}
	case StepSend:
		if s.Late > 0 && r.late(i, s) {
			return
		}
		list := r.granted(s)
		for range max(1, s.Times) {
			from := 0
			for _, to := range r.p.groups(list, r.awaited[1-s.Side]) {
				for from < to {
					if r.ended || r.qm[s.Side].Drained() && (from > 0 || !r.qm[s.Side].Plain()) {
						return // what waits in SQD runs at once later, and one group alone may
					}
					some := list[from:to]
					if r.world.Lossy {
						some = some[:r.together(i, s.Side, some)]
					}
					r.send(i, from, s, some)
					from += len(some)
				}
			}
		}
	case StepError:
		if l, ok := r.launch(i, s); ok {
			r.qm[s.Side].Interrupted(l)
		}
		r.toError(i, s.Side)
		r.calm()
	case StepDereg:
		if m := r.mrs[s.Region]; m != nil {
			err := m.Dereg(r.c.T)
			r.call("step %d: dereg m%d: %s", i+1, s.Region, errnoName(err))
			r.judge(i, "ibv_dereg_mr", r.rm[s.Region].Dereg(err))
			if err == nil {
				r.mrs[s.Region] = nil
			}
		}
	case StepReg:
		r.regAgain(i, s)
	case StepRereg:
		r.rereg(i, s)
	case StepEvict:
		r.evict(i, s)
	case StepAdvise:
		r.advise(i, s)
	case StepRestart:
		r.restart(i)
	case StepRenew:
		r.renew(i, s)
	case StepPoll:
		n := r.cq(s.Side, s.Recv)
		r.poll(i, n, max(1, r.number(s, n)))
	case StepArm:
		n := r.cq(s.Side, s.Recv)
		err := r.cqs[n].ReqNotify(r.c.T, s.Solicited)
		r.call("step %d: req_notify of %s: %s", i+1, r.cm[n].Name, errnoName(err))
		r.judge(i, "ibv_req_notify_cq", r.cm[n].Arm(s.Solicited, err))
	case StepEvent:
		r.events(i)
	case StepResize:
		n := r.cq(s.Side, s.Recv)
		to := r.number(s, n)
		if to > 0 && to < r.reserved(n) {
			return // what is posted has to fit
		}
		err := r.cqs[n].Resize(r.c.T, to)
		if s.Anchor != AnchorWaiting { // how much waits is a question of time, and no difference of two targets
			r.call("step %d: resize %s to %d: %s", i+1, r.cm[n].Name, to, errnoName(err))
		}
		r.judge(i, fmt.Sprintf("ibv_resize_cq of %s to %d", r.cm[n].Name, to), r.cm[n].Resize(to, r.cqs[n].Cap(), err))
	case StepLimit:
		r.limit(i, s)
	case StepModify:
		a := s.attributes()
		if !r.c.Has(kit.ExactTime) {
			a.Timeout = max(a.Timeout, realTimeout)
		}
		r.modify(i, s.Side, &a, s.Mask)
	case StepDrain:
		r.drain(i, s)
	case StepBind:
		r.bind(i, s)
	case StepGroup:
		r.member(i, s)
	case StepModer:
		n := r.cq(s.Side, s.Recv)
		m := verbs.CQModeration{Count: uint16(s.N), Period: uint16(s.Period)}
		err := r.cqs[n].Modify(r.c.T, m)
		r.call("step %d: modify %s: %s", i+1, r.cm[n].Name, errnoName(err))
		r.judge(i, "ibv_modify_cq of "+r.cm[n].Name, r.cm[n].Moderate(m, err))
	case StepQuery:
		r.query(i, s.Side)
	}
}

// granted are the requests of a step, with inline data about the most that the queue pair was
// granted.
func (r *run) granted(s *Step) []Request {
	list := s.List
	for n := range list {
		if list[n].Most == 0 {
			continue
		}
		if &list[0] == &s.List[0] {
			list = slices.Clone(list)
		}
		x := &list[n]
		x.Local = slices.Clone(x.Local)
		first, rest := &x.Local[0], length(x.Local[1:])
		first.Len = min(max(0, int(r.qm[s.Side].Cap.MaxInline)+x.Most-2-rest), maxLen)
		first.Off = min(first.Off, memorySize-first.Len)
	}
	return list
}

// attributes are what StepModify sets.
func (s *Step) attributes() verbs.QPAttr {
	n := func(most int) uint8 { return uint8(min(s.N, most)) }
	return verbs.QPAttr{Access: s.Access, MinRNRTimer: n(31), Timeout: max(1, n(14)), RetryCnt: n(3), RNRRetry: n(3), MaxRdAtomic: max(1, n(8)), MaxDestRdAtomic: max(1, n(8)),
		Port: 1, PathMTU: verbs.MTU(max(1, n(5))), QKey: uint32(s.N)}
}

// drain brings a side to SQD, or back to RTS, where what was posted in between runs.
func (r *run) drain(i int, s *Step) {
	k := s.Side
	if !r.qm[k].Drained() && r.drainUnderWay(i, s) {
		return
	}
	if !r.qm[k].Drained() {
		r.modify(i, k, &verbs.QPAttr{State: verbs.QPSSQD, EnSQDAsyncNotify: s.N != 0}, verbs.QPMaskState|verbs.QPMaskEnSQDAsyncNotify)
		return
	}
	if r.modify(i, k, &verbs.QPAttr{State: verbs.QPSRTS}, verbs.QPMaskState) && r.room(i, k, 1) {
		r.mark(i, k)
	}
}

// number is that of a step, by its anchor; n is its CQ.
func (r *run) number(s *Step, n int) int {
	_, waiting := r.cm[n].Waiting()
	switch s.Anchor {
	case AnchorWaiting:
		return waiting + s.N
	case AnchorCap:
		return r.cm[n].Cap + s.N
	}
	return s.N
}

// toError brings a side to ERR.
func (r *run) toError(i, k int) {
	r.modify(i, k, &verbs.QPAttr{State: verbs.QPSErr}, verbs.QPMaskState)
}

// query is ibv_query_qp of all attributes.
func (r *run) query(i, k int) {
	a, _, err := r.qps[k].Query(r.c.T, allAttributes)
	if r.out.Streams != nil {
		r.call("step %d: query %s: %s, %s", i+1, side(k), errnoName(err), a.State)
	}
	r.judge(i, "ibv_query_qp of "+side(k), r.qm[k].Query(&a, err))
}

const allAttributes = verbs.QPMaskState | verbs.QPMaskAccessFlags | verbs.QPMaskPathMTU | verbs.QPMaskDestQPN | verbs.QPMaskTimeout | verbs.QPMaskRetryCnt |
	verbs.QPMaskRNRRetry | verbs.QPMaskMinRNRTimer | verbs.QPMaskMaxQPRdAtomic | verbs.QPMaskMaxDestRdAtomic | verbs.QPMaskPort | verbs.QPMaskQKey

// limit is ibv_modify_srq and ibv_query_srq.
func (r *run) limit(i int, s *Step) {
	n := s.N
	srq, sm := r.shared(s.Side)
	switch s.Anchor {
	case AnchorWaiting:
		n += sm.Posted()
	case AnchorCap:
		n += sm.Cap
	}
	n = max(0, n)
	err := srq.Modify(r.c.T, verbs.SRQAttr{Limit: uint32(n)}, verbs.SRQMaskLimit)
	r.call("step %d: modify_srq to limit %d: %s", i+1, n, errnoName(err))
	if !r.judge(i, fmt.Sprintf("ibv_modify_srq to limit %d", n), sm.Modify(n, err)) {
		return
	}
	a, err := srq.Query(r.c.T)
	r.judge(i, "ibv_query_srq", sm.Query(a, err))
}

// restart drains both queue pairs and connects them anew.
func (r *run) restart(i int) {
	if r.end(i); r.ended {
		return
	}
	r.dropWindows()
	r.calm()
	for k := range r.qps {
		r.modify(i, k, &verbs.QPAttr{State: verbs.QPSReset}, verbs.QPMaskState)
	}
	if !r.ended {
		r.connect(i)
		r.fill()
	}
}

// renew destroys both queue pairs as they are, one after the other, and connects others to the same
// CQs, or to new ones. In between it polls the other's CQs for N completions, which the end of the
// first has left.
func (r *run) renew(i int, s *Step) {
	if !s.Leave {
		r.asyncEvents(i)
	}
	r.dropWindows()
	r.renewed = i
	if l, ok := r.launch(i, s); ok {
		r.qm[s.Side].Interrupted(l)
	}
	for _, k := range []int{s.Side, 1 - s.Side} {
		r.leaveGroup(i, k)
		r.qps[k].DestroyNow(r.c)
		r.judge(i, "ibv_destroy_qp", r.qm[k].Destroy(nil))
		r.awaited[k] = r.left(k)
		for _, recv := range []bool{false, true} {
			if k == s.Side && s.N > 0 && !r.ended {
				r.poll(i, r.cq(1-k, recv), s.N)
			}
		}
	}
	if r.ended {
		return
	}
	if r.calm(); len(s.List) > 0 {
		r.settle()
	}
	o := r.options()
	if r.srq != nil {
		o.SRQ = r.srq.SRQ
	}
	if s.All {
		for n, destroy := range r.destroyCQ {
			destroy(r.c)
			r.judge(i, "ibv_destroy_cq", r.cm[n].Destroy(nil))
		}
		r.createCQs(o.CQE)
	}
	r.create(o)
	r.connect(i)
}

// left are the pieces of receives that stay when a side's queue pair ends: those in an SRQ.
func (r *run) left(k int) []Piece {
	if _, s := r.shared(k); s == nil {
		return nil
	}
	return r.awaited[k]
}

// reserved is how many entries of a CQ are or may be taken by what is posted.
func (r *run) reserved(n int) int {
	_, most := r.cm[n].Waiting()
	for k, q := range r.qm {
		if r.cq(k, true) == n {
			most += r.receives(k)
		}
		if r.cq(k, false) == n {
			most += q.Waiting()
		}
	}
	return most
}

func (r *run) recv(i, n int, s *Step) {
	if r.roomForRecv(i, s.Side, s.Pieces) {
		r.judgeRecv(i, n, s.Side, s.Pieces, r.postRecv(i, n, s.Side, s.Pieces))
	}
}

// roomForRecv makes room for a receive of a side in its queue and its CQ, by polling.
func (r *run) roomForRecv(i, side int, pieces []Piece) bool {
	depth := int(r.qm[side].Cap.MaxRecvWR)
	if _, s := r.shared(side); s != nil {
		depth = s.Cap
	}
	if r.world.Lossy && r.qm[side].State == verbs.QPSErr { // retries may have taken longer than the simulator looks for receives then
		return false
	}
	if !r.usable(pieces) || !r.writable(pieces) || r.receives(side) >= min(depth, queueDepth) {
		return false
	}
	for k := range r.qps {
		if k != side && r.srq == nil {
			continue
		}
		if n := r.cq(k, true); r.reserved(n)+2 > r.cm[n].Cap {
			r.poll(i, n, r.cm[n].Cap)
			if r.reserved(n)+2 > r.cm[n].Cap {
				return false
			}
		}
	}
	return !r.ended
}

// postRecv is ibv_post_recv, or ibv_post_srq_recv.
func (r *run) postRecv(i, n, side int, pieces []Piece) error {
	post := r.qps[side].PostRecv
	if s, _ := r.shared(side); s != nil {
		post = s.PostRecv
	}
	_, err := post(r.c.T, []verbs.RecvWR{{ID: idOf(i, n) | received, SGEs: r.sges(pieces)}})
	r.call("step %d: post_recv: %s", i+1, errnoName(err))
	return err
}

// judgeRecv tells the model of a receive that was posted.
func (r *run) judgeRecv(i, n, side int, pieces []Piece, err error) {
	id := idOf(i, n) | received
	if _, s := r.shared(side); s != nil {
		err = s.PostRecv(id, r.pieces(pieces), err)
	} else {
		err = r.qm[side].PostRecv(id, r.pieces(pieces), err)
	}
	if !r.judge(i, "ibv_post_recv", err) {
		return
	}
	for k := range r.awaited {
		if k == side || r.srq != nil || r.p.XRC {
			r.awaited[k] = append(r.awaited[k], pieces...)
		}
	}
}

func (r *run) sges(l []Piece) []verbs.SGE {
	out := make([]verbs.SGE, 0, len(l))
	for _, x := range l {
		out = append(out, verbs.SGE{Addr: r.addr(x), Length: uint32(x.Len), LKey: r.key(x, 0)})
	}
	return out
}

func (r *run) pieces(l []Piece) []model.Piece {
	out := make([]model.Piece, 0, len(l))
	for _, x := range l {
		out = append(out, r.piece(x))
	}
	return out
}

func (r *run) piece(x Piece) model.Piece {
	return model.Piece{Mem: r.mm[x.Region], Off: x.Off, Len: x.Len, MR: r.rm[x.Region], WrongKey: x.WrongKey}
}

// wrong is added to a key that is to be wrong: the index of another, far away.
const wrong = 0x00fff000

func (r *run) key(x Piece, which int) uint32 {
	k := r.keys[x.Region][which]
	if x.WrongKey {
		k ^= wrong
	}
	return k
}

// usable reports whether the regions of all pieces were registered: whose registration was refused
// has no key.
func (r *run) usable(l []Piece) bool {
	for _, x := range l {
		if r.keys[x.Region] == [2]uint32{} {
			return false
		}
	}
	return true
}

// events takes the events of the channel. Of those that a device is free to give, and of the order
// in which CQs give theirs, it says nothing: two devices may differ.
func (r *run) events(i int) {
	var names []string
	for r.ch != nil && !r.ended {
		wait := patience
		if !r.awaitsEvent() {
			wait = 0
		}
		cq, err := r.ch.Event(r.c.T, wait)
		if errors.Is(err, syscall.EAGAIN) {
			slices.Sort(names)
			r.call("step %d: events of %q", i+1, names)
			for _, m := range r.cm {
				r.judge(i, "ibv_get_cq_event", m.Event(false))
			}
			return
		}
		kit.Must(r.c, "get_cq_event", err)
		n := slices.Index(r.cqs, cq)
		if n < 0 {
			r.judge(i, "ibv_get_cq_event", model.EventOfGone())
			return
		}
		if r.out.Streams != nil && r.cm[n].Determined() {
			names = append(names, r.cm[n].Name)
		}
		r.ch.Ack(r.c.T, cq, 1)
		r.judge(i, "ibv_get_cq_event", r.cm[n].Event(true))
	}
}

func (r *run) awaitsEvent() bool {
	for _, m := range r.cm {
		if m.Awaits() {
			return true
		}
	}
	return false
}
