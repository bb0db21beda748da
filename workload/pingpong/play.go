package pingpong

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// pageSize is that at which a peer with -c wants a zero.
const pageSize = 4096

// content is what a client sends: bytes that differ from place to place, and zeros where a peer
// that checks wants them.
func (e *End) content() []byte {
	b := make([]byte, e.o.Size)
	for i := range b {
		b[i] = byte(i + i>>8*31 + i>>16*7 + 1)
	}
	for i := 0; e.o.Check && i < len(b); i += pageSize {
		b[i] = 0
	}
	return b
}

// play sends and receives in turn. Both ends send from where they receive, so what a client has
// sent comes back in the end.
func (e *End) play(t verbs.Thread) error {
	content := e.content()
	e.pending = recvID
	if e.o.Client {
		if _, err := e.buf.WriteAt(t, content, int64(e.greeting())); err != nil {
			return err
		}
		if err := e.send(t); err != nil {
			return err
		}
	}
	began := t.Now()
	for e.received < e.o.Iters || e.sent < e.o.Iters {
		if err := e.turn(t); err != nil {
			return fmt.Errorf("after %d messages sent and %d received of %d: %w", e.sent, e.received, e.o.Iters, err)
		}
	}
	e.report(t.Now() - began)
	if !e.o.Client {
		content = e.first
	}
	got := make([]byte, e.o.Size)
	if _, err := e.buf.ReadAt(t, got, int64(e.greeting())); err != nil {
		return err
	}
	for i := range got {
		if got[i] != content[i] {
			return fmt.Errorf("the bytes that came last differ from those that came first: byte %d is %#02x and was %#02x", i, got[i], content[i])
		}
	}
	return nil
}

func (e *End) report(d time.Duration) {
	total := 2 * float64(e.o.Size) * float64(e.o.Iters)
	us := float64(d) / float64(time.Microsecond)
	fmt.Fprintf(e.env.Out, "%.0f bytes in %.2f seconds = %.2f Mbit/sec\n", total, us/1e6, total*8/us)
	fmt.Fprintf(e.env.Out, "%d iters in %.2f seconds = %.2f usec/iter\n", e.o.Iters, us/1e6, us/float64(e.o.Iters))
}

// How long a wait lasts before somebody looks at the user, and at whether anything comes any more.
const (
	look     = 100 * time.Millisecond
	patience = 120 * time.Second
)

// ErrInterrupted is the end of a wait by the user.
var ErrInterrupted = errors.New("interrupted")

// turn waits for completions and does what follows from them.
func (e *End) turn(t verbs.Thread) error {
	if err := e.event(t); err != nil {
		return err
	}
	var wc [2]verbs.WC
	for began := t.Now(); ; {
		d := look
		if e.o.Events {
			d = 0
		}
		n, err := e.cq.PollWait(t, wc[:], d)
		if err != nil {
			return fmt.Errorf("ibv_poll_cq: %w", err)
		}
		for i := range wc[:n] {
			if err := e.completed(t, &wc[i]); err != nil {
				return err
			}
		}
		switch {
		case n > 0 && e.o.Events:
			continue // until there is none, after which an event may come again
		case n > 0 || e.o.Events:
			return nil
		case e.interrupted():
			return ErrInterrupted
		case t.Now()-began > patience:
			return errQuiet
		}
	}
}

var errQuiet = fmt.Errorf("nothing has come for %v: the peer has ended, or messages are lost and nothing sends them again", patience)

func (e *End) interrupted() bool { return e.env.Interrupted != nil && e.env.Interrupted() }

// event waits for a completion event, with -e.
func (e *End) event(t verbs.Thread) error {
	if !e.o.Events {
		return nil
	}
	for began := t.Now(); ; {
		q, err := e.ch.Event(t, look)
		switch {
		case err == nil:
			e.ch.Ack(t, q, 1)
			return q.ReqNotify(t, false)
		case !errors.Is(err, syscall.EAGAIN):
			return fmt.Errorf("ibv_get_cq_event: %w", err)
		case e.interrupted():
			return ErrInterrupted
		case t.Now()-began > patience:
			return errQuiet
		}
	}
}

// completed does what follows from a completion: another receive, and another send when both have
// completed.
func (e *End) completed(t verbs.Thread, w *verbs.WC) error {
	if w.Status != verbs.WCSuccess {
		return e.failed(w)
	}
	if w.ID == sendID {
		e.sent++
	} else {
		if e.received++; e.received == 1 && !e.o.Client {
			e.first = make([]byte, e.o.Size)
			if _, err := e.buf.ReadAt(t, e.first, int64(e.greeting())); err != nil {
				return err
			}
		}
		if e.posted--; e.posted <= 1 {
			if err := e.receives(t); err != nil {
				return err
			}
		}
	}
	if e.pending &^= int(w.ID); e.pending != 0 || e.sent >= e.o.Iters {
		return nil
	}
	return e.send(t)
}

func (e *End) failed(w *verbs.WC) error {
	err := fmt.Errorf("completion with status %v (%d), vendor error %#x", w.Status, w.Status, w.VendorErr)
	switch w.Status {
	case verbs.WCRetryExcErr:
		return fmt.Errorf("%w: the peer has ended, or UDP port 4791 does not get through to %v", err, e.remote.GID)
	case verbs.WCLocLenErr:
		return fmt.Errorf("%w: give the same -s to both ends", err)
	case verbs.WCRemInvReqErr:
		return fmt.Errorf("%w: give the same -s and -m to both ends", err)
	}
	return err
}
