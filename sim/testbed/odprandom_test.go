package testbed

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rdmasim/rdmasim/sim/kernel"
	"github.com/rdmasim/rdmasim/sim/mem"
	"github.com/rdmasim/rdmasim/verbs"
)

// movingStep is an operation between two regions of on-demand paging, and what happens to their
// memory while it is under way.
type movingStep struct {
	op                   verbs.WROpcode
	from, to, length     int
	meanwhile, at, pages int // what happens, to which page and how many
	peers                bool
	after, between       int // microseconds
	advice               int // -1: none
}

const movingPages = 16

var movingSteps = rapid.Custom(func(t *rapid.T) movingStep {
	const size = movingPages * 4096
	s := movingStep{
		op:   rapid.SampledFrom([]verbs.WROpcode{verbs.WRRDMAWrite, verbs.WRRDMARead, verbs.WRSend}).Draw(t, "op"),
		from: rapid.IntRange(0, size-1).Draw(t, "from"), to: rapid.IntRange(0, size-1).Draw(t, "to"),
		meanwhile: rapid.IntRange(0, 4).Draw(t, "meanwhile"), at: rapid.IntRange(0, movingPages-1).Draw(t, "at"), pages: rapid.IntRange(1, 8).Draw(t, "pages"),
		peers: rapid.Bool().Draw(t, "peers"), after: rapid.IntRange(0, 300).Draw(t, "after"), between: rapid.IntRange(0, 100).Draw(t, "between"),
		advice: rapid.IntRange(-3, 2).Draw(t, "advice"),
	}
	s.length = rapid.IntRange(1, min(size-s.from, size-s.to, 3*4096)).Draw(t, "length")
	return s
})

// movingWorld is the two sides, with what each holds.
type movingWorld struct {
	*rig
	a, b   *node
	err    error
	copies []*mem.Space
	salt   byte
	// reaps: faults name children of implicit regions. One that has gone when the driver takes the
	// event fails the request, with a real driver too (odp.c, mlx5_ib_mr_memory_pfault_handler).
	// Then it is over.
	reaps, over bool
}

// happen does something to a side's memory that keeps its bytes: its pages go to swap, are shared
// with a child and copied when somebody writes, lose and get their rights, or are prefetched.
func (w *movingWorld) happen(s movingStep) {
	n := w.a
	if s.peers {
		n = w.b
	}
	space, size := n.buf.(*buffer).p.lib.K.Space, min(s.pages, movingPages-s.at)*4096
	off := uint64(s.at) * 4096
	pages := n.buf.(verbs.PagedBuffer)
	switch s.meanwhile {
	case 1, 2:
		_ = pages.Advise(w.t, off, uint64(size), verbs.AdvicePageOut)
	case 3:
		if child, err := space.Fork(); err == nil {
			w.copies = append(w.copies, child)
		}
	case 4:
		va := n.buf.(*buffer).va + mem.VA(off) // at one instant: else a write meanwhile fails rightly
		w.ok("protect", space.Protect(va, uint64(size), mem.Read))
		w.ok("protect", space.Protect(va, uint64(size), mem.Read|mem.Write))
	}
	if s.advice >= 0 {
		w.ok("advise", n.pd.AdviseMR(w.t, verbs.AdviseMRAdvice(s.advice), 0, n.sge(int(off), size)))
	}
}

// complete waits for a completion.
func (w *movingWorld) complete(s movingStep, n *node) {
	var wc [1]verbs.WC
	// A responder whose fault has failed is silent: its requester learns it when its retries end,
	// 3.7 s later.
	k, err := n.cq.PollWait(w.t, wc[:], 10*time.Second)
	if w.reaps && err == nil && k == 1 && wc[0].Status != verbs.WCSuccess {
		w.over = true
		return
	}
	if w.err == nil && (err != nil || k != 1 || wc[0].Status != verbs.WCSuccess) {
		w.err = fmt.Errorf("%+v: at %v %d completions, %v, %v", s, w.t.Now(), k, wc[0].Status, err)
	}
}

// step carries an operation out and compares the bytes that the process sees at both ends.
func (w *movingWorld) step(s movingStep) {
	w.t.Sleep(time.Duration(s.between) * time.Microsecond)
	src, dst := w.a, w.b
	if s.op == verbs.WRRDMARead {
		src, dst = dst, src
	}
	from, to := s.from, s.to
	w.salt++
	want := bytes.Repeat([]byte{w.salt}, s.length)
	w.write(w.t, src.buf, want, from)
	wr := verbs.SendWR{Opcode: s.op, Flags: verbs.SendSignaled, SGEs: w.a.sge(from, s.length)}
	switch s.op {
	case verbs.WRRDMARead:
		wr.SGEs, wr.RemoteAddr, wr.RKey = w.a.sge(to, s.length), w.b.buf.Addr()+uint64(from), w.b.mr.RKey()
	case verbs.WRRDMAWrite:
		wr.RemoteAddr, wr.RKey = w.b.buf.Addr()+uint64(to), w.b.mr.RKey()
	default:
		_, err := w.b.qp.PostRecv(w.t, []verbs.RecvWR{{SGEs: w.b.sge(to, s.length)}})
		w.ok("recv", err)
	}
	w.post(w.a, wr)
	w.t.Sleep(time.Duration(s.after) * time.Microsecond)
	w.happen(s)
	w.complete(s, w.a)
	if s.op == verbs.WRSend && !w.over {
		w.complete(s, w.b)
	}
	if w.over {
		return
	}
	if got := w.read(w.t, dst.buf, to, s.length); !bytes.Equal(got, want) && w.err == nil {
		w.err = fmt.Errorf("%+v: at %v the process does not see what was moved", s, w.t.Now())
	}
}

// move carries steps out on a new testbed, and returns what its driver counted.
func move(t *testing.T, steps []movingStep, whole, memory bool) (kernel.PagingCounters, error) {
	var err error
	tb := run(t, config(t, onDemand, func(c *Config) { c.Profile.HCA.ODP.MemoryScheme = memory }), func(x *rig) {
		a, b, _ := x.pair(false, 4096)
		w := &movingWorld{rig: x, a: a, b: b, reaps: whole && memory}
		x.onDemandNode(x.t, a, movingPages*4096, whole)
		x.onDemandNode(x.t, b, movingPages*4096, whole)
		for _, s := range steps {
			if w.err == nil && !w.over {
				w.step(s)
			}
		}
		for _, c := range w.copies {
			c.Release()
		}
		err = w.err
	})
	c := tb.hosts[0].devices[0].kern.Counters().Paging
	if err == nil && c.FailedResolutions != 0 && !(whole && memory) {
		err = fmt.Errorf("%d faults failed", c.FailedResolutions)
	}
	return c, err
}

// Whatever happens to the pages of both sides while an operation is under way, the bytes that it
// moves are those that the process sees at these addresses.
func TestMovedBytesAreThoseOfTheProcess(t *testing.T) {
	faults, overtaken := uint64(0), uint64(0)
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(movingSteps, 1, 30).Draw(rt, "steps")
		c, err := move(t, steps, rapid.Bool().Draw(rt, "whole"), rapid.Bool().Draw(rt, "memory"))
		if err != nil {
			rt.Fatal(err)
		}
		faults, overtaken = faults+c.Faults, overtaken+c.Contentions
	})
	if !testing.Short() && (faults == 0 || overtaken == 0) {
		t.Errorf("%d faults, %d overtaken", faults, overtaken)
	}
}

// A child of an implicit region that has gone when the driver takes its fault ends a READ at the
// side that answers it.
func TestReadOfAReapedChild(t *testing.T) {
	c, err := move(t, []movingStep{{length: 1, pages: 1}, {op: verbs.WRRDMARead, to: 1, length: 4097, meanwhile: 1, pages: 1, peers: true, after: 1, advice: -1}}, true, true)
	if err != nil || c.UnknownKeys == 0 {
		t.Errorf("%+v, %v", c, err)
	}
}
