package workload

import (
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// latency keeps one request outstanding and times each after the warm-up.
func (s *Started) latency(t verbs.Thread, i int) {
	l, r := s.l, &s.res.Threads[i]
	set := s.a.qps[i/l.QPShare]
	if l.Mix[0].Verb == Write {
		s.ping(t, i, set[0], r)
		return
	}
	p := s.newPoster(i)
	wc := make([]verbs.WC, 1)
	for s.res.Failed == nil && !s.finished(t, i, r.Completed) {
		for q, k := range set {
			f := &s.flows[i][q]
			wrs := p.prepare(k, i, 1, f.posted)
			wrs[0].Flags |= verbs.SendSignaled
			start := t.Now()
			if _, err := k.qp.PostSend(t, wrs); err != nil {
				s.fail("thread %d: post: %v", i, err)
				return
			}
			f.posted++
			n, err := k.cq.PollWait(t, wc, 500*time.Millisecond)
			if err != nil || n == 0 {
				s.fail("thread %d: no completion: %v", i, err)
				return
			}
			now := t.Now()
			s.account(now, nil, wc[:n])
			s.sample(r, start, now-start)
		}
	}
}

func (s *Started) sample(r *ThreadResult, start, d time.Duration) {
	if start >= s.begin() {
		r.Latency = append(r.Latency, d)
	}
}

// ping is the client of ib_write_lat's loop: write a byte that changes each round,
// wait until the peer's write shows up in the own buffer, take half of the time.
func (s *Started) ping(t verbs.Thread, i int, k *conn, r *ThreadResult) {
	for s.res.Failed == nil && !s.finished(t, i, r.Completed) {
		start := t.Now()
		if !s.volley(t, i, k, byte(r.Completed+1)) || !s.await(t, k, byte(r.Completed+1)) {
			return
		}
		s.count(t.Now(), t.Now(), r, &s.flows[i][0], 1)
		s.sample(r, start, (t.Now()-start)/2)
	}
}

// pong is the server of the loop.
func (s *Started) pong(t verbs.Thread, g int) {
	k := s.b.qps[g][0]
	for n := uint64(1); s.running(t); n++ {
		if !s.await(t, k, byte(n)) || !s.volley(t, g*s.l.QPShare, k, byte(n)) {
			return
		}
	}
}

// volley writes the payload, whose last byte is mark, to the peer, and drains its
// own completions.
func (s *Started) volley(t verbs.Thread, i int, k *conn, mark byte) bool {
	l := s.l
	out := k.ctx.mrs[k.pd]
	size := uint64(l.Payload)
	var b = [1]byte{mark}
	// The outgoing copy lies behind the incoming one, as in perftest's buffers.
	src := out.buf.Len() / 2
	if _, err := out.buf.WriteAt(t, b[:], int64(src+size-1)); err != nil {
		s.fail("write buffer: %v", err)
		return false
	}
	dst := k.peer.ctx.mrs[k.peer.pd]
	wr := verbs.SendWR{ID: 1, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, RemoteAddr: dst.buf.Addr(), RKey: dst.mr.RKey(),
		SGEs: []verbs.SGE{{Addr: out.buf.Addr() + src, Length: l.Payload, LKey: out.mr.LKey()}}}
	if l.Inline {
		wr.Flags |= verbs.SendInline
	}
	if _, err := k.qp.PostSend(t, []verbs.SendWR{wr}); err != nil {
		s.fail("post: %v", err)
		return false
	}
	return true
}

// await spins on the last byte of the incoming message, then polls the CQ once for
// the completion of the write that went before.
func (s *Started) await(t verbs.Thread, k *conn, mark byte) bool {
	in := k.ctx.mrs[k.pd]
	var b [1]byte
	var wc [4]verbs.WC
	patience := t.Now() + 500*time.Millisecond
	for {
		if _, err := in.buf.ReadAt(t, b[:], int64(s.l.Payload)-1); err != nil {
			s.fail("read buffer: %v", err)
			return false
		}
		if b[0] == mark {
			break
		}
		if !s.running(t) {
			return false
		}
		if t.Now() > patience {
			s.fail("no message in 500ms")
			return false
		}
		t.Work(spin)
	}
	n, err := k.cq.Poll(t, wc[:])
	if err != nil || n > 0 && wc[0].Status != verbs.WCSuccess {
		s.fail("poll: %v, %v", wc[0].Status, err)
		return false
	}
	return true
}

// spin is one turn of a loop that reads a cached byte: the work between two reads.
const spin = 2 * time.Nanosecond
