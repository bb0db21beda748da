package perf

import (
	"fmt"

	"github.com/rdmasim/rdmasim/verbs"
)

// idQP is where a request's ID has the number of its queue pair; below it is its place in the list
// of requests.
const idQP = 32

var opcodes = map[Verb]verbs.WROpcode{Send: verbs.WRSend, SendImm: verbs.WRSendImm, Write: verbs.WRRDMAWrite, WriteImm: verbs.WRRDMAWriteImm, Read: verbs.WRRDMARead}

// stride is the distance of the places of messages of up to half a page, which go round a page;
// larger ones have one place.
func (e *End) stride() uint64 { return roundUp(max(e.size, 1), uint64(e.line)) }

func (e *End) cycles() bool { return e.size <= uint64(e.page)/2 }

// place is the offset of message n from the first place.
func (e *End) place(n uint64) uint64 {
	s := e.stride()
	return n % (uint64(e.page) / s) * s
}

// prepareSends writes the requests of the size that is measured now (ctx_set_send_reg_wqes).
func (e *End) prepareSends() {
	o := e.o
	for _, c := range e.conns {
		c.scnt, c.ccnt = 0, 0
		c.wrs, c.sges = make([]verbs.SendWR, o.PostList), make([]verbs.SGE, o.PostList)
		for j := range c.wrs {
			at := uint64(0)
			if j > 0 && !o.Test.Latency && e.cycles() {
				at = e.place(uint64(j))
			}
			c.sges[j] = verbs.SGE{Addr: c.addr() + at, Length: uint32(e.size), LKey: c.mr.LKey()}
			if e.nullMR != nil {
				c.sges[j].LKey = e.nullMR.LKey()
			}
			w := &c.wrs[j]
			*w = verbs.SendWR{ID: uint64(c.index)<<idQP | uint64(c.index*o.PostList+j), SGEs: c.sges[j : j+1 : j+1], Opcode: e.opcode(), RemoteAddr: c.remote + at, RKey: c.rkey, CompareAdd: 1, Swap: 1}
			if o.Test.Verb == Atomic && o.CmpSwap {
				w.CompareAdd = 0
			}
			if o.Connection == UD {
				w.AH, w.RemoteQPN, w.RemoteQKey = c.ah, c.remoteQPN, c.remoteQKey
			}
			if (j+1)%o.CQMod == 0 {
				w.Flags = verbs.SendSignaled
			}
			if !reads(o.Test) && e.size <= uint64(e.inline) {
				w.Flags |= verbs.SendInline
			}
		}
	}
}

func (e *End) opcode() verbs.WROpcode {
	switch {
	case e.o.Test.Verb == Atomic && e.o.CmpSwap:
		return verbs.WRAtomicCmpSwp
	case e.o.Test.Verb == Atomic:
		return verbs.WRAtomicFetchAdd
	}
	return opcodes[e.o.Test.Verb]
}

// advance moves the addresses of the single request of a queue pair to those of its next message.
func (e *End) advance(c *conn) {
	if e.o.PostList > 1 || !e.cycles() {
		return
	}
	at := e.place(c.scnt + 1)
	c.sges[0].Addr = c.addr() + at
	if !e.o.Test.Verb.sends() {
		c.wrs[0].RemoteAddr = c.remote + at
	}
}

// signal asks for a completion of the single request, or not: of each that makes its count a
// multiple of the moderation, and of the last.
func (e *End) signal(c *conn) {
	if e.o.PostList > 1 {
		return
	}
	w := &c.wrs[0]
	w.Flags &^= verbs.SendSignaled
	if (c.scnt+1)%uint64(e.o.CQMod) == 0 || !e.o.Timed && c.scnt+1 == e.o.Iters {
		w.Flags |= verbs.SendSignaled
	}
}

// post posts the list of a queue pair.
func (e *End) post(t verbs.Thread, c *conn) error {
	if c.ex == nil {
		if bad, err := c.qp.PostSend(t, c.wrs); err != nil {
			return fmt.Errorf("ibv_post_send: %d of the list, queue pair %d, message %d: %w", bad, c.index, c.scnt, err)
		}
		return nil
	}
	x := c.ex
	x.WRStart(t)
	for i := range c.wrs {
		e.build(t, x, &c.wrs[i])
	}
	if err := x.WRComplete(t); err != nil {
		return fmt.Errorf("ibv_wr_complete: queue pair %d, message %d: %w", c.index, c.scnt, err)
	}
	return nil
}

// build is a request by the newer calls.
func (e *End) build(t verbs.Thread, x verbs.QPEx, w *verbs.SendWR) {
	x.SetWR(w.ID, w.Flags&^verbs.SendInline)
	switch w.Opcode {
	case verbs.WRSend:
		x.WRSend(t)
	case verbs.WRSendImm:
		x.WRSendImm(t, w.Imm)
	case verbs.WRRDMAWrite:
		x.WRRDMAWrite(t, w.RKey, w.RemoteAddr)
	case verbs.WRRDMAWriteImm:
		x.WRRDMAWriteImm(t, w.RKey, w.RemoteAddr, w.Imm)
	case verbs.WRRDMARead:
		x.WRRDMARead(t, w.RKey, w.RemoteAddr)
	case verbs.WRAtomicCmpSwp:
		x.WRAtomicCmpSwp(t, w.RKey, w.RemoteAddr, w.CompareAdd, w.Swap)
	case verbs.WRAtomicFetchAdd:
		x.WRAtomicFetchAdd(t, w.RKey, w.RemoteAddr, w.CompareAdd)
	}
	if w.AH != nil {
		x.SetUDAddr(t, w.AH, w.RemoteQPN, w.RemoteQKey)
	}
	if w.Flags&verbs.SendInline != 0 {
		x.SetInlineData(t, w.SGEs[0].Addr, w.SGEs[0].Length)
	} else {
		x.SetSGE(t, w.SGEs[0])
	}
}

// prepareReceives posts the receives with which a measurement begins (ctx_set_recv_wqes).
func (e *End) prepareReceives(t verbs.Thread) error {
	o := e.o
	lists := o.RxDepth / o.RecvList
	if e.srq != nil {
		lists /= o.QPs
	}
	for _, c := range e.conns {
		c.received, c.unused, c.rposted = 0, 0, uint64(lists*o.RecvList)
		c.rwrs, c.rsges = make([]verbs.RecvWR, o.RecvList), make([]verbs.SGE, o.RecvList)
		for j := range c.rwrs {
			c.rsges[j] = e.receiveAt(c, uint64(j))
			c.rwrs[j] = verbs.RecvWR{ID: uint64(c.index)<<idQP | uint64(c.index*o.RecvList+j), SGEs: c.rsges[j : j+1 : j+1]}
			if o.Test.Verb == WriteImm {
				c.rwrs[j].SGEs = nil
			}
		}
		for j := range lists {
			if o.RecvList == 1 && !o.Test.Latency {
				c.rsges[0] = e.receiveAt(c, uint64(j))
			}
			if err := e.postReceives(t, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// receiveAt is where message n of a queue pair is received. Behind the routing header of a datagram
// the message begins at a cache line.
func (e *End) receiveAt(c *conn, n uint64) verbs.SGE {
	s := verbs.SGE{Addr: c.buf.Addr() + c.in, Length: uint32(e.size), LKey: c.mr.LKey()}
	if e.o.Connection == UD {
		s.Addr += uint64(e.line) - verbs.GRHSize
		s.Length += verbs.GRHSize
	}
	if !e.o.Test.Latency && uint64(s.Length) <= uint64(e.page)/2 {
		step := roundUp(uint64(s.Length), uint64(e.line))
		s.Addr += n % (uint64(e.page) / step) * step
	}
	return s
}

func (e *End) postReceives(t verbs.Thread, c *conn) error {
	var err error
	if e.srq != nil {
		_, err = e.srq.PostRecv(t, c.rwrs)
	} else {
		_, err = c.qp.PostRecv(t, c.rwrs)
	}
	if err != nil {
		return fmt.Errorf("post of a receive to queue pair %d after %d messages: %w", c.index, c.received, err)
	}
	return nil
}

// repost takes note of a receive, and posts a list when one is complete and will be used.
func (e *End) repost(t verbs.Thread, c *conn) error {
	c.received++
	c.unused++
	n := uint64(e.o.RecvList)
	if c.unused < e.o.RecvList || !e.o.Timed && c.rposted+n > e.o.Iters {
		return nil
	}
	if e.o.RecvList == 1 && !e.o.Test.Latency {
		c.rsges[0] = e.receiveAt(c, c.rposted)
	}
	c.unused -= e.o.RecvList
	c.rposted += n
	return e.postReceives(t, c)
}

// completionError is a completion in error.
type completionError struct {
	wc   verbs.WC
	text string
	end  string // client: of a request, or server: of a receive
	n    string
}

func (c *completionError) Error() string {
	return fmt.Sprintf("a completion of queue pair %#06x says %s (status %d, vendor syndrome %#x, request %d; %s)", c.wc.QPN, c.text, c.wc.Status, c.wc.VendorErr, c.wc.ID&(1<<idQP-1), c.n)
}

// failedSend is the error of a request (NOTIFY_COMP_ERROR_SEND).
func (e *End) failedSend(w *verbs.WC, scnt, ccnt uint64) error {
	return e.failed(w, "client", fmt.Sprintf("scnt=%d, ccnt=%d", scnt, ccnt))
}

// failedReceive is the error of a receive.
func (e *End) failedReceive(w *verbs.WC, rcnt uint64) error {
	return e.failed(w, "server", fmt.Sprintf("rcnt=%d", rcnt))
}

func (e *End) failed(w *verbs.WC, end, n string) error {
	c := &completionError{wc: *w, text: e.ctx.WCStatusStr(w.Status), end: end, n: n}
	return &StepError{Step: stepRun, Err: c, Hint: statusHint[w.Status],
		Words: fmt.Sprintf(" Completion with error at %s\n Failed status-%s (%d): wr_id %d syndrom 0x%x\n %s\n", end, c.text, w.Status, w.ID&(1<<idQP-1), w.VendorErr, n)}
}

// statusHint says what to look at.
var statusHint = map[verbs.WCStatus]string{
	verbs.WCRetryExcErr:    "the peer does not answer: it has ended, or its address or MTU does not fit the path (-x, -m), or messages are lost",
	verbs.WCRNRRetryExcErr: "the peer has posted no receive for long",
	verbs.WCRemAccessErr:   "the peer's memory is smaller, or does not allow this: give the same -s and test to both",
	verbs.WCRemInvReqErr:   "the peer's queue pair does not allow this: run the same test at both ends",
	verbs.WCWRFlushErr:     "the queue pair had failed before",
	verbs.WCLocProtErr:     "the memory of this end is not registered for this",
	verbs.WCLocLenErr:      "a message is longer than the receive: give the same -s to both",
}
