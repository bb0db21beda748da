package testbed

import (
	"fmt"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/sim/odp"
	"github.com/rdmasim/rdmasim/sim/provider"
	"github.com/rdmasim/rdmasim/verbs"
)

// pagingWorld is a testbed in which one program runs after the other.
type pagingWorld struct {
	testing.TB
	bed    *Testbed
	sides  [2]*pagingSide
	poster *worker
	memory bool // faults name memory
	whole  bool // there are regions of the whole address space
	salts  uint64
	psn    uint32
	p      *pagingProgram
	err    error
	stats  *pagingStats

	out  []*outcome
	down bool // the QP does not work any more
	gone bool // and its requests do not complete
}

// pagingViolation ends a program.
type pagingViolation struct{ error }

func (w *pagingWorld) fail(format string, args ...any) {
	panic(pagingViolation{fmt.Errorf(format, args...)})
}

func (w *pagingWorld) must(what string, err error) {
	if err != nil {
		w.fail("%s: %w", what, err)
	}
}

func (w *pagingWorld) salt() uint64 { w.salts++; return w.salts }

// guarded has a job end by a violation without more ado.
func (w *pagingWorld) guarded(job func(t verbs.Thread)) func(t verbs.Thread) {
	return func(t verbs.Thread) {
		defer func() {
			if r := recover(); r != nil {
				v, ok := r.(pagingViolation)
				if !ok {
					panic(r)
				}
				if w.err == nil {
					w.err = v.error
				}
			}
		}()
		job(t)
	}
}

// check ends a job whose partner has found a violation.
func (w *pagingWorld) check() {
	if w.err != nil {
		panic(pagingViolation{w.err})
	}
}

// peer has the peer's thread do something now.
func (w *pagingWorld) peer(t verbs.Thread, job func(t verbs.Thread)) {
	w.sides[1].others.do(t, w.guarded(job))
	w.check()
}

// connect makes the QPs of a pair again where asked to, and connects them.
func (w *pagingWorld) connect(t verbs.Thread, i int, again bool) {
	own, peers := w.sides[0], w.sides[1]
	if again {
		own.dropQP(t, i)
		w.peer(t, func(t verbs.Thread) {
			peers.dropQP(t, i)
			peers.makeQP(t, i)
		})
		own.makeQP(t, i)
	}
	w.psn = (w.psn + 0x10001) & 0xffffff
	w.peer(t, func(t verbs.Thread) { peers.connect(t, i, w.psn) })
	own.connect(t, i, w.psn)
}

// run carries out a program in the poster's thread.
func (w *pagingWorld) run(t verbs.Thread, p *pagingProgram) {
	own, peers, q := w.sides[0], w.sides[1], 0
	if p.shared {
		q = 1
	}
	w.p, w.out, w.down, w.gone = p, w.out[:0], false, false
	before := w.faults()
	w.peer(t, func(t verbs.Thread) {
		peers.begin(t, p)
		peers.receive(t, p, q)
	})
	own.begin(t, p)
	for s := range w.sides {
		if len(p.upsets[s]) > 0 {
			w.sides[s].others.start(t, w.guarded(func(t verbs.Thread) { w.sides[s].happenings(t, p.upsets[s]) }))
		}
	}
	w.post(t, p, q)
	w.complete(t, len(w.out))
	own.others.wait(t)
	peers.others.wait(t)
	w.check()
	w.stats.add(w, p, before, w.faults())
	w.received(t)
	if _, err := w.bed.Wire().ClearRules(t); err != nil {
		w.fail("rules: %w", err)
	}
	if w.down {
		w.connect(t, q, true)
	}
	t.Sleep(time.Duration(p.settle) * time.Microsecond)
	own.forget(t)
	w.peer(t, peers.forget)
	w.look(t, p, q)
	w.renew(t, p, q)
}

// receive posts the receives of a program.
func (s *pagingSide) receive(t verbs.Thread, p *pagingProgram, q int) {
	for _, x := range p.posts {
		if x.kind != postSend {
			continue
		}
		wr := []verbs.RecvWR{{SGEs: s.segments(x.peers, x.split, p.implicit[1])}}
		var err error
		if q == 1 {
			_, err = s.srq.PostRecv(t, wr)
		} else {
			_, err = s.qps[q].PostRecv(t, wr)
		}
		s.w.must("post a receive", err)
	}
}

// segments are words of the arena.
func (s *pagingSide) segments(at span, split int, implicit bool) []verbs.SGE {
	g := verbs.SGE{Addr: uint64(arenaAddr + at.at*8), Length: uint32(at.n * 8), LKey: s.key(implicit).LKey()}
	if split == 0 {
		return []verbs.SGE{g}
	}
	first, rest := g, g
	first.Length = uint32(split * 8)
	rest.Addr, rest.Length = g.Addr+uint64(first.Length), g.Length-first.Length
	return []verbs.SGE{first, rest}
}

// post posts the requests of a program.
func (w *pagingWorld) post(t verbs.Thread, p *pagingProgram, q int) {
	own, peers := w.sides[0], w.sides[1]
	for _, x := range p.posts {
		t.Sleep(time.Duration(x.after) * time.Microsecond)
		if w.down {
			return
		}
		qp := own.qps[q]
		if x.kind >= postReset && x.kind <= postDestroy && w.faultsOut() {
			w.stats.ends++
		}
		switch x.kind {
		case postDrop:
			w.stats.losses++
			w.must("rule", w.bed.Wire().Inject(t, verbs.WireRule{Action: verbs.WireDrop, Count: x.frames}))
		case postReset, postError:
			a := verbs.QPAttr{State: verbs.QPSReset}
			if x.kind == postError {
				a.State = verbs.QPSErr
			}
			w.must("modify", qp.Modify(t, &a, verbs.QPMaskState))
			w.down, w.gone = true, x.kind == postReset
		case postDestroy:
			w.must("destroy", qp.Destroy(t))
			own.qps[q], w.down, w.gone = nil, true, true
		default:
			wr := verbs.SendWR{ID: uint64(len(w.out)), Flags: verbs.SendSignaled, SGEs: own.segments(x.own, x.split, p.implicit[0]),
				RemoteAddr: uint64(arenaAddr + x.peers.at*8), RKey: peers.key(p.implicit[1]).RKey(), CompareAdd: added,
				Opcode: []verbs.WROpcode{verbs.WRSend, verbs.WRRDMAWrite, verbs.WRRDMARead, verbs.WRAtomicFetchAdd}[x.kind]}
			provider.Of(t).P.Sync()
			w.out = append(w.out, &outcome{pagingPost: x, id: len(w.out), from: t.Now(), to: forever})
			_, err := qp.PostSend(t, []verbs.SendWR{wr})
			w.must("post", err)
		}
	}
}

// bound is how long a request may take at most.
const bound = 10 * time.Second

// complete takes n completions, unless they were lost with the QP.
func (w *pagingWorld) complete(t verbs.Thread, n int) {
	var wc [16]verbs.WC
	for n > 0 && !w.gone {
		k, err := w.sides[0].cq.PollWait(t, wc[:], bound)
		w.must("poll", err)
		if k == 0 {
			w.fail("at %v %d requests have not completed in %v", t.Now(), n, bound)
		}
		for _, c := range wc[:k] {
			w.completed(t, w.out[c.ID], c.Status)
		}
		n -= k
	}
}

// completed judges a completion.
func (w *pagingWorld) completed(t verbs.Thread, o *outcome, status verbs.WCStatus) {
	if o.done {
		w.fail("request %d has completed twice", o.id)
	}
	o.done, o.ok, o.to = true, status == verbs.WCSuccess, t.Now()
	if !o.ok {
		if !w.excused(o, status) {
			w.fail("request %d ends with %v at %v, and its memory was in reach from %v on", o.id, status, o.to, o.from)
		}
		w.down = true
		return
	}
	if at, ok := o.target(0); ok && o.looked {
		w.lookAt(t, at)
	}
}

// lookAt compares words of the own arena as soon as a request has completed, where the process can
// read them.
func (w *pagingWorld) lookAt(t verbs.Thread, at span) {
	s := w.sides[0]
	for i := at.at; i < at.at+at.n; {
		b := i / blockWords
		n := min(at.at+at.n, (b+1)*blockWords) - i
		data := make8(n)
		provider.Of(t).P.Sync()
		if s.unreadable(b) {
			return
		}
		now := t.Now()
		if _, err := s.blocks[b].ReadAt(t, data, int64(i%blockWords*8)); err != nil {
			w.fail("read memory: %w", err)
		}
		w.must("at the completion", compare(w.histories(), 0, w.out, data, i, now))
		i += n
	}
}

// unreadable says whether something is done with a block now after which a process cannot read it.
func (s *pagingSide) unreadable(block int) bool {
	for _, g := range s.gaps {
		if g.to == forever && !g.explicit && g.first/blockPages <= block && block <= g.last/blockPages {
			return true
		}
	}
	return false
}

func (w *pagingWorld) histories() [2]history { return [2]history{w.sides[0].h, w.sides[1].h} }

// excused says whether a request may have failed: its memory was out of reach, a request before it
// has failed, or a fault named a child of an implicit region that is no more.
func (w *pagingWorld) excused(o *outcome, status verbs.WCStatus) bool {
	switch status {
	case verbs.WCWRFlushErr:
		return w.down
	case verbs.WCRetryExcErr: // a later one has taken the peer's QP down, before the response landed
		for _, later := range w.out[o.id+1:] {
			if w.outOfReach(later, o.to) {
				return true
			}
		}
	}
	return w.outOfReach(o, o.to)
}

// outOfReach says whether memory of a request may have been away between the post and a time.
func (w *pagingWorld) outOfReach(o *outcome, until time.Duration) bool {
	for s, at := range []span{o.own, o.peers} {
		x := w.sides[s]
		if w.memory && w.p.implicit[s] && x.kernel().UnknownKeys > x.lostKeys {
			return true
		}
		first, last := at.pages()
		for _, g := range x.gaps {
			from := o.from
			if o.kind == postSend && s == 1 && g.explicit { // its receive was posted at the beginning, with the key of then
				from = 0
			}
			if g.from <= until && g.to >= from && g.first <= last && first <= g.last && (!g.explicit || !w.p.implicit[s]) {
				return true
			}
		}
	}
	return false
}

// received takes the completions of the receives: as many as SENDs have succeeded.
func (w *pagingWorld) received(t verbs.Thread) {
	n := 0
	for _, o := range w.out {
		if o.kind == postSend && o.ok {
			n++
		}
	}
	if n == 0 {
		return
	}
	w.peer(t, func(t verbs.Thread) {
		var wc [16]verbs.WC
		for n > 0 {
			k, err := w.sides[1].cq.PollWait(t, wc[:], bound)
			w.must("poll", err)
			if k == 0 {
				w.fail("%d receives have not completed", n)
			}
			for _, c := range wc[:k] {
				if c.Status == verbs.WCSuccess {
					n--
				} else if !w.down {
					w.fail("a receive ends with %v", c.Status)
				}
			}
		}
	})
}

// faultsOut says whether a QP waits for pages.
func (w *pagingWorld) faultsOut() bool {
	for _, h := range w.bed.hosts {
		if h.devices[0].hca.PageFaults().Out != 0 {
			return true
		}
	}
	return false
}

// faults are the events so far on each side, and the looks that an invalidation overtook.
func (w *pagingWorld) faults() (f [2]struct {
	kinds [odp.Kinds]uint64
	races uint64
}) {
	for s, h := range w.bed.hosts {
		d := h.devices[0]
		f[s].kinds, f[s].races = d.hca.PageFaults().Reported, d.kern.Counters().Paging.Contentions
	}
	return f
}
