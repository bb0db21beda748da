package model

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// entry is a completion that has come or must come.
type entry struct {
	id        uint64
	seq       int // of a send request: it and those before it leave the queue
	statuses  Statuses
	opcode    verbs.WCOpcode
	length    uint32 // of a receive
	imm       uint32
	from      uint32 // sender of a datagram
	withImm   bool
	withInv   bool // imm is the key that is invalid now
	solicited bool
	optional  bool    // it may be missing
	quiet     bool    // of an unsignaled request: there is none if it succeeded
	late      []Piece // to which the data may go when the completion is polled; nil: it is there
	data      []byte
	rule      *Rule
	decided   func(ok bool) // the status decides what comes next; nil: it does not
}

// workQueue is the completions of one work queue, in order.
type workQueue struct {
	qp      *QP
	recv    bool
	srq     *SRQ // that the requests of an XRC connection named; nil: the queue pair's
	entries []entry
}

// CQ is a completion queue.
type CQ struct {
	Name    string
	World   *World
	Cap     int
	queues  []*workQueue
	added   int   // entries ever
	armed   armed // for certain
	may     armed // at most: armed while an event had not been taken, which may do nothing
	fewest  int   // events that have to come, and that may
	most    int
	delayed bool // moderated: events come late, or with further completions
	free    bool // an event was left to the device, so that events behind it may be others on another one
}

type armed int

const (
	unarmed armed = iota
	armedSolicited
	armedAny
)

// Waiting returns how many completions must be in the CQ, and how many may be.
func (c *CQ) Waiting() (least, most int) {
	for _, q := range c.queues {
		for i := range q.entries {
			most++
			if e := &q.entries[i]; !e.optional && !e.quiet {
				least++
			}
		}
	}
	return least, most
}

// add appends a completion.
func (q *workQueue) add(e entry) {
	c := q.cq()
	q.entries = append(q.entries, e)
	if e.quiet {
		return
	}
	c.added++
	c.notify(e.solicited || !e.statuses.has(verbs.WCSuccess), e.decided != nil)
}

func (q *workQueue) cq() *CQ {
	switch {
	case q.srq != nil:
		return q.srq.CQ
	case q.recv:
		return q.qp.RecvCQ
	}
	return q.qp.SendCQ
}

// takes reports whether a CQ that is so armed makes an event of a completion.
func (a armed) takes(solicited bool) bool { return a == armedAny || a == armedSolicited && solicited }

// notify makes an event of a completion if the CQ is armed. Unsure: whether it is a failure, which
// counts as solicited, is open.
func (c *CQ) notify(solicited, unsure bool) {
	switch {
	case c.armed.takes(solicited) && c.delayed:
		c.free = true
		c.armed = unarmed // the event may come with this completion or a later one
		c.most++
	case c.armed.takes(solicited):
		c.armed, c.may = unarmed, unarmed
		c.fewest, c.most = c.fewest+1, c.most+1
	case c.may.takes(solicited):
		c.perhaps()
	case c.may == armedSolicited && unsure:
		c.World.Vague = true
	}
}

// perhaps says that a failure may have completed.
func (c *CQ) perhaps() {
	if c.may != unarmed {
		c.free = true
		c.armed = unarmed // if that was the event
		c.most++
	}
}

// Arm judges ibv_req_notify_cq. Completions that wait already may give an event at once: the device
// compares with what the program has polled (mlx5 does so, p:mlx5/cq.c), and the manual page speaks
// of the next completion.
func (c *CQ) Arm(solicited bool, err error) error {
	c.World.Cover.add(c.state(), OpArm)
	taken := c.most == 0 // else mlx5, which counts arms by the events taken, tells the device nothing new
	a := armedAny
	if solicited {
		a = armedSolicited
	}
	if _, most := c.Waiting(); most > 0 && c.armed < a {
		c.most++
		c.free = true
	}
	c.free = c.free || !taken
	if taken {
		c.armed = max(c.armed, a)
	}
	c.may = max(c.may, a)
	return errnoIn(&ruleCQEvent, err, 0)
}

// Determined reports whether the events of the CQ are the same on every device, because nothing so
// far left one to the device's choice.
func (c *CQ) Determined() bool { return !c.free }

// Awaits reports whether an event has to come.
func (c *CQ) Awaits() bool { return c.fewest > 0 }

// Event judges the result of waiting for a completion event: came says whether one was taken from
// the CQ's channel.
func (c *CQ) Event(came bool) error {
	c.World.Cover.add(c.state(), OpEvent)
	if came == (c.fewest > 0) || came && c.most > 0 || !came && c.delayed {
		if came {
			if c.fewest == 0 { // that of completions that waited: it has used the arm up
				c.armed = unarmed
			}
			c.fewest, c.most = max(0, c.fewest-1), c.most-1
		}
		return nil
	}
	if came {
		return &Violation{&ruleCQEvent, "no event of " + c.Name, "an event"}
	}
	return &Violation{&ruleCQEvent, "an event of " + c.Name, "none"}
}

// EventOfGone returns the violation of an event of a CQ that was destroyed.
func EventOfGone() error {
	return &Violation{&ruleDestroyCQ, "no event of a CQ that was destroyed", "an event"}
}

// Resize judges ibv_resize_cq to n entries; granted is the size afterwards.
func (c *CQ) Resize(n, granted int, err error) error {
	c.World.Cover.add(c.state(), OpResize)
	least, most := c.Waiting()
	switch got := verbs.ErrnoOf(err); {
	case got == syscall.EOPNOTSUPP || got == syscall.ENOSYS:
		return nil
	case n < 1:
		return errnoIn(&ruleResize, err, syscall.EINVAL)
	case err == nil && (granted < n || granted < least):
		return &Violation{&ruleResize, fmt.Sprintf("at least %d entries, for %d that wait", n, least), fmt.Sprint(granted)}
	case err == nil:
		c.Cap = granted
		return nil
	case n < most:
		return errnoIn(&ruleResize, err, syscall.EINVAL, 0)
	}
	return errnoIn(&ruleResize, err, 0)
}

// Moderate judges ibv_modify_cq.
func (c *CQ) Moderate(m verbs.CQModeration, err error) error {
	c.World.Cover.add(c.state(), OpModerate)
	if err == nil {
		if c.delayed = m.Count > 1 || m.Period > 0; c.delayed {
			c.fewest = 0 // what is posted may complete behind the call
		}
	}
	return errnoIn(&ruleModerate, err, 0, syscall.EOPNOTSUPP, syscall.ENOSYS)
}

// Destroy judges ibv_destroy_cq, which discards events that were not taken.
func (c *CQ) Destroy(err error) error {
	c.World.Cover.add(c.state(), OpDestroy)
	c.World.forget(c)
	for _, q := range c.queues {
		if !q.qp.gone {
			return errnoIn(&ruleDestroyCQ, err, syscall.EBUSY)
		}
	}
	return errnoIn(&ruleDestroyCQ, err, 0)
}

// Empty judges a poll that returned fewer completions than it could hold, after the program had
// waited for them.
func (c *CQ) Empty() error {
	for _, q := range c.queues {
		for i := range q.entries {
			if e := &q.entries[i]; !e.optional && !e.quiet {
				return &Violation{e.rule, fmt.Sprintf("%s of %#x in %s", e.statuses, e.id, c.Name), "no completion"}
			}
		}
	}
	for _, q := range c.queues { // unsignaled requests have succeeded
		q.settle(len(q.entries))
	}
	return nil
}

// settle takes the first n entries as missing.
func (q *workQueue) settle(n int) {
	for _, e := range q.entries[:n] {
		if e.decided != nil {
			e.decided(true)
		}
	}
	q.entries = slices.Delete(q.entries, 0, n)
}

// Completion judges a completion that was polled.
func (c *CQ) Completion(w *verbs.WC) error {
	c.World.Cover.add(c.state(), OpPoll)
	for _, q := range c.queues {
		for i := range q.entries {
			e := &q.entries[i]
			if e.id == w.ID {
				return c.take(q, i, w)
			}
			if !e.optional && !e.quiet {
				break
			}
		}
	}
	for _, q := range c.queues { // the receive of a message whose success is open decides it
		if q.recv && q.qp.Peer.decide(w) {
			return c.Completion(w)
		}
	}
	for _, q := range c.queues { // an unsignaled request whose success was open has succeeded, if those behind it complete
		if n := len(q.entries); n > 0 && q.entries[n-1].quiet && q.entries[n-1].decided != nil {
			q.settle(n)
			return c.Completion(w)
		}
	}
	for _, q := range c.queues { // what is flushed shows the state
		id := ^w.ID
		if l := q.qp.recvs; q.recv && len(l) > 0 {
			id = l[0].id
		} else if l := q.qp.sends; !q.recv && len(l) > 0 {
			id = l[0].ID
		}
		if id == w.ID && w.Status == verbs.WCWRFlushErr && slices.Contains(q.qp.may, verbs.QPSErr) {
			if err := q.qp.observe(verbs.QPSErr); err != nil {
				return err
			}
			return c.Completion(w)
		}
	}
	for _, q := range c.queues { // a receive that may have failed with a UC message
		if l := q.qp.recvs; q.recv && len(l) > 0 && l[0].id == w.ID && l[0].also.has(w.Status) {
			q.qp.recvs = l[1:]
			return nil
		}
	}
	want := "none"
	rule := &ruleNone
	for _, q := range c.queues {
		if len(q.entries) > 0 {
			want, rule = fmt.Sprintf("%#x (%s)", q.entries[0].id, q.entries[0].statuses), &ruleOrder
		}
	}
	return &Violation{rule, fmt.Sprintf("completion of %s in %s, not of %#x", want, c.Name, w.ID), w.Status.String()}
}

// take judges a completion against entry i of q.
func (c *CQ) take(q *workQueue, i int, w *verbs.WC) error {
	q.settle(i)
	e := q.entries[0]
	q.entries = slices.Delete(q.entries, 0, 1)
	bad := func(want, got any) error {
		return &Violation{e.rule, fmt.Sprintf("%v of %#x in %s", want, e.id, c.Name), fmt.Sprint(got)}
	}
	if !e.statuses.has(w.Status) || e.quiet && w.Status == verbs.WCSuccess {
		return bad(e.statuses, w.Status)
	}
	if w.QPN != q.qp.Number {
		return bad(fmt.Sprintf("queue pair %#x", q.qp.Number), fmt.Sprintf("%#x", w.QPN))
	}
	switch {
	case !q.recv:
		q.qp.freed = max(q.qp.freed, e.seq+1)
	case q.srq != nil:
		q.srq.used--
	case q.qp.SRQ != nil:
		q.qp.SRQ.used--
	default:
		q.qp.used--
	}
	if e.decided != nil {
		e.decided(w.Status == verbs.WCSuccess)
	}
	if w.Status != verbs.WCSuccess {
		return nil
	}
	if e.late != nil {
		land(e.late, e.data, e.id+1)
	}
	if w.Opcode != e.opcode {
		return bad("opcode "+fmt.Sprint(e.opcode), w.Opcode)
	}
	if q.recv && w.ByteLen != e.length {
		return bad(fmt.Sprintf("%d bytes", e.length), w.ByteLen)
	}
	if e.from != 0 && w.SrcQP != e.from {
		return bad(fmt.Sprintf("src_qp %#x", e.from), fmt.Sprintf("%#x", w.SrcQP))
	}
	if has := w.Flags&verbs.WCWithImm != 0; q.recv && (has != e.withImm || has && w.Imm != e.imm) {
		return bad(fmt.Sprintf("immediate %t %#x", e.withImm, e.imm), fmt.Sprintf("%t %#x", has, w.Imm))
	}
	if has := w.Flags&verbs.WCWithInv != 0; q.recv && (has != e.withInv || has && w.Imm != e.imm) {
		return bad(fmt.Sprintf("invalidated key %t %#x", e.withInv, e.imm), fmt.Sprintf("%t %#x", has, w.Imm))
	}
	return nil
}

// drop takes queues without completions off the CQ whose queue pair is gone.
func (c *CQ) drop() {
	c.queues = slices.DeleteFunc(c.queues, func(q *workQueue) bool { return len(q.entries) == 0 && q.qp.gone })
}

// forget makes all completions of a queue pair optional: it was reset or destroyed, and whether its
// completions are still polled is left open (mlx5 removes them, p:mlx5/cq.c).
func (q *workQueue) forget() {
	for i := range q.entries {
		q.entries[i].optional, q.entries[i].decided = true, nil
		q.cq().fewest = 0 // what had not been carried out yet gives no event
	}
}

// decide settles a request whose success is open by the completion of the receive that its message
// takes.
func (q *QP) decide(w *verbs.WC) bool {
	p := q.Peer
	if !q.held || p.Posted() == 0 || p.next().id != w.ID {
		return false
	}
	e := &q.sendDone.entries[len(q.sendDone.entries)-1]
	then := e.decided
	e.decided = nil
	if ok := w.Status == verbs.WCSuccess; ok {
		e.statuses = set(verbs.WCSuccess)
		if e.quiet {
			q.sendDone.entries = q.sendDone.entries[:len(q.sendDone.entries)-1]
		}
		then(true)
	} else {
		e.statuses &^= set(verbs.WCSuccess)
		e.quiet = false
		then(false)
	}
	return true
}
