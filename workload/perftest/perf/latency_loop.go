package perf

import (
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// stamp notes the time of a message of a latency test.
func (e *End) stamp(t verbs.Thread) {
	if !e.o.Timed {
		e.times.posted = append(e.times.posted, t.Now())
	}
}

// startLatency begins a measurement of times.
func (e *End) startLatency(now time.Duration) {
	e.times = times{first: now}
	if !e.o.Timed {
		e.times.posted = make([]time.Duration, 0, e.o.Iters)
	}
}

// gap waits before a message.
func (e *End) gap(t verbs.Thread) {
	if e.o.Gap > 0 {
		t.Work(e.o.Gap)
	}
}

// completion waits for one completion of what this end sent. The clock, if it is on, ends the wait.
func (e *End) completion(t verbs.Thread, c *clock, scnt, ccnt uint64) (bool, error) {
	var wc [1]verbs.WC
	for began := t.Now(); ; {
		if e.o.Events {
			if err := e.event(t, e.sendCh); err != nil {
				return false, err
			}
		}
		n, err := e.sendCQ.PollWait(t, wc[:], e.patch(t, c))
		switch {
		case err != nil:
			return false, fmt.Errorf("ibv_poll_cq: %w", err)
		case n > 0 && wc[0].Status != verbs.WCSuccess:
			return false, e.failedSend(&wc[0], scnt, ccnt)
		case n > 0:
			return true, nil
		case c.on && c.phase(t.Now()) == over:
			return false, nil
		case e.tired(t.Now() - began):
			return false, e.quiet(ccnt, e.o.Iters)
		}
	}
}

// patch is how long one wait of a latency loop may be.
func (e *End) patch(t verbs.Thread, c *clock) time.Duration {
	if c.on {
		return min(look, c.left(t.Now()))
	}
	return look
}

// runRequests posts one read or atomic after the other (run_iter_lat).
func (e *End) runRequests(t verbs.Thread) error {
	c := e.conns[0]
	clock := e.newClock(t.Now())
	e.startLatency(t.Now())
	c.wrs[0].Flags |= verbs.SendSignaled
	n := uint64(0)
	for e.o.Timed && clock.phase(t.Now()) != over || !e.o.Timed && c.scnt < e.o.Iters {
		e.gap(t)
		e.stamp(t)
		if err := e.post(t, c); err != nil {
			return err
		}
		c.scnt++
		ok, err := e.completion(t, &clock, c.scnt, c.scnt-1)
		if err != nil {
			return err
		}
		if ok && clock.phase(t.Now()) == sampling {
			n++
		}
	}
	e.stopTimes(t.Now(), &clock)
	e.counted(n)
	return nil
}

// runPingPong writes to each other's memory in turn, and polls it for the last byte of the peer's
// message (run_iter_lat_write). The server begins.
func (e *End) runPingPong(t verbs.Thread) error {
	c := e.conns[0]
	clock := e.newClock(t.Now())
	e.startLatency(t.Now())
	c.wrs[0].Flags |= verbs.SendSignaled
	var scnt, ccnt, rcnt, counted uint64
	n := e.o.Iters
	for e.o.Timed && clock.phase(t.Now()) != over || !e.o.Timed && (scnt < n || ccnt < n || rcnt < n) {
		if (rcnt < n || e.o.Timed) && (scnt >= 1 || e.o.Sender) {
			rcnt++
			arrived, err := e.await(t, c, byte(rcnt), &clock)
			if err != nil {
				return err
			}
			if !arrived {
				break
			}
		}
		if scnt < n || e.o.Timed {
			e.gap(t)
			e.stamp(t)
			scnt++
			if _, err := c.buf.WriteAt(t, []byte{byte(scnt)}, int64(c.out+e.size-1)); err != nil {
				return fmt.Errorf("write to the buffer: %w", err)
			}
			if err := e.post(t, c); err != nil {
				return err
			}
		}
		if ccnt < n || e.o.Timed {
			ok, err := e.completion(t, &clock, scnt, ccnt)
			if err != nil {
				return err
			}
			if ok {
				ccnt++
				if clock.phase(t.Now()) == sampling {
					counted++
				}
			}
		}
	}
	e.stopTimes(t.Now(), &clock)
	e.counted(counted)
	return nil
}

// The turns of a loop that polls memory.
const (
	spin = 2 * time.Nanosecond // reads a cached byte again
	late = time.Millisecond    // a message is lost, and its latency is that of timers: looks are rarer
)

// await polls the last byte of the incoming message.
func (e *End) await(t verbs.Thread, c *conn, mark byte, clock *clock) (bool, error) {
	var b [1]byte
	for began := t.Now(); ; {
		if _, err := c.buf.ReadAt(t, b[:], int64(c.in+e.size-1)); err != nil {
			return false, fmt.Errorf("read the buffer: %w", err)
		}
		if b[0] == mark {
			return true, nil
		}
		waited := t.Now() - began
		switch {
		case clock.on && clock.phase(t.Now()) == over:
			return false, nil
		case waited > late && e.tired(waited):
			return false, e.quiet(uint64(mark), e.o.Iters)
		case e.env.Idle != nil:
			e.env.Idle(t)
		case waited <= late:
			t.Work(spin)
		default:
			t.Work(waited / 1000)
		}
	}
}

// runMessages sends a message and receives one in turn (run_iter_lat_send, run_iter_lat_write_imm).
func (e *End) runMessages(t verbs.Thread) error {
	c := e.conns[0]
	var clock clock
	if e.o.Test.Verb == WriteImm {
		clock = e.newClock(t.Now())
	}
	e.startLatency(t.Now())
	var scnt, rcnt, counted uint64
	n := e.o.Iters
	clientBegins := e.o.Test.Verb != WriteImm // whose program begins at the server, as that of writes does
	ended := func() bool { return e.o.Timed && clock.on && clock.phase(t.Now()) == over }
	for !e.o.Timed && (scnt < n || rcnt < n) || e.o.Timed && !ended() {
		if (rcnt < n || e.o.Timed) && (scnt >= 1 || e.o.Sender != clientBegins) {
			got, err := e.message(t, &clock, rcnt)
			if err != nil {
				return err
			}
			if !got {
				break
			}
			if rcnt++; clock.phase(t.Now()) == sampling {
				counted++
			}
		}
		if scnt < n || e.o.Timed {
			e.gap(t)
			e.stamp(t)
			scnt++
			c.wrs[0].Flags &^= verbs.SendSignaled
			polls := scnt%uint64(e.o.CQMod) == 0 || !e.o.Timed && scnt == n
			if polls {
				c.wrs[0].Flags |= verbs.SendSignaled
			}
			if ended() {
				break
			}
			if err := e.post(t, c); err != nil {
				return err
			}
			if polls {
				if _, err := e.completion(t, &clock, scnt, scnt); err != nil {
					return err
				}
			}
		}
	}
	e.stopTimes(t.Now(), &clock)
	e.counted(counted)
	return nil
}

// message waits for one receive, and posts another.
func (e *End) message(t verbs.Thread, clock *clock, rcnt uint64) (bool, error) {
	var wc [1]verbs.WC
	for began := t.Now(); ; {
		if e.o.Events {
			if err := e.event(t, e.rcCh); err != nil {
				return false, err
			}
		}
		n, err := e.rcq.PollWait(t, wc[:], e.patch(t, clock))
		switch {
		case err != nil:
			return false, fmt.Errorf("ibv_poll_cq: %w", err)
		case n > 0:
			if e.o.Timed && !clock.on {
				*clock = e.newClock(t.Now())
			}
			return true, e.take(t, &wc[0], rcnt)
		case clock.on && clock.phase(t.Now()) == over:
			return false, nil
		case e.tired(t.Now() - began):
			return false, e.quiet(rcnt, e.o.Iters)
		}
	}
}
