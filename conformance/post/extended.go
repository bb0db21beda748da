package post

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// extended is the usual RC pair with the extended way to post and room for inline data.
func extended() kit.Options {
	o := kit.Default()
	o.SendOps = kit.OpsRC
	o.Cap.MaxInline = 64
	return o
}

func abort(c *spec.C) {
	p := kit.NewPair(c, extended())
	mem := p.Buffer(c, 4096, kit.AllAccess)
	x := p.A.QPEx(c)
	next := uint64(0)
	c.Observe("max_send_wr granted", p.A.Caps().MaxSendWR)
	for _, k := range []int{0, 1, 5, int(p.A.Caps().MaxSendWR)} {
		want := mem.FillRandom(c)
		x.WRStart(c.T)
		for range k {
			w := kit.Write(1000, mem, 2048, mem.SGE(0, 64))
			kit.BuildWR(c, x, &w)
		}
		x.WRAbort(c.T)
		kit.ExpectNoCompletion(c, p.A.SendCQ, kit.QuietPeriod)
		mem.ExpectContents(c, fmt.Sprintf("memory after %d requests taken back", k), want)
		// The queue is as before: it takes as many as it always did, by either way.
		n := int(p.A.Caps().MaxSendWR)
		var wrs []verbs.SendWR
		for i := range n {
			wrs = append(wrs, kit.Write(next+uint64(i), mem, 2048+8*i, mem.SGE(8*i, 8)))
		}
		if k%2 == 0 {
			p.A.PostEx(c, wrs...)
		} else {
			p.A.Post(c, wrs...)
		}
		copy(want[2048:2048+8*n], want[:8*n])
		for i, w := range kit.ExpectSuccess(c, p.A.SendCQ, n) {
			c.Equal("wr_id", w.ID, next+uint64(i))
		}
		mem.ExpectContents(c, "memory", want)
		next += uint64(n)
	}
}

// mistake is a way to build a request wrongly, and what wr_complete says of it.
type mistake struct {
	name string
	set  []syscall.Errno
	make func(c *spec.C, x verbs.QPEx, mem *kit.Buffer, caps verbs.QPCap)
}

func mistakes() []mistake {
	write := func(c *spec.C, x verbs.QPEx, mem *kit.Buffer) {
		x.SetWR(50, verbs.SendSignaled)
		x.WRRDMAWrite(c.T, mem.MR.RKey(), mem.Addr(2048))
	}
	full := []syscall.Errno{syscall.ENOMEM, syscall.EINVAL}
	return []mistake{
		{"more SGEs than max_send_sge", full, func(c *spec.C, x verbs.QPEx, mem *kit.Buffer, caps verbs.QPCap) {
			write(c, x, mem)
			x.SetSGEList(c.T, eights(mem, int(caps.MaxSendSGE)+1))
		}},
		{"more inline data than max_inline_data", full, func(c *spec.C, x verbs.QPEx, mem *kit.Buffer, caps verbs.QPCap) {
			write(c, x, mem)
			x.SetInlineData(c.T, mem.Addr(0), caps.MaxInline+1)
		}},
		{"more inline data in two pieces", full, func(c *spec.C, x verbs.QPEx, mem *kit.Buffer, caps verbs.QPCap) {
			write(c, x, mem)
			x.SetInlineDataList(c.T, []verbs.DataBuf{{Addr: mem.Addr(0), Length: caps.MaxInline}, {Addr: mem.Addr(0), Length: 1}})
		}},
		{"more requests than max_send_wr", full, func(c *spec.C, x verbs.QPEx, mem *kit.Buffer, caps verbs.QPCap) {
			for range caps.MaxSendWR {
				write(c, x, mem)
				x.SetSGE(c.T, mem.SGE(0, 8))
			}
		}},
	}
}

func buildError(c *spec.C) {
	p := kit.NewPair(c, extended())
	mem := p.Buffer(c, 4096, kit.AllAccess)
	x := p.A.QPEx(c)
	good := kit.Write(1, mem, 2048, mem.SGE(0, 8))
	for i, m := range mistakes() {
		want := mem.FillRandom(c)
		// One good request before the mistake and one behind it.
		x.WRStart(c.T)
		kit.BuildWR(c, x, &good)
		m.make(c, x, mem, p.A.Caps())
		kit.BuildWR(c, x, &good)
		if c.ErrnoIn("wr_complete: "+m.name, x.WRComplete(c.T), m.set...) == 0 {
			for len(kit.PollWithin(c, p.A.SendCQ, 1, 5*kit.QuietPeriod)) > 0 { // known to: all were sent
			}
			continue
		}
		kit.ExpectNoCompletion(c, p.A.SendCQ, kit.QuietPeriod)
		mem.ExpectContents(c, "memory after "+m.name, want)
		// The mistake was reported once: the next batch is sent.
		after := good
		after.ID = uint64(100 + i)
		p.A.PostEx(c, after)
		c.Equal("wr_id of the next batch", kit.ExpectSuccess(c, p.A.SendCQ, 1)[0].ID, after.ID)
	}
}

func foreignOps(c *spec.C) {
	e := kit.Open(c)
	type try struct {
		typ verbs.QPType
		ops uint64
	}
	tries := []try{
		{verbs.QPTRC, verbs.QPExTSO}, {verbs.QPTRC, verbs.QPExSend | verbs.QPExTSO}, {verbs.QPTRC, 1 << 40},
		{verbs.QPTUC, verbs.QPExRDMARead}, {verbs.QPTUC, kit.OpsUC | verbs.QPExAtomicFetchAdd}, {verbs.QPTUC, verbs.QPExAtomicCmpSwp},
		{verbs.QPTUD, verbs.QPExRDMAWrite}, {verbs.QPTUD, kit.OpsUD | verbs.QPExRDMARead}, {verbs.QPTUD, verbs.QPExSendInv},
		{verbs.QPTUD, verbs.QPExBindMW}, {verbs.QPTUD, verbs.QPExLocalInv}, {verbs.QPTUD, verbs.QPExAtomicFetchAdd},
	}
	cq := e.CreateCQ(c, 16)
	create := func(typ verbs.QPType, ops uint64) (verbs.QP, error) {
		return e.PD.CreateQP(c.T, verbs.QPInitAttr{Type: typ, SendCQ: cq, RecvCQ: cq, Cap: kit.Default().Cap,
			CompMask: verbs.QPInitSendOpsFlags, SendOpsFlags: ops})
	}
	for _, x := range tries {
		if x.typ == verbs.QPTUC && !c.Has("uc") || x.typ == verbs.QPTUD && !c.Has("ud") {
			continue
		}
		_, err := create(x.typ, x.ops)
		c.ErrnoIn(fmt.Sprintf("create_qp_ex of type %d with operations %#x", x.typ, x.ops), err, syscall.EOPNOTSUPP, syscall.EINVAL)
	}
	for _, x := range []try{{verbs.QPTRC, verbs.QPExRDMAWrite | verbs.QPExSend}, {verbs.QPTRC, kit.OpsRC}} {
		q, err := create(x.typ, x.ops)
		c.Errno("create_qp_ex with operations of the type", err, 0)
		c.True("ibv_qp_to_qp_ex", q.Ex() != nil, "it is no ibv_qp_ex")
		kit.Must(c, "destroy_qp", q.Destroy(c.T))
	}
	q := e.CreateQP(c, kit.Default())
	c.True("ibv_qp_to_qp_ex of a QP of the plain call", q.QP.Ex() == nil, "it is an ibv_qp_ex")
}

// program has requests of every operation of RC, gathered and inline, with and without
// completion.
func program(c *spec.C, src *kit.Buffer, far *kit.OtherBuffer, atomics bool) []verbs.SendWR {
	imm := func(w verbs.SendWR, op verbs.WROpcode, v uint32) verbs.SendWR {
		w.Opcode, w.Imm = op, v
		return w
	}
	inline := func(w verbs.SendWR) verbs.SendWR {
		w.Flags |= verbs.SendInline
		return w
	}
	quiet := func(w verbs.SendWR) verbs.SendWR {
		w.Flags &^= verbs.SendSignaled
		return w
	}
	flag := func(w verbs.SendWR, f verbs.SendFlags) verbs.SendWR {
		w.Flags |= f
		return w
	}
	wrs := []verbs.SendWR{
		kit.Send(1, src.SGE(0, 100)),
		quiet(far.WriteTo(2, 0, src.SGE(100, 3000))),
		inline(far.WriteTo(3, 3000, src.SGE(200, 24))),
		inline(far.WriteTo(4, 3100, src.SGE(0, 7), src.SGE(300, 30))),
		imm(kit.Send(5, src.SGE(40, 1), src.SGE(50, 0), src.SGE(60, 200)), verbs.WRSendImm, 0xdeadbeef),
		imm(far.WriteTo(6, 3200, src.SGE(1, 33)), verbs.WRRDMAWriteImm, 0x01020304),
		far.ReadFrom(7, 0, src.SGE(4096, 2500)),
		flag(far.WriteTo(8, 3300, src.SGE(4096, 100)), verbs.SendFence),
		flag(kit.Send(9), verbs.SendSolicited),
	}
	if atomics {
		wrs = append(wrs, far.FetchAdd(10, 4096, 3, src.SGE(7000, 8)))
	}
	return wrs
}

// samePackets compares what two pairs do with one program, posted one way and the
// other.
func samePackets(c *spec.C) {
	e := kit.Open(c)
	other := kit.OpenOtherProcess(c, kit.RemoteHost(c), nil)
	src := e.Buffer(c, 8192, kit.AllAccess)
	all := src.FillRandom(c)
	var packets [][]string
	var ends [][]byte
	for _, ex := range []bool{false, true} {
		src.Set(c, 0, all)
		a, b := e.PairWith(c, other, kit.WithLongTimeout(c, extended()))
		for a.QPN() == b.QPN { // by which the transcript tells the directions apart
			e.CreateQP(c, extended())
			a, b = e.PairWith(c, other, kit.WithLongTimeout(c, extended()))
		}
		dst := other.Buffer(c, 8192, kit.AllAccess, 0)
		wrs := program(c, src, dst, c.Has("atomic"))
		b.Recv(c, dst, 8)
		signalled := 0
		for _, w := range wrs {
			if w.Flags&verbs.SendSignaled != 0 {
				signalled++
			}
		}
		var done []uint64
		tap := kit.Tap(c, func() {
			if ex {
				a.PostEx(c, wrs[:4]...)
				for _, w := range wrs[4:] {
					a.PostEx(c, w)
				}
			} else {
				a.Post(c, wrs...)
			}
			for _, w := range kit.PollWithin(c, a.SendCQ, signalled, kit.CompletionTimeout) {
				if w.Status == verbs.WCSuccess {
					done = append(done, w.ID)
				}
			}
		})
		if len(done) < signalled {
			c.True(fmt.Sprintf("all succeed, extended %t", ex), false, "%d of %d requests succeeded: %v", len(done), signalled, done)
			return
		}
		c.True("completions in order", slices.IsSorted(done), "%v", done)
		packets = append(packets, kit.Transcript(tap, []uint32{b.QPN, a.QPN()}, []uint32{a.Opt.PSN, a.Opt.PSN}))
		ends = append(ends, append(dst.Get(c, 0, 8192), src.Get(c, 0, 8192)...))
	}
	c.True("packets", len(packets[0]) > 10, "the tap saw %d", len(packets[0]))
	c.Equal("packets", packets[1], packets[0])
	c.Equal("memory of both sides", ends[1], ends[0])
}

func completeInReset(c *spec.C) {
	p := kit.NewPair(c, extended())
	mem := p.Buffer(c, 256, kit.AllAccess)
	want := mem.FillRandom(c)
	p.A.ModifyState(c, verbs.QPSReset)
	x := p.A.QPEx(c)
	w := kit.Write(1, mem, 128, mem.SGE(0, 8))
	for range 2 {
		x.WRStart(c.T)
		kit.BuildWR(c, x, &w)
		c.Errno("wr_complete in RESET", x.WRComplete(c.T), syscall.EINVAL)
	}
	kit.ExpectNoCompletion(c, p.A.SendCQ, kit.QuietPeriod)
	mem.ExpectContents(c, "memory", want)
	// Back in RTS the queue works.
	p.B.ModifyState(c, verbs.QPSReset)
	p.Connect(c)
	p.A.PostEx(c, w)
	kit.ExpectSuccess(c, p.A.SendCQ, 1)
}
