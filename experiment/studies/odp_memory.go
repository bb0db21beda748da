package studies

import (
	"fmt"
	"math"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/workload"
)

// localAccess is that of memory which only its owner's requests use.
const localAccess = verbs.AccessLocalWrite

// source is how a program gives the device what it sends.
type source interface {
	// early is done when the program begins, before there is data, and late when there is.
	early(t verbs.Thread, s *sending) error
	late(t verbs.Thread, s *sending) error
	// slice is where the device finds message n, which is in slot i of the buffer.
	slice(t verbs.Thread, s *sending, n, i int) (addr uint64, lkey uint32, err error)
	regions() []verbs.MR
}

// sending is a program that sends a buffer in messages.
type sending struct {
	from, to *workload.Endpoint
	buf      verbs.PagedBuffer
	message  uint64
	window   int
	copyGbps uint64
	copied   uint64 // bytes
	target   verbs.Buffer
	rkey     uint32

	registrations int
	pinned        uint64 // bytes, at most
	passes        int    // how often the slots are sent, one after the other
	drawn         []int  // instead: the slots that are sent

	times     verbs.TimedCQ // of the sender's completions; nil where polls must do
	delivered time.Duration // when the last message that was polled had been
}

// slots are the messages that the buffer has. The last one is shorter where the buffer is no
// multiple of a message.
func (s *sending) slots() int { return int((s.buf.Len() + s.message - 1) / s.message) }

// span is where slot i lies in the buffer.
func (s *sending) span(i int) (off, n uint64) {
	off = uint64(i) * s.message
	return off, min(s.message, s.buf.Len()-off)
}

// messages is how many are sent, and slot which one the nth is.
func (s *sending) messages() int {
	if s.drawn != nil {
		return len(s.drawn)
	}
	return s.passes * s.slots()
}

func (s *sending) slot(n int) int {
	if s.drawn != nil {
		return s.drawn[n]
	}
	return n % s.slots()
}

// copyTime is what a core takes to copy n bytes more. The parts of nanoseconds add up.
func (s *sending) copyTime(n uint64) time.Duration {
	before := s.copied * 8 / s.copyGbps
	s.copied += n
	return time.Duration(s.copied*8/s.copyGbps - before)
}

func (s *sending) register(t verbs.Thread, b verbs.Buffer, off, n uint64) (verbs.MR, error) {
	mr, err := s.from.PD.RegMR(t, b.Addr()+off, n, localAccess)
	if err != nil {
		return nil, fmt.Errorf("register %d bytes: %w", n, err)
	}
	s.registrations++
	return mr, nil
}

// pinned is a region of all of the buffer, whose memory the kernel pins.
type pinned struct{ mr verbs.MR }

func (*pinned) early(verbs.Thread, *sending) error { return nil }

func (p *pinned) late(t verbs.Thread, s *sending) (err error) {
	s.pinned = s.buf.Len()
	p.mr, err = s.register(t, s.buf, 0, s.buf.Len())
	return err
}

func (p *pinned) slice(_ verbs.Thread, s *sending, _, i int) (uint64, uint32, error) {
	return s.buf.Addr() + uint64(i)*s.message, p.mr.LKey(), nil
}

func (*pinned) regions() []verbs.MR { return nil }

// prefetch is when a program asks for pages.
type prefetch uint8

const (
	noPrefetch     prefetch = iota
	flushPrefetch           // all before the first message, and waits
	streamPrefetch          // a window ahead of what it sends, without waiting
)

// onDemand is a region that pins nothing; whole: of all of the address space.
type onDemand struct {
	whole bool
	how   prefetch
	mr    verbs.MR
}

func (o *onDemand) early(t verbs.Thread, s *sending) (err error) {
	addr, n := s.buf.Addr(), s.buf.Len()
	if o.whole {
		addr, n = 0, math.MaxUint64
	}
	if o.mr, err = s.from.PD.RegMR(t, addr, n, localAccess|verbs.AccessOnDemand); err != nil {
		return fmt.Errorf("register on demand: %w", err)
	}
	s.registrations++
	return nil
}

// advise asks for the pages of n messages from slot i on. One range has at most 2 GiB.
func (o *onDemand) advise(t verbs.Thread, s *sending, i, n int, flags verbs.AdviseMRFlags) error {
	var ranges []verbs.SGE
	const most = 1 << 30
	for at, end := uint64(i)*s.message, min(uint64(i+n)*s.message, s.buf.Len()); at < end; at += most {
		ranges = append(ranges, verbs.SGE{Addr: s.buf.Addr() + at, Length: uint32(min(end-at, most)), LKey: o.mr.LKey()})
	}
	return s.from.PD.AdviseMR(t, verbs.AdvisePrefetchWrite, flags, ranges)
}

func (o *onDemand) late(t verbs.Thread, s *sending) error {
	switch o.how {
	case flushPrefetch:
		return o.advise(t, s, 0, s.slots(), verbs.AdviseFlush)
	case streamPrefetch:
		return o.advise(t, s, 0, min(s.window, s.slots()), 0)
	}
	return nil
}

func (o *onDemand) slice(t verbs.Thread, s *sending, n, i int) (uint64, uint32, error) {
	if ahead := n + s.window; o.how == streamPrefetch && ahead < s.slots() {
		if err := o.advise(t, s, s.slot(ahead), 1, 0); err != nil {
			return 0, 0, err
		}
	}
	return s.buf.Addr() + uint64(i)*s.message, o.mr.LKey(), nil
}

func (o *onDemand) regions() []verbs.MR { return []verbs.MR{o.mr} }

// bounce copies each message into one of a few buffers, which are pinned from the beginning. Their
// memory is the program's, as that of what it sends.
type bounce struct {
	ring verbs.Buffer
	mr   verbs.MR
	data []byte
}

func (b *bounce) early(t verbs.Thread, s *sending) (err error) {
	b.data = make([]byte, s.message)
	n := uint64(s.window) * s.message
	if b.ring, err = s.from.Proc.Map(t, n, verbs.MapOptions{Lazy: true}); err != nil {
		return err
	}
	if b.mr, err = s.register(t, b.ring, 0, n); err == nil {
		s.pinned = n
	}
	return err
}

func (*bounce) late(verbs.Thread, *sending) error { return nil }

func (b *bounce) slice(t verbs.Thread, s *sending, n, i int) (uint64, uint32, error) {
	slot := uint64(n%s.window) * s.message
	off, length := s.span(i)
	data := b.data[:length]
	if _, err := s.buf.ReadAt(t, data, int64(off)); err != nil {
		return 0, 0, err
	}
	t.Work(s.copyTime(length))
	if _, err := b.ring.WriteAt(t, data, int64(slot)); err != nil {
		return 0, 0, err
	}
	return b.ring.Addr() + slot, b.mr.LKey(), nil
}

func (*bounce) regions() []verbs.MR { return nil }

// pinCache registers each message's memory when it is sent, and keeps the regions, up to so many
// bytes; the one that was used longest ago goes first. What is under way needs its region, so no
// more messages are outstanding than the cache holds.
type pinCache struct {
	most  uint64
	bytes uint64
	kept  map[int]verbs.MR
	order []int // slots, the one used last at the end
}

func (c *pinCache) early(_ verbs.Thread, s *sending) error {
	s.window = min(s.window, c.holds(s.message))
	return nil
}

// holds is how many messages the cache has room for.
func (c *pinCache) holds(message uint64) int { return int(c.most / message) }

func (c *pinCache) late(verbs.Thread, *sending) error {
	c.kept = map[int]verbs.MR{}
	return nil
}

func (c *pinCache) slice(t verbs.Thread, s *sending, _, i int) (uint64, uint32, error) {
	off, n := s.span(i)
	addr := s.buf.Addr() + off
	if mr := c.kept[i]; mr != nil {
		for at, slot := range c.order {
			if slot == i {
				c.order = append(append(c.order[:at:at], c.order[at+1:]...), i)
				break
			}
		}
		return addr, mr.LKey(), nil
	}
	for c.bytes+n > c.most {
		if err := c.drop(t, s, c.order[0]); err != nil {
			return 0, 0, err
		}
	}
	mr, err := s.register(t, s.buf, off, n)
	if err != nil {
		return 0, 0, err
	}
	c.kept[i], c.order, c.bytes = mr, append(c.order, i), c.bytes+n
	s.pinned = max(s.pinned, c.bytes)
	return addr, mr.LKey(), nil
}

// drop deregisters what the cache has of a slot.
func (c *pinCache) drop(t verbs.Thread, s *sending, i int) error {
	mr := c.kept[i]
	delete(c.kept, i)
	_, n := s.span(i)
	c.bytes -= n
	for at, slot := range c.order {
		if slot == i {
			c.order = append(c.order[:at:at], c.order[at+1:]...)
			break
		}
	}
	return mr.Dereg(t)
}

func (*pinCache) regions() []verbs.MR { return nil }
