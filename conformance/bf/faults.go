package bf

import (
	"fmt"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/prm"
	"github.com/rdmasim/rdmasim/verbs"
)

func faults(c *spec.C) verbs.Faults {
	f := c.TB.Faults()
	if f == nil {
		c.Errorf("the testbed gives no faults")
	}
	return f
}

func torn(c *spec.C) {
	s := newInlinePair(c, kit.Open(c), 188)
	f := faults(c)
	for _, tc := range []struct{ n, keep int }{{8, 8}, {8, 32}, {28, 56}, {100, 64}, {188, 32}} {
		want := s.mem.FillRandom(c)
		copy(want[2048:], want[:tc.n])
		if err := f.TearBlueFlame(c.T, 1, tc.keep); err != nil {
			c.Errorf("arm the fault: %v", err)
		}
		step := fmt.Sprintf("%d bytes, of which the push keeps %d", tc.n, tc.keep)
		arrived := 0
		for _, w := range kit.WritesToBFReg(kit.RecordMMIO(c, func() {
			s.A.Post(c, s.inline(1, tc.n))
			c.Status(step, kit.PollOne(c, s.A.SendCQ), verbs.WCSuccess)
		}), s.reg) {
			arrived += w.Len
		}
		c.Equal(step+": bytes that arrived", arrived, tc.keep)
		s.mem.ExpectContents(c, step+": bytes", want)
		kit.ExpectNoCompletion(c, s.A.SendCQ, kit.QuietPeriod/20)
	}
}

// wrongOrder: the later of two rings arrives first.
func wrongOrder(c *spec.C) {
	e := kit.Open(c)
	f := faults(c)
	for _, inline := range []bool{false, true} {
		s := newInlinePair(c, e, 64)
		const n = 6
		want := s.mem.FillRandom(c)
		for i := range n {
			s.B.RecvInto(c, uint64(i), s.mem.SGE(2048+64*i, 16))
			copy(want[2048+64*i:], want[16*i:16*i+16])
		}
		if err := f.SwapDoorbells(c.T, n/2); err != nil {
			c.Errorf("arm the fault: %v", err)
		}
		ws := kit.WritesToBFReg(kit.RecordMMIO(c, func() {
			for i := range n {
				wr := kit.Send(uint64(i), s.mem.SGE(16*i, 16))
				if inline {
					wr.Flags |= verbs.SendInline
				}
				s.A.Post(c, wr)
			}
			kit.ExpectInOrder(c, s.A.SendCQ, n)
			kit.ExpectInOrder(c, s.B.RecvCQ, n)
		}), s.reg)
		c.Equal("rings that arrived", len(ws), n)
		for i := 0; i < n; i += 2 {
			c.True("the pair arrived the wrong way round", ws[i].Index > ws[i+1].Index, "index %d, then %d", ws[i].Index, ws[i+1].Index)
		}
		kit.ExpectNoCompletion(c, s.A.SendCQ, kit.QuietPeriod)
		kit.ExpectNoCompletion(c, s.B.RecvCQ, kit.QuietPeriod/20)
		s.mem.ExpectContents(c, fmt.Sprintf("each once, inline %t", inline), want)
	}
}

func unchangedIndex(c *spec.C) {
	s := newInlinePair(c, kit.Open(c), 0)
	m := kit.Mlx5(c, s.A)
	for i := range uint64(3) {
		s.B.RecvInto(c, i, s.mem.SGE(2048, 16))
	}
	c.Status("send", s.A.PostAndPoll(c, kit.Send(1, s.mem.SGE(0, 16))), verbs.WCSuccess)
	kit.ExpectSuccess(c, s.B.RecvCQ, 1)
	ctrl := make(prm.CtrlSegment, prm.CtrlSegmentSize)
	kit.Must(c, "read the send queue", m.SendQueue(c.T, 0, ctrl))
	c.Equal("the request in the queue", ctrl.QPN() == s.A.QPN(), true)
	bell := kit.DoorbellValue(ctrl)
	want := s.mem.FillRandom(c)
	for range 3 {
		c.NoErr("ring again", m.RingDoorbell(c.T, bell))
		kit.ExpectNoCompletion(c, s.B.RecvCQ, kit.QuietPeriod/20)
		kit.ExpectNoCompletion(c, s.A.SendCQ, kit.QuietPeriod/20)
	}
	s.mem.ExpectContents(c, "memory", want)
	c.Equal("state", s.A.QueryState(c), verbs.QPSRTS)
	c.Status("next send", s.A.PostAndPoll(c, kit.Send(2, s.mem.SGE(0, 16))), verbs.WCSuccess)
	kit.ExpectSuccess(c, s.B.RecvCQ, 1)
}

// sharedRegister has two QPs that share a register post blocks of their own from two
// threads, and looks at what arrived at the register.
func sharedRegister(c *spec.C) {
	e := kit.Open(c)
	u, v := pairsSharingRegister(c, e)
	c.Equal("locks", [2]bool{u.reg.NeedLock, v.reg.NeedLock}, [2]bool{true, true})
	const n = 60
	const size = 100 // three blocks for each request
	for i, s := range []inlinePair{u, v} {
		s.mem.FillByte(c, byte(0x11*(i+1)))
	}
	log := kit.RecordMMIO(c, func() {
		kit.RunThreads(c, 2, func(c *spec.C, i int) {
			s := [2]inlinePair{u, v}[i]
			for k := range uint64(n) {
				s.A.Post(c, s.inline(k, size))
				if k >= 8 {
					kit.ExpectSuccess(c, s.A.SendCQ, 1)
				}
			}
			kit.ExpectSuccess(c, s.A.SendCQ, 8)
		})
	})
	pushes := kit.BlueFlamePushes(c, kit.WritesToBFReg(log, u.reg), block)
	seen := map[uint32]int{}
	for _, p := range pushes {
		seen[p.QPN]++
		for _, b := range p.Data[48:size] {
			want := byte(0x11)
			if p.QPN == v.A.QPN() {
				want = 0x22
			}
			if b != want {
				c.Failf("a push of one QP holds a byte %#02x of the other", b)
			}
		}
	}
	c.Equal("whole pushes", []int{seen[u.A.QPN()], seen[v.A.QPN()]}, []int{n, n})
	for i, s := range []inlinePair{u, v} {
		c.Equal("bytes written", s.mem.Get(c, 2048, size)[0], byte(0x11*(i+1)))
	}
}

// pairsSharingRegister finds two QPs that share a register.
func pairsSharingRegister(c *spec.C, e *kit.Env) (a, b inlinePair) {
	var all []inlinePair
	for range 64 {
		s := newInlinePair(c, e, 128)
		for _, o := range all {
			if o.reg.UARPage == s.reg.UARPage && o.reg.Offset == s.reg.Offset {
				return o, s
			}
		}
		// The second QP of a pair takes a register too.
		all = append(all, s, inlinePair{&kit.Pair{Env: e, A: s.B, B: s.A}, s.mem, kit.BFReg(c, s.B)})
	}
	c.Errorf("no two of %d queue pairs share a register", len(all))
	return
}
