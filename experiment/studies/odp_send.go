package studies

import (
	"fmt"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

// sample is what a program knows when a message has completed.
type sample struct {
	at       time.Duration
	bytes    uint64
	counters map[string]uint64 // of the host
}

// newSending opens both ends, maps the buffer of size bytes on host 0 and a pinned target on host
// 1.
func (x *odpRun) newSending(t verbs.Thread, b *bed, size uint64, o workload.EndpointOptions) (*sending, error) {
	o.QPs, o.Sends, o.Receives, o.MinRNRTimer, o.MTU = 1, x.window, 2, 12, verbs.MTU4096
	from, to, err := b.pair(t, o)
	if err != nil {
		return nil, err
	}
	s := &sending{from: from, to: to, message: x.message, window: x.window, copyGbps: uint64(x.copyGbps)}
	if q, ok := from.CQ.(verbs.TimedCQ); ok && q.KeepTimes(mostPolled) {
		s.times = q
	}
	err = to.Do(t, "target", func(t verbs.Thread) error {
		if s.target, err = to.Proc.Map(t, x.message, verbs.MapOptions{}); err != nil {
			return err
		}
		mr, err := to.PD.RegMR(t, s.target.Addr(), x.message, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		if err == nil {
			s.rkey = mr.RKey()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, from.Do(t, "map", func(t verbs.Thread) error {
		m, err := from.Proc.Map(t, size, verbs.MapOptions{Lazy: true})
		if err != nil {
			return err
		}
		s.buf = m.(verbs.PagedBuffer)
		return nil
	})
}

// fill puts data into the buffer.
func (s *sending) fill(t verbs.Thread) error {
	for i := range s.slots() {
		off, n := s.span(i)
		if err := s.buf.Advise(t, off, n, verbs.AdvicePopulateWrite); err != nil {
			return fmt.Errorf("touch the buffer: %w", err)
		}
	}
	return nil
}

// send writes the messages to the target, and calls done with the number of those that have
// completed and of their bytes, which it returns in the end.
func (s *sending) send(t verbs.Thread, src source, done func(n int, bytes uint64)) (bytes uint64, err error) {
	out, completed := 0, 0
	reap := func() error {
		n, err := s.reap(t)
		for k := range n {
			_, length := s.span(s.slot(completed + k))
			bytes += length
		}
		out, completed = out-n, completed+n
		if done != nil && n > 0 {
			done(completed, bytes)
		}
		return err
	}
	for n := range s.messages() {
		for out >= s.window {
			if err := reap(); err != nil {
				return bytes, err
			}
		}
		i := s.slot(n)
		_, length := s.span(i)
		addr, key, err := src.slice(t, s, n, i)
		if err != nil {
			return bytes, err
		}
		wr := verbs.SendWR{ID: uint64(n), Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, RemoteAddr: s.target.Addr(), RKey: s.rkey,
			SGEs: []verbs.SGE{{Addr: addr, Length: uint32(length), LKey: key}}}
		if _, err := s.from.QP(0).PostSend(t, []verbs.SendWR{wr}); err != nil {
			return bytes, err
		}
		out++
	}
	for out > 0 {
		if err := reap(); err != nil {
			return bytes, err
		}
	}
	return bytes, nil
}

// reap waits for completions, and notes when the device wrote the last of them.
func (s *sending) reap(t verbs.Thread) (int, error) {
	n, err := awaitCompletions(t, s.from.CQ)
	s.delivered = t.Now()
	if n > 0 && s.times != nil {
		s.delivered = min(s.delivered, s.times.CompletedAt(n-1))
	}
	return n, err
}

// mostPolled is how many completions a poll gives at most.
const mostPolled = 16

// patience is how long a completion may take.
const patience = 100 * time.Second

func awaitCompletions(t verbs.Thread, cq verbs.CQ) (int, error) {
	n, err := pollCompletions(t, cq, patience)
	if err == nil && n == 0 {
		err = fmt.Errorf("no completion in %v", patience)
	}
	return n, err
}

// pollCompletions waits for completions for so long at most; none may have come by then.
func pollCompletions(t verbs.Thread, cq verbs.CQ, wait time.Duration) (int, error) {
	var wc [mostPolled]verbs.WC
	n, err := cq.PollWait(t, wc[:], wait)
	if err != nil {
		return 0, err
	}
	for _, w := range wc[:n] {
		if w.Status != verbs.WCSuccess {
			return 0, &badCompletion{w.Status, w.VendorErr}
		}
	}
	return n, nil
}

// badCompletion is a message that has failed.
type badCompletion struct {
	status    verbs.WCStatus
	vendorErr uint32
}

func (e *badCompletion) Error() string {
	return fmt.Sprintf("a message ended with %v (vendor syndrome %#x)", e.status, e.vendorErr)
}

// gbps is the goodput of n bytes in a time, in Gb/s.
func gbps(n uint64, in time.Duration) float64 {
	if in <= 0 {
		return 0
	}
	return float64(n) * 8 / float64(in.Nanoseconds())
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// errno is the name of the errno of an error, "" for none.
func errno(err error) string {
	if err == nil {
		return ""
	}
	return verbs.ErrnoName(verbs.ErrnoOf(err))
}
