package workload

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// poster keeps the requests of one thread, so that a post allocates nothing.
type poster struct {
	s    *Started
	rng  uint64
	mix  []verbs.WROpcode // a turn of the mix
	turn int
	wrs  []verbs.SendWR
	sges []verbs.SGE
	sent uint64
}

func (s *Started) newPoster(thread int) *poster {
	l := s.l
	return &poster{s: s, rng: firstDraw(l.Seed, thread), mix: turns(l.Mix), wrs: make([]verbs.SendWR, l.Postlist), sges: make([]verbs.SGE, l.Postlist)}
}

// firstDraw is where the random choices of a thread begin: never at 0, where they would stay.
func firstDraw(seed uint64, thread int) uint64 {
	rng := uint64(thread)*0x9e3779b97f4a7c15 + 1
	if seed > 1 {
		rng ^= mixed(seed)
	}
	return max(rng, 1)
}

// mixed spreads a small number over all bits, by the last steps of splitmix64.
func mixed(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (p *poster) random() uint64 {
	p.rng ^= p.rng << 13
	p.rng ^= p.rng >> 7
	p.rng ^= p.rng << 17
	return p.rng
}

// pick chooses a region of the context and an offset in it for the message.
func (p *poster) pick(k *conn, thread int) (region, uint64) {
	l := p.s.l
	i, off := int(p.sent)%l.MRs, uint64(0)
	size, stride := k.ctx.size, l.stride()
	slots := cmp.Or(size/stride, 1)
	if l.Random {
		r := p.random()
		i = int(r % uint64(l.MRs))
		off = (r >> 32) % slots
	} else {
		off = uint64(thread) % slots
	}
	off *= stride
	if off+uint64(l.Payload) > size {
		off = 0
	}
	return k.ctx.mrs[i*l.PDs+k.pd], off
}

// prepare fills n requests for the QP; the one that makes its count a multiple of
// SignalEvery is signalled. count is the QP's own.
func (p *poster) prepare(k *conn, thread, n int, count uint64) []verbs.SendWR {
	l := p.s.l
	for i := 0; i < n; i++ {
		mine, off := p.pick(k, thread)
		theirs, roff := p.pick(k.peer, thread)
		op := p.mix[p.turn]
		if p.turn++; p.turn == len(p.mix) {
			p.turn = 0
		}
		p.sges[i] = verbs.SGE{Addr: mine.buf.Addr() + off, Length: l.Payload, LKey: mine.mr.LKey()}
		w := &p.wrs[i]
		*w = verbs.SendWR{ID: uint64(thread)<<idThread | (count + uint64(i) + 1), SGEs: p.sges[i : i+1 : i+1], Opcode: op,
			RemoteAddr: theirs.buf.Addr() + roff, RKey: theirs.mr.RKey(), CompareAdd: 1}
		if k.ah != nil {
			w.AH, w.RemoteQPN, w.RemoteQKey = k.ah, k.peer.qp.QPN(), QKey
		}
		if l.Inline {
			w.Flags |= verbs.SendInline
		}
		if (count+uint64(i)+1)%uint64(l.SignalEvery) == 0 {
			w.Flags |= verbs.SendSignaled
		}
		p.sent++
	}
	return p.wrs[:n]
}

// flow is what one thread has on one QP. Another thread that shares the QP's CQ
// may poll its completions, hence the atomic.
type flow struct {
	posted    uint64
	completed atomic.Uint64
	// last is when the latest of them were delivered, and before when those before them were.
	last, before time.Duration
	// at is when each outstanding request of a timed load was posted, by its count.
	at []time.Duration
}

// stamp notes when the next n requests are posted.
func (f *flow) stamp(now time.Duration, n int) {
	for i := range n {
		f.at[(f.posted+uint64(i)+1)%uint64(len(f.at))] = now
	}
}

func (f *flow) outstanding() int { return int(f.posted - f.completed.Load()) }

// idThread is where a request's ID keeps the number of the thread that posted it;
// below it is the thread's own count on that QP.
const idThread = 48

const idCount = 1<<idThread - 1

// pollBatch is how many completions one poll takes at most.
const pollBatch = 16

// rate posts as fast as the window allows and counts completions.
func (s *Started) rate(t verbs.Thread, i int) {
	l := s.l
	p := s.newPoster(i)
	set := s.a.qps[i/l.QPShare]
	flows := s.flows[i]
	window := l.share()
	wc := make([]verbs.WC, pollBatch)
	var total uint64
	for s.res.Failed == nil && !s.finished(t, i, total) {
		if s.sharedCQs {
			t.Sleep(0) // others may have polled what this thread waits for
		}
		posted := uint64(0)
		for q, k := range set {
			f := &flows[q]
			if window-f.outstanding() < l.Postlist || l.Drain && f.outstanding() > 0 && f.posted%uint64(window) == 0 {
				continue
			}
			wrs := p.prepare(k, i, l.Postlist, f.posted)
			if l.Work > 0 {
				t.Work(l.Work)
			}
			if f.at != nil {
				f.stamp(t.Now(), l.Postlist)
			}
			if bad, err := k.qp.PostSend(t, wrs); err != nil {
				s.fail(t.Now(), "thread %d: post of request %d: %v", i, bad, err)
				return
			}
			f.posted += uint64(l.Postlist)
			posted += uint64(l.Postlist)
		}
		total += posted
		if r := &s.res.Threads[i]; r.Full == 0 && (posted == 0 || total > uint64(window*len(set))) {
			r.Full = t.Now()
		}
		if posted == 0 {
			s.reap(t, i, set, wc)
		}
	}
	for q := range flows {
		for s.res.Failed == nil && !l.unanswered() && flows[q].outstanding() >= l.SignalEvery {
			s.reap(t, i, set, wc)
		}
	}
}

// finished reports whether thread i, which has done total messages, is to end. A thread goes on
// beyond the measured time until each of its flows has a delivery there: then all deliveries of
// the measured time have been polled, and the one across its end counts in part.
func (s *Started) finished(t verbs.Thread, i int, total uint64) bool {
	if s.l.Messages > 0 {
		return total >= uint64(s.l.Messages)
	}
	if t.Now() < s.stop() {
		return false
	}
	if s.sharedCQs {
		t.Sleep(0) // other threads poll this one's completions
	}
	for q := range s.flows[i] {
		if f := &s.flows[i][q]; f.outstanding() > 0 && f.last < s.stop() && !s.l.unanswered() {
			return false
		}
	}
	return true
}

// reap polls the CQs of the thread until one gives something, or for a short
// while: a thread that shares the CQ may have taken what this one waits for.
func (s *Started) reap(t verbs.Thread, i int, set []*conn, wc []verbs.WC) {
	patience := s.l.Patience()
	if s.sharedCQs {
		patience = time.Microsecond
	}
	if s.l.unanswered() {
		patience = max(s.stop()-t.Now(), time.Microsecond)
	}
	var last verbs.CQ
	for _, k := range set {
		if k.cq == last {
			continue
		}
		last = k.cq
		n, err := 0, error(nil)
		if len(set) == 1 || s.l.CQShare == 0 {
			n, err = k.cq.PollWait(t, wc, patience)
		} else {
			n, err = k.cq.Poll(t, wc)
		}
		if err != nil {
			s.fail(t.Now(), "thread %d: poll: %v", i, err)
			return
		}
		if n == 0 && !s.sharedCQs && len(set) == 1 && !s.l.unanswered() {
			s.silent(t, i, nil)
			return
		}
		s.account(t.Now(), k.times, wc[:n])
	}
}

// account counts completions that were polled now, of a queue that may know when they were written.
func (s *Started) account(now time.Duration, times verbs.TimedCQ, wc []verbs.WC) {
	for j := range wc {
		w := &wc[j]
		if w.Status != verbs.WCSuccess {
			s.died(now, w, fmt.Sprintf("request %d of thread %d", w.ID&idCount, w.ID>>idThread))
			return
		}
		owner := int(w.ID >> idThread)
		for q, k := range s.a.qps[owner/s.l.QPShare] {
			if k.qp.QPN() != w.QPN {
				continue
			}
			f := &s.flows[owner][q]
			done := w.ID&idCount - f.completed.Load()
			f.completed.Store(w.ID & idCount)
			r := &s.res.Threads[owner]
			if f.at != nil {
				at := f.at[w.ID&idCount%uint64(len(f.at))]
				s.sample(r, at, now-at)
			}
			s.count(now, completedAt(times, j, now), r, f, done)
			break
		}
	}
}

// completedAt is when completion i of a poll was delivered: when the device wrote it, or else by
// the poll now.
func completedAt(times verbs.TimedCQ, i int, now time.Duration) time.Duration {
	if times == nil {
		return now
	}
	return min(now, times.CompletedAt(i))
}

// count adds n messages that a thread had on a flow, that were polled now and delivered by the time
// at.
func (s *Started) count(now, at time.Duration, r *ThreadResult, f *flow, n uint64) {
	if at = max(at, s.start); at > f.last { // several completions may have one time
		f.before, f.last = max(f.last, s.start), at
	}
	r.Completed += n
	r.Delivered += s.meters[r.Thread].add(f.before, f.last, n)
	r.End = max(r.End, now, s.start)
}
