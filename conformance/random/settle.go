package random

import (
	"errors"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/model"
	"github.com/rdmasim/rdmasim/verbs"
)

// arrival is how long a packet may take.
const arrival = 20 * time.Millisecond

// send posts requests, and unless their completions stay in the CQ one behind them, up to whose
// completion it polls.
func (r *run) send(i, from int, s *Step, list []Request) {
	k := s.Side
	q := r.qm[k]
	mark := 1
	if s.Leave && q.Plain() { // the queue may be full
		mark = 0
	}
	list = list[:min(len(list), int(q.Cap.MaxSendWR)-mark)]
	if !r.room(i, k, len(list)+mark) {
		return
	}
	wrs, posted := r.build(i, from, k, list)
	if len(wrs) == 0 {
		return
	}
	if q.Outstanding()+len(wrs) == int(q.Cap.MaxSendWR) { // else nothing makes room again
		wrs[len(wrs)-1].Flags |= verbs.SendSignaled
		posted[len(wrs)-1].Flags |= verbs.SendSignaled
	}
	if !r.post(i, k, wrs, posted) {
		return
	}
	switch {
	case q.Drained():
	case s.Leave && q.Plain() && mark == 0 && !r.world.Lossy:
		r.settle()
		r.certain(i)
	case q.Outstanding() == int(q.Cap.MaxSendWR):
		r.take(i, r.cq(k, false), wrs[len(wrs)-1].ID)
		r.certain(i)
	default:
		r.mark(i, k)
	}
}

// build makes requests of side k, without those that cannot be posted.
func (r *run) build(i, from, k int, list []Request) (wrs []verbs.SendWR, posted []model.Request) {
	invalidates, sends := false, 0
	for n := range list {
		x := &list[n]
		names, _ := x.remote()
		if !r.usable(x.Local) || names && !r.usable([]Piece{x.Remote}) {
			continue
		}
		if (x.Op == verbs.WRRDMARead || x.atomic()) && !r.writable(x.Local) || r.p.paged() && !r.pagedMay(k, x, &sends) {
			continue
		}
		w := verbs.SendWR{ID: idOf(i, from+n), Opcode: x.Op, Flags: x.Flags, SGEs: r.sges(x.Local), Imm: x.Imm, CompareAdd: x.CompareAdd, Swap: x.Swap}
		m := model.Request{ID: w.ID, Op: x.Op, Flags: x.Flags, Local: r.pieces(x.Local), Imm: x.Imm, CompareAdd: x.CompareAdd, Swap: x.Swap}
		if x.Flags&verbs.SendInline != 0 { // which has no key
			for i := range w.SGEs {
				w.SGEs[i].Addr += r.mem[x.Local[i].Region].Addr() - r.base[x.Local[i].Region]
			}
		}
		if r.p.UD {
			if length(x.Local) > r.mtu { // whether that is reported depends on the device (UD-005)
				continue
			}
			if x.Group && r.qm[k].Member() { // whether it gets its own is open (UD-020)
				continue
			}
			r.address(k, x.Group, &w, &m)
			if x.BadQKey {
				w.RemoteQKey ^= 1
				m.QKey ^= 1
			}
		}
		r.name(x.SRQ, &w, &m)
		if names {
			w.RemoteAddr, w.RKey = r.addr(x.Remote), r.key(x.Remote, 1)
			m.Remote = r.piece(x.Remote)
			if x.Remote.Window > 0 {
				key, mw, ok := r.windowKey(x.Remote)
				if !ok {
					continue
				}
				w.RKey, m.Remote.MW = key, mw
				if x.Remote.WrongKey {
					w.RKey ^= wrong
				}
			}
		} else {
			m.Remote.Mem, m.Remote.MR = r.mm[0], r.rm[0]
		}
		if x.Op == verbs.WRSendInv { // a key that is not the peer's makes it fail in one of many ways (MW-022)
			mw := r.mws[x.Remote.Window-1]
			if invalidates || mw == nil || mw.model.MR == nil || mw.model.QP != r.qm[1-k] || r.qm[k].Drained() {
				continue
			}
			invalidates = true
			w.Imm = mw.mw.RKey()
			m.Imm, m.Inv = w.Imm, &mw.model
		}
		wrs, posted = append(wrs, w), append(posted, m)
	}
	return wrs, posted
}

// mark posts a request behind those of a step, up to whose completion it polls.
func (r *run) mark(i, k int) {
	w, m := r.lastOf(i)
	if r.p.UD { // nobody takes it
		w.Opcode, m.Op = verbs.WRSend, verbs.WRSend
		r.address(k, false, &w, &m)
		w.RemoteQKey, m.QKey = noQKey, noQKey
	}
	if q, p := r.qm[k], r.qm[1-k]; r.world.Lossy && q.State == verbs.QPSRTS && p.State != verbs.QPSErr && !q.Sure(&m) {
		r.c.T.Sleep(recovery)
	}
	if r.post(i, k, []verbs.SendWR{w}, []model.Request{m}) {
		r.take(i, r.cq(k, false), w.ID)
		r.awaitArrival(k)
		if r.p.UD {
			r.settle()
		}
		r.certain(i)
	}
}

// address sends a datagram of side k to the other, or to the group.
func (r *run) address(k int, group bool, w *verbs.SendWR, m *model.Request) {
	w.AH, w.RemoteQPN, w.RemoteQKey = r.ahs[1-k], r.qps[1-k].QPN(), kit.QKey
	if m.QKey, m.Group = kit.QKey, group; group {
		w.AH, w.RemoteQPN = r.ahs[toGroup], verbs.MulticastQPN
	}
	m.Header, m.HeaderKnown = r.header(group)
}

// room makes room for n requests of a side in its queue and its CQ, by polling.
func (r *run) room(i, k, n int) bool {
	q, cq := r.qm[k], r.cq(k, false)
	full := func() bool { return q.Outstanding()+n > int(q.Cap.MaxSendWR) }
	if full() || r.reserved(cq)+n+q.Outstanding() > r.cm[cq].Cap {
		r.poll(i, cq, r.cm[cq].Cap)
	}
	if full() && !r.ended && !q.Drained() { // of unsignaled requests, which the next completion frees
		r.mark(i, k)
	}
	return !r.ended && !full() && r.reserved(cq)+n <= r.cm[cq].Cap
}

// post posts requests.
func (r *run) post(i, k int, wrs []verbs.SendWR, list []model.Request) bool {
	bad, err := r.qps[k].TryPost(r.c, wrs)
	r.call("step %d: post_send of %d: %s at %d", i+1, len(wrs), errnoName(err), bad)
	ok := r.judge(i, "post_send", r.qm[k].PostSend(list, bad, err))
	return ok && (err == nil || len(wrs) > 1)
}

// lastOf is the request behind those of a step: it writes nothing, or on UC, where its completion
// says nothing of the other side, its number.
func (r *run) lastOf(i int) (w verbs.SendWR, m model.Request) {
	w = verbs.SendWR{ID: idOf(i, marker), Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled}
	m = model.Request{ID: w.ID, Op: w.Opcode, Flags: w.Flags}
	m.Remote.Mem, m.Remote.MR = r.mm[0], r.rm[0]
	r.name(0, &w, &m)
	if r.last != nil {
		r.sent++
		number := kit.HostWordBytes(r.sent)
		r.last.Set(r.c, 0, number)
		copy(r.lastM.Mem.Bytes, number)
		w.SGEs, w.RemoteAddr, w.RKey = []verbs.SGE{r.last.SGE(0, 8)}, r.last.Addr(8), r.last.MR.RKey()
		m.Local = []model.Piece{{Mem: r.lastM.Mem, Len: 8, MR: r.lastM}}
		m.Remote = model.Piece{Mem: r.lastM.Mem, Off: 8, MR: r.lastM}
	}
	return w, m
}

// noQKey is a Q_Key that no queue pair has.
const noQKey = 0x22222222

// settle waits until requests that succeed have completed.
func (r *run) settle() {
	if r.c.Has(kit.ExactTime) {
		r.c.T.Sleep(arrival / 4) // some cards are silent for 2 ms after a region ended
	} else {
		r.c.T.Sleep(arrival)
	}
}

// awaitArrival waits on UC until the last request of side k has arrived, or would have: one that
// was lost with its queue pair never does.
func (r *run) awaitArrival(k int) {
	lost := r.qm[k].State != verbs.QPSRTS || r.qm[1-k].State == verbs.QPSErr
	for waited := time.Duration(0); r.last != nil && !lost && !r.ended && waited < arrival; waited += arrival / 40 {
		if kit.HostWord(r.last.Get(r.c, 8, 8)) == r.sent {
			break
		}
		r.c.T.Sleep(arrival / 40)
	}
}

// certain queries the states that the model cannot know.
func (r *run) certain(i int) {
	if !r.ended && (r.qm[0].Uncertain() || r.qm[1].Uncertain()) {
		r.settle() // packets on their way may still bring a queue pair to ERR
	}
	for k, q := range r.qm {
		if !r.ended && q.Uncertain() {
			r.query(i, k)
		}
	}
}

// take polls up to the completion of a request.
func (r *run) take(i, n int, id uint64) {
	for !r.ended {
		var wc [1]verbs.WC
		got, err := r.wait(n, wc[:], patience)
		kit.Must(r.c, "poll_cq", err)
		if got == 0 {
			r.judge(i, "ibv_poll_cq", r.cm[n].Empty())
			r.judge(i, "ibv_poll_cq", &model.Violation{Rule: &model.Rule{Text: "a signaled request completes", Source: "man:ibv_poll_cq.3"}, Want: "the completion of the last request", Got: "none"})
			return
		}
		if r.completion(i, n, &wc[0]); wc[0].ID == id {
			return
		}
	}
}

// stepOf is the step whose request a wr_id names; nil: none has posted it.
func (r *run) stepOf(id uint64) *Step {
	if n := id &^ received >> 8; n < uint64(len(r.p.Steps)) {
		return &r.p.Steps[n]
	}
	return nil
}

// interrupted reports whether a completion is of a request that was under way when its queue pair
// went to ERR or was destroyed.
func (r *run) interrupted(w *verbs.WC) bool {
	s := r.stepOf(w.ID)
	return s != nil && w.ID&received == 0 && w.ID&0xff != marker && (s.Kind == StepError || s.Kind == StepRenew)
}

// completion judges a completion.
func (r *run) completion(i, n int, w *verbs.WC) {
	// Completions of queue pairs that were destroyed may come or not, and so may those of requests
	// that a change to ERR met under way.
	if r.out.Streams != nil && int(w.ID&^received>>8) >= r.renewed && !r.interrupted(w) {
		k := 0
		if w.QPN == r.qps[1].QPN() {
			k = 1
		}
		recv := w.ID&received != 0
		if s := r.stepOf(w.ID); s != nil && r.p.XRC && recv { // there is no order between SRQs
			k = s.Side
		}
		r.say(map[bool]string{false: "send queue of ", true: "receive queue of "}[recv]+side(k), "%s", describe(w, recv))
	}
	r.judge(i, "ibv_poll_cq", r.cm[n].Completion(w))
	if w.Status != verbs.WCSuccess && w.Status != verbs.WCWRFlushErr {
		r.calm()
	}
}

// poll takes up to count completions that wait in a CQ, in calls of so many.
func (r *run) poll(i, n, count int) {
	wc := r.wcs[:min(count, maxNumber)]
	for left := count; left > 0 && !r.ended; {
		got, err := 0, error(nil)
		if least, _ := r.cm[n].Waiting(); least > 0 {
			got, err = r.wait(n, wc[:min(left, len(wc))], patience)
		} else {
			got, err = r.pollOnce(n, wc[:min(left, len(wc))])
		}
		kit.Must(r.c, "poll_cq", err)
		for j := range wc[:got] {
			r.completion(i, n, &wc[j])
		}
		if got == 0 {
			r.judge(i, "ibv_poll_cq", r.cm[n].Empty())
			break
		}
		left -= got
	}
	if !r.ended {
		r.certain(i)
	}
}

// end brings both queue pairs to ERR, takes all completions and events, and looks at the memory.
func (r *run) end(i int) {
	for k := range r.qps {
		r.toError(i, k)
	}
	for n := range r.cqs {
		if !r.ended {
			r.poll(i, n, r.cm[n].Cap+1)
		}
	}
	for k := range r.awaited {
		r.awaited[k] = r.left(k)
	}
	r.events(i)
	r.asyncEvents(i)
	if !r.ended {
		r.look(i)
	}
}

// asyncEvents takes the asynchronous events.
func (r *run) asyncEvents(i int) {
	for !r.ended {
		wait := patience
		if !r.world.Awaits() {
			wait = 0
		}
		ev, err := kit.AsyncEvent(r.c, r.env, wait)
		if errors.Is(err, syscall.EAGAIN) {
			r.judge(i, "ibv_get_async_event", r.world.NoAsyncEvent())
			return
		}
		kit.Must(r.c, "get_async_event", err)
		var object any
		switch {
		case ev.QP != nil:
			for k, q := range r.qps {
				if q.QPN() == ev.QP.QPN() {
					object = r.qm[k]
				}
			}
		case ev.CQ != nil:
			for n, cq := range r.cqs {
				if cq == ev.CQ {
					object = r.cm[n]
				}
			}
		case ev.SRQ != nil && r.p.XRC:
			for k, s := range r.named {
				if s == ev.SRQ {
					object = r.namedM[k]
				}
			}
		case ev.SRQ != nil:
			object = r.sm
		default:
			continue // of the port
		}
		r.judge(i, "ibv_get_async_event", r.world.AsyncEvent(ev.Type, object))
	}
}

// row is how many bytes of memory are compared at once.
const row = 32

// look compares the memory with what it has to be, and says which bytes are not as at first.
func (r *run) look(i int) {
	for n, m := range r.mem {
		b := r.rows[:]
		_, err := m.ReadAt(r.c.T, b, 0)
		kit.Must(r.c, "read memory", err)
		if r.out.Streams != nil {
			r.sayMemory(n, b)
		}
		r.judge(i, "memory", r.mm[n].Check(b))
	}
	r.say("memory", "so far")
}
