package random

import (
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Outcome is what a program has shown on one target.
type Outcome struct {
	// Streams are what happened, each in its order: the calls, and the completions of each queue. There is no order among streams.
	Streams map[string][]string
	// Failed is why the program did not end; it says nothing about the contract.
	Failed string `json:",omitempty"`
	// Last: the process can run no other program.
	Last bool `json:",omitempty"`
}

// Names of the streams.
var streams = []string{"calls", "send queue of A", "send queue of B", "receive queue of A", "receive queue of B", "memory"}

// patience is how long a completion may take on a device that works.
const patience = 10 * time.Second

// run is a program under way.
type run struct {
	c    *spec.C
	p    *Program
	env  *kit.Env
	qps  [2]*kit.QP
	mem  []verbs.Buffer
	mrs  []verbs.MR // nil: refused, or ended
	keys [][2]uint32
	out  Outcome

	srq  *kit.SRQ    // nil: each side has a receive queue
	last *kit.Buffer // of UC: where the request behind those of a step writes its number
	sent uint64      // that number

	posted   [2]int // receives that have not completed; of an SRQ at side 0
	receives map[uint64][]Piece
	unsure   []Piece    // whose bytes the contract does not fix
	awaited  [2][]Piece // of receives that are posted
	lost     bool       // completions that did not come: nothing more can be told
}

// Execute runs a program and returns what it has shown. A failure of c is one of the harness.
func Execute(c *spec.C, p *Program) Outcome {
	r := &run{c: c, p: p, env: kit.Open(c), out: Outcome{Streams: map[string][]string{}}, receives: map[uint64][]Piece{}}
	o := p.options()
	if p.SRQ {
		r.srq = r.env.CreateSRQ(c, queueDepth, maxPieces)
		o.SRQ = r.srq.SRQ
	}
	pair := p.pair(c, r.env, o)
	if p.UC {
		r.last = r.env.Buffer(c, 16, kit.AllAccess)
	}
	r.qps = [2]*kit.QP{pair.A, pair.B}
	for i, m := range p.Regions {
		b := kit.Map(c, m.Size+guard)
		r.mem = append(r.mem, b)
		mr, err := r.env.PD.RegMR(c.T, b.Addr(), uint64(m.Size), m.Access)
		r.call("register m%d: %s", i, errnoName(err))
		r.keys = append(r.keys, [2]uint32{})
		if err == nil {
			r.keys[i] = [2]uint32{mr.LKey(), mr.RKey()}
		} else {
			mr = nil
		}
		r.mrs = append(r.mrs, mr)
	}
	r.fill()
	for i := range p.Steps {
		if r.lost {
			break
		}
		r.step(i, &p.Steps[i])
	}
	r.end()
	for _, m := range r.mrs {
		if m != nil {
			kit.Must(c, "dereg_mr", m.Dereg(c.T))
		}
	}
	return r.out
}

// options are those of both queue pairs.
func (p *Program) options() kit.Options {
	o := kit.Default()
	o.MTU, o.RNRRetry, o.RetryCnt, o.SigAll, o.Timeout = p.MTU, p.RNRRetry, p.Retries, p.SigAll, timeout
	o.Cap = verbs.QPCap{MaxSendWR: queueDepth, MaxRecvWR: queueDepth, MaxSendSGE: maxPieces, MaxRecvSGE: maxPieces, MaxInline: maxInline}
	o.MinRNRTimer = rnrTimer
	switch {
	case p.UC:
		o.Type = verbs.QPTUC
	case p.Extended:
		o.SendOps = kit.OpsRC
	}
	if p.UC && p.Extended {
		o.SendOps = kit.OpsUC
	}
	return o
}

// pair is the two queue pairs, each with its rights.
func (p *Program) pair(c *spec.C, e *kit.Env, o kit.Options) *kit.Pair {
	pair := e.UnconnectedPair(c, o)
	pair.A.Opt.Access, pair.B.Opt.Access = p.Access[0], p.Access[1]
	pair.Connect(c)
	return pair
}

// Times after which a queue pair sends again: 16 ms, and 0.64 ms for want of a receive.
const (
	timeout  = 12
	rnrTimer = 12
)

func errnoName(err error) string {
	if err == nil {
		return "0"
	}
	return verbs.ErrnoName(verbs.ErrnoOf(err))
}

func (r *run) say(stream, format string, a ...any) {
	r.out.Streams[stream] = append(r.out.Streams[stream], fmt.Sprintf(format, a...))
}

func (r *run) call(format string, a ...any) { r.say("calls", format, a...) }

// guard is how much memory there is behind a region.
const guard = kit.Page

// pattern is the byte at an offset of a region at first.
func pattern(region, off int) byte { return byte(off*7 + off>>8*13 + region*89 + 1) }

func initial(region, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = pattern(region, i)
	}
	return b
}

func (r *run) fill() {
	for i, m := range r.mem {
		_, err := m.WriteAt(r.c.T, initial(i, int(m.Len())), 0) // behind the region too, whence inline data may come
		kit.Must(r.c, "fill memory", err)
	}
	r.unsure = nil
}

func (r *run) sges(l []Piece) []verbs.SGE {
	var out []verbs.SGE
	for _, x := range l {
		out = append(out, verbs.SGE{Addr: r.mem[x.Region].Addr() + uint64(x.Off), Length: uint32(x.Len), LKey: r.key(x, 0)})
	}
	return out
}

// wrong is added to a key that is to be wrong: the index of another, far away.
const wrong = 0x00fff000

func (r *run) key(x Piece, which int) uint32 {
	k := r.keys[x.Region][which]
	if x.WrongKey {
		k ^= wrong
	}
	return k
}

// usable reports whether the regions of all pieces were registered: whose registration was refused has no key.
func (r *run) usable(l []Piece) bool {
	return !slices.ContainsFunc(l, func(x Piece) bool { return r.keys[x.Region] == [2]uint32{} })
}

func (r *run) step(i int, s *Step) {
	switch s.Kind {
	case StepRecv:
		r.recv(i, s)
	case StepSend:
		from := 0
		for _, to := range groups(s.List, r.awaited[1-s.Side]) {
			if r.lost {
				return
			}
			r.send(i, from, s.Side, s.List[from:to])
			from = to
		}
	case StepError:
		r.call("step %d: %s to ERR: %s", i+1, side(s.Side), errnoName(r.toError(s.Side)))
	case StepDereg:
		if m := r.mrs[s.Region]; m != nil {
			err := m.Dereg(r.c.T)
			r.call("step %d: dereg m%d: %s", i+1, s.Region, errnoName(err))
			if err == nil {
				r.mrs[s.Region] = nil
			}
		}
	case StepRestart:
		r.end()
		if r.lost {
			return
		}
		for k, q := range r.qps {
			r.call("step %d: %s to RESET: %s", i+1, side(k), errnoName(q.Modify(r.c.T, &verbs.QPAttr{State: verbs.QPSReset}, verbs.QPMaskState)))
		}
		(&kit.Pair{Env: r.env, A: r.qps[0], B: r.qps[1]}).Connect(r.c)
		r.fill()
	}
}

func side(k int) string { return [2]string{"A", "B"}[k] }

func (r *run) toError(k int) error {
	return r.qps[k].Modify(r.c.T, &verbs.QPAttr{State: verbs.QPSErr}, verbs.QPMaskState)
}

func (r *run) recv(i int, s *Step) {
	queue, post := s.Side, r.qps[s.Side].PostRecv
	if r.srq != nil {
		queue, post = 0, r.srq.PostRecv
	}
	if !r.usable(s.Pieces) || r.posted[queue] == queueDepth {
		return
	}
	id := idOf(i, 0)
	_, err := post(r.c.T, []verbs.RecvWR{{ID: id, SGEs: r.sges(s.Pieces)}})
	r.call("step %d: post_recv: %s", i+1, errnoName(err))
	if err != nil {
		return
	}
	r.posted[queue]++
	r.receives[id] = s.Pieces
	for k := range r.awaited {
		if k == s.Side || r.srq != nil {
			r.awaited[k] = append(r.awaited[k], s.Pieces...)
		}
	}
}

// send posts requests and one behind them, and takes the completions up to that one's.
func (r *run) send(i, from, k int, list []Request) {
	var wrs []verbs.SendWR
	var posted []Request
	for n, q := range list {
		names, _ := q.remote()
		if !r.usable(q.Local) || names && !r.usable([]Piece{q.Remote}) {
			continue
		}
		w := verbs.SendWR{ID: idOf(i, from+n), Opcode: q.Op, Flags: q.Flags, SGEs: r.sges(q.Local), Imm: q.Imm, CompareAdd: q.CompareAdd, Swap: q.Swap}
		if names {
			w.RemoteAddr, w.RKey = r.mem[q.Remote.Region].Addr()+uint64(q.Remote.Off), r.key(q.Remote, 1)
		}
		wrs, posted = append(wrs, w), append(posted, q)
	}
	if len(wrs) == 0 {
		return
	}
	bad, err := r.qps[k].TryPost(r.c, wrs)
	if err != nil {
		r.call("step %d: post_send: %s at request %d", i+1, errnoName(err), bad+1)
		wrs, posted = wrs[:bad], posted[:bad]
	} else {
		r.call("step %d: post_send: 0", i+1)
	}
	if _, err := r.qps[k].TryPost(r.c, []verbs.SendWR{r.lastOf(i)}); err != nil {
		r.call("step %d: post_send of an empty write: %s", i+1, errnoName(err))
		return
	}
	r.takeSends(i, k, wrs, posted)
	r.awaitArrival()
}

// lastOf is the request behind those of a step: it writes nothing, or on UC, where its completion says nothing of the other side, its
// number.
func (r *run) lastOf(i int) verbs.SendWR {
	w := verbs.SendWR{ID: idOf(i, marker), Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled}
	if r.last != nil {
		r.sent++
		r.last.Set(r.c, 0, kit.HostWordBytes(r.sent))
		w.SGEs, w.RemoteAddr, w.RKey = []verbs.SGE{r.last.SGE(0, 8)}, r.last.Addr(8), r.last.MR.RKey()
	}
	return w
}

// arrival is how long a packet may take.
const arrival = 20 * time.Millisecond

// awaitArrival waits on UC until the last request of a step has arrived, or would have: one that was lost with its queue pair never does.
func (r *run) awaitArrival() {
	if r.last == nil {
		return
	}
	for waited := time.Duration(0); waited < arrival; waited += arrival / 40 {
		if kit.HostWord(r.last.Get(r.c, 8, 8)) == r.sent {
			return
		}
		r.c.T.Sleep(arrival / 40)
	}
}

// takeSends takes completions until that of the marker. A request of which no success is known may have done what it does, or
// a part of it.
func (r *run) takeSends(i, k int, wrs []verbs.SendWR, list []Request) {
	stream := "send queue of " + side(k)
	done := 0 // requests that have succeeded
	for {
		w, ok := r.take(r.qps[k].SendCQ)
		if !ok {
			r.say(stream, "step %d: no completion", i+1)
			r.lost = true
			break
		}
		r.say(stream, "%s", describe(w, false))
		if w.ID == idOf(i, marker) {
			if w.Status == verbs.WCSuccess {
				done = len(list)
			}
			break
		}
		for n := range wrs {
			if wrs[n].ID == w.ID && w.Status == verbs.WCSuccess {
				done = n + 1
			}
		}
	}
	for _, q := range list[done:] {
		_, writes := q.touched()
		r.unsure = append(r.unsure, writes...)
	}
}

// take waits for a completion.
func (r *run) take(cq verbs.CQ) (verbs.WC, bool) {
	var wc [1]verbs.WC
	n, err := cq.PollWait(r.c.T, wc[:], patience)
	kit.Must(r.c, "poll_cq", err)
	return wc[0], n == 1
}

// describe is what the contract fixes of a completion.
func describe(w verbs.WC, recv bool) string {
	id := fmt.Sprintf("step %d, request %d", w.ID>>8+1, w.ID&0xff+1)
	switch {
	case w.ID&0xff == marker:
		id = fmt.Sprintf("step %d, the empty write", w.ID>>8+1)
	case recv:
		id = fmt.Sprintf("step %d", w.ID>>8+1)
	}
	if w.Status != verbs.WCSuccess {
		return id + ": " + w.Status.String()
	}
	if !recv {
		return fmt.Sprintf("%s: SUCCESS, opcode %d", id, w.Opcode)
	}
	text := fmt.Sprintf("%s: SUCCESS, opcode %d, %d bytes", id, w.Opcode, w.ByteLen)
	if w.Flags&verbs.WCWithImm != 0 {
		text += fmt.Sprintf(", immediate %#x", w.Imm)
	}
	return text
}

// end brings both queue pairs to ERR, takes the completions of all receives, and looks at the memory.
func (r *run) end() {
	for k := range r.qps {
		r.call("%s to ERR: %s", side(k), errnoName(r.toError(k)))
	}
	for k, q := range r.qps {
		stream := "receive queue of " + side(k)
		if r.srq != nil {
			r.takeShared(stream, q)
			continue
		}
		for ; r.posted[k] > 0; r.posted[k]-- {
			w, ok := r.take(q.RecvCQ)
			if !ok {
				r.say(stream, "%d receives do not complete", r.posted[k])
				r.lost = true
				break
			}
			r.say(stream, "%s", describe(w, true))
			if w.Status != verbs.WCSuccess {
				r.unsure = append(r.unsure, r.receives[w.ID]...)
			}
		}
		r.awaited[k] = nil
	}
	r.look()
}

// takeShared takes the completions of receives that a queue pair has had from the SRQ; those that it has not had stay there.
func (r *run) takeShared(stream string, q *kit.QP) {
	for {
		var wc [1]verbs.WC
		n, err := q.RecvCQ.PollWait(r.c.T, wc[:], arrival)
		kit.Must(r.c, "poll_cq", err)
		if n == 0 {
			return
		}
		r.say(stream, "%s", describe(wc[0], true))
		r.posted[0]--
		if wc[0].Status != verbs.WCSuccess {
			r.unsure = append(r.unsure, r.receives[wc[0].ID]...)
		}
	}
}

// row is how many bytes of memory are compared at once.
const row = 32

// look says which bytes are not as at first. Those that the contract does not fix are left out.
func (r *run) look() {
	for i, m := range r.mem {
		b := make([]byte, m.Len())
		_, err := m.ReadAt(r.c.T, b, 0)
		kit.Must(r.c, "read memory", err)
		first := initial(i, len(b))
		for _, x := range r.unsure {
			if x.Region == i {
				copy(b[min(x.Off, len(b)):min(x.Off+x.Len, len(b))], first[min(x.Off, len(b)):])
			}
		}
		for at := 0; at < len(b); at += row {
			if end := min(at+row, len(b)); string(b[at:end]) != string(first[at:end]) {
				r.say("memory", "m%d at %d: %s", i, at, hex.EncodeToString(b[at:end]))
			}
		}
	}
	r.say("memory", "so far")
}
