package hca

import (
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/sim/rule"
)

// session gathers completions of a CQ with compression until they are written together
// (prm, MiniCQE). It begins with a completion that would wait for the bus anyway ("mini CQEs are
// returned by the NIC when PCI back pressure is detected", DPDK 99c12dcca65d), or with any in
// aggressive mode. It ends with the entry that does not join, when it is full or the ring is, when
// the bus would have carried its first entry, after CQECompTimeout at the latest, and when
// software arms the CQ; an armed CQ has none. All of this is an assumption: what firmware does is
// not public.
type session struct {
	format uint32
	limit  uint32
	n      uint32
	ends   sim.Time
	timer  sim.Time // when the event of the timer is; 0: there is none
	first  [2 * prm.CQE64Size]byte
	minis  []byte
}

// newSession is what a CQ of the context has for compression: nil when it is off. ok is false for a
// form that the device does not have.
func (v *completionQueues) newSession(c prm.CQC, size uint32) (s *session, ok bool) {
	if !c.CQECompEn() {
		return nil, true
	}
	f := c.MiniCQEResFormat()
	if v.p.CQECompMax == 0 || c.CQECompressionLayout() != prm.LayoutBasic ||
		f != prm.MiniCQEHash && f != prm.MiniCQECsum && f != prm.MiniCQECsumStrideIndex {
		return nil, false
	}
	limit := min(uint32(v.p.CQECompMax), size)
	entries := (limit + prm.MiniCQEArray - 1) / prm.MiniCQEArray
	return &session{format: f, limit: limit, minis: make([]byte, entries*prm.CQE64Size)}, true
}

// title is the first completion.
func (s *session) title(c *cq) prm.CQE64 { return s.first[c.cqe-prm.CQE64Size : c.cqe] }

// gather takes an entry into the session. It reports false when the entry is to be written
// alone, behind what was gathered.
func (c *cq) gather(b []byte) bool {
	s, e := c.comp, prm.CQE64(b[c.cqe-prm.CQE64Size:])
	if s.n > 0 && !e.Joins(s.title(c), s.n, s.format) {
		c.settle()
	}
	full := c.used()+s.n >= c.size && !c.ignoresOverrun()
	if full || c.arms != disarmed || len(c.pending) > 0 || !e.Compressible() || s.n == 0 && !c.begin(b) {
		c.settle()
		return false
	}
	if c.breaks(rule.MiniEntriesHaveTheirLength) {
		e.SetByteCnt(s.title(c).ByteCnt())
	}
	if c.breaks(rule.MiniEntriesHaveTheirIndex) {
		e.SetWQECounter(s.title(c).WQECounter())
	}
	prm.MiniCQE(s.minis[s.n*prm.MiniCQESize:]).Set(e, s.format)
	if s.n++; s.n == s.limit {
		c.settle()
	}
	return true
}

// begin opens a session with its first entry, if there is a reason to hold it back.
func (c *cq) begin(b []byte) bool {
	s := c.comp
	hold := c.p.CQECompTimeout
	if !c.p.CQECompAggressive {
		hold = min(hold, c.bus.WriteBacklog())
	}
	if hold == 0 || s.limit < 2 {
		return false
	}
	copy(s.first[:], b)
	s.ends = c.e.Now() + hold
	if s.timer == 0 {
		s.timer = s.ends
		c.e.At(s.timer, c.h.cqSession, c.arg)
	}
	return true
}

// onCQSession is the end of a session, or of one that was written meanwhile.
func (v *completionQueues) onSession(arg uint64) {
	c := v.named(arg)
	if c == nil {
		return
	}
	s := c.comp
	if s.timer = 0; s.n == 0 {
		return
	}
	if v.e.Now() < s.ends {
		s.timer = s.ends
		v.e.At(s.timer, v.h.cqSession, arg)
		return
	}
	c.settle()
}

// settle writes what the session has gathered: one completion alone as it is, more as a title
// behind its arrays.
func (c *cq) settle() {
	s := c.comp
	if s == nil || s.n == 0 {
		return
	}
	n := s.n
	s.n = 0
	if n == 1 {
		c.write(s.first[:c.cqe])
		return
	}
	arrays := (n + prm.MiniCQEArray - 1) / prm.MiniCQEArray
	clear(s.minis[n*prm.MiniCQESize : arrays*prm.CQE64Size])
	for i := range arrays {
		c.place(c.pi+prm.MiniCQEPlace(i*prm.MiniCQEArray), s.minis[i*prm.CQE64Size:][:prm.CQE64Size])
	}
	t := s.title(c)
	op, se := t.Opcode(), t.SE()
	t.SetByteCnt(n)
	t.SetOpOwn(op, prm.CQEFormatCompressed, se, prm.CQEOwner(c.pi, c.size))
	c.place(c.pi, t)
	k := &c.c
	k.CQESessions++
	k.MiniCQEs += uint64(n)
	k.CQEBytesSaved += uint64(n)*uint64(c.cqe) - uint64(arrays+1)*prm.CQE64Size
	c.produced(n, se)
}
