package modes

import (
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/rdmasim/rdmasim/verbs"
)

// runner is a thread that carries out its steps.
type runner struct {
	*bed
	log *log
	t   verbs.Thread
	no  int
	wc  [16]verbs.WC
	mrs []verbs.MR

	beside []*log // of the threads that it has started
}

// do carries out a step, and notes what came of it and when.
func (r *runner) do(k int, o *Op) {
	e, t := r.eps[o.EP], r.t
	var err error
	what := ""
	switch o.Do {
	case "post":
		err = r.post(e, k, o)
	case "stream":
		what, err = r.stream(e, k, o)
	case "recv":
		err = e.recv(t, o.N)
	case "poll":
		what, err = r.poll(e.cq.Poll(t, r.wc[:min(o.N, len(r.wc))]))
	case "wait":
		what, err = r.poll(e.cq.PollWait(t, r.wc[:min(o.N, len(r.wc))], time.Duration(o.Ns)))
	case "sleep":
		t.Sleep(time.Duration(o.Ns))
	case "work":
		t.Work(time.Duration(o.Ns))
	case "event":
		err = r.event(e, o)
	case "look":
		b := make([]byte, o.Len)
		_, err = e.buf.ReadAt(t, b, int64(o.Off))
		what = hex.EncodeToString(b)
	case "store":
		_, err = e.buf.WriteAt(t, slices.Repeat([]byte{byte(k)}, o.Len), int64(o.Off))
	case "region":
		err = r.region(e, o)
	case "query":
		var a verbs.QPAttr
		a, _, err = e.qp.Query(t, verbs.QPMaskState|verbs.QPMaskSQPSN|verbs.QPMaskRQPSN)
		what = a.State.String()
	case "counters":
		what, err = r.counters(e)
	case "resize":
		err = e.cq.Resize(t, o.N)
	case "moderate":
		err = e.cq.Modify(t, verbs.CQModeration{Count: uint16(o.N), Period: uint16(o.Ns / 1000)})
	case "kill":
		if p := r.procs[o.N]; o.N > 0 { // the first looks after the others
			p.Kill(t)
		}
	case "beside":
		r.startBeside(e, o)
	default:
		err = r.upset(e, o.Do)
	}
	if err != nil {
		what += " " + err.Error()
	}
	r.log.add(t, "%d %s %s", k, o.Do, what)
}

// startBeside starts a thread that works on core N, whatever runs there.
func (r *runner) startBeside(e *endpoint, o *Op) {
	l := new(log)
	r.beside = append(r.beside, l)
	e.proc.Start(r.t, "beside", o.N, func(t verbs.Thread) {
		for k := range 1 + o.Len%16 {
			l.add(t, "work %d", k)
			t.Work(time.Duration(o.Ns))
		}
		l.add(t, "ends")
	})
}

// upset does what interrupts others.
func (r *runner) upset(e *endpoint, how string) error {
	reset := func(s verbs.QPState) error { return e.qp.Modify(r.t, &verbs.QPAttr{State: s}, verbs.QPMaskState) }
	switch how {
	case "error":
		return reset(verbs.QPSErr)
	case "reset":
		return reset(verbs.QPSReset)
	case "reconnect":
		if err := reset(verbs.QPSReset); err != nil {
			return err
		}
		return e.connect(r.t)
	case "destroy":
		return e.qp.Destroy(r.t)
	case "close": // a region that work may still be about
		return e.mr.Dereg(r.t)
	}
	panic("modes: no step " + how)
}

// post posts send requests in one call.
func (r *runner) post(e *endpoint, k int, o *Op) error {
	w := r.request(e, k, o)
	all := slices.Repeat([]verbs.SendWR{w}, o.N)
	for i := range all {
		all[i].ID |= uint64(i) << 16
	}
	_, err := e.qp.PostSend(r.t, all)
	return err
}

// stream posts requests one after the other; a queue without room is polled once.
func (r *runner) stream(e *endpoint, k int, o *Op) (what string, err error) {
	all := []verbs.SendWR{r.request(e, k, o)}
	for i := range o.N {
		all[0].ID = all[0].ID&^(0xffff<<16) | uint64(i)<<16
		if _, err = e.qp.PostSend(r.t, all); err != nil {
			var found string
			if found, err = r.poll(e.cq.Poll(r.t, r.wc[:])); err != nil {
				return what, err
			}
			what += found
		}
	}
	return what, nil
}

// request makes the send request of a step.
func (r *runner) request(e *endpoint, k int, o *Op) verbs.SendWR {
	to := r.eps[o.To]
	w := verbs.SendWR{ID: uint64(r.no)<<32 | uint64(k), Opcode: o.Opcode, Flags: o.Flags, Imm: uint32(k), RemoteAddr: to.buf.Addr() + uint64(o.Off), RKey: to.mr.RKey(),
		CompareAdd: uint64(k), Swap: uint64(r.no + 1)}
	if o.Len > 0 {
		w.SGEs = []verbs.SGE{{Addr: e.buf.Addr() + uint64(o.Off), Length: uint32(o.Len), LKey: e.mr.LKey()}}
	}
	switch o.Opcode {
	case verbs.WRAtomicCmpSwp, verbs.WRAtomicFetchAdd, verbs.WRRDMARead: // where the answer goes
		if o.Len > 0 {
			w.SGEs[0].Addr = e.buf.Addr() + uint64(recvBase+o.Off)
		}
	case verbs.WRSendInv:
		w.Imm = to.key
	case verbs.WRLocalInv:
		w.Imm, w.SGEs = e.key, nil
	case verbs.WRBindMW:
		w.Bind = &verbs.MWBindWR{MW: e.mw, RKey: e.key, Info: verbs.MWBindInfo{MR: e.mr, Addr: e.buf.Addr(), Length: recvBase, Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead}}
		w.SGEs = nil
	}
	if e.conn.Type == verbs.QPTUD {
		w.AH, w.RemoteQPN, w.RemoteQKey = e.ah, e.peer.qp.QPN(), qkey
	}
	spoil(&w, o.Bad, to)
	return w
}

// spoil makes a request a bad one.
func spoil(w *verbs.SendWR, how string, to *endpoint) {
	switch how {
	case "lkey":
		if len(w.SGEs) > 0 {
			w.SGEs[0].LKey ^= 0x55
		}
	case "rkey":
		w.RKey ^= 0x100
	case "range":
		w.RemoteAddr += bufferSize
	case "window":
		w.RKey = to.key
	}
}

// poll is what a poll found.
func (r *runner) poll(n int, err error) (string, error) {
	var b strings.Builder
	for _, w := range r.wc[:max(n, 0)] {
		writeWC(&b, &w)
	}
	return b.String(), err
}

// event arms the CQ and waits for its event.
func (r *runner) event(e *endpoint, o *Op) error {
	if e.ch == nil {
		return e.cq.ReqNotify(r.t, o.N > 0)
	}
	if err := e.cq.ReqNotify(r.t, o.N > 0); err != nil {
		return err
	}
	cq, err := e.ch.Event(r.t, time.Duration(o.Ns))
	if err == nil {
		e.ch.Ack(r.t, cq, 1)
	}
	return err
}

// region registers memory and ends another region.
func (r *runner) region(e *endpoint, o *Op) error {
	if len(r.mrs) > 0 {
		mr := r.mrs[0]
		r.mrs = r.mrs[1:]
		return mr.Dereg(r.t)
	}
	mr, err := e.proc.pd.RegMR(r.t, e.buf.Addr(), uint64(o.Len), everything)
	if err == nil {
		r.mrs = append(r.mrs, mr)
	}
	return err
}
