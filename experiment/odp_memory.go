package experiment

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
	copyTime time.Duration // of a message
	target   verbs.Buffer
	rkey     uint32

	registrations int
	pinned        uint64 // bytes, at most
	order         []int  // slots, in the order in which they are sent

	times     verbs.TimedCQ // of the sender's completions; nil where polls must do
	delivered time.Duration // when the last message that was polled had been
}

func (s *sending) slots() int { return int(s.buf.Len() / s.message) }

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
	for at, end := uint64(i)*s.message, uint64(i+n)*s.message; at < end; at += most {
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
		if err := o.advise(t, s, s.order[ahead], 1, 0); err != nil {
			return 0, 0, err
		}
	}
	return s.buf.Addr() + uint64(i)*s.message, o.mr.LKey(), nil
}

func (o *onDemand) regions() []verbs.MR { return []verbs.MR{o.mr} }

// bounce copies each message into one of a few buffers, which are pinned from the beginning.
type bounce struct {
	ring verbs.Buffer
	mr   verbs.MR
	data []byte
}

func (b *bounce) early(t verbs.Thread, s *sending) (err error) {
	b.data = make([]byte, s.message)
	n := uint64(s.window) * s.message
	if b.ring, err = s.from.Proc.Map(t, n, verbs.MapOptions{}); err != nil {
		return err
	}
	s.pinned = n
	b.mr, err = s.register(t, b.ring, 0, n)
	return err
}

func (*bounce) late(verbs.Thread, *sending) error { return nil }

func (b *bounce) slice(t verbs.Thread, s *sending, n, i int) (uint64, uint32, error) {
	slot := uint64(n%s.window) * s.message
	if _, err := s.buf.ReadAt(t, b.data, int64(uint64(i)*s.message)); err != nil {
		return 0, 0, err
	}
	t.Work(s.copyTime)
	if _, err := b.ring.WriteAt(t, b.data, int64(slot)); err != nil {
		return 0, 0, err
	}
	return b.ring.Addr() + slot, b.mr.LKey(), nil
}

func (*bounce) regions() []verbs.MR { return nil }

// pinCache registers each message's memory when it is sent, and keeps the regions, up to so many bytes; the one that was used longest
// ago goes first.
type pinCache struct {
	most  uint64
	kept  map[int]verbs.MR
	order []int // slots, the one used last at the end
}

func (*pinCache) early(verbs.Thread, *sending) error { return nil }

func (c *pinCache) late(verbs.Thread, *sending) error {
	c.kept = map[int]verbs.MR{}
	return nil
}

func (c *pinCache) slice(t verbs.Thread, s *sending, _, i int) (uint64, uint32, error) {
	addr := s.buf.Addr() + uint64(i)*s.message
	if mr := c.kept[i]; mr != nil {
		for at, slot := range c.order {
			if slot == i {
				c.order = append(append(c.order[:at:at], c.order[at+1:]...), i)
				break
			}
		}
		return addr, mr.LKey(), nil
	}
	// What is under way still needs its region, so a window of messages is kept at least.
	for most := max(c.most, uint64(s.window+1)*s.message); uint64(len(c.order)+1)*s.message > most; {
		if err := c.drop(t, c.order[0]); err != nil {
			return 0, 0, err
		}
	}
	mr, err := s.register(t, s.buf, uint64(i)*s.message, s.message)
	if err != nil {
		return 0, 0, err
	}
	c.kept[i], c.order = mr, append(c.order, i)
	s.pinned = max(s.pinned, uint64(len(c.order))*s.message)
	return addr, mr.LKey(), nil
}

// drop deregisters what the cache has of a slot.
func (c *pinCache) drop(t verbs.Thread, i int) error {
	mr := c.kept[i]
	delete(c.kept, i)
	for at, slot := range c.order {
		if slot == i {
			c.order = append(c.order[:at:at], c.order[at+1:]...)
			break
		}
	}
	return mr.Dereg(t)
}

func (*pinCache) regions() []verbs.MR { return nil }
