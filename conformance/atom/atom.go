// Package atom holds the cases of area ATOM: remote atomic operations.
package atom

import (
	"bytes"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Register adds the cases.
func Register(s *spec.Suite) {
	s.Case("ATOM-001", swapOnEquality)
	s.Case("ATOM-002", noSwapWithoutEquality)
	s.Case("ATOM-003", addWraps)
	s.Case("ATOM-004", misaligned)
	s.Case("ATOM-005", regionNotAllowed)
	s.Case("ATOM-006", qpNotAllowed)
	s.Case("ATOM-007", shortBuffer)
	s.Case("ATOM-008", badLocalKey)
	s.Case("ATOM-009", badRemoteKey)
	s.Case("ATOM-010", manyAdders, spec.Deadline(4*time.Minute)) // on an emulated machine
	s.Case("ATOM-012", notSupported)
	s.Case("ATOM-014", wide)
}

// words are operands whose bytes all differ, and the corners.
var words = []uint64{0, 1, 0x0102030405060708, 1<<63 - 1, 1 << 63, 1<<64 - 1}

func swapOnEquality(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	far, near := p.Buffer(c, 64, kit.AllAccess), p.Buffer(c, 64, kit.AllAccess)
	for _, old := range words {
		far.SetWord(c, 8, old)
		near.FillByte(c, 0x33)
		wc := p.A.PostAndPoll(c, kit.CmpSwap(1, far, 8, old, ^old, near.SGE(16, 8)))
		c.Status("compare and swap", wc, verbs.WCSuccess)
		c.Equal("opcode", wc.Opcode, verbs.WCOpCompSwap)
		c.Equal("old value", near.Word(c, 16), old)
		c.Equal("new value", far.Word(c, 8), ^old)
	}
}

func noSwapWithoutEquality(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	far, near := p.Buffer(c, 64, kit.AllAccess), p.Buffer(c, 64, kit.AllAccess)
	for _, old := range words {
		for _, compare := range []uint64{old + 1, old ^ 1<<63, ^old} {
			want := far.FillRandom(c)
			far.SetWord(c, 8, old)
			copy(want[8:16], far.Get(c, 8, 8))
			c.Status("compare and swap", p.A.PostAndPoll(c, kit.CmpSwap(1, far, 8, compare, 0x77, near.SGE(0, 8))), verbs.WCSuccess)
			c.Equal("old value", near.Word(c, 0), old)
			far.ExpectContents(c, "memory", want)
		}
	}
}

func addWraps(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	far, near := p.Buffer(c, 64, kit.AllAccess), p.Buffer(c, 64, kit.AllAccess)
	for _, old := range words {
		for _, add := range words {
			far.SetWord(c, 24, old)
			wc := p.A.PostAndPoll(c, kit.FetchAdd(1, far, 24, add, near.SGE(0, 8)))
			c.Status("fetch and add", wc, verbs.WCSuccess)
			c.Equal("opcode", wc.Opcode, verbs.WCOpFetchAdd)
			c.Equal("old value", near.Word(c, 0), old)
			c.Equal("sum", far.Word(c, 24), old+add)
		}
	}
}

// oneOfEachAtomic makes one request of each kind.
func oneOfEachAtomic(far *kit.Buffer, off int, sge verbs.SGE) []verbs.SendWR {
	return []verbs.SendWR{kit.FetchAdd(1, far, off, 1, sge), kit.CmpSwap(2, far, off, 0, 1, sge)}
}

// expectRefusal has a request fail, at posting with EINVAL or with a status of the set, and
// far memory stay as it was.
func expectRefusal(c *spec.C, e *kit.Env, o kit.Options, step string, wr verbs.SendWR, far *kit.Buffer, set ...verbs.WCStatus) {
	want := far.Get(c, 0, far.Len)
	p := e.Pair(c, o)
	_, err := p.A.PostSend(c.T, []verbs.SendWR{wr})
	if c.ErrnoIn(step+": post", err, 0, syscall.EINVAL) == 0 {
		c.StatusIn(step, kit.PollOne(c, p.A.SendCQ), set...)
	}
	far.ExpectContents(c, step+": memory", want)
}

// expectFailure is expectRefusal for a request that must be accepted and complete with one status.
func expectFailure(c *spec.C, e *kit.Env, o kit.Options, step string, wr verbs.SendWR, far *kit.Buffer, want verbs.WCStatus) {
	before := far.Get(c, 0, far.Len)
	c.Status(step, e.Pair(c, o).A.PostAndPoll(c, wr), want)
	far.ExpectContents(c, step+": memory", before)
}

func misaligned(c *spec.C) {
	e := kit.Open(c)
	far, near := e.Buffer(c, 64, kit.AllAccess), e.Buffer(c, 64, kit.AllAccess)
	far.FillRandom(c)
	for _, off := range []int{1, 2, 4, 7} {
		for _, wr := range oneOfEachAtomic(far, off, near.SGE(0, 8)) {
			expectRefusal(c, e, kit.Default(), fmt.Sprintf("opcode %d at %d", wr.Opcode, off), wr, far,
				verbs.WCRemInvReqErr, verbs.WCRemAccessErr)
		}
	}
}

func regionNotAllowed(c *spec.C) {
	e := kit.Open(c)
	near := e.Buffer(c, 64, kit.AllAccess)
	for _, access := range []verbs.AccessFlags{verbs.AccessLocalWrite, kit.AllAccess &^ verbs.AccessRemoteAtomic} {
		far := e.Buffer(c, 64, access)
		far.FillRandom(c)
		for _, wr := range oneOfEachAtomic(far, 0, near.SGE(0, 8)) {
			expectFailure(c, e, kit.Default(), fmt.Sprintf("opcode %d, access %#x", wr.Opcode, uint32(access)), wr, far,
				verbs.WCRemAccessErr)
		}
	}
}

func qpNotAllowed(c *spec.C) {
	e := kit.Open(c)
	far, near := e.Buffer(c, 64, kit.AllAccess), e.Buffer(c, 64, kit.AllAccess)
	far.FillRandom(c)
	o := kit.Default()
	o.Access &^= verbs.AccessRemoteAtomic
	for _, wr := range oneOfEachAtomic(far, 0, near.SGE(0, 8)) {
		want := far.Get(c, 0, far.Len)
		step := fmt.Sprintf("opcode %d", wr.Opcode)
		c.StatusIn(step, e.Pair(c, o).A.PostAndPoll(c, wr), verbs.WCRemInvReqErr, verbs.WCRemAccessErr)
		far.ExpectContents(c, step+": memory", want)
	}
}

// shortBuffer does not look at far memory: the operation may have been carried out
// before its result found no room.
func shortBuffer(c *spec.C) {
	e := kit.Open(c)
	far, near := e.Buffer(c, 64, kit.AllAccess), e.Buffer(c, 64, kit.AllAccess)
	want := near.FillRandom(c)
	for _, n := range []int{4, 7} {
		for _, wr := range oneOfEachAtomic(far, 0, near.SGE(8, n)) {
			p := e.Pair(c, kit.Default())
			step := fmt.Sprintf("opcode %d, %d bytes", wr.Opcode, n)
			_, err := p.A.PostSend(c.T, []verbs.SendWR{wr})
			if c.ErrnoIn(step+": post", err, 0, syscall.EINVAL) == 0 {
				c.StatusIn(step, kit.PollOne(c, p.A.SendCQ), verbs.WCLocLenErr, verbs.WCLocProtErr)
			}
			c.True(step+": nothing beyond the buffer", bytes.Equal(near.Get(c, 8+n, 48-n), want[8+n:56]), "bytes behind the buffer were written")
		}
	}
}

func badLocalKey(c *spec.C) {
	e := kit.Open(c)
	far, near := e.Buffer(c, 64, kit.AllAccess), e.Buffer(c, 64, kit.AllAccess)
	gone := e.Buffer(c, 64, kit.AllAccess)
	key := gone.MR.LKey()
	gone.Dereg(c)
	want := near.FillRandom(c)
	for _, wr := range oneOfEachAtomic(far, 0, verbs.SGE{Addr: near.Addr(0), Length: 8, LKey: key}) {
		c.StatusIn(fmt.Sprintf("opcode %d", wr.Opcode), e.Pair(c, kit.Default()).A.PostAndPoll(c, wr), verbs.WCLocProtErr)
		near.ExpectContents(c, "local memory", want)
	}
	c.Observe("far word changed", far.Word(c, 0) != 0)
}

func badRemoteKey(c *spec.C) {
	e := kit.Open(c)
	far, near := e.Buffer(c, 64, kit.AllAccess), e.Buffer(c, 64, kit.AllAccess)
	far.FillRandom(c)
	gone := e.Buffer(c, 64, kit.AllAccess)
	key := gone.MR.RKey()
	gone.Dereg(c)
	for _, wr := range oneOfEachAtomic(far, 0, near.SGE(0, 8)) {
		wr.RKey = key
		expectFailure(c, e, kit.Default(), fmt.Sprintf("opcode %d", wr.Opcode), wr, far, verbs.WCRemAccessErr)
	}
}

// 10^5 additions in all.
const (
	adders  = 16
	addEach = 6250
	inHand  = 8 // requests that a thread keeps outstanding
)

func manyAdders(c *spec.C) {
	c.Observe("additions", adders*addEach)
	e := kit.Open(c)
	far := e.Buffer(c, 64, kit.AllAccess)
	far.SetWord(c, 0, 0)
	seen := make([][]uint64, adders)
	pairs := make([]*kit.Pair, adders)
	results := make([]*kit.Buffer, adders)
	for i := range pairs {
		pairs[i], results[i] = e.Pair(c, kit.Default()), e.Buffer(c, 8*inHand, kit.AllAccess)
	}
	kit.RunThreads(c, adders, func(c *spec.C, i int) {
		p, mem := pairs[i], results[i]
		posted := 0
		post := func() {
			p.A.Post(c, kit.FetchAdd(uint64(posted), far, 0, 1, mem.SGE(8*(posted%inHand), 8)))
			posted++
		}
		for range inHand {
			post()
		}
		for len(seen[i]) < addEach {
			w := kit.ExpectSuccess(c, p.A.SendCQ, 1)[0]
			seen[i] = append(seen[i], mem.Word(c, 8*(int(w.ID)%inHand)))
			if posted < addEach {
				post()
			}
		}
	})
	c.Equal("final value", far.Word(c, 0), uint64(adders*addEach))
	all := slices.Concat(seen...)
	slices.Sort(all)
	c.Equal("returned values", len(all), adders*addEach)
	for i, v := range all {
		if v != uint64(i) {
			c.Failf("the returned values are no permutation: %d in place %d", v, i)
		}
	}
}

// wide asks for compare-and-swaps of more than 8 bytes by the length of the local entry, the
// only place where the basic request could say so.
func wide(c *spec.C) {
	e := kit.Open(c)
	far, near := e.Buffer(c, 64, kit.AllAccess), e.Buffer(c, 64, kit.AllAccess)
	for _, n := range []int{16, 32} {
		step := fmt.Sprintf("%d bytes", n)
		far.FillByte(c, 0)
		before := near.FillRandom(c)
		p := e.Pair(c, kit.Default())
		_, err := p.A.PostSend(c.T, []verbs.SendWR{kit.CmpSwap(1, far, 0, 0, ^uint64(0), near.SGE(0, n))})
		if kit.RecordErrno(c, step, err) == 0 {
			c.Completion(step+": completion", kit.PollOne(c, p.A.SendCQ))
		}
		c.Observe(step+": far bytes changed", lastChangedByte(far.Get(c, 0, 64), make([]byte, 64)))
		c.Observe(step+": near bytes changed", lastChangedByte(near.Get(c, 0, 64), before))
	}
}

// lastChangedByte is the number of the last byte that differs, from 1.
func lastChangedByte(now, before []byte) int {
	for i := len(now); i > 0; i-- {
		if now[i-1] != before[i-1] {
			return i
		}
	}
	return 0
}

// notSupported posts atomics, and asks for a QP that builds them, where the device has none.
func notSupported(c *spec.C) {
	e := kit.Open(c)
	far, near := e.Buffer(c, 64, kit.AllAccess), e.Buffer(c, 64, kit.AllAccess)
	want := far.FillRandom(c)
	attr, err := e.Ctx.QueryDevice(c.T)
	c.NoErr("query_device", err)
	c.Equal("atomic_cap", attr.Atomic, verbs.AtomicNone)
	o := kit.Default()
	o.Access &^= verbs.AccessRemoteAtomic
	p := e.Pair(c, o)
	for _, wr := range oneOfEachAtomic(far, 0, near.SGE(0, 8)) {
		p.A.ExpectSendRefused(c, fmt.Sprintf("opcode %d", wr.Opcode), 0, []verbs.SendWR{wr}, syscall.EOPNOTSUPP, syscall.EINVAL)
	}
	far.ExpectContents(c, "far memory", want)
	c.Status("write afterwards", p.A.PostAndPoll(c, kit.Write(1, far, 0, near.SGE(0, 8))), verbs.WCSuccess)
	if !c.Has("wr_ex") {
		return
	}
	a := p.A.InitAttr()
	a.CompMask, a.SendOpsFlags = verbs.QPInitSendOpsFlags, verbs.QPExAtomicFetchAdd
	_, err = e.PD.CreateQP(c.T, a)
	c.ErrnoIn("create_qp for atomics", err, syscall.EOPNOTSUPP, syscall.EINVAL)
}
