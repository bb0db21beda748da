package mr

import (
	"fmt"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// badKey differs from key in its index part and in its variant part.
func badKey(key uint32) uint32 { return key ^ 0xfff00100 }

func badLKeySend(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem, dst := p.Buffer(c, 64, kit.AllAccess), p.Buffer(c, 64, kit.AllAccess)
	before := dst.FillRandom(c)
	for _, flip := range []uint32{1, 0xff, 0xfff00100} { // key part, and index part
		sge := mem.SGE(0, 16)
		sge.LKey ^= flip
		wc := p.A.PostAndPoll(c, kit.Write(5, dst, 0, sge))
		c.Status(fmt.Sprintf("lkey with bits %#x flipped", flip), wc, verbs.WCLocProtErr)
		c.Equal("wr_id", wc.ID, uint64(5))
		dst.ExpectContents(c, "target", before)
		reconnect(c, p)
	}
}

func beyondEndSend(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem, dst := p.Buffer(c, 64, kit.AllAccess), p.Buffer(c, 128, kit.AllAccess)
	before := dst.FillRandom(c)
	for _, s := range []struct{ off, n int }{{0, 65}, {63, 2}, {64, 1}, {-1, 1}} {
		wc := p.A.PostAndPoll(c, kit.Write(5, dst, 0, mem.SGE(s.off, s.n)))
		c.Status(fmt.Sprintf("%d bytes from %d of 64", s.n, s.off), wc, verbs.WCLocProtErr)
		dst.ExpectContents(c, "target", before)
		reconnect(c, p)
	}
	c.Status("64 bytes of 64", p.A.PostAndPoll(c, kit.Write(6, dst, 0, mem.SGE(0, 64))), verbs.WCSuccess)
}

// large is more than fits into a completion entry: what the device leaves there, it
// does not write by a key.
const large = 256

func noLocalWrite(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	fixed := p.Buffer(c, large, verbs.AccessRemoteRead)
	mem := p.Buffer(c, large, kit.AllAccess)
	mem.FillRandom(c)
	before := fixed.FillRandom(c)
	wc := p.A.PostAndPoll(c, kit.Read(1, mem, 0, fixed.All()))
	c.StatusIn("read into an MR without LOCAL_WRITE", wc, verbs.WCLocProtErr, verbs.WCLocAccessErr)
	fixed.ExpectContents(c, "bytes after the read", before)
	reconnect(c, p)
	p.B.RecvInto(c, 2, fixed.All())
	sent := p.A.PostAndPoll(c, kit.Send(3, mem.All()))
	c.StatusIn("receive into an MR without LOCAL_WRITE", kit.PollOne(c, p.B.RecvCQ), verbs.WCLocProtErr, verbs.WCLocAccessErr)
	c.Status("its sender", sent, verbs.WCRemOpErr)
	fixed.ExpectContents(c, "bytes after the receive", before)
}

func badLKeyReceive(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := p.Buffer(c, 2*large, kit.AllAccess)
	before := mem.FillRandom(c)
	sge := mem.SGE(large, large)
	sge.LKey = badKey(sge.LKey)
	p.B.RecvInto(c, 11, sge)
	sent := p.A.PostAndPoll(c, kit.Send(12, mem.SGE(0, large)))
	wc := kit.PollOne(c, p.B.RecvCQ)
	c.StatusIn("responder", wc, verbs.WCLocProtErr)
	c.Equal("wr_id of the receive", wc.ID, uint64(11))
	c.StatusIn("requester", sent, verbs.WCRemOpErr)
	mem.ExpectContents(c, "memory", before)
}

func deregisteredRKey(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	src, dst := p.Buffer(c, 64, kit.AllAccess), p.Buffer(c, 64, kit.AllAccess)
	want := src.FillRandom(c)
	wr := kit.Write(1, dst, 0, src.All())
	c.Status("write while registered", p.A.PostAndPoll(c, wr), verbs.WCSuccess)
	dst.ExpectContents(c, "bytes", want)
	dst.Dereg(c)
	src.FillRandom(c)
	c.Status("write after dereg_mr", p.A.PostAndPoll(c, wr), verbs.WCRemAccessErr)
	dst.ExpectContents(c, "bytes after dereg_mr", want)
	reconnect(c, p)
	read := wr
	read.Opcode = verbs.WRRDMARead
	c.Status("read after dereg_mr", p.A.PostAndPoll(c, read), verbs.WCRemAccessErr)
}

// eightKeys registers one memory eight times and tries every operation by each key.
func eightKeys(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	mem := kit.Map(c, 4096)
	local := p.Buffer(c, 8, kit.AllAccess)
	const w, r, a = verbs.AccessRemoteWrite, verbs.AccessRemoteRead, verbs.AccessRemoteAtomic
	for _, remote := range []verbs.AccessFlags{0, w, r, a, w | r, w | a, r | a, w | r | a} {
		mr, err := p.PD.RegMR(c.T, mem.Addr(), 4096, verbs.AccessLocalWrite|remote)
		c.NoErr("reg_mr", err)
		for _, op := range []struct {
			name   string
			opcode verbs.WROpcode
			needs  verbs.AccessFlags
		}{{"write", verbs.WRRDMAWrite, w}, {"read", verbs.WRRDMARead, r}, {"fetch and add", verbs.WRAtomicFetchAdd, a}} {
			data := c.Rand().Bytes(8)
			writeMemory(c, mem, data)
			local.FillByte(c, 0x11)
			wc := p.A.PostAndPoll(c, verbs.SendWR{ID: 1, Opcode: op.opcode, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{local.All()},
				RemoteAddr: mem.Addr(), RKey: mr.RKey(), CompareAdd: 1})
			step := fmt.Sprintf("%s with access %#x", op.name, uint32(remote))
			if remote&op.needs != 0 {
				c.Status(step, wc, verbs.WCSuccess)
				continue
			}
			c.Status(step, wc, verbs.WCRemAccessErr)
			c.Equal("memory", readMemory(c, mem, 8), data)
			reconnect(c, p)
		}
		c.Defer(func() { kit.Must(c, "dereg_mr", mr.Dereg(c.T)) })
	}
}

func writeMemory(c *spec.C, m verbs.Buffer, p []byte) {
	_, err := m.WriteAt(c.T, p, 0)
	kit.Must(c, "write memory", err)
}

func readMemory(c *spec.C, m verbs.Buffer, n int) []byte {
	p := make([]byte, n)
	_, err := m.ReadAt(c.T, p, 0)
	kit.Must(c, "read memory", err)
	return p
}

// relaxedOrdering moves data through regions with relaxed ordering and looks at it as
// soon as its completion is polled.
func relaxedOrdering(c *spec.C) {
	p := kit.NewPair(c, kit.Default())
	const size = 64 << 10
	src := p.Buffer(c, size, kit.AllAccess|verbs.AccessRelaxedOrdering)
	dst := p.Buffer(c, size, kit.AllAccess|verbs.AccessRelaxedOrdering)
	for i := range uint64(8) {
		n := 1 + c.Rand().Intn(size)
		want := src.FillRandom(c)[:n]
		p.B.RecvInto(c, i, dst.All())
		p.A.Post(c, kit.Send(i, src.SGE(0, n)))
		c.Status("receive", kit.PollOne(c, p.B.RecvCQ), verbs.WCSuccess)
		dst.ExpectContents(c, "bytes when the receive is polled", want)
		kit.ExpectSuccess(c, p.A.SendCQ, 1)
		dst.FillByte(c, 0)
		c.Status("read", p.A.PostAndPoll(c, kit.Read(i, src, 0, dst.SGE(0, n))), verbs.WCSuccess)
		dst.ExpectContents(c, "bytes when the read is polled", want)
	}
}

// thousands registers 4096 regions of 64 bytes and writes to each by its key.
func thousands(c *spec.C) {
	const n, size = 4096, 64
	p := kit.NewPair(c, kit.Default())
	mem := kit.Map(c, n*size)
	src := p.Buffer(c, size*64, kit.AllAccess)
	mrs := make([]verbs.MR, n)
	seen := map[uint32]int{}
	for i := range mrs {
		mr, err := p.PD.RegMR(c.T, mem.Addr()+uint64(i*size), size, kit.AllAccess)
		kit.Must(c, fmt.Sprintf("reg_mr %d", i), err)
		c.Defer(func() { kit.Must(c, "dereg_mr", mr.Dereg(c.T)) })
		for _, key := range []uint32{mr.LKey(), mr.RKey()} {
			if at, used := seen[key]; used && at != i {
				c.Failf("regions %d and %d have the same key", at, i)
			}
			seen[key] = i
		}
		mrs[i] = mr
	}
	write := func(key, to int) verbs.SendWR {
		return verbs.SendWR{ID: uint64(to), Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled,
			SGEs: []verbs.SGE{src.SGE(to%64*size, size)}, RemoteAddr: mem.Addr() + uint64(to*size), RKey: mrs[key].RKey()}
	}
	var want []byte
	for i := 0; i < n; i += 64 {
		want = append(want, src.FillRandom(c)...)
		for j := i; j < i+64; j++ {
			p.A.Post(c, write(j, j))
		}
		kit.ExpectSuccess(c, p.A.SendCQ, 64)
	}
	c.Equal("each key reaches its own memory", readMemory(c, mem, n*size), want)
	for range 32 {
		key := c.Rand().Intn(n)
		to := (key + 1 + c.Rand().Intn(n-1)) % n
		if wc := p.A.PostAndPoll(c, write(key, to)); wc.Status != verbs.WCRemAccessErr {
			c.Status("the key of another region", wc, verbs.WCRemAccessErr)
		}
		reconnect(c, p)
	}
	c.Equal("memory after the refusals", readMemory(c, mem, n*size), want)
}
