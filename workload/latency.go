package workload

import (
	"fmt"
	"slices"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// checkLatency reports what would let a thread take another's message or completion for its own.
func (l *Load) checkLatency() error {
	pingPong := slices.ContainsFunc(l.Mix, func(m Mix) bool { return m.Verb == Write })
	regions := (l.Threads + l.PDs - 1) / l.PDs
	switch {
	case !l.Latency:
		return nil
	case pingPong && l.OnDemand != Pinned:
		return fmt.Errorf("the latency of a write is measured by a ping-pong, whose programs touch the pages themselves: measure write_imm, send or read on demand")
	case l.QPShare > 1 || l.Threads > 1 && l.CQShare > 1 && l.QPs%l.CQShare != 0:
		return fmt.Errorf("a latency load needs queue pairs and CQs that threads do not share: leave qp_sharing out, and let cq_sharing divide the qps_per_thread of %d", l.QPs)
	case pingPong && len(l.Mix) > 1:
		return fmt.Errorf("the latency of a write is measured by a ping-pong, and no other verb is posted meanwhile: measure write in a load of its own")
	case pingPong && l.Payload == 0:
		return fmt.Errorf("the latency of a write is measured by a ping-pong, which waits for the last byte of a message: payload must be at least 1B")
	case pingPong && l.MRs < regions:
		return fmt.Errorf("the latency of a write is measured by a ping-pong, which needs a region for each of the %d threads: mrs is %d, and %d are needed", l.Threads, l.MRs, regions)
	}
	return nil
}

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
			if l.Cold && !s.cool(t, &wrs[0]) {
				return
			}
			start := t.Now()
			if _, err := k.qp.PostSend(t, wrs); err != nil {
				s.fail(t.Now(), "thread %d: post: %v", i, err)
				return
			}
			f.posted++
			n, err := k.cq.PollWait(t, wc, l.Patience())
			if err != nil || n == 0 {
				s.silent(t, i, err)
				return
			}
			now := t.Now()
			s.account(now, nil, wc[:n])
			if s.res.Failed != nil {
				s.res.Detection = now - start
				return
			}
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
		if !s.room(t, k) {
			return
		}
		start := t.Now()
		if !s.volley(t, k, byte(r.Completed+1)) || !s.await(t, k, byte(r.Completed+1)) {
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
		if !s.await(t, k, byte(n)) || !s.room(t, k) || !s.volley(t, k, byte(n)) {
			return
		}
	}
}

// room waits until the send queue and its CQ have room for a write. The peer's message shows that a
// write has arrived, which may be long before its ACK.
func (s *Started) room(t verbs.Thread, k *conn) bool {
	var wc [1]verbs.WC
	for k.writes >= max(1, s.l.Window/s.l.SignalEvery) {
		n, err := k.cq.PollWait(t, wc[:], s.l.Patience())
		if err != nil || n == 0 {
			s.silent(t, 0, err)
			return false
		}
		if !s.written(t, k, wc[:n]) {
			return false
		}
	}
	return true
}

// written takes completions of writes.
func (s *Started) written(t verbs.Thread, k *conn, wc []verbs.WC) bool {
	k.writes -= len(wc)
	for i := range wc {
		if wc[i].Status != verbs.WCSuccess {
			s.died(t.Now(), &wc[i], "a write")
			return false
		}
	}
	return true
}

// leastPatience is how long a message may take, and a completion where it is less than a device may
// try.
const leastPatience = time.Second

// Patience is how long a completion may take: more than a device tries at most, which is twice the
// ACK timeout for each try, and a timeout of 268 ms at least.
func (l *Load) Patience() time.Duration {
	timeout := 4096 * time.Nanosecond << max(code(l.AckTimeout, AckTimeout), 16)
	return max(leastPatience, 2*timeout*time.Duration(code(l.RetryCnt, 7)+8))
}

// silent ends the load, of which a thread got no completion in time, or an error.
func (s *Started) silent(t verbs.Thread, i int, err error) {
	if err != nil {
		s.fail(t.Now(), "thread %d: poll: %v", i, err)
		return
	}
	s.fail(t.Now(), "thread %d: no completion in %v%s", i, s.l.Patience(), s.l.waits())
}

// waits says why a request may never complete: it was lost, or there was no receive for it.
func (l *Load) waits() string {
	switch {
	case code(l.AckTimeout, AckTimeout) == 0:
		return " (ack_timeout is 0, so that nothing repeats what is lost: 1 to 31 do)"
	case code(l.RNRRetry, 7) == 7 && l.NoReceive:
		return " (rnr_retry is 7, which is without end: 0 to 6 are not)"
	}
	return ""
}

// volley writes the payload, whose last byte is mark, to the peer.
func (s *Started) volley(t verbs.Thread, k *conn, mark byte) bool {
	l := s.l
	out := k.ctx.mrs[k.own]
	size := uint64(l.Payload)
	var b = [1]byte{mark}
	// The outgoing copy lies behind the incoming one, as in perftest's buffers.
	src := out.buf.Len() / 2
	if _, err := out.buf.WriteAt(t, b[:], int64(src+size-1)); err != nil {
		s.fail(t.Now(), "write buffer: %v", err)
		return false
	}
	dst := k.peer.ctx.mrs[k.peer.own]
	wr := verbs.SendWR{ID: 1, Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, RemoteAddr: dst.buf.Addr(), RKey: dst.mr.RKey(),
		SGEs: []verbs.SGE{{Addr: out.buf.Addr() + src, Length: l.Payload, LKey: out.mr.LKey()}}}
	if l.Inline {
		wr.Flags |= verbs.SendInline
	}
	if _, err := k.qp.PostSend(t, []verbs.SendWR{wr}); err != nil {
		s.fail(t.Now(), "post: %v", err)
		return false
	}
	k.writes++
	return true
}

// await spins on the last byte of the incoming message, then polls the CQ once for
// completions of the writes that went before.
func (s *Started) await(t verbs.Thread, k *conn, mark byte) bool {
	in := k.ctx.mrs[k.own]
	var b [1]byte
	var wc [4]verbs.WC
	for began := t.Now(); ; {
		if _, err := in.buf.ReadAt(t, b[:], int64(s.l.Payload)-1); err != nil {
			s.fail(t.Now(), "read buffer: %v", err)
			return false
		}
		if b[0] == mark {
			break
		}
		if !s.running(t) {
			return false
		}
		waited := t.Now() - began
		switch {
		case waited <= late:
			t.Work(spin)
		case waited > s.l.Patience():
			s.fail(t.Now(), "no message in %v%s", s.l.Patience(), s.l.waits())
			return false
		case !s.pollWrites(t, k, wc[:]): // no message comes if the write that it answers has failed
			return false
		default:
			t.Work(waited / 1000)
		}
	}
	return s.pollWrites(t, k, wc[:])
}

// pollWrites takes the completions of writes that are there.
func (s *Started) pollWrites(t verbs.Thread, k *conn, wc []verbs.WC) bool {
	n, err := k.cq.Poll(t, wc)
	if err != nil {
		s.fail(t.Now(), "poll: %v", err)
		return false
	}
	return s.written(t, k, wc[:n])
}

const (
	// spin is one turn of a loop that reads a cached byte: the work between two reads.
	spin = 2 * time.Nanosecond
	// late is when a message is waited for in turns of a thousandth of the time that it has taken:
	// it stands in a queue or was lost, and turns of a spin would cost more than the rest of the
	// run.
	late = 10 * time.Microsecond
)
