package rc

import (
	"bytes"
	"fmt"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

func sizes(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	const m = 1024 // the path MTU
	lengths := []int{0, 1, 2, 3, m/2 - 1, m / 2, m - 1, m, m + 1, 2*m - 1, 2 * m, 3*m + 17, 10 * m, 65536, 1 << 20}
	src := p.Buffer(c, 1<<20, kit.AllAccess)
	dst := p.Buffer(c, 1<<20, kit.AllAccess)
	all := src.FillRandom(c)
	for i, n := range lengths {
		dst.Set(c, 0, bytes.Repeat([]byte{0x5a}, min(n+64, dst.Len)))
		p.B.RecvInto(c, uint64(i), dst.SGE(0, n))
		c.Status("send", p.A.PostAndPoll(c, kit.Send(uint64(i), src.SGE(0, n))), verbs.WCSuccess)
		wc := kit.PollOne(c, p.B.RecvCQ)
		c.Status("receive", wc, verbs.WCSuccess)
		c.Equal("opcode", wc.Opcode, verbs.WCOpRecv)
		c.Equal("byte_len", wc.ByteLen, uint32(n))
		tail := min(64, dst.Len-n)
		dst.ExpectContents(c, fmt.Sprintf("%d bytes", n), append(bytes.Clone(all[:n]), bytes.Repeat([]byte{0x5a}, tail)...))
		dst.CheckRedZones(c)
	}
}

func immediate(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 8192, kit.AllAccess)
	for i, imm := range []uint32{0, 1, 0x01020304, 0xffffffff, 0x80000000} {
		for _, n := range []int{0, 8, 3000} {
			p.B.RecvInto(c, uint64(i), mem.SGE(4096, 3000))
			wr := kit.Send(uint64(i), mem.SGE(0, n))
			wr.Opcode, wr.Imm = verbs.WRSendImm, imm
			c.Status("send", p.A.PostAndPoll(c, wr), verbs.WCSuccess)
			wc := kit.PollOne(c, p.B.RecvCQ)
			c.Status("receive", wc, verbs.WCSuccess)
			c.Equal("flag", wc.Flags&verbs.WCWithImm, verbs.WCWithImm)
			c.Equal("immediate", wc.Imm, imm)
			c.Equal("byte_len", wc.ByteLen, uint32(n))
		}
	}
	p.B.RecvInto(c, 9, mem.SGE(4096, 8))
	c.Status("send without", p.A.PostAndPoll(c, kit.Send(9, mem.SGE(0, 8))), verbs.WCSuccess)
	c.Equal("no flag without", kit.PollOne(c, p.B.RecvCQ).Flags&verbs.WCWithImm, verbs.WCFlags(0))
}

func write(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	src := p.Buffer(c, 8192, kit.AllAccess)
	dst := p.Buffer(c, 16384, kit.AllAccess)
	all := src.FillRandom(c)
	p.B.RecvInto(c, 1, dst.SGE(0, 8)) // must stay unused
	for i, tc := range []struct{ off, n int }{{0, 1}, {16383, 1}, {4095, 2}, {100, 1024}, {1000, 1025}, {4097, 8191}, {0, 8192}} {
		want := dst.FillRandom(c)
		copy(want[tc.off:], all[:tc.n])
		wc := p.A.PostAndPoll(c, kit.Write(uint64(i), dst, tc.off, src.SGE(0, tc.n)))
		c.Status("write", wc, verbs.WCSuccess)
		c.Equal("opcode", wc.Opcode, verbs.WCOpRDMAWrite)
		dst.ExpectContents(c, fmt.Sprintf("%d bytes at %d", tc.n, tc.off), want)
	}
	kit.ExpectNoCompletion(c, p.B.RecvCQ, kit.QuietPeriod)
}

func writeImmediate(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	src := p.Buffer(c, 8192, kit.AllAccess)
	dst := p.Buffer(c, 8192, kit.AllAccess)
	recv := p.Buffer(c, 64, kit.AllAccess)
	all, untouched := src.FillRandom(c), recv.FillRandom(c)
	for i, n := range []int{0, 1, 1024, 5000} {
		want := dst.FillRandom(c)
		copy(want[64:], all[:n])
		p.B.RecvInto(c, 100+uint64(i), recv.All())
		wr := kit.Write(uint64(i), dst, 64, src.SGE(0, n))
		wr.Opcode, wr.Imm = verbs.WRRDMAWriteImm, 0xcafe0000+uint32(i)
		c.Status("write with immediate", p.A.PostAndPoll(c, wr), verbs.WCSuccess)
		wc := kit.PollOne(c, p.B.RecvCQ)
		c.Status("receive", wc, verbs.WCSuccess)
		c.Equal("wr_id", wc.ID, 100+uint64(i))
		c.Equal("opcode", wc.Opcode, verbs.WCOpRecvRDMAImm)
		c.Equal("byte_len", wc.ByteLen, uint32(n))
		c.Equal("flag", wc.Flags&verbs.WCWithImm, verbs.WCWithImm)
		c.Equal("immediate", wc.Imm, wr.Imm)
		dst.ExpectContents(c, "target", want)
		recv.ExpectContents(c, "buffer of the receive", untouched)
	}
}

func read(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	src := p.Buffer(c, 16384, kit.AllAccess)
	dst := p.Buffer(c, 16384, kit.AllAccess)
	all := src.FillRandom(c)
	for i, tc := range []struct {
		off    int
		pieces []int
	}{
		{0, []int{1}}, {16383, []int{1}}, {100, []int{64}}, {7, []int{1024}}, {7, []int{1000, 25}},
		{4095, []int{3, 1024, 5, 1100}}, {0, []int{8192}}, {33, []int{1, 2, 3, 4}},
	} {
		want := dst.FillRandom(c)
		var sges []verbs.SGE
		at, from := 11, tc.off
		for _, n := range tc.pieces {
			sges = append(sges, dst.SGE(at, n))
			copy(want[at:at+n], all[from:])
			at, from = at+n+13, from+n
		}
		wc := p.A.PostAndPoll(c, kit.Read(uint64(i), src, tc.off, sges...))
		c.Status("read", wc, verbs.WCSuccess)
		c.Equal("opcode", wc.Opcode, verbs.WCOpRDMARead)
		c.Equal("byte_len", wc.ByteLen, uint32(from-tc.off))
		dst.ExpectContents(c, fmt.Sprintf("from %d in pieces %v", tc.off, tc.pieces), want)
	}
	src.ExpectContents(c, "source", all)
	kit.ExpectNoCompletion(c, p.B.RecvCQ, kit.QuietPeriod)
}

func zeroLength(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 64, kit.AllAccess)
	want := mem.FillRandom(c)
	for _, key := range []uint32{mem.MR.RKey(), 0, 0xffffffff, mem.MR.RKey() ^ 0x5a00} {
		for _, wr := range []verbs.SendWR{kit.Write(1, mem, 0), kit.Read(2, mem, 0)} {
			wr.RKey = key
			c.Status(fmt.Sprintf("zero bytes, opcode %d", wr.Opcode), p.A.PostAndPoll(c, wr), verbs.WCSuccess)
			wr.RemoteAddr = 1<<64 - 1
			c.Status("at the last address", p.A.PostAndPoll(c, wr), verbs.WCSuccess)
		}
	}
	mem.ExpectContents(c, "memory", want)
}

func postedOrder(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 1<<16, kit.AllAccess)
	const n = 48
	for i := range uint64(n) {
		size := 1 + c.Rand().Intn(4000)
		if c.Rand().Intn(2) == 0 {
			p.A.Post(c, kit.Read(i, mem, 0, mem.SGE(8192, size)))
		} else {
			p.A.Post(c, kit.Write(i, mem, 16384, mem.SGE(32768, size)))
		}
	}
	for i, w := range kit.ExpectSuccess(c, p.A.SendCQ, n) {
		if w.ID != uint64(i) {
			c.Equal(fmt.Sprintf("completion %d", i), w.ID, uint64(i))
		}
	}
	c.Observe("completions in order", n)
}

func readAfterWrite(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	src := p.Buffer(c, 8192, kit.AllAccess)
	far := p.Buffer(c, 8192, kit.AllAccess)
	back := p.Buffer(c, 8192, kit.AllAccess)
	for i, n := range []int{1, 64, 1024, 5000, 8192} {
		want := src.FillRandom(c)[:n]
		far.FillByte(c, 0)
		p.A.Post(c, kit.Write(uint64(2*i), far, 0, src.SGE(0, n)), kit.Read(uint64(2*i+1), far, 0, back.SGE(0, n)))
		kit.ExpectSuccess(c, p.A.SendCQ, 2)
		back.ExpectContents(c, fmt.Sprintf("%d bytes", n), want)
	}
}

func selfLoop(c *spec.C) {
	e := kit.Open(c)
	o := kit.Default()
	q := e.CreateQP(c, o)
	q.BringUp(c, q.Peer(), verbs.QPSRTS)
	mem := e.Buffer(c, 16384, kit.AllAccess)
	want := mem.FillRandom(c)[:5000]
	q.RecvInto(c, 10, mem.SGE(8192, 5000))
	c.Status("send", q.PostAndPoll(c, kit.Send(1, mem.SGE(0, 5000))), verbs.WCSuccess)
	wc := kit.PollOne(c, q.RecvCQ)
	c.Status("receive", wc, verbs.WCSuccess)
	c.Equal("byte_len", wc.ByteLen, uint32(5000))
	c.Equal("bytes", mem.Get(c, 8192, 5000), want)
	c.Status("read", q.PostAndPoll(c, kit.Read(2, mem, 0, mem.SGE(0, 0))), verbs.WCSuccess)
	c.Status("write", q.PostAndPoll(c, kit.Write(3, mem, 8192, mem.SGE(0, 100))), verbs.WCSuccess)
}

// redZones runs each operation to the very ends of its buffers.
func redZones(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	for _, n := range []int{8, 1023, 1024, 4096, 5001} {
		src := p.Buffer(c, n, kit.AllAccess)
		dst := p.Buffer(c, n, kit.AllAccess)
		want := src.FillRandom(c)
		p.B.RecvInto(c, 1, dst.All())
		ops := []verbs.SendWR{kit.Send(1, src.All()), kit.Write(2, dst, 0, src.All()), kit.Read(3, src, 0, dst.All()),
			kit.Write(4, dst, n-1, src.SGE(n-1, 1)), kit.Read(5, src, n-1, dst.SGE(n-1, 1))}
		for _, wr := range ops {
			c.Status(fmt.Sprintf("opcode %d, %d bytes", wr.Opcode, n), p.A.PostAndPoll(c, wr), verbs.WCSuccess)
			if wr.Opcode == verbs.WRSend { // what was received may be used when its completion has been polled
				kit.ExpectSuccess(c, p.B.RecvCQ, 1)
			}
			dst.ExpectContents(c, "target", want)
			src.ExpectContents(c, "source", want)
			src.CheckRedZones(c)
			dst.CheckRedZones(c)
		}
	}
}

// sendInvalidate binds windows of type 2 on the responder and ends each by a message of
// one packet or of many.
func sendInvalidate(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	const n = 5000
	src, mem := p.Buffer(c, n, kit.AllAccess), p.Buffer(c, n, kit.AllAccess|verbs.AccessMWBind)
	w, err := p.PD.AllocMW(c.T, verbs.MWType2)
	c.NoErr("alloc_mw", err)
	c.Defer(func() { kit.Must(c, "dealloc_mw", w.Dealloc(c.T)) })
	for i, length := range []int{0, 8, 1024, n} {
		key := verbs.IncRKey(w.RKey())
		bind := verbs.SendWR{ID: 1, Opcode: verbs.WRBindMW, Flags: verbs.SendSignaled, Bind: &verbs.MWBindWR{MW: w, RKey: key,
			Info: verbs.MWBindInfo{MR: mem.MR, Addr: mem.Addr(0), Length: 64, Access: verbs.AccessRemoteWrite}}}
		c.Status("bind", p.B.PostAndPoll(c, bind), verbs.WCSuccess)
		w.SetRKey(key)
		want := src.FillRandom(c)[:length]
		p.B.RecvInto(c, uint64(i), mem.All())
		wr := kit.Send(2, src.SGE(0, length))
		wr.Opcode, wr.Imm = verbs.WRSendInv, key
		c.Status("send with invalidate", p.A.PostAndPoll(c, wr), verbs.WCSuccess)
		wc := kit.ExpectSuccess(c, p.B.RecvCQ, 1)[0]
		c.True("flags", wc.Flags&(verbs.WCWithInv|verbs.WCWithImm) == verbs.WCWithInv, "want WITH_INV and not WITH_IMM, got %s", spec.Words(wc.Flags))
		c.True("invalidated key", wc.Imm == key, "%#x, want %#x", wc.Imm, key)
		c.Equal("length", wc.ByteLen, uint32(length))
		c.Equal("bytes", mem.Get(c, 0, length), want)
	}
}
